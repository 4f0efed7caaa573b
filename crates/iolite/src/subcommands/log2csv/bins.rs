//! The bins of a json+ report.

use super::table::field;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The parts of a job's report that have latencies.
const PARTS: [&str; 5] = ["read", "write", "trim", "mixed", "sync"];
const LATENCIES: [&str; 3] = ["slat_ns", "clat_ns", "lat_ns"];

/// The number of I/Os by latency in nanoseconds.
type Bins = BTreeMap<u64, u64>;

/// A report's bins.
pub struct Report {
    jobs: Vec<Job>,
}

struct Job {
    name: String,
    /// By part and latency.
    bins: BTreeMap<(&'static str, &'static str), Bins>,
}

impl Report {
    /// Reads a report, which may have notes above it.
    ///
    /// # Errors
    /// `line:column: the error`, or ` the error` if it concerns no single place.
    pub fn read(text: &str) -> Result<Report, String> {
        let above = text.lines().take_while(|line| !line.starts_with('{')).count();
        let start: usize = text.split_inclusive('\n').take(above).map(str::len).sum();
        // Other formats may follow.
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let root = match values.next() {
            Some(Ok(root)) => root,
            Some(Err(error)) => {
                let reason = error.to_string();
                let reason = reason.split(" at line").next().unwrap_or_default();
                return Err(format!("{}:{}: {reason}", error.line() + above, error.column()));
            }
            None => return Err(" there is no report in it".to_owned()),
        };
        let jobs = root["jobs"].as_array().ok_or(" it has no \"jobs\", so it is not a report")?;
        let jobs = jobs.iter().map(Job::read).collect::<Result<Vec<_>, _>>()?;
        if jobs.iter().all(|job| job.bins.is_empty()) {
            return Err(" it has no bins; --output-format=json+ makes reports that have".to_owned());
        }
        Ok(Report { jobs })
    }

    /// One row for each bin.
    pub fn table(&self) -> String {
        let mut table = "job,direction,latency,nsec,count,cumulative,percentile\n".to_owned();
        for job in &self.jobs {
            for ((part, latency), bins) in &job.bins {
                let total: u64 = bins.values().sum();
                let mut cumulative = 0;
                for (nsec, count) in bins {
                    cumulative += count;
                    let percentile = cumulative as f64 * 100.0 / total as f64;
                    let (name, latency) = (field(&job.name), latency.trim_end_matches("_ns"));
                    line!(table, "{name},{part},{latency},{nsec},{count},{cumulative},{percentile}");
                }
            }
        }
        table
    }

    /// Writes a file per job, named and laid out like those of `fio_jsonplus_clat2csv`. Returns their names.
    pub fn write_files(&self, output: &Path) -> Result<String, String> {
        let mut told = String::new();
        for (number, job) in self.jobs.iter().enumerate() {
            let path = numbered(output, number);
            std::fs::write(&path, job.wide_table())
                .map_err(|error| format!("{}: {error}", path.display()))?;
            line!(told, "{} generated", path.display());
        }
        Ok(told)
    }
}

/// `out.csv` → `out_job0.csv`
fn numbered(output: &Path, number: usize) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let extension = output.extension().map(|text| format!(".{}", text.to_string_lossy())).unwrap_or_default();
    output.with_file_name(format!("{stem}_job{number}{extension}"))
}

impl Job {
    fn read(value: &Value) -> Result<Job, String> {
        let name = value["jobname"].as_str().unwrap_or_default().to_owned();
        let mut all = BTreeMap::new();
        for part in PARTS {
            for latency in LATENCIES {
                let Some(bins) = value[part][latency]["bins"].as_object() else { continue };
                let bin = |(nsec, count): (&String, &Value)| {
                    nsec.parse().ok().zip(count.as_u64()).ok_or_else(|| {
                        format!(" job {name}: {part}.{latency}.bins: \"{nsec}\": {count} is not a bin")
                    })
                };
                let bins: Bins = bins.iter().map(bin).collect::<Result<_, _>>()?;
                if !bins.is_empty() {
                    all.insert((part, latency), bins);
                }
            }
        }
        Ok(Job { name, bins: all })
    }

    /// One row for each latency that occurred, with three columns for each direction and kind.
    fn wide_table(&self) -> String {
        const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
        let kinds: Vec<_> =
            DIRECTIONS.iter().flat_map(|part| LATENCIES.map(|latency| (*part, latency))).collect();
        let mut table = "nsec, ".to_owned();
        for (part, latency) in &kinds {
            for column in ["count", "cumulative", "percentile"] {
                // Writing to a String does not fail.
                let _ = write!(table, "{part}_{latency}_{column}, ");
            }
        }
        table.push('\n');
        let shown: Vec<Option<&Bins>> = kinds.iter().map(|kind| self.bins.get(kind)).collect();
        let totals: Vec<u64> = shown.iter().map(|bins| bins.map_or(0, |bins| bins.values().sum())).collect();
        let mut cumulative = vec![0; shown.len()];
        let rows: BTreeSet<u64> = shown.iter().flatten().flat_map(|bins| bins.keys().copied()).collect();
        for nsec in rows {
            let _ = write!(table, "{nsec}, ");
            for (index, bins) in shown.iter().enumerate() {
                match bins.and_then(|bins| bins.get(&nsec)) {
                    Some(count) => {
                        cumulative[index] += count;
                        let share = cumulative[index] as f64 / totals[index] as f64;
                        let _ = write!(table, "{count}, {}, {share}, ", cumulative[index]);
                    }
                    None => table.push_str(", , , "),
                }
            }
            table.push('\n');
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"note: something was said
{
  "jobs" : [
    {
      "jobname" : "a,b",
      "read" : { "clat_ns" : { "bins" : { "100" : 1, "20" : 3 } } },
      "sync" : { "lat_ns" : { "bins" : { "7" : 2 } } }
    }
  ]
}
"#;

    #[test]
    fn one_row_for_each_bin_in_order() {
        let table = Report::read(REPORT).map(|report| report.table());
        let expected = "job,direction,latency,nsec,count,cumulative,percentile\n\
                        \"a,b\",read,clat,20,3,3,75\n\
                        \"a,b\",read,clat,100,1,4,100\n\
                        \"a,b\",sync,lat,7,2,2,100\n";
        assert_eq!(table.as_deref(), Ok(expected));
    }

    #[test]
    fn the_wide_table_has_shares() {
        let Ok(report) = Report::read(REPORT) else { panic!("it can be read") };
        let table = report.jobs[0].wide_table();
        let rows: Vec<&str> = table.lines().collect();
        assert!(rows[0].starts_with("nsec, read_slat_ns_count, read_slat_ns_cumulative, "));
        assert!(rows[1].starts_with("20, , , , 3, 3, 0.75, , , , "));
        assert!(rows[2].starts_with("100, , , , 1, 4, 1, , , , "));
        assert_eq!((rows.len(), numbered(Path::new("d/out.csv"), 3)), (3, PathBuf::from("d/out_job3.csv")));
    }

    #[test]
    fn mistakes_have_their_place() {
        let told = |text: &str| Report::read(text).err().unwrap_or_default();
        assert_eq!(told("one\ntwo\n{\n  \"jobs\" : x\n}\n"), "4:12: expected value");
        assert!(told("{}").contains("not a report"));
        assert!(told(r#"{"jobs":[{"read":{"clat_ns":{}}}]}"#).contains("json+"));
        let odd = r#"{"jobs":[{"jobname":"j","read":{"clat_ns":{"bins":{"x":1}}}}]}"#;
        assert!(told(odd).contains("job j: read.clat_ns.bins: \"x\": 1 is not a bin"));
    }
}
