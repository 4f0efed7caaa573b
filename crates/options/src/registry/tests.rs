//! Every option is declared, and values land where they should.

use super::*;
use crate::definition::{Category, Limits, Status};
use crate::*;
use iolite_types::{BlockSize, Direction, PerDirection};
use proptest::prelude::*;

const OPTIONS: &str = include_str!("../../testdata/options.tsv");
const ENGINES: &str = include_str!("../../testdata/engines.tsv");

fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

/// The columns from the aliases on, as the tables write them.
fn columns(definition: &Definition) -> [String; 5] {
    let kind = definition.kind.type_name();
    let kind = match kind.split_once(" (opt=") {
        Some((kind, _)) => kind,
        None => kind,
    };
    let limits = match definition.limits {
        Limits::None => String::new(),
        Limits::AtLeast(min) => format!("{min}.."),
        Limits::OnlyMin(min) => min.to_string(),
        Limits::Between(min, max) => format!("{min}..{max}"),
        Limits::Floats(min, max) => format!("{min:.6}..{max:.6}"),
    };
    let keywords: Vec<&str> = definition.keywords.iter().map(|(keyword, _)| *keyword).collect();
    [
        definition.aliases.join(" "),
        kind.to_owned(),
        definition.default.unwrap_or_default().to_owned(),
        limits,
        keywords.join(" "),
    ]
}

#[test]
fn every_job_option_is_declared_once_in_order() {
    let of_fio = job_options().filter(|definition| definition.category != Category::Own);
    let declared: Vec<&str> = of_fio.map(|definition| definition.name).collect();
    let wanted: Vec<&str> = rows(OPTIONS).map(|row| row[0]).collect();
    assert_eq!(wanted.len(), 245);
    assert_eq!(declared, wanted);
    for row in rows(OPTIONS) {
        let mut wanted: Vec<&str> = row[1..].to_vec();
        wanted.resize(5, "");
        let mut declared = columns(find_job(row[0]).unwrap());
        if row[0] == "ioengine" {
            // The keywords are all engines of the catalogue, in its order; fio's must be among them.
            let known: Vec<&str> = declared[4].split(' ').collect();
            assert!(wanted[4].split(' ').all(|keyword| known.contains(&keyword)), "{known:?}");
            declared[4] = wanted[4].to_owned();
        }
        assert_eq!(declared.to_vec(), wanted, "{}", row[0]);
    }
}

#[test]
fn every_engine_option_is_declared() {
    // These are our own, like the other places of a secret (`NAME_file`, `NAME_env`). The build from which the table
    // was read lacks nbd, libhdfs, libiscsi, libblkio, libcufile, xnvme and libzbc.
    const OWN: &[&str] = &[
        "uring",
        "http_auth",
        "http_timeout",
        "http_retries",
        "http_create",
        "http_s3_profile",
        "http_s3_anonymous",
        "http_s3_unsigned_payload",
        "http_s3_addressing",
        "http_s3_checksum",
        "http_ca_file",
        "http_cert_file",
        "http_key_file",
        "http_s3_multipart_size",
        "http_s3_multipart_state",
        "nfs_timeout",
        "nfs_uncommitted",
        "uri",
        "nbd_timeout",
        "iscsi_timeout",
        "iscsi_initiator",
        "iscsi_password",
        "iscsi_target_password",
        "ceph_timeout",
        "gluster_timeout",
        "http_s3_list",
        "http_read",
        "http_host_select",
        "bind",
        "http_write",
        "http_copy_source",
        "http_visible",
        "http_read_headers",
        "http_write_headers",
        "http_trim_headers",
        "http_s3_delete_versions",
        "http_s3_version_id",
    ];
    const OWN_ENGINES: &[&str] = &[
        "libhdfs",
        "libblkio",
        "libcufile",
        "libhipfile",
        "xnvme",
        "filewrite",
        "fileread",
        "filerename",
        "filelink",
        "filesetxattr",
        "filegetxattr",
        "dirread",
    ];
    let is_ours = |engine: &EngineInfo, definition: &Definition| {
        let name = definition.name;
        let secret = name.strip_suffix("_file").or_else(|| name.strip_suffix("_env"));
        let is_elsewhere = secret.and_then(|name| engine.option(name)).is_some_and(|secret| secret.is_secret);
        OWN_ENGINES.contains(&engine.name) || OWN.contains(&name) || is_elsewhere
    };
    let mut count = 0;
    for row in rows(ENGINES) {
        let engine = engines::engine(row[0]).unwrap_or_else(|| panic!("engine {} is missing", row[0]));
        if row[1] == "-" {
            assert!(engine.options.iter().all(|definition| is_ours(engine, definition)), "{}", row[0]);
            continue;
        }
        let definition = engine.option(row[1]).unwrap_or_else(|| panic!("{}: {} is missing", row[0], row[1]));
        let mut wanted: Vec<&str> = row[2..].to_vec();
        wanted.resize(5, "");
        assert_eq!(columns(definition).to_vec(), wanted, "{}: {}", row[0], row[1]);
        count += 1;
    }
    // The options of an external engine are our own.
    let of_fio = engines::engines().iter().filter(|engine| engine.name != "external");
    let declared =
        of_fio.flat_map(|engine| engine.options.iter().map(move |definition| (engine, *definition)));
    let declared: Vec<_> = declared.filter(|(engine, definition)| !is_ours(engine, definition)).collect();
    let names = || declared.iter().map(|(engine, definition)| format!("{}:{}", engine.name, definition.name));
    assert_eq!(
        declared.len(),
        count,
        "an engine has an option that the table does not know: {:?}",
        names().collect::<Vec<_>>()
    );
}

#[test]
fn names_are_unique_and_everything_has_help() {
    let mut seen = std::collections::BTreeSet::new();
    for definition in job_options() {
        for name in definition.names() {
            assert!(seen.insert(name), "{name} is declared twice");
        }
        assert!(definition.parent.is_none_or(|parent| find_job(parent).is_some()), "{}", definition.name);
    }
    let own = engines::engines().iter().flat_map(|engine| engine.options.iter().copied());
    for definition in job_options().chain(own) {
        assert!(definition.help.len() > 5, "{}", definition.name);
        assert!(!definition.help.contains('\n') && !definition.help.ends_with('.'), "{}", definition.name);
        assert!(definition.keywords.iter().all(|(_, meaning)| !meaning.is_empty()), "{}", definition.name);
    }
}

fn place() -> Origin {
    Origin::File { path: "job.fio".to_owned(), line: 7, column: 4 }
}

/// Applies `name=value` words in order, under the name `fio`.
fn job(words: &[&str]) -> Result<(JobOptions, Vec<String>), String> {
    job_of(Name::Fio, words)
}

fn job_of(program: Name, words: &[&str]) -> Result<(JobOptions, Vec<String>), String> {
    let mut job = JobOptions::default();
    let mut warnings = Vec::new();
    for word in words {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (*word, None),
        };
        let definition = find(name, &job.ioengine).unwrap_or_else(|| panic!("{name} is unknown"));
        apply(&mut job, definition, value, place(), &mut warnings, program)
            .map_err(|error| error.to_string())?;
    }
    Ok((job, warnings.into_iter().map(|warning| warning.to_string()).collect()))
}

fn accepted(words: &[&str]) -> JobOptions {
    let (job, warnings) = job(words).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    job
}

fn finished(words: &[&str]) -> (JobOptions, Vec<String>) {
    let (mut job, _) = job(words).unwrap();
    let mut warnings = Vec::new();
    finish(&mut job, &mut warnings);
    (job, warnings.into_iter().map(|warning| warning.message).collect())
}

#[test]
fn defaults_come_from_the_table() {
    let job = JobOptions::default();
    assert_eq!(job.pattern.rw, ReadWrite::Read);
    assert_eq!(job.pattern.bs, PerDirection::all(4096));
    assert_eq!(job.ioengine, "psync");
    assert_eq!((job.depth.iodepth, job.depth.iodepth_batch, job.depth.iodepth_batch_complete_min), (1, 1, 1));
    assert_eq!(
        (job.schedule.numjobs, job.schedule.loops, job.files.nrfiles, job.pattern.rwmixread),
        (1, 1, 1, 50)
    );
    assert_eq!(job.pattern.percentage_random, PerDirection::all(100));
    assert_eq!(job.measurement.percentile_list.len(), 17);
    assert_eq!(job.files.filename_format, "$jobname.$jobnum.$filenum");
    assert_eq!(job.pattern.randseed, 0x89);
    assert_eq!(job.files.fallocate, Fallocate::Native);
    assert_eq!(job.files.fadvise_hint, FadviseHint::Pattern);
    assert_eq!(job.buffers.hugepage_size, 2 << 20);
    assert!(
        job.files.invalidate
            && job.buffers.scramble_buffers
            && job.files.create_serialize
            && job.measurement.clat_percentiles
            && job.measurement.stats
    );
    assert!(
        !job.durability.direct
            && !job.schedule.thread
            && !job.measurement.group_reporting
            && !job.files.create_on_open
    );
    assert_eq!((job.extent.size, job.extent.filesize, job.schedule.startdelay), (None, None, None));
    assert!(job.origins.is_empty(), "a default is not given");
}

#[test]
fn values_land() {
    let job = accepted(&[
        "rw=randrw:8",
        "bs=8k,32k,",
        "size=1g",
        "runtime=2m",
        "ramp_time=5",
        "startdelay=5-10",
        "filename=/dev/sda:a\\:b",
        "numjobs=4",
        "thread",
        "sync=1",
        "fallocate=0",
        "offset=20%",
        "cpus_allowed=0,2-3",
        "percentile_list=99:50",
        "io_limit=1m",
    ]);
    assert_eq!((job.pattern.rw, job.pattern.rw_modifier.0), (ReadWrite::RandRw, 8));
    assert_eq!(job.pattern.bs, PerDirection::new(8192, 32768, 4096));
    assert_eq!(job.extent.size, Some(SizeValue::Bytes(1 << 30)));
    assert_eq!((job.schedule.runtime, job.schedule.ramp_time), (120_000_000, 5_000_000));
    assert_eq!(job.schedule.startdelay, Some(Range { low: 5_000_000, high: 10_000_000 }));
    assert_eq!(job.files.filename, ["/dev/sda", "a:b"]);
    assert!(job.schedule.thread && job.schedule.numjobs == 4);
    assert_eq!((job.durability.sync, job.files.fallocate), (SyncMode::Sync, Fallocate::None));
    assert_eq!(job.extent.offset, SizeValue::Percent(20));
    assert_eq!(job.placement.cpus_allowed, [0, 2, 3]);
    assert_eq!(job.measurement.percentile_list, [99.0, 50.0]);
    assert!(job.is_set("io_size") && !job.is_set("io_limit"), "the canonical name is remembered");
}

#[test]
fn logs() {
    let job = accepted(&["write_bw_log", "write_lat_log=", "write_iops_log=x", "log_window_value=1"]);
    let named = |name: &str| Some(name.to_owned());
    assert_eq!((&job.logs.write_bw_log, &job.logs.write_lat_log), (&named(""), &named("")));
    assert_eq!((&job.logs.write_iops_log, &job.logs.write_hist_log), (&named("x"), &None));
    assert_eq!(job.logs.log_window_value, LogWindow::Most);
    assert!(job.logs.any() && job.logs.per_job_logs);
    let job =
        accepted(&["log_max_value=both", "log_unix_epoch=1", "log_compression_cpus=0,2-3", "per_job_logs=0"]);
    assert_eq!(job.logs.log_window_value, LogWindow::Both);
    assert!(job.logs.log_alternate_epoch && !job.logs.per_job_logs && !job.logs.any());
    assert_eq!(job.logs.log_compression_cpus, [0, 2, 3]);
    let (_, warnings) = finished(&["write_hist_log=h"]);
    assert_eq!(warnings, ["write_hist_log: the log stays empty without log_hist_msec"]);
    assert!(finished(&["write_hist_log=h", "log_hist_msec=100"]).1.is_empty());
}

#[test]
fn the_last_of_two_opposites_counts() {
    assert_eq!(accepted(&["rwmixread=70", "rwmixwrite=60"]).pattern.rwmixread, 40);
    assert_eq!(accepted(&["rwmixwrite=60", "rwmixread=70"]).pattern.rwmixread, 70);
    assert!(!accepted(&["direct=1", "buffered=1"]).durability.direct);
    assert!(accepted(&["buffered=1", "direct=1"]).durability.direct);
    let job = accepted(&["gtod_reduce=1", "disable_clat=0"]);
    assert_eq!(
        (
            job.measurement.disable_lat,
            job.measurement.disable_clat,
            job.measurement.disable_slat,
            job.measurement.disable_bw
        ),
        (true, false, true, true)
    );
    // gtod_reduce=0 undoes nothing.
    assert!(accepted(&["disable_lat=1", "gtod_reduce=0"]).measurement.disable_lat);
    let job = accepted(&["gtod_reduce=1", "disable_lat=0", "gtod_reduce=0"]);
    assert_eq!((job.measurement.disable_lat, job.measurement.disable_clat), (false, true));
    let sizes = |words: &[&str]| {
        let job = accepted(words);
        Direction::ALL.map(|direction| job.block_size(direction))
    };
    let (split, range) = (BlockSize::Split(vec![(4096, 50), (8192, 50)]), BlockSize::Range(1024, 2048));
    let all = |sizes: &BlockSize| Direction::ALL.map(|_| sizes.clone());
    assert_eq!(sizes(&["bsrange=1k-2k", "bssplit=4k/50:8k"]), all(&split));
    assert_eq!(sizes(&["bssplit=4k/50:8k", "bsrange=1k-2k"]), all(&range));
    // Each direction separately: a setting for writes leaves reads unchanged.
    assert_eq!(sizes(&["bsrange=1k-2k", "bssplit=,4k/50:8k"]), [range.clone(), split.clone(), split.clone()]);
    assert_eq!(sizes(&["bssplit=4k/50:8k", "bsrange=,1k-2k"]), [split, range.clone(), range]);
}

#[test]
fn kb_base_counts_from_where_it_stands() {
    let job = accepted(&["size=1k", "kb_base=1000", "bs=1k"]);
    assert_eq!((job.extent.size, job.pattern.bs[Direction::Read]), (Some(SizeValue::Bytes(1024)), 1000));
}

#[test]
fn engine_options_belong_to_their_engine() {
    assert!(find("hipri", "psync").is_none());
    assert_eq!(accepted(&["ioengine=aio", "userspace_reap"]).ioengine, "libaio");
    let owners: Vec<&str> = find_any_engine("hipri").iter().map(|(engine, _)| engine.name).collect();
    assert_eq!(owners, ["pvsync2", "sg", "io_uring", "io_uring_cmd", "libblkio", "xnvme"]);
    let job =
        accepted(&["ioengine=io_uring", "hipri", "nonvectored=0", "sqthread_poll_cpu=3", "force_async=4"]);
    let own = job.engine.of::<engines::IoUringOptions>().unwrap();
    assert!(own.hipri);
    assert_eq!(own.nonvectored, Some(false));
    assert_eq!((own.sqthread_poll_cpu, own.force_async), (Some(3), 4));
}

#[test]
fn a_load_of_more_than_a_cpu_lands_as_all_of_it() {
    for (value, load) in [("cpuload=1", 1), ("cpuload=100", 100), ("cpuload=250", 100)] {
        let job = accepted(&["ioengine=cpuio", value]);
        assert_eq!(job.engine.of::<engines::CpuioOptions>().unwrap().cpuload, load, "{value}");
    }
}

#[test]
fn an_external_engine_is_the_file_that_it_is_in() {
    let words = ["ioengine=external:./a.so", "arguments=x=1", "ioengine=./a.so"];
    let own = |words: &[&str]| {
        let job = accepted(words);
        let own = job.engine.of::<engines::ExternalOptions>().unwrap();
        (own.library.display().to_string(), own.arguments.clone(), job.is_set("arguments"))
    };
    assert_eq!(own(&words), ("./a.so".into(), "x=1".into(), true));
    let words = ["ioengine=external:./a.so", "arguments=x=1", "ioengine=./b.so"];
    assert_eq!(own(&words), ("./b.so".into(), String::new(), false), "another engine knows nothing of them");
}

#[test]
fn options_of_passed_through_commands_mean_nothing_to_io_uring() {
    for (word, warns) in [("readfua=1", true), ("readfua=0", false), ("cmd_type=bsg", true), ("deac=1", true)]
    {
        let (_, warnings) = job(&["ioengine=io_uring", word]).unwrap();
        assert_eq!(warnings.len(), usize::from(warns), "{word}: {warnings:?}");
        assert!(warnings.iter().all(|warning| warning.contains("has no effect")), "{word}");
    }
    assert!(job(&["ioengine=io_uring", "cmd_type=scsi"]).is_err());
    assert!(job(&["ioengine=io_uring", "deac=maybe"]).is_err());
}

#[test]
fn mistakes_name_place_value_and_remedy() {
    for (word, message) in [
        ("bs=4kk", "job.fio:7:4: bs=4kk: unknown size suffix \"kk\" (k, m, g, t, p, kib, mib, …)"),
        ("iodepth=0", "job.fio:7:4: iodepth=0: must be at least 1"),
        ("direct=2", "job.fio:7:4: direct=2: not 0 or 1"),
        ("numjobs=0", "job.fio:7:4: numjobs=0: a job needs at least 1 worker"),
        ("log_entries=2m", "job.fio:7:4: log_entries=2m: must be at most 1048576"),
        (
            "ioengine=external:",
            "job.fio:7:4: ioengine=external:: external needs the file of the engine, as in external:./engine.so",
        ),
        ("mem=heap", "job.fio:7:4: mem=heap: not one of malloc, shm, shmhuge, mmap, mmapshared, mmaphuge"),
        ("name=", "job.fio:7:4: name=: needs a value"),
        ("size", "job.fio:7:4: size: needs a value"),
        ("rwmixread=50%", "job.fio:7:4: rwmixread=50%: is in percent already, without a % sign"),
        ("filesize=0", "job.fio:7:4: filesize=0: must be at least 1"),
        ("size=101%", "job.fio:7:4: size=101%: a percentage is between 0 and 100"),
    ] {
        assert_eq!(job_of(Name::Iolite, &[word]).map(|_| ()), Err(message.to_owned()), "{word}");
    }
    let error = job(&["ioengine=libaoi"]).unwrap_err();
    assert!(error.ends_with("did you mean \"libaio\"?"), "{error}");
}

#[test]
fn ignored_parts_of_values_are_warnings() {
    for (word, message) in [
        ("size=4x", "job.fio:7:4: size=4x: unknown size suffix \"x\" (k, m, g, t, p, kib, mib, …), ignored"),
        (
            "iodepth=1,2",
            "job.fio:7:4: iodepth=1,2: takes one number; \"2\" behind \"1\" has no effect, leave it out",
        ),
        (
            "size=1m,2m",
            "job.fio:7:4: size=1m,2m: takes one size; \"2m\" behind \"1m\" has no effect, leave it out",
        ),
        ("thread=2", "job.fio:7:4: thread=2: read as 1"),
        ("bs=4x", "job.fio:7:4: bs=4x: unknown size suffix \"x\" (k, m, g, t, p, kib, mib, …), ignored"),
    ] {
        assert_eq!(job(&[word]).unwrap().1, [message], "{word}");
    }
}

#[test]
fn an_option_without_effect_may_be_switched_off() {
    for word in [
        "thinktime=0",
        "verify=0",
        "do_verify=1",
        "rate=0,0",
        "rate_cycle=1000",
        "unified_rw_reporting=0",
        "write_hint=none",
        "latency_target=0us",
        "random_distribution=random",
        "verify_only=0",
        "zone_reset_threshold=0",
    ] {
        assert!(job(&[word]).is_ok(), "{word}");
    }
}

#[test]
fn block_sizes_fill_each_other_in() {
    use BlockSize::{Fixed, Range, Split};
    for (words, expected) in [
        (&["bs=16k", "bsrange=1k-4k,"][..], [Range(1024, 4096), Fixed(16384), Fixed(16384)]),
        (&["bsrange=1k-4k,", "bs=16k"], [Range(1024, 4096), Fixed(16384), Fixed(16384)]),
        (&["bsrange=0-8k"], [Range(4096, 8192), Range(4096, 8192), Range(4096, 8192)]),
        (&["bsrange=1k-4k,2k-8k"], [Range(1024, 4096), Range(2048, 8192), Range(2048, 8192)]),
        (
            &["bssplit=4k/50:8k/50,16k,"],
            [Split(vec![(4096, 50), (8192, 50)]), Split(vec![(16384, 100)]), Fixed(4096)],
        ),
        (
            &["bs=2k", "bsrange=1k-4k,", "bssplit=,16k/100,"],
            [Range(1024, 4096), Split(vec![(16384, 100)]), Fixed(2048)],
        ),
    ] {
        let (job, _) = finished(words);
        assert_eq!(Direction::ALL.map(|direction| job.block_size(direction)), expected, "{words:?}");
    }
}

#[test]
fn a_synchronous_engine_has_a_depth_of_1() {
    let (_, warnings) = finished(&["iodepth=8"]);
    assert_eq!(warnings, ["iodepth=8: ioengine=psync is synchronous, its depth is always 1"]);
    for words in [["ioengine=libaio", "iodepth=8"], ["io_submit_mode=offload", "iodepth=8"]] {
        assert_eq!(finished(&words).1, Vec::<String>::new());
    }
}

#[test]
fn rules_between_options() {
    assert!(!finished(&["zero_buffers"]).0.buffers.scramble_buffers);
    assert!(finished(&["zero_buffers", "scramble_buffers=1"]).0.buffers.scramble_buffers);
    let (job, _) = finished(&["zero_buffers", "buffer_pattern=\"ab\""]);
    assert!(!job.buffers.zero_buffers && !job.buffers.scramble_buffers);
    assert!(!finished(&["pre_read=1"]).0.files.invalidate);
    let (job, warnings) = finished(&["time_based"]);
    assert!(!job.schedule.time_based);
    assert_eq!(warnings.len(), 1);
    assert!(finished(&["time_based", "runtime=1"]).0.schedule.time_based);
    let (job, warnings) = finished(&["rw=randread", "ba=8k"]);
    assert!(job.pattern.norandommap);
    assert_eq!(warnings.len(), 1);
    assert!(!finished(&["rw=randread", "ba=4k"]).0.pattern.norandommap);
    assert!(!finished(&["rw=read", "ba=8k"]).0.pattern.norandommap);
}

#[test]
fn typing_mistakes_are_recognised() {
    assert_eq!(suggest("iodpeth", "psync"), Some("iodepth"));
    assert_eq!(suggest("blcksize", "psync"), Some("blocksize"));
    assert_eq!(suggest("hirpi", "io_uring"), Some("hipri"));
    assert_eq!(suggest("completelywrong", "psync"), None);
}

#[test]
fn a_refused_value_changes_nothing() {
    for definition in job_options().filter(|definition| definition.status() == Status::Works) {
        let before = JobOptions::default();
        let mut job = before.clone();
        if apply(&mut job, definition, Some("?!"), place(), &mut Vec::new(), Name::Fio).is_err() {
            assert_eq!(job, before, "{}", definition.name);
        }
    }
    let (mut job, _) = job(&["bssplit=4k/50:8k"]).unwrap();
    let before = job.clone();
    let definition = find_job("bssplit").unwrap();
    assert!(apply(&mut job, definition, Some("4k/200"), place(), &mut Vec::new(), Name::Fio).is_err());
    assert_eq!(job, before);
}

proptest! {
    #![proptest_config(iolite_testing::properties(256))]

    #[test]
    fn no_option_panics_on_any_value(index in 0usize..400, value in "[ -~é]{0,20}") {
        // Quoted patterns open files of that name: harmless, but not wanted in a test.
        prop_assume!(!value.contains('\''));
        let own = engines::engines().iter().flat_map(|engine| engine.options.iter().copied());
        if let Some(definition) = job_options().chain(own).nth(index) {
            let mut job = JobOptions::default();
            let _ = apply(&mut job, definition, Some(&value), place(), &mut Vec::new(), Name::Fio);
            finish(&mut job, &mut Vec::new());
        }
    }
}
