//! The plan: the cases as ordinary jobs, and how long each takes.

use super::remote::{self, Layout, POOL_OBJECT, Remote};
use iolite_findings::Role;
use std::path::{Path, PathBuf};

/// How long a test takes.
pub struct Pace {
    /// The most seconds for writing the test's own file.
    pub fill: f64,
    /// The most bytes of that file.
    pub most_bytes: u64,
    /// Seconds of a probe for the best block size and depth.
    pub probe: f64,
    /// Seconds of a case.
    pub case: f64,
    /// Seconds of a step of the curve.
    pub step: f64,
    /// The depths of the curve.
    pub depths: &'static [u32],
    /// The most seconds of a case with files.
    pub names: f64,
    /// How many small files there are.
    pub files: u64,
    /// Cases end when they are in a steady state.
    pub is_steady: bool,
}

/// `--quick`: about 15 seconds.
pub const QUICK: Pace = Pace {
    fill: 2.0,
    most_bytes: 4 << 30,
    probe: 0.2,
    case: 1.0,
    step: 0.5,
    depths: &[1, 4, 16, 64],
    names: 0.5,
    files: 1000,
    is_steady: false,
};

/// About a minute.
pub const USUAL: Pace = Pace {
    fill: 8.0,
    most_bytes: 16 << 30,
    probe: 0.4,
    case: 5.0,
    step: 1.0,
    depths: &[1, 2, 4, 8, 16, 32, 64],
    names: 1.0,
    files: 4000,
    is_steady: false,
};

/// `--thorough`: about ten minutes.
pub const THOROUGH: Pace = Pace {
    fill: 60.0,
    most_bytes: 64 << 30,
    probe: 1.0,
    case: 60.0,
    step: 10.0,
    depths: &[1, 2, 4, 8, 16, 32, 64, 128],
    names: 5.0,
    files: 20_000,
    is_steady: true,
};

impl Pace {
    /// The same, in rounds of this many: each takes its part of the time.
    pub fn in_rounds(&self, rounds: u32) -> Pace {
        /// The least seconds of a round: below, the start of the workers counts.
        const LEAST: f64 = 0.2;
        let part = |seconds: f64| if rounds > 1 { (seconds / f64::from(rounds)).max(LEAST) } else { seconds };
        Pace {
            case: part(self.case),
            step: part(self.step),
            names: part(self.names),
            is_steady: self.is_steady && rounds == 1,
            ..*self
        }
    }
}

/// A block size and a depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub bytes: u64,
    pub depth: u32,
}

/// The shape from which probes begin.
pub const FIRST: Shape = Shape { bytes: 1 << 20, depth: 8 };
/// The depths that probes try.
pub const DEPTHS: [u32; 5] = [1, 2, 4, 16, 32];
/// The block sizes that probes try.
pub const SIZES: [u64; 3] = [64 << 10, 256 << 10, 4 << 20];

/// Where the cases are.
#[derive(Clone, Debug)]
pub struct Place {
    /// The storage of a server.
    pub remote: Option<Remote>,
    /// The file or device that is read and written.
    pub file: PathBuf,
    /// How many bytes of it are used.
    pub bytes: u64,
    /// It must be written first.
    pub is_new: bool,
    /// It may be written to.
    pub may_write: bool,
    /// Direct I/O works.
    pub is_direct: bool,
    /// The kernel lets this process see where the time of I/Os goes.
    pub has_stages: bool,
    /// The engine of cases with several I/Os in flight.
    pub engine: &'static str,
    /// Small files may be made beside the file.
    pub has_names: bool,
    /// How many small files there are.
    pub files: u64,
    /// The processors that workers may use.
    pub processors: u32,
    /// The shapes of sequential reads and writes.
    pub read: Shape,
    pub write: Shape,
}

impl Place {
    /// The directory of the file.
    pub fn directory(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }

    /// It has objects that are read and written as a whole, and no file.
    pub fn has_objects(&self) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.layout == Layout::Objects)
    }

    /// The engine of cases with one I/O in flight.
    fn alone(&self) -> &'static str {
        self.remote.as_ref().map_or("psync", |remote| remote.engine)
    }

    /// The workers that share a depth: on fast devices one processor is not enough. A server may take one connection only.
    fn workers(&self, depth: u32) -> u32 {
        if self.remote.is_some() {
            return 1;
        }
        const MOST: u32 = 4;
        let most = self.processors.min(MOST).min(depth).max(1);
        // A power of two divides the depth.
        1 << most.ilog2()
    }
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What it measures.
    pub role: Role,
    /// What it does, in a few words.
    pub what: String,
    /// All I/Os in flight, and its workers.
    pub depth: u32,
    pub workers: u32,
    /// Seconds that it takes; its options may end it sooner.
    pub seconds: f64,
    /// It goes around the page cache.
    pub is_direct: bool,
    options: Vec<(&'static str, String)>,
}

impl Case {
    pub fn new(name: &str, role: Role, what: String, place: &Place) -> Case {
        let mut case = Case {
            name: name.to_owned(),
            role,
            what,
            depth: 1,
            workers: 1,
            seconds: 0.0,
            is_direct: place.is_direct,
            options: Vec::new(),
        };
        if place.remote.as_ref().is_some_and(Remote::is_pool) {
            case.set("filename_format", format!("{}.$filenum", place.file.display()));
            case.set("nrfiles", (place.bytes / POOL_OBJECT).max(1));
        } else if place.remote.as_ref().is_none_or(|remote| remote.layout != Layout::Disk) {
            // A colon would begin another name.
            case.set("filename", place.file.display().to_string().replace(':', "\\:"));
        }
        for (option, value) in place.remote.iter().flat_map(|remote| &remote.options) {
            case.set(option, value);
        }
        case.set("size", place.bytes);
        if !place.may_write && place.remote.is_none() {
            // Even if the file was cut off meanwhile, reading must not make it longer.
            case.set("allow_file_create", 0);
        }
        if place.remote.is_none() {
            case.set("direct", u8::from(place.is_direct));
        }
        case.set("lat_percentiles", 1);
        case.set("group_reporting", 1);
        case
    }

    pub fn set(&mut self, option: &'static str, value: impl ToString) {
        let value = value.to_string();
        match self.options.iter_mut().find(|(known, _)| *known == option) {
            Some(known) => known.1 = value,
            None => self.options.push((option, value)),
        }
    }

    fn unset(&mut self, option: &str) {
        self.options.retain(|(known, _)| *known != option);
    }

    pub fn with(mut self, options: &[(&'static str, &dyn ToString)]) -> Case {
        for (option, value) in options {
            self.set(option, value.to_string());
        }
        self
    }

    /// Lasts this long, or until it is in a steady state.
    pub fn lasting(mut self, seconds: f64, is_steady: bool) -> Case {
        self.seconds = seconds;
        self.set("time_based", 1);
        self.set("runtime", format!("{:.0}ms", seconds * 1000.0));
        if is_steady {
            // As examples/steady-state.fio, in the time that there is.
            self.set("steadystate", "iops_slope:1%");
            self.set("steadystate_duration", 20);
            self.set("steadystate_ramp_time", 5);
        }
        self
    }

    /// Has this many I/Os in flight, of as many workers as share them well.
    pub fn deep(mut self, depth: u32, workers: u32, engine: &'static str) -> Case {
        (self.depth, self.workers) = (depth, workers);
        self.set("ioengine", engine);
        self.set("iodepth", depth / workers);
        if workers > 1 {
            self.set("numjobs", workers);
        }
        self
    }

    /// It only finds a shape.
    pub fn is_probe(&self) -> bool {
        PROBES.contains(&self.name.as_str())
    }

    /// At most this many small files are there.
    pub fn limit_files(&mut self, files: u64) {
        let files = files.max(1);
        self.set("nrfiles", files);
        self.what = format!("{files} files");
    }

    /// Its section of a job file.
    pub fn section(&self, waits: bool) -> String {
        let mut text = format!("[{}]\n", self.name);
        if waits {
            text += "stonewall\n";
        }
        for (option, value) in &self.options {
            text += &format!("{option}={value}\n");
        }
        text
    }
}

/// A size as options have it, and as people read it.
fn short(bytes: u64) -> String {
    match bytes {
        mib if mib >= 1 << 20 => format!("{}m", mib >> 20),
        kib => format!("{}k", kib >> 10),
    }
}

/// The case that writes a new file, or a device whose data may be lost.
pub fn fill(place: &Place, pace: &Pace) -> Case {
    let mut case = Case::new("fill", Role::Fill, "first write, 1m".to_owned(), place)
        .with(&[("rw", &"write"), ("bs", &"1m")])
        .deep(8, 1, place.engine);
    if place.remote.is_none() {
        case.set("fallocate", "none");
    }
    if place.remote.as_ref().is_some_and(Remote::is_pool) {
        // What is not written in the time is not used: whole objects.
        case.set("file_service_type", "sequential");
    }
    case.seconds = pace.fill;
    case.set("runtime", format!("{:.0}ms", pace.fill * 1000.0));
    case
}

fn sequential(name: &str, role: Role, place: &Place, shape: Shape) -> Case {
    let rw = if role == Role::Read { "read" } else { "write" };
    let what = format!("{}, depth {}", short(shape.bytes), shape.depth);
    Case::new(name, role, what, place).with(&[("rw", &rw), ("bs", &short(shape.bytes))]).deep(
        shape.depth,
        1,
        place.engine,
    )
}

/// The names of probes.
const PROBES: [&str; 2] = ["read-probe", "write-probe"];

/// A probe for the best shape.
pub fn probe(role: Role, place: &Place, shape: Shape, pace: &Pace) -> Case {
    let name = if role == Role::Read { PROBES[0] } else { PROBES[1] };
    sequential(name, role, place, shape).lasting(pace.probe, false)
}

/// All cases except the fill.
pub fn main(place: &Place, pace: &Pace) -> Vec<Case> {
    let mut cases = Vec::new();
    let lasting = |case: Case| case.lasting(pace.case, pace.is_steady);
    let random = |name: &str, role, rw: &str| {
        Case::new(name, role, "4k, depth 1".to_owned(), place).with(&[
            ("rw", &rw),
            ("bs", &"4k"),
            ("ioengine", &place.alone()),
        ])
    };
    if let Some(remote) = place.remote.as_ref().filter(|remote| remote.layout == Layout::Objects) {
        return remote::objects(remote, place, pace);
    }
    cases.push(lasting(sequential("read", Role::Read, place, place.read)));
    if place.may_write {
        cases.push(lasting(sequential("write", Role::Write, place, place.write)));
    }
    cases.push(lasting(random("randread", Role::RandomRead, "randread")));
    if place.may_write {
        cases.push(lasting(random("randwrite", Role::RandomWrite, "randwrite")));
    }
    if place.has_stages {
        // A case of its own: observing costs a little.
        let case = random("stages", Role::Stages, "randread").with(&[("stages", &1)]);
        cases.push(case.lasting(pace.step / 2.0, false));
    }
    for &depth in pace.depths {
        let workers = place.workers(depth);
        let case = Case::new(&format!("randread-{depth}"), Role::Step, format!("4k, depth {depth}"), place)
            .with(&[("rw", &"randread"), ("bs", &"4k")])
            .deep(depth, workers, place.engine);
        cases.push(case.lasting(pace.step, false));
    }
    if place.may_write {
        let depth = 16;
        let mix = Case::new("mix", Role::Mix, format!("4k, depth {depth}"), place)
            .with(&[("rw", &"randrw"), ("rwmixread", &70), ("bs", &"4k")])
            .deep(depth, place.workers(depth), place.engine);
        cases.push(lasting(mix));
        // A write to a pool is durable when it completes, and a sync does nothing.
        if !place.remote.as_ref().is_some_and(Remote::is_pool) {
            cases.extend([1, 8].map(|writers| lasting(durable(place, writers))));
        }
    }
    if place.has_names {
        cases.extend(names(place, pace));
    }
    cases
}

/// All cases, in their order.
pub fn all(place: &Place, pace: &Pace) -> Vec<Case> {
    let fill = (place.is_new && !place.has_objects()).then(|| fill(place, pace));
    fill.into_iter().chain(main(place, pace)).collect()
}

/// Writes of 4 KiB, each followed by fdatasync, as databases commit: through the page cache, so that the sync has all of
/// the cost. Each writer has its own part of the file.
fn durable(place: &Place, writers: u32) -> Case {
    let name = format!("durable-{writers}");
    let what = if writers == 1 { "4k, fdatasync".to_owned() } else { format!("{writers} writers") };
    let part = (place.bytes / u64::from(writers)) & !4095;
    let mut case = Case::new(&name, Role::Durable, what, place).with(&[
        ("rw", &"write"),
        ("bs", &"4k"),
        ("ioengine", &place.alone()),
        ("fdatasync", &1),
        ("size", &part),
    ]);
    if place.remote.is_none() {
        case.set("direct", 0);
    }
    (case.is_direct, case.depth, case.workers) = (false, writers, writers);
    if writers > 1 {
        case.set("numjobs", writers);
        case.set("offset_increment", part);
    }
    case
}

/// Making, looking up and removing small files.
fn names(place: &Place, pace: &Pace) -> Vec<Case> {
    let all = [("create", "filecreate"), ("stat", "filestat"), ("remove", "filedelete")];
    let of = |(name, engine): (&str, &str)| {
        let mut case = Case::new(name, Role::Names, format!("{} files", place.files), place).with(&[
            ("filename_format", &format!("{}/small.$filenum", place.directory().display())),
            ("nrfiles", &place.files),
            ("ioengine", &engine),
            ("filesize", &"4k"),
            ("bs", &"4k"),
            ("openfiles", &1),
            // Each case makes what it needs when it starts.
            ("create_serialize", &0),
            // That is not measured, and would take long.
            ("create_fsync", &0),
            ("runtime", &format!("{:.0}ms", 1000.0 * pace.names)),
        ]);
        ["filename", "size", "direct"].iter().for_each(|option| case.unset(option));
        case.is_direct = false;
        case.seconds = pace.names;
        case
    };
    all.map(of).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place {
            remote: None,
            file: "/mnt/a:b/data".into(),
            bytes: 1 << 30,
            has_stages: true,
            is_new: true,
            may_write: true,
            is_direct: true,
            engine: "libaio",
            has_names: true,
            files: 100,
            processors: 6,
            read: FIRST,
            write: FIRST,
        }
    }

    #[test]
    fn depths_are_shared_by_workers() {
        let workers = [1, 2, 3, 4, 16, 128].map(|depth| place().workers(depth));
        assert_eq!(workers, [1, 2, 2, 4, 4, 4]);
        assert_eq!(Place { processors: 3, ..place() }.workers(64), 2);
    }

    #[test]
    fn what_may_not_be_written_is_only_read() {
        let read_only = Place { may_write: false, is_new: false, has_names: false, ..place() };
        for case in all(&read_only, &USUAL) {
            let section = case.section(false);
            assert!(section.contains("rw=read\n") || section.contains("rw=randread\n"), "{section}");
        }
    }

    #[test]
    fn cases_are_sections() {
        let cases = all(&place(), &USUAL);
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(&names[..3], ["fill", "read", "write"]);
        assert_eq!(&names[names.len() - 3..], ["create", "stat", "remove"]);
        let durable = cases.iter().find(|case| case.name == "durable-8").unwrap().section(true);
        assert!(durable.contains("filename=/mnt/a\\:b/data\nsize=134217728\n"), "{durable}");
        assert!(durable.contains("numjobs=8\noffset_increment=134217728\n"), "{durable}");
    }

    /// Ten, sixty and six hundred seconds, with some room for the starts.
    #[test]
    fn a_test_takes_its_time() {
        let seconds = |pace: &Pace| {
            let cases: f64 = all(&place(), pace).iter().map(|case| case.seconds).sum();
            cases + 2.0 * (DEPTHS.len() + SIZES.len()) as f64 * pace.probe
        };
        assert!((10.0..16.0).contains(&seconds(&QUICK)), "{}", seconds(&QUICK));
        assert!((50.0..70.0).contains(&seconds(&USUAL)), "{}", seconds(&USUAL));
        assert!((540.0..660.0).contains(&seconds(&THOROUGH)), "{}", seconds(&THOROUGH));
    }
}
