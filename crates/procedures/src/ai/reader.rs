//! Reading a dataset for accelerators.
//!
//! The accelerators are those of one step: a step takes a batch for each of them, and the next one begins when all have computed
//! (data parallelism, as in MLPerf Storage). So they are one accelerator with a batch as large as all of theirs.

use super::Section;
use super::dataset::Dataset;
use super::place::Place;
use serde_json::{Value, json};

/// How many files each reader draws the next one from: the shuffle buffer.
const SHUFFLED: u64 = 64;

/// The fewest steps of each machine, without the first one, from which the utilisation is told to be enough or not.
pub const LEAST_COUNTED: u64 = 5;
/// The steps of an epoch that the rules of MLPerf Storage ask for.
pub const LEAST_STEPS: u64 = 500;
/// How many times as large as the memory those rules ask a dataset to be.
pub const TIMES_MEMORY: u64 = 5;

/// How samples are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reader {
    /// Accelerators.
    pub accelerators: u64,
    /// Readers for each of them.
    pub readers: u64,
    /// Samples in a batch of one accelerator.
    pub batch: u64,
    /// How long it computes with one, in microseconds.
    pub compute_us: u64,
    /// Batches that are read ahead.
    pub prefetch: u64,
    /// How many times the dataset is read; with a time, as often as that allows.
    pub epochs: u64,
    /// Seconds; 0 = the epochs decide.
    pub seconds: u64,
    /// Records of a file come in random order, not one behind the other.
    pub is_random_within: bool,
}

impl Reader {
    /// The workers: each has at least one file (or object).
    pub fn workers(&self, dataset: &Dataset) -> u64 {
        (self.accelerators * self.readers).min(dataset.files).max(1)
    }

    /// Samples of an epoch: all workers read the same number of files.
    pub fn samples(&self, dataset: &Dataset) -> u64 {
        let workers = self.workers(dataset);
        dataset.files / workers * workers * dataset.shape.per_file
    }

    /// Steps of an epoch.
    pub fn steps(&self, dataset: &Dataset) -> u64 {
        self.samples(dataset) / (self.accelerators * self.batch)
    }

    /// The job.
    pub fn job(&self, dataset: &Dataset, place: &Place) -> String {
        let workers = self.workers(dataset);
        let each = dataset.files / workers;
        let is_random = dataset.is_of_blocks(place) || self.is_random_within;
        let section = Section::new("reader").set("rw", if is_random { "randread" } else { "read" });
        let section = dataset.shared_out(section, place, 0..each, workers, dataset.shape.block);
        let is_shuffled = !dataset.is_of_blocks(place) && each > 1;
        // As long as there is anything left to read in a file, its reader stays with it.
        let stays = if self.is_random_within { "random".to_owned() } else { format!("random:{}", u32::MAX) };
        let section = section
            .set_if(is_shuffled, "openfiles", each.min(SHUFFLED))
            .set_if(is_shuffled, "file_service_type", stays)
            .set_if(place.kind == super::place::Kind::Files, "allow_file_create", 0)
            .set_if(self.seconds == 0 && self.epochs > 1, "loops", self.epochs)
            .set_if(self.seconds > 0, "time_based", 1)
            .set_if(self.seconds > 0, "runtime", self.seconds)
            .set("batch_size", self.accelerators * self.batch)
            .set(
                "batch_sample",
                if dataset.shape.per_file > 1 || dataset.is_of_blocks(place) { "io" } else { "file" },
            )
            .set("batch_compute", format!("{}us", self.compute_us))
            .set("batch_prefetch", self.prefetch);
        let section = section.set_if(workers > 1, "numjobs", workers).set("group_reporting", 1);
        place.global().text() + &section.text()
    }
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Computing as a share of all time, in percent; `None` = fewer than two steps.
    pub utilisation: Option<f64>,
    /// Steps, and their samples.
    pub steps: u64,
    /// Samples of these steps, on all machines.
    pub samples: u64,
    /// Samples per second.
    pub samples_per_second: f64,
    /// Bytes per second that were read.
    pub bandwidth: f64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Seconds that accelerators waited, all added up.
    pub waited: f64,
    /// Latencies of reads in nanoseconds: median, 99%.
    pub read_ns: Option<[f64; 2]>,
    /// Machines with accelerators.
    pub machines: u64,
}

impl Figures {
    /// The figures of a report.
    ///
    /// # Errors
    /// It is not a report of such a job.
    pub fn of(report: &Value) -> Result<Figures, String> {
        use iolite_stored::number;
        let jobs = super::jobs_named(report, "reader");
        let accelerators: Vec<&Value> =
            jobs.iter().map(|job| &job["accelerator"]).filter(|value| value.is_object()).collect();
        if accelerators.is_empty() {
            return Err("the report has no accelerator".to_owned());
        }
        let sum = |key: &str| accelerators.iter().map(|value| number(value, key)).sum::<f64>();
        let elapsed = accelerators.iter().map(|value| number(value, "elapsed_ns")).fold(0.0, f64::max);
        let (compute, wait) = (sum("compute_ns"), sum("wait_ns"));
        let bins = super::bins_of(jobs.iter().map(|job| &job["read"]["lat_ns"]));
        let percentile = |percent| iolite_stored::percentile_of_bins(&bins, percent);
        Ok(Figures {
            utilisation: (compute > 0.0).then(|| 100.0 * compute / (compute + wait)),
            steps: sum("batches") as u64,
            samples: sum("samples") as u64,
            samples_per_second: if elapsed > 0.0 { sum("samples") * 1e9 / elapsed } else { 0.0 },
            bandwidth: jobs.iter().map(|job| iolite_stored::bandwidth(&job["read"])).sum(),
            bytes: jobs.iter().map(|job| number(&job["read"], "io_bytes") as u64).sum(),
            waited: wait / 1e9,
            read_ns: percentile(50.0).zip(percentile(99.0)).map(|(p50, p99)| [p50, p99]),
            machines: accelerators.len() as u64,
        })
    }

    /// Whether accelerators are busy for at least this many percent; `None` = there were too few steps to tell.
    pub fn reaches(&self, least: f64) -> Option<bool> {
        let counted = (self.steps / self.machines.max(1)).saturating_sub(1);
        self.utilisation.filter(|_| counted >= LEAST_COUNTED).map(|utilisation| utilisation >= least)
    }

    /// As JSON.
    pub fn json(&self, reader: &Reader) -> Value {
        json!({
            "accelerators": reader.accelerators * self.machines, "machines": self.machines, "utilization": self.utilisation, "steps": self.steps,
            "samples": self.samples, "samples_per_sec": self.samples_per_second, "bw_bytes": self.bandwidth,
            "read_bytes": self.bytes, "wait_s": self.waited,
            "read_p50_ns": self.read_ns.map(|values| values[0]), "read_p99_ns": self.read_ns.map(|values| values[1]),
        })
    }

    /// The figures that [`Figures::json`] has kept, with the accelerators of a machine.
    pub fn kept(value: &Value) -> Option<(u64, Figures)> {
        let whole = |key: &str| value[key].as_u64();
        let number = |key: &str| value[key].as_f64();
        let machines = whole("machines").filter(|machines| *machines > 0)?;
        let figures = Figures {
            utilisation: number("utilization"),
            steps: whole("steps")?,
            samples: whole("samples")?,
            samples_per_second: number("samples_per_sec")?,
            bandwidth: number("bw_bytes")?,
            bytes: whole("read_bytes")?,
            waited: number("wait_s")?,
            read_ns: number("read_p50_ns").zip(number("read_p99_ns")).map(|(p50, p99)| [p50, p99]),
            machines,
        };
        Some((whole("accelerators")? / machines, figures))
    }
}

#[cfg(test)]
mod tests {
    use super::super::dataset::Shape;
    use super::super::place::tests::{files, objects};
    use super::*;

    fn reader(accelerators: u64) -> Reader {
        Reader {
            accelerators,
            readers: 4,
            batch: 7,
            compute_us: 323_000,
            prefetch: 2,
            epochs: 1,
            seconds: 0,
            is_random_within: false,
        }
    }

    #[test]
    fn readers_share_out_the_files() {
        let dataset = Dataset { shape: Shape::new(1000, 0, 1, &files()), files: 170 };
        assert_eq!(
            (reader(3).workers(&dataset), reader(3).samples(&dataset), reader(3).steps(&dataset)),
            (12, 168, 8)
        );
        assert_eq!(reader(100).workers(&dataset), 170);
        let job = reader(3).job(&dataset, &files());
        for line in [
            "directory=/d",
            "rw=read",
            "nrfiles=14",
            "filenum_increment=14",
            "numjobs=12",
            "batch_size=21",
            "batch_sample=file",
            "batch_compute=323000us",
        ] {
            assert!(job.contains(&format!("\n{line}\n")), "{line} in {job}");
        }
        assert!(!job.contains("loops") && !job.contains("runtime"));
        // Small objects are blocks of one name.
        let dataset = Dataset { shape: Shape::new(1000, 0, 1, &objects()), files: 170 };
        let job = reader(3).job(&dataset, &objects());
        assert!(job.contains("filename=/bucket/sample\nsize=14000\noffset_increment=14000\n"), "{job}");
    }

    #[test]
    fn figures_add_up_over_machines() {
        let job = |wait: u64| {
            json!({
                "jobname": "reader", "read": { "io_bytes": 1000, "bw_bytes": 500, "lat_ns": { "bins": { "100": 3, "900": 1 } } },
                "accelerator": {
                    "batches": 10, "samples": 70, "elapsed_ns": 2_000_000_000_u64, "compute_ns": 900, "wait_ns": wait
                },
            })
        };
        let one = Figures::of(&json!({ "jobs": [job(100)] })).unwrap();
        assert_eq!((one.utilisation, one.samples_per_second, one.machines), (Some(90.0), 35.0, 1));
        assert_eq!([90.0, 91.0].map(|least| one.reaches(least)), [Some(true), Some(false)]);
        let short = Figures { steps: 5, ..one.clone() };
        let unknown = Figures { utilisation: None, ..one.clone() };
        assert_eq!([short.reaches(0.0), unknown.reaches(0.0)], [None, None]);
        let all = json!({ "client_stats": [job(100), job(1100), { "jobname": "All clients" }] });
        let both = Figures::of(&all).unwrap();
        assert_eq!((both.utilisation, both.samples, both.bandwidth), (Some(60.0), 140, 1000.0));
        assert_eq!(both.read_ns, Some([100.0, 900.0]));
        assert_eq!(Figures::kept(&both.json(&reader(3))), Some((3, both)));
        assert_eq!(Figures::kept(&json!({ "steps": 3 })), None);
        assert!(Figures::of(&json!({ "jobs": [{ "jobname": "reader" }] })).is_err());
    }
}
