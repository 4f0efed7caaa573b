//! SANITIZE of a SCSI disk (SBC-4, 5.30), and how far it is.

use super::{Interface, read};
use std::io;
use std::os::fd::RawFd;

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
/// The disk refuses it (EIO).
pub fn sanitize(device: RawFd) -> io::Result<()> {
    const BLOCK_ERASE: u8 = 0x02;
    const IMMEDIATELY: u8 = 0x80;
    let command = [0x48, IMMEDIATELY | BLOCK_ERASE, 0, 0, 0, 0, 0, 0, 0, 0];
    read(device, Interface::Third, &command, &mut [])
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

fn state(sense: &[u8; 252]) -> Sanitized {
    const NOT_READY: u8 = 2;
    const MEDIUM_ERROR: u8 = 3;
    match (sense[2] & 0xf, sense[12], sense[13]) {
        (NOT_READY, 0x04, 0x1b) => {
            let is_told = sense[15] & 0x80 != 0;
            Sanitized::Going(is_told.then(|| f64::from(u16::from_be_bytes([sense[16], sense[17]])) / 65536.0))
        }
        // SANITIZE COMMAND FAILED
        (MEDIUM_ERROR, 0x31, 0x03) => Sanitized::Failed,
        _ => Sanitized::Done,
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
    }
}
