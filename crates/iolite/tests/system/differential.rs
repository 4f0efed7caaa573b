//! Runs the same job under Iolite and under an installed fio, and checks that the required parts are equal.
//!
//! These are the exit status, the resulting files with their sizes, the numbers of I/Os and bytes per direction, the
//! tree of keys and types in JSON, and the skeleton of the `normal` report; for some jobs also each read and write
//! system call, or the final content of the files. If a part of a job is random (the blocks, the direction), the row
//! says so: our random sequences differ from fio's.

use crate::common::comparison::{Counts, Report, compare_reports};
use crate::common::program::Finished;
use crate::common::trace::{Call, io_calls};
use crate::common::{Json, Program, at_once, files_in, peers, scratch, words};
use iolite_testing::{partly_skipped, this_test};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;

/// The parts that are compared besides reports and sizes.
#[derive(Clone, Copy, PartialEq)]
enum Beyond {
    Nothing,
    /// Every pread and pwrite, in order.
    CallsInOrder,
    /// Every pread and pwrite, in any order.
    Calls,
    /// Every offset with its length, in any order and direction.
    Offsets,
    /// The bytes in the files.
    Content,
}

use Beyond::{Calls, CallsInOrder, Content, Nothing, Offsets};
use Counts::{Exact, Open, Sum};

type Case = (Counts, Beyond, &'static str);

/// Each case runs in a directory with a file `ready` of 1 MiB, an empty directory `d1`, a directory `d2` with a file
/// `inner` of 64 KiB, and [`JOB_FILES`].
const JOB: &[Case] = &[
    (Exact, Nothing, "--name=plain --size=1M"),
    (Exact, Nothing, "--name=a-description --description=what_it_is --size=1M"),
    (Exact, CallsInOrder, "--name=loops --loops=3 --filename=ready --size=64k"),
    (Exact, Nothing, "--name=clones --numjobs=3 --size=256k"),
    (Exact, Nothing, "--name=threads --numjobs=3 --thread --size=256k"),
    (Exact, Nothing, "--name=grouped --numjobs=3 --size=256k --group_reporting"),
    (Exact, Nothing, "--name=first --rw=write --size=256k --name=second --stonewall --size=128k"),
    (Exact, Nothing, "--name=one --size=64k --name=two --size=64k --new_group"),
    (
        Exact,
        Nothing,
        "--name=g1 --size=64k --numjobs=2 --group_reporting --name=g2 --new_group --numjobs=2 --size=64k --group_reporting",
    ),
    (Exact, Nothing, "--name=first --rw=write --size=64k --name=second --wait_for=first --size=64k"),
    (Exact, Nothing, "--name=last --exitall --exit_what=all --size=64k --name=never --stonewall --size=128k"),
    (Exact, Nothing, "--name=delayed --startdelay=200ms --size=64k"),
    (Open, Nothing, "--name=timed --size=1M --time_based --runtime=700ms"),
    (Open, Nothing, "--name=ramped --size=1M --time_based --runtime=700ms --ramp_time=300ms"),
    (Exact, Nothing, "--name=shown --size=64k --name=silent --stats=0 --size=64k"),
    (Exact, Nothing, "--name=mixed --thread --numjobs=2 --size=64k --name=processes --numjobs=2 --size=64k"),
];

/// Jobs that only a job file can express.
const JOB_FILES: &[(&str, &str)] = &[
    ("limited", "[global]\nrw=write\nsize=64k\nfilename=a:b:c\n[a]\nnrfiles=1\n[b]\nnrfiles=2\n"),
    (
        "renamed",
        "[global]\nsize=64k\nrw=write\n[a]\nname=same\n[b]\nname=same\nfilename_format=$jobname.$filenum\n",
    ),
];

const FILES: &[Case] = &[
    (Exact, Nothing, "renamed"),
    (Exact, Nothing, "limited"),
    (Exact, Nothing, "--name=j --rw=write --filename=a:b:c --nrfiles=2 --size=300k"),
    (Exact, Nothing, "--name=j --rw=write --nrfiles=2 --filename=a:b:c --size=300k"),
    (Exact, Nothing, "--name=j --directory=d1 --size=256k --numjobs=2"),
    (Exact, Nothing, "--name=j --directory=d1:d2 --size=256k --numjobs=5"),
    (Exact, Nothing, "--name=j --directory=d1:d2 --filename=a:b --size=256k --numjobs=3"),
    (Exact, Nothing, "--name=j --directory=made/on/the/way --rw=write --size=64k"),
    (Exact, Nothing, "--name=j --filename=a:b:c --size=300k"),
    (Exact, Nothing, "--name=j --filename=a --rw=write --filename=b:c --size=300k"),
    (Exact, Nothing, "--name=j --nrfiles=3 --size=1M"),
    (
        Exact,
        Nothing,
        "--name=j --filename_format=x.$jobname.$jobnum.$filenum --nrfiles=2 --numjobs=2 --size=64k",
    ),
    (Exact, Nothing, "--name=j --directory=d1 --unique_filename=0 --size=64k --numjobs=2"),
    (Exact, Nothing, "--name=j --nrfiles=4 --openfiles=2 --size=1M --rw=randread"),
    (Exact, CallsInOrder, "--name=j --nrfiles=4 --size=64k --rw=write --file_service_type=roundrobin:2"),
    (Exact, CallsInOrder, "--name=j --nrfiles=4 --size=64k --rw=write --file_service_type=sequential"),
    (Exact, Calls, "--name=j --nrfiles=4 --size=64k --rw=write --file_service_type=random"),
    (Exact, Nothing, "--name=j --filesize=128k --nrfiles=3 --rw=write"),
    (Exact, Nothing, "--name=j --filesize=128k --nrfiles=3 --size=64k --rw=write"),
    (Exact, Nothing, "--name=j --offset=900k --filesize=1m"),
    (Exact, CallsInOrder, "--name=j --rw=write --offset=256k --filesize=1m"),
    (Exact, CallsInOrder, "--name=j --rw=write --filesize=1m --size=50%"),
    (Exact, CallsInOrder, "--name=j --rw=write --filesize=1m --size=50% --io_size=25%"),
    (Exact, CallsInOrder, "--name=j --rw=write --filesize=1m --size=50% --offset=256k"),
    (Exact, Nothing, "--name=j --rw=write --size=1m --fill_device=1"),
    (Exact, Nothing, "--name=j --filename=/dev/zero --rw=write --size=1m --fill_device=1"),
    (Exact, CallsInOrder, "--name=j --filename=ready --size=25%"),
    (Exact, CallsInOrder, "--name=j --filename=ready --size=1M --io_size=128k"),
    (Exact, CallsInOrder, "--name=j --filename=ready --size=128k --io_size=320k"),
    (Exact, CallsInOrder, "--name=j --filename=ready --offset=256k --size=128k"),
    (Exact, CallsInOrder, "--name=j --filename=ready --offset=50%"),
    (Exact, CallsInOrder, "--name=j --filename=ready --offset=25% --size=128k"),
    (Exact, Calls, "--name=j --filename=ready --offset_increment=128k --numjobs=3 --size=64k"),
    (Exact, CallsInOrder, "--name=j --filename=ready --offset=33% --offset_align=64k --size=64k"),
    (Exact, CallsInOrder, "--name=j --filename=ready --rw=write --file_append=1 --size=64k"),
    (
        Exact,
        CallsInOrder,
        "--name=j --filename=ready --rw=write --file_append=1 --size=64k --io_size=24k --loops=3",
    ),
    (
        Exact,
        CallsInOrder,
        "--name=j --rw=write --file_append=1 --size=64k --nrfiles=2 --time_based --runtime=60",
    ),
    (Exact, Nothing, "--name=j --rw=randwrite --file_append=1 --size=64k --number_ios=3 --loops=2"),
    (
        Exact,
        Nothing,
        "--name=j --rw=randwrite --file_append=1 --size=64k --random_distribution=zipf --loops=3",
    ),
    (Exact, Nothing, "--name=j --filename=/dev/zero --rw=write --file_append=1 --size=64k --loops=2"),
    (Exact, CallsInOrder, "--name=j --filename=ready --number_ios=10"),
    (Exact, Nothing, "--name=j --filename=ready --rw=randread --number_ios=10"),
    (Exact, Nothing, "--name=j --create_serialize=0 --numjobs=3 --size=64k"),
    (Exact, Nothing, "--name=j --create_fsync=0 --size=64k"),
    (Exact, Nothing, "--name=j --rw=write --create_on_open=1 --nrfiles=3 --size=192k"),
    (Exact, Nothing, "--name=j --create_only=1 --nrfiles=3 --size=192k"),
    (Exact, Nothing, "--name=j --create_only=1 --numjobs=2 --size=64k --unlink=1"),
    (Exact, Nothing, "--name=j --create_only=1 --size=64k --unlink_each_loop=1 --loops=2"),
    (Exact, Nothing, "--name=j --create_only=1 --size=64k --numjobs=2 --write_lat_log=l --write_bw_log=l"),
    (
        Exact,
        Nothing,
        "--name=j --create_only=1 --size=64k --write_hist_log=l --log_hist_msec=9 --per_job_logs=0",
    ),
    (Exact, Nothing, "--name=j --filename=nosuch --allow_file_create=0 --size=64k"),
    (Exact, Nothing, "--name=j --rw=write --overwrite=1 --size=256k"),
    (Exact, Nothing, "--name=j --rw=write --fallocate=none --size=256k"),
    (Exact, Nothing, "--name=j --rw=write --fallocate=posix --size=256k"),
    (Exact, Nothing, "--name=j --rw=write --fallocate=keep --size=256k"),
    (Exact, Nothing, "--name=j --rw=write --fallocate=truncate --size=256k"),
    (Exact, Nothing, "--name=j --filename=ready --pre_read=1"),
    (Exact, Nothing, "--name=j --filename=ready --invalidate=0"),
    (Exact, Nothing, "--name=j --filename=ready --fadvise_hint=0"),
    (Exact, Nothing, "--name=j --filename=ready --fadvise_hint=random"),
    (Exact, Nothing, "--name=j --filename=ready --fadvise_hint=sequential"),
    (Exact, Nothing, "--name=j --filename=ready --unlink=1"),
    (Exact, Nothing, "--name=j --rw=write --nrfiles=2 --size=64k --unlink_each_loop=1 --loops=2"),
    (Exact, Nothing, "--name=j --rw=write --nrfiles=3 --size=64k --unlink_each_loop=1 --loops=2"),
    (Exact, Nothing, "--name=j --rw=randwrite --size=100000 --unlink_each_loop=1 --loops=3"),
    (Exact, Nothing, "--name=j --rw=write --filename=shared --size=64k --lockfile=exclusive --numjobs=2"),
    (Exact, Nothing, "--name=j --filename=ready --lockfile=readwrite --numjobs=2"),
    (
        Exact,
        Nothing,
        "--name=j --rw=write --size=64k --lockfile=exclusive --nrfiles=2 --openfiles=1 --create_on_open=1",
    ),
    (
        Exact,
        Nothing,
        "--name=j --rw=write --size=64k --lockfile=readwrite --nrfiles=2 --openfiles=1 --create_on_open=1 \
         --file_service_type=sequential --ioengine=libaio --iodepth=4",
    ),
    (Exact, Nothing, "--name=j --ioengine=null --size=64k --lockfile=exclusive"),
    (Exact, Nothing, "--name=j --opendir=d2"),
];

const PATTERN: &[Case] = &[
    (Exact, CallsInOrder, "--name=j --filename=ready --rw=read"),
    (Exact, CallsInOrder, "--name=j --filename=ready --rw=write"),
    (Exact, Calls, "--name=j --filename=ready --rw=randread"),
    (Exact, Calls, "--name=j --filename=ready --rw=randwrite"),
    (Sum, Nothing, "--name=j --filename=ready --rw=rw"),
    (Sum, Nothing, "--name=j --filename=ready --rw=readwrite"),
    (Sum, Offsets, "--name=j --filename=ready --rw=randrw"),
    (Exact, CallsInOrder, "--name=j --filename=ready --rw=write:4k --size=64k"),
    (Exact, CallsInOrder, "--name=j --filename=ready --rw=read:-12k --size=64k"),
    (Exact, Nothing, "--name=j --filename=ready --rw=randread:8"),
    (Exact, Nothing, "--name=j --filename=ready --rw=randread:8 --rw_sequencer=sequential"),
    (Exact, Nothing, "--name=j --filename=ready --rw=randwrite:4 --rw_sequencer=identical"),
    (Exact, CallsInOrder, "--name=j --filename=ready --rw=randrw --rwmixread=100 --number_ios=1 --size=4k"),
    (Exact, Calls, "--name=j --filename=ready --rw=randrw --rwmixread=0"),
    (Exact, Calls, "--name=j --filename=ready --rw=randrw --rwmixwrite=0"),
    (Sum, Nothing, "--name=j --filename=ready --rw=randrw --rwmixread=70"),
    (Exact, CallsInOrder, "--name=j --filename=ready --rw=read --percentage_random=0"),
    (Exact, Nothing, "--name=j --filename=ready --rw=read --percentage_random=50"),
    (Exact, CallsInOrder, "--name=j --filename=ready --bs=16k"),
    (Exact, CallsInOrder, "--name=j --filename=ready --bs=8k,32k --rw=write"),
    (Exact, CallsInOrder, "--name=j --filename=ready --bs=8k,32k --rw=read"),
    (Exact, CallsInOrder, "--name=j --filename=ready --bs=,8k --rw=read"),
    (Exact, CallsInOrder, "--name=j --filename=ready --bs=,8k, --rw=write"),
    (Exact, CallsInOrder, "--name=j --filename=ready --bs=5000 --rw=read"),
    (Exact, CallsInOrder, "--name=j --filename=ready --bs=96k --rw=read"),
    (Exact, Calls, "--name=j --filename=ready --bs=96k --rw=randread"),
    (Open, Nothing, "--name=j --filename=ready --bsrange=1k-4k"),
    (Open, Nothing, "--name=j --filename=ready --bsrange=1k-4k,2k-8k --rw=randrw --norandommap"),
    (Open, Nothing, "--name=j --filename=ready --bssplit=4k/10:64k/50:32k/40"),
    (Open, Nothing, "--name=j --filename=ready --bssplit=4k/50:1k/:32k/ --rw=randread"),
    (Open, Nothing, "--name=j --filename=ready --bssplit=4k/50:8k/50,16k/100 --rw=rw"),
    // For each direction, the last given range or split applies.
    (Exact, CallsInOrder, "--name=j --filename=ready --rw=read --bsrange=16k-16k --bssplit=,4k/100"),
    (Exact, CallsInOrder, "--name=j --filename=ready --rw=read --bssplit=16k/100 --bsrange=,8k-8k"),
    (Exact, CallsInOrder, "--name=j --filename=ready --rw=write --bssplit=16k/100 --bsrange=8k-8k,"),
    (Open, Nothing, "--name=j --filename=ready --bsrange=512-4k --bs_unaligned=1"),
    (Exact, Nothing, "--name=j --filename=ready --rw=randread --bs=4k --ba=64k --norandommap"),
    (
        Open,
        Nothing,
        "--name=j --filename=ready --rw=read --percentage_random=50 --bs=16k,4k --bs_is_seq_rand=1",
    ),
    (Exact, Nothing, "--name=j --filename=ready --rw=randread --norandommap"),
    (Exact, Nothing, "--name=j --filename=ready --rw=randread --softrandommap=1"),
    (Exact, Calls, "--name=j --filename=ready --rw=randread --random_generator=lfsr"),
    (Exact, Calls, "--name=j --filename=ready --rw=randread --random_generator=tausworthe64"),
    (Exact, Calls, "--name=j --filename=ready --rw=randread --randrepeat=0"),
    (Exact, Calls, "--name=j --filename=ready --rw=randread --randseed=4711"),
    (Exact, Calls, "--name=j --filename=ready --rw=randread --loops=2 --size=256k"),
    (Exact, Nothing, "--name=j --filename=ready --rw=randread --size=256k --io_size=1M"),
];

const DURABILITY: &[Case] = &[
    (Exact, Calls, "--name=j --filename=ready --direct=1 --rw=randwrite"),
    (Exact, Calls, "--name=j --filename=ready --buffered=0 --rw=randread"),
    (Exact, Nothing, "--name=j --filename=ready --sync=1 --rw=write --size=64k"),
    (Exact, Nothing, "--name=j --filename=ready --sync=sync --rw=write --size=64k"),
    (Exact, Nothing, "--name=j --filename=ready --sync=dsync --rw=write --size=64k"),
    (Exact, Nothing, "--name=j --filename=ready --fsync=4 --rw=write --size=256k"),
    (Exact, Nothing, "--name=j --filename=ready --fsync=1 --rw=randwrite --size=64k"),
    (Exact, Nothing, "--name=j --filename=ready --write_barrier=4 --rw=write --size=256k"),
    (Exact, Nothing, "--name=j --filename=ready --end_fsync=1 --rw=write"),
    (Exact, Nothing, "--name=j --filename=ready --fsync_on_close=1 --rw=write"),
    (Exact, Nothing, "--name=j --filename=ready --fsync=4 --rw=read"),
];

const BUFFERS: &[Case] = &[
    (Exact, Content, "--name=j --filename=ready --rw=randwrite --zero_buffers"),
    (Exact, Content, "--name=j --filename=ready --rw=write --buffer_pattern=0xdeadbeef"),
    (Exact, Content, "--name=j --filename=ready --rw=write --buffer_pattern=\"abcd\"-12"),
    (Exact, Content, "--name=j --filename=ready --rw=write --buffer_pattern=0xff\"text\"7 --bs=5k"),
    (Exact, Nothing, "--name=j --filename=ready --rw=write --refill_buffers"),
    (Exact, Nothing, "--name=j --filename=ready --rw=write --scramble_buffers=0"),
    (Exact, Nothing, "--name=j --filename=ready --mem=malloc"),
    (Exact, Nothing, "--name=j --filename=ready --mem=mmap"),
    (Exact, Nothing, "--name=j --filename=ready --mem=mmapshared"),
    (Exact, Nothing, "--name=j --filename=ready --mem=shm"),
    (Exact, Nothing, "--name=j --filename=ready --mem=mmap:d1/backing --rw=write"),
    (Exact, Nothing, "--name=j --filename=ready --mem_align=64k"),
    (Exact, Nothing, "--name=j --filename=ready --iomem_align=8k --direct=1"),
    (Exact, Nothing, "--name=j --filename=ready --lockmem=1m"),
];

const DEPTH: &[Case] = &[
    (Exact, Nothing, "--name=j --filename=ready --ioengine=libaio --iodepth=8 --direct=1 --rw=randread"),
    (Exact, Nothing, "--name=j --filename=ready --ioengine=io_uring --iodepth=8 --rw=randwrite"),
    (Exact, Nothing, "--name=j --filename=ready --ioengine=posixaio --iodepth=8 --rw=randread"),
    (Exact, Nothing, "--name=j --filename=ready --ioengine=libaio --iodepth=16 --iodepth_batch=4 --rw=read"),
    (
        Exact,
        Nothing,
        "--name=j --filename=ready --ioengine=libaio --iodepth=16 --iodepth_batch_submit=8 --iodepth_batch_complete_min=2 --iodepth_batch_complete_max=8",
    ),
    (Exact, Nothing, "--name=j --filename=ready --ioengine=libaio --iodepth=16 --iodepth_low=2 --rw=write"),
    (
        Exact,
        Nothing,
        "--name=j --filename=ready --ioengine=libaio --iodepth=16 --serialize_overlap=1 --norandommap --rw=randwrite",
    ),
    (Exact, Nothing, "--name=j --filename=ready --ioengine=psync --iodepth=16"),
    (Exact, Nothing, "--name=j --filename=ready --ioengine=mmap --rw=write"),
    (Exact, Nothing, "--name=j --filename=ready --ioengine=vsync --rw=randread"),
    (Exact, Nothing, "--name=j --filename=ready --ioengine=pvsync --rw=randread"),
    (
        Exact,
        Content,
        "--name=j --filename=ready --ioengine=pvsync --bs=6k --rw=write --buffer_pattern=0xdeadbeef",
    ),
    (Sum, Nothing, "--name=j --filename=ready --ioengine=pvsync --rw=randrw --fsync=8 --iodepth=4"),
    (Exact, Nothing, "--name=j --filename=ready --ioengine=pvsync2 --rw=randwrite"),
    (Exact, Nothing, "--name=j --ioengine=null --size=4M --iodepth=32"),
    (Exact, Nothing, "--name=j --ioengine=null --size=4M --numjobs=2 --group_reporting --rw=randwrite"),
];

const PLACEMENT: &[Case] = &[
    (Exact, Nothing, "--name=j --filename=ready --cpus_allowed=0"),
    (Exact, Nothing, "--name=j --filename=ready --cpumask=1"),
    (Exact, Nothing, "--name=j --filename=ready --cpus_allowed=0-1 --cpus_allowed_policy=split --numjobs=2"),
    (Exact, Nothing, "--name=j --filename=ready --nice=5"),
    (Exact, Nothing, "--name=j --filename=ready --prioclass=2 --prio=7"),
];

const MEASUREMENT: &[Case] = &[
    (Exact, Nothing, "--name=j --filename=ready --clocksource=clock_gettime"),
    (Exact, Nothing, "--name=j --filename=ready --clocksource=gettimeofday"),
    (Exact, Nothing, "--name=j --filename=ready --clocksource=cpu"),
    (Exact, Nothing, "--name=j --filename=ready --gtod_reduce=1"),
    (Exact, Nothing, "--name=j --filename=ready --disable_lat=1"),
    (Exact, Nothing, "--name=j --filename=ready --disable_clat=1"),
    (Exact, Nothing, "--name=j --filename=ready --disable_slat=1 --ioengine=libaio --iodepth=4"),
    (Exact, Nothing, "--name=j --filename=ready --disable_bw=1"),
    (Exact, Nothing, "--name=j --filename=ready --lat_percentiles=1 --clat_percentiles=0"),
    (
        Exact,
        Nothing,
        "--name=j --filename=ready --slat_percentiles=1 --clat_percentiles=1 --lat_percentiles=1 --ioengine=libaio --iodepth=4",
    ),
    (Exact, Nothing, "--name=j --filename=ready --clat_percentiles=0"),
    (Exact, Nothing, "--name=j --filename=ready --percentile_list=50:99:99.9"),
    (Exact, Nothing, "--name=j --filename=ready --unified_rw_reporting=mixed --lat_percentiles=1"),
    (Exact, Nothing, "--name=j --filename=ready --unified_rw_reporting=both --numjobs=2 --group_reporting"),
    (Exact, Nothing, "--name=j --filename=ready --kb_base=1000 --bs=4096"),
    (Exact, Nothing, "--name=j --filename=ready --unit_base=8"),
    (Exact, Nothing, "--name=j --filename=ready --disk_util=0"),
    (
        Open,
        Nothing,
        "--name=j --filename=ready --bwavgtime=100 --iopsavgtime=100 --time_based --runtime=700ms",
    ),
    (Exact, Nothing, "--name=j --filename=ready --significant_figures=6"),
];

/// Engines that work without I/O. The timing of fio is different, so only the presence of jobs and outputs is compared.
const WORK: &[Case] = &[
    (Open, Nothing, "--name=c --ioengine=cpuio --cpuload=20 --cpuchunks=2000 --runtime=1"),
    (
        Open,
        Nothing,
        "--name=c --ioengine=cpuio --cpuload=20 --cpuchunks=2000 --exit_on_io_done=1 --runtime=1",
    ),
    (
        Open,
        Nothing,
        "--name=c --ioengine=cpuio --cpuload=20 --cpuchunks=2000 --exit_on_io_done=1 --name=d --startdelay=1 --ioengine=null --size=4k",
    ),
    (Open, Nothing, "--name=e --ioengine=exec --program=seq --arguments=1000 --runtime=1"),
    (Open, Nothing, "--name=e --ioengine=exec --program=false --runtime=1"),
    (Open, Nothing, "--name=e --ioengine=exec --program=ls --arguments=./none --runtime=1 --thread"),
    (Open, Nothing, "--name=e --ioengine=exec --program=sleep --arguments=100 --grace_time=1 --runtime=1"),
    (Open, Nothing, "--name=e --ioengine=exec --program=echo --arguments=%n_%r --std_redirect=0 --runtime=1"),
];

#[test]
fn jobs() {
    compare_all(JOB);
}

#[test]
fn work() {
    compare_all(WORK);
}

#[test]
fn files() {
    compare_all(FILES);
}

#[test]
fn patterns() {
    compare_all(PATTERN);
}

#[test]
fn durability() {
    compare_all(DURABILITY);
}

#[test]
fn buffers_and_memory() {
    compare_all(BUFFERS);
}

#[test]
fn depth_and_engines() {
    compare_all(DEPTH);
}

#[test]
fn placement() {
    compare_all(PLACEMENT);
}

/// Depths and batch sizes are reported as shares of the units and of the calls. Buffered I/O through libaio completes
/// during submission, so each call has the batch size of the options.
#[test]
fn depths_and_batches() {
    let (dir, ours, peers) = (prepare(), Program::under_test(), peers!());
    let compare = |line: &str| {
        let line = format!("--output-format=json --name=j --ioengine=libaio --bs=1k {line}");
        let shares = |program: &Program| {
            let report = Json::parse(&program.line(dir.path(), &line).ok().stdout);
            ["iodepth_level", "iodepth_submit", "iodepth_complete"].map(|key| report.job().0[key].to_string())
        };
        for peer in &peers {
            assert_eq!(shares(&ours), shares(peer), "{}: {line}", peer.release.name());
        }
    };
    for (submit, complete) in [(1, 1), (4, 4), (8, 8), (8, 32), (16, 16), (32, 32)] {
        compare(&format!(
            "--filename=ready --size=1M --rw=randwrite --iodepth=32 --iodepth_batch={submit} \
             --iodepth_batch_complete_min={complete} --iodepth_batch_complete_max={complete}"
        ));
    }
    for (depth, low, submit) in [(8, 7, 1), (8, 1, 1), (8, 8, 1), (16, 8, 4), (16, 4, 8), (2, 1, 1)] {
        compare(&format!(
            "--filename=ready --size=1M --rw=randread --iodepth={depth} --iodepth_low={low} --iodepth_batch={submit} \
             --iodepth_batch_complete_max=1"
        ));
    }
}

/// Generating data does not count as latency of the storage; the first generation does not count as I/O time either.
#[test]
fn data_is_made_before_it_is_written() {
    let dir = scratch();
    let least = |line: &str| {
        let line = format!("--output-format=json --name=j --size=64m --bs=1m --rw=write {line}");
        let report = Json::parse(&Program::under_test().line(dir.path(), &line).ok().stdout);
        // The minimum of many I/Os is free of disturbances.
        ["clat", "lat"].map(|kind| report.job().float(&format!("write.{kind}_ns.min")))
    };
    let [clat, lat] = least("--ioengine=null --verify=sha512 --do_verify=0");
    assert!(clat * 10.0 < lat, "{clat} of {lat}");
    let [clat, lat] = least("--ioengine=null --verify=sha512 --do_verify=0 --iodepth=4");
    assert!(clat < lat, "{clat} of {lat}");
    let [_, made] = least("--ioengine=null");
    let [_, new] = least("--ioengine=null --refill_buffers");
    assert!(new < made, "{new}, {made} where old data is changed");
}

/// posixaio submits an I/O before the batch is full, so the I/O may complete before the batch is submitted.
#[test]
fn ios_done_before_batch_submission_have_valid_latencies() {
    let dir = scratch();
    let line = "--output-format=json --name=j --ioengine=posixaio --iodepth=32 --iodepth_batch=32 --size=4m --bs=64k \
                --iodepth_batch_complete_min=0 --iodepth_batch_complete_max=32 --rw=randwrite --verify=sha512 \
                --do_verify=0";
    let report = Json::parse(&Program::under_test().line(dir.path(), line).ok().stdout);
    let [clat, lat] = ["clat", "lat"].map(|kind| report.job().float(&format!("write.{kind}_ns.mean")));
    assert!(clat <= lat, "{clat} of {lat}");
}

#[test]
fn measurement() {
    compare_all(MEASUREMENT);
}

/// A size that has less than a block for each file that was found is used up in as many files as it has blocks for.
#[test]
fn a_size_is_shared_by_more_files_than_it_has_blocks() {
    for program in Program::all() {
        let dir = scratch();
        fs::create_dir(dir.path().join("d")).unwrap();
        (0..50).for_each(|file| fs::write(dir.path().join(format!("d/f{file}")), [1; 20]).unwrap());
        for (line, ios) in [("--bs=4 --size=100", 25), ("--bs=4 --size=3", 0), ("--bs=8 --size=200", 25)] {
            let run = program.line(dir.path(), &format!("--name=j --opendir=d {line} --output-format=json"));
            if ios == 0 {
                // fio ends with 0, and has done nothing.
                assert!(program.is_peer || run.code() == 1, "{run}");
                continue;
            }
            let found = Json::parse(&run.stdout).job().int("read.total_ios");
            assert_eq!(found, ios, "{}: {line}", program.path.display());
        }
    }
}

/// Sequential I/O moves a size completely although its share of each file that was found is no multiple of a block; random
/// I/O only moves the whole blocks of the shares.
#[test]
fn files_that_were_found_share_a_size() {
    for program in Program::all() {
        for (size, sequential, random) in
            [("64k", 16, 15), ("30k", 8, 6), ("48k", 12, 12), ("13k", 4, 3), ("200k", 48, 48)]
        {
            for (rw, ios) in [("read", sequential), ("write", sequential), ("randread", random)] {
                let dir = scratch();
                fs::create_dir(dir.path().join("d")).unwrap();
                for name in ["d/a", "d/b", "d/c"] {
                    fs::write(dir.path().join(name), [1; 65_536]).unwrap();
                }
                let line = format!("--name=j --opendir=d --rw={rw} --size={size} --output-format=json");
                let run = program.line(dir.path(), &line).ok();
                let found: u64 = Json::parse(&run.stdout).job().ios().iter().sum();
                assert_eq!(found, ios, "{}: {line}", program.path.display());
            }
        }
    }
}

/// The member of a group that does not measure a latency does not hide what the others have measured.
#[test]
fn percentiles_of_a_group_are_those_of_all_that_was_measured() {
    for members in
        ["--name=a --disable_clat=1 --name=b --disable_clat=0", "--name=a --name=b --disable_clat=1"]
    {
        let dir = scratch();
        let line = format!("--ioengine=null --size=64k --group_reporting --output-format=json {members}");
        let run = Program::under_test().line(dir.path(), &line).ok();
        let report = Json::parse(&run.stdout);
        let job = report.job();
        assert_eq!(job.int("read.clat_ns.N"), 16, "{line}");
        assert!(job.0["read"]["clat_ns"]["percentile"].is_object(), "{line}: {run}");
    }
}

/// Compares all cases of a table. The failure lists every case that differs.
#[track_caller]
fn compare_all(cases: &[Case]) {
    let peers = peers!();
    let ours = Program::under_test();
    let failed = Mutex::new(Vec::new());
    let all = peers.iter().flat_map(|peer| cases.iter().map(move |case| (peer, case)));
    at_once(3, all, |(peer, &(counts, beyond, line))| {
        if catch_unwind(AssertUnwindSafe(|| compare(&ours, peer, counts, beyond, line))).is_err() {
            failed.lock().unwrap().push(format!("{}: {line}", peer.release.name()));
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} jobs differ:\n{}", failed.len(), failed.join("\n"));
}

fn prepare() -> tempfile::TempDir {
    let dir = scratch();
    fs::write(dir.path().join("ready"), vec![1; 1 << 20]).expect("a file can be written");
    fs::create_dir(dir.path().join("d1")).expect("a directory can be made");
    fs::create_dir(dir.path().join("d2")).expect("a directory can be made");
    fs::write(dir.path().join("d2/inner"), vec![2; 1 << 16]).expect("a file can be written");
    for (name, text) in JOB_FILES {
        fs::write(dir.path().join(name), text).expect("a file can be written");
    }
    dir
}

fn compare(ours: &Program, peer: &Program, counts: Counts, beyond: Beyond, line: &str) {
    let (our_dir, their_dir) = (prepare(), prepare());
    // The report is separate from other output, and has both formats.
    let args = format!("--output-format=normal,json --output=report.txt {line}");
    let (our_run, their_run) = (ours.line(our_dir.path(), &args), peer.line(their_dir.path(), &args));
    assert_eq!(our_run.code(), their_run.code(), "{line}: exit status\n{our_run}\n{their_run}");
    if our_run.code() != 0 {
        // The texts of refusals differ, and so does whether a report file exists by then.
        let _ = fs::remove_file(our_dir.path().join("report.txt"));
        let _ = fs::remove_file(their_dir.path().join("report.txt"));
        assert_eq!(files_in(our_dir.path()), files_in(their_dir.path()), "{line}: files");
        return;
    }
    let our_report = take_report(our_dir.path(), &our_run, line);
    let their_report = take_report(their_dir.path(), &their_run, line);
    assert_eq!(files_in(our_dir.path()), files_in(their_dir.path()), "{line}: files");

    let differences = compare_reports(&our_report, &their_report, peer.release, counts);
    assert!(differences.is_empty(), "{line}: {differences:#?}");
    match beyond {
        Nothing => {}
        Content => {
            let read = |dir: &Path| fs::read(dir.join("ready")).expect("the file is there");
            assert!(read(our_dir.path()) == read(their_dir.path()), "{line}: the files differ");
        }
        CallsInOrder | Calls | Offsets => compare_calls(ours, peer, beyond, line),
    }
}

/// Reads the report and removes it from the directory.
fn take_report(dir: &Path, run: &Finished, line: &str) -> Report {
    let path = dir.join("report.txt");
    let report = fs::read_to_string(&path).unwrap_or_else(|error| panic!("no report ({error}) from {run}"));
    fs::remove_file(path).expect("it was just read");
    let mut report = Report::new(&report);
    let is_left_out = |text: &str| {
        // Iolite's message about layout begins with the job's name and says "1 file" instead of "1 files". In fio,
        // workers print it, and it is lost if the report goes to a file. So are the lines of engines that work without
        // I/O.
        let is_of_engine = |part| text.contains(part);
        text.contains(": opendir added ")
            || [": ioengine=cpuio, ", ": program=", ": Saving output of ", ": Running "]
                .into_iter()
                .any(is_of_engine)
            || (line.contains("create_serialize=0") && text.contains(": Laying out IO file"))
    };
    let kept = |text: &&str| !is_left_out(text);
    report.normal = report.normal.lines().filter(kept).flat_map(|text| [text, "\n"]).collect();
    report
}

/// Compares the system calls of both programs, in equal directories.
fn compare_calls(ours: &Program, peer: &Program, beyond: Beyond, line: &str) {
    let calls_of = |program: &Program| -> Option<Vec<Call>> {
        let dir = prepare();
        let (_, mut calls) = io_calls(program, dir.path(), &words(line))?;
        assert!(!calls.is_empty(), "{line}: {} reads or writes nothing", program.path.display());
        if beyond == Offsets {
            calls.iter_mut().for_each(|call| call.name = "either".into());
        }
        if beyond != CallsInOrder {
            calls.sort();
        }
        Some(calls)
    };
    let (Some(our_calls), Some(their_calls)) = (calls_of(ours), calls_of(peer)) else {
        partly_skipped(&this_test!(), &format!("no strace to compare the calls of {line}"));
        return;
    };
    let at = our_calls.iter().zip(&their_calls).take_while(|(a, b)| a == b).count();
    assert!(
        our_calls == their_calls,
        "{line}: {} calls, {} expected; number {at} is {:?}, {:?} expected",
        our_calls.len(),
        their_calls.len(),
        our_calls.get(at),
        their_calls.get(at)
    );
}
