//! Decisions that depend on several options, made once.
//!
//! Code that needs one of these decisions calls these functions, and does not read the options that it depends on.

use crate::engines::{
    AsFio, Capability, EngineInfo, Facets, IoUringCmdOptions, NetOptions, NvmeWriteMode, Protocol, chosen,
};
use crate::name::refusal;
use crate::{
    BlockSizes, DataPlacement, JobOptions, PatternOptions, RandomDistribution, Range, ReadWrite, SubmitMode,
    ZoneMode, registry,
};
use iolite_types::{BlockSize, Direction, PerDirection};
use std::fmt;

impl ReadWrite {
    /// Whether the workload has I/Os of this direction.
    pub fn uses(self, direction: Direction) -> bool {
        match direction {
            Direction::Read => self.reads(),
            Direction::Write => self.writes(),
            Direction::Trim => self.trims(),
        }
    }

    /// The directions of the workload.
    pub fn directions(self) -> impl Iterator<Item = Direction> {
        Direction::ALL.into_iter().filter(move |&direction| self.uses(direction))
    }

    /// Whether the workload writes or trims.
    pub fn changes(self) -> bool {
        self.writes() || self.trims()
    }
}

/// How many I/Os of a direction are random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Randomness {
    None,
    Some,
    All,
}

impl JobOptions {
    /// Whether the time to the first byte of an answer is measured.
    pub fn has_first_bytes(&self) -> bool {
        self.engine.makes_requests() && !self.measurement.disable_clat
    }

    /// The block sizes of the job's I/Os in a direction. With `bs_is_seq_rand`, the place of a size stands for
    /// sequential or random I/Os instead of a direction.
    pub fn block_size(&self, direction: Direction) -> BlockSize {
        if !self.pattern.bs_is_seq_rand {
            return self.block_size_as_given(direction);
        }
        let (sequential, random) =
            (self.block_size_as_given(Direction::Read), self.block_size_as_given(Direction::Write));
        match self.randomness(direction) {
            Randomness::None => sequential,
            Randomness::All => random,
            Randomness::Some => sequential.or(&random),
        }
    }

    /// The block sizes at the place of a direction in `bs`, `bsrange` or `bssplit`.
    pub fn block_size_as_given(&self, direction: Direction) -> BlockSize {
        let bs = self.pattern.bs[direction];
        match &self.pattern.block_sizes[direction] {
            BlockSizes::One => BlockSize::Fixed(bs),
            BlockSizes::Split(split) => {
                BlockSize::Split(split.iter().map(|entry| (entry.size, entry.percent)).collect())
            }
            BlockSizes::Range(range) => {
                let [low, high] = [range.low, range.high].map(|end| if end == 0 { bs } else { end });
                match low == high {
                    true => BlockSize::Fixed(low),
                    false => BlockSize::Range(low.min(high), low.max(high)),
                }
            }
        }
    }

    /// Whether the block size of an I/O depends on whether this I/O is random.
    pub fn mixes_sizes_by_randomness(&self) -> bool {
        self.pattern.bs_is_seq_rand
            && self.pattern.rw.directions().any(|direction| self.randomness(direction) == Randomness::Some)
    }

    fn randomness(&self, direction: Direction) -> Randomness {
        let has_runs = self.pattern.rw_modifier.0 > 1;
        match self.pattern.percentage_random[direction] {
            _ if !self.pattern.rw.is_random() => Randomness::None,
            0 => Randomness::None,
            100.. if !has_runs => Randomness::All,
            _ => Randomness::Some,
        }
    }

    /// The option that leaves `bs` without effect, if there is one: it determines the block sizes of every direction
    /// that the job uses.
    pub fn instead_of_bs(&self) -> Option<&'static str> {
        let decides = |direction: Direction| match self.pattern.block_sizes[direction] {
            BlockSizes::Split(_) => Some("bssplit"),
            BlockSizes::Range(Range { low: 1.., high: 1.. }) => Some("bsrange"),
            BlockSizes::Range(_) | BlockSizes::One => None,
        };
        let deciding: Option<Vec<_>> = self.pattern.rw.directions().map(decides).collect();
        deciding?.first().copied()
    }

    /// The smallest block size of the directions that the job uses, at least 1.
    pub fn smallest_block(&self) -> u64 {
        self.pattern
            .rw
            .directions()
            .map(|direction| self.block_size(direction).min())
            .min()
            .unwrap_or(1)
            .max(1)
    }

    /// The size of all blocks of the job; `None` = they differ, or a trace determines them.
    pub fn only_block(&self) -> Option<u64> {
        let mut sizes = self.pattern.rw.directions().flat_map(|direction| {
            let size = self.block_size(direction);
            [size.min(), size.max()]
        });
        let first = sizes.next().filter(|_| !self.is_replay())?;
        sizes.all(|size| size == first).then_some(first)
    }

    /// The job's engine, with the facets that follow from its own options; `None` = no engine has this name.
    pub fn chosen_engine(&self) -> Option<EngineInfo> {
        chosen(&self.ioengine, &self.engine)
    }

    /// Whether a worker can have more than one I/O in flight with an engine of these facets. With threads that submit,
    /// this is possible with any engine.
    pub fn can_queue(&self, facets: Facets) -> bool {
        !facets.is_synchronous() || self.depth.io_submit_mode == SubmitMode::Offload
    }

    /// The most I/Os that a worker has in flight with an engine of these facets.
    pub fn most_in_flight(&self, facets: Facets) -> u32 {
        if self.can_queue(facets) { self.depth.iodepth } else { 1 }
    }

    /// Whether the job waits until its peer connects, rather than connecting to it.
    pub fn waits_for_peer(&self) -> bool {
        let receives = self.pattern.rw.reads();
        self.engine.of::<NetOptions>().map_or(receives, |net| net.waits(receives))
    }

    /// Whether the job replays traces, which determine its I/O instead of its other options.
    pub fn is_replay(&self) -> bool {
        !self.replay.read_iolog.is_empty()
    }

    /// Whether the job finds its files in a directory, so that it does not own them.
    pub fn finds_files(&self) -> bool {
        self.files.opendir.is_some() && !self.is_replay()
    }

    /// Whether the I/O goes from zone to zone (`zonemode=strided`).
    pub fn walks_through_zones(&self) -> bool {
        self.zones.zonemode == ZoneMode::Strided
    }

    /// Whether the job verifies the writes of an earlier run, using the state that the run left behind.
    pub fn loads_state(&self) -> bool {
        self.verification.is_on() && self.verification.verify_state_load
    }

    /// Whether the job uses the files as an earlier run has left them, to verify them.
    pub fn relies_on_earlier_run(&self) -> bool {
        self.verification.verify_only || self.loads_state()
    }

    /// The option by which the job names its CPUs.
    pub fn affinity_option(&self) -> &'static str {
        if self.is_set("cpus_allowed") { "cpus_allowed" } else { "cpumask" }
    }

    /// Whether its files are files and devices of this machine. (This is assumed for an unknown engine.)
    pub fn has_files_here(&self) -> bool {
        let is_socket = self.engine.of::<NetOptions>().is_some_and(|own| own.protocol == Protocol::Unix);
        is_socket || self.chosen_engine().is_none_or(|engine| engine.facets.has_local_files())
    }

    /// The local files that the job names, each with the option that names it. (Files that a server address may contain
    /// are not included.)
    pub fn files_named(&self) -> Vec<(&'static str, String)> {
        let own = self.chosen_engine().map_or(&[][..], |engine| engine.options);
        let all = registry::job_options().chain(own.iter().copied());
        all.filter_map(|option| Some((option.name, option.files?(self))))
            .flat_map(|(name, files)| files.into_iter().map(move |file| (name, file)))
            .filter(|(_, file)| !file.is_empty())
            .collect()
    }

    /// Whether the job goes through its writes without performing them, because an earlier run has done so
    /// (`verify_only`).
    pub fn skips_writes(&self) -> bool {
        self.verification.verify_only && self.pattern.rw.writes()
    }

    /// Whether the job exists to make its files: it writes, trims or only creates them. A job that only reads makes
    /// files as well, but only because it needs them.
    pub fn makes_files(&self) -> bool {
        self.pattern.rw.changes() || self.files.create_only
    }

    /// Whether the job's files have to stay as long as they are (`allow_file_create=0`). Appending is a way to say that
    /// they become longer.
    pub fn keeps_lengths(&self) -> bool {
        let grows_as_with_fio = self.files.create_on_open && self.as_fio;
        !self.files.allow_file_create && !self.extent.file_append && !grows_as_with_fio
    }

    /// Whether the job checks the writes of an earlier run, whose workload may have been written any number of times. If
    /// blocks were trimmed after they were written, it depends on the number of passes which ones.
    pub fn checks_any_pass(&self) -> bool {
        self.skips_writes() && !self.loads_state() && self.verification.trim_percentage == 0
    }

    /// Whether the job has writes and issues them itself.
    pub fn issues_writes(&self) -> bool {
        self.pattern.rw.writes() && !self.verification.verify_only
    }

    /// The option by which the job asks for verification, if it does.
    pub fn verification_option(&self) -> Option<&'static str> {
        match self.verification.is_on() {
            true => Some("verify"),
            false => self.verification.verify_only.then_some("verify_only"),
        }
    }

    /// Whether the job writes or trims in this run, rather than only verifying an earlier run.
    pub fn changes_data(&self) -> bool {
        self.pattern.rw.changes() && !self.skips_writes() && !self.loads_state() && !self.files.create_only
    }

    /// The option by which a job that writes requests syncs.
    pub fn sync_asked_for(&self) -> Option<&'static str> {
        let (durability, writes) = (&self.durability, self.pattern.rw.changes());
        let asked = [
            ("fsync", durability.fsync > 0),
            ("fdatasync", durability.fdatasync > 0),
            ("sync_file_range", durability.sync_file_range.is_some()),
            ("end_fsync", durability.end_fsync),
            ("end_syncfs", durability.end_syncfs),
            ("fsync_on_close", durability.fsync_on_close),
        ];
        asked.into_iter().find(|&(_, asked)| asked && writes).map(|(option, _)| option)
    }

    /// Whether the job's own writes are verified by comparison in the device (`verify_mode=compare`). Its reads are not
    /// compared, as with fio.
    pub fn compares_by_device(&self) -> bool {
        self.engine.of::<IoUringCmdOptions>().is_some_and(|own| own.compares) && self.verifies_writes()
    }

    /// Whether writes leave their place in a zone to the device (`write_mode=append`).
    pub fn appends(&self) -> bool {
        let own = self.engine.of::<IoUringCmdOptions>();
        own.is_some_and(|own| own.write_mode.has(NvmeWriteMode::Append)) && self.pattern.rw.writes()
    }

    /// The option by which the job says where the device places its writes, if it does.
    pub fn placement_option(&self) -> Option<&'static str> {
        let option = if self.is_set("dataplacement") { "dataplacement" } else { "fdp" };
        let places = self.data_placement.dataplacement != DataPlacement::None && self.pattern.rw.writes();
        places.then_some(option)
    }

    /// Whether a pass goes on where the last one has ended, at the end of its files (`file_append`): then all passes are one.
    /// Random I/O without a map, or a walk through strided zones, has no place where it goes on.
    pub fn passes_go_on(&self) -> bool {
        let pattern = &self.pattern;
        let is_even = pattern.random_distribution == RandomDistribution::Random;
        let has_no_map = pattern.rw.is_random() && (pattern.norandommap || !is_even);
        self.extent.file_append && !has_no_map && !self.is_replay() && !self.walks_through_zones()
    }

    /// Whether the job writes logs of its I/O.
    pub fn writes_logs(&self) -> bool {
        self.logs.any()
    }

    /// The schedule of rates, if its times are those of the job: pauses do not move it (`rate_ignore_thinktime`).
    pub fn fixed_schedule(&self) -> Option<&crate::RateSchedule> {
        self.rates.rate_schedule.as_ref().filter(|_| !self.rates.rate_ignore_thinktime)
    }

    /// Whether the stages of I/Os are measured.
    pub fn measures_stages(&self) -> bool {
        (self.measurement.stages || self.logs.write_stages_log.is_some()) && !self.files.create_only
    }

    /// The direction whose blocks are verified: writes, or else reads.
    pub fn verified_direction(&self) -> Direction {
        if self.pattern.rw.writes() { Direction::Write } else { Direction::Read }
    }

    /// The size of the flash behind a device, as a multiple of what can be addressed. Preconditioning (`sprandom`) writes
    /// that much.
    pub fn flash_share(&self) -> f64 {
        if self.pattern.sprandom { 1.0 + self.pattern.spr_op.max(0.0) } else { 1.0 }
    }

    /// Whether the job has writes, and they are verified: in this run, or by a later one.
    pub fn verifies_writes(&self) -> bool {
        self.verification.is_on() && self.pattern.rw.writes()
    }

    /// Makes the job behave as with fio where the two differ: the engine by its own options; images and disks stay
    /// where they are whatever `unlink` says; a job that only reads creates the directories of its files, and what is
    /// made by writing (`create_on_open`, objects) is made despite `allow_file_create=0`.
    pub fn be_as_fio(&mut self, readonly: bool) {
        self.as_fio = true;
        let has_limit = ["http_timeout", "ceph_timeout"].iter().any(|option| self.is_set(option));
        self.engine.be_as_fio(AsFio { has_limit, readonly });
        if self.chosen_engine().is_some_and(|engine| engine.facets.can(Capability::FixedSize)) {
            (self.files.unlink, self.files.unlink_each_loop) = (false, false);
        }
    }

    /// The reason why the job is refused; under the name `fio`, behind fio's sentence about the same mistake.
    pub fn reason(&self, in_fio: impl fmt::Display, reason: String) -> String {
        refusal(self.as_fio, in_fio, reason)
    }

    /// Whether the job verifies any data in this run.
    pub fn verifies(&self) -> bool {
        self.verification.is_on() && !self.files.create_only
    }

    /// Whether the workload itself mixes reads and writes. (The mix of a trace is always the same.)
    pub fn is_read_write_mix(&self) -> bool {
        self.pattern.rw.reads() && self.pattern.rw.writes() && !self.is_replay()
    }

    /// Whether the job reads back its own writes, or those of an earlier run.
    pub fn reads_back(&self) -> bool {
        let verification = &self.verification;
        self.loads_state() || (self.verifies_writes() && (verification.do_verify || verification.verify_only))
    }

    /// The percentages of the directions of a mix that are drawn.
    pub fn mix(&self) -> Option<PerDirection<u32>> {
        let PatternOptions { rw, rwmixread: reads, rwtmix, .. } = &self.pattern;
        match rw {
            ReadWrite::Rw | ReadWrite::RandRw => Some(PerDirection::new(*reads, 100 - reads, 0)),
            ReadWrite::RwTrim | ReadWrite::RandRwTrim => *rwtmix,
            _ => None,
        }
    }

    /// Whether the direction of the next I/O is drawn. A mix in which one direction has 100% leaves no choice.
    pub fn has_choice(&self) -> bool {
        self.mix().is_some_and(|shares| !shares.values.contains(&100))
    }

    /// The option by which the workload trims, as it was given.
    pub fn trim_option(&self) -> (&'static str, String) {
        match self.pattern.rwtmix {
            Some(PerDirection { values: [reads, writes, trims] }) if self.pattern.rw.reads() => {
                ("rwtmix", format!("rwtmix={reads}/{writes}/{trims}"))
            }
            _ => ("rw", format!("rw={}", self.pattern.rw.name())),
        }
    }

    /// Whether the I/Os of a direction have a rate.
    pub fn has_rate(&self, direction: Direction) -> bool {
        let rates = &self.rates;
        rates.rate[direction] > 0 || rates.rate_iops[direction] > 0 || rates.rate_schedule.is_some()
    }

    /// Whether rates decide the direction of the next I/O of a mix.
    pub fn is_steered(&self) -> bool {
        self.has_choice() && self.pattern.rw.directions().any(|direction| self.has_rate(direction))
    }

    /// Whether the job ends after a number of I/Os, not counting those of its ramp.
    pub fn counts_after_ramp(&self) -> bool {
        self.extent.number_ios > 0 && (self.schedule.ramp_time > 0 || self.schedule.ramp_size > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PatternOptions, SplitEntry};
    use iolite_types::PerDirection;

    #[test]
    fn a_split_or_a_range_of_a_direction_takes_the_place_of_its_size() {
        let mut job = JobOptions {
            pattern: PatternOptions { bs: PerDirection::new(4096, 8192, 512), ..PatternOptions::default() },
            ..JobOptions::default()
        };
        assert_eq!(job.block_size(Direction::Write), BlockSize::Fixed(8192));
        let range = |low, high| BlockSizes::Range(Range { low, high });
        job.pattern.block_sizes = PerDirection::new(range(1024, 4096), range(2048, 2048), range(0, 1024));
        assert_eq!(job.block_size(Direction::Read), BlockSize::Range(1024, 4096));
        assert_eq!(job.block_size(Direction::Write), BlockSize::Fixed(2048));
        assert_eq!(job.block_size(Direction::Trim), BlockSize::Range(512, 1024));
        let entries = vec![SplitEntry { size: 4096, percent: 30 }, SplitEntry { size: 512, percent: 70 }];
        job.pattern.block_sizes[Direction::Read] = BlockSizes::Split(entries);
        assert_eq!(job.block_size(Direction::Read), BlockSize::Split(vec![(4096, 30), (512, 70)]));
    }

    #[test]
    fn sizes_of_sequential_and_random_io_are_those_of_any_direction() {
        let sizes = PerDirection::new(65_536, 4096, 512);
        let mut job = JobOptions {
            pattern: PatternOptions { bs: sizes, bs_is_seq_rand: true, ..PatternOptions::default() },
            ..JobOptions::default()
        };
        for (rw, percent, run, expected, smallest) in [
            (ReadWrite::Write, 100, 1, BlockSize::Fixed(65_536), 65_536),
            (ReadWrite::RandRead, 100, 1, BlockSize::Fixed(4096), 4096),
            (ReadWrite::RandRead, 0, 1, BlockSize::Fixed(65_536), 65_536),
            (ReadWrite::RandRw, 50, 1, BlockSize::Split(vec![(65_536, 0), (4096, 0)]), 4096),
            (ReadWrite::RandRead, 100, 8, BlockSize::Split(vec![(65_536, 0), (4096, 0)]), 4096),
        ] {
            job.pattern.rw = rw;
            job.pattern.percentage_random = PerDirection::all(percent);
            job.pattern.rw_modifier.0 = run;
            for direction in rw.directions() {
                assert_eq!(job.block_size(direction), expected, "{rw:?} {percent} {run}");
            }
            assert_eq!(job.smallest_block(), smallest, "{rw:?} {percent} {run}");
        }
    }

    #[test]
    fn only_directions_that_are_used_count_for_the_smallest_block() {
        let sizes = PerDirection::new(4096, 512, 256);
        let smallest = |rw| {
            JobOptions {
                pattern: PatternOptions { rw, bs: sizes, ..PatternOptions::default() },
                ..JobOptions::default()
            }
            .smallest_block()
        };
        assert_eq!(smallest(ReadWrite::RandRead), 4096);
        assert_eq!(smallest(ReadWrite::Rw), 512);
        assert_eq!(smallest(ReadWrite::TrimWrite), 256);
    }

    #[test]
    fn a_job_changes_data_unless_an_earlier_run_has_done_that() {
        let changes = |rw, change: &dyn Fn(&mut JobOptions)| {
            let mut job = JobOptions {
                pattern: PatternOptions { rw, ..PatternOptions::default() },
                ..JobOptions::default()
            };
            change(&mut job);
            job.changes_data()
        };
        let verify_only = |job: &mut JobOptions| job.verification.verify_only = true;
        assert!(changes(ReadWrite::Write, &|_| ()) && changes(ReadWrite::RandTrim, &|_| ()));
        assert!(!changes(ReadWrite::RandRead, &|_| ()));
        assert!(!changes(ReadWrite::RandRw, &verify_only));
        assert!(changes(ReadWrite::Trim, &verify_only), "there are no writes to verify");
        assert!(!changes(ReadWrite::Write, &|job| job.files.create_only = true));
        assert!(!changes(ReadWrite::Write, &|job| {
            job.verification.verify = crate::Verify::Md5;
            job.verification.verify_state_load = true;
        }));
    }
}
