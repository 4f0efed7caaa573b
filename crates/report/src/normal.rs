//! The report for people.
//!
//! It has a block per job, then the run status groups, then the disks. Widths and blanks follow the samples of fio
//! 3.42, which users and their scripts know. Lines without measurements are left out.

use crate::latency::Scale;
use crate::rates::Block;
use crate::units::{self, Units};
use crate::{Exporter, Program, clock, cluster, comparison, far_end, idleness, percentiles, rates};
use iolite_stats::{
    BlockReport, BlockState, Cluster, DirectionReport, DiskCounters, DiskReport, First, GroupDirection,
    GroupReport, JobReport, Latency, Quantity, Report, SLOWEST_PART, Samples, SteadyReport, Unified,
};
use iolite_types::{Direction, describe_errno, describe_job_error};
use std::io::{self, Write};

/// The smallest share of a depth that is shown, in percent.
const LEAST_DEPTH: f64 = 0.1;
/// The smallest share of a latency class that is shown, in percent.
const LEAST_CLASS: f64 = 0.01;
/// The number of latency classes on one line.
const CLASSES_PER_LINE: usize = 5;

const DEPTH_LABELS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
const BATCH_LABELS: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
const CLASS_LABELS: [&str; 12] =
    ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];

/// The normal format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Normal;

impl Exporter for Normal {
    fn write(&self, report: &Report, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        for job in report.jobs.iter().filter(|job| has_something_to_tell(job)) {
            write_job(report, job, program, out)?;
        }
        for group in &report.groups {
            write_group(group, out)?;
        }
        if program.is_itself() {
            write_comparison(report, out)?;
        }
        write_disks(&report.disks, out)?;
        report.idleness.as_ref().map_or(Ok(()), |idleness| idleness::write(idleness, out))
    }

    /// As with fio, the first line of each machine begins with its name, and the block of all machines follows the last
    /// one.
    fn write_cluster(&self, cluster: &Cluster, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        for host in &cluster.hosts {
            write!(out, "<{}> ", host.label)?;
            if let Some(why) = &host.lost {
                let kept = match host.report.jobs.is_empty() {
                    true => "it had reported nothing",
                    false => "its last report:",
                };
                write!(out, "lost: {why}; {kept}")?;
            }
            self.write(&host.marked(), program, out)?;
        }
        if let Some(all) = cluster.all() {
            match &all.jobs[0] {
                nothing if nothing.members == 0 => write_heading(&all, nothing, program, out)?,
                job => write_job(&all, job, program, out)?,
            }
        }
        if program.is_itself() { write_hosts(cluster, out) } else { Ok(()) }
    }
}

/// Whether a job has a block. A job without I/O has no block, unless it has an error.
fn has_something_to_tell(job: &JobReport) -> bool {
    job.error.is_some() || job.directions.iter().any(|(_, measured)| measured.issued > 0 || measured.ios > 0)
}

/// Jobs of different engines side by side.
fn write_comparison(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let rows = comparison::rows(report);
    if rows.is_empty() {
        return Ok(());
    }
    let titles = ["job", "engine", "rw", "IOPS", "BW", "clat avg", "clat 99%", "CPU/MiB"].map(str::to_owned);
    let mut lines = vec![titles];
    for row in &rows {
        let units = job_units(row.job);
        let (mean, limit) = row.latency().map_or(("-".to_owned(), "-".to_owned()), |(mean, limit)| {
            (units::duration(mean), units::duration(limit))
        });
        lines.push([
            row.job.name.clone(),
            row.job.engine.clone(),
            row.direction.name().to_owned(),
            units::count(row.iops(), units.figures),
            units.rate(row.bandwidth()),
            mean,
            limit,
            row.cpu_us_per_mib.map_or("-".to_owned(), |microseconds| format!("{microseconds:.0}us")),
        ]);
    }
    writeln!(out, "\nSide by side:")?;
    write_table(&lines, 3, out)
}

/// Writes lines of cells in columns. The first `words` columns contain words.
fn write_table<const N: usize>(lines: &[[String; N]], words: usize, out: &mut dyn Write) -> io::Result<()> {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    for line in lines {
        let cells = line.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if column < words { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        writeln!(out, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// The machines side by side, with the slowest one, and the spread of their starts.
///
/// # Errors
/// The error of writing to `out`.
pub fn write_hosts(cluster: &Cluster, out: &mut dyn Write) -> io::Result<()> {
    let lines = cluster::lines(cluster);
    let titles = ["host", "IOPS", "BW", "clat 99%", "of median"].map(str::to_owned);
    let mut cells = vec![titles];
    for line in &lines {
        let place = match line.of_median {
            _ if line.host.lost.is_some() => "lost".to_owned(),
            Some(percent) => format!("{percent:+.0}%"),
            None => "-".to_owned(),
        };
        cells.push([
            line.host.label.clone(),
            units::count(line.iops, line.units.figures),
            line.units.rate(line.bandwidth),
            line.p99.map_or("-".to_owned(), units::duration),
            place,
        ]);
    }
    writeln!(out, "\nHosts:")?;
    write_table(&cells, 1, out)?;
    if let Some(line) = cluster::straggler(&lines) {
        writeln!(out, "  {} is behind the others", line.host.label)?;
    }
    for host in &cluster.hosts {
        if let Some(why) = &host.lost {
            writeln!(out, "  {} was lost: {why}", host.label)?;
        }
    }
    match cluster.start {
        Some(start) => writeln!(
            out,
            "  started within {} of each other (clocks compared to {})",
            units::duration(start.spread_ns),
            units::duration(start.uncertainty_ns)
        ),
        None => Ok(()),
    }
}

fn write_job(report: &Report, job: &JobReport, program: &Program, out: &mut dyn Write) -> io::Result<()> {
    write_heading(report, job, program, out)?;
    for block in rates::blocks(report, job) {
        if block.measured.runtime_ms > 0 {
            write_block(job, &block, out)?;
        }
    }
    write_latency_classes(job, out)?;
    write_sync(job, out)?;
    write_usage(job, out)?;
    write_depths(job, out)?;
    write_issued(job, program, out)?;
    write_lateness(job, out)?;
    write_accelerator(job, out)?;
    write_stages(report, job, out)?;
    if program.is_itself() {
        write_far_ends(report, job, out)?;
    }
    if job.depth > 0 {
        writeln!(
            out,
            "     latency   : target={}, window={}, percentile={:.2}%, depth={}",
            units::duration(job.latency_target_ns),
            units::duration(job.latency_window_ns),
            job.latency_percentile,
            job.depth
        )?;
    }
    if let Some(blocks) = &job.blocks {
        write_blocks(blocks, &job.display.percentiles, out)?;
    }
    job.steady_state.as_ref().map_or(Ok(()), |state| write_steady_state(state, job_units(job), out))
}

/// Where the time went, per direction.
fn write_stages(report: &Report, job: &JobReport, out: &mut dyn Write) -> io::Result<()> {
    const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];
    for block in rates::blocks(report, job) {
        let Some(times) = &block.measured.stages else { continue };
        let shares = times.shares_of_slowest(SLOWEST_PART).unwrap_or_default();
        let cells = |name: &str, span: &str, latency: &Latency, share: String| {
            let [p50, p99, p999] = latency.histogram.percentiles(&PERCENTILES)[..] else {
                unreachable!("one value for each percentile")
            };
            let mean = latency.moments.mean().round() as u64;
            let [mean, p50, p99, p999] = [mean, p50, p99, p999].map(units::duration);
            [name.to_owned(), span.to_owned(), mean, p50, p99, p999, share]
        };
        let mut lines = vec![["", "", "mean", "p50", "p99", "p99.9", "of slowest 0.1%"].map(str::to_owned)];
        for (number, stage) in times.stages.iter().enumerate() {
            let share = shares.get(number).map_or("-".to_owned(), |share| format!("{:.1}%", 100.0 * share));
            lines.push(cells(stage.stage.name(), times.span(stage.stage), &stage.latency, share));
        }
        lines.push(cells(if times.from_start { "lat" } else { "clat" }, "", &times.whole, String::new()));
        writeln!(out, "  stages, {}: where the time went", block.name())?;
        if times.whole.moments.count > 0 {
            write_table(&lines, 2, out)?;
        }
        let reasons = times.unmatched.iter().filter(|(_, count)| **count > 0);
        let reasons: Vec<String> = reasons.map(|(why, count)| format!("{count} {}", why.words())).collect();
        let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        let mut counts = vec![format!("unmatched {} of {}{reasons}", times.all_unmatched(), times.seen())];
        counts.push(format!("lost records {}", times.lost_records));
        let kinds = [
            ("no device", times.without_device),
            ("several requests", times.split),
            ("shared requests", times.merged),
            ("of other engines, left out", times.left_out),
        ];
        counts.extend(
            kinds.iter().filter(|(_, count)| *count > 0).map(|(kind, count)| format!("{kind} {count}")),
        );
        writeln!(out, "  {}", counts.join(", "))?;
        if let Some((stage, share)) = times.tail() {
            let owner = stage.owner();
            writeln!(out, "  The tail is {owner}: {:.0}% of the time of the slowest 0.1%.", 100.0 * share)?;
        }
    }
    Ok(())
}

fn write_blocks(blocks: &BlockReport, percentiles: &[f64], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  block lifetime percentiles :")?;
    if blocks.lifetimes.total() > 0 {
        for (percentile, trims) in percentiles.iter().zip(blocks.lifetimes.percentiles(percentiles)) {
            writeln!(out, "   | {:>22}th : {trims}", format!("{percentile:.6}"))?;
        }
    }
    let states = BlockState::ALL.iter().zip(blocks.states);
    let states: Vec<String> = states.map(|(state, count)| format!("{}={count}", state.name())).collect();
    writeln!(out, "   |        states               : {}", states.join(", "))
}

fn write_steady_state(state: &SteadyReport, units: Units, out: &mut dyn Write) -> io::Result<()> {
    let bandwidth = state.mean(Quantity::Bandwidth) as u64;
    let (rate, rate_other) = (units.rate(bandwidth), units.rate_other(bandwidth));
    write!(
        out,
        "  steadystate  : attained={}, bw={rate} ({rate_other}), iops={}, ",
        if state.attained { "yes" } else { "no" },
        units::count(state.mean(Quantity::Iops) as u64, units.figures),
    )?;
    if state.quantity == Quantity::Latency {
        write!(out, "lat={}, ", units::duration(state.mean(Quantity::Latency) as u64))?;
    }
    writeln!(
        out,
        "{} {}={:.3}{}",
        state.quantity.name(),
        if state.slope { "slope" } else { "mean dev" },
        state.criterion(),
        if state.percent { "%" } else { "" }
    )
}

fn write_heading(report: &Report, job: &JobReport, program: &Program, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{}: (groupid={}, jobs={}): ", job.name, job.group, job.members)?;
    match &job.error {
        None => write!(out, "err= 0")?,
        Some(First { value: error, .. }) => {
            let reason = error.words(job.blocks_checked, !program.is_itself());
            write!(out, "err={:2} ({}, error={reason})", error.errno, error.what)?;
        }
    }
    writeln!(out, ": pid={}: {}", job.pid, clock::local(report.timestamp_ms))?;
    match &job.description {
        Some(description) => writeln!(out, "  Description  : [{description}]"),
        None => Ok(()),
    }
}

/// The number of zone resets, on the line of the operation that resets them.
fn zone_resets(job: &JobReport, block: &Block<'_>) -> Option<String> {
    let resets = job.zone_resets?;
    let changes = matches!(block.direction, Some(Direction::Write | Direction::Trim));
    changes.then(|| format!("; {resets} zone resets"))
}

fn write_block(job: &JobReport, block: &Block<'_>, out: &mut dyn Write) -> io::Result<()> {
    let display = &job.display;
    let measured = block.measured;
    let units = job_units(job);
    let bandwidth = rates::bandwidth(measured);
    let (rate, rate_other) = if block.direction.is_none() && display.unified == Unified::Both {
        // As in fio, this additional block shows its rates without `B/s`, and scripts recognise it by that.
        let units = Units { unit_base: 0, ..units };
        let bare = |rate: String| rate.trim_end_matches("B/s").to_owned();
        (bare(units.rate(bandwidth)), bare(units.rate_other(bandwidth)))
    } else {
        (units.rate(bandwidth), units.rate_other(bandwidth))
    };
    writeln!(
        out,
        "  {}: IOPS={}, BW={rate} ({rate_other})({}/{}msec){}",
        block.name(),
        units::count(rates::iops(measured), display.significant_figures),
        units.bytes(measured.bytes),
        measured.runtime_ms,
        zone_resets(job, block).unwrap_or_default()
    )?;

    let latencies = [
        ("slat", &measured.slat, !display.synchronous, display.slat_percentiles),
        ("clat", &measured.clat, true, display.clat_percentiles),
        ("lat", &measured.lat, true, display.lat_percentiles),
        ("ilat", &measured.intended, true, true),
        ("ttfb", &measured.first_byte, display.requests, display.clat_percentiles),
        ("visible", &measured.visible, true, true),
    ];
    let shown = latencies.iter().filter(|(_, latency, shown, _)| *shown && latency.moments.count > 0);
    for (kind, latency, ..) in shown.clone() {
        write_latency(kind, latency, out)?;
    }
    let priorities = rates::told_apart(measured);
    let (kind, with_percentiles) = match display.lat_percentiles {
        true => ("lat", true),
        false => ("clat", display.clat_percentiles),
    };
    for one in priorities {
        write_latency(&format!("{kind} prio {}", rates::priority_name(one.priority)), &one.latency, out)?;
    }
    for (kind, latency, ..) in shown.filter(|(.., percentiles)| *percentiles) {
        percentiles::write(kind, &latency.histogram, &display.percentiles, out)?;
    }
    for one in priorities.iter().filter(|_| with_percentiles) {
        let share = rates::percent(one.latency.moments.count as f64, measured.ios as f64);
        let kind = format!("{kind} prio {} ({share:.2}% of IOs)", rates::priority_name(one.priority));
        percentiles::write(&kind, &one.latency.histogram, &display.percentiles, out)?;
    }

    if measured.bw.count > 0 {
        write_bandwidth_samples(&measured.bw, display.kb_base, rates::share_of_group(block), out)?;
    }
    let iops = &measured.iops;
    if iops.count > 0 {
        writeln!(
            out,
            "   iops        : min={:5}, max={:5}, avg={:5.2}, stdev={:5.2}, samples={}",
            iops.min,
            iops.max,
            iops.mean(),
            iops.deviation(),
            iops.count
        )?;
    }
    Ok(())
}

fn write_latency(kind: &str, latency: &Latency, out: &mut dyn Write) -> io::Result<()> {
    let moments = &latency.moments;
    let scale = Scale::of(moments.minimum(), moments.max, moments.deviation());
    let divisor = scale.divisor as f64;
    writeln!(
        out,
        "    {kind:>4} ({}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        scale.name,
        units::extreme(moments.minimum() / scale.divisor),
        units::extreme(moments.max / scale.divisor),
        moments.mean() / divisor,
        moments.deviation() / divisor
    )
}

/// Bandwidth is sampled in KiB/s. If the mean is at least 1 Mi of these, it is shown in MiB/s. (With `kb_base=1000` fio
/// still calls the larger unit `MiB`, and so do we.)
fn write_bandwidth_samples(
    samples: &Samples,
    kb_base: u32,
    share: f64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (base, small) = if kb_base == 1000 { (1000u32, "kB") } else { (1024, "KiB") };
    let (divisor, unit) = if samples.mean() >= f64::from(base * base) { (base, "MiB") } else { (1, small) };
    let scale = f64::from(divisor);
    writeln!(
        out,
        "   bw ({unit:>5}/s): min={:5}, max={:5}, per={share:3.2}%, avg={:5.2}, stdev={:5.2}, samples={}",
        samples.min / u64::from(divisor),
        samples.max / u64::from(divisor),
        samples.mean() / scale,
        samples.deviation() / scale,
        samples.count
    )
}

fn write_latency_classes(job: &JobReport, out: &mut dyn Write) -> io::Result<()> {
    let total = rates::completed(job);
    let classes = &job.latency_classes;
    write_classes("nsec", &rates::shares(&classes.ns, total, LEAST_CLASS), out)?;
    write_classes("usec", &rates::shares(&classes.us, total, LEAST_CLASS), out)?;
    write_classes("msec", &rates::shares(&classes.ms, total, LEAST_CLASS), out)
}

fn write_classes(unit: &str, shares: &[f64], out: &mut dyn Write) -> io::Result<()> {
    let occupied: Vec<String> = CLASS_LABELS
        .iter()
        .zip(shares)
        .filter(|&(_, &share)| share > 0.0)
        .map(|(label, share)| format!("{label}={share:.2}%"))
        .collect();
    for line in occupied.chunks(CLASSES_PER_LINE) {
        writeln!(out, "  lat ({unit})   : {}", line.join(", "))?;
    }
    Ok(())
}

fn write_sync(job: &JobReport, out: &mut dyn Write) -> io::Result<()> {
    if job.sync.lat.moments.count == 0 {
        return Ok(());
    }
    writeln!(out, "  fsync/fdatasync/sync_file_range/syncfs:")?;
    write_latency("sync", &job.sync.lat, out)?;
    percentiles::write("sync", &job.sync.lat.histogram, &job.display.percentiles, out)
}

fn write_usage(job: &JobReport, out: &mut dyn Write) -> io::Result<()> {
    let usage = &job.usage;
    let of_runtime = |milliseconds: u64| rates::percent(milliseconds as f64, job.job_runtime_ms as f64);
    writeln!(
        out,
        "  cpu          : usr={:3.2}%, sys={:3.2}%, ctx={}, majf={}, minf={}",
        of_runtime(usage.user_ms),
        of_runtime(usage.system_ms),
        usage.context_switches,
        usage.major_faults,
        usage.minor_faults
    )
}

fn write_depths(job: &JobReport, out: &mut dyn Write) -> io::Result<()> {
    let depths = &job.depths;
    let lines = [
        ("  IO depths    ", DEPTH_LABELS, rates::shares(&depths.level, rates::issued(job), LEAST_DEPTH)),
        ("     submit    ", BATCH_LABELS, rates::shares_of_all(&depths.submit, LEAST_DEPTH)),
        ("     complete  ", BATCH_LABELS, rates::shares_of_all(&depths.complete, LEAST_DEPTH)),
    ];
    for (title, labels, shares) in lines {
        let entries: Vec<String> =
            labels.iter().zip(shares).map(|(label, share)| format!("{label}={share:3.1}%")).collect();
        writeln!(out, "{title}: {}", entries.join(", "))?;
    }
    Ok(())
}

fn write_issued(job: &JobReport, program: &Program, out: &mut dyn Write) -> io::Result<()> {
    let nothing = DirectionReport::default();
    let [read, write, trim] = match &job.mixed {
        // With unified reporting, the first place has the counts of all directions.
        Some(mixed) if job.display.unified == Unified::Mixed => [mixed, &nothing, &nothing],
        _ => job.directions.values.each_ref(),
    };
    writeln!(
        out,
        "     issued rwts: total={},{},{},{} short={},{},{},0 dropped={},{},{},0",
        read.issued,
        write.issued,
        trim.issued,
        job.sync.ios,
        read.short,
        write.short,
        trim.short,
        read.dropped,
        write.dropped,
        trim.dropped
    )?;
    if let Some(errors) = &job.continued_errors {
        let (count, first) = (errors.count, errors.first_errno());
        let words = if program.is_itself() { describe_job_error(first) } else { describe_errno(first) };
        writeln!(out, "     errors    : total={count}, first_error={first}/<{words}>")?;
    }
    Ok(())
}

/// What the accelerator did that the job reads for.
fn write_accelerator(job: &JobReport, out: &mut dyn Write) -> io::Result<()> {
    let Some(report) = &job.accelerator else { return Ok(()) };
    let utilisation = match report.utilisation() {
        Some(share) => format!("{:.2}%, waited {}", 100.0 * share, units::duration(report.wait_ns)),
        None => "unknown (fewer than two batches)".to_owned(),
    };
    writeln!(
        out,
        "     accelerator: utilization={utilisation}, batches={}, samples={}, samples/s={:.2}",
        report.batches,
        report.samples,
        report.samples_per_second()
    )
}

/// How punctually a replay issued its I/Os.
fn write_lateness(job: &JobReport, out: &mut dyn Write) -> io::Result<()> {
    let moments = &job.lateness.moments;
    if moments.count == 0 {
        return Ok(());
    }
    let us = |ns: u64| ns as f64 / 1000.0;
    let percentiles = within_measured(&job.lateness, &[50.0, 99.0]);
    writeln!(
        out,
        "     replay    : issue error (usec): median={:.1}, 99%={:.1}, max={:.1}, mean={:.1}",
        us(percentiles[0]),
        us(percentiles[1]),
        us(moments.max),
        moments.mean() / 1000.0
    )
}

/// The results of the jobs at the other ends of its connections.
fn write_far_ends(report: &Report, job: &JobReport, out: &mut dyn Write) -> io::Result<()> {
    let units = job_units(job);
    for end in far_end::of(report, job) {
        for (direction, moved) in end.moved() {
            let bandwidth = rates::bandwidth(moved);
            write!(
                out,
                "     far end   : {}: {}: IOPS={}, BW={} ({})({}/{}msec)",
                end.job.name,
                direction.name(),
                units::count(rates::iops(moved), units.figures),
                units.rate(bandwidth),
                units.rate_other(bandwidth),
                units.bytes(moved.bytes),
                moved.runtime_ms
            )?;
            match end.lost {
                Some(lost @ 1..) => writeln!(out, ", {} not received", units.bytes(lost))?,
                _ => writeln!(out)?,
            }
        }
    }
    Ok(())
}

/// Percentiles for a line that only Iolite has. A percentile is the midpoint of a bucket, which may be outside of the
/// measured range; that would contradict the maximum, so it is clamped.
fn within_measured(latency: &Latency, percentiles: &[f64]) -> Vec<u64> {
    let Latency { moments, histogram } = latency;
    let values = histogram.percentiles(percentiles).into_iter();
    values.map(|value| value.clamp(moments.minimum(), moments.max)).collect()
}

fn write_group(group: &GroupReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nRun status group {} (all jobs):", group.id)?;
    let units =
        Units { kb_base: group.kb_base, unit_base: group.unit_base, figures: group.significant_figures };
    for (direction, moved) in group.directions.iter() {
        if moved.max_runtime_ms > 0 {
            write_group_direction(direction.name(), moved, units, out)?;
        }
    }
    if group.mixed.max_runtime_ms > 0 {
        write_group_direction("mixed", &group.mixed, units, out)?;
    }
    Ok(())
}

fn write_group_direction(
    name: &str,
    moved: &GroupDirection,
    units: Units,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "{:>7}: bw={} ({}), {}-{} ({}-{}), io={} ({}), run={}-{}msec",
        name.to_uppercase(),
        units.rate(moved.bandwidth),
        units.rate_other(moved.bandwidth),
        units.rate(moved.min_bandwidth),
        units.rate(moved.max_bandwidth),
        units.rate_other(moved.min_bandwidth),
        units.rate_other(moved.max_bandwidth),
        units.bytes(moved.bytes),
        units.bytes_other(moved.bytes),
        moved.min_runtime_ms,
        moved.max_runtime_ms
    )
}

fn write_disks(disks: &[DiskReport], out: &mut dyn Write) -> io::Result<()> {
    if disks.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nDisk stats (read/write):")?;
    disks.iter().try_for_each(|disk| write_disk(disk, out))
}

/// A disk, followed by its component disks. A disk with components is indented by two more columns, and its line ends
/// with the averages of the components.
fn write_disk(disk: &DiskReport, out: &mut dyn Write) -> io::Result<()> {
    let indent = if disk.slaves.is_empty() { "  " } else { "    " };
    write!(out, "{indent}{}: ", disk.name)?;
    write_counters(&disk.counters, "", "", disk.utilisation, out)?;
    if let Some((average, utilisation)) = rates::slave_averages(disk) {
        write!(out, ", ")?;
        write_counters(&average, "aggr", "agg", utilisation, out)?;
    }
    writeln!(out)?;
    disk.slaves.iter().try_for_each(|slave| write_disk(slave, out))
}

/// Writes the counters of a disk. `sectors` has its own prefix because fio's has one letter less than the others.
fn write_counters(
    counters: &DiskCounters,
    prefix: &str,
    sectors_prefix: &str,
    utilisation: f64,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(
        out,
        "{prefix}ios={}/{}, {sectors_prefix}sectors={}/{}, {prefix}merge={}/{}, {prefix}ticks={}/{}, \
         {prefix}in_queue={}, {prefix}util={utilisation:3.2}%",
        counters.read_ios,
        counters.write_ios,
        counters.read_sectors,
        counters.write_sectors,
        counters.read_merges,
        counters.write_merges,
        counters.read_ticks,
        counters.write_ticks,
        counters.in_queue
    )
}

fn job_units(job: &JobReport) -> Units {
    Units {
        kb_base: job.display.kb_base,
        unit_base: job.display.unit_base,
        figures: job.display.significant_figures,
    }
}

#[cfg(test)]
mod tests;
