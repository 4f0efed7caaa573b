//! What is where on the screen: the run, a table of jobs or machines, disks, messages, keys.

use crate::Look;
use crate::figures::{DiskRow, Figures, Row};
use iolite_report::live::bar::{latency, phase, time_left};
use iolite_summary::{one_line, sparkline};
use iolite_types::is_bidi_control;
use iolite_types::units::{self, Units};
use iolite_web::WAITS;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Style};

/// Significant figures of rates.
const FIGURES: u32 = 4;
/// The most disks that are shown.
const MOST_DISKS: usize = 4;
/// The most messages that are shown.
const MOST_MESSAGES: usize = 8;
/// The columns of the progress bar at most.
const BAR: usize = 30;

/// How rows are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As in the job file.
    #[default]
    Job,
    /// The highest IOPS first.
    Iops,
    /// The highest bandwidth first.
    Bandwidth,
    /// The highest p99 first.
    Latency,
}

impl Order {
    /// The next one.
    pub fn next(self) -> Order {
        match self {
            Order::Job => Order::Iops,
            Order::Iops => Order::Bandwidth,
            Order::Bandwidth => Order::Latency,
            Order::Latency => Order::Job,
        }
    }

    fn name(self, of_hosts: bool) -> &'static str {
        match self {
            Order::Job if of_hosts => "machine",
            Order::Job => "job",
            Order::Iops => "IOPS",
            Order::Bandwidth => "bandwidth",
            Order::Latency => "p99",
        }
    }

    fn sort(self, rows: &mut [Row]) {
        let key = |row: &Row| match self {
            Order::Job => 0,
            Order::Iops => row.iops,
            Order::Bandwidth => row.bandwidth,
            Order::Latency => row.latencies.map_or(0, |[_, p99]| p99),
        };
        rows.sort_by_key(|row| std::cmp::Reverse(key(row)));
    }
}

/// The choices of the reader.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// The order of the rows.
    pub order: Order,
    /// How many rows were scrolled away.
    pub above: usize,
    /// How many rows the table had room for.
    pub page: usize,
}

/// Draws a run. `view.above` becomes one that exists.
pub fn draw(figures: &Figures, view: &mut View, look: Look, to: &mut Buffer) {
    let (width, height) = (usize::from(to.area.width), usize::from(to.area.height));
    let mut paper = Paper { to, look, line: 0 };
    let (mut total, mut rows) = figures.rows();
    view.order.sort(&mut rows);
    let disks = figures.disks();
    // Above and below the table: title, state, blank, heads; keys.
    let room = height.saturating_sub(5);
    let shown_disks = disks.len().min(MOST_DISKS).min(room / 4);
    let shown_messages = figures.messages.len().min(MOST_MESSAGES).min(room / 3);
    let with_blank = |lines: usize| lines + usize::from(lines > 0);
    let for_rows = room - with_blank(shown_disks) - with_blank(shown_messages);
    total.truncate(for_rows.saturating_sub(1));
    view.page = for_rows - total.len();
    view.above = view.above.min(rows.len().saturating_sub(view.page));
    let shown = &rows[view.above..rows.len().min(view.above + view.page)];

    title(figures, &mut paper);
    state(figures, width, &mut paper);
    paper.skip();
    table(figures, &total, shown, width, &mut paper);
    if shown_disks > 0 {
        paper.skip();
        disks.iter().take(shown_disks).for_each(|disk| paper.line(&[(&disk_line(disk), Kind::Plain)]));
    }
    if shown_messages > 0 {
        paper.skip();
        for message in figures.messages.iter().skip(figures.messages.len() - shown_messages) {
            let job = message.job.as_ref().map(|job| format!("{job}: ")).unwrap_or_default();
            let text = format!("{} {job}{}", if message.grave { '!' } else { '-' }, message.text);
            let kind = if message.grave { Kind::Bad } else { Kind::Plain };
            paper.line(&[(&one_line(&text, width.saturating_sub(1)), kind)]);
        }
    }
    paper.line = height.saturating_sub(1);
    let mut keys = format!("q end the run   s sort: {}", view.order.name(figures.of_hosts));
    if rows.len() > shown.len() {
        let arrows = if look.is_ascii { "up down" } else { "↑↓" };
        let last = view.above + shown.len();
        keys += &format!("   {arrows} scroll: {}-{last} of {}", view.above + 1, rows.len());
    }
    paper.line(&[(&keys, Kind::Dim)]);
}

fn title(figures: &Figures, paper: &mut Paper<'_>) {
    let host = if figures.host.is_empty() { String::new() } else { format!(" on {}", figures.host) };
    let workers = figures.latest.iter().flat_map(|latest| &latest.workers);
    let count = workers.filter(|worker| worker.running).count().saturating_sub(usize::from(figures.of_hosts));
    let what = match (figures.of_hosts, count) {
        (true, 1) => "machine",
        (true, _) => "machines",
        (false, 1) => "worker",
        (false, _) => "workers",
    };
    paper.line(&[(&figures.program, Kind::Head), (&format!("{host}, {count} {what} at work"), Kind::Plain)]);
}

/// What the run does, how far it is, and how long it takes.
fn state(figures: &Figures, width: usize, paper: &mut Paper<'_>) {
    let latest = figures.latest.as_ref();
    let doing = match latest {
        _ if figures.is_stopping => "ending",
        _ if figures.laying_out.is_some() => "laying out files",
        None => "setting up",
        Some(latest) if latest.summed().state == WAITS => "waiting",
        Some(latest) => phase(latest),
    };
    let kind = match doing {
        "running" | "verifying" => Kind::Good,
        _ => Kind::Busy,
    };
    let elapsed = figures.laying_out.or(latest.map(|latest| latest.elapsed_ns)).unwrap_or(0);
    let elapsed = time_left(elapsed / 1_000_000_000);
    let mut times = format!(" {elapsed} so far");
    if let Some(left) = latest.and_then(|latest| latest.eta_s) {
        times += &format!(", {} left", time_left(left));
    }
    let mut bar = String::new();
    if let Some(percent) = latest.and_then(|latest| latest.percent) {
        let room = width.saturating_sub(doing.len() + times.len() + 7).min(BAR);
        let done = ((percent.clamp(0.0, 100.0) / 100.0 * room as f64).round() as usize).min(room);
        let (full, empty) = if paper.look.is_ascii { ("#", ".") } else { ("█", "░") };
        bar = format!(" {percent:3.0}% {}{}", full.repeat(done), empty.repeat(room - done));
    }
    paper.line(&[(doing, kind), (&bar, Kind::Plain), (&times, Kind::Plain)]);
}

/// A column of the table.
struct Column {
    head: &'static str,
    width: usize,
    is_number: bool,
    /// Columns with the lowest number are left out first if there is little room.
    rank: u32,
    text: fn(&Row, Units) -> String,
}

fn table(figures: &Figures, total: &[Row], rows: &[Row], width: usize, paper: &mut Paper<'_>) {
    let all = || total.iter().chain(rows);
    let longest = |of: fn(&Row) -> usize| all().map(of).max().unwrap_or(0);
    let latest = figures.latest.as_ref();
    let units = Units {
        kb_base: latest.map_or(1024, |latest| latest.kb_base.max(1)),
        unit_base: latest.map_or(0, |latest| latest.unit_base),
        figures: FIGURES,
    };
    let column = |head, width, is_number, rank, text| Column { head, width, is_number, rank, text };
    let name = longest(|row| row.name.chars().count()).clamp(8, (width / 5).clamp(8, 40));
    let mut columns = vec![
        column(if figures.of_hosts { "machine" } else { "job" }, name, false, 9, |row: &Row, _| {
            row.name.clone()
        }),
        column("", 5, false, 8, |row, _| row.direction.map_or("", iolite_types::Direction::name).to_owned()),
        column("IOPS", 6, true, 7, |row, _| if_io(row, units::count(row.iops, FIGURES))),
        column("bandwidth", 9, true, 6, |row, units| if_io(row, units.rate(row.bandwidth))),
        column("p50", 6, true, 3, |row, _| row.latencies.map_or_else(String::new, |[p50, _]| latency(p50))),
        column("p99", 6, true, 5, |row, _| row.latencies.map_or_else(String::new, |[_, p99]| latency(p99))),
        column("depth", 5, true, 2, |row, _| {
            row.depth.map_or_else(String::new, |depth| format!("{depth:.1}"))
        }),
        column("", longest(|row| row.doing.len()).max(4), false, 4, |row, _| row.doing.to_owned()),
    ];
    let taken = |columns: &[Column]| columns.iter().map(|column| column.width + 1).sum::<usize>();
    while columns.len() > 1 && taken(&columns) > width + 1 {
        let first = (0..columns.len()).min_by_key(|&index| columns[index].rank);
        columns.remove(first.unwrap_or(0));
    }
    let rest = width.saturating_sub(taken(&columns)).min(60);
    let padded = |column: &Column, text: &str| {
        let text = cut(text, column.width, paper.look.is_ascii);
        if column.is_number {
            format!("{text:>0$} ", column.width)
        } else {
            format!("{text:<0$} ", column.width)
        }
    };
    let heads: String = columns.iter().map(|column| padded(column, column.head)).collect();
    let minute = if rest >= 4 {
        cut(if rest < 17 { "last minute" } else { "IOPS, last minute" }, rest, true)
    } else {
        String::new()
    };
    let lines: Vec<(String, String)> = all()
        .map(|row| {
            let text = columns.iter().map(|column| padded(column, &(column.text)(row, units))).collect();
            let minute =
                if rest >= 4 { sparkline::of(&row.minute, rest, paper.look.is_ascii) } else { String::new() };
            (text, minute)
        })
        .collect();
    paper.line(&[(&(heads + &minute), Kind::Head)]);
    for ((text, minute), row) in lines.iter().zip(all()) {
        let kind = match row.doing {
            "failed" | "killed" | "lost" => Kind::Bad,
            "done" => Kind::Dim,
            _ => Kind::Plain,
        };
        paper.line(&[(text, kind), (minute, Kind::Curve)]);
    }
}

/// Nothing for a job that does no I/O.
fn if_io(row: &Row, text: String) -> String {
    if row.direction.is_some() { text } else { String::new() }
}

/// The text without its middle, if it does not fit: names often differ at their ends.
fn cut(text: &str, width: usize, is_ascii: bool) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let begin: String = text.chars().take(room.div_ceil(2)).collect();
    let end: String = text.chars().skip(count - room / 2).collect();
    format!("{begin}{}{end}", if is_ascii { "~" } else { "…" })
}

fn disk_line(disk: &DiskRow) -> String {
    let units = Units { kb_base: 1024, unit_base: 0, figures: FIGURES };
    let moved = |[ios, bytes]: [u64; 2], what: &str| {
        format!("{} {what}/s {}", units::count(ios, FIGURES), units.rate(bytes))
    };
    format!(
        "disk {} {:3.0}% busy, {}, {}, queue {:.1}",
        disk.name,
        disk.busy * 100.0,
        moved(disk.read, "reads"),
        moved(disk.written, "writes"),
        disk.queue
    )
}

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    Head,
    Dim,
    Good,
    Busy,
    Bad,
    Curve,
}

/// Where lines are written, from top to bottom.
struct Paper<'a> {
    to: &'a mut Buffer,
    look: Look,
    line: usize,
}

impl Paper<'_> {
    fn skip(&mut self) {
        self.line += 1;
    }

    fn line(&mut self, pieces: &[(&str, Kind)]) {
        let area = self.to.area;
        if self.line >= usize::from(area.height) {
            return;
        }
        let (mut x, y) = (area.x, area.y + self.line as u16);
        for (text, kind) in pieces {
            let room = area.right().saturating_sub(x);
            (x, _) = self.to.set_stringn(x, y, self.harmless(text), room.into(), self.style(*kind));
        }
        self.skip();
    }

    /// The text without characters that could control the terminal, or that it does not have.
    fn harmless(&self, text: &str) -> String {
        let is_bad = |c: char| c.is_control() || is_bidi_control(c) || (self.look.is_ascii && !c.is_ascii());
        text.chars().map(|c| if is_bad(c) { '?' } else { c }).collect()
    }

    fn style(&self, kind: Kind) -> Style {
        let plain = Style::new();
        match kind {
            _ if !self.look.has_colors => plain,
            Kind::Plain => plain,
            Kind::Head => plain.bold(),
            Kind::Dim => plain.dim(),
            Kind::Good => plain.fg(Color::Green).bold(),
            Kind::Busy => plain.fg(Color::Yellow).bold(),
            Kind::Bad => plain.fg(Color::Red),
            Kind::Curve => plain.fg(Color::Cyan),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_stats::{Event, EventKind, Report, Snapshot, WorkerSnapshot};
    use iolite_types::Direction;
    use iolite_web::Hello;
    use ratatui_core::layout::Rect;

    const UTF8: Look = Look { is_ascii: false, has_colors: false };

    /// Three seconds of this many jobs, of which the last is the fastest.
    fn run(jobs: u64) -> Figures {
        let mut outline = Report::default();
        for block in 0..jobs as u32 {
            let mut job = iolite_stats::JobReport { name: format!("job{block}"), ..Default::default() };
            job.identity.block = block;
            outline.jobs.push(job);
        }
        let mut figures = Figures::of(Hello {
            outline,
            blocks: (0..jobs as u32).map(Some).collect(),
            program: "iolite-0".to_owned(),
            interval_ns: 1,
            of_hosts: false,
            linger_ms: None,
        });
        for tenths in 0..=30 {
            let worker = |job: u64| {
                let mut worker = WorkerSnapshot { state: 'r', running: true, ..WorkerSnapshot::default() };
                worker.uses[Direction::Read] = true;
                worker.counters[Direction::Read].ios = tenths * 10 * (job + 1);
                worker.counters[Direction::Read].bytes = tenths * 40_960 * (job + 1);
                worker
            };
            let snapshot = Snapshot {
                elapsed_ns: tenths * 100_000_000,
                workers: (0..jobs).map(worker).collect(),
                percent: Some(50.0),
                eta_s: Some(3),
                kb_base: 1024,
                ..Snapshot::default()
            };
            figures.take(Event::new(0, None, EventKind::Sample(Box::new(snapshot))));
        }
        figures.take(Event::new(0, None, EventKind::Trouble("a \x1b[31mred\nmessage é".to_owned())));
        figures
    }

    fn drawn(figures: &Figures, view: &mut View, look: Look, (width, height): (u16, u16)) -> Vec<String> {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        draw(figures, view, look, &mut buffer);
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    #[test]
    fn a_screen_of_two_jobs() {
        let screen = drawn(&run(2), &mut View::default(), UTF8, (80, 12));
        assert_eq!(
            screen,
            [
                "iolite-0, 2 workers at work",
                "running  50% ███████████████░░░░░░░░░░░░░░░ 3s so far, 3s left",
                "",
                "job              IOPS bandwidth    p50    p99 depth      IOPS, last minute",
                "all jobs read     300 1200KiB/s                     runs ███",
                "job0     read     100  400KiB/s                     runs ███",
                "job1     read     200  800KiB/s                     runs ███",
                "",
                "! a ?[31mred message é",
                "",
                "",
                "q end the run   s sort: job",
            ]
            .map(|line| line.to_owned()),
            "{screen:#?}"
        );
    }

    #[test]
    fn rows_are_sorted_and_scrolled() {
        let mut view = View { order: Order::Bandwidth, ..View::default() };
        let figures = run(40);
        let screen = drawn(&figures, &mut view, UTF8, (80, 24));
        assert!(screen[5].starts_with("job39 ") && screen[6].starts_with("job38 "), "{screen:#?}");
        assert_eq!(
            screen[23],
            format!("q end the run   s sort: bandwidth   ↑↓ scroll: 1-{} of 40", view.page)
        );
        (view.order, view.above) = (Order::Job, 1000);
        let screen = drawn(&figures, &mut view, UTF8, (80, 24));
        assert_eq!(view.above, 40 - view.page);
        assert!(screen.iter().any(|line| line.starts_with("job39 ")), "the last one is there: {screen:#?}");
        assert!(screen[23].ends_with("-40 of 40"), "{screen:#?}");
        assert!(screen[4].starts_with("all jobs "), "the sum stays: {screen:#?}");
    }

    #[test]
    fn long_names_keep_both_ends() {
        let name = "vm sock:/tmp/first/s";
        assert_eq!(
            [20, 10, 2, 1, 0].map(|width| cut(name, width, false)),
            [name, "vm so…st/s", "v…", "…", "…"]
        );
        assert_eq!(cut(name, 9, true), "vm s~st/s");
    }

    #[test]
    fn it_fits_everywhere() {
        let figures = run(3);
        for width in 0..=120 {
            for height in [0, 1, 2, 4, 5, 6, 7, 10, 24] {
                for is_ascii in [true, false] {
                    let look = Look { is_ascii, has_colors: false };
                    let screen = drawn(&figures, &mut View::default(), look, (width, height));
                    assert!(!is_ascii || screen.iter().all(|line| line.is_ascii()), "{screen:#?}");
                    // No half numbers.
                    if width >= 40 && height > 6 {
                        assert!(
                            screen[4].contains(" 600 ") && screen[4].contains("2400KiB/s"),
                            "{screen:#?}"
                        );
                    }
                }
            }
        }
    }
}
