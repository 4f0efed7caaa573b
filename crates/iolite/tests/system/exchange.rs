//! Iolite reads verified files that fio wrote, and the other way round, for every type in every shape. One run does all
//! types.

use crate::common::{Json, Program, peers, scratch};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The part of a file that a type protects.
#[derive(Clone, Copy, PartialEq)]
enum Seen {
    /// All of it.
    Everything,
    /// The headers.
    Headers,
    /// Nothing.
    Nothing,
}
use Seen::{Everything, Headers, Nothing};

/// How well a type can be exchanged with fio 3.33.
#[derive(Clone, Copy, PartialEq)]
enum Exchange {
    Works,
    /// Its digest is not the standard one in fio 3.33.
    OtherDigest,
    /// Works both ways, but with `verify_offset` fio rejects its own writes: it refills only a part of its buffers, so
    /// the pattern still contains the header of an earlier write.
    NoOffset,
    /// Works only with one block size: the pattern begins with each block and contains the block's offset.
    OneSize,
}
use Exchange::{NoOffset, OneSize, OtherDigest, Works};

/// Options of a type. (fio 3.33 has no name for `pattern_hdr`; it uses this type if there is a pattern and no type.)
const KINDS: &[(&str, Seen, Exchange)] = &[
    ("verify=md5", Everything, Works),
    ("verify=crc64", Everything, Works),
    ("verify=crc32", Everything, Works),
    ("verify=crc32c", Everything, Works),
    ("verify=crc32c-intel", Everything, Works),
    ("verify=crc16", Everything, Works),
    ("verify=crc7", Everything, Works),
    ("verify=sha1", Everything, Works),
    ("verify=sha256", Everything, OtherDigest),
    ("verify=sha512", Everything, OtherDigest),
    ("verify=sha3-224", Everything, Works),
    ("verify=sha3-256", Everything, Works),
    ("verify=sha3-384", Everything, Works),
    ("verify=sha3-512", Everything, Works),
    ("verify=xxhash", Everything, Works),
    ("verify=meta", Headers, Works),
    ("verify=null", Nothing, Works),
    ("verify=pattern\nverify_pattern=0xdeadbeef", Everything, Works),
    ("verify=pattern\nverify_pattern=0xff%o\"abcd\"-12", Everything, OneSize),
    ("verify=crc32c\nverify_pattern=0xdeadbeef", Everything, Works),
    ("verify_pattern=0xdeadbeef", Everything, NoOffset),
];

/// The options of a shape. Those behind the bar are for the writer only.
const SHAPES: &[&str] = &[
    "rw=write",
    "rw=randwrite",
    "rw=write\nbs=512",
    "rw=randwrite\nverify_interval=1k",
    "rw=randwrite\nverify_offset=512",
    "rw=randwrite\nbs=16k\nverify_interval=4k\nverify_offset=1000",
    "rw=write\nbs=12k\nverify_interval=4k",
    // Without verify_interval, reader and writer would use different random blocks: fio cannot even read its own.
    "rw=randwrite\nbsrange=4k-16k\nverify_interval=4k",
    "rw=write\nbssplit=4k/50:12k/50\nverify_interval=2k",
    "rw=randwrite\nnrfiles=3\nioengine=libaio\niodepth=8",
    "rw=write\nnumjobs=2\nsize=96k\noffset_increment=96k",
    "rw=randrw\nrwmixread=10\nioengine=libaio\niodepth=4|rw=randwrite\nloops=2",
];

/// The size of all files of a job together, in bytes.
const SIZE: usize = 192 << 10;

struct Cases<'a> {
    dir: &'a Path,
    shape: &'a str,
}

impl Cases<'_> {
    /// Runs all types and returns an error of each, or 0.
    fn errors(&self, program: &Program, shape: &str, more: &str) -> BTreeMap<usize, u64> {
        let mut text =
            format!("[global]\nsize={SIZE}\nbs=4k\nthread\nverify_state_save=0\n{shape}\n{more}\n");
        for (number, (kind, ..)) in self.kinds() {
            let files = (0..self.option("nrfiles").max(1)).map(|file| format!("{number}.{file}"));
            text += &format!("[{number}]\n{kind}\nfilename={}\n", files.collect::<Vec<_>>().join(":"));
        }
        fs::write(self.dir.join("jobs.fio"), &text).unwrap();
        let run = program.line(self.dir, "--output-format=json jobs.fio");
        let report = Json::parse(&run.stdout);
        let mut errors = BTreeMap::new();
        for job in report.jobs() {
            let kind: usize = job.0["jobname"].as_str().unwrap().parse().unwrap();
            let error = errors.entry(kind).or_insert(0);
            *error = job.int("error").max(*error);
        }
        errors
    }

    fn write(&self, program: &Program, more: &str) {
        let shape = self.shape.rsplit('|').next().unwrap_or(self.shape);
        let errors = self.errors(program, shape, &format!("do_verify=0\n{more}"));
        assert!(errors.values().all(|&error| error == 0), "{:?} writes {shape}: {errors:?}", program.path);
    }

    fn read(&self, program: &Program) -> BTreeMap<usize, u64> {
        let shape: Vec<&str> =
            self.shape.split('|').next().unwrap().lines().filter(|line| !line.starts_with("rw")).collect();
        self.errors(program, &shape.join("\n"), "rw=read\nverify_fatal=1")
    }

    /// The value of an option of the shape; 0 = the shape does not have it.
    fn option(&self, name: &str) -> usize {
        let mut values = self.shape.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let text = values.next_back().unwrap_or("0");
        let unit = if text.ends_with('k') { 1024 } else { 1 };
        text.trim_end_matches('k').parse::<usize>().expect("a number") * unit
    }

    /// The size of the last interval in bytes.
    fn interval(&self) -> usize {
        let sizes = [self.option("verify_interval"), self.option("bs"), 4096];
        sizes.into_iter().find(|&size| size > 0).unwrap_or(4096)
    }

    /// The types. Types whose data cannot be recomputed are tested with small intervals only, because the search for a
    /// flipped bit takes long.
    fn kinds(&self) -> impl Iterator<Item = (usize, &'static (&'static str, Seen, Exchange))> {
        let small = self.interval() <= 1024;
        KINDS.iter().enumerate().filter(move |(_, (.., exchange))| small || *exchange != OtherDigest)
    }

    /// Flips a bit that the type protects, in the last interval of a block: fio 3.33 reports earlier wrong intervals,
    /// but succeeds if the last one is right.
    fn damage(&self) {
        for (number, (kind, seen, _)) in self.kinds() {
            let path = self.dir.join(format!("{number}.0"));
            let mut bytes = fs::read(&path).unwrap();
            let in_header = *seen == Headers || (self.interval() > 1024 && !kind.contains("pattern"));
            let place = if in_header { self.option("verify_offset") + 10 } else { 400 };
            let last = bytes.len() - self.interval();
            bytes[last + place] ^= 0x10;
            fs::write(path, bytes).unwrap();
        }
    }

    /// One program writes the files. The other one reads them intact and then damaged.
    fn exchange(&self, from: &Program, to: &Program) {
        let format = format!("verify_header_format={}", to.release.header);
        let more = if from.is_peer { "" } else { &format };
        self.write(from, more);
        let can = |exchange: Exchange| match exchange {
            Works => true,
            OtherDigest => false,
            OneSize => !["bsrange", "bssplit"].iter().any(|sizes| self.shape.contains(sizes)),
            NoOffset => !from.release.leaves_old_headers || !self.shape.contains("verify_offset"),
        };
        let whole = self.read(to);
        self.damage();
        let damaged = self.read(to);
        for (number, (kind, seen, exchange)) in self.kinds() {
            let (whole, damaged) = (whole[&number], damaged[&number]);
            let told = format!("{kind} {:?} from {:?}", self.shape, from.path);
            assert_eq!(whole == 0, can(*exchange), "{told}: {whole}");
            assert_eq!(damaged == 0, *seen == Nothing, "damaged: {told}: {damaged}");
        }
    }
}

#[test]
fn files_of_fio_are_read_here() {
    for peer in peers!() {
        for shape in SHAPES {
            let dir = scratch();
            Cases { dir: dir.path(), shape }.exchange(&peer, &Program::under_test());
        }
    }
}

#[test]
fn files_of_ours_are_read_by_fio() {
    for peer in peers!() {
        for shape in SHAPES {
            let dir = scratch();
            Cases { dir: dir.path(), shape }.exchange(&Program::under_test(), &peer);
        }
    }
}

/// From 3.41 on, fio has the same header as Iolite by default.
#[test]
fn files_are_exchanged_with_the_newer_releases_as_they_are() {
    for peer in Program::peers().into_iter().filter(|peer| peer.version() != "fio-3.33") {
        for kind in ["md5", "crc64", "crc32", "crc32c", "crc16", "crc7", "sha1", "sha3-256", "xxhash", "meta"]
        {
            for (from, to) in [(&peer, &Program::under_test()), (&Program::under_test(), &peer)] {
                let dir = scratch();
                let run = |program: &Program, more: &str| {
                    let job = "--name=v --filename=data --size=64k --bs=16k --verify_interval=4k --verify_state_save=0";
                    program.line(dir.path(), &format!("{job} --verify={kind} {more}"))
                };
                run(from, "--rw=randwrite --do_verify=0").ok();
                run(to, "--rw=read").ok();
                let mut bytes = fs::read(dir.path().join("data")).unwrap();
                // A byte of the offset in the last header.
                bytes[(60 << 10) + 17] ^= 0x40;
                fs::write(dir.path().join("data"), bytes).unwrap();
                assert_ne!(run(to, "--rw=read --verify_fatal=1").code(), 0, "{kind} {}", from.version());
            }
        }
    }
}

/// `verify_only` on fio's data checks the order of writes. The seeds in the headers are only checked on request,
/// because fio's are different.
#[test]
fn data_written_by_fio_is_checked_in_write_order() {
    for peer in peers!() {
        let dir = scratch();
        let job = "--name=v --filename=data --size=64k --bs=4k --rw=write --verify=crc32c";
        peer.line(dir.path(), &format!("{job} --do_verify=0 --verify_state_save=0")).ok();
        let check =
            |more: &str| Program::under_test().line(dir.path(), &format!("{job} --verify_only {more}"));
        check("").ok();
        check("--verify_header_seed=0").ok();
        check("--verify_header_seed=1").refused().says("verify: bad header rand_seed");
        check("--rw=write:4k").refused().says("verify: bad header ");
    }
}
