//! Machines side by side: the results of each, their distance from the median, and the slowest one.
//!
//! Only machines with the same jobs are compared, by the 99th percentile of their completion latencies; lost machines
//! are not compared. Any two machines differ, so a machine is called slow only if chance does not explain it: there are
//! at least three to compare; its percentile is more than 10 % above the median; it is farther from the median than
//! machines typically are (median absolute deviation); and it had enough I/Os to know its percentile, whose interval
//! lies above that of the median.

use crate::rates;
use crate::units::Units;
use iolite_stats::{Cluster, HostReport, Latency};

/// The fewest machines for a comparison: with fewer, it is unknown which one is the odd one.
const LEAST_MACHINES: usize = 3;
/// A machine is behind if its percentile is at least this many percent above the median.
const BEHIND: f64 = 10.0;
/// And this many standard deviations. For a normal distribution, the standard deviation is the median absolute
/// deviation times 1.4826.
const DEVIATIONS: f64 = 3.0 * 1.4826;
/// How many standard errors the interval of a percentile extends to both sides. More than usual, because slow I/Os come
/// in bursts and are not independent.
const ERRORS: f64 = 5.0;
/// The percentile that is compared.
const PERCENTILE: f64 = 99.0;

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
    /// Its distance from the median of the machines with the same jobs, in percent of the median; `None` = no other
    /// machine, or it was lost.
    pub of_median: Option<f64>,
    /// It is the machine farthest behind, and not by chance.
    pub is_straggler: bool,
    /// The interval of the percentile; `None` = too few I/Os.
    interval: Option<(u64, u64)>,
}

/// One line for each machine, in their order.
pub fn lines(cluster: &Cluster) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = cluster.hosts.iter().map(line).collect();
    let mut left: Vec<usize> = (0..lines.len())
        .filter(|&place| lines[place].host.lost.is_none() && lines[place].p99.is_some())
        .collect();
    while let Some(&first) = left.first() {
        let (same, others) =
            left.into_iter().partition(|&place| has_same_jobs(lines[first].host, lines[place].host));
        compare(&mut lines, same);
        left = others;
    }
    let distance = |line: &Line<'_>| line.of_median.unwrap_or(0.0);
    let behind = lines.iter().filter(|line| line.is_straggler).map(distance).reduce(f64::max);
    lines.iter_mut().for_each(|line| line.is_straggler &= Some(distance(line)) == behind);
    lines
}

fn has_same_jobs(one: &HostReport, other: &HostReport) -> bool {
    let jobs = |host: &HostReport| -> Vec<(String, u32)> {
        host.report.jobs.iter().map(|job| (job.name.clone(), job.members)).collect()
    };
    jobs(one) == jobs(other)
}

/// Compares machines with the same jobs, whose percentiles are known.
fn compare(lines: &mut [Line<'_>], mut places: Vec<usize>) {
    if places.len() < 2 {
        return;
    }
    let p99 = |line: &Line<'_>| line.p99.unwrap_or(0);
    places.sort_by_key(|&place| p99(&lines[place]));
    // With two machines, the slower one is compared with the faster one.
    let middle = (places.len() - 1) / 2;
    let (median, interval) = (p99(&lines[places[middle]]), lines[places[middle]].interval);
    let mut distances: Vec<u64> = places.iter().map(|&place| p99(&lines[place]).abs_diff(median)).collect();
    distances.sort_unstable();
    let usual = distances[middle] as f64;
    let is_enough = places.len() >= LEAST_MACHINES;
    for place in places {
        let line = &mut lines[place];
        let distance = p99(line) as f64 - median as f64;
        let percent = distance / median.max(1) as f64 * 100.0;
        let is_known = matches!((line.interval, interval), (Some((low, _)), Some((_, high))) if low > high);
        line.of_median = Some(percent);
        line.is_straggler = is_enough && is_known && percent > BEHIND && distance > DEVIATIONS * usual;
    }
}

/// The machine that is farthest behind; `None` = all are alike.
pub fn straggler<'a, 'b>(lines: &'b [Line<'a>]) -> Option<&'b Line<'a>> {
    lines.iter().find(|line| line.is_straggler)
}

/// The confidence interval of the percentile; `None` = too few I/Os.
fn interval(latency: &Latency) -> Option<(u64, u64)> {
    let share = PERCENTILE / 100.0;
    let error = (share * (1.0 - share) / latency.histogram.total() as f64).sqrt() * 100.0;
    let places = [PERCENTILE - ERRORS * error, PERCENTILE + ERRORS * error];
    let values = latency.histogram.percentiles(&places);
    (places[0] > 0.0 && places[1] < 100.0).then(|| (values[0], values[1]))
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
    let p99 = latency.histogram.percentiles(&[PERCENTILE]).into_iter().next();
    let p99 = p99.filter(|_| latency.moments.count > 0).map(|p99| p99.min(latency.moments.max));
    let interval = interval(&latency);
    Line { host, units, iops, bandwidth, p99, of_median: None, is_straggler: false, interval }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Exporter, Json, Normal, Program, Terse, TerseVersion, example};
    use iolite_stats::{JobReport, Report, StartSpread};
    use iolite_types::Direction;

    /// The number of I/Os of each machine.
    const IOS: usize = 3000;

    fn host(label: &str, latency_ns: u64) -> HostReport {
        let mut job = JobReport { name: "a".into(), members: 1, ..JobReport::default() };
        let read = &mut job.directions[Direction::Read];
        (read.ios, read.issued, read.runtime_ms) = (IOS as u64, IOS as u64, 1000);
        read.bytes = 4096 * read.ios;
        read.clat = example::latency(&[(latency_ns, IOS)]);
        let report = Report { jobs: vec![job], ..Report::default() };
        HostReport { label: label.into(), address: format!("{label}.net"), port: 8765, report, lost: None }
    }

    fn cluster() -> Cluster {
        let hosts = vec![host("one", 1000), host("two", 1000), host("slow", 3000)];
        let start = Some(StartSpread { spread_ns: 40_000, uncertainty_ns: 9_000 });
        Cluster { hosts, start, ..Cluster::default() }
    }

    fn text(exporter: &dyn Exporter, version: &str) -> String {
        text_of(&cluster(), exporter, version)
    }

    fn text_of(cluster: &Cluster, exporter: &dyn Exporter, version: &str) -> String {
        let program = Program { version: version.into(), own_version: "iolite-0.1.0".into() };
        let mut out = Vec::new();
        exporter.write_cluster(cluster, &program, &mut out).unwrap();
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
    }

    fn behind(hosts: Vec<HostReport>) -> Option<String> {
        let cluster = Cluster { hosts, ..Cluster::default() };
        straggler(&lines(&cluster)).map(|line| line.host.label.clone())
    }

    #[test]
    fn chance_differences_are_not_stragglers() {
        let hosts = |p99s: &[u64]| -> Vec<HostReport> {
            p99s.iter().enumerate().map(|(number, &p99)| host(&number.to_string(), p99)).collect()
        };
        assert_eq!(behind(hosts(&[1000, 3000])), None, "which of two is the odd one?");
        assert_eq!(behind(hosts(&[1000, 1000, 1080])), None, "8 % is little");
        assert_eq!(behind(hosts(&[1000, 1300, 1600])), None, "they are all different");
        assert_eq!(behind(hosts(&[1000, 1050, 1100, 3000, 5000])).as_deref(), Some("4"), "the farthest");
        let mut few = hosts(&[1000, 1000, 3000]);
        let read = &mut few[2].report.jobs[0].directions[Direction::Read];
        read.clat = example::latency(&[(3000, 1000)]);
        assert_eq!(behind(few), None, "ten I/Os above a percentile are not enough");
        // A hundredth of the I/Os is slow in both cases, so their percentiles may be anywhere in between.
        let mut wide = hosts(&[1000, 1000, 1000]);
        for (host, slow) in wide.iter_mut().zip([29, 29, 31]) {
            let read = &mut host.report.jobs[0].directions[Direction::Read];
            read.clat = example::latency(&[(1000, IOS - slow), (9000, slow)]);
        }
        assert_eq!(behind(wide), None);
    }

    #[test]
    fn only_machines_with_the_same_jobs_are_compared() {
        let mut hosts = vec![host("one", 1000), host("two", 1000), host("slow", 3000)];
        hosts[2].report.jobs[0].name = "b".into();
        let cluster = Cluster { hosts, ..Cluster::default() };
        let lines = lines(&cluster);
        assert!(straggler(&lines).is_none());
        let distances: Vec<Option<f64>> = lines.iter().map(|line| line.of_median).collect();
        assert_eq!(distances, [Some(0.0), Some(0.0), None]);
    }

    #[test]
    fn a_lost_machine_is_marked_everywhere_and_compared_with_none() {
        let mut lost = cluster();
        lost.hosts[2].lost = Some("cut off".into());
        let normal = text_of(&lost, &Normal, "iolite-0.1.0");
        for expected in [
            "<slow> lost: cut off; its last report:\na: (groupid=0, jobs=1): err=112 (lost: cut off, error=Host is down)",
            "\nAll clients: (groupid=0, jobs=3): err=112 (1 of 3 hosts lost: slow, error=Host is down): ",
            "\n  slow was lost: cut off\n",
        ] {
            assert!(normal.contains(expected), "{expected}: {normal}");
        }
        assert!(
            normal.lines().any(|line| line.starts_with("  slow ") && line.ends_with("  lost")),
            "{normal}"
        );
        assert!(!normal.contains("behind"), "{normal}");
        for version in ["iolite-0.1.0", "fio-3.42"] {
            let json: serde_json::Value =
                serde_json::from_str(&text_of(&lost, &Json { bins: false }, version)).unwrap();
            let of = |index: usize| &json["client_stats"][index];
            assert_eq!((&of(0)["error"], of(0).get("lost")), (&0.into(), None));
            assert_eq!((&of(2)["error"], &of(2)["lost"]), (&112.into(), &"cut off".into()));
            assert_eq!((&of(3)["error"], &of(3)["lost"]), (&112.into(), &"1 of 3 hosts lost: slow".into()));
            assert_eq!(of(3)["read"]["total_ios"], 3 * IOS);
            let slow = &json["hosts"][2];
            assert_eq!((&slow["lost"], &slow["straggler"]), (&"cut off".into(), &0.into()));
            assert!(slow.get("percent_from_median").is_none());
        }
        let terse = text_of(&lost, &Terse { version: TerseVersion::V3 }, "fio-3.42");
        let errors: Vec<&str> = terse.lines().map(|line| line.split(';').nth(4).unwrap()).collect();
        assert_eq!(errors, ["0", "0", "112", "112"]);
    }

    #[test]
    fn a_run_without_surviving_hosts_is_reported() {
        let mut none = cluster();
        for host in &mut none.hosts {
            (host.report, host.lost) = (Report::default(), Some("cut off".into()));
        }
        let normal = text_of(&none, &Normal, "fio-3.42");
        let all = "\nAll clients: (groupid=0, jobs=0): err=112 (3 of 3 hosts lost: one, two, slow, error=Host is down)";
        assert!(
            normal.contains(all) && normal.contains("<one> lost: cut off; it had reported nothing\n"),
            "{normal}"
        );
        assert!(!normal.contains("IO depths"), "{normal}");
        let json: serde_json::Value =
            serde_json::from_str(&text_of(&none, &Json { bins: false }, "fio-3.42")).unwrap();
        assert_eq!(json["client_stats"][0]["error"], 112);
        assert_eq!(json["hosts"][0]["lost"], "cut off");
        let terse = text_of(&none, &Terse { version: TerseVersion::V3 }, "fio-3.42");
        assert!(terse.starts_with("3;fio-3.42;All clients;0;112;0;"), "{terse}");
        assert_eq!(terse.lines().count(), 1);
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
        assert!(own.contains("issued rwts: total=9000,0,0,0"), "{own}");
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
        assert_eq!(stats[3]["read"]["total_ios"], 9000);
        assert_eq!(own["hosts"][2]["straggler"], 1);
        assert_eq!(own["start"]["spread_ns"], 40_000);
        assert!(own.get("jobs").is_none());
    }

    #[test]
    fn terse_has_a_line_for_all() {
        let terse = text(&Terse { version: TerseVersion::V3 }, "fio-3.42");
        assert!(terse.contains("\n3;fio-3.42;All clients;0;0;36000;"), "{terse}");
    }
}
