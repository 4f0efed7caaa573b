//! The subcommands, compared with the programs of fio that they replace, and completion in real shells.

use crate::common::{Program, program::Running, scratch};
use std::fs;
use std::path::Path;
use std::process::Command;

fn ours() -> Program {
    Program::own()
}

/// Runs another program, if it is installed.
fn other(name: &str, dir: &Path, args: &[&str]) -> Option<String> {
    let installed = std::env::split_paths(&std::env::var_os("PATH")?).any(|dir| dir.join(name).is_file());
    installed.then(|| Running::start(Command::new(name).args(args).current_dir(dir)).wait().ok().stdout)
}

/// The number behind a word.
fn number(text: &str, word: &str) -> f64 {
    let rest = text.split(word).nth(1).unwrap_or_else(|| panic!("no {word:?} in {text}"));
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_else(|_| panic!("no number behind {word:?} in {text}"))
}

#[test]
fn dedupe_finds_the_percentages_of_the_job() {
    let dir = scratch();
    ours()
        .line(
            dir.path(),
            "--name=job --filename=f --rw=write --bs=4k --size=16m --dedupe_percentage=30 \
             --buffer_compress_percentage=60",
        )
        .ok();
    let found = ours().line(dir.path(), "dedupe -C 1 -t 2 f").ok().stdout;
    for (setting, asked) in [("dedupe_percentage=", 30.0), ("buffer_compress_percentage=", 60.0)] {
        assert!((number(&found, setting) - asked).abs() <= 2.0, "{found}");
    }
    let Some(theirs) = other("fio-dedupe", dir.path(), &["-B", "0", "-p", "0", "-t", "2", "f"]) else {
        iolite_testing::skip!("fio-dedupe is not installed");
    };
    // The output is the same line for line, except for the program's additional lines on compression.
    let ours: Vec<&str> = found.lines().take(theirs.lines().count()).collect();
    let theirs: Vec<&str> =
        theirs.trim_start().lines().map(|line| line.rsplit('\r').next().unwrap_or(line)).collect();
    assert_eq!(ours, theirs);
}

#[test]
fn dedupe_reports_invalid_arguments() {
    let dir = scratch();
    fs::write(dir.path().join("short"), b"x").unwrap();
    for (line, reason) in [
        ("dedupe", "one file"),
        ("dedupe nosuch", "nosuch: No such file or directory"),
        ("dedupe .", "neither a regular file nor a block device"),
        ("dedupe short", "smaller than one block"),
        ("dedupe -x short", "unknown option -x"),
        ("dedupe -b 4kk short", "4kk"),
    ] {
        ours().line(dir.path(), line).refused().says(reason);
    }
    ours().line(dir.path(), "dedupe --help").ok().says("Usage: iolite dedupe [options] <file>");
}

/// Unsuitable files are refused at once, and a large sparse file takes no time.
#[test]
fn unsuitable_files_are_refused() {
    let dir = scratch();
    let made = Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let _listener = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    fs::File::create(dir.path().join("sparse")).and_then(|file| file.set_len(1 << 40)).unwrap();
    fs::write(dir.path().join("empty"), b"").unwrap();
    let neither = "neither a regular file nor a block device";
    for (line, reason) in [
        ("dedupe pipe", neither),
        ("dedupe socket", neither),
        ("dedupe /dev/zero", neither),
        ("dedupe /dev/null", neither),
        ("dedupe empty", "smaller than one block"),
        ("dedupe -b 1g -t 1000 sparse", "MiB for their buffers"),
        ("verify-state pipe", "pipe: not a regular file"),
        ("verify-state socket", "socket: not a regular file"),
        ("verify-state /dev/zero", "not a regular file"),
        ("verify-state .", "Is a directory"),
        ("verify-state empty", "not a verify state"),
        ("verify-state sparse", "not a verify state"),
        ("log2csv .", ".: Is a directory"),
        ("log2csv /dev/zero", "/dev/zero: it is not a text"),
        ("log2csv sparse", "sparse: it is not a text"),
        ("trace .", "Is a directory"),
        ("trace /dev/zero", "this is not a trace"),
        ("trace /dev/null", "it is empty"),
        ("trace empty", "it is empty"),
        ("trace sparse", "this is not a trace"),
        ("zipf -g 1000000000 -b 512", "there is no memory to count"),
    ] {
        ours().line(dir.path(), line).refused().says(reason);
    }
    ours()
        .line(dir.path(), "dedupe sparse")
        .ok()
        .says("Extents=268435456, Unique extents=1 Duplicated extents=1");
    // A log without a window is valid.
    for empty in ["empty", "/dev/null"] {
        ours().line(dir.path(), &format!("log2csv {empty}")).ok().says("time_ms,direction,count");
    }
}

/// The other end of a pipe may be opened late; a message says that the program waits.
#[test]
fn a_pipe_is_waited_for() {
    for (line, content, told) in [
        ("log2csv pipe\x1b", "", "time_ms,direction,count"),
        ("trace pipe\x1b", "fio version 3 iolog\n0 f add\n0 f open\n0 f write 0 512\n", "1 I/O"),
    ] {
        let dir = scratch();
        let pipe = dir.path().join("pipe\x1b");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut running = ours().start(dir.path(), line.split(' '));
        let notice = "iolite: pipe\\x1b: waiting up to 60 s for a writer of this pipe";
        running.wait_until("it says that it waits", |running| running.output().contains(notice));
        fs::write(&pipe, content).unwrap();
        running.wait().ok().says(told);
    }
}

/// Logs are opened one after the other, so pipes may be filled in turn, and there may be more logs than open files
/// permitted.
#[test]
fn logs_are_read_in_turn() {
    let dir = scratch();
    let log = format!("1000, 0, 4096, 0, 5, 7{}\n", ", 0".repeat(26));
    let pipes = ["a", "b"].map(|name| dir.path().join(name));
    assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
    let running = ours().start(dir.path(), ["log2csv", "a", "b"]);
    // More than the capacity of a pipe.
    let lines = log.repeat(1000);
    std::thread::spawn(move || pipes.iter().for_each(|pipe| fs::write(pipe, &lines).unwrap()));
    running.wait().ok().says("1000,read,24,").says("2000,read,23976,");
    fs::write(dir.path().join("log"), &log).unwrap();
    let many = "log ".repeat(100);
    let script = format!("ulimit -Sn 32; exec {} log2csv {many}", ours().path.display());
    let table = other("sh", dir.path(), &["-c", &script]).unwrap();
    assert!(table.contains("1000,read,1200,"), "{table}");
}

#[test]
fn zipf_shows_the_shares_of_the_peer() {
    let dir = scratch();
    let settings = ["-t zipf -i 1.1", "-t zipf -i 0.8", "-t pareto -i 0.2", "-t normal -i 20"];
    for setting in settings {
        let line = format!("{setting} -g 1 -b 16384 -o 5");
        let table = ours().line(dir.path(), &format!("zipf {line}")).ok().stdout;
        let words: Vec<&str> = line.split(' ').collect();
        let Some(theirs) = other("fio-genzipf", dir.path(), &words) else {
            iolite_testing::skip!("fio-genzipf is not installed");
        };
        let shares = |text: &str| -> Vec<f64> {
            let rows = text.lines().filter(|line| line.starts_with("Top") || line.starts_with("|->"));
            rows.map(|row| row.split('\t').nth(1).unwrap().trim().trim_end_matches('%').parse().unwrap())
                .collect()
        };
        assert_eq!(shares(&table).len(), 5);
        for (ours, theirs) in shares(&table).iter().zip(shares(&theirs)) {
            assert!((ours - theirs).abs() < 3.0, "{setting}:\n{table}\n{theirs}");
        }
        // The text around the numbers is the same.
        let text = |text: &str| text.replace(|c: char| c.is_ascii_digit() || c == ' ', "");
        assert_eq!(text(table.lines().next().unwrap()), text(theirs.lines().next().unwrap()));
        assert_eq!(table.lines().nth(2), theirs.lines().nth(2));
        assert_eq!(table.lines().last(), theirs.lines().last(), "as many accesses as blocks");
    }
}

#[test]
fn a_job_file_of_the_name_comes_first() {
    let dir = scratch();
    fs::write(dir.path().join("zipf"), "[job]\nioengine=null\nsize=1m\n").unwrap();
    let report = ours().line(dir.path(), "zipf").ok().stdout;
    assert!(report.starts_with("job: (g=0)"), "{report}");
    // Other files with that name do not matter, and may be arguments of the subcommand.
    for (name, words) in
        [("zipf", "zipf -g 1 -o 2"), ("dedupe", "dedupe -p 0 dedupe"), ("trace", "trace trace")]
    {
        let content = "fio version 3 iolog\n0 f add\n0 f open\n0 f write 0 512\n".repeat(200);
        fs::write(dir.path().join(name), content).unwrap();
        ours().line(dir.path(), words).ok();
    }
    fs::remove_file(dir.path().join("dedupe")).unwrap();
    // In any other position, the word is a missing job file.
    ours().line(dir.path(), "--readonly dedupe").refused();
}

/// The completions that bash offers for a line, with the cursor at its end.
fn bash(dir: &Path, line: &str) -> Vec<String> {
    let script = r#"
        source ./completion.bash
        COMP_LINE=$1 COMP_POINT=${#1}
        COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
        read -r -a COMP_WORDS <<<"$1"
        [[ $1 == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _iolite
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut command = Command::new("bash");
    command.args(["--norc", "--noprofile", "-c", script, "bash", line]).current_dir(dir);
    let finished = Running::start(&mut command).wait().ok();
    assert_eq!(finished.stderr, "", "{line}");
    finished.stdout.lines().filter(|line| !line.is_empty()).map(String::from).collect()
}

fn script(dir: &Path, shell: &str) {
    let text = ours().run(dir, ["completion", shell]).ok().stdout;
    fs::write(dir.join(format!("completion.{shell}")), text).unwrap();
}

#[test]
fn bash_completes() {
    let dir = scratch();
    script(dir.path(), "bash");
    fs::write(dir.path().join("mine.fio"), "").unwrap();
    let offered = |line: &str| bash(dir.path(), line);
    assert_eq!(offered("iolite --io_si"), ["--io_size="]);
    assert_eq!(offered("iolite --name=x --ioengine=io_u"), ["io_uring", "io_uring_cmd"]);
    assert!(offered("iolite --rw=rand").contains(&"randread".to_owned()));
    assert_eq!(offered("iolite -direct="), ["0", "1"]);
    assert_eq!(offered("iolite --output-format=normal,js"), ["normal,json", "normal,json+"]);
    assert_eq!(offered("iolite --cmdhelp=dedupe_g"), ["dedupe_global"]);
    assert_eq!(offered("iolite --filename=mi"), ["mine.fio"]);
    assert_eq!(offered("iolite mi"), ["mine.fio"]);
    assert_eq!(offered("iolite --group_repo"), ["--group_reporting"]);
    assert_eq!(offered("iolite zi"), ["zipf"]);
    assert_eq!(offered("iolite completion "), ["bash", "zsh", "fish"]);
    assert_eq!(offered("iolite keys "), ["new", "show", "renew", "revoke"]);
    assert_eq!(offered("iolite keys new mi"), ["mine.fio"]);
    assert_eq!(offered("iolite sweep --preset=st"), ["streaming", "storage"]);
    assert_eq!(offered("iolite sweep --preset st"), ["streaming", "storage"]);
    assert_eq!(offered("iolite sweep --ioengine=psync,io_u"), ["psync,io_uring", "psync,io_uring_cmd"]);
    assert_eq!(offered("iolite sweep mine.fio --io_si"), ["--io_size="]);
    assert_eq!(offered("iolite sweep --one"), ["--one-at-a-time"]);
    assert_eq!(offered("iolite sweep --rw randw"), ["randwrite"]);
    assert_eq!(offered("iolite sweep mi"), ["mine.fio"]);
    assert!(offered("iolite sweep --showc").is_empty());
    assert_eq!(offered("iolite dedupe --co"), ["--collisions", "--compress"]);
    assert!(offered("iolite dedupe -").contains(&"-B".to_owned()));
    assert_eq!(offered("iolite keys -"), ["--days", "--help"]);
    assert_eq!(offered("iolite dedupe mi"), ["mine.fio"]);
    // The value of an option may be the next word, unless the option takes none.
    assert_eq!(offered("iolite --rw randw"), ["randwrite"]);
    assert!(offered("iolite --name x --ioengine ").contains(&"io_uring".to_owned()));
    assert_eq!(offered("iolite --filename mi"), ["mine.fio"]);
    assert_eq!(offered("iolite --thread mi"), ["mine.fio"]);
    assert_eq!(offered("iolite zipf -t "), ["zipf", "pareto", "normal"]);
    fs::write(dir.path().join("mine.fio"), "[global]\n[one]\n[two]\n").unwrap();
    assert_eq!(offered("iolite mine.fio --section=o"), ["one"]);
    // The options of a profile are offered if the line names the profile.
    assert_eq!(offered("iolite --profile=tiobench --numr"), ["--numruns="]);
    assert!(offered("iolite --numr").is_empty());
    // The options of an engine are offered if the line names the engine.
    assert!(offered("iolite --ioengine=io_uring --fixedb").contains(&"--fixedbufs".to_owned()));
    assert!(offered("iolite --ioengine=psync --fixedb").is_empty());
}

#[test]
fn fish_completes() {
    let dir = scratch();
    script(dir.path(), "fish");
    let offered = |line: &str| {
        let command = format!("source completion.fish; complete -C '{line}'");
        other("fish", dir.path(), &["--no-config", "-c", &command])
    };
    let Some(engines) = offered("iolite --ioengine=io_u") else {
        iolite_testing::skip!("fish is not installed");
    };
    assert_eq!(engines.split_whitespace().next(), Some("--ioengine=io_uring"), "{engines}");
    assert!(offered("iolite --rw=rand").unwrap().contains("--rw=randread"));
    assert!(offered("iolite --dedupe_gl").unwrap().contains("--dedupe_global"));
    assert!(offered("iolite --ioengine=io_uring --fixedb").unwrap().contains("--fixedbufs"));
    assert!(!offered("iolite --ioengine=psync --fixedb").unwrap().contains("--fixedbufs"));
    assert!(offered("iolite zi").unwrap().contains("zipf"));
    assert_eq!(offered("iolite completion z").unwrap().trim(), "zsh");
    assert_eq!(offered("iolite keys rev").unwrap().trim(), "revoke");
    assert!(offered("iolite sweep --preset=sto").unwrap().starts_with("--preset=storage\t"));
    assert!(offered("iolite sweep --ioengine=io_u").unwrap().starts_with("--ioengine=io_uring"));
    assert_eq!(offered("iolite sweep --showc").unwrap(), "");
    let choices = offered("iolite zipf -t ").unwrap();
    let choices: Vec<&str> = choices.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(choices, ["normal", "pareto", "zipf"]);
    assert!(offered("iolite dedupe --he").unwrap().starts_with("--help"));
    assert!(offered("iolite --rw randw").unwrap().starts_with("randwrite"));
    fs::write(dir.path().join("mine.fio"), "[global]\n[one]\n[two]\n").unwrap();
    assert!(offered("iolite mine.fio --section=o").unwrap().starts_with("--section=one\t"));
    assert!(offered("iolite --profile=tiobench --numr").unwrap().starts_with("--numruns"));
    assert_eq!(offered("iolite --numr").unwrap(), "");
}

/// zsh's functions that offer completions are replaced by functions that print them.
#[test]
fn zsh_completes() {
    let dir = scratch();
    script(dir.path(), "zsh");
    let offered = |line: &str| {
        let command = format!(
            r#"compdef() {{ : }}
            compset() {{ : }}
            compadd() {{ print -l -- "${{@:#--}}" }}
            _files() {{ print FILES }}
            _describe() {{ local a; for a in "$@"; do [[ -v $a ]] && print -l -- "${{(P@)a}}"; done; return 0 }}
            source ./completion.zsh
            words=({line}) CURRENT=$#words
            _iolite"#
        );
        other("zsh", dir.path(), &["-f", "-c", &command])
    };
    let Some(engines) = offered("iolite --ioengine=io_u") else {
        iolite_testing::skip!("zsh is not installed");
    };
    assert!(engines.lines().any(|line| line == "io_uring"), "{engines}");
    assert_eq!(offered("iolite --direct=").unwrap(), "0\n1\n");
    assert_eq!(offered("iolite --filename=x").unwrap(), "FILES\n");
    let options = offered("iolite --ioengine=io_uring --").unwrap();
    for option in ["--dedupe_global:", "--group_reporting:", "--fixedbufs:", "--output-format:"] {
        assert!(options.lines().any(|line| line.starts_with(option)), "{option} is missing in {options}");
    }
    assert!(!offered("iolite --").unwrap().contains("--fixedbufs:"));
    assert!(offered("iolite z").unwrap().contains("zipf:"));
    assert_eq!(offered("iolite completion ''").unwrap(), "bash\nzsh\nfish\n");
    assert_eq!(offered("iolite keys ''").unwrap(), "new\nshow\nrenew\nrevoke\n");
    assert_eq!(offered("iolite keys new ''").unwrap(), "FILES\n");
    assert!(offered("iolite sweep --preset=").unwrap().starts_with("oltp\nlog\n"));
    assert!(offered("iolite sweep --ioengine=").unwrap().lines().any(|line| line == "io_uring"));
    let options = offered("iolite sweep --").unwrap();
    for (option, is_offered) in [("--io_size:", true), ("--one-at-a-time:", true), ("--showcmd:", false)] {
        assert_eq!(options.lines().any(|line| line.starts_with(option)), is_offered, "{option}");
    }
    assert_eq!(offered("iolite sweep ''").unwrap(), "FILES\n");
    assert_eq!(offered("iolite zipf -t ''").unwrap(), "zipf\npareto\nnormal\n");
    assert!(offered("iolite dedupe -").unwrap().lines().any(|line| line == "--help:Help"));
    assert!(offered("iolite --rw ''").unwrap().lines().any(|line| line == "randwrite"));
    assert_eq!(offered("iolite --thread ''").unwrap(), "FILES\n");
    fs::write(dir.path().join("mine.fio"), "[global]\n[one]\n[two]\n").unwrap();
    assert_eq!(offered("iolite mine.fio --section=o").unwrap(), "one\ntwo\n");
    assert!(offered("iolite --profile=tiobench --").unwrap().contains("--numruns:"));
    assert!(!offered("iolite --").unwrap().contains("--numruns:"));
}

#[test]
fn completion_is_for_three_shells() {
    let dir = scratch();
    ours().line(dir.path(), "completion").refused().says("bash, zsh or fish");
    ours().line(dir.path(), "completion tcsh").refused().says("tcsh");
}

/// Each mistake in a subcommand's words has exit status 1 and a hint; nothing is answered by the general help.
#[test]
fn misspelt_words_have_hints() {
    let dir = scratch();
    for (line, hint) in [
        (
            "swep",
            "swep: unable to read this job file: No such file or directory; did you mean \"iolite sweep\"?",
        ),
        ("randraed", "did you mean \"iolite --name=a --rw=randread --bs=4k --size=1g --filename=FILE\"?"),
        ("runs compare 1 2", "did you mean \"iolite compare run:1 run:2\"?"),
        ("runs shwo 1", "did you mean \"show\"?"),
        ("keys revok", "did you mean \"revoke\"?"),
        ("completion bsh", "did you mean \"bash\"?"),
        ("agent --help", "agent: neither a subcommand nor a job file; did you mean \"iolite --server\"?"),
        ("swep --help", "did you mean \"iolite sweep\"?"),
        ("device -F jbos f", "-F jbos: not one of table, json, jobs; did you mean \"jobs\"?"),
        ("report --outptu=x r.json", "did you mean \"--output\"?"),
        ("web -o /srv", "unknown option -o; iolite web --help lists them"),
        ("sweep j.fio --outptu=x", "did you mean \"--output\"?"),
        ("verify-state --policy", "--policy needs a value: completed|fsynced"),
        ("verify-state --policy --json s", "--policy needs a value"),
    ] {
        let run = ours().line(dir.path(), line).refused();
        assert!(run.stderr.contains(hint) && run.stdout.is_empty(), "{line}: {run}");
    }
    // A job file may be beside a question.
    fs::write(dir.path().join("agent"), "[j]\n").unwrap();
    ours().line(dir.path(), "agent --help").ok().says("iolite test ");
    for command in iolite_options::commands::ALL {
        for help in ["--help", "-h"] {
            let usage = format!("Usage: iolite {}", command.name);
            ours().line(dir.path(), &format!("{} {help}", command.name)).ok().says(&usage);
        }
        let unknown = ours().line(dir.path(), &format!("{} --nosuchoption", command.name)).refused();
        assert!(unknown.stderr.contains("unknown option --nosuchoption"), "{unknown}");
    }
}

/// `iolite version` and `iolite --version -v` say what the program is; the version alone is as it was.
#[test]
pub fn the_build_describes_itself() {
    let dir = scratch();
    let answer = ours().line(dir.path(), "version --json").ok();
    let facts: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(facts["program"], format!("iolite-{}", env!("CARGO_PKG_VERSION")));
    assert_eq!(
        facts["commit"].as_str(),
        Some(option_env!("IOLITE_COMMIT").unwrap_or("unknown (built without IOLITE_COMMIT)"))
    );
    assert!(facts["compiler"].as_str().unwrap().starts_with("rustc 1."), "{facts}");
    assert!(facts["target"].as_str().unwrap().starts_with(std::env::consts::ARCH), "{facts}");
    // cargo's directory of this program has the name of its profile.
    let directory = ours().path.parent().unwrap().file_name().unwrap().to_owned();
    assert_eq!(facts["profile"].as_str(), directory.to_str(), "{facts}");
    assert_eq!(facts["features"], serde_json::json!(["agents", "hdfs", "history", "servers", "web"]));
    for (key, more) in [("processor", ["clock", "crc"]), ("kernel", ["release", "io_uring"])] {
        assert!(more.iter().all(|more| facts[key].get(more).is_some()), "{facts}");
    }
    let text = ours().line(dir.path(), "version").ok();
    assert_eq!(text.stdout.lines().count(), facts.as_object().unwrap().len(), "{text}");
    for line in ["--version -v", "-v --version", "-v -v"] {
        // (The frequency of the clock is measured, and differs a little.)
        let answer = ours().line(dir.path(), line).ok();
        assert_eq!(
            answer.stdout.split("processor:").next(),
            text.stdout.split("processor:").next(),
            "{line}"
        );
    }
    let alone = format!("iolite-{}\n", env!("CARGO_PKG_VERSION"));
    for line in ["--version", "-v", "--version --verify"] {
        assert_eq!(ours().line(dir.path(), line).ok().stdout, alone, "{line}");
    }
    let fio = Program::called_fio(dir.path());
    for line in ["--version", "--version -v"] {
        assert_eq!(fio.line(dir.path(), line).ok().stdout, "fio-3.42\n", "{line}");
    }
    ours().line(dir.path(), "version x").refused().says("takes no words");
}
