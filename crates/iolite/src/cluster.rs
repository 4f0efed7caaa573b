//! `--client`: a run on other machines, with one report.

mod page;
mod session;
mod shared_files;
mod user_requests;

use crate::console::{self, Console};
use crate::exit_status::INTERRUPTED;
use crate::messages::{complain, told};
use crate::metrics_push::Collector;
use crate::saving::Saving;
use crate::{connection_keys, exit_status, run_files};
use iolite_options::{Name, OutputFormat, RunElsewhere, SentJobs, WhenLost};
use iolite_os::process;
use iolite_os::signals::SignalQueue;
use iolite_remote::coordinator::{Coordinator, NotReached, Settings};
use iolite_remote::keys::{Keys, Role};
use iolite_remote::message::Request;
use iolite_remote::pushed;
use iolite_remote::ranks::Meeting;
use iolite_remote::{Address, address};
use iolite_run::{HeldSignals, Requests, Trigger, Watch};
use iolite_types::describe_error;
use page::HostsPage;
use session::Session;
use std::cell::Cell;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::time::{Duration, Instant};
use user_requests::UserRequests;

/// The shortest and longest interval of a machine's reports during its run, which keep its measurements if it is lost.
const KEPT_MS: [u64; 2] = [1000, 5000];
/// All machines together send at most one report in this many milliseconds.
const KEPT_MS_OF_EACH: u64 = 5;

/// Runs the jobs, on the ranks of a launcher if there are any; the exit status.
pub fn run(name: Name, asked: RunElsewhere, ranks: Option<Meeting>) -> u8 {
    if !name.is_strict() {
        console::print_error(&told(name, &asked.warnings));
    }
    match perform(name, asked, ranks) {
        Ok(status) => status,
        Err(problems) => {
            problems.iter().for_each(|problem| complain(name, problem));
            1
        }
    }
}

/// Runs the jobs; the exit status, or why they do not run.
fn perform(name: Name, asked: RunElsewhere, ranks: Option<Meeting>) -> Result<u8, Vec<String>> {
    let RunElsewhere { clients, on_ranks, run, keys, insecure, push, exec, when_lost, timeout_ms, .. } =
        asked;
    let launcher = on_ranks.then(parent_id);
    let mut addresses = Vec::new();
    let mut named_in = Vec::new();
    let mut requests = Vec::new();
    let mut problems = Vec::new();
    for client in clients.iter().filter(|_| !on_ranks) {
        for (place, text) in hosts(&client.address).map_err(|why| vec![why])? {
            match Address::parse(&text).map(Address::to_reach) {
                Ok(address) => {
                    addresses.push(address);
                    named_in.push(place);
                    requests.push(client.jobs.clone());
                }
                Err(why) => problems.push(format!("{}: {why}", place.as_deref().unwrap_or("--client"))),
            }
        }
    }
    let has_ssh = addresses.iter().any(|address| matches!(address, Address::Ssh(_)));
    for (option, is_idle) in
        [("--push", push.is_some() && !has_ssh), ("--serve-exec", exec && !has_ssh && !on_ranks)]
    {
        if is_idle {
            problems.push(format!("{option}: there is no --client=ssh:HOST for it"));
        }
    }
    let push = push.map(|path| if path.is_empty() { pushed::THIS.to_owned() } else { path });
    if let Some(path) = &push
        && let Err(error) = std::fs::metadata(path)
    {
        problems.push(format!("--push={path}: {}", describe_error(&error)));
    }
    if on_ranks && keys.is_some() {
        problems.push("--keys: the ranks of a launcher get separate keys for each run".to_owned());
    }
    if !problems.is_empty() {
        problems.dedup();
        return Err(problems);
    }
    let keys = match ranks {
        Some(meeting) => {
            let gathered = meeting.gather(insecure).map_err(|why| vec![format!("--mpi: {why}")])?;
            addresses = gathered.addresses;
            requests = vec![clients[0].jobs.clone(); addresses.len()];
            gathered.keys
        }
        None => {
            let keys = keys_for(&addresses, keys.as_deref(), insecure).map_err(|why| vec![why])?;
            keys.iter().for_each(|keys| connection_keys::warn_of_end(name, keys));
            keys
        }
    };
    // Before threads start, so that none of them is interrupted.
    let signals = SignalQueue::new(&[libc::SIGINT, libc::SIGTERM, libc::SIGUSR1])
        .map_err(|error| vec![format!("signals cannot be received: {error}")])?;
    check_files(&addresses, process::allow_many_files()).map_err(|why| vec![why])?;
    let collector = Collector::of(&run).map_err(|why| vec![why])?;
    let check = |_: &Path| Ok(());
    let saving = Saving::prepare(name, &run, &check).map_err(|why| vec![why])?;
    let mut console = run_files::check_against(&run, &|_| None)
        .and_then(|()| Console::open(&run, false))
        .map_err(|error| vec![error.to_string()])?;
    let asked = |format| run.output_format.contains(&format);
    // Under the name `fio`, JSON has only fio's keys.
    let is_in_json = (asked(OutputFormat::Json) || asked(OutputFormat::JsonPlus)) && !name.is_strict();
    let wants_series = saving.is_some()
        || run.is_watched()
        || is_in_json
        || [OutputFormat::Html, OutputFormat::Summary, OutputFormat::Markdown].into_iter().any(asked);
    let settings = Settings {
        timeout: Duration::from_millis(timeout_ms),
        abort_when_lost: when_lost == WhenLost::Abort,
        push: push.map(|path| Path::new(&path).into()),
        exec,
        program: name.own_version(),
    };
    let (wants_report, has_begun) = (Cell::new(false), Cell::new(false));
    let trigger = Trigger {
        file: run.trigger_file.clone(),
        after: run.trigger_timeout.map(Duration::from_millis),
        command: run.trigger.clone(),
    };
    let mut user = UserRequests {
        signals,
        requests: Requests::none(),
        asked: false,
        wants_report: &wants_report,
        launcher,
        watch: Watch::new(trigger, Vec::new()),
        has_begun: &has_begun,
        since: Instant::now(),
        watches: false,
        has_fired: false,
        name,
    };
    let coordinator = match Coordinator::reach(&addresses, keys, settings, &mut || user.next()) {
        Ok(coordinator) => coordinator,
        Err(NotReached::Failed(failed)) => {
            let said = |(index, why): (usize, String)| match &addresses[index] {
                rank @ Address::Rank { .. } => format!("--mpi: {rank}: {why}"),
                address => match &named_in[index] {
                    None => format!("--client={address}: {why}"),
                    Some(place) => format!("{place}: {address}: {why}"),
                },
            };
            return Err(failed.into_iter().map(said).collect());
        }
        Err(NotReached::Stopped) => {
            complain(name, &"interrupted before all hosts were reached; nothing was begun");
            return Ok(exit_status::of(name, true, false, 0));
        }
    };
    let machines: Vec<String> = coordinator.machines().map(|hello| hello.machine.clone()).collect();
    let labels = labels(name, &machines, &addresses);
    let page = HostsPage::start(name, &run, &labels).map_err(|why| vec![why])?;
    let sample_ms = page.as_ref().map_or(0, |_| page::interval(labels.len()).as_millis() as u64);
    let requests_of_all = (&wants_report, &has_begun);
    let mut session = Session::new(name, &run, &mut console, labels, &addresses, requests_of_all);
    session.page = page;
    let places = places(&requests);
    let kept_ms = (requests.len() as u64 * KEPT_MS_OF_EACH).clamp(KEPT_MS[0], KEPT_MS[1]);
    let requests = requests.into_iter().zip(places).map(|(jobs, (host, hosts))| Request {
        host,
        hosts,
        as_fio: name.is_strict(),
        snapshot_ms: if session.is_live { run.eta_interval } else { 0 },
        status_ms: if run.status_interval > 0 { run.status_interval } else { kept_ms },
        sample_ms,
        series: wants_series,
        jobs,
    });
    let mut finished = coordinator.run(
        requests.collect(),
        &tags(&addresses),
        &mut |index, told| session.take(index, told),
        &mut || user.next(),
    );
    let together = finished.together();
    (session.cluster.start, session.cluster.steady) = (together.start, together.steady);
    // The queue must live on: without it, the signals would no longer be blocked.
    let UserRequests { signals: _held, requests, asked, mut watch, has_fired, .. } = user;
    if let Ok(held) = HeldSignals::new() {
        held.give_up_when_asked(requests, console::taken, INTERRUPTED.into(), move || {
            complain(name, &"given up: files that are not written or received yet are lost");
        });
    }
    if has_fired {
        session.tell_line("trigger: the run ends here\n");
    }
    session.cluster.end = Some(session.end_of_run(asked, has_fired));
    let is_written = session.end();
    // A report that could not be written is stored all the same; jobs that did not run have no report.
    let saving = saving.filter(|_| !session.refused);
    let is_kept = saving.is_none_or(|saving| saving.keep(&session.cluster.together()));
    let collector = collector.filter(|_| !session.refused);
    let pushed = collector.map_or(Ok(()), |collector| collector.push(name, &session.cluster.together()));
    if let Err(why) = &pushed {
        complain(name, why);
    }
    session.show();
    // After the report: logs may be long, and the network slow.
    finished.gather(&mut |index, told| session.take(index, told));
    if has_fired {
        if run.trigger_remote.is_some() {
            finished.trigger(&mut |index, told| session.take(index, told));
        }
        // The command may cut the power.
        let ended = watch.start_command().map(|()| watch.finish_command());
        if let Err(problem) | Ok(Some(problem)) = ended {
            complain(name, &problem);
        }
    }
    finished.end();
    if let Err(error) = is_written {
        return Err(vec![error]);
    }
    match exit_status::of(name, asked, session.failed, session.failures) {
        0 if !is_kept || pushed.is_err() => Ok(1),
        status => Ok(status),
    }
}

/// Checks whether this limit of open files is enough for these machines.
fn check_files(addresses: &[Address], limit: u64) -> Result<(), String> {
    /// Other open files of this process, and those for returned files.
    const OTHERS: u64 = 48;
    let has_pipe = |address: &&Address| matches!(address, Address::Ssh(_) | Address::Rank { .. });
    // One descriptor per machine; three more if ssh or a launcher carries the connection.
    let carried = addresses.iter().filter(has_pipe).count() as u64;
    let needed = addresses.len() as u64 + 3 * carried + OTHERS;
    if needed <= limit {
        return Ok(());
    }
    let hosts = addresses.len();
    Err(format!(
        "--client: {hosts} hosts need {needed} open files, and this process may have {limit}; raise the limit (ulimit -Hn, LimitNOFILE= \
         in a unit of systemd)"
    ))
}

/// For each machine, its index among those with the same jobs, and their number.
fn places(jobs: &[SentJobs]) -> Vec<(u64, u64)> {
    // There are few different jobs, even for many machines.
    let mut kinds: Vec<(&SentJobs, u64)> = Vec::new();
    let mut numbered = Vec::new();
    for one in jobs {
        let known = kinds.iter().position(|(known, _)| *known == one);
        let kind = known.unwrap_or_else(|| {
            kinds.push((one, 0));
            kinds.len() - 1
        });
        numbered.push((kinds[kind].1, kind));
        kinds[kind].1 += 1;
    }
    numbered.into_iter().map(|(number, kind)| (number, kinds[kind].1)).collect()
}

/// The keys for these machines; `None` = no keys are needed, or `--insecure` was given.
fn keys_for(addresses: &[Address], file: Option<&Path>, insecure: bool) -> Result<Option<Keys>, String> {
    // Unix sockets and ssh need no keys.
    let Some(first) = addresses.iter().find(|address| !address.is_protected()) else { return Ok(None) };
    let file = connection_keys::keys(Role::Coordinator, file, insecure);
    let file = file.map_err(|why| format!("--client={first}: {why}"))?;
    file.map(|file| Keys::read(&file, Role::Coordinator)).transpose()
}

/// The machines that `--client` names: one, or those in a list, each with its place in the list.
fn hosts(text: &str) -> Result<Vec<(Option<String>, String)>, String> {
    if !Path::new(text).is_file() {
        return Ok(vec![(None, text.to_owned())]);
    }
    let list = std::fs::read_to_string(text).map_err(|error| format!("--client={text}: {error}"))?;
    let list = address::list(&list).map(|(line, host)| (Some(format!("{text}:{line}")), host.to_owned()));
    let list: Vec<_> = list.collect();
    if list.is_empty() { Err(format!("--client={text}: the list has no hosts in it")) } else { Ok(list) }
}

/// The names of machines, with the address added if several have the same name.
fn labels(name: Name, machines: &[String], addresses: &[Address]) -> Vec<String> {
    let is_alone = |machine: &String| machines.iter().filter(|other| *other == machine).count() == 1;
    let label = |(machine, address): (&String, &Address)| match is_alone(machine) || name.is_strict() {
        true => machine.clone(),
        false => format!("{machine} {address}"),
    };
    machines.iter().zip(addresses).map(label).collect()
}

/// The names of machines in the names of returned files. As with fio, a name is the value of `--client` without the
/// port, and `sock` is the only machine on a socket.
fn tags(addresses: &[Address]) -> Vec<String> {
    let is_socket = |address: &&Address| matches!(address, Address::Socket(_));
    let sockets = addresses.iter().filter(is_socket).count();
    let short = |address: &Address| match address {
        Address::Socket(_) if sockets == 1 => "sock".to_owned(),
        address => in_file_name(&address.host()),
    };
    let shorts: Vec<String> = addresses.iter().map(short).collect();
    // This machine's own states have this name.
    let is_own = |tag: &String| tag == "local";
    let is_only = |tag: &String| !is_own(tag) && shorts.iter().filter(|other| *other == tag).count() == 1;
    let with_port = |(short, address): (&String, &Address)| match address.port() {
        0 => format!("{short},ssh"),
        port => format!("{short},{port}"),
    };
    let long: Vec<String> = shorts.iter().zip(addresses).map(with_port).collect();
    let tags = long.iter().enumerate().map(|(index, long_tag)| {
        match long.iter().filter(|other| *other == long_tag).count() {
            _ if is_only(&shorts[index]) => shorts[index].clone(),
            1 => long_tag.clone(),
            _ => format!("{long_tag},{index}"),
        }
    });
    tags.collect()
}

/// The most bytes of a host's name in the names of files.
const MOST_OF_A_NAME: usize = 64;

/// The same without characters that change the directory, or start an option.
fn in_file_name(host: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || ".:_-@%".contains(c) { c } else { '_' };
    let name: String = host.chars().map(kept).collect();
    let name = name.trim_start_matches(['_', '-', '.']);
    let length = name.char_indices().map(|(at, _)| at).find(|at| name.len() - at <= MOST_OF_A_NAME);
    match &name[length.unwrap_or(name.len())..] {
        "" => "host".to_owned(),
        // The states of this machine's own jobs begin like this.
        name if name.starts_with("local-") => format!("host-{name}"),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_with_the_same_jobs_are_numbered() {
        let jobs = |name: &str| SentJobs { sections: vec![name.to_owned()], ..SentJobs::default() };
        let all = ["a", "b", "a", "a"].map(jobs);
        assert_eq!(places(&all), [(0, 3), (0, 1), (1, 3), (2, 3)]);
    }

    #[test]
    fn machines_in_file_names() {
        let tags = |texts: &[&str]| {
            let addresses: Vec<_> = texts.iter().map(|text| Address::parse(text).unwrap()).collect();
            tags(&addresses)
        };
        assert_eq!(tags(&["one", "two,1", "ssh:me@three", "sock:/tmp/s"]), ["one", "two", "three", "sock"]);
        assert_eq!(tags(&["sock:/tmp/a", "sock:../b c"]), ["tmp_a", "b_c"]);
        assert_eq!(tags(&["one,1", "one,2", "ip6:::1"]), ["one,1", "one,2", "::1"]);
        assert_eq!(tags(&["ssh:one", "ssh:you@one"]), ["one,ssh,0", "one,ssh,1"]);
        let long = tags(&[&format!("sock:/{}", "é".repeat(200)), "sock:/"]);
        assert_eq!(long, ["é".repeat(32), "host".to_owned()]);
        // This machine's own verify states are `local-JOB-0-verify.state`.
        assert_eq!(tags(&["local", "ssh:local,5"]), ["local,8765", "local,5"]);
        assert_eq!(tags(&["ssh:local", "local-1"]), ["local,ssh", "host-local-1"]);
    }
}
