//! What is landed of the options of `io_uring_cmd`. They are declared with those of `io_uring`, whose list is the same.

use super::io_uring::{IoUringOptions, OPTIONS};
use super::own::{OwnOptions, own_options};
use crate::DataPlacementOptions;
use serde::{Deserialize, Serialize};

/// The commands of which device are passed through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandType {
    /// NVMe.
    #[default]
    Nvme,
    /// SCSI, by the block layer's generic driver.
    Bsg,
}

/// The command that a write becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NvmeWriteMode {
    /// Write.
    #[default]
    Write,
    /// Write Uncorrectable: the blocks cannot be read until they are written again.
    Uncorrectable,
    /// Write Zeroes.
    Zeroes,
    /// Verify: the device checks the blocks, and transfers nothing.
    Verify,
}

impl NvmeWriteMode {
    /// Reads a value of `write_mode`.
    pub(super) fn read(text: &str) -> Result<NvmeWriteMode, String> {
        match text {
            "write" => Ok(NvmeWriteMode::Write),
            "uncor" => Ok(NvmeWriteMode::Uncorrectable),
            "zeroes" => Ok(NvmeWriteMode::Zeroes),
            "verify" => Ok(NvmeWriteMode::Verify),
            _ => Err(format!("\"{text}\" is none of write, uncor, zeroes, verify")),
        }
    }

    /// Whether the data of a write is on the device afterwards.
    pub const fn stores_data(self) -> bool {
        matches!(self, NvmeWriteMode::Write)
    }
}

/// What is looked at of protection information (`pi_chk`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// The guard, which is a checksum of the data.
    pub guard: bool,
    /// The application tag.
    pub application: bool,
    /// The reference tag, which is the block's address.
    pub reference: bool,
}

impl Checks {
    /// Reads a value of `pi_chk`.
    pub(super) fn read(text: &str) -> Result<Checks, String> {
        let mut checks = Checks::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.to_ascii_uppercase().as_str() {
                "GUARD" => checks.guard = true,
                "APPTAG" => checks.application = true,
                "REFTAG" => checks.reference = true,
                _ => return Err(format!("\"{word}\" is none of GUARD, APPTAG, REFTAG")),
            }
        }
        Ok(checks)
    }
}

own_options! {
    /// The options of `io_uring_cmd`.
    pub struct IoUringCmdOptions declared by OPTIONS {
        /// Those of its ring.
        pub ring: IoUringOptions,
        /// The commands of which device are passed through.
        pub cmd_type: CommandType,
        /// Reads bypass the device's cache.
        pub readfua: bool,
        /// Writes are on the medium when they are complete.
        pub writefua: bool,
        /// What a write is.
        pub write_mode: NvmeWriteMode,
        /// Bytes of the buffer that each I/O has for metadata of its own.
        pub md_per_io_size: u32,
        /// The device makes and strips protection information; otherwise it is made and checked here.
        pub pi_act: bool,
        /// What is looked at of it.
        pub pi_chk: Checks,
        /// Its application tag.
        pub apptag: u16,
        /// Bits of the application tag that count.
        pub apptag_mask: u16,
        /// Where the device is to put what is written: what the job's own options say.
        pub placement: DataPlacementOptions,
        /// Write Zeroes may deallocate the blocks.
        pub deac: bool,
    }
}

impl OwnOptions for IoUringCmdOptions {
    fn hipri(&mut self) -> Option<&mut bool> {
        Some(&mut self.ring.hipri)
    }

    fn readfua(&mut self) -> Option<&mut bool> {
        Some(&mut self.readfua)
    }

    fn writefua(&mut self) -> Option<&mut bool> {
        Some(&mut self.writefua)
    }

    fn registers_files(&self) -> bool {
        self.ring.registerfiles
    }

    fn ring(&mut self) -> Option<&mut IoUringOptions> {
        Some(&mut self.ring)
    }

    fn without_effect(&self) -> Vec<super::own::Idle> {
        let why = "only Write Zeroes may deallocate (write_mode=zeroes)";
        if self.deac && self.write_mode != NvmeWriteMode::Zeroes { vec![("deac", why)] } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_of_writing_are_read() {
        assert_eq!(NvmeWriteMode::read("uncor"), Ok(NvmeWriteMode::Uncorrectable));
        assert!(NvmeWriteMode::read("zones").unwrap_err().contains("none of write, uncor, zeroes, verify"));
        let own = IoUringCmdOptions::default();
        assert_eq!((own.pi_act, own.apptag, own.apptag_mask, own.md_per_io_size), (true, 0x1234, 0xffff, 0));
        let checks = Checks { guard: true, reference: true, application: false };
        assert_eq!(Checks::read("GUARD,REFTAG"), Ok(checks));
        assert!(Checks::read("GUARDS").unwrap_err().contains("none of GUARD, APPTAG, REFTAG"));
        assert!(NvmeWriteMode::Write.stores_data() && !NvmeWriteMode::Zeroes.stores_data());
    }
}
