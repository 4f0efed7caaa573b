//! The queue depth of the devices over time.

/// The requests in the devices over time.
#[derive(Clone, Debug, Default)]
pub struct Depth {
    /// The most requests at a time.
    pub most: u64,
    now: u64,
    /// The requests in each device.
    shares: Vec<u64>,
    issued: u64,
    returned: u64,
    since_ns: u64,
    /// The integral of requests over time, in requests times nanoseconds.
    area: u128,
    /// The time with at least one request, in nanoseconds.
    busy_ns: u64,
    total_ns: u64,
}

impl Depth {
    /// Counts a request that was issued to this device.
    pub(super) fn issued(&mut self, device: u32, now_ns: u64) {
        self.advance(now_ns);
        self.issued += 1;
        *self.share(device) += 1;
        self.now += 1;
        self.most = self.most.max(self.now);
    }

    /// Counts a request that this device completed or returned. Requests from before the start of the trace are
    /// ignored, and so are those of devices that pass everything on to other devices and to which no request is ever
    /// issued.
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

    /// Ends the trace.
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

    /// Whether the trace had both kinds of events.
    pub(super) fn is_known(&self) -> bool {
        self.issued > 0 && self.returned > 0
    }

    /// The mean number of requests over the time of the trace.
    pub fn mean(&self) -> f64 {
        if self.total_ns == 0 { 0.0 } else { self.area as f64 / self.total_ns as f64 }
    }

    /// The mean number of requests over the time with at least one request.
    pub fn mean_when_busy(&self) -> f64 {
        if self.busy_ns == 0 { 0.0 } else { self.area as f64 / self.busy_ns as f64 }
    }

    /// The share of the time with at least one request, in percent.
    pub fn busy_percent(&self) -> f64 {
        if self.total_ns == 0 { 0.0 } else { self.busy_ns as f64 * 100.0 / self.total_ns as f64 }
    }
}
