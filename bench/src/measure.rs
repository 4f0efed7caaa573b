//! The numbers that are compared, and how they are read from a report.

use serde_json::Value;

/// The quantity that is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// I/Os per second, all directions together: more is better.
    Iops,
    /// The same for servers, which reach thousands rather than millions.
    Requests,
    /// I/Os per second, after checking that the job's log has a line for every I/O.
    LoggedIops,
    /// Bytes per second, all directions together: more is better.
    Throughput,
    /// Nanoseconds of user CPU per I/O: less is better.
    UserCpuPerIo,
    /// Nanoseconds of user and system CPU per I/O: less is better.
    CpuPerIo,
    /// Nanoseconds of user and system CPU of all jobs per KiB that was written: less is better. For jobs at both ends of a
    /// connection: fio counts each part of a block as an I/O, and not all bytes of blocks that came in parts.
    CpuPerKib,
    /// Nanoseconds of user and system CPU of the job's own thread per I/O, without the threads of a library: less is better.
    ThreadCpuPerIo,
    /// The same of all threads of all processes, as the kernel counts it: less is better.
    AllCpuPerIo,
    /// How close the CPU time of the job is to this percent of its run time, 1 = exactly: more is better.
    Load(u32),
    /// Seconds from start to exit: less is better.
    WallSeconds,
    /// The peak of the sum of all processes' proportional set sizes: less is better.
    PeakMemory,
    /// How often the peak of memory would fit into 128 bytes for each of so many files: more is better.
    RoomForFiles(u32),
    /// The speed at the end of a pass in relation to the speed at its beginning: more is better.
    TailSpeed,
}

impl Measure {
    /// The unit in the table.
    pub fn unit(self) -> &'static str {
        match self {
            Measure::Iops | Measure::LoggedIops => "MIOPS",
            Measure::Requests => "requests/s",
            Measure::Throughput => "GB/s",
            Measure::UserCpuPerIo => "user ns/IO",
            Measure::CpuPerIo => "CPU ns/IO",
            Measure::CpuPerKib => "CPU ns/KiB",
            Measure::ThreadCpuPerIo => "own CPU ns/IO",
            Measure::AllCpuPerIo => "all CPU ns/IO",
            Measure::WallSeconds => "s",
            Measure::PeakMemory => "MiB",
            Measure::TailSpeed | Measure::Load(_) | Measure::RoomForFiles(_) => "ratio",
        }
    }

    /// How many times better `ours` is than `theirs`.
    pub fn advantage(self, ours: f64, theirs: f64) -> f64 {
        if self.is_more_better() { ours / theirs } else { theirs / ours }
    }

    /// Whether more is better, as with all rates.
    pub fn is_more_better(self) -> bool {
        match self {
            Measure::Iops | Measure::Requests | Measure::LoggedIops | Measure::Throughput => true,
            Measure::TailSpeed | Measure::Load(_) | Measure::RoomForFiles(_) => true,
            Measure::UserCpuPerIo | Measure::CpuPerIo | Measure::CpuPerKib => false,
            Measure::WallSeconds | Measure::PeakMemory => false,
            Measure::ThreadCpuPerIo | Measure::AllCpuPerIo => false,
        }
    }

    /// The number for all jobs in the last report of a run.
    pub fn read(self, reports: &[Value]) -> Result<f64, String> {
        let report = reports.last().ok_or("no report")?;
        let totals = Totals::of(report)?;
        if totals.ios == 0.0 {
            return Err("the job did nothing".into());
        }
        match self {
            Measure::Iops | Measure::LoggedIops => Ok(totals.iops / 1e6),
            Measure::Requests => Ok(totals.iops),
            Measure::Throughput => Ok(totals.bytes_per_second / 1e9),
            Measure::UserCpuPerIo => Ok(totals.user_ns / totals.ios),
            Measure::CpuPerIo => Ok((totals.user_ns + totals.system_ns) / totals.ios),
            Measure::CpuPerKib => Ok((totals.user_ns + totals.system_ns) / (totals.written / 1024.0)),
            Measure::Load(percent) => {
                let reached = (totals.user_ns + totals.system_ns) / totals.runtime_ns;
                Ok(1.0 - (reached - f64::from(percent) / 100.0).abs())
            }
            Measure::TailSpeed => tail_speed(reports),
            Measure::WallSeconds
            | Measure::PeakMemory
            | Measure::RoomForFiles(_)
            | Measure::ThreadCpuPerIo
            | Measure::AllCpuPerIo => Err("not in a report".into()),
        }
    }
}

/// Sums over the jobs of a report.
#[derive(Default)]
struct Totals {
    ios: f64,
    written: f64,
    iops: f64,
    bytes_per_second: f64,
    user_ns: f64,
    system_ns: f64,
    runtime_ns: f64,
}

impl Totals {
    fn of(report: &Value) -> Result<Totals, String> {
        let number = |value: &Value, what: &str| value.as_f64().ok_or(format!("no {what} in the report"));
        let mut totals = Totals::default();
        for job in report["jobs"].as_array().ok_or("no jobs in the report")? {
            for direction in ["read", "write", "trim"] {
                totals.ios += number(&job[direction]["total_ios"], "total_ios")?;
                totals.iops += number(&job[direction]["iops"], "iops")?;
                totals.bytes_per_second += number(&job[direction]["bw_bytes"], "bw_bytes")?;
            }
            totals.written += number(&job["write"]["io_bytes"], "io_bytes")?;
            // Percent of the job's run time, which is in milliseconds.
            let runtime_ns = number(&job["job_runtime"], "job_runtime")? * 1e6;
            totals.runtime_ns += runtime_ns;
            totals.user_ns += number(&job["usr_cpu"], "usr_cpu")? / 100.0 * runtime_ns;
            totals.system_ns += number(&job["sys_cpu"], "sys_cpu")? / 100.0 * runtime_ns;
        }
        Ok(totals)
    }
}

/// The I/Os of all jobs in the last report of a run.
pub fn total_ios(reports: &[Value]) -> Result<f64, String> {
    Ok(Totals::of(reports.last().ok_or("no report")?)?.ios)
}

/// From the reports at equal intervals during one pass: the I/Os of the last whole interval in relation to those of the
/// first one. The time before the first report contains the start of the job, and the last report is that of the end of
/// the job, so neither interval counts.
fn tail_speed(reports: &[Value]) -> Result<f64, String> {
    let ios: Vec<f64> =
        reports.iter().map(|report| Ok(Totals::of(report)?.ios)).collect::<Result<_, String>>()?;
    let steps: Vec<f64> = ios.windows(2).map(|pair| pair[1] - pair[0]).collect();
    match steps.as_slice() {
        [first, .., last, _] if *first > 0.0 => Ok(last / first),
        _ => Err(format!("{} reports are too few for a whole pass", reports.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(times: u64) -> Value {
        let direction = |ios: u64, iops: f64| {
            let all = ios * times;
            json!({"total_ios": all, "io_bytes": all * 4096, "iops": iops, "bw_bytes": iops * 4096.0})
        };
        json!({"jobs": [{
            "read": direction(3_000_000, 1_500_000.0), "write": direction(1_000_000, 500_000.0), "trim": direction(0, 0.0),
            "usr_cpu": 50.0, "sys_cpu": 25.0, "job_runtime": 2000,
        }]})
    }

    #[test]
    fn numbers_are_read_from_a_report() {
        assert_eq!(Measure::Iops.read(&[report(1)]), Ok(2.0));
        assert_eq!(Measure::Requests.read(&[report(1)]), Ok(2e6));
        assert_eq!(Measure::Throughput.read(&[report(1)]), Ok(8.192));
        // Half of two seconds over four million I/Os.
        assert_eq!(Measure::UserCpuPerIo.read(&[report(1)]), Ok(250.0));
        assert_eq!(Measure::CpuPerIo.read(&[report(1)]), Ok(375.0));
        // A million writes of 4 KiB.
        assert_eq!(Measure::CpuPerKib.read(&[report(1)]), Ok(375.0));
    }

    #[test]
    fn the_tail_is_compared_with_the_beginning() {
        let reports = [1, 3, 5, 6, 7].map(report);
        assert_eq!(Measure::TailSpeed.read(&reports), Ok(0.5));
        assert!(Measure::TailSpeed.read(&reports[..2]).is_err());
    }

    #[test]
    fn a_report_without_ios_is_an_error() {
        assert!(Measure::Iops.read(&[report(0)]).is_err());
        assert!(Measure::Iops.read(&[json!({})]).is_err());
        assert!(Measure::Iops.read(&[]).is_err());
    }

    #[test]
    fn more_is_better_or_less_is() {
        assert_eq!(Measure::Iops.advantage(4.0, 2.0), 2.0);
        assert_eq!(Measure::UserCpuPerIo.advantage(100.0, 150.0), 1.5);
    }
}
