//! `--server`: an agent that runs the jobs of clients, or of the one client that has started it.

use crate::live_page::{self, certified};
use crate::messages::{complain, told};
use crate::{connection_keys, console};
use iolite_options::{Name, Serving};
use iolite_os::signals::SignalQueue;
use iolite_os::{process, service};
use iolite_remote::Address;
use iolite_remote::INSECURE;
use iolite_remote::agent::{Agent, Settings, Show};
use iolite_remote::confine;
use iolite_remote::keys::{Keys, Role, date};
use iolite_remote::message::Shown;
use iolite_remote::permissions::Permissions;
use iolite_web::{Hello, LastRun, MetricsPlace};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// The protection of a server over TCP without keys.
const UNPROTECTED: &str = "INSECURE: anyone who can reach the port can run jobs as this user";

/// The address that stands for the process that started the server.
const STARTER: &str = "stdio";

/// The message of a background server to its starter once it is listening.
const SERVES: &[u8] = b"serves";

/// Serves until a signal ends it, or until the client that has started it has finished.
pub fn serve(name: Name, serving: &Serving) -> ExitCode {
    console::print_error(&told(name, &serving.warnings));
    let only = match &serving.only[..] {
        [] => Ok(Vec::new()),
        only => confine::prepare(only),
    };
    let only = match only {
        Ok(only) => only,
        Err(why) => {
            complain(name, &format_args!("--serve-only: {why}"));
            return ExitCode::FAILURE;
        }
    };
    let settings = Settings {
        keys: None,
        timeout: Duration::from_millis(serving.timeout_ms),
        permissions: Permissions { exec: serving.exec, changes: !serving.readonly, only },
        names_clients: true,
        program: name.own_version(),
        log: match name {
            Name::Iolite => |text| console::print_error(&format!("iolite: server: {text}\n")),
            Name::Fio => |text| console::print_error(&format!("fio: server: {text}\n")),
        },
        show: None,
    };
    let metrics = match metrics_place(name, serving) {
        Ok(metrics) => metrics,
        Err(why) => {
            complain(name, &why);
            return ExitCode::FAILURE;
        }
    };
    // Before threads start, and before anything is created that must be removed.
    let signals = match SignalQueue::of_those_not_ignored(&[libc::SIGINT, libc::SIGTERM]) {
        Ok(signals) => signals,
        Err(error) => {
            complain(name, &format_args!("--server: signals cannot be received: {error}"));
            return ExitCode::FAILURE;
        }
    };
    if serving.address == STARTER {
        return serve_starter(name, serving, settings, signals);
    }
    match begin(name, serving, &settings.permissions) {
        Ok(Some((agent, keys))) => match metrics.map(|place| serve_metrics(name, place)).transpose() {
            Ok(show) => {
                if let Err(error) = service::is_ready() {
                    let what =
                        format_args!("--server: the service manager cannot be told that it serves: {error}");
                    complain(name, &what);
                }
                agent.serve(Settings { keys, show, ..settings }, signals)
            }
            Err(error) => {
                complain(name, &format_args!("--metrics: {error}"));
                ExitCode::FAILURE
            }
        },
        // Another process serves.
        Ok(None) => ExitCode::SUCCESS,
        Err(why) => {
            complain(name, &format_args!("--server: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// The place of the metrics of all runs, if requested.
fn metrics_place(name: Name, serving: &Serving) -> Result<Option<MetricsPlace>, String> {
    let Some(address) = serving.metrics else { return Ok(None) };
    let tls = serving.metrics_tls.as_ref();
    let certified = certified(address, tls).map_err(|why| format!("--web-tls: {why}"))?;
    let place = MetricsPlace::open(address, certified.as_ref()).map_err(|why| format!("--metrics: {why}"))?;
    console::print_error(&format!("{name}: --metrics: the metrics are at {}\n", place.address()));
    if let Some(words) = live_page::told(tls, certified.as_ref()) {
        console::print_error(&format!("{name}: --web-tls: {words}\n"));
    }
    Ok(Some(place))
}

/// Serves the metrics of the last run: it gets what runs tell.
fn serve_metrics(name: Name, place: MetricsPlace) -> io::Result<Show> {
    let program = name.own_version();
    let last = LastRun::default();
    last.serve(place, program)?;
    Ok(Show(Arc::new(move |shown| match shown {
        Shown::Begins(outline, blocks, interval_ns) => last.begin(Hello {
            outline,
            blocks,
            interval_ns,
            program: program.to_owned(),
            of_hosts: false,
            linger_ms: None,
        }),
        Shown::Event(event) => last.take(event),
    })))
}

/// Serves the client that has started this process. The client knows about success, so only errors are printed.
fn serve_starter(name: Name, serving: &Serving, settings: Settings, signals: SignalQueue) -> ExitCode {
    let served = match &serving.pid_file {
        Some(_) => {
            Err("--daemonize: a server that talks to its parent process cannot go into the background"
                .to_owned())
        }
        None => Agent::serve_starter(Settings { log: |_| {}, ..settings }, signals),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            complain(name, &format_args!("--server={STARTER}: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// Starts to listen; with `--daemonize` in another process, so that this one has no agent.
fn begin(
    name: Name,
    serving: &Serving,
    permissions: &Permissions,
) -> Result<Option<(Agent, Option<PathBuf>)>, String> {
    let address = Address::parse(&serving.address)?;
    if address.is_protected() && serving.keys.is_some() {
        let words = "--keys: has no effect with a Unix socket";
        console::print_error(&format!("{name}: warning: {words}\n"));
    }
    let keys = if address.is_protected() {
        None
    } else {
        connection_keys::keys(Role::Agent, serving.keys.as_deref(), serving.insecure)
            .map_err(|why| format!("{address}: {why}"))?
    };
    let mut protection = match (address.is_protected(), serving.insecure) {
        (true, _) => "for its user only (and root)".to_owned(),
        (false, true) => format!("{UNPROTECTED} (--insecure)"),
        (false, false) => format!("{UNPROTECTED} ({INSECURE}=1)"),
    };
    if let Some(file) = &keys {
        // Bad keys are reported now, rather than when the first client connects.
        let keys = Keys::read(file, Role::Agent)?;
        connection_keys::warn_of_end(name, &keys);
        protection = format!("protected by {} (valid until {})", file.display(), date(keys.until));
        if confine::covers(&permissions.only, file) {
            let words = "jobs can replace the keys of this server, and so choose whom it trusts: do not serve their directory";
            console::print_error(&format!("{name}: warning: --serve-only: {words}\n"));
        }
    }
    if let Some(file) = &serving.pid_file {
        check_pid_file(file)?;
    }
    let mut agent = Agent::listen(&address)?;
    // Standard error may be closed.
    let told = match name.is_strict() {
        true => format!("{name}: server listening on {}\n", agent.place()),
        false => {
            format!(
                "{name}: server {protection}, {}, listening on {}\n",
                what_is_served(permissions),
                agent.place()
            )
        }
    };
    let _ = console::print(&told);
    let Some(file) = &serving.pid_file else { return Ok(Some((agent, keys))) };
    let failed = |error: io::Error| format!("--daemonize: {error}");
    let (mut word, mut says) = io::pipe().map_err(failed)?;
    if process::detach().map_err(failed)? {
        drop(says);
        // If it does not serve, it has printed the reason.
        let mut said = Vec::new();
        return match word.read_to_end(&mut said) {
            Ok(_) if said == SERVES => Ok(None),
            _ => Err("--daemonize: the server has ended before it served".to_owned()),
        };
    }
    drop(word);
    let written = File::create(file).and_then(|mut file| writeln!(file, "{}", std::process::id()));
    written.map_err(|error| format!("--daemonize={}: {error}", file.display()))?;
    agent.owns(file);
    let silent = File::options().read(true).write(true).open("/dev/null").and_then(|nothing| {
        process::replace(&io::stdin().as_fd(), &nothing)?;
        process::replace(&io::stdout().as_fd(), &nothing)?;
        process::replace(&io::stderr().as_fd(), &nothing)
    });
    silent.map_err(failed)?;
    says.write_all(SERVES).map_err(failed)?;
    Ok(Some((agent, keys)))
}

/// The permissions of a server, for its first line.
fn what_is_served(permissions: &Permissions) -> String {
    let Permissions { exec, changes, only } = permissions;
    let does = if *changes { "reading and writing" } else { "only reading (--readonly)" };
    let names: Vec<String> = only.iter().map(|path| path.display().to_string()).collect();
    let what = match &names[..] {
        [] => "whatever its user can".to_owned(),
        names => format!("{} and nothing else", names.join(", ")),
    };
    let programs = if *exec { "running programs (--serve-exec)" } else { "running no programs" };
    format!("{does} {what}, {programs}")
}

/// As with fio, the file of a running server is not overwritten.
fn check_pid_file(file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let is_alive = |pid: &i32| *pid > 0 && Path::new("/proc").join(pid.to_string()).exists();
    match text.trim().parse().ok().filter(is_alive) {
        Some(pid) => Err(format!("--daemonize={}: the server with process {pid} is alive", file.display())),
        None => Ok(()),
    }
}
