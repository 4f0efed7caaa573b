//! The options of `libblkio`.

use super::own::{LocalTarget, Obstacle, OwnOptions, own, own_options, place};
use super::shared::{HIPRI, option};
use crate::JobOptions;
use crate::definition::{Definition, Kind, Places};
use serde::{Deserialize, Serialize};

/// How a worker waits for completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlkioWait {
    /// In the library, which sleeps.
    #[default]
    Block,
    /// In poll(2), on the descriptor on which the library announces completions.
    Eventfd,
    /// It asks the library again and again.
    Loop,
}

/// Properties of the library, in the order in which they are set.
pub type BlkioProperties = Vec<(String, String)>;

own_options! {
    /// The options of `libblkio`.
    pub struct LibblkioOptions declared by OPTIONS with places {
        /// The driver of the library.
        pub libblkio_driver: String,
        /// The file, device or socket of the driver.
        pub libblkio_path: String,
        /// Properties that are set before the driver connects.
        pub libblkio_pre_connect_props: BlkioProperties,
        /// The property `num-entries`.
        pub libblkio_num_entries: Option<u32>,
        /// The property `queue-size`.
        pub libblkio_queue_size: Option<u32>,
        /// Properties that are set before the driver starts.
        pub libblkio_pre_start_props: BlkioProperties,
        /// Use a queue that is polled.
        pub hipri: bool,
        /// Reads and writes are vectors with one element.
        pub libblkio_vectored: bool,
        /// A trim is a request to write zeros.
        pub libblkio_write_zeroes_on_trim: bool,
        /// How a worker waits for completions.
        pub libblkio_wait_mode: BlkioWait,
        /// The library announces completions on its descriptor, even if nobody waits there.
        pub libblkio_force_enable_completion_eventfd: bool,
        /// The longest time without a completion while I/Os are in flight, without an answer about memory, and until the
        /// driver is connected, in microseconds; 0 = no limit.
        pub libblkio_timeout: u64,
    }
}

impl LibblkioOptions {
    /// The path that counts: properties are set after the options, and so the last one wins. Empty = none is given.
    pub fn path(&self) -> &str {
        let set = self.libblkio_pre_connect_props.iter().rev().find(|(name, _)| name == "path");
        set.map_or(&self.libblkio_path, |(_, path)| path)
    }

    /// Whether the driver is the only client of its device, because a device of virtio takes no second one.
    pub fn is_alone(&self) -> bool {
        self.libblkio_driver.starts_with("virtio-blk-")
    }

    /// Whether the driver does its I/O on a file or device of this machine by its path.
    pub fn opens_files(&self) -> bool {
        matches!(self.libblkio_driver.as_str(), "io_uring" | "nvme-io_uring")
    }
}

impl Places for LibblkioOptions {
    fn hipri(&mut self) -> Option<&mut bool> {
        Some(&mut self.hipri)
    }
}

impl OwnOptions for LibblkioOptions {
    fn patience_us(&self) -> Option<u64> {
        Some(self.libblkio_timeout)
    }

    fn only_name(&self) -> Option<&str> {
        Some(self.path()).filter(|path| !path.is_empty())
    }

    fn local_target(&self) -> Option<LocalTarget<'_>> {
        let path = self.only_name()?;
        self.opens_files().then_some(LocalTarget { option: "libblkio_path", path })
    }

    fn obstacles(&self, job: &JobOptions) -> Vec<Obstacle> {
        let mut found = Vec::new();
        let mut add = |option, why: &str| found.push((option, format!("{option}: {why}")));
        if self.libblkio_driver.is_empty() {
            add(
                "libblkio_driver",
                "it is missing; io_uring (files and devices), nvme-io_uring (/dev/ng0n1), virtio-blk-vhost-user \
                 (sockets), virtio-blk-vhost-vdpa and virtio-blk-vfio-pci are drivers",
            );
        }
        if self.hipri && self.libblkio_wait_mode == BlkioWait::Eventfd {
            add(
                "hipri",
                "a queue that is polled has no completion eventfd; leave libblkio_wait_mode=eventfd out",
            );
        }
        if self.hipri && self.libblkio_force_enable_completion_eventfd {
            add(
                "hipri",
                "a queue that is polled has no completion eventfd; leave \
                 libblkio_force_enable_completion_eventfd out",
            );
        }
        if self.is_alone() && job.schedule.numjobs > 1 && !job.schedule.thread {
            add(
                "numjobs",
                "a virtio device takes one client at a time; add thread=1, so that the clones share one, with a queue \
                 for each",
            );
        }
        found
    }
}

/// Reads a list of properties: `NAME=VALUE:NAME=VALUE`, where `\:` is a colon of a value.
fn properties(text: &str) -> Result<BlkioProperties, String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let part = parts.last_mut().expect("there is one");
        match character {
            '\\' if characters.peek() == Some(&':') => part.extend(characters.next()),
            ':' => parts.push(String::new()),
            _ => part.push(character),
        }
    }
    let pair = |part: &String| match part.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!(
            "\"{part}\" is no property: NAME=VALUE is one, with colons between them (direct=true:fd=3)"
        )),
    };
    parts.iter().map(pair).collect()
}

macro_rules! properties {
    ($field:ident) => {
        |own, given| {
            place::<LibblkioOptions>(own)?.$field = properties(given.required()?)?;
            Ok(())
        }
    };
}

macro_rules! count {
    ($field:ident) => {
        |own, given| {
            place::<LibblkioOptions>(own)?.$field = Some(given.number()?);
            Ok(())
        }
    };
}

static DRIVER: Definition =
    option("libblkio_driver", Kind::Str, "Driver of the library (io_uring, virtio-blk-vhost-user, …)")
        .lands_in_engine(own!(LibblkioOptions.libblkio_driver, string()));
static PATH: Definition = option("libblkio_path", Kind::Str, "File, device or socket that the driver opens")
    .names_files(|job| job.engine.of().map(LibblkioOptions::path).into_iter().map(str::to_owned).collect())
    .lands_in_engine(own!(LibblkioOptions.libblkio_path, string()));
static PRE_CONNECT_PROPS: Definition = option(
    "libblkio_pre_connect_props",
    Kind::Str,
    "Properties to set before connecting, NAME=VALUE, with colons between them",
)
.lands_in_engine(properties!(libblkio_pre_connect_props));
static NUM_ENTRIES: Definition =
    option("libblkio_num_entries", Kind::Int, "Value of the driver's property num-entries")
        .range(1, i32::MAX as i64)
        .lands_in_engine(count!(libblkio_num_entries));
static QUEUE_SIZE: Definition =
    option("libblkio_queue_size", Kind::Int, "Value of the driver's property queue-size")
        .range(1, i32::MAX as i64)
        .lands_in_engine(count!(libblkio_queue_size));
static PRE_START_PROPS: Definition = option(
    "libblkio_pre_start_props",
    Kind::Str,
    "Properties to set before starting, NAME=VALUE, with colons between them",
)
.lands_in_engine(properties!(libblkio_pre_start_props));
static VECTORED: Definition = option("libblkio_vectored", Kind::Flag, "Submit vectored reads and writes")
    .lands_in_engine(own!(LibblkioOptions.libblkio_vectored, boolean()));
static WRITE_ZEROES_ON_TRIM: Definition =
    option("libblkio_write_zeroes_on_trim", Kind::Flag, "Write zeroes instead of discarding in trims")
        .lands_in_engine(own!(LibblkioOptions.libblkio_write_zeroes_on_trim, boolean()));
static WAIT_MODE: Definition = option("libblkio_wait_mode", Kind::Str, "How to wait for completions")
    .default("block")
    .keywords(&[
        ("block", "In the library"),
        ("eventfd", "By poll(2) on the completion eventfd"),
        ("loop", "By asking again and again"),
    ])
    .lands_in_engine(|own, given| {
        place::<LibblkioOptions>(own)?.libblkio_wait_mode = match given.keyword()? {
            "eventfd" => BlkioWait::Eventfd,
            "loop" => BlkioWait::Loop,
            _ => BlkioWait::Block,
        };
        Ok(())
    });
static FORCE_EVENTFD: Definition = option(
    "libblkio_force_enable_completion_eventfd",
    Kind::Flag,
    "Enable the completion eventfd even if nobody waits there",
)
.lands_in_engine(own!(LibblkioOptions.libblkio_force_enable_completion_eventfd, boolean()));
static TIMEOUT: Definition = option(
    "libblkio_timeout",
    Kind::Time,
    "The longest time without a completion or answer, or until the driver is connected; 0 = no limit",
)
.default("60s")
.lands_in_engine(own!(LibblkioOptions.libblkio_timeout, time(1_000_000)));

/// All of them.
pub static OPTIONS: &[&Definition] = &[
    &DRIVER,
    &PATH,
    &PRE_CONNECT_PROPS,
    &NUM_ENTRIES,
    &QUEUE_SIZE,
    &PRE_START_PROPS,
    &HIPRI,
    &VECTORED,
    &WRITE_ZEROES_ON_TRIM,
    &WAIT_MODE,
    &FORCE_EVENTFD,
    &TIMEOUT,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_have_names_values_and_escaped_colons() {
        let read = |text| properties(text).map_err(|why| why.split(':').next().unwrap().to_owned());
        let pairs = |list: &[(&str, &str)]| {
            Ok(list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        assert_eq!(read("direct=true"), pairs(&[("direct", "true")]));
        assert_eq!(read(r"path=/a\:b:fd=:x=y=z"), pairs(&[("path", "/a:b"), ("fd", ""), ("x", "y=z")]));
        assert_eq!(read(r"path=\\x"), pairs(&[("path", r"\\x")]));
        for wrong in ["direct", "", "a=b:", "=true", "a=b::c=d"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_path_that_is_set_last_counts() {
        let mut own = LibblkioOptions::default();
        assert_eq!(own.only_name(), None);
        own.libblkio_path = "/first".into();
        assert_eq!((own.only_name(), own.local_target().is_some()), (Some("/first"), false));
        own.libblkio_pre_connect_props = properties("path=/second:read-only=true:path=/third").unwrap();
        own.libblkio_driver = "io_uring".into();
        assert_eq!(own.path(), "/third");
        assert_eq!(own.local_target().unwrap().path, "/third");
    }

    #[test]
    fn what_cannot_go_together_is_refused() {
        let told = |change: fn(&mut LibblkioOptions, &mut JobOptions)| {
            let mut own =
                LibblkioOptions { libblkio_driver: "virtio-blk-vhost-user".into(), ..Default::default() };
            let mut job = JobOptions::default();
            change(&mut own, &mut job);
            own.obstacles(&job).into_iter().map(|(option, _)| option).collect::<Vec<_>>()
        };
        assert_eq!(told(|_, _| ()), [""; 0]);
        assert_eq!(told(|own, _| own.libblkio_driver.clear()), ["libblkio_driver"]);
        assert_eq!(
            told(|own, _| (own.hipri, own.libblkio_wait_mode) = (true, BlkioWait::Eventfd)),
            ["hipri"]
        );
        assert_eq!(told(|own, _| (own.hipri, own.libblkio_wait_mode) = (true, BlkioWait::Loop)), [""; 0]);
        let forced = |own: &mut LibblkioOptions, _: &mut JobOptions| {
            (own.hipri, own.libblkio_force_enable_completion_eventfd) = (true, true);
        };
        assert_eq!(told(forced), ["hipri"]);
        assert_eq!(told(|_, job| job.schedule.numjobs = 2), ["numjobs"]);
        assert_eq!(told(|_, job| (job.schedule.numjobs, job.schedule.thread) = (2, true)), [""; 0]);
        let files = |own: &mut LibblkioOptions, job: &mut JobOptions| {
            own.libblkio_driver = "io_uring".into();
            job.schedule.numjobs = 2;
        };
        assert_eq!(told(files), [""; 0]);
    }
}
