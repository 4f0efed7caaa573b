//! The cases as data.

use crate::bare::Pattern;
use crate::curl::Curl as Transfers;
use crate::measure::Measure::{self, *};
use crate::place::Kind;
use Against::{BareRing, Curl, Itself, Nothing, Peer, Recorded};
use Kind::{Cluster, Disk, Memory, NbdMemory, NfsExport, ObjectStore, WebServer, Zram};

/// One comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// The name that selects the case on the command line.
    pub name: &'static str,
    /// The purpose of the case.
    pub about: &'static str,
    /// The job's options. `{directory}` stands for a fresh directory that is removed afterwards, `{device}` for the
    /// block device of the case's [`Kind`], `{host}` for its server (or a URL on it), `{conf}` for the configuration of
    /// its cluster.
    pub job: &'static str,
    /// The number that is compared.
    pub measure: Measure,
    /// The other side of the comparison.
    pub against: Against,
    /// The place where it runs.
    pub place: Kind,
    /// The files that the first round makes serve all others, which only look at them.
    pub shares_files: bool,
    /// The advantage to reach: how many times better Iolite has to be.
    pub reach: f64,
}

/// The other side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Against {
    /// The peer, with the same job.
    Peer,
    /// Iolite itself, with these options added or replaced.
    Itself(&'static str),
    /// A loop around a ring that keeps no statistics.
    BareRing(Pattern),
    /// The number of fio 3.42, which cannot be had here, measured elsewhere and carried over.
    Recorded(f64),
    /// curl, with requests of the same kind.
    Curl(Transfers),
    /// Nothing: the number is already a ratio.
    Nothing,
}

/// Requests to an object store. (Reads follow writes of the same objects.)
macro_rules! s3 {
    ($options:literal) => {
        concat!(
            "--time_based --ioengine=http --http_mode=s3 --http_host={host} --http_s3_keyid=an-access-key \
             --http_s3_key=a-very-secret-key --http_s3_region=eu-test-1 --http_retries=8 --group_reporting ",
            $options
        )
    };
}

/// I/Os of 4 KiB at depth 32 to an object (`rados`) or an image (`rbd`) of a Ceph cluster: their rate, the CPU time of the
/// job with all threads of the library, and that of the job's own thread.
macro_rules! ceph {
    ($engine:literal, $options:literal, $rw:literal) => {
        [
            ceph!($engine, $options, $rw, "", Requests, 1.0),
            ceph!($engine, $options, $rw, "-cpu", AllCpuPerIo, 1.0),
            ceph!($engine, $options, $rw, "-thread", ThreadCpuPerIo, 2.0),
        ]
    };
    ($engine:literal, $options:literal, $rw:literal, $suffix:literal, $measure:expr, $reach:literal) => {
        case(
            concat!($engine, "-", $rw, $suffix),
            concat!($rw, " of 4 KiB at depth 32 by ", $engine),
            concat!(
                "--time_based --ioengine=",
                $engine,
                " --clientname=admin --pool=pool --bs=4k --iodepth=32 --size=64m --norandommap --rw=",
                $rw,
                " ",
                $options
            ),
            $measure,
            $reach,
        )
        .on(Cluster)
    };
}

/// The same for curl.
macro_rules! signed {
    ($words:literal) => {
        concat!("--aws-sigv4 aws:amz:eu-test-1:s3 -u an-access-key:a-very-secret-key ", $words)
    };
}

/// Requests to a web server that takes files.
macro_rules! webdav {
    ($options:literal) => {
        concat!(
            "--time_based --ioengine=http --http_host={host} --http_user=user --http_pass=password --group_reporting ",
            $options
        )
    };
}

/// I/O of a network block device.
macro_rules! nbd {
    ($options:literal) => {
        concat!("--time_based --ioengine=nbd --uri={host} --bs=4k --size=256m --iodepth=32 ", $options)
    };
}

/// I/O of a file on an NFS server.
macro_rules! nfs {
    ($options:literal) => {
        concat!(
            "--time_based --ioengine=nfs --nfs_url={host} --filename=data --size=64m --iodepth=32 ",
            $options
        )
    };
}

/// The engine that completes each I/O at once, so that the cost of the program itself is measured.
macro_rules! null {
    ($options:literal) => {
        concat!("--time_based --ioengine=null --thread --size=100G --bs=4k ", $options)
    };
}

/// Reads of the block device by an engine with a queue.
macro_rules! zram {
    ($engine:literal, $($options:literal),+) => {
        concat!(
            "--time_based --ioengine=",
            $engine,
            " --thread --filename={device} --direct=1 --bs=4k --rw=randread ",
            $($options),+
        )
    };
}

/// The same with depth 32, one by one or in batches.
macro_rules! shallow {
    ($engine:literal) => {
        zram!($engine, "--iodepth=32")
    };
    ($engine:literal, batches) => {
        zram!($engine, "--iodepth=32 --iodepth_batch_submit=16 --iodepth_batch_complete_max=16")
    };
}

/// Jobs that wait most of the time: the CPU time of an I/O with its wait.
macro_rules! paced {
    ($name:literal, $engine:literal, $options:literal) => {
        case(
            concat!("paced-", $name),
            concat!($engine, ", ", $options),
            zram!($engine, $options),
            CpuPerIo,
            2.0,
        )
        .on(Zram)
    };
}

/// The same with a deep queue, in batches of 32, waiting for `$wait` completions at a time.
macro_rules! deep {
    ($engine:literal, $wait:literal $(, $options:literal)*) => {
        zram!(
            $engine,
            "--iodepth=128 --iodepth_batch_submit=32 --iodepth_batch_complete_max=32 --iodepth_batch_complete_min=",
            $wait
            $(, $options)*
        )
    };
}

/// The same with a ring, with files and buffers registered.
macro_rules! deep_ring {
    ($wait:literal $(, $options:literal)?) => {
        deep!("io_uring", $wait, " --registerfiles --fixedbufs" $(, $options)?)
    };
}

/// Reads of a file that bypass the page cache.
macro_rules! file {
    ($engine:literal) => {
        concat!(
            "--time_based --ioengine=",
            $engine,
            " --thread --directory={directory} --size=256M --direct=1 --bs=4k --rw=randread --iodepth=32"
        )
    };
}

/// Writes whose main cost is making the data.
macro_rules! content {
    ($options:literal) => {
        concat!(
            "--time_based --ioengine=psync --rw=write --bs=128k --directory={directory} --size=256M ",
            $options
        )
    };
}

/// Writes that are read back and checked.
macro_rules! verify {
    ($kind:literal) => {
        concat!("--ioengine=psync --rw=write --bs=64k --directory={directory} --size=512M --verify=", $kind)
    };
}

/// A job that receives and one that sends, both counted. The receiver would take more, so that it ends by the goodbye of the
/// sender: a fio that sends dies (SIGPIPE) when the receiver has enough. It also needs time before it connects.
macro_rules! network {
    ($bs:literal) => {
        concat!(
            "--ioengine=net --listen --port=19713 --rw=read --size=2G --bs=",
            $bs,
            " --name=sender --startdelay=1 --ioengine=net --hostname=127.0.0.1 --port=19713 --rw=write --size=1G --bs=",
            $bs
        )
    };
}

/// A thousand jobs of one I/O each.
macro_rules! thousand {
    ($options:literal) => {
        concat!("--ioengine=null --size=4k --numjobs=1000 ", $options)
    };
}

/// A comparison with the peer, in memory, unless it is changed.
const fn case(
    name: &'static str,
    about: &'static str,
    job: &'static str,
    measure: Measure,
    reach: f64,
) -> Case {
    Case { name, about, job, measure, reach, against: Peer, place: Memory, shares_files: false }
}

impl Case {
    const fn on(self, place: Kind) -> Case {
        Case { place, ..self }
    }

    const fn sharing_files(self) -> Case {
        Case { shares_files: true, ..self }
    }

    const fn against(self, against: Against) -> Case {
        Case { against, ..self }
    }
}

/// All cases, in the order of the table.
pub const CASES: &[Case] = &[
    case("null-randread-qd32", "random reads, 32 deep", null!("--rw=randread --iodepth=32"), Iops, 4.0),
    case("null-read-qd32", "sequential reads, 32 deep", null!("--rw=read --iodepth=32"), Iops, 4.0),
    case("null-randwrite-qd32", "random writes, 32 deep", null!("--rw=randwrite --iodepth=32"), Iops, 4.0),
    case("null-randrw-qd32", "random reads and writes", null!("--rw=randrw --iodepth=32"), Iops, 4.0),
    case("null-randread-qd1", "random reads one at a time", null!("--rw=randread --iodepth=1"), Iops, 2.5),
    case("null-read-qd1", "sequential reads one at a time", null!("--rw=read --iodepth=1"), Iops, 2.5),
    case(
        "null-zipf",
        "zipf:1.2",
        null!("--rw=randread --iodepth=32 --random_distribution=zipf:1.2"),
        Iops,
        3.0,
    ),
    case(
        "null-pareto",
        "pareto:0.2",
        null!("--rw=randread --iodepth=32 --random_distribution=pareto:0.2"),
        Iops,
        3.0,
    ),
    case(
        "null-normal",
        "normal:20",
        null!("--rw=randread --iodepth=32 --random_distribution=normal:20"),
        Iops,
        3.0,
    ),
    case("null-bsrange", "sizes of a range", null!("--rw=randread --iodepth=32 --bsrange=4k-16k"), Iops, 3.0),
    case(
        "null-files",
        "eight files in turn",
        null!("--rw=randread --iodepth=32 --nrfiles=8 --file_service_type=roundrobin"),
        Iops,
        3.0,
    ),
    case(
        "null-norandommap",
        "offsets that repeat",
        null!("--rw=randread --iodepth=32 --norandommap"),
        Iops,
        3.0,
    ),
    case(
        "null-lfsr",
        "a shift register",
        null!("--rw=randread --iodepth=32 --random_generator=lfsr"),
        Iops,
        3.0,
    ),
    case(
        "null-bssplit",
        "four sizes with shares",
        null!("--rw=randread --iodepth=32 --bssplit=4k/25:8k/25:16k/25:32k/25"),
        Iops,
        4.0,
    ),
    case(
        "null-half-random",
        "half random, half sequential",
        null!("--rw=randread --iodepth=32 --percentage_random=50"),
        Iops,
        4.0,
    ),
    case(
        "null-processes",
        "two processes",
        "--time_based --ioengine=null --size=100G --bs=4k --rw=randread --iodepth=32 --numjobs=2 --group_reporting",
        Iops,
        4.0,
    ),
    case(
        "null-bare",
        "nothing timed, nothing remembered",
        null!("--rw=randread --iodepth=32 --gtod_reduce=1 --norandommap"),
        Iops,
        4.0,
    ),
    case(
        "psync-randread-cpu",
        "reads of a file in memory",
        "--time_based --ioengine=psync --thread --directory={directory} --size=256M --bs=4k --rw=randread",
        UserCpuPerIo,
        2.0,
    ),
    case("libaio-zram-cpu", "libaio, depth 32", shallow!("libaio"), UserCpuPerIo, 2.0).on(Zram),
    case(
        "libaio-zram-batch-cpu",
        "libaio, depth 32, batches of 16",
        shallow!("libaio", batches),
        UserCpuPerIo,
        2.0,
    )
    .on(Zram),
    case("io_uring-zram-cpu", "io_uring, depth 32", shallow!("io_uring"), UserCpuPerIo, 2.0).on(Zram),
    case(
        "io_uring-zram-batch-cpu",
        "io_uring, depth 32, batches of 16",
        shallow!("io_uring", batches),
        UserCpuPerIo,
        2.0,
    )
    .on(Zram),
    paced!("100-psync", "psync", "--rate_iops=100"),
    paced!("100-libaio", "libaio", "--iodepth=8 --rate_iops=100"),
    paced!("100-io_uring", "io_uring", "--iodepth=8 --rate_iops=100"),
    paced!("100-posixaio", "posixaio", "--iodepth=8 --rate_iops=100"),
    paced!("500-psync", "psync", "--rate_iops=500"),
    paced!("500-libaio", "libaio", "--iodepth=8 --rate_iops=500"),
    paced!("500-io_uring", "io_uring", "--iodepth=8 --rate_iops=500"),
    paced!("500-posixaio", "posixaio", "--iodepth=8 --rate_iops=500"),
    paced!("5000-psync", "psync", "--rate_iops=5000"),
    paced!("5000-libaio", "libaio", "--iodepth=8 --rate_iops=5000"),
    paced!("5000-io_uring", "io_uring", "--iodepth=8 --rate_iops=5000"),
    paced!("5000-posixaio", "posixaio", "--iodepth=8 --rate_iops=5000"),
    paced!("50000-psync", "psync", "--rate_iops=50000"),
    paced!("50000-libaio", "libaio", "--iodepth=8 --rate_iops=50000"),
    paced!("50000-io_uring", "io_uring", "--iodepth=8 --rate_iops=50000"),
    paced!("50000-posixaio", "posixaio", "--iodepth=8 --rate_iops=50000"),
    paced!("open-loop", "io_uring", "--iodepth=8 --rate_iops=5000 --rate_process=poisson"),
    paced!("thinktime", "psync", "--thinktime=200us"),
    case("libaio-file-cpu", "libaio, a file, depth 32", file!("libaio"), UserCpuPerIo, 2.0).on(Disk),
    case("io_uring-file-cpu", "io_uring, a file, depth 32", file!("io_uring"), UserCpuPerIo, 2.0).on(Disk),
    case("libaio-zram", "libaio, depth 128, batches of 32", deep!("libaio", "32"), Iops, 1.0).on(Zram),
    case("io_uring-zram", "the same with a ring, files and buffers registered", deep_ring!("32"), Iops, 1.0)
        .on(Zram),
    case(
        "io_uring-zram-bare",
        "the same, beside a bare ring",
        deep_ring!("32", " --norandommap"),
        Iops,
        0.97,
    )
    .against(BareRing(Pattern { depth: 128, batch: 32, wait: 32 }))
    .on(Zram),
    case("io_uring-zram-eager", "the same, each completion fetched as it comes", deep_ring!("1"), Iops, 1.0)
        .on(Zram),
    case(
        "io_uring-zram-eager-bare",
        "the same, beside a bare ring",
        deep_ring!("1", " --norandommap"),
        Iops,
        0.97,
    )
    .against(BareRing(Pattern { depth: 128, batch: 32, wait: 1 }))
    .on(Zram),
    case("net-tcp-4k", "TCP, both ends, 4 KiB", network!("4k"), CpuPerKib, 1.2),
    case("net-tcp-128k", "TCP, both ends, 128 KiB", network!("128k"), CpuPerKib, 1.0),
    case("content-refill", "refilled buffers", content!("--refill_buffers"), Throughput, 1.5),
    case(
        "content-compress",
        "half compressible",
        content!("--buffer_compress_percentage=50"),
        Throughput,
        1.5,
    ),
    case("content-dedupe", "half duplicate", content!("--dedupe_percentage=50"), Throughput, 1.5),
    case("verify-crc32c", "write and verify, crc32c", verify!("crc32c"), WallSeconds, 1.3),
    case("verify-xxhash", "write and verify, xxhash", verify!("xxhash"), WallSeconds, 1.3),
    case("verify-sha256", "write and verify, sha256", verify!("sha256"), WallSeconds, 2.5),
    case("verify-md5", "write and verify, md5", verify!("md5"), WallSeconds, 1.05),
    case("scale-iops", "16 TiB beside 1 GiB", null!("--rw=randread --iodepth=32 --size=16T"), Iops, 0.9)
        .against(Itself("--size=1G")),
    case(
        "scale-memory",
        "16 TiB beside 1 GiB",
        null!("--rw=randread --iodepth=32 --size=16T"),
        PeakMemory,
        0.9,
    )
    .against(Itself("--size=1G")),
    case(
        "coverage-tail",
        "the last 1% of 1 TiB beside the first",
        "--ioengine=null --thread --bs=4k --rw=randread --iodepth=32 --size=1T --status-interval=100ms",
        TailSpeed,
        0.9,
    )
    .against(Nothing),
    case(
        "many-threads",
        "1000 threads, one I/O each",
        thousand!("--group_reporting --thread"),
        WallSeconds,
        2.0,
    ),
    case("many-processes", "1000 processes, one I/O each", thousand!("--group_reporting"), WallSeconds, 2.0),
    case(
        "many-threads-memory",
        "1000 threads, one I/O each",
        thousand!("--group_reporting --thread"),
        PeakMemory,
        3.33,
    ),
    case(
        "many-processes-memory",
        "1000 processes, one I/O each",
        thousand!("--group_reporting"),
        PeakMemory,
        3.33,
    ),
    case(
        "log-iops",
        "a log of each I/O, until all is written",
        null!("--rw=randread --iodepth=32 --write_lat_log={directory}/log"),
        LoggedIops,
        1.5,
    ),
    case(
        "log-memory",
        "a log of each I/O",
        null!("--rw=randread --iodepth=32 --write_lat_log={directory}/log"),
        PeakMemory,
        1.0,
    ),
    case(
        "filecreate-cpu",
        "making 20000 files",
        "--ioengine=filecreate --directory={directory} --nrfiles=20000 --filesize=4k --openfiles=1",
        CpuPerIo,
        1.2,
    ),
    case(
        "filestat-cpu",
        "looking up 1000 files",
        "--time_based --ioengine=filestat --directory={directory} --nrfiles=1000 --filesize=4k --openfiles=1",
        CpuPerIo,
        1.0,
    ),
    case(
        "splice-cpu",
        "reading what is in the page cache through a pipe",
        "--time_based --ioengine=splice --rw=read --bs=64k --filename={directory}/spliced --size=64m --invalidate=0",
        CpuPerIo,
        1.0,
    ),
    case(
        "filecreate-memory",
        "a million names in 128 bytes each",
        "--ioengine=filecreate --directory={directory} --nrfiles=1000000 --filesize=4k --openfiles=1",
        RoomForFiles(1_000_000),
        1.0,
    )
    .against(Nothing),
    case(
        "filestat-memory",
        "a million files in 128 bytes each, all in use",
        "--ioengine=filestat --directory={directory} --nrfiles=1000000 --filesize=4k --fallocate=none",
        RoomForFiles(1_000_000),
        1.0,
    )
    .against(Nothing)
    .sharing_files(),
    case(
        "cpuio-load",
        "half of a CPU for 5 s, 1 = exactly",
        "--ioengine=cpuio --cpuload=50 --runtime=5",
        Load(50),
        0.98,
    )
    .against(Nothing),
    case(
        "reports",
        "JSON of 1000 jobs beside that of a group of them",
        thousand!("--thread"),
        WallSeconds,
        0.5,
    )
    .against(Itself("--group_reporting")),
    case(
        "s3-put-large",
        "PUT of 4 MiB objects by 4 jobs",
        s3!("--filename=/bkt/large --rw=write --bs=4m --size=16m --numjobs=4 --offset_increment=16m"),
        CpuPerIo,
        1.67,
    )
    .on(ObjectStore)
    .against(Recorded(8.4e6)),
    case(
        "s3-get-large",
        "GET of 4 MiB objects by 4 jobs",
        s3!("--filename=/bkt/large --rw=randread --bs=4m --size=64m --numjobs=4 --http_create=1"),
        CpuPerIo,
        1.67,
    )
    .on(ObjectStore)
    .against(Recorded(4.0e6)),
    case(
        "s3-put-small",
        "PUT of 4 KiB objects at depth 16, beside 16 jobs",
        s3!("--filename=/bkt/small --rw=write --bs=4k --size=4m --iodepth=16"),
        CpuPerIo,
        1.67,
    )
    .on(ObjectStore)
    .against(Recorded(234e3)),
    case(
        "s3-get-small",
        "GET of 4 KiB objects at depth 16, beside 16 jobs",
        s3!("--filename=/bkt/small --rw=randread --bs=4k --size=4m --iodepth=16 --http_create=1"),
        CpuPerIo,
        1.67,
    )
    .on(ObjectStore)
    .against(Recorded(174e3)),
    case(
        "s3-put-large-curl",
        "PUT of 4 MiB objects, one after the other; curl hashes no bodies",
        s3!("--filename=/bkt/large --rw=write --bs=4m --size=64m"),
        CpuPerIo,
        0.5,
    )
    .on(ObjectStore)
    .against(Curl(Transfers {
        words: signed!("-T {directory}/body http://{host}/bkt/curl_[1-16]"),
        requests: 16,
        body: 4 << 20,
    })),
    case(
        "s3-get-large-curl",
        "GET of 4 MiB objects, one after the other",
        s3!("--filename=/bkt/large --rw=read --bs=4m --size=64m --http_create=1"),
        CpuPerIo,
        1.0,
    )
    .on(ObjectStore)
    .against(Curl(Transfers {
        words: signed!("http://{host}/bkt/large_[0-62914560:4194304]_4194304"),
        requests: 16,
        body: 0,
    })),
    case(
        "s3-put-large-curl-rate",
        "PUT of 4 MiB objects by 4 jobs, beside four transfers of a curl, whose bodies nobody hashes",
        s3!("--filename=/bkt/large --rw=write --bs=4m --size=16m --numjobs=4 --offset_increment=16m"),
        Requests,
        0.5,
    )
    .on(ObjectStore)
    .against(Curl(Transfers {
        words: signed!("-Z --parallel-max 4 -T {directory}/body http://{host}/bkt/curl_[1-64]"),
        requests: 64,
        body: 4 << 20,
    })),
    case(
        "s3-get-large-curl-rate",
        "GET of 4 MiB objects by 4 jobs, beside four transfers of a curl",
        s3!("--filename=/bkt/large --rw=randread --bs=4m --size=64m --numjobs=4 --http_create=1"),
        Requests,
        1.0,
    )
    .on(ObjectStore)
    .against(Curl(Transfers {
        words: signed!("-Z --parallel-max 4 http://{host}/bkt/large_[0-62914560:4194304]_4194304#[1-16]"),
        requests: 256,
        body: 0,
    })),
    case(
        "s3-put-large-rate",
        "PUT of 4 MiB objects by 4 jobs",
        s3!("--filename=/bkt/large --rw=write --bs=4m --size=16m --numjobs=4 --offset_increment=16m"),
        Requests,
        1.0,
    )
    .on(ObjectStore)
    .against(Recorded(45.0)),
    case(
        "s3-get-large-rate",
        "GET of 4 MiB objects by 4 jobs",
        s3!("--filename=/bkt/large --rw=randread --bs=4m --size=64m --numjobs=4 --http_create=1"),
        Requests,
        1.0,
    )
    .on(ObjectStore)
    .against(Recorded(189.0)),
    case(
        "s3-put-small-rate",
        "PUT of 4 KiB objects at depth 16, beside 16 jobs",
        s3!("--filename=/bkt/small --rw=write --bs=4k --size=4m --iodepth=16"),
        Requests,
        1.2,
    )
    .on(ObjectStore)
    .against(Recorded(850.0)),
    case(
        "s3-get-small-rate",
        "GET of 4 KiB objects at depth 16, beside 16 jobs",
        s3!("--filename=/bkt/small --rw=randread --bs=4k --size=4m --iodepth=16 --http_create=1"),
        Requests,
        1.2,
    )
    .on(ObjectStore)
    .against(Recorded(2250.0)),
    case(
        "s3-get-small-memory",
        "memory of GETs of 4 KiB objects at depth 16, beside 16 jobs of its own",
        s3!("--filename=/bkt/small --rw=randread --bs=4k --size=4m --iodepth=16 --http_create=1"),
        PeakMemory,
        1.0,
    )
    .on(ObjectStore)
    .against(Itself("--iodepth=1 --numjobs=16")),
    case(
        "webdav-get-cpu",
        "GET of 64 KiB files by 4 jobs",
        webdav!("--filename=/f --rw=randread --bs=64k --size=16m --numjobs=4 --http_create=1"),
        CpuPerIo,
        1.67,
    )
    .on(WebServer)
    .against(Recorded(125e3)),
    case(
        "webdav-get-rate",
        "GET of 64 KiB files by 4 jobs",
        webdav!("--filename=/f --rw=randread --bs=64k --size=16m --numjobs=4 --http_create=1"),
        Requests,
        1.0,
    )
    .on(WebServer)
    .against(Recorded(5980.0)),
    case(
        "webdav-get-curl-rate",
        "GET of 64 KiB files, one after the other",
        webdav!("--filename=/f --rw=read --bs=64k --size=16m --http_create=1"),
        Requests,
        1.0,
    )
    .on(WebServer)
    .against(Curl(Transfers {
        words: "-u user:password http://{host}/f_[0-16711680:65536]_65536",
        requests: 256,
        body: 0,
    })),
    case("nbd-read", "4 KiB from nbdkit at depth 32", nbd!("--rw=randread"), Requests, 1.0).on(NbdMemory),
    case("nbd-write", "4 KiB to nbdkit at depth 32", nbd!("--rw=randwrite"), Requests, 1.0).on(NbdMemory),
    case("nfs-read", "4 KiB from nfs-ganesha at depth 32", nfs!("--rw=randread --bs=4k"), Requests, 1.0)
        .on(NfsExport),
    case(
        "nfs-read-cpu",
        "the same: the client's own time",
        nfs!("--rw=randread --bs=4k"),
        UserCpuPerIo,
        1.43,
    )
    .on(NfsExport),
    case("nfs-write", "1 MiB to nfs-ganesha at depth 32", nfs!("--rw=write --bs=1m"), Requests, 1.0)
        .on(NfsExport),
    case("nfs-write-cpu", "the same: the client's own time", nfs!("--rw=write --bs=1m"), UserCpuPerIo, 1.43)
        .on(NfsExport),
    RADOS_READS[0],
    RADOS_READS[1],
    RADOS_READS[2],
    RADOS_WRITES[0],
    RADOS_WRITES[1],
    RADOS_WRITES[2],
    RBD_READS[0],
    RBD_READS[1],
    RBD_READS[2],
    RBD_WRITES[0],
    RBD_WRITES[1],
    RBD_WRITES[2],
];

const RADOS_READS: [Case; 3] = ceph!("rados", "--conf={conf} --filename=bench", "randread");
const RADOS_WRITES: [Case; 3] = ceph!("rados", "--conf={conf} --filename=bench", "randwrite");
const RBD_READS: [Case; 3] = ceph!("rbd", "--rbdname=bench", "randread");
const RBD_WRITES: [Case; 3] = ceph!("rbd", "--rbdname=bench", "randwrite");

/// The cases whose names contain one of `parts`; all cases if there are none.
pub fn chosen(parts: &[String]) -> Result<Vec<&'static Case>, String> {
    for part in parts {
        if !CASES.iter().any(|case| case.name.contains(part.as_str())) {
            let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
            return Err(format!("no case named {part}; there are {}", names.join(", ")));
        }
    }
    let wanted =
        |case: &&Case| parts.is_empty() || parts.iter().any(|part| case.name.contains(part.as_str()));
    Ok(CASES.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_chosen_by_parts_of_their_names() {
        assert_eq!(chosen(&[]).unwrap().len(), CASES.len());
        let names: Vec<&str> =
            chosen(&["read-qd1".into(), "psync-rand".into()]).unwrap().iter().map(|case| case.name).collect();
        assert_eq!(names, ["null-randread-qd1", "null-read-qd1", "psync-randread-cpu"]);
        assert!(chosen(&["nosuch".into()]).unwrap_err().contains("no case named nosuch"));
    }

    #[test]
    fn names_are_unique() {
        for (at, case) in CASES.iter().enumerate() {
            assert!(CASES[..at].iter().all(|earlier| earlier.name != case.name), "{}", case.name);
        }
    }
}
