//! The values of the options of `io_uring_cmd`. The options are declared with those of `io_uring`, whose list is the same.

use serde::{Deserialize, Serialize};

/// The kind of commands that are passed through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandType {
    /// NVMe.
    #[default]
    Nvme,
    /// SCSI, through the block layer's generic driver.
    Bsg,
}

/// The form of SCSI commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CdbLength {
    /// The shortest form in which block and length fit.
    #[default]
    AsNeeded,
    /// 10 bytes.
    Ten,
    /// 16 bytes.
    Sixteen,
    /// 32 bytes.
    ThirtyTwo,
}

impl CdbLength {
    /// Parses the keyword of `cdb_len`.
    pub(super) fn of(keyword: &str) -> CdbLength {
        match keyword {
            "10" => CdbLength::Ten,
            "16" => CdbLength::Sixteen,
            "32" => CdbLength::ThirtyTwo,
            _ => CdbLength::AsNeeded,
        }
    }
}

/// The data that the SCSI command VERIFY compares (BYTCHK).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ByteCheck {
    /// No data: the medium is read.
    #[default]
    Medium,
    /// Each block is compared with its own data.
    Data,
    /// Every block is compared with the first block of the data.
    Block,
}

impl ByteCheck {
    /// Parses the keyword of `verify_bytchk`.
    pub(super) fn of(keyword: &str) -> ByteCheck {
        match keyword {
            "1" => ByteCheck::Data,
            "3" => ByteCheck::Block,
            _ => ByteCheck::Medium,
        }
    }
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
    /// Verify: the device checks the blocks, without a transfer of data.
    Verify,
    /// Zone Append: the device chooses the place within a zone.
    Append,
}

impl NvmeWriteMode {
    /// Reads one mode.
    fn read(text: &str) -> Result<NvmeWriteMode, String> {
        match text {
            "write" => Ok(NvmeWriteMode::Write),
            "uncor" => Ok(NvmeWriteMode::Uncorrectable),
            "zeroes" => Ok(NvmeWriteMode::Zeroes),
            "verify" => Ok(NvmeWriteMode::Verify),
            "append" | "zone_append" => Ok(NvmeWriteMode::Append),
            _ => Err(format!("\"{text}\" is none of write, uncor, zeroes, verify, append (or zone_append)")),
        }
    }

    /// Its name as a value of `write_mode`.
    pub const fn name(self) -> &'static str {
        match self {
            NvmeWriteMode::Write => "write",
            NvmeWriteMode::Uncorrectable => "uncor",
            NvmeWriteMode::Zeroes => "zeroes",
            NvmeWriteMode::Verify => "verify",
            NvmeWriteMode::Append => "append",
        }
    }

    /// Whether the data of a write is on the device afterwards.
    pub const fn stores_data(self) -> bool {
        matches!(self, NvmeWriteMode::Write | NvmeWriteMode::Append)
    }
}

/// The commands that writes become, each with its percentage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteModes(Vec<(NvmeWriteMode, u32)>);

impl Default for WriteModes {
    fn default() -> Self {
        WriteModes::from(NvmeWriteMode::Write)
    }
}

impl From<NvmeWriteMode> for WriteModes {
    fn from(mode: NvmeWriteMode) -> Self {
        WriteModes(vec![(mode, 100)])
    }
}

impl WriteModes {
    /// Reads a value of `write_mode`: `zeroes`, or shares such as `write:80,zeroes:20`, or `write/80:zeroes/20` as fio
    /// writes them.
    pub(super) fn read(text: &str) -> Result<WriteModes, String> {
        if !text.contains([',', ':', '/']) {
            return NvmeWriteMode::read(text).map(WriteModes::from);
        }
        let (between, inside) = if text.contains('/') { (':', '/') } else { (',', ':') };
        let mut shares = Vec::new();
        for part in text.split(between).map(str::trim) {
            let (mode, percent) = part
                .split_once(inside)
                .ok_or_else(|| format!("\"{part}\" has no share: write/80:zeroes/20 are 80 % and 20 %"))?;
            let mode = NvmeWriteMode::read(mode.trim())?;
            let percent: u32 = match percent.trim().parse() {
                Ok(percent @ 1..=100) => percent,
                _ => return Err(format!("\"{part}\": a share is a whole percent from 1 to 100")),
            };
            if shares.iter().any(|&(other, _)| other == mode) {
                return Err(format!("{} has two shares", mode.name()));
            }
            shares.push((mode, percent));
        }
        match shares.iter().map(|(_, percent)| percent).sum() {
            100 => Ok(WriteModes(shares)),
            sum => Err(format!("the shares are {sum} % together, and not 100")),
        }
    }

    /// These modes with their percentages, which sum to 100.
    pub fn of(shares: &[(NvmeWriteMode, u32)]) -> WriteModes {
        WriteModes(shares.to_vec())
    }

    /// Each mode with its percentage; they sum to 100.
    pub fn shares(&self) -> &[(NvmeWriteMode, u32)] {
        &self.0
    }

    /// Whether some writes become this command.
    pub fn has(&self, mode: NvmeWriteMode) -> bool {
        self.0.iter().any(|&(other, _)| other == mode)
    }

    /// Whether all writes become this command.
    pub fn is_only(&self, mode: NvmeWriteMode) -> bool {
        self.0.iter().all(|&(other, _)| other == mode)
    }

    /// Whether the data of all writes is on the device afterwards.
    pub fn stores_data(&self) -> bool {
        self.0.iter().all(|(mode, _)| mode.stores_data())
    }
}

/// The checks of protection information (`pi_chk`).
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::IoUringCmdOptions;

    #[test]
    fn modes_of_writing_are_read() {
        assert_eq!(WriteModes::read("uncor"), Ok(NvmeWriteMode::Uncorrectable.into()));
        let both = WriteModes::read("write:80, zeroes:20").unwrap();
        assert_eq!(both.shares(), [(NvmeWriteMode::Write, 80), (NvmeWriteMode::Zeroes, 20)]);
        assert!(
            both.has(NvmeWriteMode::Zeroes) && !both.is_only(NvmeWriteMode::Write) && !both.stores_data()
        );
        assert!(WriteModes::read("write:70,append:30").unwrap().stores_data());
        assert_eq!(WriteModes::read("zone_append"), Ok(NvmeWriteMode::Append.into()));
        assert_eq!(WriteModes::read("write/80:zeroes/20"), Ok(both));
        let all = WriteModes::read("write/40:zeroes/30:uncor/20:verify/10").unwrap();
        assert_eq!(all.shares().iter().map(|(_, percent)| *percent).collect::<Vec<_>>(), [40, 30, 20, 10]);
        for (text, words) in [
            ("zones", "none of write, uncor, zeroes, verify, append"),
            ("write,zeroes:20", "\"write\" has no share"),
            ("write:80,zeroes", "\"zeroes\" has no share"),
            ("write/80:zeroes", "\"zeroes\" has no share"),
            ("write/80,zeroes/20", "a whole percent from 1 to 100"),
            ("write:80,zeroes:x", "a whole percent from 1 to 100"),
            ("write:0,zeroes:100", "a whole percent from 1 to 100"),
            ("write:50,write:50", "write has two shares"),
            ("write:50,zeroes:20", "the shares are 70 % together"),
            ("", "none of"),
        ] {
            let told = WriteModes::read(text).unwrap_err();
            assert!(told.contains(words), "{text}: {told}");
        }
        let own = IoUringCmdOptions::default();
        assert_eq!((own.pi_act, own.apptag, own.apptag_mask, own.md_per_io_size), (true, 0x1234, 0xffff, 0));
        let checks = Checks { guard: true, reference: true, application: false };
        assert_eq!(Checks::read("GUARD,REFTAG"), Ok(checks));
        assert!(Checks::read("GUARDS").unwrap_err().contains("none of GUARD, APPTAG, REFTAG"));
        assert!(NvmeWriteMode::Write.stores_data() && !NvmeWriteMode::Zeroes.stores_data());
    }
}
