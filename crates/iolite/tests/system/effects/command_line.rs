//! Options of the run as a whole.

use super::see::See::*;
use super::{ABSENT, Effect, row, test};

const JOB: &str = "--name=j --ioengine=null --size=4k";
/// Long enough for whatever comes every quarter of a second to come.
const LONG: &str = "--name=j --ioengine=null --size=4k --time_based --runtime=4s";
const LIVE: &str = "--name=j --ioengine=null --size=4k --time_based --runtime=4s --eta=always";

pub const TABLE: &[Effect] = &[
    row("help", JOB, ABSENT, "", Says("Usage: ")),
    row("version", JOB, ABSENT, "", Says("Run status")),
    row("cmdhelp", JOB, ABSENT, "bs", Says("Block size in bytes")),
    row("enghelp", JOB, ABSENT, "libaio", Says("libaio_vectored")),
    row("showcmd", "job.fio", ABSENT, "", Says("--name=second")),
    row("parse-only", JOB, ABSENT, "", Says("Run status")),
    row(
        "warnings-fatal",
        "--eta=nonsense --name=j --ioengine=null --size=4k",
        ABSENT,
        "",
        Refused("taken as auto"),
    ),
    row("section", "job.fio", "first", "second", Says("\nsecond: ")),
    row(
        "readonly",
        "--name=j --ioengine=null --size=4k --rw=write",
        ABSENT,
        "",
        Refused("--readonly forbids that"),
    ),
    row("output", JOB, ABSENT, "report", Says("Run status")),
    row("output-format", JOB, "normal", "json", Says("\"jobs\" : [")),
    row("minimal", JOB, ABSENT, "", Says(";j;0;0;")),
    row("append-terse", JOB, ABSENT, "", Says(";j;0;0;")),
    test!("save", keeping::a_run_is_kept_with_all_that_was_measured),
    test!("store", keeping::a_run_is_kept_with_all_that_was_measured),
    test!("repeat", repeating::files_take_turns_and_are_compared),
    row("terse-version", "--minimal --name=j --ioengine=null --size=4k", "3", "5", Says("5;iolite")),
    row(
        "eta",
        "--name=j --ioengine=null --size=4k --time_based --runtime=4s --eta-interval=250ms",
        "always",
        "never",
        Shows("Jobs: 1", 1),
    ),
    row("eta-interval", LIVE, "250ms", "1h", Shows("Jobs: 1", 1)),
    row(
        "eta-newline",
        "--name=j --ioengine=null --size=4k --time_based --runtime=4s --eta=always --eta-interval=250ms",
        "250ms",
        ABSENT,
        Shows("]\r\nJobs: 1", 1),
    ),
    row("status-interval", LONG, "100ms", ABSENT, Shows("Run status group 0", 2)),
    row("bandwidth-log", JOB, ABSENT, "", Names),
    test!("inflate-log", logs::compressed_logs_go_both_ways),
    row("idle-prof", JOB, ABSENT, "system", Says("CPU idleness")),
    Effect::None("max-jobs", "as in fio, as many workers run as there are jobs, whatever number it gives"),
    Effect::None(
        "alloc-size",
        "memory for shared state is sized from the jobs, so there is nothing to reserve",
    ),
    test!("aux-path", watching::a_file_asks_for_a_status),
    row("debug", JOB, ABSENT, "parse", Says("parse ")),
    row("crctest", JOB, ABSENT, "md5", Says("md5:")),
    row("cpuclock-test", JOB, ABSENT, "", Says("readings")),
    row("memcpytest", JOB, ABSENT, "simple", Says("524288 bytes:")),
    test!("trigger-file", watching::a_trigger_file_runs_the_command_and_ends_the_run),
    test!("trigger-timeout", watching::a_trigger_by_time_ends_the_run),
    test!("trigger", watching::a_trigger_that_fails_is_told),
    test!("server", remote::a_job_runs_where_the_server_is),
    test!("client", remote::a_job_runs_where_the_server_is),
    test!("daemonize", remote::a_server_in_the_background),
    test!("remote-config", remote::several_machines_have_one_result),
    test!("mpi", launched::ranks_meet_in_a_directory),
    test!("push", over_ssh::the_program_is_sent_along),
    test!("client-lost", remote::who_is_silent_is_lost),
    test!("client-timeout", remote::the_jobs_of_a_silent_client_are_ended),
    test!("serve-exec", remote::a_server_says_what_it_may_be_asked_to_do),
    test!("serve-only", serving::nothing_but_what_is_served_can_be_used),
    test!("keys", keys::machines_with_keys_of_one_set_work_together),
    test!("insecure", remote::without_protection_only_when_asked_for),
    test!("web", live::a_page_is_for_who_has_the_address),
    test!("web-linger", live::a_page_that_lingers),
    test!("profile", profiles::options_of_tiobench),
    row("latency-log", JOB, ABSENT, "x", Refused("superseded by the job option write_lat_log")),
];
