//! `mtd`: flash by its character device. pread(2) and pwrite(2) move data, trims erase blocks (MEMERASE64).
//!
//! The list of bad blocks is read once, when the device is opened, so that `skip_bad` costs only a memory lookup per
//! I/O.

use iolite_engine::file::Files;
use iolite_engine::transfer::{Transfer, has_files, retry};
use iolite_engine::{EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Unit};
use iolite_options::engines::MtdOptions;
use iolite_types::Operation;
use std::io;
use std::os::fd::RawFd;

/// ioctl numbers of <mtd/mtd-abi.h>.
const MEMGETINFO: libc::c_ulong = 0x8020_4d01;
const MEMGETBADBLOCK: libc::c_ulong = 0x4008_4d0b;
const MEMERASE64: libc::c_ulong = 0x4010_4d14;

/// `struct mtd_info_user` there.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Info {
    kind: u8,
    flags: u32,
    size: u32,
    erase_size: u32,
    write_size: u32,
    oob_size: u32,
    padding: u64,
}

/// A device that is open.
#[derive(Debug)]
struct Flash {
    /// Bytes of a block, the unit of erasing.
    block: u64,
    /// Bytes of a page, the unit of writing.
    page: u64,
    /// The numbers of bad blocks to skip, in order.
    bad: Vec<u64>,
}

/// Reads, writes and erases flash.
#[derive(Debug)]
pub struct MtdEngine {
    files: Files,
    devices: Vec<Option<Flash>>,
    skips_bad: bool,
    /// The message about the last unit that failed.
    complaint: Option<String>,
}

impl MtdEngine {
    /// An engine with no device open.
    ///
    /// # Errors
    /// Never: it needs nothing of the system before its devices are opened.
    pub fn new(config: &EngineConfig, own: &MtdOptions) -> Result<Self, EngineError> {
        Ok(MtdEngine {
            files: Files::new(config),
            devices: Vec::new(),
            skips_bad: own.skip_bad,
            complaint: None,
        })
    }

    fn device(&self, file: u32) -> Result<&Flash, Errno> {
        self.devices.get(file as usize).and_then(Option::as_ref).ok_or(Errno(libc::EBADF))
    }

    /// Refuses units in blocks that must be skipped.
    #[inline]
    fn check(&mut self, unit: &Unit) -> Result<(), Errno> {
        let device = self.device(unit.file)?;
        let (first, end) = (unit.offset / device.block, (unit.offset + unit.length).div_ceil(device.block));
        let place = device.bad.partition_point(|&bad| bad < first);
        match device.bad.get(place) {
            Some(&bad) if bad < end => {
                self.complaint = Some(format!("block {bad} is bad, and skip_bad=1 leaves it alone"));
                Err(Errno(libc::EIO))
            }
            _ => Ok(()),
        }
    }

    /// Erases the unit's blocks.
    fn erase(&mut self, unit: &Unit) -> Outcome {
        self.check(unit)?;
        let block = self.device(unit.file)?.block;
        if !unit.offset.is_multiple_of(block) || !unit.length.is_multiple_of(block) {
            self.complaint = Some(format!("a trim erases whole blocks, of {block} bytes here"));
            return Err(Errno(libc::EINVAL));
        }
        let range = [unit.offset, unit.length];
        retry(&self.files, unit.file, |descriptor| {
            // SAFETY: the ioctl reads two u64.
            unsafe { libc::ioctl(descriptor, MEMERASE64 as _, range.as_ptr()) as isize }
        })?;
        Ok(unit.length)
    }
}

impl Transfer for MtdEngine {
    has_files!();

    fn opened(&mut self, index: u32, spec: &FileSpec, _mode: OpenMode) -> io::Result<()> {
        let descriptor = self.files.raw(index);
        let mut info = Info::default();
        // SAFETY: the ioctl fills in the structure.
        if unsafe { libc::ioctl(descriptor, MEMGETINFO as _, &raw mut info) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let block = u64::from(info.erase_size.max(1));
        let blocks = spec.size.div_ceil(block);
        let bad = if self.skips_bad { bad_blocks(descriptor, block, blocks)? } else { Vec::new() };
        let index = index as usize;
        if index >= self.devices.len() {
            self.devices.resize_with(index + 1, || None);
        }
        self.devices[index] = Some(Flash { block, page: info.write_size.into(), bad });
        Ok(())
    }

    fn control(&mut self, unit: &Unit) -> Outcome {
        match unit.operation {
            Operation::Trim => {
                self.complaint = None;
                self.erase(unit)
            }
            // A write is in the flash memory when the call returns.
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange => Ok(0),
            Operation::Read | Operation::Write | Operation::Work => Err(Errno(libc::EINVAL)),
        }
    }

    fn explained(&self) -> Option<String> {
        self.complaint.clone()
    }

    #[inline(always)]
    unsafe fn transfer(&mut self, unit: &Unit, write: bool) -> Outcome {
        self.complaint = None;
        self.check(unit)?;
        let (length, offset) = (unit.length as usize, unit.offset as i64);
        let moved = retry(&self.files, unit.file, |descriptor| {
            // SAFETY: the caller promises that the buffer is valid for this length.
            unsafe {
                match write {
                    true => libc::pwrite(descriptor, unit.buffer.cast(), length, offset),
                    false => libc::pread(descriptor, unit.buffer.cast(), length, offset),
                }
            }
        });
        if moved == Err(Errno(libc::EINVAL)) && write {
            let page = self.device(unit.file)?.page;
            self.complaint = Some(format!("a write is a multiple of the page size, {page} bytes here"));
        }
        moved
    }
}

/// The numbers of the known bad blocks among the first `blocks` blocks.
fn bad_blocks(descriptor: RawFd, block: u64, blocks: u64) -> io::Result<Vec<u64>> {
    let mut bad = Vec::new();
    for number in 0..blocks {
        let offset = (number * block) as libc::loff_t;
        // SAFETY: the ioctl reads one number.
        match unsafe { libc::ioctl(descriptor, MEMGETBADBLOCK as _, &raw const offset) } {
            0 => {}
            1.. => bad.push(number),
            _ => match io::Error::last_os_error() {
                // Only NAND has bad blocks.
                error if error.raw_os_error() == Some(libc::EOPNOTSUPP) => break,
                error => return Err(error),
            },
        }
    }
    Ok(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(offset: u64, length: u64) -> Unit {
        Unit {
            buffer: std::ptr::null_mut(),
            length,
            offset,
            index: 0,
            file: 0,
            operation: Operation::Trim,
            priority: 0,
        }
    }

    fn engine(bad: Vec<u64>) -> MtdEngine {
        let own = MtdOptions { skip_bad: true };
        let mut engine = MtdEngine::new(&iolite_engine::EngineConfig::default(), &own).unwrap();
        engine.devices = vec![Some(Flash { block: 16384, page: 512, bad })];
        engine
    }

    #[test]
    fn the_kernels_structure_has_its_size() {
        assert_eq!(size_of::<Info>(), 32);
    }

    #[test]
    fn units_touching_a_bad_block_are_refused() {
        let mut engine = engine(vec![1, 3]);
        let refused = [(0, 16384), (0, 16385), (16384, 1), (32768, 16384), (32768, 65536), (49152, 512)];
        let refused = refused.map(|(offset, length)| engine.check(&unit(offset, length)).is_err());
        assert_eq!(refused, [false, true, true, false, true, true]);
        assert_eq!(engine.explained().as_deref(), Some("block 3 is bad, and skip_bad=1 leaves it alone"));
    }

    #[test]
    fn parts_of_blocks_are_not_erased() {
        let mut engine = engine(Vec::new());
        for (offset, length) in [(0, 4096), (512, 16384)] {
            assert_eq!(engine.erase(&unit(offset, length)), Err(Errno(libc::EINVAL)));
            assert!(engine.explained().unwrap().contains("16384 bytes"));
        }
    }
}
