//! Stands for the page of a run in a program without pages. `left_out.rs` refuses runs that ask for one.

use iolite_options::{Name, RunOptions};
use iolite_page::logs::Drawings;
use iolite_stats::{Event, Report};
pub use std::convert::Infallible as Lost;
use std::time::Duration;

/// States of machines on a page.
#[cfg(feature = "agents")]
pub const LOST: char = 'L';
#[cfg(feature = "agents")]
pub const WAITS: char = 'B';

/// The subject of a page.
#[expect(dead_code, reason = "nobody reads it")]
pub struct About {
    pub outline: Report,
    pub blocks: Vec<Option<u32>>,
    pub interval: Duration,
    pub of_hosts: bool,
}

/// The page of a run: there is none.
#[derive(Debug, Default)]
pub struct Live(());

impl Live {
    pub fn start(_: Name, _: &RunOptions, _: About) -> Result<Live, String> {
        Ok(Live(()))
    }

    pub fn take(&mut self, _: &Event) -> Result<(), Lost> {
        Ok(())
    }

    #[cfg(feature = "agents")]
    pub fn end_with(&mut self, _: String) -> Result<(), Lost> {
        Ok(())
    }

    pub fn leave_screen(&mut self) {}

    pub fn end(&mut self, _: Name, _: &Report, _: &Drawings) -> Result<(), Lost> {
        Ok(())
    }
}
