//! The choice of the engine, and the options that engines have of their own.

use super::see::See::*;
use super::{ABSENT, Effect, row, test};

const SIMPLE: super::See = Calls("preadv2,pwritev2");
const SET_UP: super::See = Calls("io_uring_setup");
const REGISTERED: super::See = Calls("io_uring_register");

/// An option of commands that this engine does not pass through: that it is of no use is told.
macro_rules! passed_through {
    ($option:literal, $value:literal) => {
        row($option, "@ --ioengine=io_uring", ABSENT, $value, Says("has no effect"))
    };
}

pub const TABLE: &[Effect] = &[
    row("ioengine", "@", "psync", "sync", Calls("pread64,lseek")),
    test!("mmap:thp", engines::huge_pages_in_the_mmap_engine),
    test!("external:arguments", external::arguments_reach_the_engine),
    test!("cpuio:cpuload", working::spells_are_as_long_and_as_frequent_as_asked_for),
    test!("cpuio:cpuchunks", working::spells_are_as_long_and_as_frequent_as_asked_for),
    row("cpuio:cpumode", "--ioengine=cpuio --cpuload=50 --runtime=100ms", "noop", "qsort", Says("(qsort)")),
    test!("cpuio:exit_on_io_done", working::busy_jobs_end_with_the_io),
    test!("e4defrag:donorname", extents::blocks_are_swapped_with_those_of_the_donor),
    test!("e4defrag:inplace", extents::blocks_are_swapped_with_those_of_the_donor),
    test!("filestat:stat_type", names::the_kind_of_call_decides_about_links),
    test!("dirstat:stat_type", names::the_kind_of_call_decides_about_links),
    test!("filecreate:uring", names::names_are_acted_on_through_a_ring),
    test!("filestat:uring", names::names_are_acted_on_through_a_ring),
    test!("filedelete:uring", names::names_are_acted_on_through_a_ring),
    test!("dircreate:uring", names::names_are_acted_on_through_a_ring),
    test!("dirstat:uring", names::names_are_acted_on_through_a_ring),
    test!("dirdelete:uring", names::names_are_acted_on_through_a_ring),
    test!("sg:hipri", emulated::scsi::options_are_parts_of_the_commands),
    test!("sg:readfua", emulated::scsi::options_are_parts_of_the_commands),
    test!("sg:writefua", emulated::scsi::options_are_parts_of_the_commands),
    test!("sg:sg_write_mode", emulated::scsi::options_are_parts_of_the_commands),
    test!("sg:stream_id", emulated::scsi::options_are_parts_of_the_commands),
    test!("exec:program", working::a_program_gets_its_arguments_and_its_output_is_kept),
    test!("exec:arguments", working::a_program_gets_its_arguments_and_its_output_is_kept),
    test!("exec:grace_time", working::a_program_has_time_to_end_and_is_killed_after_that),
    test!("exec:std_redirect", working::a_program_gets_its_arguments_and_its_output_is_kept),
    row("pvsync2:hipri", "@ --direct=1 --ioengine=pvsync2", ABSENT, "", SIMPLE),
    row("pvsync2:hipri_percentage", "@ --direct=1 --ioengine=pvsync2 --hipri", "100", "30", SIMPLE),
    row("pvsync2:uncached", "@ --ioengine=pvsync2", "0", "1", SIMPLE),
    row("pvsync2:nowait", "@ --ioengine=pvsync2 --invalidate=0", "0", "1", SIMPLE),
    row("io_uring:hipri", "@ --direct=1 --ioengine=io_uring", ABSENT, "", Attempts("io_uring_setup", "")),
    row("io_uring:fixedbufs", "@ --ioengine=io_uring", ABSENT, "", REGISTERED),
    row("io_uring:registerfiles", "@ --ioengine=io_uring", ABSENT, "", REGISTERED),
    row("io_uring:sqthread_poll", "@ --ioengine=io_uring", ABSENT, "", SET_UP),
    row("io_uring:sqthread_poll_cpu", "@ --ioengine=io_uring --sqthread_poll", "0", "1", SET_UP),
    row("io_uring:uncached", "@ --ioengine=io_uring", "0", "1", Cached),
    row("io_uring:nowait", "@ --ioengine=io_uring", "0", "1", Refused("Resource temporarily unavailable")),
    row(
        "io_uring:force_async",
        "--filename=f --size=16m --ioengine=io_uring --invalidate=0",
        "0",
        "1",
        AtLeast("jobs.0.ctx", 1000.0),
    ),
    Effect::None(
        "io_uring:nonvectored",
        "the two forms of a request differ in the shared ring only; the engine's own tests look at them",
    ),
    test!("io_uring:cmdprio_percentage", priorities::io_uring_hands_priorities_over),
    test!("io_uring:cmdprio_class", priorities::io_uring_hands_priorities_over),
    test!("io_uring:cmdprio", priorities::io_uring_hands_priorities_over),
    Effect::None(
        "io_uring:cmdprio_hint",
        "it is a part of the same number as the other priorities, in the shared ring; libaio's is looked at",
    ),
    test!("io_uring:cmdprio_bssplit", priorities::block_sizes_have_priorities_of_their_own),
    Effect::None(
        "libaio:userspace_reap",
        "completions are always fetched in this way, see docs/compatibility.md",
    ),
    passed_through!("io_uring:readfua", "1"),
    passed_through!("io_uring:writefua", "1"),
    passed_through!("io_uring:write_mode", "verify"),
    passed_through!("io_uring:verify_mode", "compare"),
    passed_through!("io_uring:cmd_type", "bsg"),
    passed_through!("io_uring:cdb_len", "16"),
    passed_through!("io_uring:verify_bytchk", "1"),
    passed_through!("io_uring:read_mode", "prefetch"),
    passed_through!("io_uring:md_per_io_size", "8"),
    passed_through!("io_uring:pi_act", "0"),
    passed_through!("io_uring:pi_chk", "GUARD"),
    passed_through!("io_uring:apptag", "1"),
    passed_through!("io_uring:apptag_mask", "1"),
    passed_through!("io_uring:deac", "1"),
    row("libaio:nowait", "@ --ioengine=libaio", "0", "1", Refused("Resource temporarily unavailable")),
    row("libaio:libaio_vectored", "@ --ioengine=libaio", "0", "1", Calls("io_submit")),
    row(
        "libaio:cmdprio_percentage",
        "@ --ioengine=libaio --cmdprio_class=2 --cmdprio=3",
        "0",
        "100",
        Calls("io_submit"),
    ),
    row(
        "libaio:cmdprio_class",
        "@ --ioengine=libaio --cmdprio_percentage=100 --cmdprio=3",
        "2",
        "3",
        Calls("io_submit"),
    ),
    row(
        "libaio:cmdprio",
        "@ --ioengine=libaio --cmdprio_percentage=100 --cmdprio_class=2",
        "1",
        "3",
        Calls("io_submit"),
    ),
    row(
        "libaio:cmdprio_hint",
        "@ --ioengine=libaio --cmdprio_percentage=100 --cmdprio_class=2",
        "0",
        "3",
        Calls("io_submit"),
    ),
    row("libaio:cmdprio_bssplit", "@ --ioengine=libaio", "4k/0/2/1", "4k/100/2/1", Calls("io_submit")),
];
