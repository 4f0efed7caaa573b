//! Job files: defaults, sections, several files, options kept for the report, and several mistakes at once.

use super::*;

#[test]
fn job_files_run_one_after_the_other() {
    let files = directory(&[
        ("a.fio", "[global]\nbs=8k\n[one]\nnumjobs=4\n[global]\nnumjobs=2\n[two]\n"),
        ("b.fio", "[x]\nrw=write\n"),
        ("empty.fio", ""),
    ]);
    let (a, b, empty) = (path(&files, "a.fio"), path(&files, "b.fio"), path(&files, "empty.fio"));
    let ran = run(&[&a, &empty, &b]);
    assert_eq!(ran.warnings, [format!("{empty}: defines no job; it has no section at all")]);
    let names: Vec<Vec<_>> =
        ran.batches.iter().map(|batch| batch.iter().map(|job| job.name.as_str()).collect()).collect();
    assert_eq!(names, [vec!["one", "two"], vec!["x"]]);
    let [one, two] = ran.batches[0].as_slice() else { panic!() };
    let x = &ran.batches[1][0];
    assert_eq!((one.schedule.numjobs, two.schedule.numjobs, x.schedule.numjobs), (4, 2, 1));
    assert_eq!(pairs(&one.given_global), [("bs", "8k")]);
    assert_eq!(pairs(&two.given_global), [("bs", "8k"), ("numjobs", "2")]);
    assert_eq!(x.pattern.bs[iolite_types::Direction::Read], 4096, "defaults end with their file");
    assert_eq!(pairs(&x.given_global), []);
}

#[test]
fn job_files_together_with_options() {
    let files = directory(&[("a.fio", "[x]\nrw=write\n"), ("b.fio", "[y]\n")]);
    let (a, b) = (path(&files, "a.fio"), path(&files, "b.fio"));
    for words in [&["--bs=2k", &a][..], &[&a, "--bs=2k"], &["--name=global", "--bs=2k", "--", &a]] {
        let jobs = jobs(words);
        assert_eq!(jobs[0].pattern.bs[iolite_types::Direction::Read], 2048, "{words:?}");
    }
    let ran = run(&["--name=cmd", "--bs=1k", &a, "--name=after", &b]);
    let names: Vec<Vec<_>> =
        ran.batches.iter().map(|batch| batch.iter().map(|job| job.name.as_str()).collect()).collect();
    assert_eq!(
        names,
        [vec!["cmd", "after", "x"], vec!["y"]],
        "fio: the command line's jobs go with the first file"
    );

    let ran = run(&["--bs=2k", &a, &b]);
    assert_eq!(ran.batches[1][0].pattern.bs[iolite_types::Direction::Read], 4096, "as fio does");
    assert_eq!(ran.warnings.len(), 1);
    assert!(ran.warnings[0].contains("first job file only"));
}

#[test]
fn sections_are_chosen() {
    let text = "[global]\nbs=8k\n[one]\n[two]\nnosuch=1\n[one]\nrw=write\n";
    let ran = run_with(&["--section=one", "-"], text);
    assert_eq!(ran.batches[0].len(), 2, "all of that name; what is not chosen is not looked at");
    let ran = run_with(&["--section=a", "--section", "c", "-"], "[a]\n[b]\n[c]\n");
    let names: Vec<_> = ran.batches[0].iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a", "c"]);
    assert_eq!(
        errors_with(&["--section=zzz", "-"], "[a]\n"),
        ["command line: --section=zzz: there is no section of this name", "No job(s) defined"]
    );
    let only_defaults =
        "command line: --section=global: it holds defaults, and is not a job; name those that are wanted";
    assert_eq!(
        errors_with(&["--section=global", "-"], "[global]\n[a]\n"),
        [only_defaults, "No job(s) defined"]
    );
    let ran = run_with(&["--section=global", "--section=a", "-"], "[global]\n[a]\n[b]\n");
    assert_eq!((ran.batches[0].len(), ran.warnings.len()), (1, 0));
    // As in fio: the options of a job that is not selected become defaults; jobs before --section are not affected.
    let words = ["--name=early", "--section=one", "--name=cmd", "--numjobs=3", "--name=one", "-"];
    let ran = run_with(&words, "[one]\n[two]\n");
    let jobs: Vec<_> = ran.batches[0].iter().map(|job| (job.name.as_str(), job.schedule.numjobs)).collect();
    assert_eq!(jobs, [("early", 1), ("one", 3), ("one", 3)]);
    assert_eq!(pairs(&ran.batches[0][2].given_global), [("numjobs", "3")]);
    assert_eq!(
        ran.warnings,
        ["command line: --name=cmd: not chosen by --section; the options behind it are defaults"]
    );
}

// The order and content were compared with the "job options" of fio 3.33's JSON; flags are as in 3.42's.
#[test]
fn given_options_are_kept_in_the_order_of_application() {
    let job = job_of(
        "[a]\nfilename=x\nuserspace_reap\nioengine=libaio\nsize = 64k\nfilename_format=$jobname\n\
         blocksize=4k\nbs=8k\nthread\nname=zz\nkb_base=1000\n",
    );
    assert_eq!(
        pairs(&job.given),
        [
            ("kb_base", "1000"),
            ("ioengine", "libaio"),
            ("size", "64k"),
            ("bs", "4k"),
            ("bs", "8k"),
            ("thread", ""),
            ("name", "zz"),
            ("filename", "x"),
            ("filename_format", "$jobname"),
            ("userspace_reap", ""),
        ]
    );
    assert_eq!(job.name, "zz");
    assert_eq!(job.pattern.bs[iolite_types::Direction::Read], 8000, "units hold for the whole section");
    assert_eq!(pairs(&job.given_global), []);
    assert_eq!(job.origins["size"], Origin::File { path: "-".into(), line: 5, column: 8 });
}

#[test]
fn an_engine_option_of_a_file_needs_its_engine_somewhere() {
    assert!(job_of("[global]\nioengine=libaio\n[a]\nuserspace_reap=0\n").is_set("userspace_reap"));
    assert_eq!(
        errors_with(&["-"], "[global]\nuserspace_reap=0\n[a]\nioengine=libaio\n"),
        ["-:2:1: option \"userspace_reap\" belongs to ioengine=libaio; here the engine is psync"]
    );
    assert_eq!(
        errors_with(&["-"], "[global]\nioengine=libaio\n[a]\nioengine=psync\nuserspace_reap=0\n").len(),
        1
    );
}

#[test]
fn a_warning_comes_before_the_error_it_explains() {
    assert_eq!(
        errors_with(&["-"], "[a]\nsize=${NOPE}\n"),
        [
            "-:2:6: warning: environment variable \"NOPE\" is not set; it is taken as empty",
            "-:2:6: option \"size\" requires a value"
        ]
    );
}

#[test]
fn all_mistakes_of_all_files_are_reported() {
    let files = directory(&[
        ("a.fio", "[global]\nbs=4k\nrw=sideways\n[one]\niodpeth=4\n[two]\nsize\nthread 1\n--bs=4k\nrw=\n"),
        ("b.fio", "size=1m\n[x]\nnosuchthing=1\n"),
    ]);
    let (a, b) = (path(&files, "a.fio"), path(&files, "b.fio"));
    let found = errors(&[&a, &b, &path(&files, "none.fio"), "--nosuchthing"]);
    let root = format!("{}/", files.path().display());
    let found: Vec<_> = found.iter().map(|line| line.replace(&root, "")).collect();
    let starts = [
        "command line: unknown option \"--nosuchthing\"",
        "a.fio:3:4: rw=sideways: ",
        "a.fio:5:1: unknown option \"iodpeth\"; did you mean \"iodepth\"?",
        "a.fio:7:1: option \"size\" requires a value",
        "a.fio:8:1: thread 1: an option and its value are separated by \"=\"",
        "a.fio:9:1: unknown option \"--bs\"; did you mean \"bs\"?",
        "a.fio:10:1: option \"rw\" requires a value",
        "b.fio:1:1: option size=1m is outside of any [section]",
        "b.fio:3:1: unknown option \"nosuchthing\"",
        "none.fio: ",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (line, start) in found.iter().zip(starts) {
        assert!(line.starts_with(start), "{start} in {found:#?}");
    }
}

#[test]
fn defaults_that_are_wrong_are_reported_once() {
    let found = errors_with(&["-"], "[global]\nrw=sideways\n[a]\n[b]\n[c]\n");
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn long_words_are_not_checked_for_typing_mistakes() {
    let long = "x".repeat(1 << 20);
    let found = errors_with(&["-", &format!("--{long}")], &format!("[a]\n{long}=4\n"));
    assert_eq!(found.len(), 2);
    assert!(
        found.iter().all(|line| line.len() < 200),
        "{:?}",
        found.iter().map(String::len).collect::<Vec<_>>()
    );
}

/// As in fio: `nrfiles` limits a list of names if it is applied after it.
#[test]
fn nrfiles_behind_filename_limits_it() {
    let from_line = |line: &str| {
        let ran = run(&line.split(' ').collect::<Vec<_>>());
        (ran.batches.concat()[0].files.filename.concat(), ran.warnings)
    };
    let (names, warnings) = from_line("--name=x --filename=a:b:c --nrfiles=2");
    assert_eq!(names, "ab");
    let expected = "command line: nrfiles=2: behind filename, only the first 2 of its 3 names are used";
    assert_eq!(warnings, [expected]);
    assert_eq!(from_line("--filename=a:b:c --name=x --nrfiles=1").0, "a");
    for all in [
        "--name=x --nrfiles=2 --filename=a:b:c",
        "--nrfiles=2 --name=x --filename=a:b:c",
        "--name=x --filename=a:b:c --nrfiles=4",
        "--name=x --filename=a:b:c --nrfiles=1 --nrfiles=3",
    ] {
        assert_eq!(from_line(all), ("abc".to_owned(), vec![]), "{all}");
    }
    let limits = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        run(&words).batches.concat()[0].files.nrfiles_limits_names
    };
    assert!(limits("--name=x --opendir=d --nrfiles=2") && !limits("--name=x --nrfiles=2 --opendir=d"));
    let from_file = |text: &str| run_with(&["-"], text).batches.concat()[0].files.filename.concat();
    assert_eq!(from_file("[a]\nfilename=a:b:c\nnrfiles=2\n"), "abc");
    assert_eq!(from_file("[global]\nfilename=a:b:c\nnrfiles=2\n[a]\n"), "abc");
    assert_eq!(from_file("[global]\nnrfiles=2\n[a]\nfilename=a:b:c\n"), "abc");
    assert_eq!(from_file("[global]\nfilename=a:b:c\n[a]\nnrfiles=2\n"), "ab");
}

/// As in fio: a name is in the directory that was given before it.
#[test]
fn names_are_in_the_directory_that_was_given_before_them() {
    let of = |ran: Ran| (ran.batches.concat()[0].files.filename.clone(), ran.warnings);
    let line = |text: &str| of(run(&text.split(' ').collect::<Vec<_>>()));
    let told = |directory: &str| {
        let what = "comes after filename, and so its files are not in it (as with fio); give directory first";
        vec![format!("command line: directory={directory}: {what}")]
    };
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(line("--name=a --directory=d:e --filename=/x:y"), (names(&["d/x", "d/y"]), vec![]));
    assert_eq!(line("--name=a --filename=/x:y --directory=d"), (names(&["/x", "y"]), told("d")));
    assert_eq!(line("--name=a --directory=d --filename=-"), (names(&["-"]), vec![]));
    assert_eq!(line("--filename=x --name=a --directory=d"), (names(&["x"]), told("d")));
    assert_eq!(line("--name=a --filename=x --directory=d --filename=y"), (names(&["x", "d/y"]), vec![]));
    let file = |text: &str| of(run_with(&["-"], text)).0;
    // Within a section, the names are last.
    assert_eq!(file("[a]\nfilename=x\ndirectory=d\n"), names(&["d/x"]));
    assert_eq!(file("[global]\nfilename=x\ndirectory=d\n[a]\n"), names(&["d/x"]));
    assert_eq!(file("[global]\ndirectory=d\n[a]\nfilename=x\n"), names(&["d/x"]));
    assert_eq!(file("[global]\nfilename=x\n[a]\ndirectory=d\n"), names(&["x"]));
}

/// As in fio, names given one by one form one list, and replace those of the defaults.
#[test]
fn filename_given_again_adds_in_its_section_only() {
    let names = |text: &str| {
        let ran = run_with(&["-"], text);
        (ran.batches.concat()[0].files.filename.concat(), ran.warnings)
    };
    assert_eq!(names("[x]\nfilename=a:b\nsize=1m\nfilename=c\n"), ("abc".to_owned(), vec![]));
    assert_eq!(names("[global]\nfilename=a\nfilename=b\n[x]\n"), ("ab".to_owned(), vec![]));
    assert_eq!(names("[global]\nfilename=a\n[x]\nfilename=a\n"), ("a".to_owned(), vec![]));
    let (replaced, warnings) = names("[global]\nfilename=a:b\n[x]\nfilename=c\nfilename=d\n");
    assert_eq!(replaced, "cd");
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains("filename replaces that of the defaults (a:b); fio would use both"),
        "{warnings:?}"
    );
    let line = run(&["--name=x", "--filename=a", "--filename=b"]);
    assert_eq!(line.batches.concat()[0].files.filename, ["a", "b"]);
}

/// As in fio: a new name is used for reports, logs and waiting.
#[test]
fn files_keep_the_name_of_their_section() {
    let text = "[global]\nname=no\n[a]\nname=other\n[b]\nname=other\nfilename_format=x.$jobname\n[c]\n";
    let jobs = run_with(&["-"], text).batches.remove(0);
    let names: Vec<_> =
        jobs.iter().map(|job| (job.name.as_str(), job.files.filename_format.as_str())).collect();
    let unnamed = "$jobname.$jobnum.$filenum";
    assert_eq!(names, [("other", "a.$jobnum.$filenum"), ("other", "x.b"), ("c", unnamed)]);
}

/// A job behaves the same whether or not the jobs before it are selected.
#[test]
fn sections_that_are_not_chosen_are_counted() {
    let text =
        "[global]\nnumjobs=3\n[a]\n[b]\nnumjobs=5\nbs=wrong\n[global]\nnumjobs=2\n[c]\n[d]\nnumjobs=x\n[e]\n";
    let before = |words: &[&str]| {
        let batches = run_with(words, text).batches;
        batches.concat().iter().map(|job| (job.name.clone(), job.left_out_before)).collect::<Vec<_>>()
    };
    let expected =
        |jobs: &[(&str, u64)]| jobs.iter().map(|&(name, count)| (name.to_owned(), count)).collect::<Vec<_>>();
    assert_eq!(before(&["--section=a", "-"]), expected(&[("a", 0)]));
    assert_eq!(before(&["--section=c", "-"]), expected(&[("c", 8)]));
    // Workers of selected jobs count for themselves; for an invalid number the default counts.
    assert_eq!(before(&["--section=c", "--section=e", "-"]), expected(&[("c", 8), ("e", 10)]));
    let line = ["--numjobs=4", "--section=e", "--name=x", "--name=e", "--numjobs=1", "-"];
    assert_eq!(before(&line), expected(&[("e", 4), ("e", 4 + 3 + 5 + 2 + 2)]));
}

/// As in fio.
#[test]
fn a_log_without_a_name_keeps_the_one_from_the_defaults() {
    let text =
        "[global]\nwrite_iops_log=L\nwrite_bw_log=L\n[d]\nwrite_iops_log\nwrite_bw_log=\nwrite_lat_log\n";
    let logs = &run_with(&["-"], text).batches[0][0].logs;
    let names = [&logs.write_iops_log, &logs.write_bw_log, &logs.write_lat_log].map(|name| name.as_deref());
    assert_eq!(names, [Some("L"), Some(""), Some("")]);
}

#[test]
fn options_of_the_past_and_of_profiles_are_accepted() {
    let old = "[a]\nverifysort=1\nverifysort_nr=1024\nflow_watermark=100\n";
    let profiles = "threads=1\nblock=4k\nnumruns=0\ndir=/nowhere\nload=2\ndevice-names=x,y\ntest-duration=10s\nprep\n\
                    threads-per-queue=4\nread-req-num-512-blocks=3\nlarge-block-op-kbytes=-1\n";
    let ran = run_with(&["-"], &format!("{old}{profiles}"));
    assert_eq!(ran.warnings.len(), 14, "{:?}", ran.warnings);
    assert_eq!(ran.warnings[0], "-:2:12: verifysort=1: option verifysort is deprecated, and has no effect");
    assert_eq!(
        ran.warnings[3],
        "-:5:9: threads=1: is an option of --profile=tiobench, and has no effect in a job"
    );
    // They are reported like all other options.
    assert!(ran.batches[0][0].given.contains(&("threads".to_owned(), "1".to_owned())));
    // And the same on a command line, where they are not abbreviations of others.
    let ran = run(&["--name=a", "--threads=1", "--dir", "x", "--verifysort_nr=5", "--prep"]);
    assert_eq!(ran.warnings.len(), 4, "{:?}", ran.warnings);
    assert!(ran.batches[0][0].files.directory.is_empty());
    for (line, why) in [
        ("rwmixcycle=5", "rwmixread"),
        ("percentage_sequential=5", "percentage_random"),
        ("threads=many", "not a number"),
        ("load", "requires a value"),
    ] {
        let told = errors_with(&["-"], &format!("[a]\n{line}\n"));
        assert!(told.len() == 1 && told[0].contains(why), "{told:?}");
    }
}

#[test]
fn a_list_of_file_sizes_is_a_range() {
    let sizes = |text: &str| {
        let ran = run_with(&["-"], &format!("[a]\nfilesize={text}\n"));
        ran.batches[0][0].extent.filesize.map(|sizes| (sizes.low >> 10, sizes.high >> 10))
    };
    for (text, range) in [
        ("256k,512k", (256, 512)),
        ("256k-512k", (256, 512)),
        ("512k,256k", (256, 512)),
        ("256k,512k,1m", (256, 1024)),
        ("256k,512k-1m", (256, 1024)),
        ("256k-512k,1m-2m", (256, 2048)),
        ("256k,", (256, 256)),
    ] {
        assert_eq!(sizes(text), Some(range), "{text}");
    }
    assert!(errors_with(&["-"], "[a]\nfilesize=4k,0\n")[0].contains("at least 1"));
}

#[test]
fn weights_of_a_flow_may_be_negative() {
    let ran = run(&["--name=a", "--flow=-8", "--name=b", "--flow=1"]);
    assert_eq!([0, 1].map(|index| ran.batches[0][index].rates.flow), [8, 1]);
    assert!(ran.warnings.is_empty(), "{:?}", ran.warnings);
    assert_eq!(errors(&["--name=a", "--flow=1001"]).len(), 1);
}

#[test]
fn the_donor_of_e4defrag_is_below_the_directory() {
    let donor = |lines: &str| {
        let ran = run_with(&["-"], &format!("[a]\nioengine=e4defrag\n{lines}\n"));
        ran.batches[0][0].engine.of::<crate::engines::E4defragOptions>().unwrap().donorname.clone()
    };
    assert_eq!(donor("donorname=d"), "d");
    assert_eq!(donor("donorname=d\ndirectory=mnt"), "mnt/d");
    assert_eq!(donor("directory=mnt\ndonorname=/x/d"), "mnt/x/d");
    assert_eq!(donor("directory=mnt"), "");
}
