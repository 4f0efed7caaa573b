//! `iolite zipf`: the share of accesses that go to a share of the blocks.
//!
//! As many accesses are drawn as there are blocks, with the generator that jobs use; the blocks with hits are then
//! sorted by their hits and shown in rows. That is the table of fio-genzipf.

use iolite_host::Memory;
use iolite_options::commands::Asked;
use iolite_workload::Law;
use iolite_workload::offset::Skewed;
use iolite_workload::rng::Rng;
use std::io::{self, Write};

/// The same accesses in each run, so that settings can be compared.
const SEED: u64 = 1;

/// The options.
struct Setting {
    law: Law,
    block: u64,
    gigabytes: u64,
    rows: u64,
    /// The share of the hits for which to find the number of blocks.
    hits: Option<f64>,
    csv: bool,
}

/// Returns the answer.
pub fn run(asked: &Asked) -> Result<String, String> {
    if let Some(extra) = asked.operands.first() {
        return Err(format!("takes options only, not \"{}\"", extra.to_string_lossy()));
    }
    let setting = Setting::new(asked)?;
    let hits = setting.draw()?;
    super::print(|to| setting.tell(&hits, to))
}

impl Setting {
    fn new(asked: &Asked) -> Result<Setting, String> {
        let law = match asked.value("law").unwrap_or("zipf") {
            "zipf" => Law::Zipf(asked.fraction("parameter", 1e-6, 1000.0)?.unwrap_or(1.2)),
            "pareto" => Law::Pareto(asked.fraction("parameter", 1e-6, 1.0 - 1e-6)?.unwrap_or(0.3)),
            _ => Law::Normal(asked.fraction("parameter", 0.0, 100.0)?.unwrap_or(0.0)),
        };
        let setting = Setting {
            law,
            block: asked.number("block-size", 1)?.unwrap_or(4096),
            gigabytes: asked.number("size", 1)?.unwrap_or(500),
            rows: asked.number("rows", 1)?.unwrap_or(20),
            hits: asked.percent("hits")?,
            csv: asked.has("csv"),
        };
        match setting.bytes() {
            Some(bytes) if bytes >= setting.block => Ok(setting),
            Some(_) => Err(format!("--block-size={}: larger than the data", setting.block)),
            None => Err(format!("--size={}: too much", setting.gigabytes)),
        }
    }

    fn bytes(&self) -> Option<u64> {
        self.gigabytes.checked_mul(1 << 30)
    }

    /// The hits of each block that was hit, the most popular first.
    fn draw(&self) -> Result<Vec<u32>, String> {
        let blocks = self.bytes().unwrap_or(u64::MAX) / self.block;
        let too_many = || {
            format!(
                "there is no memory to count {blocks} blocks; use larger ones (--block-size), or less data (--size)"
            )
        };
        let mut hits: Vec<u32> = Vec::new();
        // An allocation may succeed although there is not enough memory.
        let fits = blocks.saturating_mul(size_of::<u32>() as u64) <= Memory::now().obtainable();
        let length = usize::try_from(blocks).ok().filter(|_| fits).ok_or_else(too_many)?;
        hits.try_reserve_exact(length).map_err(|_| too_many())?;
        hits.resize(length, 0);
        let law = Skewed::new(self.law, blocks);
        let mut rng = Rng::new(SEED);
        for _ in 0..blocks {
            let hits = &mut hits[law.draw(&mut rng) as usize];
            *hits = hits.saturating_add(1);
        }
        hits.retain(|&hits| hits > 0);
        hits.sort_unstable_by(|a, b| b.cmp(a));
        Ok(hits)
    }

    fn tell(&self, hits: &[u32], to: &mut dyn Write) -> io::Result<()> {
        if self.csv { csv(hits, to) } else { self.table(hits, to) }
    }

    fn table(&self, hits: &[u32], to: &mut dyn Write) -> io::Result<()> {
        let (name, input) = match self.law {
            Law::Zipf(theta) => ("Zipf", theta),
            Law::Pareto(power) => ("Pareto", power),
            Law::Normal(deviation) => ("Normal", deviation),
        };
        let total: u64 = hits.iter().map(|&hits| u64::from(hits)).sum();
        writeln!(
            to,
            "Generating {name} distribution with {input:.6} input and {} GiB size and {} block_size.",
            self.gigabytes, self.block
        )?;
        if let Some(percent) = self.hits {
            let megabytes = (blocks_for(hits, percent) * self.block) as f64 / f64::from(1 << 20);
            writeln!(to, "{percent:.2}% of hits satisfied in {megabytes:.3}MB of cache")?;
        }
        writeln!(to, "\n   Rows           Hits %         Sum %           # Hits          Size")?;
        writeln!(to, "{}", "-".repeat(71))?;
        let mut sum = 0;
        let per_row = hits.len().div_ceil(self.rows as usize).max(1);
        for (row, blocks) in (1u64..).zip(hits.chunks(per_row)) {
            let hits: u64 = blocks.iter().map(|&hits| u64::from(hits)).sum();
            sum += hits;
            let percent = |part: u64| 100.0 * part as f64 / total as f64;
            // Rounding up may leave fewer rows than requested; the last one ends at 100%.
            let place = if sum == total { 100.0 } else { 100.0 * row as f64 / self.rows as f64 };
            writeln!(
                to,
                "{} {place:6.2}%\t{:6.2}%\t\t{:6.2}%\t\t{hits:8}\t{}",
                if row == 1 { "Top" } else { "|->" },
                percent(hits),
                percent(sum),
                size(hits * self.block)
            )?;
        }
        writeln!(to, "{}", "-".repeat(71))?;
        writeln!(to, "Total\t\t\t\t\t\t{total:8}")
    }
}

/// How many of the most popular blocks get this share of the hits.
fn blocks_for(hits: &[u32], percent: f64) -> u64 {
    let total: u64 = hits.iter().map(|&hits| u64::from(hits)).sum();
    let wanted = (total as f64 * percent / 100.0).ceil() as u64;
    let mut sum = 0;
    let enough = |hits: &&u32| {
        let before = sum;
        sum += u64::from(**hits);
        before < wanted
    };
    hits.iter().take_while(enough).count() as u64
}

fn csv(hits: &[u32], to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "rank, count")?;
    hits.iter().enumerate().try_for_each(|(rank, hits)| writeln!(to, "{rank}, {hits}"))
}

/// Bytes with two decimals and a letter, from K up.
fn size(bytes: u64) -> String {
    let mut value = bytes as f64 / 1024.0;
    let mut letters = "KMGTP".chars();
    let mut letter = letters.next().unwrap_or('K');
    for larger in letters {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        letter = larger;
    }
    format!("{value:6.2}{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::commands;

    fn told(setting: &Setting, hits: &[u32]) -> String {
        let mut text = Vec::new();
        setting.tell(hits, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn answer(line: &str) -> Result<String, String> {
        let zipf = commands::ALL.iter().find(|command| command.name == "zipf").unwrap();
        let words: Vec<_> = line.split_whitespace().map(Into::into).collect();
        let asked = zipf.read(&words)?;
        if !asked.operands.is_empty() {
            return run(&asked);
        }
        let setting = Setting::new(&asked)?;
        Ok(told(&setting, &setting.draw()?))
    }

    /// The lines of fio-genzipf 3.33 with the same hits.
    #[test]
    fn the_table_of_the_reference() {
        let setting =
            Setting { law: Law::Zipf(1.1), block: 4096, gigabytes: 1, rows: 3, hits: Some(50.0), csv: false };
        let hits = [235_000, 570, 4, 4, 3, 3];
        assert_eq!(
            told(&setting, &hits),
            "Generating Zipf distribution with 1.100000 input and 1 GiB size and 4096 block_size.\n\
             50.00% of hits satisfied in 0.004MB of cache\n\
             \n   Rows           Hits %         Sum %           # Hits          Size\n\
             -----------------------------------------------------------------------\n\
             Top  33.33%\t 99.99%\t\t 99.99%\t\t  235570\t920.20M\n\
             |->  66.67%\t  0.00%\t\t100.00%\t\t       8\t 32.00K\n\
             |-> 100.00%\t  0.00%\t\t100.00%\t\t       6\t 24.00K\n\
             -----------------------------------------------------------------------\n\
             Total\t\t\t\t\t\t  235584\n"
        );
    }

    #[test]
    fn shares_of_hits() {
        assert_eq!(blocks_for(&[50, 25, 15, 10], 50.0), 1);
        assert_eq!(blocks_for(&[50, 25, 15, 10], 51.0), 2);
        assert_eq!(blocks_for(&[50, 25, 15, 10], 100.0), 4);
        assert_eq!(blocks_for(&[50, 25, 15, 10], 0.0), 0);
    }

    #[test]
    fn sizes() {
        assert_eq!(size(0), "  0.00K");
        assert_eq!(size(937_213 * 1024), "915.25M");
        assert_eq!(size(124_301_859 * 4096), "474.17G");
    }

    #[test]
    fn the_more_skewed_the_more_hits_at_the_top() {
        let top = |line: &str| -> f64 {
            let table = answer(&format!("-g 1 -b 64k -o 10 {line}")).unwrap();
            let row = table.lines().find(|line| line.starts_with("Top")).unwrap();
            row.split('\t').nth(1).unwrap().trim().trim_end_matches('%').parse().unwrap()
        };
        assert!(top("-i 0.5") < top("-i 0.9"));
        assert!(top("-i 0.9") < top("-i 1.2"));
        assert!(top("-t pareto -i 0.4") < top("-t pareto -i 0.1"));
        assert!(top("-t normal -i 50") < top("-t normal -i 0"));
    }

    #[test]
    fn ranks_and_counts() {
        let text = answer("-g 1 -b 1m -c").unwrap();
        assert!(text.starts_with("rank, count\n0, "));
        let counts: Vec<u32> =
            text.lines().skip(1).map(|line| line.split(", ").nth(1).unwrap().parse().unwrap()).collect();
        assert!(counts.is_sorted_by(|a, b| a >= b));
        assert_eq!(counts.iter().sum::<u32>(), 1024);
    }

    #[test]
    fn mistakes() {
        for line in [
            "-t bogus",
            "-g 0",
            "-b 0",
            "-o 0",
            "-t pareto -i 1",
            "-i 0",
            "-p 101",
            "-b 2g -g 1",
            "-g 100000000 -b 1",
            "extra",
        ] {
            assert!(answer(line).is_err(), "{line}");
        }
    }
}
