//! The description of a zone.

/// Whether a zone has to be written in sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneKind {
    /// It can be written anywhere.
    Conventional,
    /// It can be written at its write pointer only.
    Sequential,
    /// It should be written at its write pointer.
    Preferred,
}

/// The condition of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneCondition {
    /// It has no write pointer.
    Conventional,
    /// It contains no data.
    Empty,
    /// The device has opened it for a write.
    ImplicitlyOpen,
    /// The host has opened it.
    ExplicitlyOpen,
    /// A part is written, and it is not open.
    Closed,
    /// It can only be read.
    ReadOnly,
    /// It has no room left.
    Full,
    /// It can be neither read nor written.
    Offline,
}

impl ZoneCondition {
    /// The condition of a zone with a write pointer. The numbers of the kernel (`BLK_ZONE_COND_*`) are those of the
    /// Zoned Namespace Command Set Specification; `None` = another number.
    pub(crate) fn of(code: u8) -> Option<ZoneCondition> {
        Some(match code {
            1 => ZoneCondition::Empty,
            2 => ZoneCondition::ImplicitlyOpen,
            3 => ZoneCondition::ExplicitlyOpen,
            4 => ZoneCondition::Closed,
            0xd => ZoneCondition::ReadOnly,
            0xe => ZoneCondition::Full,
            0xf => ZoneCondition::Offline,
            _ => return None,
        })
    }
}

/// A zone, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The offset of its first byte.
    pub start: u64,
    /// The distance to the next zone.
    pub size: u64,
    /// How many of these bytes can be used.
    pub capacity: u64,
    /// The offset of the next write; meaningless for conventional, full, read-only and offline zones.
    pub pointer: u64,
    /// Its kind.
    pub kind: ZoneKind,
    /// Its condition.
    pub condition: ZoneCondition,
}
