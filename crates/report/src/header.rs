//! The lines before the run: one per job, the version, the number of workers, and the files that are laid out.

use crate::Program;
use crate::units::Units;
use iolite_types::{Direction, PerDirection};

/// The line after that of a job with several workers.
pub const CLONES: &str = "...\n";

/// The facts of a job's header line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobHeader {
    /// The job's name.
    pub name: String,
    /// The run status group of the job.
    pub group: u32,
    /// The pattern, by its keyword: `randrw`.
    pub pattern: String,
    /// Smallest and largest block size in each direction, in bytes.
    pub block_sizes: PerDirection<(u64, u64)>,
    /// Whether read sizes are for sequential I/Os and write sizes for random ones. The line says this in place of a
    /// trim size.
    pub sizes_by_randomness: bool,
    /// The engine's name.
    pub engine: String,
    /// The queue depth.
    pub depth: u32,
    /// The base of units: 1024 or 1000.
    pub kb_base: u32,
    /// Significant figures of numbers.
    pub significant_figures: u32,
    /// Whether several workers run this job. Then a line `...` follows.
    pub clones: bool,
}

/// The line (or two) that announces a job.
pub fn job_header(job: &JobHeader) -> String {
    let units = Units { kb_base: job.kb_base, unit_base: 0, figures: job.significant_figures };
    let range = |direction| {
        let (smallest, largest) = job.block_sizes[direction];
        format!("{}-{}", units.bytes(smallest), units.bytes(largest))
    };
    let third = if job.sizes_by_randomness {
        "bs_is_seq_rand".to_owned()
    } else {
        format!("(T) {}", range(Direction::Trim))
    };
    format!(
        "{}: (g={}): rw={}, bs=(R) {}, (W) {}, {third}, ioengine={}, iodepth={}\n{}",
        job.name,
        job.group,
        job.pattern,
        range(Direction::Read),
        range(Direction::Write),
        job.engine,
        job.depth,
        if job.clones { CLONES } else { "" }
    )
}

/// The line with the number of files found below a directory (`opendir`), after the name of the program.
pub fn files_found(program: &str, files: usize) -> String {
    format!("{program}: opendir added {files} {}\n", if files == 1 { "file" } else { "files" })
}

/// The line with the name and version of the program.
pub fn version(program: &Program) -> String {
    format!("{}\n", program.version)
}

/// The line with the number of workers that start.
pub fn starting(threads: u32, processes: u32) -> String {
    let counted =
        |count: u32, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let threads_text = counted(threads, "thread", "threads");
    let processes_text = counted(processes, "process", "processes");
    match (threads, processes) {
        (0, _) => format!("Starting {processes_text}\n"),
        (_, 0) => format!("Starting {threads_text}\n"),
        _ => format!("Starting {threads_text} and {processes_text}\n"),
    }
}

/// The line that announces the layout of a job's files, with their number and their total bytes.
pub fn laying_out(name: &str, files: u64, bytes: u64) -> String {
    let mebibytes = bytes >> 20;
    match files {
        1 => format!("{name}: Laying out IO file (1 file / {mebibytes}MiB)\n"),
        _ => format!("{name}: Laying out IO files ({files} files / total {mebibytes}MiB)\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs() {
        let mut job = JobHeader {
            name: "mix".into(),
            group: 0,
            pattern: "randrw".into(),
            block_sizes: PerDirection::all((4096, 4096)),
            sizes_by_randomness: false,
            engine: "libaio".into(),
            depth: 16,
            kb_base: 1024,
            significant_figures: 4,
            clones: false,
        };
        assert_eq!(
            job_header(&job),
            "mix: (g=0): rw=randrw, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, \
             iodepth=16\n"
        );
        job.clones = true;
        job.block_sizes = PerDirection::new((1024, 16_384), (4096, 8192), (65_536, 1 << 20));
        assert_eq!(
            job_header(&job),
            "mix: (g=0): rw=randrw, bs=(R) 1024B-16.0KiB, (W) 4096B-8192B, (T) 64.0KiB-1024KiB, \
             ioengine=libaio, iodepth=16\n...\n"
        );
        job.sizes_by_randomness = true;
        assert!(job_header(&job).contains("(W) 4096B-8192B, bs_is_seq_rand, ioengine="));
    }

    #[test]
    fn workers() {
        assert_eq!(starting(0, 1), "Starting 1 process\n");
        assert_eq!(starting(0, 3), "Starting 3 processes\n");
        assert_eq!(starting(4, 0), "Starting 4 threads\n");
        assert_eq!(starting(1, 1), "Starting 1 thread and 1 process\n");
        assert_eq!(starting(3, 2), "Starting 3 threads and 2 processes\n");
    }

    #[test]
    fn files() {
        assert_eq!(laying_out("x", 1, 16 << 20), "x: Laying out IO file (1 file / 16MiB)\n");
        assert_eq!(laying_out("x", 1, 65_536), "x: Laying out IO file (1 file / 0MiB)\n");
        let many = "x: Laying out IO files (1024 files / total 5120MiB)\n";
        assert_eq!(laying_out("x", 1024, 5120 << 20), many);
    }
}
