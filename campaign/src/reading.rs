//! Reads reports.

use serde_json::Value;

/// A job of a report in JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// The errno that ended it; 0 = none.
    pub error: i64,
    /// I/Os: reads, writes, trims.
    pub ios: [u64; 3],
    /// Bytes: read, written, trimmed.
    pub bytes: [u64; 3],
    /// Percent of a CPU, in user and system mode.
    pub cpu: f64,
}

impl Job {
    /// All its I/Os.
    pub fn all_ios(&self) -> u64 {
        self.ios.iter().sum()
    }
}

/// The jobs of a report in JSON: of the last one, if there are those of a run on its way before it.
///
/// # Errors
/// It is no such report, or only the beginning of one.
pub fn jobs(text: &str) -> Result<Vec<Job>, String> {
    let mut reports = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let last = reports.try_fold(Value::Null, |_, report| report);
    let report = last.map_err(|error| format!("no JSON: {error}"))?;
    let jobs = report["jobs"].as_array().ok_or("there are no jobs in it")?;
    jobs.iter().map(|job| one(job).ok_or_else(|| format!("a job without its numbers: {job}"))).collect()
}

fn one(job: &Value) -> Option<Job> {
    let each = |key: &str| -> Option<[u64; 3]> {
        let of = |direction: &str| job[direction][key].as_u64();
        Some([of("read")?, of("write")?, of("trim")?])
    };
    Some(Job {
        name: job["jobname"].as_str()?.into(),
        error: job["error"].as_i64()?,
        ios: each("total_ios")?,
        bytes: each("io_bytes")?,
        cpu: job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?,
    })
}

/// Something wrong in a file, as verification tells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wrong {
    /// The file.
    pub file: String,
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub length: u64,
}

/// All mismatches that verification has reported, in the form
/// `… at file NAME offset N, length N (requested block: …)`.
pub fn wrong_blocks(text: &str) -> Vec<Wrong> {
    let block = |line: &str| -> Option<Wrong> {
        let (file, rest) = line.split_once(" at file ")?.1.split_once(" offset ")?;
        let (offset, rest) = rest.split_once(", length ")?;
        let (length, _) = rest.split_once(" (requested block: ")?;
        Some(Wrong { file: file.into(), offset: offset.parse().ok()?, length: length.parse().ok()? })
    };
    text.lines().filter_map(block).collect()
}

/// Whether a mismatch was reported.
pub fn tells_of_damage(text: &str) -> bool {
    text.contains("(requested block: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_whole_or_none() {
        let side = r#"{"total_ios": 3, "io_bytes": 12288}"#;
        let text = format!(
            r#"{{"jobs": [{{"jobname": "v", "error": 5, "usr_cpu": 1.5, "sys_cpu": 1.0, "read": {side}, "write": {side},
            "trim": {side}}}]}}"#
        );
        let job = jobs(&text).unwrap().remove(0);
        assert_eq!((job.name.as_str(), job.error, job.all_ios(), job.bytes[1]), ("v", 5, 9, 12_288));
        assert_eq!(jobs(&format!("{{}}\n{text}\n")).unwrap()[0].error, 5);
        assert!(jobs(&text[..text.len() - 2]).unwrap_err().contains("no JSON"));
        assert!(jobs("{}").is_err());
    }

    #[test]
    fn wrong_blocks_have_a_place() {
        let text = "v: x\ncrc32c: verify failed at file a b offset 4096, length 512 (requested block: offset=0, length=65536)\n";
        assert_eq!(wrong_blocks(text), [Wrong { file: "a b".into(), offset: 4096, length: 512 }]);
        assert!(tells_of_damage(text) && !tells_of_damage("all is well"));
    }
}
