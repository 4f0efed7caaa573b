//! The options of `sg`.

use super::own::{Obstacle, OwnOptions, own, own_options, place};
use super::shared::{HIPRI, READFUA, WRITEFUA, option};
use crate::JobOptions;
use crate::definition::{Definition, Kind, Places};
use serde::{Deserialize, Serialize};

/// The command that a write becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SgWriteMode {
    /// WRITE.
    #[default]
    Write,
    /// WRITE AND VERIFY.
    WriteAndVerify,
    /// WRITE SAME: all blocks get the data of the first one.
    WriteSame,
    /// WRITE SAME, with data that the disk chooses.
    WriteSameWithoutData,
    /// VERIFY of the medium, without data.
    VerifyMedium,
    /// VERIFY: the disk compares with the data.
    VerifyData,
    /// VERIFY: the disk compares every block with the first one.
    VerifyBlock,
    /// WRITE STREAM.
    WriteStream,
}

impl SgWriteMode {
    /// Whether the data of a write is on the disk afterwards.
    pub const fn stores_data(self) -> bool {
        matches!(self, SgWriteMode::Write | SgWriteMode::WriteAndVerify | SgWriteMode::WriteStream)
    }
}

own_options! {
    /// The options of `sg`.
    pub struct SgOptions declared by OPTIONS with places {
        /// The completion of reads and writes is polled for.
        pub hipri: bool,
        /// Reads bypass the disk's cache.
        pub readfua: bool,
        /// Writes are on the medium when they are complete.
        pub writefua: bool,
        /// The command that a write becomes.
        pub sg_write_mode: SgWriteMode,
        /// The stream of WRITE STREAM; 0 = one is opened.
        pub stream_id: u16,
    }
}

impl Places for SgOptions {
    fn hipri(&mut self) -> Option<&mut bool> {
        Some(&mut self.hipri)
    }

    fn readfua(&mut self) -> Option<&mut bool> {
        Some(&mut self.readfua)
    }

    fn writefua(&mut self) -> Option<&mut bool> {
        Some(&mut self.writefua)
    }
}

impl OwnOptions for SgOptions {
    fn obstacles(&self, job: &JobOptions) -> Vec<Obstacle> {
        if self.sg_write_mode.stores_data() || !job.verifies_writes() {
            return Vec::new();
        }
        let why = "verify: with this sg_write_mode the disk does not keep the data of writes";
        vec![("verify", why.to_owned())]
    }
}

static SG_WRITE_MODE: Definition = option("sg_write_mode", Kind::Str, "SCSI command for writes")
    .default("write")
    .keywords(&[
        ("write", "WRITE"),
        ("write_and_verify", "WRITE AND VERIFY"),
        ("verify", "Same as write_and_verify"),
        ("write_same", "WRITE SAME"),
        ("same", "Same as write_same"),
        ("write_same_ndob", "WRITE SAME without a data buffer"),
        ("verify_bytchk_00", "VERIFY of the medium alone"),
        ("verify_bytchk_01", "VERIFY against the data"),
        ("verify_bytchk_11", "VERIFY of every block against one"),
        ("write_stream", "WRITE STREAM"),
    ])
    .lands_in_engine(|own, given| {
        place::<SgOptions>(own)?.sg_write_mode = match given.keyword()? {
            "write_and_verify" | "verify" => SgWriteMode::WriteAndVerify,
            "write_same" | "same" => SgWriteMode::WriteSame,
            "write_same_ndob" => SgWriteMode::WriteSameWithoutData,
            "verify_bytchk_00" => SgWriteMode::VerifyMedium,
            "verify_bytchk_01" => SgWriteMode::VerifyData,
            "verify_bytchk_11" => SgWriteMode::VerifyBlock,
            "write_stream" => SgWriteMode::WriteStream,
            _ => SgWriteMode::Write,
        };
        Ok(())
    });
static STREAM_ID: Definition =
    option("stream_id", Kind::Int, "Stream of WRITE STREAM, up to 65535; 0 opens one")
        .default("0")
        .lands_in_engine(own!(SgOptions.stream_id, number()));

/// All of them.
pub(super) static OPTIONS: &[&Definition] = &[&HIPRI, &READFUA, &WRITEFUA, &SG_WRITE_MODE, &STREAM_ID];
