//! How idle the CPUs were while the jobs ran.

use serde::{Deserialize, Serialize};

/// One CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IdleCpu {
    /// Its number.
    pub cpu: u32,
    /// How much of the time it was idle, in percent.
    pub percent: f64,
    /// The time that a unit of work takes on it, in microseconds.
    pub unit_us: f64,
}

/// The idleness of all CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IdleReport {
    /// Each CPU.
    pub cpus: Vec<IdleCpu>,
    /// Whether each CPU is shown.
    pub per_cpu: bool,
}

impl IdleReport {
    /// The idleness of all CPUs together, in percent.
    pub fn system(&self) -> f64 {
        self.mean(|cpu| cpu.percent)
    }

    /// The mean time that a unit of work takes, in microseconds.
    pub fn unit_mean(&self) -> f64 {
        self.mean(|cpu| cpu.unit_us)
    }

    /// The standard deviation of that time between CPUs; 0 for a single CPU.
    pub fn unit_deviation(&self) -> f64 {
        let mean = self.unit_mean();
        let squares: f64 = self.cpus.iter().map(|cpu| (cpu.unit_us - mean).powi(2)).sum();
        if self.cpus.len() < 2 { 0.0 } else { (squares / (self.cpus.len() - 1) as f64).sqrt() }
    }

    /// Appends the CPUs of another part of a report.
    pub(crate) fn append(&mut self, other: IdleReport) {
        self.cpus.extend(other.cpus);
        self.per_cpu |= other.per_cpu;
    }

    fn mean(&self, of: impl Fn(&IdleCpu) -> f64) -> f64 {
        let sum: f64 = self.cpus.iter().map(of).sum();
        if self.cpus.is_empty() { 0.0 } else { sum / self.cpus.len() as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_deviation() {
        let cpu = |cpu, percent, unit_us| IdleCpu { cpu, percent, unit_us };
        let report = IdleReport { cpus: vec![cpu(0, 20.0, 7.0), cpu(3, 40.0, 9.0)], per_cpu: true };
        assert_eq!((report.system(), report.unit_mean()), (30.0, 8.0));
        assert!((report.unit_deviation() - 2f64.sqrt()).abs() < 1e-12);
        assert_eq!((IdleReport::default().system(), IdleReport::default().unit_deviation()), (0.0, 0.0));
    }
}
