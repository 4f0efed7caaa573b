//! Chooses the command of the next write if several commands have shares (`write_mode=write:80,zeroes:20`).

use iolite_options::engines::WriteModes;
use std::fmt;

/// Draws commands by their shares, and counts them.
#[derive(Debug)]
pub(super) struct Shares {
    /// The names of the modes, each with its cumulative percentage, and the number of its writes so far.
    modes: Vec<(&'static str, u64, u64)>,
    state: u64,
}

impl Shares {
    /// The shares of these modes; `None` = all writes are one command.
    pub(super) fn of(modes: &WriteModes, seed: u64) -> Option<Shares> {
        let mut sum = 0;
        let known = modes.shares().iter().map(|&(mode, percent)| {
            sum += u64::from(percent);
            (mode.name(), sum, 0)
        });
        let modes: Vec<_> = known.collect();
        // A different random stream from that of placement.
        (modes.len() > 1).then_some(Shares { modes, state: (seed ^ 0x7368_6172_6573) | 1 })
    }

    /// The place of the next write's mode in the list.
    pub(super) fn draw(&mut self) -> usize {
        // xorshift64*
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let drawn = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        let drawn = (drawn * 100) >> 32;
        let place = self.modes.iter().position(|&(_, upto, _)| drawn < upto).unwrap_or(0);
        self.modes[place].2 += 1;
        place
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write_mode: commands were")?;
        for (place, (name, _, count)) in self.modes.iter().enumerate() {
            write!(f, "{} {count} {name}", if place == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::engines::{IoUringCmdOptions, NvmeWriteMode};

    #[test]
    fn modes_are_drawn_by_their_shares() {
        assert!(Shares::of(&IoUringCmdOptions::default().write_mode, 7).is_none());
        let modes = WriteModes::of(&[(NvmeWriteMode::Write, 80), (NvmeWriteMode::Zeroes, 20)]);
        let mut shares = Shares::of(&modes, 7).unwrap();
        let zeroes = (0..10_000).filter(|_| shares.draw() == 1).count();
        assert!((1850..2150).contains(&zeroes), "{zeroes}");
        let told = format!("write_mode: commands were {} write, {zeroes} zeroes", 10_000 - zeroes);
        assert_eq!(shares.to_string(), told);
    }
}
