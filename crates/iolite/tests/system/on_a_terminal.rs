//! What people see on a terminal: the summary, the status line, colours; and that pipes, files and `fio` do not.

use crate::common::tmux::Tmux;
use crate::common::{Program, scratch, trace, words};
use crate::remote::{Agent, job};
use iolite_testing::{or_skip, skip};
use std::fs;
use std::path::Path;

const MIXED: &str = "--name=mixed --filename=f --size=1m --rw=randrw --bs=4k --number_ios=200";

/// Runs the program in a terminal of 80 columns; returns its exit status and the screen.
fn run(dir: &Path, environment: &str, line: &str) -> Result<(i32, String), String> {
    let program = Program::under_test().path;
    let command = format!("env LC_ALL=C.UTF-8 {environment} {} {line}", program.display());
    Ok(Tmux::start(dir, (80, 50), &command)?.end())
}

#[test]
fn a_terminal_gets_a_summary() {
    let dir = scratch();
    let (status, screen) = or_skip!(run(dir.path(), "", MIXED));
    assert_eq!(status, 0, "{screen}");
    let mut lines = screen.lines().skip_while(|line| !line.contains("bandwidth"));
    let heads: Vec<&str> = lines.next().expect("a line of titles").split_whitespace().collect();
    assert_eq!(heads, ["IOPS", "bandwidth", "p50", "p99", "p99.9", "max", "errors"], "{screen}");
    assert_eq!(lines.next(), Some("mixed randrw bs=4k size=1m"), "{screen}");
    for begin in ["  read ", "  write ", "    latency ", "    CPU "] {
        assert!(screen.lines().any(|line| line.starts_with(begin)), "{begin}: {screen}");
    }
    assert!(screen.contains(" µs ") && !screen.contains("Run status group"), "{screen}");
    let latencies = screen.lines().filter(|line| line.starts_with("    latency ")).count();
    assert_eq!(latencies, 2, "{screen}");
}

#[test]
fn only_a_terminal_gets_it() {
    let dir = scratch();
    let path = dir.path();
    let program = Program::under_test();
    let normal = |text: &str| text.contains("Run status group 0") && !text.contains("p99.9");
    assert!(normal(&program.line(path, MIXED).ok().stdout), "a pipe");
    let fio = format!("{} {MIXED}", Program::called_fio(path).path.display());
    let terminal = or_skip!(Tmux::start(path, (120, 60), &fio));
    assert!(normal(&terminal.end().1), "fio");
    let (status, screen) = or_skip!(run(path, "", &format!("{MIXED} --output=report")));
    assert!(status == 0 && !screen.contains("IOPS"), "{screen}");
    assert!(normal(&fs::read_to_string(path.join("report")).unwrap()), "a file");
    for (environment, options) in
        [("IOLITE_FORMAT=normal", ""), ("IOLITE_FORMAT=terse", "--output-format=normal")]
    {
        let (status, screen) = or_skip!(run(path, environment, &format!("{MIXED} {options}")));
        assert!(status == 0 && normal(&screen), "{environment}: {screen}");
    }
    let (status, screen) = or_skip!(run(path, "IOLITE_FORMAT=json,nosuch", MIXED));
    assert!(
        status == 1 && screen.contains("IOLITE_FORMAT=json,nosuch: unknown format \"nosuch\""),
        "{screen}"
    );
    // Both can be requested anywhere, without colours.
    let both = program.line(path, &format!("{MIXED} --output-format=normal,summary")).ok();
    assert!(both.stdout.contains("Run status group 0") && both.stdout.contains("p99.9"), "{both}");
    assert!(!both.stdout.contains('\x1b'), "{both:?}");
    let fio = Program::called_fio(path);
    for format in ["summary", "md"] {
        let refused = fio.line(path, &format!("{MIXED} --output-format={format}")).refused();
        assert!(refused.stderr.contains(&format!("unknown format \"{format}\"")), "{refused}");
    }
    fio.line(path, &format!("{MIXED} --color=never")).refused();
}

#[test]
pub fn colours_can_be_switched() {
    let dir = scratch();
    let program = Program::under_test();
    let colored = |environment: &str, options: &str| {
        let command = format!("env {environment} {} {MIXED} {options}", program.path.display());
        let terminal = Tmux::start(dir.path(), (80, 50), &command)?;
        terminal.end();
        Ok::<bool, String>(terminal.screen(true).contains('\x1b'))
    };
    assert!(or_skip!(colored("", "")));
    assert!(!or_skip!(colored("NO_COLOR=1", "")));
    assert!(!or_skip!(colored("TERM=dumb", "")));
    assert!(!or_skip!(colored("", "--color=never")));
    assert!(or_skip!(colored("NO_COLOR=1", "--color=always")));
    let piped = program.line(dir.path(), &format!("{MIXED} --output-format=summary --color=always")).ok();
    assert!(piped.stdout.contains("\x1b[1mmixed\x1b[0m"), "{piped:?}");
    let filed = format!("{MIXED} --output-format=summary --output=r.txt");
    or_skip!(run(dir.path(), "", &filed));
    assert!(!fs::read_to_string(dir.path().join("r.txt")).unwrap().contains('\x1b'), "a file");
    let wrong = program.line(dir.path(), &format!("{MIXED} --color=yes")).refused();
    assert!(wrong.stderr.contains("--color=yes: expected always, never or auto"), "{wrong}");
}

/// The summary has the colours of the stream that it goes to.
#[test]
fn colours_follow_the_stream() {
    let dir = scratch();
    let line = "--name=a --filename=- --rw=write --size=4k --zero_buffers --output-format=summary";
    let command =
        format!("env LC_ALL=C.UTF-8 {} {line} 2>told >/dev/tty", Program::under_test().path.display());
    let (status, screen) = or_skip!(Tmux::start(dir.path(), (80, 50), &command)).end();
    let told = fs::read_to_string(dir.path().join("told")).unwrap();
    assert!(status == 0 && told.contains("p99.9") && !told.contains('\x1b'), "{told:?} {screen}");
}

/// Interim reports say when they were made.
#[test]
fn interim_summaries_have_a_time() {
    let dir = scratch();
    let line =
        "--ioengine=null --size=1m --time_based --runtime=2 --name=a --rate_iops=100 --status-interval=250ms";
    let run = Program::under_test().line(dir.path(), &format!("{line} --output-format=summary")).ok();
    let is_time = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() == 5 && words[3].matches(':').count() == 2 && words[4].parse::<u32>().is_ok()
    };
    let times = run.stdout.lines().filter(is_time).count();
    let tables = run.stdout.matches("bandwidth").count();
    assert!(times > 0 && tables == times + 1, "the last one is at hand: {run}");
}

/// While files are laid out, the status line says so; that of fio does not.
#[test]
fn the_layout_is_in_the_status_line() {
    let dir = scratch();
    for (format, says) in [("summary", true), ("normal", false)] {
        let line = format!(
            "--name=a --filename={format} --size=4m --rw=read --bs=1m --eta=always --eta-interval=250ms --output-format={format}"
        );
        let slowed = trace::slowed(&Program::under_test(), dir.path(), "pwrite64", 400, &words(&line));
        let Some(run) = slowed else { skip!("strace is not installed") };
        let run = run.ok();
        assert_eq!(run.stdout.contains("laying out files, "), says, "{run}");
    }
}

#[test]
fn ascii_where_the_locale_is_not_utf8() {
    let dir = scratch();
    let (status, screen) = or_skip!(run(dir.path(), "LC_ALL=C", MIXED));
    assert!(status == 0 && screen.is_ascii() && screen.contains(" us "), "{screen}");
}

/// The status line is one line at any width, and nothing of it stays.
#[test]
fn the_status_line_survives_resizing() {
    let dir = scratch();
    let program = Program::under_test().path;
    for format in ["summary", "normal"] {
        let command = format!(
            "{} --output-format={format} --eta-interval=250ms --ioengine=null --size=1g --rate_iops=100 --time_based \
             --runtime=1h --name=a --rw=read --name=b --rw=randwrite --name=c --rw=randrw",
            program.display()
        );
        let terminal = or_skip!(Tmux::start(dir.path(), (200, 30), &command));
        let is_status = |line: &&str| line.starts_with("running ") || line.starts_with("Jobs: 3");
        let count = |screen: &str| screen.lines().filter(is_status).count();
        terminal.wait_until("it runs", |screen| count(screen) == 1);
        for columns in [40, 79, 25, 120] {
            terminal.resize(columns);
            terminal.wait_until("one line that fits", |screen| {
                let last = screen.lines().last().unwrap_or_default();
                count(screen) == 1 && is_status(&last) && last.chars().count() < columns.into()
            });
        }
        terminal.interrupt();
        let (status, screen) = terminal.end();
        assert_eq!(status, 128, "{screen}");
        assert_eq!(count(&screen), 0, "nothing of it stays: {screen}");
    }
}

/// Lines of fio's report come with fio's report only.
#[test]
fn summaries_of_machines_begin_with_the_table() {
    let dir = scratch();
    let agent = Agent::on_socket(dir.path(), "there");
    job(dir.path(), "[a]\nioengine=null\nsize=64k\n");
    let of = |format: &str| {
        let words = [&agent.client(), "job.fio", &format!("--output-format={format}")];
        Program::own().run(dir.path(), words).ok().stdout
    };
    let summary = of("summary");
    assert!(summary.contains("p99.9") && !summary.contains("Starting"), "{summary}");
    assert!(of("normal").contains("Starting 1 process"));
    agent.end();
}

#[test]
fn markdown_can_be_pasted() {
    let dir = scratch();
    let run = Program::under_test().line(dir.path(), &format!("{MIXED} --output-format=md")).ok();
    let table: Vec<&str> = run.stdout.lines().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(table.len(), 4, "{run}");
    let columns = table[0].matches('|').count();
    assert!(table.iter().all(|line| line.matches('|').count() == columns), "{run}");
    assert!(run.stdout.contains("```ini\n[mixed]\nfilename=f\nsize=1m\nrw=randrw\nbs=4k\n"), "{run}");
    assert!(!run.stdout.contains("Starting"), "only Markdown: {run}");
}

#[test]
fn stored_results_are_shown_in_short() {
    let dir = scratch();
    let path = dir.path();
    let program = Program::under_test();
    program.line(path, &format!("{MIXED} --output-format=json+ --output=r.json")).ok();
    let told = |options: &str| program.line(path, &format!("report r.json {options}")).ok().stdout;
    assert!(told("").starts_with("<!doctype html>"), "a pipe");
    let summary = told("--output-format=summary");
    assert!(summary.contains("mixed randrw bs=4k size=1m\n  read"), "{summary}");
    let (status, screen) = or_skip!(run(path, "", "report r.json"));
    assert!(status == 0 && screen.contains("mixed randrw bs=4k size=1m"), "{screen}");
    // Colours are those of the terminal, or asked for.
    assert!(!summary.contains('\x1b'));
    assert!(told("--output-format=summary --color=always").contains("\x1b[1mmixed\x1b[0m"));
    let colored = format!("{} report r.json", program.path.display());
    let terminal = or_skip!(Tmux::start(path, (80, 50), &colored));
    terminal.end();
    assert!(terminal.screen(true).contains('\x1b'));
    assert!(told("--output-format=md").starts_with("| job | direction |"));
    let csv = told("--csv");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 3, "{csv}");
    assert!(lines.iter().all(|fields| fields.len() == lines[0].len()), "{csv}");
    let column = |name: &str| lines[0].iter().position(|field| *field == name).expect("the column is there");
    assert_eq!((lines[1][column("direction")], lines[2][column("direction")]), ("read", "write"), "{csv}");
    let ios: u64 =
        lines[1..].iter().map(|line| line[column("total_ios")].parse::<u64>().expect("a number")).sum();
    assert_eq!((ios, lines[1][column("bs")]), (200, "4k"), "{csv}");
    program.line(path, "report r.json --csv --output=r.csv").ok();
    assert_eq!(fs::read_to_string(path.join("r.csv")).unwrap(), csv);
    for (options, why) in [
        ("--csv --output-format=md", "--csv: the format is md already"),
        ("--csv --logs=x", "--logs"),
        ("--output-format=xml", "--output-format=xml"),
        ("--csv --output=r.json", "that is the result itself"),
    ] {
        let refused = program.line(path, &format!("report r.json {options}")).refused();
        assert!(refused.stderr.contains(why), "{options}: {refused}");
    }
}
