//! There is a warning about an option that has no effect without another.

use super::*;

fn warnings(text: &str) -> Vec<String> {
    run_with(&["-"], text).warnings
}

#[test]
fn an_option_without_its_leader_has_no_effect() {
    assert_eq!(
        warnings("[a]\nlog_avg_msec=100\nflow_sleep=3\nverify_dump=1\n"),
        [
            "-:2:14: log_avg_msec: has no effect without a log (write_bw_log, write_lat_log, write_iops_log, write_hist_log \
             or write_asked_log)",
            "-:3:12: flow_sleep: has no effect without flow",
            "-:4:13: verify_dump: has no effect without verify",
        ]
    );
    assert_eq!(
        warnings("[a]\nlog_avg_msec=100\nwrite_bw_log=x\nflow_sleep=3\nflow=1\nverify_dump=1\nverify=md5\n"),
        [""; 0]
    );
}

#[test]
fn the_first_of_several_unmet_needs_is_reported() {
    let alone = warnings("[a]\ndedupe_global=1\n");
    assert_eq!(alone, ["-:2:15: dedupe_global: has no effect without dedupe_percentage"]);
    let half = warnings("[a]\ndedupe_global=1\ndedupe_percentage=10\n");
    assert_eq!(half, ["-:2:15: dedupe_global: has no effect without dedupe_mode=working_set"]);
    assert_eq!(warnings("[a]\ndedupe_global=1\ndedupe_percentage=10\ndedupe_mode=working_set\n"), [""; 0]);
}

#[test]
fn a_default_asks_for_nothing() {
    assert_eq!(
        warnings(
            "[a]\nlog_avg_msec=0\nrate_process=linear\nexit_what=group\nper_job_logs=1\nreplay_scale=1\n"
        ),
        [""; 0]
    );
    assert_eq!(warnings("[a]\nper_job_logs=0\n").len(), 1);
}

#[test]
fn a_global_option_used_by_one_job_causes_no_warning() {
    assert_eq!(warnings("[global]\nthinktime_blocks=4\n[a]\n[b]\nthinktime=10\n[c]\n"), [""; 0]);
    let told = warnings("[global]\nthinktime_blocks=4\n[a]\n[b]\n");
    assert_eq!(told, ["-:2:18: thinktime_blocks: has no effect without thinktime"]);
    let line = run(&["--latency_run=1", "--name=a", "--name=b", "--latency_target=1ms"]);
    assert_eq!(line.warnings, [""; 0]);
    assert_eq!(
        run(&["--name=a", "--latency_run=1", "--name=b", "--latency_target=1ms"]).warnings,
        ["command line: latency_run: has no effect without latency_target"]
    );
}

#[test]
fn workload_options_without_their_basis_have_no_effect() {
    for (alone, leader, enough) in [
        ("rw_sequencer=identical", "a number behind rw (rw=randread:8)", "rw=randread:8"),
        ("rwmixread=70", "a mix (rw=rw or rw=randrw)", "rw=randrw"),
        ("rwmixwrite=30", "a mix (rw=rw or rw=randrw)", "rw=rw"),
        ("zoneskip=1m", "zonemode=strided or zbd", "zonemode=strided\nzonesize=1m"),
        ("openfiles=2", "several files (nrfiles, filename or opendir)", "filename=a:b"),
        ("file_service_type=random", "several files (nrfiles, filename or opendir)", "nrfiles=3"),
        ("error_dump=1", "continue_on_error or ignore_error", "continue_on_error=write"),
        ("error_dump=1", "continue_on_error or ignore_error", "ignore_error=ENOSPC"),
    ] {
        let option = alone.split_once('=').unwrap().0;
        let column = option.len() + 2;
        let told = warnings(&format!("[a]\n{alone}\n"));
        assert_eq!(told, [format!("-:2:{column}: {option}: has no effect without {leader}")]);
        assert_eq!(warnings(&format!("[a]\n{alone}\n{enough}\n")), [""; 0]);
    }
    // Shares that agree with the job, and a limit that equals the number of files, have no effect, so no warning.
    for job in
        ["rw=randread\nrwmixread=100", "rw=write\nrwmixread=0", "rw=write\nrwmixwrite=100", "openfiles=1"]
    {
        assert_eq!(warnings(&format!("[a]\n{job}\n")), [""; 0], "{job}");
    }
    // Neither do defaults.
    let defaults = "rwmixread=50\nrw_sequencer=sequential\nfile_service_type=roundrobin\nerror_dump=0";
    assert_eq!(warnings(&format!("[a]\n{defaults}\n")), [""; 0]);
}

#[test]
fn limits_of_open_zones_are_for_jobs_that_write() {
    let told = |rw: &str, name: Name| {
        let text = format!("[a]\nzonemode=zbd\nrw={rw}\njob_max_open_zones=2\n");
        match invoke_as(&["-".into()], &text, name) {
            Ok(Invocation::Run { warnings, .. }) => {
                warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    };
    let words = "-:4:20: job_max_open_zones: ";
    let (own, of_fio) =
        ("has no effect without writes (rw)", "'job_max_open_zones' is valid only for write jobs");
    assert_eq!(told("randread", Name::Iolite), [format!("{words}{own}")]);
    assert_eq!(told("randread", Name::Fio), [format!("{words}{of_fio} ({own})")]);
    assert_eq!(told("randrw", Name::Fio), [""; 0]);
}

#[test]
fn replays_need_a_trace() {
    assert_eq!(warnings("[a]\nreplay_skip=trim\nmerge_blktrace_file=x\n").len(), 2);
    assert_eq!(warnings("[a]\nreplay_skip=trim\nread_iolog=x\n"), [""; 0]);
}

#[test]
fn no_pause_is_longer_than_it_is() {
    let told = warnings("[a]\nthinktime=10\nthinktime_spin=20\n");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("-:3:16: thinktime_spin: 20 µs are longer than the pause of 10 µs"),
        "{told:?}"
    );
    assert_eq!(job_of("[a]\nthinktime=10\nthinktime_spin=20\n").rates.thinktime_spin, 10);
}

/// Places are stored under canonical names.
#[test]
fn the_table_names_options() {
    let canonical: Vec<&str> = crate::registry::job_options()
        .chain(crate::engines::engines().iter().flat_map(|engine| engine.options.iter().copied()))
        .map(|definition| definition.name)
        .collect();
    for name in crate::dependencies::names() {
        assert!(canonical.contains(&name), "{name}");
    }
}

/// With a pattern, no data can be duplicated, unless a part of each block is compressible.
#[test]
fn duplicates_of_a_pattern_are_warned_of() {
    let warnings = |more: &str| {
        run(&["--name=x", "--size=1m", "--buffer_pattern=0x11", "--dedupe_percentage=50", more]).warnings
    };
    let told = "command line: dedupe_percentage: has no effect together with buffer_pattern";
    assert_eq!(warnings("--rw=write"), [told]);
    assert_eq!(warnings("--buffer_compress_percentage=50"), [""; 0]);
}
