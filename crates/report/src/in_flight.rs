//! The table of I/Os in flight.

use iolite_stats::InFlight;

/// The table, for a terminal: a line with the number of I/Os, and one for each, in the given order, the columns as wide as
/// needed. `left_out`: how many more there are, all of them younger.
pub fn in_flight(ios: &[InFlight], left_out: u64) -> String {
    let count = ios.len() as u64 + left_out;
    if count == 0 {
        return "no I/O is in flight\n".to_owned();
    }
    let heads = ["age", "job", "worker", "", "file", "offset", "length"].map(str::to_owned);
    let row = |io: &InFlight| {
        let InFlight { job, worker, operation, file, offset, length, age_ns } = io;
        let (worker, offset, length) = ((worker + 1).to_string(), offset.to_string(), length.to_string());
        [
            age_ns.map_or_else(|| "-".to_owned(), age),
            job.clone(),
            worker,
            operation.clone(),
            file.clone(),
            offset,
            length,
        ]
    };
    let rows: Vec<[String; 7]> = std::iter::once(heads).chain(ios.iter().map(row)).collect();
    let widths: [usize; 7] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = format!("{count} {} in flight:\n", if count == 1 { "I/O" } else { "I/Os" });
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            // Words begin, and numbers end, below each other.
            1 | 3 | 4 => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        });
        text += &format!("  {}\n", cells.collect::<Vec<_>>().join("  "));
    }
    if left_out > 0 {
        text += &format!("  and {left_out} more, all younger\n");
    }
    text
}

/// An age with the precision that tells something: `312 us`, `34.2 s`.
fn age(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} us", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{}.{} s", ns / 1_000_000_000, ns / 100_000_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_each() {
        let io = |job: &str, worker, age_ns| InFlight {
            job: job.into(),
            worker,
            operation: "read".into(),
            file: "/dev/vdb".into(),
            offset: 81920,
            length: 4096,
            age_ns,
        };
        let ios = [io("a", 0, Some(34_250_000_000)), io("longer", 11, Some(999_999)), io("a", 1, None)];
        let expected = "8 I/Os in flight:
     age  job     worker        file      offset  length
  34.2 s  a            1  read  /dev/vdb   81920    4096
  999 us  longer      12  read  /dev/vdb   81920    4096
       -  a            2  read  /dev/vdb   81920    4096
  and 5 more, all younger
";
        assert_eq!(in_flight(&ios, 5), expected);
        assert!(in_flight(&ios[..1], 0).starts_with("1 I/O in flight:\n"));
        assert_eq!(in_flight(&[], 0), "no I/O is in flight\n");
    }
}
