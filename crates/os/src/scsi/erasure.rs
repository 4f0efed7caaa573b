//! SANITIZE of a SCSI disk (SBC-4, 5.30), and how far it is.

use super::{Header, Interface, read};
use std::io;
use std::os::fd::RawFd;

const ILLEGAL_REQUEST: u8 = 5;
const UNIT_ATTENTION: u8 = 6;

/// How far a sanitize operation is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sanitized {
    /// It is done.
    Done,
    /// It is on its way: the share that is done, if the disk tells it.
    Going(Option<f64>),
    /// It failed.
    Failed,
}

/// Begins to erase all blocks.
///
/// # Errors
/// The disk does not know the command (EOPNOTSUPP), or refuses it (EIO).
pub fn sanitize(device: RawFd) -> io::Result<()> {
    /// How often a disk may have something else to say first.
    const ATTENTIONS: usize = 4;
    const BLOCK_ERASE: u8 = 0x02;
    const IMMEDIATELY: u8 = 0x80;
    let command = [0x48, IMMEDIATELY | BLOCK_ERASE, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut last = 0;
    for _ in 0..ATTENTIONS {
        let mut sense = [0; 32];
        let mut header = Header {
            cmd_len: command.len() as u8,
            cmdp: command.as_ptr(),
            mx_sb_len: sense.len() as u8,
            sbp: sense.as_mut_ptr(),
            ..Header::EMPTY
        };
        // SAFETY: both pointers are to arrays of the given lengths that live through the call; there is no data.
        unsafe { header.perform(device)? };
        if header.succeeded() {
            return Ok(());
        }
        last = key(&sense);
        if last != UNIT_ATTENTION {
            break;
        }
    }
    Err(io::Error::from_raw_os_error(if last == ILLEGAL_REQUEST { libc::EOPNOTSUPP } else { libc::EIO }))
}

/// The sense key, of both forms of sense data.
fn key(sense: &[u8; 32]) -> u8 {
    const DESCRIPTORS: u8 = 0x72;
    0xf & if sense[0] & 0x7f >= DESCRIPTORS { sense[1] } else { sense[2] }
}

/// How far it is (REQUEST SENSE).
///
/// # Errors
/// The disk does not answer.
pub fn sanitized(device: RawFd) -> io::Result<Sanitized> {
    let mut sense = [0; 252];
    read(device, Interface::Third, &[0x03, 0, 0, 0, 252, 0], &mut sense)?;
    Ok(state(&sense))
}

/// Only a disk that has nothing to say is done. Another key, such as UNIT ATTENTION, says nothing about the operation.
fn state(sense: &[u8; 252]) -> Sanitized {
    const NO_SENSE: u8 = 0;
    const MEDIUM_ERROR: u8 = 3;
    match (sense[2] & 0xf, sense[12], sense[13]) {
        // SANITIZE IN PROGRESS
        (_, 0x04, 0x1b) => {
            let is_told = sense[15] & 0x80 != 0;
            Sanitized::Going(is_told.then(|| f64::from(u16::from_be_bytes([sense[16], sense[17]])) / 65536.0))
        }
        // SANITIZE COMMAND FAILED
        (MEDIUM_ERROR, 0x31, 0x03) => Sanitized::Failed,
        (NO_SENSE, ..) => Sanitized::Done,
        _ => Sanitized::Going(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sense_says_how_far_it_is() {
        let mut sense = [0; 252];
        assert_eq!(state(&sense), Sanitized::Done);
        (sense[2], sense[12], sense[13]) = (2, 4, 0x1b);
        assert_eq!(state(&sense), Sanitized::Going(None));
        (sense[15], sense[16]) = (0x80, 0x40);
        assert_eq!(state(&sense), Sanitized::Going(Some(0.25)));
        (sense[2], sense[12], sense[13]) = (3, 0x31, 3);
        assert_eq!(state(&sense), Sanitized::Failed);
        (sense[2], sense[12], sense[13]) = (UNIT_ATTENTION, 0x29, 0);
        assert_eq!(state(&sense), Sanitized::Going(None), "a reset is no end");
        let mut sense = [0; 32];
        (sense[0], sense[2]) = (0x70, ILLEGAL_REQUEST);
        assert_eq!(key(&sense), ILLEGAL_REQUEST);
        (sense[0], sense[1], sense[2]) = (0x72, UNIT_ATTENTION, 0x29);
        assert_eq!(key(&sense), UNIT_ATTENTION);
    }
}
