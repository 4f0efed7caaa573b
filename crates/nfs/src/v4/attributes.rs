//! The encoding of attributes: a bitmap of which there are, and their values in the order of their numbers.

use super::compound::operation::GETATTR;
use crate::NfsError;
use crate::protocol::{Attributes, Kind};
use crate::xdr::{Reader, Writer};

pub(super) const TYPE: u32 = 1;
const SIZE: u32 = 4;
const LEASE_TIME: u32 = 10;
pub(super) const RDATTR_ERROR: u32 = 11;
const MAXREAD: u32 = 30;
const MAXWRITE: u32 = 31;
const MODE: u32 = 33;
pub(super) const SPACE_AVAIL: u32 = 42;
const SPACE_USED: u32 = 45;

/// What is to be known of files.
pub(super) const OF_FILE: [u32; 3] = [TYPE, SIZE, SPACE_USED];

/// What is to be known of the server.
pub(super) const LIMITS: [u32; 3] = [LEASE_TIME, MAXREAD, MAXWRITE];

/// The words of the longest bitmap that is read.
const MOST_WORDS: u32 = 8;

/// The maximum length of the values.
const LONGEST: usize = 4096;

/// Appends a bitmap of these attributes.
pub(super) fn bitmap(writer: &mut Writer<'_>, attributes: &[u32]) {
    let word =
        |of: u32| attributes.iter().filter(|&at| at / 32 == of).fold(0, |all, at| all | 1 << (at % 32));
    writer.u32(2).u32(word(0)).u32(word(1));
}

/// Appends the operation that asks for these attributes.
pub(super) fn want(writer: &mut Writer<'_>, attributes: &[u32]) {
    bitmap(writer.u32(GETATTR), attributes);
}

/// Appends a mode as the only attribute to set.
pub(super) fn mode(writer: &mut Writer<'_>, mode: u32) {
    bitmap(writer, &[MODE]);
    writer.opaque(&mode.to_be_bytes());
}

/// Appends a size as the only attribute to set.
pub(super) fn size(writer: &mut Writer<'_>, size: u64) {
    bitmap(writer, &[SIZE]);
    writer.opaque(&size.to_be_bytes());
}

fn read_bitmap(reader: &mut Reader<'_>) -> Result<Vec<u32>, NfsError> {
    let words = reader.u32()?;
    if words > MOST_WORDS {
        return Err(NfsError::Malformed);
    }
    let mut attributes = Vec::new();
    for word in 0..words {
        let bits = reader.u32()?;
        attributes.extend((0..32).filter(|bit| bits & 1 << bit != 0).map(|bit| word * 32 + bit));
    }
    Ok(attributes)
}

pub(super) fn skip_bitmap(reader: &mut Reader<'_>) -> Result<(), NfsError> {
    read_bitmap(reader).map(drop)
}

/// The attributes that a server has given.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) kind: Option<Kind>,
    size: Option<u64>,
    used: Option<u64>,
    pub(super) free: Option<u64>,
    pub(super) most_read: Option<u64>,
    pub(super) most_written: Option<u64>,
    /// The time of the lease in seconds.
    pub(super) lease: Option<u32>,
}

impl Given {
    pub(super) fn of_file(&self) -> Result<Attributes, NfsError> {
        match (self.kind, self.size) {
            (Some(kind), Some(size)) => Ok(Attributes { kind, size, used: self.used.unwrap_or(0) }),
            // (The server must know these two of any file.)
            _ => Err(NfsError::Malformed),
        }
    }
}

/// Reads attributes. A server may leave out some that were asked for.
pub(super) fn read_attributes(reader: &mut Reader<'_>) -> Result<Given, NfsError> {
    let attributes = read_bitmap(reader)?;
    let mut values = Reader::new(reader.opaque(LONGEST)?);
    let mut given = Given::default();
    for attribute in attributes {
        match attribute {
            TYPE => given.kind = Some(Kind::of(values.u32()?)),
            SIZE => given.size = Some(values.u64()?),
            LEASE_TIME => given.lease = Some(values.u32()?),
            RDATTR_ERROR => drop(values.u32()?),
            MAXREAD => given.most_read = Some(values.u64()?),
            MAXWRITE => given.most_written = Some(values.u64()?),
            SPACE_AVAIL => given.free = Some(values.u64()?),
            SPACE_USED => given.used = Some(values.u64()?),
            // Nobody has asked for it, and its length is unknown.
            _ => return Err(NfsError::Malformed),
        }
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_in_the_order_of_their_numbers() {
        let mut bytes = Vec::new();
        let mut values = Vec::new();
        Writer(&mut values).u32(1).u64(7 << 32).u64(4096);
        bitmap(&mut Writer(&mut bytes), &[SPACE_USED, TYPE, SIZE]);
        assert_eq!(bytes, [0, 0, 0, 2, 0, 0, 0, 0x12, 0, 0, 0x20, 0]);
        Writer(&mut bytes).opaque(&values);
        let given = read_attributes(&mut Reader::new(&bytes)).unwrap();
        let expected = Attributes { kind: Kind::File, size: 7 << 32, used: 4096 };
        assert_eq!(given.of_file(), Ok(expected));
        bytes[3] = 1;
        assert!(read_attributes(&mut Reader::new(&bytes)).is_err(), "the bitmap is shorter");
        assert_eq!(Given::default().of_file(), Err(NfsError::Malformed));
    }

    #[test]
    fn attributes_that_nobody_asked_for_are_invalid() {
        let mut bytes = Vec::new();
        bitmap(&mut Writer(&mut bytes), &[TYPE, 2]);
        Writer(&mut bytes).opaque(&[0; 64]);
        assert_eq!(read_attributes(&mut Reader::new(&bytes)), Err(NfsError::Malformed));
    }
}
