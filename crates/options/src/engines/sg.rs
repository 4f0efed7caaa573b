//! The options of `sg`, which have no effect yet.

use super::shared::{HIPRI, READFUA, WRITEFUA, option};
use crate::definition::{Definition, Kind};

static SG_WRITE_MODE: Definition =
    option("sg_write_mode", Kind::Str, "SCSI command for writes").default("write").keywords(&[
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
    ]);
static STREAM_ID: Definition =
    option("stream_id", Kind::Int, "Stream of WRITE STREAM; 0 opens one").default("0");

/// All of them.
pub(super) static OPTIONS: &[&Definition] = &[&HIPRI, &READFUA, &WRITEFUA, &SG_WRITE_MODE, &STREAM_ID];
