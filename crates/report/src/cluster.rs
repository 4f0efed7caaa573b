//! Machines side by side: the results of each, their distance from the median, and the slowest one.

use crate::rates;
use crate::units::Units;
use iolite_stats::{Cluster, HostReport, Latency};

/// A machine is behind when the 99th percentile of its latencies is so many percent above the median of all.
const BEHIND: f64 = 10.0;

/// The results of one machine, in all directions.
pub struct Line<'a> {
    /// The machine.
    pub host: &'a HostReport,
    /// How its numbers are shown.
    pub units: Units,
    /// I/Os per second.
    pub iops: u64,
    /// Bytes per second.
    pub bandwidth: u64,
    /// The 99th percentile of completion latencies in nanoseconds; `None` = they were not measured.
    pub p99: Option<u64>,
    /// Its distance from the median of all machines, in percent of it; `None` for a single machine.
    pub of_median: Option<f64>,
}

/// One line for each machine, in their order.
pub fn lines(cluster: &Cluster) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = cluster.hosts.iter().map(line).collect();
    let mut known: Vec<u64> = lines.iter().filter_map(|line| line.p99).collect();
    known.sort_unstable();
    if known.len() > 1 {
        // Of two machines, the slower one is measured by the faster one.
        let median = known[(known.len() - 1) / 2].max(1) as f64;
        for line in &mut lines {
            line.of_median = line.p99.map(|p99| (p99 as f64 / median - 1.0) * 100.0);
        }
    }
    lines
}

/// The machine that is farthest behind; `None` = they are all alike.
pub fn straggler<'a, 'b>(lines: &'b [Line<'a>]) -> Option<&'b Line<'a>> {
    let distance = |line: &Line<'_>| line.of_median.unwrap_or(0.0);
    let worst = lines.iter().max_by(|one, other| distance(one).total_cmp(&distance(other)))?;
    (distance(worst) > BEHIND).then_some(worst)
}

fn line(host: &HostReport) -> Line<'_> {
    let mut units = Units { kb_base: 1024, unit_base: 0, figures: 4 };
    let (mut iops, mut bandwidth, mut latency) = (0_u64, 0_u64, Latency::default());
    if let Some(all) = host.all() {
        let display = &all.jobs[0].display;
        units = Units {
            kb_base: display.kb_base,
            unit_base: display.unit_base,
            figures: display.significant_figures,
        };
        for (_, direction) in all.jobs[0].directions.iter() {
            iops = iops.saturating_add(rates::iops(direction));
            bandwidth = bandwidth.saturating_add(rates::bandwidth(direction));
            latency += &direction.clat;
        }
    }
    let p99 = latency.histogram.percentiles(&[99.0]).into_iter().next();
    let p99 = p99.filter(|_| latency.moments.count > 0).map(|p99| p99.min(latency.moments.max));
    Line { host, units, iops, bandwidth, p99, of_median: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Exporter, Json, Normal, Program, Terse, TerseVersion, example};
    use iolite_stats::{JobReport, Report, StartSpread};
    use iolite_types::Direction;

    fn host(label: &str, latency_ns: u64) -> HostReport {
        let mut job = JobReport { name: "a".into(), members: 1, ..JobReport::default() };
        let read = &mut job.directions[Direction::Read];
        (read.ios, read.issued, read.bytes, read.runtime_ms) = (100, 100, 409_600, 1000);
        read.clat = example::latency(&[(latency_ns, 100)]);
        let report = Report { jobs: vec![job], ..Report::default() };
        HostReport { label: label.into(), address: format!("{label}.net"), port: 8765, report, lost: None }
    }

    fn cluster() -> Cluster {
        let hosts = vec![host("one", 1000), host("two", 1000), host("slow", 3000)];
        let start = Some(StartSpread { spread_ns: 40_000, uncertainty_ns: 9_000 });
        Cluster { hosts, start, ..Cluster::default() }
    }

    fn text(exporter: &dyn Exporter, version: &str) -> String {
        let program = Program { version: version.into(), own_version: "iolite-0.1.0".into() };
        let mut out = Vec::new();
        exporter.write_cluster(&cluster(), &program, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_straggler_is_named() {
        let cluster = cluster();
        let lines = lines(&cluster);
        let distances: Vec<f64> = lines.iter().map(|line| line.of_median.unwrap().round()).collect();
        assert_eq!((distances[0], distances[1]), (0.0, 0.0));
        assert!((190.0..210.0).contains(&distances[2]), "{distances:?}");
        assert_eq!(straggler(&lines).unwrap().host.label, "slow");
        assert!(straggler(&lines[..2]).is_none());
    }

    #[test]
    fn normal_has_each_host_and_all() {
        let own = text(&Normal, "iolite-0.1.0");
        for expected in
            ["<one> \na: (groupid=0", "<slow> \na: ", "\nAll clients: (groupid=0, jobs=3): err= 0: pid=0: "]
        {
            assert!(own.contains(expected), "{expected}: {own}");
        }
        assert!(own.contains("  slow is behind the others\n  started within 40.00us of each other"), "{own}");
        assert!(own.contains("issued rwts: total=300,0,0,0"), "{own}");
        assert!(!text(&Normal, "fio-3.42").contains("Hosts:"));
    }

    #[test]
    fn json_has_the_place_of_each() {
        let own: serde_json::Value =
            serde_json::from_str(&text(&Json { bins: false }, "iolite-0.1.0")).unwrap();
        let stats = own["client_stats"].as_array().unwrap();
        assert_eq!(stats.len(), 4);
        assert_eq!((&stats[2]["hostname"], &stats[2]["port"]), (&"slow.net".into(), &8765.into()));
        assert_eq!(stats[3]["jobname"], "All clients");
        assert_eq!(stats[3]["read"]["total_ios"], 300);
        assert_eq!(own["hosts"][2]["straggler"], 1);
        assert_eq!(own["start"]["spread_ns"], 40_000);
        assert!(own.get("jobs").is_none());
    }

    #[test]
    fn terse_has_a_line_for_all() {
        let terse = text(&Terse { version: TerseVersion::V3 }, "fio-3.42");
        assert!(terse.contains("\n3;fio-3.42;All clients;0;0;1200;"), "{terse}");
    }
}
