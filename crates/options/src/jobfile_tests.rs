use super::*;
use std::fs;
use tempfile::TempDir;

const FACTS: MachineFacts = MachineFacts { page_size: 4096, memory_mebibytes: 24105, cpus: 2 };

struct Outcome {
    sections: Vec<Section>,
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl Outcome {
    /// `name: key=value key` for each section.
    fn shape(&self) -> Vec<String> {
        self.sections
            .iter()
            .map(|section| {
                let mut line = format!("{}:", section.name);
                for setting in &section.settings {
                    line.push(' ');
                    line.push_str(&setting.key);
                    if let Some(value) = &setting.value {
                        line.push('=');
                        line.push_str(value);
                    }
                }
                line
            })
            .collect()
    }
}

fn read_path(path: &str, input: &[u8]) -> Outcome {
    read_as(Name::Iolite, path, input)
}

fn read_as(name: Name, path: &str, input: &[u8]) -> Outcome {
    let mut input = input;
    let environment = |variable: &str| match variable {
        "SIZE" => Some("64m".to_owned()),
        "WORDS" => Some("$ncpus;z".to_owned()),
        "EMPTY" => Some(String::new()),
        "DASH" => Some("-a".to_owned()),
        _ => None,
    };
    let mut surroundings = Surroundings {
        environment: &environment,
        facts: FACTS,
        standard_input: &mut input as &mut dyn Read,
        texts: Texts::OnDisk,
        name,
    };
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    let sections = read(OsStr::new(path), &mut surroundings, &mut errors, &mut warnings);
    let lines = |diagnostics: Vec<Diagnostic>| diagnostics.iter().map(Diagnostic::to_string).collect();
    Outcome { sections, errors: lines(errors), warnings: lines(warnings) }
}

fn read_text(text: impl AsRef<[u8]>) -> Outcome {
    read_path("-", text.as_ref())
}

#[track_caller]
fn assert_clean(text: impl AsRef<[u8]>, shape: &[&str]) {
    let outcome = read_text(text);
    assert_eq!(outcome.shape(), shape);
    assert_eq!(outcome.errors, [""; 0]);
    assert_eq!(outcome.warnings, [""; 0]);
}

#[test]
fn sections_and_settings() {
    assert_clean(
        "; a comment\n[global]\nbs=4k\nrw=randread\n\n[one]\nthread\nsize = 1m\n[global]\niodepth=2\n[one]\n",
        &["global: bs=4k rw=randread", "one: thread size=1m", "global: iodepth=2", "one:"],
    );
    let outcome = read_text("[global]\n[one]\n");
    assert_eq!(outcome.sections.iter().map(|section| section.is_global).collect::<Vec<_>>(), [true, false]);
}

// fio 3.33 ends a line at the first ; or #, wherever it is.
#[test]
fn comments_end_a_line_anywhere() {
    assert_clean(
        "[a] ; first\nbs=4k ; comment\nrw=read # hash\n  ; indented\n\t#too\nthread # flag\n",
        &["a: bs=4k rw=read thread"],
    );
    let outcome = read_text("[a]\nfilename=c#d\nbs=4k;c\n");
    assert_eq!(outcome.shape(), ["a: filename=c bs=4k"]);
    assert_eq!(
        outcome.warnings,
        [
            "-:2:11: filename=c: \"#d\" is taken as a comment; put a blank in front of it if that is meant",
            "-:3:6: bs=4k: \";c\" is taken as a comment; put a blank in front of it if that is meant",
        ]
    );
}

#[test]
fn blanks_line_ends_and_byte_order_marks_do_not_matter() {
    assert_clean("[one]\r\nsize=1m\r\nthread\r\n", &["one: size=1m thread"]);
    assert_clean("[one]\nsize=1m\nbs=8k", &["one: size=1m bs=8k"]);
    assert_clean(
        "\u{feff}[one]\n  bs =\t8k  \n\tdescription =  two  words \n",
        &["one: bs=8k description=two  words"],
    );
    assert_clean("", &[]);
    assert_clean(" \n\t\n; nothing\n", &[]);
}

#[test]
fn values_keep_what_is_not_a_comment() {
    assert_clean(
        "[a]\ndescription=a=b=c\nfilename=\"a b\"\nbs=\n",
        &["a: description=a=b=c filename=\"a b\" bs="],
    );
    let long = "x".repeat(100_000);
    assert_clean(format!("[a]\ndescription={long}\n"), &[format!("a: description={long}").as_str()]);
}

#[test]
fn places_of_keys_and_values_are_columns() {
    let outcome = read_text("[a]\n  bs  = 4kk ; x\nthread\n");
    let place = |line, column| Origin::File { path: "-".into(), line, column };
    assert_eq!(outcome.sections[0].origin, place(1, 1));
    let settings = &outcome.sections[0].settings;
    assert_eq!((&settings[0].key_origin, &settings[0].value_origin), (&place(2, 3), &place(2, 9)));
    assert_eq!((&settings[1].key_origin, &settings[1].value_origin), (&place(3, 1), &place(3, 1)));
}

#[test]
fn columns_count_characters() {
    let outcome = read_text("[a]\nbs=äöü;x\n");
    assert!(outcome.warnings[0].starts_with("-:2:7: "), "{:?}", outcome.warnings);
}

#[test]
fn environment_and_reserved_words() {
    assert_clean(
        "[a${SIZE}]\nsize=${SIZE}\nio_size=8*$mb_memory\nnumjobs=2*$ncpus\ndescription=${WORDS}\nthr${EMPTY}ead\n",
        &["a${SIZE}: size=64m io_size=192840 numjobs=4 description=2;z thread"],
    );
    let outcome = read_text("[a]\nnumjobs=${NONE}\nsize=1/$ncpus*0\nbs=$ncpus/0\n");
    assert_eq!(outcome.shape(), ["a: numjobs= size=0"]);
    assert_eq!(outcome.warnings, ["-:2:9: environment variable \"NONE\" is not set; it is taken as empty"]);
    assert_eq!(outcome.errors, ["-:4:4: bs=$ncpus/0: 2/0: division by zero"]);
}

#[test]
fn a_lone_bracket_is_not_a_section() {
    let outcome = read_text("[one]\nsize=1m\n[");
    assert_eq!(outcome.errors, ["-:3:1: [: a section needs a name and a closing ]"]);
}

#[test]
fn options_outside_of_a_section_are_one_error() {
    let outcome = read_text("bs=8k\nrw=read\ninclude x\n[one]\nsize=1m\n");
    assert_eq!(outcome.shape(), ["one: size=1m"]);
    assert_eq!(
        outcome.errors,
        ["-:1:1: option bs=8k is outside of any [section]; begin with [global] or [jobname]"]
    );
}

#[test]
fn messages_stay_short() {
    let long = "x".repeat(100_000);
    let outcome = read_text(format!("{long}\n[a]\nbs={long};y\ninclude {long}\n[{long}\n"));
    assert_eq!((outcome.errors.len(), outcome.warnings.len()), (2, 2));
    let longest = outcome.errors.iter().chain(&outcome.warnings).map(String::len).max();
    assert!(longest < Some(300), "{longest:?}");
}

#[test]
fn headers_that_fio_accepts() {
    let outcome = read_text("[a ]\n[ b]\n [c]\n[j]k]\n[]\n[GLOBAL]\n");
    let names: Vec<_> = outcome.sections.iter().map(|section| section.name.as_str()).collect();
    assert_eq!(names, ["a ", " b", "c", "j]k", "", "GLOBAL"]);
    assert!(outcome.sections.iter().all(|section| !section.is_global));
    assert_eq!(outcome.warnings, [""; 0]);

    let text = "[open\n[e]trail\n[globalx]\n";
    let behind = "-:2:4: [e]trail: the text behind the closing ] means nothing; leave it out, or make it a comment (# or ;)";
    assert_eq!(read_text(text).errors, [behind]);
    let outcome = read_as(Name::Fio, "-", text.as_bytes());
    let names: Vec<_> = outcome.sections.iter().map(|section| section.name.as_str()).collect();
    assert_eq!(names, ["open", "e", "globalx"]);
    assert!(outcome.sections[2].is_global, "as in fio");
    assert_eq!(outcome.errors, [""; 0]);
    assert_eq!(outcome.warnings.len(), 3, "{:?}", outcome.warnings);
    assert!(outcome.warnings[0].starts_with("-:1:1: [open: the closing ]"));
    assert!(outcome.warnings[1].starts_with("-:2:4: [e]trail: "));
}

#[test]
fn bytes_that_are_not_text_are_errors_with_their_place() {
    let outcome = read_text(b"[a]\nbs=4k\ndescription=\xff\xfe\nsize=1m\nrw=re\0ad\nthread\n");
    assert_eq!(outcome.shape(), ["a: bs=4k size=1m thread"], "the rest is still read");
    assert_eq!(
        outcome.errors,
        ["-:3:13: byte 0xff is not valid UTF-8", "-:5:6: a NUL byte; a job file is text"]
    );
}

#[test]
fn a_comment_may_be_in_any_encoding() {
    let outcome = read_text(b"# caf\xe9\n[a]\nbs=4k ; gr\xfcn\nsize=1m\n");
    assert_eq!(outcome.shape(), ["a: bs=4k size=1m"]);
    assert_eq!(outcome.errors, [""; 0]);
    assert_eq!(outcome.warnings, [""; 0]);
}

#[test]
fn a_missing_file_is_named() {
    let outcome = read_path("no/such/job.fio", b"");
    assert_eq!(outcome.errors.len(), 1);
    assert!(outcome.errors[0].starts_with("no/such/job.fio: "), "{:?}", outcome.errors);
    let outcome = read_path("rw=read", b"");
    assert!(outcome.errors[0].ends_with("; if an option is meant, write --rw=read"), "{:?}", outcome.errors);
    for (path, shown) in [
        ("nbd://me:sesame@host", "nbd://me:***@host: "),
        ("nbd://me:sesame@host/x?socket=y", "nbd://me:***@host/x?socket=y: "),
        ("nbd://me:ses=ame@host", "nbd://me:***@host: "),
        (
            "iscsi://me%sesame@h/t/1?target_user=u&target_password=sesame",
            "iscsi://me%***@h/t/1?target_user=u",
        ),
        ("uri=nbd://me:sesame@host", "; if an option is meant, write --uri=nbd://me:***@host"),
        ("http_pass=sesame", "; if an option is meant, write --http_pass=***"),
    ] {
        let outcome = read_path(path, b"");
        assert!(
            outcome.errors[0].contains(shown) && !outcome.errors[0].contains("sesame"),
            "{:?}",
            outcome.errors
        );
    }
    let directory = TempDir::new().unwrap();
    let outcome = read_path(directory.path().to_str().unwrap(), b"");
    assert!(outcome.errors[0].contains("directory"), "{:?}", outcome.errors);
}

fn files(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

fn read_in(directory: &TempDir, name: &str) -> Outcome {
    let outcome = read_path(directory.path().join(name).to_str().unwrap(), b"");
    let root = format!("{}/", directory.path().display());
    let shorten = |lines: Vec<String>| lines.iter().map(|line| line.replace(&root, "")).collect();
    Outcome {
        sections: outcome.sections,
        errors: shorten(outcome.errors),
        warnings: shorten(outcome.warnings),
    }
}

#[test]
fn includes_are_read_in_place_and_nest() {
    let directory = files(&[
        ("job.fio", "[a]\nsize=4k\ninclude sub/more.fio\nbs=1k\n[b]\ninclude=sub/more.fio ; again\n"),
        ("sub/more.fio", "rw=write\n  include\tdeep.fio\n"),
        ("sub/deep.fio", "thread\ninclude sub${DASH}.fio\n"),
        ("sub/sub-a.fio", "iodepth=2"),
    ]);
    let outcome = read_in(&directory, "job.fio");
    assert_eq!(outcome.errors, [""; 0]);
    assert_eq!(
        outcome.shape(),
        ["a: size=4k rw=write thread iodepth=2 bs=1k", "b: rw=write thread iodepth=2"]
    );
    let Origin::File { path, line, column } = &outcome.sections[0].settings[3].key_origin else {
        panic!("from a file");
    };
    assert!(path.ends_with("sub/sub-a.fio"));
    assert_eq!((*line, *column), (1, 1));
}

#[test]
fn includes_that_go_wrong() {
    let directory = files(&[
        ("job.fio", "[a]\ninclude missing.fio\ninclude\ninclude job.fio\ninclude sections.fio\nbs=1k\n"),
        ("sections.fio", "rw=read\n[b]\nsize=1k\n"),
        ("one.fio", "[a]\ninclude two.fio\n"),
        ("two.fio", "include one.fio\n"),
    ]);
    let outcome = read_in(&directory, "job.fio");
    assert_eq!(outcome.shape(), ["a: rw=read size=1k bs=1k"]);
    assert_eq!(outcome.errors.len(), 4, "{:?}", outcome.errors);
    assert!(outcome.errors[0].starts_with("job.fio:2:9: include missing.fio: unable to read "));
    assert!(outcome.errors[1].contains("name of the file to include is missing"));
    assert_eq!(outcome.errors[2], "job.fio:4:9: include job.fio: this file includes itself");
    assert_eq!(outcome.errors[3], "sections.fio:2:1: [b]: an included file holds options only, no sections");
    let outcome = read_in(&directory, "one.fio");
    assert_eq!(outcome.errors, ["two.fio:1:9: include one.fio: this file includes itself"]);
}

#[test]
fn includes_nest_only_so_deep() {
    let deep: Vec<(String, String)> = (0..30)
        .map(|level| (format!("{level}.fio"), format!("include {}.fio\nthread\n", level + 1)))
        .collect();
    let mut all: Vec<(&str, &str)> = deep.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    all.push(("job.fio", "[a]\ninclude 0.fio\n"));
    let outcome = read_in(&files(&all), "job.fio");
    assert_eq!(outcome.errors.len(), 1, "{:?}", outcome.errors);
    assert!(outcome.errors[0].contains("deeper than 16"), "{:?}", outcome.errors);
}

#[test]
fn a_file_without_end_is_refused() {
    let outcome = read_path("/dev/zero", b"");
    assert_eq!(outcome.errors, ["/dev/zero: a job file, with all that it includes, has at most 16 MiB"]);
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            read_text(bytes);
        }

        #[test]
        fn any_lines_are_read_without_a_panic(
            text in "([\\[\\]a-z=;# \t$*/+-]|\\$\\{|\\}|\\$ncpus|include|[äß€]|\n|\r){0,120}"
        ) {
            read_text(text);
        }

        #[test]
        fn a_written_section_reads_back(
            name in "[a-z0-9_ .-]{1,12}",
            settings in proptest::collection::vec(("[a-hj-z][a-z_]{0,8}", proptest::option::of("[!-\"%-:<-~]{1,20}")), 0..8),
        ) {
            let mut text = format!("[{name}]\n");
            for (key, value) in &settings {
                match value {
                    Some(value) => text.push_str(&format!("{key}={value}\n")),
                    None => text.push_str(&format!("{key}\n")),
                }
            }
            let outcome = read_text(text);
            prop_assert_eq!(outcome.errors, Vec::<String>::new());
            prop_assert_eq!(&outcome.sections[0].name, &name);
            let back: Vec<_> =
                outcome.sections[0].settings.iter().map(|setting| (setting.key.clone(), setting.value.clone())).collect();
            prop_assert_eq!(back, settings);
        }
    }
}
