//! What is noted for a continuation after a kill, a crash or a loss of power, and how it is known whether the device was written
//! meanwhile.
//!
//! While a case runs, the counters of written sectors are noted each second. A killed case wrote until its end, which is at most a
//! few seconds of its own rate after the last note. More than that was written by others. After a reboot the kernel counts from
//! 0: then everything it counts was written by others, and the controller of an NVMe device knows of writes before.

use super::target::Target;
use crate::run_series::directory::Directory;
use crate::saving::now_ms;
use iolite_host::Disk;
use iolite_os::nvme::erasure;
use iolite_page::text::bytes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

/// The file of the state.
const FILE: &str = "state.json";
/// The counters that were noted while a case ran. It is not forced to the disk, so a loss of power may damage it.
const PASSING: &str = "passing.json";
/// Sectors of the kernel's counters.
const SECTOR: u64 = 512;
/// Bytes of a unit of an NVMe device's counter.
const UNIT: u64 = 512_000;
/// Seconds of its own rate that a killed case may have written after the last note, which is made each second.
const SECONDS: u64 = 3;
/// The same for the time of a file's modification, in milliseconds.
const MILLISECONDS: u64 = 3000;
/// Bytes that a case may have written more than that.
const MORE: u64 = 4 << 20;

/// What is known of writes to the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The boot of the system.
    boot: String,
    /// Bytes that the kernel wrote or discarded since then; `None` = it does not count.
    kernel: Option<u64>,
    /// Units that the device was told to write in its life.
    device: Option<u64>,
    /// When a file was modified, in milliseconds since 1970.
    modified: Option<u64>,
}

impl Counters {
    /// Those of now. `asks`: the device is asked by a command, too.
    pub fn now(target: &Target, asks: bool) -> Counters {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let nvme = || {
            let file = File::open(&target.path).ok()?;
            erasure::data_units_written(file.as_raw_fd()).ok()
        };
        let is_nvme = asks && target.kind() == "NVMe namespace";
        let modified = || {
            let found = fs::metadata(&target.path).ok()?;
            u64::try_from(found.mtime().saturating_mul(1000).saturating_add(found.mtime_nsec() / 1_000_000))
                .ok()
        };
        Counters {
            boot: boot.trim().to_owned(),
            kernel: target
                .disk
                .as_ref()
                .and_then(Disk::changed_sectors)
                .map(|sectors| sectors.saturating_mul(SECTOR)),
            device: is_nvme.then(nvme).flatten(),
            modified: target.is_file.then(modified).flatten(),
        }
    }

    fn told(&self) -> Value {
        json!({"boot": self.boot, "kernel_bytes": self.kernel, "device_units": self.device, "modified_ms": self.modified})
    }

    fn of(value: &Value) -> Counters {
        Counters {
            boot: value["boot"].as_str().unwrap_or_default().to_owned(),
            kernel: value["kernel_bytes"].as_u64(),
            device: value["device_units"].as_u64(),
            modified: value["modified_ms"].as_u64(),
        }
    }
}

/// Whether the device was written since a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// It was not, and this is how that is known.
    Untouched(String),
    /// It was, or may have been.
    Written(String),
}

/// The state of a procedure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// How often each unit was begun.
    pub attempts: BTreeMap<String, u32>,
    /// How the write cache was before.
    pub cache_was: Option<bool>,
    /// What was interrupted, and repeated.
    pub interruptions: Vec<String>,
    /// The units that went on after an interruption.
    pub interrupted: BTreeSet<String>,
    /// What others wrote while a step ran.
    pub written_by_others: Vec<String>,
    /// The step that runs, or was the last one.
    pub running: Option<String>,
    /// Nothing has run since the last note: whatever was written since then was written by others.
    pub is_at_rest: bool,
    /// Bytes that it writes in all, if that is known.
    pub amount: u64,
    /// The counters at the last note.
    counters: Counters,
    /// The most bytes that were written in a second.
    fastest: u64,
    /// When the last note was made.
    noted_ms: u64,
}

impl State {
    /// Reads it; an empty one if there is none.
    pub fn read(directory: &Directory) -> Result<State, String> {
        let path = directory.path.join(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(State::default()),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let mut state = serde_json::from_slice(&text).ok().as_ref().and_then(State::of).ok_or_else(|| {
            format!(
                "{}: this file is damaged, so it is unknown what was interrupted; if you remove it, --resume repeats the test \
                 that was on its way from its purge on, and the write cache stays as it is at the end",
                path.display()
            )
        })?;
        // What is lost of the notes in passing is found by the durable one.
        let passing = fs::read(directory.path.join(PASSING)).unwrap_or_default();
        if let Ok(passing) = serde_json::from_slice::<Value>(&passing) {
            state.take_passing(&passing);
        }
        Ok(state)
    }

    /// `None` = the value is no state.
    fn of(value: &Value) -> Option<State> {
        let list = |key: &str| -> Option<Vec<String>> {
            value[key].as_array()?.iter().map(|words| words.as_str().map(str::to_owned)).collect()
        };
        let attempts = value["attempts"].as_object()?.iter();
        Some(State {
            attempts: attempts
                .map(|(name, count)| Some((name.clone(), u32::try_from(count.as_u64()?).ok()?)))
                .collect::<Option<_>>()?,
            cache_was: value["cache_was"].as_bool(),
            interruptions: list("interruptions")?,
            interrupted: list("interrupted")?.into_iter().collect(),
            written_by_others: list("written_by_others").unwrap_or_default(),
            running: value["running"].as_str().map(str::to_owned),
            is_at_rest: value["at_rest"].as_bool()?,
            amount: value["amount_bytes"].as_u64()?,
            counters: value["counters"].is_object().then(|| Counters::of(&value["counters"]))?,
            fastest: value["fastest_bytes"].as_u64()?,
            noted_ms: value["noted_ms"].as_u64()?,
        })
    }

    /// Takes counters that were noted while the same step ran.
    fn take_passing(&mut self, value: &Value) {
        let noted = value["noted_ms"].as_u64().filter(|noted| *noted >= self.noted_ms);
        let is_same = self.running.is_some() && value["running"].as_str() == self.running.as_deref();
        let (Some(noted), true, false) = (noted, is_same, self.is_at_rest) else { return };
        if value["counters"].is_object() {
            self.counters = Counters::of(&value["counters"]);
            self.fastest = self.fastest.max(value["fastest_bytes"].as_u64().unwrap_or(0));
            self.noted_ms = noted;
        }
    }

    /// Notes the counters, durably.
    pub fn note(&mut self, directory: &Directory, target: &Target) -> Result<(), String> {
        self.counters = Counters::now(target, true);
        self.noted_ms = now_ms();
        directory.write(FILE, &self.text())
    }

    /// Notes the counters while a case runs. What is lost of such a note is found by the one before, so it is not forced to the
    /// disk, and errors do not matter.
    pub fn note_in_passing(&mut self, directory: &Directory, target: &Target) {
        let (now, counters) = (now_ms(), Counters::now(target, false));
        let passed = now.saturating_sub(self.noted_ms).max(1);
        if let Some((before, after)) = self.counters.kernel.zip(counters.kernel) {
            self.fastest = self.fastest.max(after.saturating_sub(before).saturating_mul(1000) / passed);
        }
        // What the device counts is not asked each time.
        let device =
            self.counters.device.map(|units| units.saturating_add(self.written_since(&counters) / UNIT));
        self.counters = Counters { device, ..counters };
        self.noted_ms = now;
        let (growing, path) = (directory.path.join(format!("{PASSING}.new")), directory.path.join(PASSING));
        let value = json!({
            "running": self.running,
            "counters": self.counters.told(),
            "fastest_bytes": self.fastest,
            "noted_ms": self.noted_ms,
        });
        let _ = fs::write(&growing, format!("{value:#}\n")).and_then(|()| fs::rename(&growing, &path));
    }

    /// A case wrote this many bytes in so many seconds.
    pub fn has_written(&mut self, written: u64, seconds: f64) {
        if seconds > 0.0 {
            self.fastest = self.fastest.max((written as f64 / seconds) as u64);
        }
    }

    /// What the kernel has counted so far, in bytes; `None` = it does not count.
    pub fn counted(target: &Target) -> Option<u64> {
        Counters::now(target, false).kernel
    }

    /// Notes what others wrote while a step ran that wrote this many bytes itself. `before`: the kernel's count at its beginning.
    pub fn check_others(
        &mut self,
        step: &str,
        before: Option<u64>,
        now: Option<u64>,
        own: u64,
    ) -> Option<&str> {
        let others = now?.saturating_sub(before?).saturating_sub(own);
        if others == 0 {
            return None;
        }
        let words = format!("others wrote {} to the device during {step}", bytes(others as f64));
        self.written_by_others.push(words);
        self.written_by_others.last().map(String::as_str)
    }

    fn written_since(&self, counters: &Counters) -> u64 {
        let both = self.counters.kernel.zip(counters.kernel);
        both.map_or(0, |(before, after)| after.saturating_sub(before))
    }

    fn text(&self) -> String {
        let value = json!({
            "attempts": self.attempts,
            "cache_was": self.cache_was,
            "interruptions": self.interruptions,
            "interrupted": self.interrupted,
            "written_by_others": self.written_by_others,
            "running": self.running,
            "at_rest": self.is_at_rest,
            "amount_bytes": self.amount,
            "counters": self.counters.told(),
            "fastest_bytes": self.fastest,
            "noted_ms": self.noted_ms,
        });
        format!("{value:#}\n")
    }

    /// Whether the device was written since the last note by others than the case that ran.
    pub fn since(&self, now: &Counters) -> Since {
        let is_running = self.running.is_some() && !self.is_at_rest;
        let own = match is_running {
            true => self.fastest.saturating_mul(SECONDS).max(self.amount).saturating_add(MORE),
            false => 0,
        };
        if let Some(modified) = now.modified {
            let latest = self.noted_ms.saturating_add(if is_running { MILLISECONDS } else { 0 });
            return match modified > latest {
                true => Since::Written("the file was modified after the interruption".to_owned()),
                false => Since::Untouched("the time of the file's modification".to_owned()),
            };
        }
        if self.counters.boot.is_empty() {
            return Since::Written("what was noted of it is lost".to_owned());
        }
        let by_device = self.counters.device.zip(now.device).map(|(before, after)| {
            // Units are rounded on both sides.
            (after.saturating_sub(before.saturating_add(2)).saturating_mul(UNIT), "the counter of the device")
        });
        let by_kernel =
            |before: u64| now.kernel.map(|after| (after.saturating_sub(before), "the counter of the kernel"));
        let is_same_boot = self.counters.boot == now.boot;
        let told = if is_same_boot {
            self.counters.kernel.and_then(by_kernel)
        } else {
            by_device.or_else(|| by_kernel(0))
        };
        let own = if is_same_boot || by_device.is_some() { own } else { 0 };
        match told {
            Some((written, how)) if written > own => Since::Written(format!(
                "{how} says that {} were written to it meanwhile",
                bytes(written as f64)
            )),
            Some((_, how)) if is_same_boot || by_device.is_some() => Since::Untouched(how.to_owned()),
            Some((_, how)) => Since::Untouched(format!(
                "{how} since the boot; what was written before it, or elsewhere, is unknown"
            )),
            None => {
                Since::Written("neither the kernel nor the device counts what is written to it".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(boot: &str, kernel: Option<u64>, device: Option<u64>) -> Counters {
        Counters { boot: boot.to_owned(), kernel, device, modified: None }
    }

    fn state(running: bool, counters: Counters) -> State {
        State {
            running: running.then(|| "cell".to_owned()),
            counters,
            fastest: 100 << 20,
            ..State::default()
        }
    }

    fn is_untouched(state: &State, now: &Counters) -> bool {
        matches!(state.since(now), Since::Untouched(_))
    }

    #[test]
    fn a_killed_case_may_have_written_a_little_more() {
        let killed = state(true, counters("a", Some(1 << 30), None));
        assert!(is_untouched(&killed, &counters("a", Some((1 << 30) + (300 << 20)), None)));
        assert!(!is_untouched(&killed, &counters("a", Some((1 << 30) + (400 << 20)), None)));
        let preconditioning = State { amount: 8 << 30, ..state(true, counters("a", Some(0), None)) };
        assert!(
            is_untouched(&preconditioning, &counters("a", Some(8 << 30), None)),
            "all of it may be written"
        );
        let between = state(false, counters("a", Some(1 << 30), None));
        assert!(is_untouched(&between, &counters("a", Some(1 << 30), None)));
        assert!(!is_untouched(&between, &counters("a", Some((1 << 30) + 512), None)), "one sector is enough");
        let at_rest = State { is_at_rest: true, ..state(true, counters("a", Some(1 << 30), None)) };
        assert!(is_untouched(&at_rest, &counters("a", Some(1 << 30), None)));
        assert!(!is_untouched(&at_rest, &counters("a", Some((1 << 30) + 512), None)), "as after a signal");
    }

    #[test]
    fn what_a_step_did_not_write_was_written_by_others() {
        let mut state = State::default();
        assert_eq!(state.check_others("lat-01-100r-4k", Some(100), Some(612), 512), None);
        assert_eq!(state.check_others("lat-01-100r-4k", None, Some(612), 0), None);
        let told = state.check_others("lat-01-0r-4k", Some(100), Some(1636), 512);
        assert_eq!(told, Some("others wrote 1 KiB to the device during lat-01-0r-4k"));
        let text: Value = serde_json::from_str(&state.text()).unwrap();
        assert_eq!(State::of(&text).unwrap().written_by_others.len(), 1);
    }

    #[test]
    fn after_a_reboot_the_device_is_asked() {
        let before = state(true, counters("a", Some(1 << 40), Some(1000)));
        assert!(is_untouched(&before, &counters("b", Some(0), Some(1100))));
        assert!(!is_untouched(&before, &counters("b", Some(0), Some(9000))));
        let without = state(true, counters("a", Some(1 << 40), None));
        let told = without.since(&counters("b", Some(0), None));
        assert!(matches!(&told, Since::Untouched(words) if words.contains("is unknown")), "{told:?}");
        assert!(!is_untouched(&without, &counters("b", Some(512), None)));
        assert!(!is_untouched(&State::default(), &counters("b", Some(0), None)), "a lost note says nothing");
        assert!(!is_untouched(&without, &counters("a", None, None)));
    }

    #[test]
    fn what_is_noted_is_read_again_and_damage_is_seen() {
        let mut noted = State {
            attempts: [("lat".to_owned(), 2)].into(),
            interrupted: ["tp-1024k".to_owned()].into(),
            noted_ms: u64::MAX - 1,
            ..state(true, counters("a", Some(5), Some(u64::MAX)))
        };
        let value: Value = serde_json::from_str(&noted.text()).unwrap();
        assert_eq!(State::of(&value).as_ref(), Some(&noted));
        let mut damaged = value.clone();
        damaged["attempts"]["lat"] = "2".into();
        assert_eq!((State::of(&damaged), State::of(&json!({}))), (None, None));
        // The largest numbers are no harm.
        assert!(is_untouched(&noted, &Counters { modified: Some(1), ..counters("b", None, Some(7)) }));
        assert!(is_untouched(&noted, &counters("b", None, Some(7))));
        let mut passing = json!({"running": "other", "counters": counters("a", Some(9), None).told(), "noted_ms": u64::MAX});
        noted.take_passing(&passing);
        assert_eq!(noted.counters.kernel, Some(5), "of another step");
        passing["running"] = "cell".into();
        noted.take_passing(&passing);
        assert_eq!((noted.counters.kernel, noted.noted_ms), (Some(9), u64::MAX));
    }

    #[test]
    fn files_have_a_time() {
        let at = |modified| Counters { modified: Some(modified), ..Counters::default() };
        let between = State { noted_ms: 5000, ..State::default() };
        assert!(is_untouched(&between, &at(5000)) && !is_untouched(&between, &at(5001)));
        let killed = State { running: Some("cell".to_owned()), ..between };
        assert!(is_untouched(&killed, &at(7000)) && !is_untouched(&killed, &at(9000)));
    }
}
