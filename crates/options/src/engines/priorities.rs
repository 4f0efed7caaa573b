//! The share of the I/Os that have a separate priority: `cmdprio_percentage` and the related options. Shared by the
//! engines that can set a priority for each I/O.

use super::shared::{no_use_to_commands, option};
use crate::PriorityShare;
use crate::definition::{Definition, Kind};
use crate::values::{per_direction, priority_shares};
use iolite_types::PerDirection;
use serde::{Deserialize, Serialize};

/// The options `cmdprio…` of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandPriorities {
    /// `cmdprio_percentage`: percent of the I/Os.
    pub percentage: PerDirection<u32>,
    /// `cmdprio_class`; 0 = the highest.
    pub class: PerDirection<u32>,
    /// `cmdprio`: the level in the class, 0 (highest) to 7.
    pub level: PerDirection<u32>,
    /// `cmdprio_hint`
    pub hint: PerDirection<u32>,
    /// `cmdprio_bssplit`; empty for a direction without entries.
    pub by_size: PerDirection<Vec<PriorityShare>>,
}

impl CommandPriorities {
    /// Whether some I/Os get a priority that differs from the job's.
    pub fn is_on(&self) -> bool {
        self.percentage.values.iter().any(|&percent| percent > 0)
            || self.by_size.values.iter().any(|shares| !shares.is_empty())
    }
}

/// A landing of one number per direction.
macro_rules! priority {
    ($field:ident) => {
        |own, given| match own.find::<CommandPriorities>() {
            Some(priorities) => given.numbers_into(&mut priorities.$field),
            None => {
                no_use_to_commands(given);
                Ok(())
            }
        }
    };
}

pub(super) static CMDPRIO_PERCENTAGE: Definition =
    option("cmdprio_percentage", Kind::Int, "Percent of I/Os with a separate I/O priority")
        .range(0, 100)
        .lands_in_engine(priority!(percentage));
pub(super) static CMDPRIO_CLASS: Definition = option("cmdprio_class", Kind::Int, "Class of that priority")
    .range(1, 3)
    .lands_in_engine(priority!(class));
pub(super) static CMDPRIO_HINT: Definition = option("cmdprio_hint", Kind::Int, "Hint of that priority")
    .range(0, 1023)
    .lands_in_engine(priority!(hint));
pub(super) static CMDPRIO: Definition =
    option("cmdprio", Kind::Int, "Level of that priority, 0 (highest) to 7")
        .range(0, 7)
        .lands_in_engine(priority!(level));
pub(super) static CMDPRIO_BSSPLIT: Definition =
    option("cmdprio_bssplit", Kind::Str, "Percent of I/Os with their own priority, per block size")
        .lands_in_engine(|own, given| {
            let Some(priorities) = own.find::<CommandPriorities>() else {
                no_use_to_commands(given);
                return Ok(());
            };
            let by_size = &mut priorities.by_size;
            let parts = per_direction(given.required()?, &[','], &mut given.notes)?;
            for (shares, part) in by_size.values.iter_mut().zip(parts) {
                if let Some(part) = part {
                    *shares = priority_shares(part, given.kb_base, &mut given.notes)?;
                }
            }
            given.notes.dedup();
            Ok(())
        });
