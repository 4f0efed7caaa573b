//! The targets: job files, command lines, values, traces, verify headers, state files, logs, frames, answers of NFS
//! servers, greetings, keys.
//!
//! `IOLITE_FUZZ_SECONDS=600 cargo test --release -p iolite-fuzz --test targets` runs each for ten minutes.

use iolite_fuzz::{Target, memory::Counting};
use iolite_options::Invocation;
use iolite_trace::blk::{self, BlkReader, BlkRecord, ByteOrder, action, category};
use iolite_trace::{FileName, Mapping, MergeInput, TextReader, TextWriter, TraceReader};
use iolite_verify::block::{
    Expected, HeaderFormat, Identity, Kind, Spec, Stamper, Verifier, Write as Written,
};
use std::ffi::OsString;
use std::io::{BufReader, Write as _};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

#[global_allocator]
static COUNTING: Counting = Counting;

fn fuzz(name: &'static str, seeds: Vec<Vec<u8>>, words: &[&str], run: &mut dyn FnMut(&[u8]) -> String) {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    Target { name, corpora, seeds, words, run }.fuzz();
}

fn no_environment(_: &str) -> Option<String> {
    None
}

/// The outcome of a command line, with its messages.
fn answer(words: &[OsString], mut input: &[u8]) -> String {
    match iolite_options::parse_with(words, &no_environment, &mut input, iolite_options::Name::Iolite) {
        Ok(Invocation::Run { batches, warnings, .. }) => {
            // Accepted values can be printed.
            assert!(!format!("{batches:?}").is_empty());
            warnings.first().map(|warning| complaint(&warning.message)).unwrap_or_default()
        }
        Ok(Invocation::Print { text, status }) => {
            format!("prints {status} {}", "x".repeat(text.len() / 1000))
        }
        Ok(other) => format!("{:?}", std::mem::discriminant(&other)),
        Err(errors) => errors.first().map(|error| complaint(&error.message)).unwrap_or_default(),
    }
}

/// The end of a message without quoted text: the kind of error, without the input.
fn complaint(message: &str) -> String {
    let quotes = message.find('"').zip(message.rfind('"'));
    let (before, after) = quotes.map_or((message, ""), |(first, last)| (&message[..first], &message[last..]));
    let why = before.rsplit(": ").next().unwrap_or_default();
    let words: Vec<&str> = why.split_whitespace().chain(after.split_whitespace()).collect();
    words[words.len().saturating_sub(3)..].join(" ")
}

/// The names of all options, and words that values are made of.
fn language() -> Vec<&'static str> {
    let mut words: Vec<&str> = vec![
        "[global]\n",
        "[job]\n",
        "\n",
        "=",
        "include ",
        "${SIZE}",
        "$ncpus",
        "$pagesize",
        "(",
        ")",
        "*",
        "/",
        ",",
        ":",
        "-",
        "%",
        "k",
        "g",
        "0x",
        "'",
        "\"",
        "\\",
        "ms",
        "random",
        "zipf:1.1",
        "4k/50:8k",
        "#",
        ";",
        "rw=randrw",
    ];
    words.extend(iolite_options::registry::job_options().map(|definition| definition.name));
    words
}

#[test]
fn job_files() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seeds: Vec<Vec<u8>> = std::fs::read_dir(examples)
        .expect("there are examples")
        .map(|entry| entry.expect("they can be listed").path())
        // Examples of engines have a directory of their own.
        .filter(|path| path.is_file())
        .map(|path| std::fs::read(path).expect("and read"))
        .collect();
    seeds.sort();
    fuzz("job_files", seeds, &language(), &mut |input| {
        // Devices may never end, and files named in the input are not the subject of this test.
        if input.windows(5).any(|window| window == b"/dev/") {
            return String::new();
        }
        // Every job that can be run can be printed.
        let shown = answer(&["--showcmd".into(), "-".into()], input);
        format!("{} {shown}", answer(&["-".into()], input))
    });
}

#[test]
fn command_lines() {
    let seeds = [
        "--name=a\n--rw=randread\n--bs=4k\n--size=1g",
        "--output-format=json+,terse\n--section\nx",
        "-\n--showcmd",
    ];
    let seeds = seeds.map(|words| words.as_bytes().to_vec()).to_vec();
    fuzz("command_lines", seeds, &language(), &mut |input| {
        let words = input.split(|&byte| byte == b'\n').map(|word| OsString::from_vec(word.to_vec()));
        let words: Vec<OsString> = words.filter(|word| !Path::new(word).exists()).collect();
        answer(&words, b"[a]\nbs=4k\n")
    });
}

/// The first two bytes choose the option; the others are its value.
#[test]
fn values() {
    let names: Vec<&str> =
        iolite_options::registry::job_options().map(|definition| definition.name).collect();
    let seeds = (0..names.len() as u16).flat_map(|number| {
        ["", "1", "4k", "4k-8k,1m", "zipf:1.2:0.5", "10s"]
            .map(|value| [&number.to_be_bytes()[..], value.as_bytes()].concat())
    });
    fuzz("values", seeds.collect(), &language(), &mut |input| {
        let Some((number, value)) = input.split_first_chunk() else { return String::new() };
        let name = names[u16::from_be_bytes(*number) as usize % names.len()];
        // Values such as patterns may name files.
        if value.contains(&b'/') {
            return String::new();
        }
        let word = [format!("--{name}=").as_bytes(), value].concat();
        format!("{name} {}", answer(&["--name=a".into(), OsString::from_vec(word)], b""))
    });
}

/// Reads, scans and summarises a trace. All three must agree about errors and counts.
fn read_trace(input: &[u8]) -> String {
    let open = || TraceReader::new(input, "trace");
    let mut reader = match open() {
        Ok(reader) => reader,
        Err(error) => return complaint(&error.to_string()),
    };
    let mut count = 0u64;
    let end = loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                assert!((record.file as usize) < reader.files().len());
                count += 1;
            }
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    // Each record needs some bytes, so their number is bounded.
    assert!(count <= input.len() as u64);
    let summed = iolite_trace::summary::summarise(open().expect("as before"));
    let scanned =
        iolite_trace::scan(open().expect("as before"), Path::new("trace"), &Mapping::default(), u64::MAX);
    match end {
        Some(error) => {
            assert_eq!(summed.err().map(|error| error.to_string()), Some(error.clone()));
            assert_eq!(scanned.err().map(|error| error.to_string()), Some(error.clone()));
            complaint(&error)
        }
        None => {
            let summary = summed.expect("it can be read");
            if let Ok(scan) = scanned {
                assert_eq!(scan.ios.values, summary.directions.values.clone().map(|direction| direction.ios));
            }
            format!("whole, {} {}", summary.ios().min(1), summary.depth.is_some())
        }
    }
}

#[test]
fn text_traces() {
    let seeds = [
        "fio version 3 iolog\n0 f add\n5 f open\n9 f write 0 4096\n12 f sync 0 0\n15 f trim 0 512\n20 f close\n",
        "fio version 2 iolog\nf add\nf open\nf wait 5 0\nf read 0 512\nf datasync 0 0\nf close\n",
    ];
    let seeds = seeds.map(|text| text.as_bytes().to_vec()).to_vec();
    let words = [
        "fio version 3 iolog\n",
        "fio version 2 iolog\n",
        " add\n",
        " open\n",
        " close\n",
        " read ",
        " write ",
        " trim ",
        " sync ",
        " datasync ",
        " sync_file_range ",
        " wait ",
        "0 f open\n",
        "f",
        " ",
        "\n",
    ];
    fuzz("text_traces", seeds, &words, &mut |input| {
        rewrite(input);
        read_trace(input)
    });
}

/// A log of version 3 that is read and written again must give the same number of records.
fn rewrite(input: &[u8]) {
    let Ok(mut reader) = TextReader::new(input, "trace") else { return };
    let mut writer = TextWriter::new(Vec::new(), reader.version()).expect("memory takes everything");
    let mut records = Vec::new();
    while let Ok(Some(record)) = reader.next_record() {
        let FileName::Path(path) = &reader.files()[record.file as usize] else {
            unreachable!("text has paths")
        };
        writer.write(record.time_ns / 1000, path, record.event).expect("memory takes everything");
        records.push(record);
    }
    if reader.version() == iolite_trace::TextVersion::V2 {
        return;
    }
    let bytes = std::mem::take(writer.output());
    let mut again = TextReader::new(&bytes[..], "again").expect("it has a first line");
    let read = std::iter::from_fn(|| again.next_record().ok().flatten()).count();
    assert_eq!(read, records.len());
}

#[test]
fn binary_traces() {
    let record = |action, bytes, payload: &[u8]| BlkRecord {
        time: 1000,
        sector: 8,
        bytes,
        action,
        device: BlkRecord::device_number(8, 0),
        payload: payload.to_vec(),
        ..BlkRecord::default()
    };
    let trace = |order| {
        let mut bytes = Vec::new();
        for one in [
            record(category::NOTIFY, 0, b"process"),
            record(action::QUEUE | category::READ, 4096, b""),
            record(action::QUEUE | category::WRITE | category::FLUSH, 512, b""),
            record(action::ISSUE | category::READ | action::CGROUP, 4096, &[0; 8]),
            record(action::COMPLETE | category::READ, 4096, b""),
            record(action::QUEUE | category::DISCARD, 65_536, b""),
        ] {
            blk::write(&mut bytes, order, &one).expect("memory takes everything");
        }
        bytes
    };
    let seeds = vec![trace(ByteOrder::Little), trace(ByteOrder::Big)];
    let file = tempfile::NamedTempFile::new_in("/dev/shm").or_else(|_| tempfile::NamedTempFile::new());
    let mut file = file.expect("a file can be made");
    fuzz("binary_traces", seeds, &[], &mut |input| {
        // Each record that can be read can be written again, and has the same bytes.
        let mut reader = BlkReader::new(input, "trace");
        let mut record = BlkRecord::default();
        let mut bytes = Vec::new();
        while let Ok(true) = reader.read(&mut record) {
            blk::write(&mut bytes, reader.order(), &record).expect("memory takes everything");
        }
        assert!(input.starts_with(&bytes));
        replace(&mut file, input);
        let inputs = [1, 3].map(|times| MergeInput { path: file.path().into(), percent: 50.0, times });
        let merged =
            iolite_trace::merge(&inputs, &mut std::io::sink(), "result").map_err(|error| error.to_string());
        format!("{} {}", read_trace(input), merged.err().unwrap_or_default())
    });
}

fn replace(file: &mut tempfile::NamedTempFile, bytes: &[u8]) {
    use std::io::Seek as _;
    let done = file.as_file().set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(bytes));
    done.expect("a file takes bytes");
}

/// Gives a header the right checksum, so that it is trusted.
fn mend_header(header: &mut [u8]) {
    let (fields, sum) = header.split_at_mut(header.len() - 4);
    let right = !crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, fields) as u32;
    sum.copy_from_slice(&right.to_le_bytes());
}

/// Gives a state file the right length and checksum.
fn mend_state(bytes: &mut [u8]) {
    let length = bytes.len() as u64;
    let Some(description) = bytes.get(32..40).and_then(|word| word.try_into().ok()) else { return };
    let end = usize::try_from(u64::from_le_bytes(description)).ok().and_then(|bytes| bytes.checked_add(40));
    let Some(end) = end.filter(|&end| end <= bytes.len()) else { return };
    bytes[24..32].copy_from_slice(&length.to_le_bytes());
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[24..end]);
    bytes[16..24].copy_from_slice(&sum.to_le_bytes());
}

/// The first byte chooses the kind, the second one how it is checked; the others are the block.
#[test]
fn verify_headers() {
    let kinds: Vec<Kind> = Kind::all().collect();
    let spec = |kind: u8, how: u8| Spec {
        interval: if how & 1 == 0 { 0 } else { 512 },
        offset: if how & 2 == 0 { 0 } else { 256 },
        format: if how & 4 == 0 { HeaderFormat::V342 } else { HeaderFormat::V333 },
        ..Spec::new(kinds[kind as usize % kinds.len()])
    };
    let seeds = (0..kinds.len() as u8).flat_map(|kind| {
        (0..8).filter_map(move |how| {
            let spec = spec(kind, how);
            spec.validate(512).ok()?;
            let mut block = vec![0; 1024];
            Stamper::new(&spec).stamp(&mut block, &Identity { offset: 4096, ..Identity::default() });
            Some([&[kind, how][..], &block].concat())
        })
    });
    let seeds = seeds.collect();
    fuzz("verify_headers", seeds, &["\u{ac}\u{ca}"], &mut |input| {
        let [kind, how, block @ ..] = input else { return String::new() };
        let spec = spec(*kind, *how);
        if spec.validate(block.len()).is_err() {
            return "not valid".into();
        }
        let mut block = block.to_vec();
        if let Some(header) = block.get_mut(spec.offset..spec.offset + spec.format.size())
            && how & 16 != 0
        {
            mend_header(header);
        }
        let writes = [Written { sequence: Some(0), seed: None, job: Some(0) }];
        let expected = Expected { offset: 4096, writes: if how & 8 == 0 { &writes } else { &[] } };
        match Verifier::new(&spec).check(&block, &expected) {
            Ok(()) => "right".into(),
            Err(mismatch) => mismatch.text("file"),
        }
    });
}

#[test]
fn state_files() {
    use iolite_verify::state::{Policy, Recorder, Saved, Setup, StateFile};
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("state");
    let state = |is_uniform, files: u64| {
        let setup = Setup {
            program: "iolite".into(),
            job: "j".into(),
            number: 0,
            kind: "md5".into(),
            began: 1,
            seed: 2,
            block: 4096,
            depth: 4,
            is_uniform,
            is_durable: false,
            is_copied: false,
            per_pass: 0,
            has_flushes: true,
            imprint: None,
            files: (0..files)
                .map(|file| StateFile {
                    name: format!("f{file}"),
                    offset: 0,
                    length: 65_536,
                    identity: None,
                    place: None,
                })
                .collect(),
        };
        let recorder = Recorder::create(&path, &setup).expect("a state can be written");
        for number in 0..6u64 {
            recorder.issue(number as u32 % 4, number, 0, number * 4096, 4096);
            if number % 4 < 2 {
                recorder.acknowledge(number as u32 % 4);
            }
        }
        drop(recorder);
        std::fs::read(&path).expect("it is there")
    };
    let seeds = vec![state(true, 1), state(false, 2)];
    fuzz(
        "state_files",
        seeds,
        &["\"block\":", "\"depth\":", "\"length\":", "true", "false", "\"files\":["],
        &mut |input| {
            let mut bytes = input.to_vec();
            if bytes.len().is_multiple_of(2) {
                mend_state(&mut bytes);
            }
            std::fs::write(&path, bytes).expect("a file takes bytes");
            let saved = match Saved::open(&path) {
                Ok(saved) => saved,
                Err(error) => return error.to_string(),
            };
            let mut outcome = format!("{} in flight", saved.in_flight.len().min(1));
            for file in 0..saved.setup.files.len() as u32 {
                for policy in [Policy::Completed, Policy::Fsynced] {
                    outcome += &match saved.file(file, policy) {
                        Ok(file) => {
                            let demands = file.demands().count();
                            format!(" {} {:?}", demands.min(1), file.summary().to_owned())
                                .replace(char::is_numeric, "")
                        }
                        Err(error) => error.to_string(),
                    };
                }
            }
            outcome
        },
    );
}

#[test]
fn compressed_logs() {
    let compress = |text: &[u8]| {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).expect("memory takes everything");
        encoder.finish().expect("memory takes everything")
    };
    let one = compress(b"0, 100, 0, 4096, 0\n1, 200, 1, 4096, 0\n");
    let seeds = vec![[one.clone(), compress(b"2, 300, 0, 512, 0\n")].concat(), one, compress(&[0; 200])];
    fuzz("compressed_logs", seeds, &[], &mut |input| {
        let inflate = |input: &[u8]| {
            let mut output = Vec::new();
            iolite_logs::inflate::streams(&mut BufReader::new(input), &mut output).map(|()| output)
        };
        // The input as it is, and as the compressed content of a log.
        let packed = inflate(&compress(input))
            .map_or_else(|error| error.to_string(), |out| format!("{}", out.is_empty()));
        match inflate(input) {
            Ok(output) => format!("{} {packed}", output.is_empty()),
            Err(error) => format!("{error} {packed}"),
        }
    });
}

#[test]
fn histogram_logs() {
    let seeds = vec![
        b"1000, 0, 4096, 1, 2, 3, 4\n".to_vec(),
        format!("1, 2, 512{}", ", 7".repeat(1856)).into_bytes(),
    ];
    fuzz("histogram_logs", seeds, &[", ", "\n", "0", "1"], &mut |input| {
        let text = String::from_utf8_lossy(input);
        let lines = text.lines().map(iolite_logs::HistogramLine::read);
        let outcomes: Vec<String> = lines
            .map(|line| line.map_or_else(|(column, _)| "x".repeat(column.min(6)), |_| "line".into()))
            .collect();
        outcomes.first().cloned().unwrap_or_default()
    });
}

/// Frames that an agent receives from a stranger, or a client from its agent.
#[test]
fn frames() {
    use iolite_remote::frame::{self, FrameError};
    use iolite_remote::message::{Done, FromAgent, Hello, Refusal, Request, ToAgent};
    use iolite_remote::returned::{Bytes, FilePart};
    use iolite_stats::{Event, EventKind, JobReport, Report};
    let hello = || Hello { program: "iolite-0.1.0".into(), machine: "one".into(), pid: 7 };
    let request = Request {
        jobs: iolite_options::SentJobs {
            files: vec![iolite_options::SentFile::Here("a".into())],
            texts: [("a".to_owned(), b"[a]\nrw=read\n".to_vec())].into(),
            ..Default::default()
        },
        as_fio: false,
        host: 0,
        hosts: 1,
        snapshot_ms: 1000,
        status_ms: 0,
        sample_ms: 0,
        series: false,
    };
    let report = Report { jobs: vec![JobReport::default()], ..Report::default() };
    let event = Event::new(1, None, EventKind::Status(Box::new(report.clone())));
    let to = [ToAgent::Hello(hello()), ToAgent::Run(Box::new(request)), ToAgent::Ping(1), ToAgent::Stop];
    let part =
        FilePart { name: "x_bw.1.log".into(), bytes: Bytes(b"1, 2, 0, 4096, 0\n".to_vec()), is_last: true };
    let from = [
        FromAgent::Hello(hello()),
        FromAgent::File(Box::new(part)),
        FromAgent::Sent(1),
        FromAgent::Refused(Box::new(Refusal { problems: vec!["a:1:1".into()], report: None })),
        FromAgent::Event(Box::new(event)),
        FromAgent::Done(Box::new(Done { report, ..Done::default() })),
    ];
    let to = to.iter().map(|message| [&[0], &frame::encode(message).unwrap()[..]].concat());
    let from = from.iter().map(|message| [&[1], &frame::encode(message).unwrap()[..]].concat());
    let words = |error: FrameError| complaint(&error.to_string());
    fuzz("frames", to.chain(from).collect(), &["rw=read"], &mut |input| {
        let Some((&side, mut bytes)) = input.split_first() else { return String::new() };
        // A length that fits, so that the content is read.
        let mended = (side & 2 > 0 && bytes.len() >= frame::HEADER).then(|| {
            let mut bytes = bytes.to_vec();
            let length = (bytes.len() - frame::HEADER) as u32;
            bytes[1..frame::HEADER].copy_from_slice(&length.to_be_bytes());
            bytes
        });
        if let Some(mended) = &mended {
            bytes = mended;
        }
        match side & 1 {
            0 => frame::read::<ToAgent>(&mut bytes).map_or_else(words, |_| "to".to_owned()),
            _ => frame::read::<FromAgent>(&mut bytes).map_or_else(words, |_| "from".to_owned()),
        }
    });
}

#[test]
fn answers_of_nfs_servers() {
    // Answers to a read, a write, a commit, a directory's entries, an open and a new session, of both versions.
    let seeds = iolite_nfs::samples();
    fuzz("nfs", seeds, &[], &mut |input| iolite_nfs::take_answers(input));
}

/// The first bytes of a connection to a server, before any frame, with and without keys.
#[test]
fn greetings() {
    use iolite_remote::frame;
    use iolite_remote::keys::{Keys, Role, home};
    use iolite_remote::message::{Hello, ToAgent};
    use iolite_remote::stand_in::Caller;
    let directory = tempfile::tempdir().expect("a directory can be made");
    home::make(directory.path(), 1, std::time::SystemTime::now()).expect("keys can be made");
    let keys = Keys::read(&directory.path().join("agents.keys"), Role::Agent).expect("they are good");
    let hello = Hello { program: "iolite-0.1.0".into(), machine: "one".into(), pid: 7 };
    let hello = frame::encode(&ToAgent::Hello(hello)).expect("it has a form");
    let greeting = |words: &str| {
        let mut bytes = format!("iolite remote {words}\n").into_bytes();
        bytes.resize(64, 0);
        bytes
    };
    // The first message of TLS 1.3, with its record and its extensions, from a client of another program.
    let client_hello: Vec<u8> = {
        let extensions: [&[u8]; 4] = [
            b"\0\x2b\0\x03\x02\x03\x04",
            b"\0\x0a\0\x04\0\x02\0\x1d",
            b"\0\x0d\0\x04\0\x02\x04\x03",
            &[&b"\0\x33\0\x26\0\x24\0\x1d\0\x20"[..], &[9; 32]].concat(),
        ];
        let extensions = extensions.concat();
        let length = |bytes: &[u8]| (bytes.len() as u16).to_be_bytes().to_vec();
        let random = [&b"\x03\x03"[..], &[7; 32], b"\0\0\x02\x13\x01\x01\0"].concat();
        let body = [random, length(&extensions), extensions].concat();
        let message = [vec![1, 0], length(&body), body].concat();
        [b"\x16\x03\x01".to_vec(), length(&message), message].concat()
    };
    let plain = [&greeting("1")[..], &hello].concat();
    let seeds = [
        plain,
        greeting("2"),
        greeting("needs keys"),
        client_hello,
        b"GET / HTTP/1.1\r\nHost: one\r\n\r\n".to_vec(),
        b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
        b"q\0\x05\0\0\0\0\0\0\0\0\0".to_vec(),
    ];
    let seeds = seeds.iter().flat_map(|seed| [0, 1].map(|how| [&[how], &seed[..]].concat())).collect();
    fuzz("greetings", seeds, &["iolite remote ", "\x16\x03\x03"], &mut |input| {
        let Some((&how, bytes)) = input.split_first() else { return String::new() };
        let keys = (how & 1 > 0).then_some(&keys);
        let caller = Caller::with(bytes, keys).expect("it fits into a socket");
        caller.greet("one").map_or_else(|why| complaint(&why), |_| "a client".to_owned())
    });
}

/// Files of keys from an untrusted source.
#[test]
fn keys() {
    use iolite_remote::keys::{Keys, home};
    let directory = tempfile::tempdir().expect("a directory can be made");
    let made = home::make(directory.path(), 1, std::time::SystemTime::now()).expect("keys can be made");
    let seeds = made.iter().map(|keys| std::fs::read(&keys.file).expect("it is there")).collect();
    let path = made[0].file.clone();
    let words = ["revoked: ", "issued: ", "until: ", "-----BEGIN CERTIFICATE-----\n", "0123456789abcdef "];
    fuzz("keys", seeds, &words, &mut |input| {
        std::fs::write(&path, input).expect("a file takes bytes");
        Keys::read_any(&path).map_or_else(|why| complaint(&why), |keys| format!("keys {}", keys.role))
    });
}

/// The committed corpora are small enough to be read.
#[test]
fn corpora_are_small() {
    let corpora: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut bytes = 0;
    for target in std::fs::read_dir(&corpora).expect("there is a corpus") {
        for input in std::fs::read_dir(target.expect("it can be listed").path()).expect("a directory") {
            bytes += input.expect("it can be listed").metadata().expect("it is there").len();
        }
    }
    assert!(bytes < 2 << 20, "{bytes} bytes");
}
