//! Full disks: small ext4 file systems on loop devices, without room for the files of a run.
//!
//! - Data: the job fails, with "no space left" and its errno, whatever its engine; its earlier writes are there. A job
//!   that has to fill the disk (`fill_device`) succeeds, and its writes can be verified.
//! - Files that are laid out, logs, reports, states: the run reports the file that it could not write and fails, and an
//!   old report is still there. A job whose state cannot be kept reports that, and runs.
//! - No process is ended by a signal, and nothing holds the file system afterwards.

use crate::jobs::{any_engine, any_method, sometimes};
use crate::reading::{jobs, tells_of_damage};
use crate::running::Finished;
use crate::stop::Stop;
use crate::trial::Trial;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why there can be no such disks here.
pub fn obstacle() -> Option<String> {
    // SAFETY: it takes nothing, changes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Some("loop devices and mounts need root".into());
    }
    let tried = tempfile::tempdir().map_err(|error| error.to_string());
    tried.and_then(|directory| Disk::new(directory.path(), 8).map(drop)).err()
}

/// A small file system.
struct Disk {
    /// Where it is mounted.
    directory: PathBuf,
    device: String,
}

impl Disk {
    /// Makes one of so many megabytes, with image and mount point in a directory; or says why not.
    fn new(parent: &Path, megabytes: u64) -> Result<Disk, String> {
        let image = parent.join("image");
        let directory = parent.join("disk");
        let made = File::create(&image).and_then(|file| file.set_len(megabytes << 20));
        made.and_then(|()| fs::create_dir(&directory)).map_err(|error| error.to_string())?;
        let image = image.to_string_lossy();
        tool("mkfs.ext4", &["-q", "-F", "-m", "0", "-O", "^has_journal", &image])?;
        let device = attach(&image)?;
        let mounted = tool("mount", &[&device, &directory.to_string_lossy()]);
        let disk = Disk { directory, device };
        mounted.map(|_| disk)
    }

    /// Bytes that can still be written.
    fn room(&self) -> u64 {
        let path = std::ffi::CString::new(self.directory.to_string_lossy().as_bytes()).unwrap_or_default();
        // SAFETY: the structure is plain numbers, and both pointers live through the call.
        let stat = unsafe {
            let mut stat: libc::statvfs = std::mem::zeroed();
            libc::statvfs(path.as_ptr(), &raw mut stat);
            stat
        };
        stat.f_bavail * stat.f_frsize
    }

    /// Leaves only so much room.
    fn fill(&self, room: u64) -> Result<(), String> {
        let filler = self.directory.join("filler");
        let bytes = self.room().saturating_sub(room);
        match fs::write(filler, vec![1; bytes as usize]) {
            // The file system takes a little of its room for itself.
            Err(error) if error.raw_os_error() != Some(libc::ENOSPC) => {
                Err(format!("filling the disk: {error}"))
            }
            _ => Ok(()),
        }
    }

    /// Unmounts it.
    fn close(self) -> Result<(), String> {
        tool("umount", &[&self.directory.to_string_lossy()]).map(|_| ())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It may be unmounted already, or never have been mounted.
        let _ = tool("umount", &["-l", &self.directory.to_string_lossy()]);
        if let Err(error) = tool("losetup", &["--detach", &self.device]) {
            eprintln!("iolite-campaign: {error}");
        }
    }
}

/// A loop device on an image. Another program may take the one that was found free.
fn attach(image: &str) -> Result<String, String> {
    let mut last = String::new();
    for _ in 0..20 {
        match tool("losetup", &["--find", "--show", image]) {
            Ok(device) => return Ok(device.trim().into()),
            Err(error) => last = error,
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    Err(last)
}

fn tool(program: &str, arguments: &[&str]) -> Result<String, String> {
    // These are in sbin, which is not in every PATH.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let run = Command::new(program).args(arguments).env("PATH", path).output();
    let run = run.map_err(|error| format!("{program}: {error}"))?;
    match run.status.success() {
        true => Ok(String::from_utf8_lossy(&run.stdout).into_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&run.stderr).trim())),
    }
}

/// Performs one trial.
pub fn perform(trial: &mut Trial) -> Result<(), Stop> {
    trial.expect_files(&["image", "disk", "data", "*-verify.state"]);
    let megabytes = trial.between(6, 24);
    let disk = Disk::new(&trial.dir(), megabytes).map_err(Stop)?;
    trial.fault();
    match trial.between(0, 7) {
        0..=2 => too_large(trial, &disk)?,
        3 => filled(trial, &disk)?,
        4 => laid_out(trial, &disk)?,
        5 => logged(trial, &disk)?,
        6 => reported(trial, &disk)?,
        _ => with_state(trial, &disk)?,
    }
    disk.close().or_else(|why| {
        trial.wrong(format!("the disk is still in use: {why}"));
        Ok(())
    })
}

/// A job that writes more than there is room for.
fn too_large(trial: &mut Trial, disk: &Disk) -> Result<(), Stop> {
    let engine = any_engine(trial);
    let rw = trial.one_of(&["write", "write --overwrite=1", "randwrite", "rw"]);
    let block = trial.one_of(&["4k", "64k", "1m"]);
    let mut line = format!("--name=v --filename=disk/data --size=64m --bs={block} --rw={rw} {engine}");
    line += &sometimes(trial, 2, &["--fallocate=none"]);
    line += &sometimes(trial, 4, &["--thread", "--fsync=4", "--end_fsync=1", "--direct=1"]);
    line += &sometimes(trial, 4, &["--verify=crc32c", "--verify=md5 --verify_backlog=32"]);
    let run = trial.run(&format!("{line} --output-format=json --eta=never"))?;
    expect_no_space(trial, disk, &run, true);
    Ok(())
}

/// The run says that there is no space left, and fails.
fn expect_no_space(trial: &mut Trial, disk: &Disk, run: &Finished, has_report: bool) {
    let told = run.said().to_lowercase().contains("no space left");
    let ends = run.code() == Some(1) && told && !run.said().contains("signal");
    let report = jobs(&run.stdout);
    let named =
        !has_report || report.is_ok_and(|jobs| jobs.iter().any(|job| job.error == i64::from(libc::ENOSPC)));
    let room = disk.room();
    match ends && named {
        true => trial.found(),
        false => trial.missed(format!("{room} bytes of room, and then: {run}{}", excerpt(run))),
    }
}

/// The lines about errors in a run's output, because the whole report would be too long.
fn excerpt(run: &Finished) -> String {
    let telling =
        |line: &&str| line.contains("\"error\"") || line.contains("No space") || line.contains("func=");
    run.stdout.lines().filter(telling).take(6).map(|line| format!("      {}\n", line.trim())).collect()
}

/// A job that is to fill the disk.
fn filled(trial: &mut Trial, disk: &Disk) -> Result<(), Stop> {
    let engine = any_engine(trial);
    let method = any_method(trial).options;
    let block = trial.one_of(&["4k", "16k", "256k"]);
    let mut line =
        format!("--name=v --filename=disk/data --fill_device=1 --bs={block} --rw=write {engine} {method}");
    line += trial.one_of(&["", " --fallocate=none"]);
    // A mapped file needs a size.
    line += if engine.contains("mmap") || trial.once_in(2) { " --size=64m" } else { "" };
    let run = trial.run(&format!("{line} --output-format=json --eta=never"))?;
    let written = jobs(&run.stdout).map_or(0, |jobs| jobs.iter().map(|job| job.bytes[1]).sum::<u64>());
    let room = disk.room();
    if tells_of_damage(&run.said()) {
        trial.false_alarm(run.to_string());
    } else if run.code() == Some(0) && written > 1 << 20 && room < 1 << 20 {
        trial.found();
    } else {
        let told = format!("{written} bytes written, {room} left: {run}{}", excerpt(&run));
        trial.missed(told);
    }
    Ok(())
}

/// A job that reads a file for which there is no room.
fn laid_out(trial: &mut Trial, disk: &Disk) -> Result<(), Stop> {
    let engine = any_engine(trial);
    let more =
        trial.one_of(&["", "--fallocate=none", "--create_serialize=0", "--thread", "--fallocate=truncate"]);
    let line = format!("--name=v --filename=disk/data --size=64m --rw=randread {engine} {more}");
    let run = trial.run(&format!("{line} --number_ios=100 --output-format=json --eta=never"))?;
    expect_no_space(trial, disk, &run, false);
    Ok(())
}

/// A job whose logs do not fit.
fn logged(trial: &mut Trial, disk: &Disk) -> Result<(), Stop> {
    disk.fill(trial.between(0, 300) << 10).map_err(Stop)?;
    let log = trial.one_of(&["--write_lat_log=disk/l", "--write_iops_log=disk/l", "--write_iolog=disk/l"]);
    let line = format!("--name=v --filename=data --size=64m --rw=randread --bs=512 --number_ios=60000 {log}");
    let run = trial.run(&format!("{line} --output-format=json --eta=never"))?;
    expect_no_space(trial, disk, &run, false);
    Ok(())
}

/// A run whose report does not fit.
fn reported(trial: &mut Trial, disk: &Disk) -> Result<(), Stop> {
    const OLD: &str = "an old report\n";
    let report = trial.dir().join("disk/report");
    fs::write(&report, OLD).map_err(Stop::of("a report"))?;
    disk.fill(0).map_err(Stop)?;
    let format = trial.one_of(&["json", "json+", "normal", "terse"]);
    let line =
        format!("--name=v --ioengine=null --size=1m --rw=randread --numjobs=8 --output-format={format}");
    let run = trial.run(&format!("{line} --output=disk/report --eta=never"))?;
    let left = fs::read_to_string(&report).unwrap_or_default();
    // ext4 keeps a few bytes in its inodes, so a report may have its place all the same.
    let is_whole = run.code() == Some(0) && left != OLD && !left.is_empty();
    let is_told = run.code() == Some(1) && run.stderr.to_lowercase().contains("no space left");
    match is_whole || (is_told && left == OLD) {
        true => trial.found(),
        false => trial.missed(format!("a report of {} bytes: {run}", left.len())),
    }
    Ok(())
}

/// A verified job whose state does not fit.
fn with_state(trial: &mut Trial, disk: &Disk) -> Result<(), Stop> {
    disk.fill(trial.between(0, 40) << 10).map_err(Stop)?;
    let insists = trial.once_in(2);
    let saved = if insists { "--verify_state_save=1" } else { "" };
    let engine = any_engine(trial);
    let line =
        format!("--name=v --filename=data --size=64m --rw=randwrite --norandommap --number_ios=500 {engine}");
    let run = trial
        .run(&format!("{line} --verify=crc32c --aux-path=disk {saved} --output-format=json --eta=never"))?;
    let named = ["verify state", "verify_state_save"].iter().any(|words| run.said().contains(words));
    let told = named && run.said().to_lowercase().contains("no space left");
    let expected = if insists { 1 } else { 0 };
    match told && run.code() == Some(expected) && !tells_of_damage(&run.said()) {
        true => trial.found(),
        false => trial.missed(format!("a state without room: {run}{}", excerpt(&run))),
    }
    Ok(())
}
