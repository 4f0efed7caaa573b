//! Progress of a subcommand that runs cases, on standard error: a line that is replaced on a terminal, a line per case elsewhere.

use crate::messages::complain;
use iolite_page::text::{bandwidth, bytes as amount, count, seconds as time};
use iolite_stats::Snapshot;
use iolite_types::Direction;
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// The most characters of a line: terminals have 80 columns.
const WIDTH: usize = 79;

/// How long a case is.
#[derive(Clone, Copy)]
enum Extent {
    Seconds(f64),
    Bytes(u64),
}

/// Shows the progress of a subcommand.
pub struct Progress {
    program: String,
    command: &'static str,
    is_terminal: bool,
    /// The case that runs now, how long it is, and when it began.
    now: (String, Extent, Instant),
    /// What is told behind the figures.
    more: String,
    /// How many cases there are, and how many have begun.
    all: usize,
    begun: usize,
    /// The counters of the snapshot before, and its time.
    before: (u64, u64, u64),
    drawn: usize,
}

impl Progress {
    pub fn new(program: &str, command: &'static str) -> Progress {
        Progress {
            program: program.to_owned(),
            command,
            is_terminal: std::io::stderr().is_terminal(),
            now: (String::new(), Extent::Seconds(0.0), Instant::now()),
            more: String::new(),
            all: 0,
            begun: 0,
            before: (0, 0, 0),
            drawn: 0,
        }
    }

    /// There are this many cases.
    pub fn expect(&mut self, cases: usize) {
        self.all = cases;
    }

    /// A case begins.
    pub fn begin(&mut self, words: &str, seconds: f64) {
        self.begin_extent(words, Extent::Seconds(seconds));
        self.draw(&format!("{}, {} s", self.head(), seconds));
    }

    /// A case begins that moves so much.
    pub fn begin_bytes(&mut self, words: &str, all: u64) {
        self.begin_extent(words, Extent::Bytes(all));
        self.draw(&format!("{}, {}", self.head(), amount(all as f64)));
    }

    fn begin_extent(&mut self, words: &str, extent: Extent) {
        self.begun += 1;
        self.before = (0, 0, 0);
        self.now = (words.to_owned(), extent, Instant::now());
    }

    /// What is told behind the figures from now on.
    pub fn append(&mut self, more: String) {
        self.more = more;
    }

    fn head(&self) -> String {
        if self.all == 0 {
            return self.now.0.clone();
        }
        format!("[{}/{}] {}", self.begun, self.all.max(self.begun), self.now.0)
    }

    /// A case has come so far.
    pub fn tick(&mut self, snapshot: &Snapshot) {
        let sum = snapshot.summed();
        let (mut ios, mut bytes) = (0, 0);
        for direction in Direction::ALL {
            ios += sum.counters[direction].ios;
            bytes += sum.counters[direction].bytes;
        }
        let seconds = snapshot.elapsed_ns.saturating_sub(self.before.2) as f64 / 1e9;
        if seconds <= 0.0 {
            return;
        }
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let (iops, moved) = (rate(ios, self.before.0), rate(bytes, self.before.1));
        self.before = (ios, bytes, snapshot.elapsed_ns);
        let elapsed = self.now.2.elapsed().as_secs_f64();
        let figures = match ios {
            0 => "it is set up".to_owned(),
            _ => format!("{} IOPS, {}", count(iops), bandwidth(moved)),
        };
        let come = match self.now.1 {
            Extent::Seconds(all) => format!("{elapsed:.0} of {all} s"),
            Extent::Bytes(all) => {
                let rest = all.saturating_sub(self.before.1) as f64;
                let left = if self.before.1 > 0 { elapsed * rest / self.before.1 as f64 } else { 0.0 };
                format!(
                    "{} of {}, {} left",
                    amount(self.before.1 as f64),
                    amount(all as f64),
                    time(left.ceil())
                )
            }
        };
        let line = format!("{}, {come}: {figures}{}", self.head(), self.more);
        self.draw(&line);
    }

    /// A case has ended with these figures.
    pub fn end(&mut self, words: &str) {
        if !self.is_terminal {
            self.tell(&format!("{}: {words}", self.head()));
        }
    }

    /// A line that stays.
    pub fn tell(&mut self, words: &str) {
        self.clear();
        complain(&self.program, &format_args!("{}: {words}", self.command));
    }

    /// Removes the line from the terminal.
    pub fn clear(&mut self) {
        if self.drawn > 0 {
            self.draw("");
            self.drawn = 0;
        }
    }

    fn draw(&mut self, line: &str) {
        if !self.is_terminal {
            return;
        }
        let line: String = line.chars().filter(|letter| !letter.is_control()).take(WIDTH).collect();
        let length = line.chars().count();
        let blanks = self.drawn.saturating_sub(length);
        // Failures of progress are none of the test.
        let _ = write!(std::io::stderr(), "\r{line}{:blanks$}\r", "");
        self.drawn = length;
    }
}
