//! Purging: the device is brought into the state in which nothing was ever written.

use super::target::Target;
use iolite_os::nvme::erasure::{self as nvme, Erasures};
use iolite_os::scsi::erasure as scsi;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often a device is asked how far it is.
const LOOK: Duration = Duration::from_millis(500);

/// How the device is purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purge {
    /// By the best way that the device has.
    Auto,
    /// NVMe: Format NVM.
    Format,
    /// NVMe and SCSI: Sanitize.
    Sanitize,
    /// Discards of all blocks.
    Discard,
    /// A command of the user's.
    Run(String),
    /// Not at all.
    None,
}

/// What is done about a purge.
pub enum Done {
    /// The device was purged; the words say how.
    Purged(String),
    /// A job discards all blocks; the words say why.
    ByJob(String),
    /// It was not purged.
    Not,
    /// A signal came while the device was at work; it goes on by itself.
    Interrupted,
}

/// What a purge says and asks while the device is at work.
pub struct Watch<'a> {
    pub tell: &'a mut dyn FnMut(&str),
    pub is_ended: &'a dyn Fn() -> bool,
}

impl Watch<'_> {
    /// Asks `look` until it is done: it answers with the words for how far the device is, or `None` at the end. Returns
    /// whether it came to its end.
    fn wait(&mut self, look: &mut dyn FnMut() -> Result<Option<String>, String>) -> Result<bool, String> {
        let mut before = String::new();
        loop {
            std::thread::sleep(LOOK);
            if (self.is_ended)() {
                return Ok(false);
            }
            let Some(words) = look()? else { return Ok(true) };
            if words != before {
                (self.tell)(&words);
                before = words;
            }
        }
    }
}

impl Purge {
    pub fn of(word: Option<&str>) -> Result<Purge, String> {
        Ok(match word {
            None | Some("auto") => Purge::Auto,
            Some("format") => Purge::Format,
            Some("sanitize") => Purge::Sanitize,
            Some("discard") => Purge::Discard,
            Some("none") => Purge::None,
            Some(text) => match text.strip_prefix("run:").map(str::trim) {
                Some(command) if !command.is_empty() => Purge::Run(command.to_owned()),
                _ => {
                    return Err(format!(
                        "--purge={text}: not one of auto, format, sanitize, discard, none, run:COMMAND"
                    ));
                }
            },
        })
    }

    /// The word that chooses it.
    pub fn word(&self) -> String {
        match self {
            Purge::Auto => "auto".to_owned(),
            Purge::Format => "format".to_owned(),
            Purge::Sanitize => "sanitize".to_owned(),
            Purge::Discard => "discard".to_owned(),
            Purge::None => "none".to_owned(),
            Purge::Run(command) => format!("run:{command}"),
        }
    }

    /// What it does.
    pub fn words(&self) -> String {
        match self {
            Purge::Auto => "by a format or sanitize command, or by discards".to_owned(),
            Purge::Format => "NVMe Format NVM".to_owned(),
            Purge::Sanitize => "Sanitize, block erase".to_owned(),
            Purge::Discard => "discards of all blocks".to_owned(),
            Purge::None => "not at all (--purge=none)".to_owned(),
            Purge::Run(command) => format!("by the command {command}"),
        }
    }

    /// Whether a job of discards is what is done with this target.
    pub fn is_discard(&self, target: &Target) -> bool {
        match self {
            Purge::Discard => true,
            Purge::Auto => !matches!(target.kind(), "NVMe namespace" | "SCSI disk"),
            _ => false,
        }
    }

    /// Checks that it is possible with this target, before anything is lost.
    pub fn check(&self, target: &Target) -> Result<(), String> {
        let told = |why: String| Err(format!("--purge={}: {}: {why}", self.word(), target.name));
        let kind = target.kind();
        match self {
            Purge::Format if kind != "NVMe namespace" => {
                told(format!("this is for NVMe namespaces, and it is a {kind}; try --purge=auto"))
            }
            Purge::Format => Nvme::open(target)?.check_format(),
            Purge::Sanitize if !matches!(kind, "NVMe namespace" | "SCSI disk") => told(format!(
                "this is for NVMe and SCSI devices, and it is a {kind}; try --purge=discard, or --purge=run:COMMAND, \
                 such as hdparm's secure erase of ATA disks"
            )),
            Purge::Sanitize if kind == "NVMe namespace" => Nvme::open(target)?.check_sanitize().map(drop),
            Purge::Discard if !discards(target) => told(
                "it knows no discards; purge it with --purge=run:COMMAND, or give --purge=none, which is written in the report"
                    .to_owned(),
            ),
            Purge::Auto => match auto(target)? {
                Some(_) => Ok(()),
                None => told(
                    "it can neither format nor sanitize nor discard; purge it with --purge=run:COMMAND, or give \
                     --purge=none, which is written in the report"
                        .to_owned(),
                ),
            },
            _ => Ok(()),
        }
    }

    /// Does it.
    pub fn perform(&self, target: &Target, watch: &mut Watch<'_>) -> Result<Done, String> {
        match self {
            Purge::Format => format(target).map(Done::Purged),
            Purge::Sanitize if target.kind() == "NVMe namespace" => sanitize_nvme(target, watch),
            Purge::Sanitize => match sanitize_scsi(target, watch)? {
                Some(done) => Ok(done),
                None => Err(format!("--purge=sanitize: {}: the disk does not know the command", target.name)),
            },
            Purge::Discard => Ok(Done::ByJob("discards of all blocks".to_owned())),
            Purge::None => Ok(Done::Not),
            Purge::Run(command) => run(command, target).map(Done::Purged),
            Purge::Auto => match auto(target)? {
                Some(Purge::Auto | Purge::None | Purge::Run(_)) | None => Ok(Done::Not),
                // A SCSI disk that knows no SANITIZE may know discards.
                Some(Purge::Sanitize) if target.kind() == "SCSI disk" && discards(target) => {
                    let by_job =
                        || Done::ByJob("discards of all blocks (the disk does not know SANITIZE)".to_owned());
                    Ok(sanitize_scsi(target, watch)?.unwrap_or_else(by_job))
                }
                Some(way) => way.perform(target, watch),
            },
        }
    }
}

/// The best way of a target.
fn auto(target: &Target) -> Result<Option<Purge>, String> {
    let discard = || discards(target).then_some(Purge::Discard);
    match target.kind() {
        "NVMe namespace" => {
            let device = Nvme::open(target)?;
            Ok(match () {
                () if device.check_format().is_ok() => Some(Purge::Format),
                () if device.check_sanitize().is_ok() => Some(Purge::Sanitize),
                () => discard(),
            })
        }
        "SCSI disk" => Ok(Some(Purge::Sanitize)),
        _ => Ok(discard()),
    }
}

/// Whether all blocks can be discarded. Files lose their blocks.
fn discards(target: &Target) -> bool {
    target.is_file || target.disk.as_ref().is_some_and(|disk| disk.queue.largest_discard.unwrap_or(0) > 0)
}

/// An NVMe namespace for admin commands.
struct Nvme<'a> {
    target: &'a Target,
    file: File,
    can: Erasures,
}

impl<'a> Nvme<'a> {
    /// Opens it exclusively, so that nothing can begin to use it.
    fn open(target: &'a Target) -> Result<Nvme<'a>, String> {
        let told = |error: std::io::Error| format!("{}: {error}", target.name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_EXCL);
        let file = options.open(&target.path).map_err(told)?;
        let can = Erasures::of(file.as_raw_fd()).map_err(told)?;
        Ok(Nvme { target, file, can })
    }

    fn check_format(&self) -> Result<(), String> {
        let told = |why: String| Err(format!("--purge=format: {}: {why}", self.target.name));
        if !self.can.formats {
            return told("the device does not know the command".to_owned());
        }
        if !self.can.formats_all {
            return Ok(());
        }
        match self.others() {
            Ok(others) if others.is_empty() => Ok(()),
            Ok(others) => told(format!(
                "on this device the command erases all namespaces, and there are others: {}",
                others.join(", ")
            )),
            Err(why) => told(format!("on this device the command erases all namespaces, and {why}")),
        }
    }

    /// Whether it can be sanitized; returns whether by a new key.
    fn check_sanitize(&self) -> Result<bool, String> {
        let told = |why: String| Err(format!("--purge=sanitize: {}: {why}", self.target.name));
        if !self.can.erases_blocks && !self.can.changes_key {
            return told("the device does not know the command".to_owned());
        }
        match self.others() {
            Ok(others) if others.is_empty() => Ok(!self.can.erases_blocks),
            Ok(others) => told(format!(
                "the command erases all namespaces of the subsystem, and there are others: {}",
                others.join(", ")
            )),
            Err(why) => told(format!("the command erases all namespaces of the subsystem, and {why}")),
        }
    }

    /// The other namespaces: those that the kernel shows, and those that only the controller knows.
    ///
    /// # Errors
    /// It cannot be known whether there are any.
    fn others(&self) -> Result<Vec<String>, String> {
        let Some(disk) = &self.target.disk else {
            return Err("/sys does not show whether there are others".to_owned());
        };
        let place = disk.directory.join("device");
        let told = |error: std::io::Error| {
            format!("whether there are others cannot be read: {}: {error}", place.display())
        };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&place).map_err(told)? {
            names.push(entry.map_err(told)?.file_name().to_string_lossy().into_owned());
        }
        let is_other = |name: &String| {
            let number = name.strip_prefix("nvme").and_then(|rest| rest.split_once('n'));
            *name != disk.name
                && number.is_some_and(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        names.retain(is_other);
        names.sort();
        if !names.is_empty() {
            return Ok(names);
        }
        match nvme::namespaces(self.file.as_raw_fd()) {
            Ok(Some(1)) => Ok(Vec::new()),
            Ok(Some(count)) => Ok(vec![format!("the controller counts {count} in all")]),
            Ok(None) => Err("the controller cannot tell whether there are others".to_owned()),
            Err(error) => Err(format!("the controller does not tell whether there are others: {error}")),
        }
    }
}

fn format(target: &Target) -> Result<String, String> {
    let device = Nvme::open(target)?;
    device.check_format()?;
    nvme::format(device.file.as_raw_fd()).map_err(|error| format!("{}: Format NVM: {error}", target.name))?;
    Ok("NVMe Format NVM with an erasure of user data".to_owned())
}

/// `None` = the disk does not know the command.
fn sanitize_scsi(target: &Target, watch: &mut Watch<'_>) -> Result<Option<Done>, String> {
    let told = |error: std::io::Error| {
        format!("{}: SANITIZE: {}", target.name, iolite_types::describe_error(&error))
    };
    // Exclusively, so that nothing can begin to use it.
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_EXCL);
    let file = options.open(&target.path).map_err(told)?;
    match scsi::sanitize(file.as_raw_fd()) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(None),
        begun => begun.map_err(told)?,
    }
    let is_done = watch.wait(&mut || match scsi::sanitized(file.as_raw_fd()).map_err(told)? {
        scsi::Sanitized::Done => Ok(None),
        scsi::Sanitized::Failed => Err(format!("{}: SANITIZE failed", target.name)),
        scsi::Sanitized::Going(share) => {
            let share = share.map(|share| format!(", {:.0}%", 100.0 * share)).unwrap_or_default();
            Ok(Some(format!("the device is sanitized{share}")))
        }
    })?;
    let purged = Done::Purged("SCSI SANITIZE, block erase".to_owned());
    Ok(Some(if is_done { purged } else { Done::Interrupted }))
}

fn sanitize_nvme(target: &Target, watch: &mut Watch<'_>) -> Result<Done, String> {
    let told = |error: std::io::Error| format!("{}: Sanitize: {error}", target.name);
    let device = Nvme::open(target)?;
    let by_key = device.check_sanitize()?;
    nvme::sanitize(device.file.as_raw_fd(), by_key).map_err(told)?;
    let is_done = watch.wait(&mut || match nvme::sanitized(device.file.as_raw_fd()).map_err(told)? {
        nvme::Sanitized::Done => Ok(None),
        nvme::Sanitized::Failed => Err(format!("{}: Sanitize failed", target.name)),
        nvme::Sanitized::Going(share) => Ok(Some(format!("the device is sanitized, {:.0}%", 100.0 * share))),
    })?;
    let how = if by_key { "crypto erase" } else { "block erase" };
    Ok(if is_done { Done::Purged(format!("NVMe Sanitize, {how}")) } else { Done::Interrupted })
}

/// Runs the user's command, which has the device in its environment.
fn run(command: &str, target: &Target) -> Result<String, String> {
    let told = |why: String| format!("--purge=run:{command}: {why}");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).env("DEVICE", &target.path).stdin(Stdio::null());
    // Standard output is that of the result.
    let output = shell.stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| told(error.to_string()))?;
    if output.status.success() {
        return Ok(format!("the command {command}"));
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(told(match words.trim() {
        "" => output.status.to_string(),
        words => format!("{}: {words}", output.status),
    }))
}
