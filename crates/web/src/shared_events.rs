//! Events that readers of a run share.

use std::sync::Arc;

/// Once a series has this many windows, its text is reused for new readers until the series has grown by an
/// eighth; they get the rest separately. So readers that arrive one after the other share one copy.
const LARGE: usize = 64;

/// Events that were made for one reader and are reused for others: all readers get events once per period, so most of
/// them need the same events.
#[derive(Debug, Default)]
pub struct SharedEvents {
    /// The period in which the events below were made, except for the event with the complete series.
    period: u64,
    /// Parts of the series.
    pub series: Vec<SeriesEvent>,
    /// The state of the workers, with the number of urgent changes before it.
    pub standing: Option<(u64, Arc<str>)>,
}

/// The event with a series from a window on.
#[derive(Clone, Debug)]
pub struct SeriesEvent {
    /// The period in which it was made.
    pub period: u64,
    /// The number of samples per window.
    pub per_window: u32,
    /// The first window.
    pub since: usize,
    /// The one after the last.
    pub until: usize,
    /// The event.
    pub text: Arc<str>,
}

impl SeriesEvent {
    /// Whether a reader may get it in this period, if the series has this many windows.
    fn serves(&self, period: u64, windows: usize) -> bool {
        let is_whole_enough =
            self.since == 0 && self.until >= LARGE && windows - self.until <= self.until / 8;
        self.period == period || is_whole_enough
    }
}

impl SharedEvents {
    /// Removes events of earlier periods that no reader needs any more.
    pub fn begin(&mut self, period: u64, per_window: u32, windows: usize) {
        self.series.retain(|one| one.per_window == per_window && one.serves(period, windows));
        if self.period != period {
            self.period = period;
            self.standing = None;
        }
    }
}
