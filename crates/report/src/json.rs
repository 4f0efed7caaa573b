//! The report for programs: `json`, and `json+` with every bin of the latency histograms.
//!
//! Scripts match keys, and some match lines, so keys, nesting, order, number types and white space are those of fio
//! 3.42: two blanks per level, ` : ` between key and value, six decimals for numbers that are not integers.

mod over_time;
mod stages;
mod writer;

pub use over_time::series_since;

use crate::rates::Block;
use crate::{Exporter, Program, clock, cluster, comparison, far_end, rates};
use iolite_stats::{
    BlockReport, BlockState, Cluster, DirectionReport, DiskReport, Display, Histogram, HostReport,
    IdleReport, JobReport, Latency, Moments, Quantity, Report, SteadyReport, midpoint,
};
use std::io::{self, Write};
use writer::Writer;

/// The value of `eta` when the time left is unknown.
const NO_ETA: u64 = i32::MAX as u64;
/// The smallest share of a depth that occurred, in percent.
const LEAST_DEPTH: f64 = 0.1;
/// The smallest share of a latency class that occurred, in percent.
const LEAST_CLASS: f64 = 0.01;

/// The JSON formats.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json {
    /// Add the bins of the latency histograms (`json+`).
    pub bins: bool,
}

impl Exporter for Json {
    fn write(&self, report: &Report, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        let mut json = Writer::new(out);
        json.open_root()?;
        self.head(&mut json, report.timestamp_ms, program)?;
        options(&mut json, "global options", &report.global_options)?;
        json.open_array("jobs")?;
        for job in &report.jobs {
            self.job(&mut json, report, job, None, program)?;
        }
        json.close_array()?;
        if !report.disks.is_empty() {
            json.open_array("disk_util")?;
            report.disks.iter().try_for_each(|disk| disk_util(&mut json, disk, None))?;
            json.close_array()?;
        }
        if let Some(idleness) = &report.idleness {
            cpu_idleness(&mut json, idleness)?;
        }
        if program.is_itself() {
            side_by_side(&mut json, report)?;
            over_time::write(&mut json, report)?;
        } else {
            over_time::write_asked(&mut json, report)?;
        }
        json.close_root()
    }

    fn write_cluster(&self, cluster: &Cluster, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        let mut json = Writer::new(out);
        let json = &mut json;
        json.open_root()?;
        self.head(json, cluster.timestamp_ms(), program)?;
        global_options(json, cluster)?;
        json.open_array("client_stats")?;
        for host in &cluster.hosts {
            let report = host.marked();
            report
                .jobs
                .iter()
                .try_for_each(|job| self.job(json, &report, job, Some(Place::of(host)), program))?;
        }
        if let Some(all) = cluster.all() {
            let (job, lost) = (&all.jobs[0], cluster.lost());
            let at = Place { address: &job.name, port: 0, lost: lost.as_deref() };
            self.job(json, &all, job, Some(at), program)?;
        }
        json.close_array()?;
        json.open_array("disk_util")?;
        for host in &cluster.hosts {
            let at = Some(Place::of(host));
            host.report.disks.iter().try_for_each(|disk| disk_util(json, disk, at))?;
        }
        json.close_array()?;
        // A machine that was lost before its first measurement appears only here.
        if program.is_itself() || cluster.lost().is_some() {
            hosts(json, cluster)?;
            over_time::write_of_cluster(json, cluster, program.is_itself())?;
        }
        json.close_root()
    }
}

/// The machine of an entry.
#[derive(Clone, Copy)]
struct Place<'a> {
    address: &'a str,
    port: u16,
    /// Why it was lost. This key is ours, and only lost machines have it.
    lost: Option<&'a str>,
}

impl Place<'_> {
    fn of(host: &HostReport) -> Place<'_> {
        Place { address: &host.address, port: host.port, lost: host.lost.as_deref() }
    }
}

fn place(json: &mut Writer, at: Option<Place<'_>>) -> io::Result<()> {
    let Some(Place { address, port, lost }) = at else { return Ok(()) };
    json.text("hostname", address)?;
    json.integer("port", port.into())?;
    lost.map_or(Ok(()), |why| json.text("lost", why))
}

/// For one machine as in a local report; for several, the options of each with its place, as with fio.
fn global_options(json: &mut Writer, cluster: &Cluster) -> io::Result<()> {
    let key = "global options";
    let write = |json: &mut Writer, host: &HostReport| {
        option_members(json, &host.report.global_options)?;
        json.close()
    };
    if let [host] = &cluster.hosts[..] {
        json.open(key)?;
        return write(json, host);
    }
    json.open_array(key)?;
    for host in cluster.hosts.iter().filter(|host| !host.report.global_options.is_empty()) {
        json.open_element()?;
        place(json, Some(Place::of(host)))?;
        write(json, host)?;
    }
    json.close_array()
}

/// The machines side by side, and how they began.
fn hosts(json: &mut Writer, cluster: &Cluster) -> io::Result<()> {
    let lines = cluster::lines(cluster);
    json.open_array("hosts")?;
    for line in &lines {
        json.open_element()?;
        json.text("name", &line.host.label)?;
        place(json, Some(Place::of(line.host)))?;
        json.integer("iops", line.iops)?;
        json.integer("bw_bytes", line.bandwidth)?;
        if let Some(p99) = line.p99 {
            json.integer("clat_p99_ns", p99)?;
        }
        if let Some(percent) = line.of_median {
            json.float("percent_from_median", percent)?;
        }
        json.integer("straggler", line.is_straggler.into())?;
        json.close()?;
    }
    json.close_array()?;
    let Some(start) = cluster.start else { return Ok(()) };
    json.open("start")?;
    json.integer("spread_ns", start.spread_ns)?;
    json.integer("uncertainty_ns", start.uncertainty_ns)?;
    json.close()
}

impl Json {
    fn head(self, json: &mut Writer, timestamp_ms: u64, program: &Program) -> io::Result<()> {
        json.text("fio version", &program.version)?;
        json.text("iolite version", &program.own_version)?;
        json.integer("timestamp", timestamp_ms / 1000)?;
        json.integer("timestamp_ms", timestamp_ms)?;
        json.text("time", &clock::local(timestamp_ms))
    }

    fn job(
        self,
        json: &mut Writer,
        report: &Report,
        job: &JobReport,
        at: Option<Place<'_>>,
        program: &Program,
    ) -> io::Result<()> {
        json.open_element()?;
        json.text("jobname", &job.name)?;
        json.integer("groupid", job.group.into())?;
        json.integer("job_start", job.start_ms)?;
        json.signed("error", job.error.as_ref().map_or(0, |error| error.value.errno.into()))?;
        json.integer("eta", job.eta_s.unwrap_or(NO_ETA))?;
        json.integer("elapsed", job.elapsed_s)?;
        options(json, "job options", &job.options)?;
        let (apart, mixed): (Vec<_>, Vec<_>) =
            rates::blocks(report, job).into_iter().partition(|block| block.direction.is_some());
        apart.iter().try_for_each(|block| self.block(json, job, block))?;
        if !apart.is_empty() {
            json.open("sync")?;
            json.integer("total_ios", job.sync.ios)?;
            let percentiles = job.display.clat_percentiles || job.display.lat_percentiles;
            self.latency(json, "lat_ns", &job.sync.lat, &job.display, percentiles)?;
            json.close()?;
        }
        mixed.iter().try_for_each(|block| self.block(json, job, block))?;
        usage(json, job, program.is_itself())?;
        distributions(json, job)?;
        if let Some(errors) = &job.continued_errors {
            json.integer("total_err", errors.count)?;
            json.signed("first_error", errors.first_errno().into())?;
        }
        latency_target(json, job)?;
        if job.lateness.moments.count > 0 {
            json.open("replay")?;
            self.latency(json, "issue_error_ns", &job.lateness, &job.display, true)?;
            json.close()?;
        }
        accelerator(json, job)?;
        if job.display.requests {
            json.open("requests")?;
            json.integer("repeated", job.requests.repeated)?;
            json.integer("throttled", job.requests.throttled)?;
            json.close()?;
        }
        far_ends(json, report, job)?;
        if let Some(description) = &job.description {
            json.text("desc", description)?;
        }
        if let Some(blocks) = &job.blocks {
            block_lives(json, blocks, &job.display.percentiles)?;
        }
        if let Some(state) = &job.steady_state {
            steady_state(json, state)?;
        }
        if let (None, Some(host)) = (at, &job.host) {
            json.text("hostname", host)?;
        }
        place(json, at)?;
        json.close()
    }

    fn block(self, json: &mut Writer, job: &JobReport, block: &Block<'_>) -> io::Result<()> {
        let display = &job.display;
        let measured = block.measured;
        let bandwidth = rates::bandwidth(measured);
        json.open(block.name())?;
        json.integer("io_bytes", measured.bytes)?;
        json.integer("io_kbytes", measured.bytes / 1024)?;
        json.integer("bw_bytes", bandwidth)?;
        json.integer("bw", bandwidth / 1024)?;
        json.float("iops", rates::iops_exact(measured))?;
        json.integer("runtime", measured.runtime_ms)?;
        json.integer("total_ios", measured.ios)?;
        json.integer("short_ios", measured.short)?;
        json.integer("drop_ios", measured.dropped)?;
        let unmeasured = Latency::default();
        let slat = if display.synchronous { &unmeasured } else { &measured.slat };
        self.latency(json, "slat_ns", slat, display, display.slat_percentiles)?;
        self.latency(json, "clat_ns", &measured.clat, display, display.clat_percentiles)?;
        self.latency(json, "lat_ns", &measured.lat, display, display.lat_percentiles)?;
        self.priorities(json, measured, display)?;
        if display.intended {
            self.latency(json, "lat_from_intended_start_ns", &measured.intended, display, true)?;
        }
        if display.requests {
            self.latency(json, "ttfb_ns", &measured.first_byte, display, display.clat_percentiles)?;
        }
        if measured.visible.moments.count > 0 {
            self.latency(json, "visible_ns", &measured.visible, display, true)?;
        }
        json.integer("bw_min", measured.bw.min)?;
        json.integer("bw_max", measured.bw.max)?;
        json.float("bw_agg", rates::share_of_group(block))?;
        json.float("bw_mean", measured.bw.mean())?;
        json.float("bw_dev", measured.bw.deviation())?;
        json.integer("bw_samples", measured.bw.count)?;
        json.integer("iops_min", measured.iops.min)?;
        json.integer("iops_max", measured.iops.max)?;
        json.float("iops_mean", measured.iops.mean())?;
        json.float("iops_stddev", measured.iops.deviation())?;
        json.integer("iops_samples", measured.iops.count)?;
        json.close()
    }

    fn priorities(self, json: &mut Writer, measured: &DirectionReport, display: &Display) -> io::Result<()> {
        let priorities = rates::told_apart(measured);
        if priorities.is_empty() {
            return Ok(());
        }
        let (key, percentiles) = match display.lat_percentiles {
            true => ("lat_ns", true),
            false => ("clat_ns", display.clat_percentiles),
        };
        json.open_array("prios")?;
        for one in priorities {
            let [class, level, hint] = rates::priority_parts(one.priority);
            json.open_element()?;
            json.integer("prioclass", class.into())?;
            json.integer("prio", level.into())?;
            json.integer("priohint", hint.into())?;
            self.latency(json, key, &one.latency, display, percentiles)?;
            json.close()?;
        }
        json.close_array()
    }

    fn latency(
        self,
        json: &mut Writer,
        key: &str,
        latency: &Latency,
        display: &Display,
        percentiles: bool,
    ) -> io::Result<()> {
        let moments = &latency.moments;
        json.open(key)?;
        self::moments(json, moments)?;
        if percentiles && moments.count > 0 && latency.histogram.total() > 0 {
            self.histogram(json, &latency.histogram, &display.percentiles)?;
        }
        json.close()
    }

    fn histogram(self, json: &mut Writer, histogram: &Histogram, percentiles: &[f64]) -> io::Result<()> {
        percentiles_of(json, "percentile", histogram, percentiles)?;
        if !self.bins {
            return Ok(());
        }
        json.open("bins")?;
        for (bucket, count) in histogram.occupied() {
            json.integer(&midpoint(bucket).to_string(), count)?;
        }
        json.close()
    }
}

fn moments(json: &mut Writer, moments: &Moments) -> io::Result<()> {
    json.integer("min", moments.minimum())?;
    json.integer("max", moments.max)?;
    json.float("mean", moments.mean())?;
    json.float("stddev", moments.deviation())?;
    json.integer("N", moments.count)
}

/// The options of a section. A section without options is left out.
fn options(json: &mut Writer, key: &str, options: &[(String, String)]) -> io::Result<()> {
    if options.is_empty() {
        return Ok(());
    }
    json.open(key)?;
    option_members(json, options)?;
    json.close()
}

/// Each option once: in the place where it was given first, with the value that was given last, which is the one that
/// counts. (A reader that keeps one of several keys makes the same of fio's report.)
fn option_members(json: &mut Writer, options: &[(String, String)]) -> io::Result<()> {
    let is_first = |&(index, (name, _)): &(usize, &(String, String))| {
        options[..index].iter().all(|(earlier, _)| earlier != name)
    };
    options.iter().enumerate().filter(is_first).try_for_each(|(index, (name, value))| {
        let last = options[index..].iter().rev().find(|(later, _)| later == name);
        json.text(name, last.map_or(value, |(_, value)| value))
    })
}

/// Percentiles of a histogram, each once. Keys have six decimals, as with fio, unless only more of them tell two
/// percentiles apart.
fn percentiles_of(
    json: &mut Writer,
    key: &str,
    histogram: &Histogram,
    percentiles: &[f64],
) -> io::Result<()> {
    let name_of = |percentile: &f64| format!("{percentile:.6}");
    json.open(key)?;
    for (index, (percentile, value)) in percentiles.iter().zip(histogram.percentiles(percentiles)).enumerate()
    {
        if percentiles[..index].contains(percentile) {
            continue;
        }
        let name = name_of(percentile);
        let is_shared = percentiles.iter().any(|other| other != percentile && name_of(other) == name);
        let is_exact = name.parse() == Ok(*percentile);
        json.integer(&if is_shared && !is_exact { percentile.to_string() } else { name }, value)?;
    }
    json.close()
}

/// What the accelerator did that the job reads for. This key is ours.
fn accelerator(json: &mut Writer, job: &JobReport) -> io::Result<()> {
    let Some(report) = &job.accelerator else { return Ok(()) };
    json.open("accelerator")?;
    json.integer("accelerators", report.count)?;
    json.integer("batches", report.batches)?;
    json.integer("samples", report.samples)?;
    json.float("samples_per_sec", report.samples_per_second())?;
    json.integer("elapsed_ns", report.elapsed_ns)?;
    json.integer("compute_ns", report.compute_ns)?;
    json.integer("wait_ns", report.wait_ns)?;
    if let Some(share) = report.utilisation() {
        json.float("utilization", 100.0 * share)?;
    }
    json.close()
}

fn usage(json: &mut Writer, job: &JobReport, is_itself: bool) -> io::Result<()> {
    if job.log_wait_ms > 0 {
        // This key is ours. Only a job that had to wait for its logs has it.
        json.integer("log_wait_ms", job.log_wait_ms)?;
    }
    let of_runtime = |milliseconds: u64| rates::percent(milliseconds as f64, job.job_runtime_ms as f64);
    json.integer("job_runtime", job.job_runtime_ms)?;
    if is_itself {
        json.integer("job_runtime_ns", job.job_runtime_ns)?;
    }
    json.float("usr_cpu", of_runtime(job.usage.user_ms))?;
    json.float("sys_cpu", of_runtime(job.usage.system_ms))?;
    json.integer("ctx", job.usage.context_switches)?;
    json.integer("majf", job.usage.major_faults)?;
    json.integer("minf", job.usage.minor_faults)
}

fn distributions(json: &mut Writer, job: &JobReport) -> io::Result<()> {
    const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
    const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
    const CLASSES: [&str; 12] =
        ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];

    let depths = &job.depths;
    let level = rates::shares(&depths.level, rates::issued(job), LEAST_DEPTH);
    let submit = rates::shares_of_all(&depths.submit, LEAST_DEPTH);
    let complete = rates::shares_of_all(&depths.complete, LEAST_DEPTH);
    let completed = rates::completed(job);
    let classes = &job.latency_classes;
    distribution(json, "iodepth_level", &DEPTHS, &level)?;
    distribution(json, "iodepth_submit", &BATCHES, &submit)?;
    distribution(json, "iodepth_complete", &BATCHES, &complete)?;
    distribution(json, "latency_ns", &CLASSES, &rates::shares(&classes.ns, completed, LEAST_CLASS))?;
    distribution(json, "latency_us", &CLASSES, &rates::shares(&classes.us, completed, LEAST_CLASS))?;
    distribution(json, "latency_ms", &CLASSES, &rates::shares(&classes.ms, completed, LEAST_CLASS))
}

fn distribution(json: &mut Writer, key: &str, labels: &[&str], shares: &[f64]) -> io::Result<()> {
    json.open(key)?;
    labels.iter().zip(shares).try_for_each(|(label, &share)| json.float(label, share))?;
    json.close()
}

fn latency_target(json: &mut Writer, job: &JobReport) -> io::Result<()> {
    if job.depth == 0 {
        // The search never began, so there is no depth.
        return Ok(());
    }
    json.integer("latency_depth", job.depth.into())?;
    // The same value has two names; the older one has no unit.
    json.integer("latency_target", job.latency_target_ns)?;
    json.integer("latency_target_ns", job.latency_target_ns)?;
    json.float("latency_percentile", job.latency_percentile)?;
    json.integer("latency_window", job.latency_window_ns / 1000)?;
    json.integer("latency_window_us", job.latency_window_ns / 1000)
}

/// Jobs of different engines side by side. The key is ours.
fn side_by_side(json: &mut Writer, report: &Report) -> io::Result<()> {
    let rows = comparison::rows(report);
    if rows.is_empty() {
        return Ok(());
    }
    json.open_array("comparison")?;
    for row in rows {
        json.open_element()?;
        json.text("jobname", &row.job.name)?;
        json.text("engine", &row.job.engine)?;
        json.text("direction", row.direction.name())?;
        json.integer("iops", row.iops())?;
        json.integer("bw_bytes", row.bandwidth())?;
        if let Some((mean, limit)) = row.latency() {
            json.integer("clat_mean_ns", mean)?;
            json.integer("clat_p99_ns", limit)?;
        }
        json.float("cpu_us_per_mib", row.cpu_us_per_mib.unwrap_or(0.0))?;
        json.close()?;
    }
    json.close_array()
}

/// The results of the jobs at the other ends of its connections. This key is ours.
fn far_ends(json: &mut Writer, report: &Report, job: &JobReport) -> io::Result<()> {
    let ends = far_end::of(report, job);
    if ends.is_empty() {
        return Ok(());
    }
    json.open_array("far_end")?;
    for end in ends {
        json.open_element()?;
        json.text("jobname", &end.job.name)?;
        for (direction, moved) in end.moved() {
            json.open(direction.name())?;
            json.integer("io_bytes", moved.bytes)?;
            json.integer("total_ios", moved.ios)?;
            json.integer("bw_bytes", rates::bandwidth(moved))?;
            json.float("iops", rates::iops_exact(moved))?;
            json.integer("runtime", moved.runtime_ms)?;
            json.close()?;
        }
        if let Some(lost) = end.lost {
            json.integer("lost_bytes", lost)?;
        }
        json.close()?;
    }
    json.close_array()
}

fn block_lives(json: &mut Writer, blocks: &BlockReport, percentiles: &[f64]) -> io::Result<()> {
    json.open("block")?;
    if blocks.lifetimes.total() > 0 {
        percentiles_of(json, "percentiles", &blocks.lifetimes, percentiles)?;
    }
    json.open("states")?;
    BlockState::ALL
        .iter()
        .zip(blocks.states)
        .try_for_each(|(state, count)| json.integer(state.name(), count))?;
    json.close()?;
    json.close()
}

fn cpu_idleness(json: &mut Writer, idleness: &IdleReport) -> io::Result<()> {
    json.open("cpu_idleness")?;
    json.float("system", idleness.system())?;
    if idleness.per_cpu {
        for cpu in &idleness.cpus {
            json.float(&format!("cpu-{}", cpu.cpu), cpu.percent)?;
        }
    }
    json.float("unit_mean", idleness.unit_mean())?;
    json.float("unit_stddev", idleness.unit_deviation())?;
    json.close()
}

fn steady_state(json: &mut Writer, state: &SteadyReport) -> io::Result<()> {
    let percent = if state.percent { "%" } else { "" };
    let name = state.quantity.name();
    let slope = if state.slope { "_slope" } else { "" };
    json.open("steadystate")?;
    json.text("ss", &format!("{name}{slope}:{:.6}{percent}", state.limit))?;
    json.integer("duration", state.duration_s)?;
    json.integer("attained", state.attained.into())?;
    json.text("criterion", &format!("{:.6}{percent}", state.criterion()))?;
    json.float("max_deviation", if state.slope { 0.0 } else { state.deviation() })?;
    json.float("slope", if state.slope { state.rise() } else { 0.0 })?;
    json.open("data")?;
    let latency = (state.quantity == Quantity::Latency).then_some(("lat_mean", "lat_ns", Quantity::Latency));
    let (bw, iops) = (("bw_mean", "bw", Quantity::Bandwidth), ("iops_mean", "iops", Quantity::Iops));
    for (name, _, quantity) in [bw, iops].into_iter().chain(latency) {
        json.integer(name, state.mean(quantity) as u64)?;
    }
    // Always a full window, as with fio: zeros stand for missing measurements.
    for (_, name, quantity) in [iops, bw].into_iter().chain(latency) {
        let measured = state.window.iter().map(|measured| measured.of(quantity));
        json.integers(name, measured.chain(std::iter::repeat(0)).take(state.size))?;
    }
    json.close()?;
    json.close()
}

/// A disk, followed by its component disks.
fn disk_util(json: &mut Writer, disk: &DiskReport, at: Option<Place<'_>>) -> io::Result<()> {
    let counters = &disk.counters;
    json.open_element()?;
    json.text("name", &disk.name)?;
    json.integer("read_ios", counters.read_ios)?;
    json.integer("write_ios", counters.write_ios)?;
    json.integer("read_sectors", counters.read_sectors)?;
    json.integer("write_sectors", counters.write_sectors)?;
    json.integer("read_merges", counters.read_merges)?;
    json.integer("write_merges", counters.write_merges)?;
    json.integer("read_ticks", counters.read_ticks)?;
    json.integer("write_ticks", counters.write_ticks)?;
    json.integer("in_queue", counters.in_queue)?;
    json.float("util", disk.utilisation)?;
    if let Some((average, utilisation)) = rates::slave_averages(disk) {
        json.integer("aggr_read_ios", average.read_ios)?;
        json.integer("aggr_write_ios", average.write_ios)?;
        json.integer("aggr_read_sectors", average.read_sectors)?;
        json.integer("aggr_write_sectors", average.write_sectors)?;
        json.integer("aggr_read_merges", average.read_merges)?;
        // Singular, as in fio.
        json.integer("aggr_write_merge", average.write_merges)?;
        json.integer("aggr_read_ticks", average.read_ticks)?;
        json.integer("aggr_write_ticks", average.write_ticks)?;
        json.integer("aggr_in_queue", average.in_queue)?;
        json.float("aggr_util", utilisation)?;
    }
    place(json, at)?;
    json.close()?;
    disk.slaves.iter().try_for_each(|slave| disk_util(json, slave, at))
}

#[cfg(test)]
mod tests;
