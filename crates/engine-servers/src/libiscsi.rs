//! `libiscsi`: disks of iSCSI targets, without the kernel's initiator.
//!
//! A unit is one SCSI command: READ(16), WRITE(16), UNMAP or SYNCHRONIZE CACHE(10). The job's depth limits how many are
//! in flight. The library has no threads: the worker drives it when it reaps. Each file is a disk with its own session.

mod address;
mod disk;
mod library;
mod storage;

use self::address::Address;
use self::disk::{Data, Disk, Login, NAP, transfer, wait};
use self::library::Library;
use crate::driven_by_worker::DrivenByWorker;
use crate::server_timeout::ServerTimeout;
use crate::source::source_of;
use iolite_engine::by_index::{ByIndex, Reasons};
use iolite_engine::completed_later::answered_at;
use iolite_engine::{
    Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Queued, StageEnds, Storage,
    Unit,
};
use iolite_options::engines::IscsiOptions;
use iolite_os::explained;
use iolite_os::local_end::LocalEnd;
use iolite_types::Operation;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// The engine.
pub struct LibiscsiEngine {
    library: Rc<Library>,
    options: IscsiOptions,
    /// The interface of this machine that sessions come from; `None` = the system chooses.
    interface: Option<String>,
    /// The size of every I/O in bytes; 0 = sizes differ.
    block: u64,
    /// The disks that have been used, with their names.
    disks: Vec<(PathBuf, Disk)>,
    /// The disk of each file of the job, and whether its writes are on stable storage when the target answers them.
    files: ByIndex<(usize, bool)>,
    /// The lengths of the units in flight, indexed by unit.
    lengths: Vec<u64>,
    /// When the answers to the units arrived.
    answered: ByIndex<u64>,
    /// Why units have failed, indexed by unit.
    reasons: Reasons,
    watched: Vec<libc::pollfd>,
}

impl LibiscsiEngine {
    /// Makes an engine without any disk.
    ///
    /// # Errors
    /// libiscsi is missing.
    pub fn new(config: &EngineConfig, options: &IscsiOptions) -> Result<Self, EngineError> {
        let refused = |errno, why| EngineError::Remote { engine: "libiscsi", errno, why };
        let source = source_of(&options.bind, config.worker);
        let interface = match source.map_err(|why| refused(libc::EADDRNOTAVAIL, why))? {
            None => None,
            Some(LocalEnd::Interface(name)) => Some(name.to_string_lossy().into_owned()),
            Some(LocalEnd::Address(address)) => {
                let why = format!(
                    "bind={address}: libiscsi connects from interfaces, not from addresses; name the interface (ip address shows it)"
                );
                return Err(refused(libc::EINVAL, why));
            }
        };
        Ok(LibiscsiEngine {
            library: Rc::new(Library::load()?),
            options: options.clone(),
            interface,
            block: config.block,
            disks: Vec::new(),
            files: ByIndex::with_room(config.files),
            lengths: vec![0; config.depth],
            answered: ByIndex::with_room(config.depth),
            reasons: Reasons::with_room(config.depth),
            watched: Vec::new(),
        })
    }

    /// The disk of this name.
    fn disk(&mut self, name: &Path) -> io::Result<&mut Disk> {
        let place = self.find(name)?;
        Ok(&mut self.disks[place].1)
    }

    fn find(&mut self, name: &Path) -> io::Result<usize> {
        if let Some(place) = self.disks.iter().position(|(known, _)| known == name) {
            return Ok(place);
        }
        let invalid = |words: String| io::Error::new(io::ErrorKind::InvalidInput, words);
        let url = name.to_str().ok_or_else(|| invalid("URLs are UTF-8".to_owned()))?;
        let address = Address::parse(url).map_err(invalid)?;
        let password = self.options.password_for(url).map_err(invalid)?;
        if address.user.is_some() && password.is_none() {
            let words = "who the user is has to be proved: the password is missing (iscsi_password_file, …)";
            return Err(invalid(words.to_owned()));
        }
        let silence = ServerTimeout::new("iscsi_timeout", self.options.iscsi_timeout);
        let proof = self.options.proof_of(url).map_err(invalid)?;
        if proof.is_some() && address.user.is_none() {
            let words = "target_user=: a target authenticates only to a user who does too (USER%PASSWORD@)";
            return Err(invalid(words.to_owned()));
        }
        let login = Login {
            initiator: &self.options.iscsi_initiator,
            user: address.user.as_deref().zip(password.as_deref()),
            target: proof.as_ref().map(|(user, password)| (user.as_str(), password.as_str())),
            from: self.interface.as_deref(),
        };
        let disk = Disk::new(&self.library, &address, &login, silence)?;
        self.disks.push((name.to_owned(), disk));
        Ok(self.disks.len() - 1)
    }

    /// Begins the command of a unit.
    ///
    /// # Safety
    /// As [`Engine::queue`].
    unsafe fn begin(&mut self, unit: &Unit) -> Result<(), (Errno, String)> {
        let refused = |errno, words: &str| Err((Errno(errno), words.to_owned()));
        let Some((place, is_stable)) = self.files.get(unit.file).copied() else {
            return refused(libc::EBADF, "the disk is not open");
        };
        let disk = &mut self.disks[place].1;
        let (start, blocks) = (unit.offset / disk.block, unit.length / disk.block);
        let is_aligned = unit.offset.is_multiple_of(disk.block) && unit.length.is_multiple_of(disk.block);
        let Some(blocks) = u32::try_from(blocks).ok().filter(|_| is_aligned) else {
            return refused(libc::EINVAL, &format!("the disk has blocks of {} bytes", disk.block));
        };
        let (length, number) = (unit.length as usize, unit.index);
        // SAFETY: the caller promises that the buffer is valid until the unit is complete or the engine is dropped.
        unsafe {
            match unit.operation {
                Operation::Read => disk.begin(
                    number,
                    &mut transfer(0x88, start, blocks, false),
                    Data::In(unit.buffer, length),
                ),
                Operation::Write => disk.begin(
                    number,
                    &mut transfer(0x8a, start, blocks, is_stable),
                    Data::Out(unit.buffer, length),
                ),
                Operation::Trim if !disk.can_trim => {
                    refused(libc::EOPNOTSUPP, "the disk offers no trims (UNMAP)")
                }
                Operation::Trim => disk.begin_trim(number, start, blocks),
                Operation::Sync | Operation::DataSync | Operation::SyncFileRange => {
                    disk.begin(number, &mut [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0], Data::None)
                }
                Operation::Work => refused(libc::ENOSYS, "there is no such command"),
            }
        }
    }
}

impl DrivenByWorker for LibiscsiEngine {
    fn outstanding(&self) -> usize {
        self.disks.iter().map(|(_, disk)| disk.in_flight).sum()
    }

    fn count_done(&mut self) -> usize {
        self.disks.iter_mut().map(|(_, disk)| disk.count_done()).sum()
    }

    fn drive(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.watched.clear();
        self.watched.extend(self.disks.iter().map(|(_, disk)| disk.watched()));
        wait(&mut self.watched, timeout.map_or(NAP, |timeout| timeout.min(NAP)))?;
        for ((_, disk), watched) in self.disks.iter_mut().zip(&self.watched) {
            if disk.in_flight > 0 || watched.revents != 0 {
                disk.go_on(watched.revents);
            }
        }
        Ok(())
    }
}

impl Engine for LibiscsiEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let block = self.block;
        let disk = self.disk(&spec.path)?;
        let refused = |errno, words: String| {
            let words = format!("{}: {words}", spec.path.display());
            Err(explained(&io::Error::from_raw_os_error(errno), words))
        };
        if mode.write && disk.is_read_only {
            return refused(libc::EROFS, "the disk is write-protected".to_owned());
        }
        if !block.is_multiple_of(disk.block) {
            return refused(libc::EINVAL, format!("bs={block}: the disk has blocks of {} bytes", disk.block));
        }
        let place = self.find(&spec.path)?;
        self.files.set(index, (place, mode.sync || mode.dsync));
        Ok(())
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        self.files.take(index);
        Ok(())
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let index = unit.index as usize;
        if self.lengths.len() <= index {
            self.lengths.resize(index + 1, 0);
        }
        self.lengths[index] = match unit.operation {
            Operation::Read | Operation::Write | Operation::Trim => unit.length,
            _ => 0,
        };
        // SAFETY: the caller upholds the same contract.
        match unsafe { self.begin(unit) } {
            Ok(()) => Queued::Queued,
            Err((errno, words)) => {
                self.reasons.note(unit.index, &words);
                Queued::Completed(Err(errno))
            }
        }
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        self.drive_until(min, max, timeout);
        let mut taken = 0;
        for place in 0..self.disks.len() {
            while taken < max
                && let Some(over) = self.disks[place].1.next_done()
            {
                taken += 1;
                self.answered.set(over.number, over.answered);
                let outcome = match over.failure {
                    None => Ok(self.lengths[over.number as usize]),
                    Some((errno, words)) => {
                        self.reasons.note(over.number, &words);
                        Err(errno)
                    }
                };
                done.push(Completion { unit: over.number, outcome });
            }
        }
        Ok(())
    }

    fn explain(&self, unit: u32) -> Option<String> {
        self.reasons.explain(unit)
    }

    fn stage_ends(&self, unit: u32) -> Option<StageEnds> {
        answered_at(*self.answered.get(unit)?)
    }

    fn stop_repeating(&mut self) {
        self.disks.iter_mut().for_each(|(_, disk)| disk.hurry());
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        Some(self)
    }
}
