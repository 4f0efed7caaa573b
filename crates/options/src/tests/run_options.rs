//! Options of the run, and questions.

use super::*;

#[test]
fn options_of_the_run() {
    let ran = run(&[
        "--name=a",
        "--output=out.txt",
        "--output-format=json,normal",
        "--terse-version",
        "4",
        "--append-terse",
        "--eta=always",
        "--eta-newline=500ms",
        "--eta-interval=2",
        "--live=full",
        "--status-interval=5s",
        "--readonly",
        "--parse-only",
        "--warnings-fatal",
        "--max-jobs=7",
        "--idle-prof=percpu",
        "--alloc-size=100",
        "--aux-path=/tmp",
        "--bandwidth-log",
        "--trigger-file=t",
        "--debug=io,job:2",
        "--debug=mem,io",
        "--trigger-timeout=90",
        "--trigger=ls -l",
        "--web=[::1]:8080",
        "--web-tls=a.crt,a.key",
        "--web-linger=1h",
        "--metrics=9464",
        "--metrics-push=http://h",
        "--save=base",
        "--store=s.db",
        "--repeat=5:7",
        "--no-series",
        "--color=never",
    ]);
    assert_eq!(
        ran.run,
        RunOptions {
            output: Some(PathBuf::from("out.txt")),
            output_format: vec![OutputFormat::Json, OutputFormat::Normal, OutputFormat::Terse],
            has_chosen_format: true,
            color: ColorWhen::Never,
            terse_version: 4,
            eta: EtaWhen::Always,
            eta_newline: 500,
            eta_interval: 2000,
            live: LiveView::Full,
            status_interval: 5000,
            readonly: true,
            parse_only: true,
            merge_blktrace_only: false,
            warnings_fatal: true,
            idle_prof: Some(IdleProfile::PerCpu),
            aux_path: Some(PathBuf::from("/tmp")),
            profile: None,
            debug: DebugWish { categories: vec!["io".to_owned(), "mem".to_owned()], workers: vec![2] },
            bandwidth_log: true,
            trigger_file: Some(PathBuf::from("t")),
            trigger_timeout: Some(90_000),
            trigger: Some("ls -l".to_owned()),
            trigger_remote: None,
            web: Some((std::net::Ipv6Addr::LOCALHOST, 8080).into()),
            web_tls: Some(WebTls::Files { certificate: "a.crt".into(), key: "a.key".into() }),
            web_linger: Some(3_600_000),
            metrics: Some((std::net::Ipv4Addr::LOCALHOST, 9464).into()),
            metrics_push: Some("http://h".to_owned()),
            save: Some("base".to_owned()),
            store: Some(PathBuf::from("s.db")),
            no_series: true,
            repeat: Some(Repeat { times: 5, seed: Some(7) }),
        }
    );
    let web = |word: &str| run(&["--name=a", word]).run.web.map(|address| address.to_string());
    assert_eq!(web("--web").as_deref(), Some("127.0.0.1:0"));
    assert_eq!(web("--web=localhost:9").as_deref(), Some("127.0.0.1:9"));
    let web_tls = |word: &str| run(&["--name=a", "--web=10.0.0.1:80", word]).run.web_tls;
    assert_eq!(web_tls("--web-tls=new"), Some(WebTls::New));
    let both = WebTls::Files { certificate: "both.pem".into(), key: "both.pem".into() };
    assert_eq!(web_tls("--web-tls=both.pem"), Some(both));
    for value in ["", ",", "a,", ",b", "a,b,c"] {
        let told = errors(&["--name=a", "--web", &format!("--web-tls={value}")]);
        assert!(told[0].contains("--web-tls"), "{told:?}");
    }
    let formats = |words: &[&str]| run(&[&["--name=a"], words].concat()).run.output_format;
    assert_eq!(formats(&[]), [OutputFormat::Normal]);
    assert_eq!(formats(&["--minimal"]), [OutputFormat::Terse]);
    assert_eq!(formats(&["-m", "-F", "json+"]), [OutputFormat::JsonPlus]);
    for word in ["--append-terse=3", "--append-terse=yes"] {
        assert_eq!(formats(&[word]), [OutputFormat::Normal, OutputFormat::Terse]);
    }
    assert_eq!(formats(&["--append-terse", "--output-format=terse"]), [OutputFormat::Terse]);
    assert_eq!(formats(&["--output-format=normal,normal"]), [OutputFormat::Normal]);
}

#[test]
fn letters() {
    let ran = run(&["-o", "one", "-rP", "--name=a"]);
    assert_eq!(ran.run.output, Some(PathBuf::from("one")));
    assert!(ran.run.readonly && ran.run.parse_only);
    assert_eq!(run(&["-oout2", "--name=a"]).run.output, Some(PathBuf::from("out2")));
    assert_eq!(run(&["-V4", "--name=a"]).run.terse_version, 4);
    assert_eq!(printed(&["-v"], ""), printed(&["--version"], ""));
    assert_eq!(printed(&["-h"], ""), printed(&["--help"], ""));
    assert_eq!(errors(&["-V"]), ["command line: option \"-V\" requires a value"]);
    assert_eq!(errors(&["-q"]).len(), 1);
    assert!(errors(&["-hipri"])[0].contains("ioengine="), "not -h, -i pri");
}

#[test]
fn mistakes_in_options_of_the_run() {
    assert_eq!(
        errors(&[
            "--name=a",
            "--output-format=json,foo",
            "--terse-version=1",
            "--eta-interval=100ms",
            "--eta-newline=0",
            "--status-interval=10us",
        ]),
        [
            "command line: --output-format=json,foo: unknown format \"foo\" (normal, summary, json, json+, terse, minimal, html, md)",
            "command line: --terse-version=1: the terse format has versions 2, 3, 4 and 5",
            "command line: --eta-interval=100ms: too short, 250ms is the least",
            "command line: --eta-newline=0: too short, 1ms is the least",
            "command line: --status-interval=10us: too short, 1ms is the least",
        ]
    );
    // fio accepts these silently.
    let wrong = errors(&["--name=a", "--eta=foo", "--debug=foo", "--max-jobs=x", "--alloc-size=x"]);
    assert_eq!(wrong.len(), 4, "{wrong:?}");
    assert_eq!(wrong[0], "command line: --eta=foo: expected always, never or auto");
}

#[test]
fn a_remote_trigger_without_clients_is_warned_of() {
    let warnings = run(&["--name=a", "--trigger-remote=x", "--trigger-timeout=5"]).warnings;
    assert!(warnings[0].contains("--trigger-remote: has no effect without --client"), "{warnings:?}");
    assert_eq!(run(&["--name=a", "-J", "x"]).run.trigger_remote.as_deref(), Some("x"));
}

/// Job files go to the machine that precedes them.
#[test]
fn jobs_for_other_machines() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (inner, outer) = (file("inner", "bs=4kk\n"), file("outer", "[a]\ninclude inner\n"));
    let other = file("other", "[b]\nrw=read\n");
    let sent = |words: &[&str]| match invoke(words, "") {
        Ok(Invocation::RunElsewhere(run)) => {
            run.clients.iter().map(|client| client.jobs.files.clone()).collect::<Vec<_>>()
        }
        unexpected => panic!("{unexpected:?}"),
    };
    let here = |path: &str| SentFile::Here(path.to_owned());
    let there = SentFile::There("/etc/c".to_owned());
    assert_eq!(sent(&["--client=a", &outer, "--client=b", &other]), [[here(&outer)], [here(&other)]]);
    assert_eq!(sent(&["--client=a", "--client=b", &other]), [[here(&other)], [here(&other)]]);
    // This machine.
    assert_eq!(sent(&["--client=", &other]), [[here(&other)]]);
    assert_eq!(sent(&[&other, "--client=a", "--client=b"]), [[here(&other)], [here(&other)]]);
    assert_eq!(sent(&["--client=a", "--remote-config=/etc/c"]), [[there]]);
    assert_eq!(errors(&["--client=a"]), ["command line: --client=a: there is no job file for it"]);
    let refused = errors(&["--client=a", "--name=x", &other]);
    assert!(refused[0].contains("put them into a job file"), "{refused:?}");

    // Included files are sent as well, and mistakes in them are found on the other machine, with their places.
    let Ok(Invocation::RunElsewhere(run)) = invoke(&["--client=a", &outer], "") else { panic!("it runs") };
    std::fs::remove_file(&inner).unwrap();
    let mistakes = crate::parse_sent(&run.clients[0].jobs, &|_| None, &|_| Ok(()), Name::Iolite).unwrap_err();
    assert!(mistakes[0].to_string().starts_with(&format!("{inner}:1:4: bs=4kk")), "{mistakes:?}");
}

/// As on a server of fio: the jobs of all files run together, and share the defaults.
#[test]
fn files_for_another_machine_are_one_batch() {
    let text = |text: &str| text.as_bytes().to_vec();
    let texts = [
        ("defaults".to_owned(), text("[global]\nioengine=null\nsize=8k\nbs=2k\n")),
        ("one".to_owned(), text("[a]\nrw=write\n")),
        ("two".to_owned(), text("[b]\nbs=1k\n")),
    ];
    let files = texts.iter().map(|(name, _)| SentFile::Here(name.clone())).collect();
    let sent = SentJobs { files, texts: texts.into(), ..SentJobs::default() };
    let Ok(Invocation::Run { batches, warnings, .. }) =
        crate::parse_sent(&sent, &|_| None, &|_| Ok(()), Name::Iolite)
    else {
        panic!("it runs")
    };
    let [batch] = batches.as_slice() else { panic!("{batches:?}") };
    let jobs: Vec<_> =
        batch.iter().map(|job| (job.name.as_str(), job.pattern.bs[iolite_types::Direction::Read])).collect();
    assert_eq!(jobs, [("a", 2048), ("b", 1024)]);
    let [told] = warnings.as_slice() else { panic!("{warnings:?}") };
    let told = told.to_string();
    assert!(told.starts_with("defaults:1:") && told.contains("behind this one as well"), "{told}");
}

#[test]
fn a_trigger_that_never_fires_is_suspicious() {
    let told = ["command line: --trigger: has no effect without --trigger-file or --trigger-timeout"];
    assert_eq!(run(&["--name=a", "--trigger=ls"]).warnings, told);
    let far = ["--client=a", "--trigger-remote=ls", "--remote-config=c"];
    let elsewhere = |more: &[&str]| match invoke(&[&far, more].concat(), "") {
        Ok(Invocation::RunElsewhere(run)) => run,
        other => panic!("{other:?}"),
    };
    let told = elsewhere(&[]).warnings;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].message.starts_with("--trigger-remote: has no effect without --trigger-file"),
        "{told:?}"
    );
    // The client watches for the trigger, so the other machine does not know what fires it.
    let run = elsewhere(&["--trigger-timeout=5"]);
    assert_eq!(run.warnings, []);
    let sent = SentJobs { files: vec![SentFile::Here("j".into())], ..run.clients[0].jobs.clone() };
    let sent = SentJobs { texts: [("j".to_owned(), b"[j]\nsize=4k\n".to_vec())].into(), ..sent };
    match crate::parse_sent(&sent, &|_| None, &|_| Ok(()), Name::Iolite) {
        Ok(Invocation::Run { warnings, .. }) => assert_eq!(warnings, []),
        other => panic!("{other:?}"),
    }
}

#[test]
fn logs_of_the_run() {
    assert_eq!(invoke(&["--inflate-log", "x.fz"], ""), Ok(Invocation::InflateLog(PathBuf::from("x.fz"))));
    let asked = |words: &[&str]| match invoke(words, "") {
        Ok(Invocation::Run { run, .. }) => run.bandwidth_log,
        other => panic!("{other:?}"),
    };
    assert!(asked(&["--name=a", "--bandwidth-log"]) && !asked(&["--name=a"]));
}

#[test]
fn measurements_of_the_machine() {
    let asked = |word: &str| invoke(&[word], "");
    assert_eq!(asked("--cpuclock-test"), Ok(Invocation::Test(SelfTest::Clock)));
    assert_eq!(asked("--memcpytest"), Ok(Invocation::Test(SelfTest::Copies(Vec::new()))));
    assert_eq!(asked("--crctest=md5"), Ok(Invocation::Test(SelfTest::Checksums(vec!["md5".into()]))));
    let names = ["memcpy", "hybrid"].map(str::to_owned).to_vec();
    assert_eq!(asked("--memcpytest=memcpy,hybrid"), Ok(Invocation::Test(SelfTest::Copies(names))));
}

#[test]
fn questions() {
    let own = concat!("iolite-", env!("CARGO_PKG_VERSION"));
    assert_eq!(printed(&["--version"], ""), (format!("{own}\n"), 0));
    // Scripts parse the version. The help is read by people, and names the program.
    let as_fio = |word: &str| match invoke_as(&[OsString::from(word)], "", Name::Fio) {
        Ok(Invocation::Print { text, status: 0 }) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(as_fio("--version"), "fio-3.42\n");
    let help = as_fio("--help");
    assert!(help.starts_with(&format!("fio-3.42\nThis is {own}, ")) && help.contains("Usage: fio"), "{help}");
    let (help, status) = printed(&["--help=all", "--version"], "");
    assert!(help.starts_with(own) && help.contains("Usage: iolite") && status == 0);
    let first = printed(&["--help"], "").0;
    assert!(first.contains("iolite test /mnt/data") && !first.contains("Usage: "), "{first}");
    assert!(errors(&["--help=bs"])[0].contains("--cmdhelp=bs"));
    assert!(printed(&["--cmdhelp=all"], "").0.contains("filename"));
    assert!(printed(&["-cbs"], "").0.contains("bs"));
    assert!(printed(&["--enghelp"], "").0.contains("psync"));
    assert!(printed(&["--debug=help"], "").0.contains("helperthread"));
    assert_eq!(printed(&["--version", "--nosuch"], "").1, 0, "the first question is answered");
    assert_eq!(errors(&["--nosuch", "--version"]).len(), 1, "unless something was wrong before it");
}

#[test]
fn nothing_to_do() {
    for words in [&[][..], &["--bs=4k"], &["--name=global", "--bs=4k"]] {
        match invoke(words, "") {
            Ok(Invocation::NoJobs { usage }) => assert!(usage.contains("--name"), "{words:?}"),
            other => panic!("{words:?}: {other:?}"),
        }
    }
    let told = |text: &str| errors_with(&["-"], text);
    assert_eq!(told("; nothing\n"), ["-: defines no job; it has no section at all", "No job(s) defined"]);
    assert_eq!(told("[global]\nbs=4k\n"), ["-: defines no job; it has only [global]", "No job(s) defined"]);
    let beside = run_with(&["--name=x", "-"], "[global]\nbs=4k\n");
    assert_eq!(beside.warnings, ["-: defines no job; it has only [global]"]);
    assert!(run(&["--parse-only"]).batches.is_empty());
    assert_eq!(errors(&["no/such.fio"]).len(), 1);
}
