//! What people see on a terminal: the summary, the status line, colours; and that pipes, files and `fio` do not.

use crate::common::tmux::Tmux;
use crate::common::{Program, scratch};
use iolite_testing::or_skip;
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
