//! The figures that are compared.

/// A figure of a job, in one direction or as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// The mean latency in nanoseconds.
    Mean,
    /// The 50th percentile of latency in nanoseconds.
    P50,
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// The mean time of an I/O in the device, in nanoseconds (`stages`).
    Device,
    /// The mean time that the server and the network took.
    Server,
    /// The mean time in submission and after completion.
    Software,
    /// The mean time in the queue.
    Queue,
    /// CPU time of the job, user and system, in nanoseconds per I/O.
    Cpu,
}

impl Figure {
    /// All figures, in order.
    pub const ALL: [Figure; 13] = [
        Figure::Iops,
        Figure::P50,
        Figure::P99,
        Figure::Device,
        Figure::Server,
        Figure::Software,
        Figure::Queue,
        Figure::Bandwidth,
        Figure::Mean,
        Figure::P90,
        Figure::P95,
        Figure::P999,
        Figure::Cpu,
    ];

    /// Its name in output and in limits.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Iops => "iops",
            Figure::Bandwidth => "bw",
            Figure::Mean => "mean",
            Figure::P50 => "p50",
            Figure::P90 => "p90",
            Figure::P95 => "p95",
            Figure::P99 => "p99",
            Figure::P999 => "p99.9",
            Figure::Device => "device",
            Figure::Server => "server",
            Figure::Software => "software",
            Figure::Queue => "queue",
            Figure::Cpu => "cpu",
        }
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            Figure::Iops => "1/s",
            Figure::Bandwidth => "bytes/s",
            _ => "ns",
        }
    }

    /// Which percentile it is, if it is one.
    pub fn percentile(self) -> Option<f64> {
        match self {
            Figure::P50 => Some(50.0),
            Figure::P90 => Some(90.0),
            Figure::P95 => Some(95.0),
            Figure::P99 => Some(99.0),
            Figure::P999 => Some(99.9),
            Figure::Iops
            | Figure::Bandwidth
            | Figure::Mean
            | Figure::Device
            | Figure::Server
            | Figure::Software
            | Figure::Queue
            | Figure::Cpu => None,
        }
    }

    /// Whether it is a latency.
    pub fn is_latency(self) -> bool {
        self == Figure::Mean || self.percentile().is_some()
    }

    /// Whether a higher value is better.
    pub fn is_better_if_more(self) -> bool {
        matches!(self, Figure::Iops | Figure::Bandwidth)
    }

    /// Whether it gets a verdict by default. (Bandwidth would repeat the verdict of IOPS.)
    pub fn is_primary(self) -> bool {
        use Figure::{Device, Iops, P50, P99, Server, Software};
        matches!(self, Iops | P50 | P99 | Device | Server | Software)
    }
}
