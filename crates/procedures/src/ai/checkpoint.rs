//! Checkpoints: many ranks write at the same time, until all of it is on stable storage, and read it back.
//!
//! The figures are those of MLPerf Storage 2.0 (rules, section 2.2.3): the duration is that of the slowest rank, and the throughput
//! that of the slowest rank, too.

use super::Section;
use super::place::{Kind, Place, part_of};
use serde_json::{Value, json};

/// Bytes of an I/O on files.
const BLOCK: u64 = 4 << 20;

/// Where ranks write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Files (or objects) of their own, this many.
    Own(u64),
    /// Parts of one file.
    Shared,
}

/// A checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Ranks.
    pub ranks: u64,
    /// Bytes of each.
    pub bytes: u64,
    /// Where they write.
    pub layout: Layout,
}

impl Checkpoint {
    /// The checkpoint, with sizes that are whole blocks: at least as many bytes as asked for.
    pub fn new(ranks: u64, bytes: u64, layout: Layout, place: &Place) -> Checkpoint {
        let parts = match layout {
            Layout::Own(files) => files.max(1),
            Layout::Shared => 1,
        };
        let each = bytes.div_ceil(parts).max(1);
        let block = block(each, place);
        Checkpoint { ranks, bytes: each.next_multiple_of(block) * parts, layout }
    }

    /// Files of a rank; bytes of each.
    fn files(&self) -> (u64, u64) {
        match self.layout {
            Layout::Own(files) => (files.max(1), self.bytes / files.max(1)),
            Layout::Shared => (1, self.bytes),
        }
    }

    /// The name of a file; `None` = all ranks share one.
    fn names(&self, place: &Place) -> (&'static str, String) {
        match self.layout {
            Layout::Own(_) => ("filename_format", place.name("rank.$jobnum.$filenum")),
            Layout::Shared => ("filename", place.name("checkpoint")),
        }
    }

    /// All names that it makes.
    pub fn made(&self, place: &Place) -> Vec<String> {
        match self.layout {
            Layout::Own(files) => (0..self.ranks)
                .flat_map(|rank| (0..files.max(1)).map(move |file| format!("rank.{rank}.{file}")))
                .map(|name| place.name(&name))
                .collect(),
            Layout::Shared => vec![place.name("checkpoint")],
        }
    }

    /// Its jobs: write, and read back. The last one removes what was made.
    pub fn job(&self, place: &Place) -> String {
        let (files, each) = self.files();
        let (option, names) = self.names(place);
        let section = place.of_whole_objects(place.global(), each, part_of(each));
        let is_shared = self.layout == Layout::Shared;
        let global = section
            .set("bs", block(each, place))
            .set(option, names)
            .set_if(files > 1, "nrfiles", files)
            .set_if(files > 1, "file_service_type", "sequential")
            .set_if(is_shared, "size", self.bytes)
            .set_if(is_shared, "offset_increment", self.bytes)
            .set_if(!is_shared, "filesize", each)
            .set_if(self.ranks > 1, "numjobs", self.ranks);
        let write = Section::new("write")
            .set("rw", "write")
            .set_if(place.kind == Kind::Files, "fallocate", "none")
            .set_if(place.kind != Kind::Objects, "end_fsync", 1);
        // The data of ranks that share a file goes when all of them have read.
        let read = Section::new("read").set("stonewall", 1).set("rw", "read").set_if(!is_shared, "unlink", 1);
        let mut text = global.text() + &write.text() + &read.text();
        if is_shared {
            // (The last section of a file of its own: options of all sections apply, and one worker is enough.)
            let remove = Section::new("remove").set("stonewall", 1).set("rw", "read");
            text += &remove.set("number_ios", 1).set("numjobs", 1).set("unlink", 1).set("stats", 0).text();
        }
        text
    }
}

/// Bytes of an I/O on a file of this size.
fn block(bytes: u64, place: &Place) -> u64 {
    match place.kind {
        Kind::Objects => part_of(bytes).min(bytes),
        Kind::Files | Kind::Export | Kind::Device if place.is_direct => {
            BLOCK.min(bytes.next_multiple_of(4096))
        }
        Kind::Files | Kind::Export | Kind::Device => BLOCK.min(bytes),
    }
}

/// What a phase took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Ranks.
    pub ranks: u64,
    /// Bytes of all ranks.
    pub bytes: u64,
    /// Seconds of the fastest and of the slowest rank.
    pub seconds: [f64; 2],
    /// Bytes per second of the slowest rank.
    pub slowest: f64,
}

impl Phase {
    /// What the jobs of this name took.
    ///
    /// # Errors
    /// There are none, or they moved nothing.
    pub fn of(report: &Value, name: &str) -> Result<Phase, String> {
        use iolite_stored::number;
        let ranks: Vec<(f64, f64)> = super::jobs_named(report, name)
            .iter()
            .map(|job| (number(&job[name], "io_bytes"), iolite_stored::runtime(job).max(1e-9)))
            .collect();
        if ranks.iter().all(|(bytes, _)| *bytes == 0.0) {
            return Err(format!("the report has no {name} of ranks"));
        }
        let seconds = ranks.iter().map(|(_, seconds)| *seconds);
        Ok(Phase {
            ranks: ranks.len() as u64,
            bytes: ranks.iter().map(|(bytes, _)| *bytes as u64).sum(),
            seconds: [seconds.clone().fold(f64::INFINITY, f64::min), seconds.fold(0.0, f64::max)],
            slowest: ranks.iter().map(|(bytes, seconds)| bytes / seconds).fold(f64::INFINITY, f64::min),
        })
    }

    /// Bytes per second of all ranks, as the slowest one lets the others wait.
    pub fn bandwidth(&self) -> f64 {
        self.bytes as f64 / self.seconds[1]
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "ranks": self.ranks, "bytes": self.bytes, "fastest_s": self.seconds[0], "slowest_s": self.seconds[1],
            "slowest_rank_bw_bytes": self.slowest, "bw_bytes": self.bandwidth(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::tests::{files, objects};
    use super::*;

    #[test]
    fn ranks_have_files_or_share_one() {
        let own = Checkpoint::new(4, 100 << 20, Layout::Own(2), &files());
        assert_eq!(own.bytes, 104 << 20);
        let job = own.job(&files());
        for line in [
            "filename_format=rank.$jobnum.$filenum",
            "nrfiles=2",
            "filesize=54525952",
            "numjobs=4",
            "end_fsync=1",
        ] {
            assert!(job.contains(&format!("\n{line}\n")), "{line} in {job}");
        }
        assert_eq!(own.made(&files()).len(), 8);
        let shared = Checkpoint::new(4, 8 << 20, Layout::Shared, &files());
        let job = shared.job(&files());
        for line in ["filename=checkpoint", "size=8388608", "offset_increment=8388608", "[remove]"] {
            assert!(job.contains(&format!("{line}\n")), "{line} in {job}");
        }
        // Small ranks are one block.
        assert_eq!(Checkpoint::new(1, 1000, Layout::Own(1), &files()).bytes, 1000);
        let object = Checkpoint::new(1, 20 << 20, Layout::Own(1), &objects());
        assert_eq!(object.bytes, 24 << 20);
        assert!(!object.job(&objects()).contains("end_fsync"));
    }

    #[test]
    fn the_slowest_rank_counts() {
        let rank =
            |ms: u64| json!({ "jobname": "write", "job_runtime": ms, "write": { "io_bytes": 1_000_000 } });
        let phase = Phase::of(&json!({ "jobs": [rank(1000), rank(2000), rank(500)] }), "write").unwrap();
        assert_eq!((phase.ranks, phase.bytes, phase.seconds), (3, 3_000_000, [0.5, 2.0]));
        assert_eq!((phase.slowest, phase.bandwidth()), (500_000.0, 1_500_000.0));
        assert!(Phase::of(&json!({ "jobs": [rank(1)] }), "read").is_err());
    }
}
