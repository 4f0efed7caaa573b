//! The parts of a campaign.

use crate::stop::Stop;
use crate::trial::Trial;
use crate::{damage, devices, disks, honest, kills, signals, zones};

/// The parts of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// SIGKILL at random moments of every process of a run.
    Kills,
    /// Bytes and blocks of verified files are changed.
    Damage,
    /// Verified jobs that nothing happens to.
    Honest,
    /// Signals in bursts.
    Signals,
    /// Full disks.
    Disks,
    /// Verified jobs on the devices of a virtual machine.
    Devices,
    /// Every rule of zones on every zoned device of a virtual machine, with every engine.
    Zones,
}

impl Part {
    /// All parts, in the order in which they are tried.
    pub const ALL: [Part; 7] =
        [Part::Kills, Part::Damage, Part::Honest, Part::Signals, Part::Disks, Part::Devices, Part::Zones];

    /// The part with this name.
    pub fn named(name: &str) -> Result<Part, String> {
        let known = Part::ALL.into_iter().find(|part| part.name() == name);
        known.ok_or_else(|| {
            format!("there is no part \"{name}\", only {}", Part::ALL.map(Part::name).join(", "))
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Part::Kills => "kills",
            Part::Damage => "damage",
            Part::Honest => "honest",
            Part::Signals => "signals",
            Part::Disks => "disks",
            Part::Devices => "devices",
            Part::Zones => "zones",
        }
    }

    /// How many trials there are; `None` = as many as there is time for.
    pub fn count(self) -> Option<u64> {
        (self == Part::Zones).then(zones::count)
    }

    /// Why it cannot be tried here; `None` = it can.
    pub fn obstacle(self) -> Option<String> {
        match self {
            Part::Disks => disks::obstacle(),
            Part::Devices | Part::Zones => devices::obstacle(),
            Part::Kills | Part::Damage | Part::Honest | Part::Signals => None,
        }
    }

    /// Performs the trial of this number.
    ///
    /// # Errors
    /// It ended early, because something is wrong (which has been noted).
    pub fn perform(self, trial: &mut Trial, number: u64) -> Result<(), Stop> {
        match self {
            Part::Kills => kills::perform(trial),
            Part::Damage => damage::perform(trial),
            Part::Honest => honest::perform(trial),
            Part::Signals => signals::perform(trial),
            Part::Disks => disks::perform(trial),
            Part::Devices => devices::perform(trial, number),
            Part::Zones => zones::perform(trial, number),
        }
    }
}
