//! How much the devices had to do at a time.

/// Requests with the devices, over time.
#[derive(Clone, Debug, Default)]
pub struct Depth {
    /// Most at a time.
    pub most: u64,
    now: u64,
    /// The share of each device.
    shares: Vec<u64>,
    issued: u64,
    returned: u64,
    since_ns: u64,
    /// Requests times nanoseconds.
    area: u128,
    /// Nanoseconds with something to do.
    busy_ns: u64,
    total_ns: u64,
}

impl Depth {
    /// This device was given a request.
    pub(super) fn issued(&mut self, device: u32, now_ns: u64) {
        self.advance(now_ns);
        self.issued += 1;
        *self.share(device) += 1;
        self.now += 1;
        self.most = self.most.max(self.now);
    }

    /// It is done with one, or gave it back. Those that it had before the trace began are not missed, nor those of
    /// devices that pass everything on to others, and so are never given any.
    pub(super) fn returned(&mut self, device: u32, now_ns: u64) {
        self.advance(now_ns);
        self.returned += 1;
        let share = self.share(device);
        if *share > 0 {
            *share -= 1;
            self.now -= 1;
        }
    }

    fn share(&mut self, device: u32) -> &mut u64 {
        let device = device as usize;
        if device >= self.shares.len() {
            self.shares.resize(device + 1, 0);
        }
        &mut self.shares[device]
    }

    /// The trace ends.
    pub(super) fn end(&mut self, now_ns: u64) {
        self.advance(now_ns);
    }

    fn advance(&mut self, now_ns: u64) {
        let span = now_ns - self.since_ns;
        self.area += u128::from(span) * u128::from(self.now);
        self.busy_ns += if self.now > 0 { span } else { 0 };
        self.total_ns += span;
        self.since_ns = now_ns;
    }

    /// Whether the trace had both sorts of events.
    pub(super) fn is_known(&self) -> bool {
        self.issued > 0 && self.returned > 0
    }

    /// Requests at a time, averaged over the time of the trace.
    pub fn mean(&self) -> f64 {
        if self.total_ns == 0 { 0.0 } else { self.area as f64 / self.total_ns as f64 }
    }

    /// Requests at a time, averaged over the time in which there were any.
    pub fn mean_when_busy(&self) -> f64 {
        if self.busy_ns == 0 { 0.0 } else { self.area as f64 / self.busy_ns as f64 }
    }

    /// The share of the time in which there were any, in percent.
    pub fn busy_percent(&self) -> f64 {
        if self.total_ns == 0 { 0.0 } else { self.busy_ns as f64 * 100.0 / self.total_ns as f64 }
    }
}
