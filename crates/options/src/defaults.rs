//! The values that a job starts with: those that the option tables declare.

use crate::definition::Definition;
use crate::values::Given;
use crate::*;
use iolite_types::PerDirection;
use std::collections::BTreeMap;

impl Default for JobOptions {
    /// A job to which nothing was given.
    fn default() -> Self {
        let mut job = unset();
        let engines = engines::engines().iter().flat_map(|engine| engine.options.iter().copied());
        for definition in registry::job_options().chain(engines) {
            land_default(&mut job, definition);
        }
        job
    }
}

fn land_default(job: &mut JobOptions, definition: &'static Definition) {
    let (Some(text), Some(land)) = (definition.default, definition.land) else {
        return;
    };
    let mut given = Given { definition, text: Some(text), kb_base: 1024, notes: Vec::new() };
    if let Err(reason) = land(job, &mut given) {
        panic!("the default of option {} does not land: {reason}", definition.name);
    }
}

/// All options off, empty or zero; what the tables have a default for is overwritten.
fn unset() -> JobOptions {
    JobOptions {
        name: String::new(),
        description: None,
        wait_for: None,
        loops: 0,
        numjobs: 0,
        thread: false,
        stonewall: false,
        new_group: false,
        group_reporting: false,
        exitall: false,
        exitall_on_error: false,
        exit_what: ExitWhat::Group,
        startdelay: None,
        runtime: 0,
        time_based: false,
        ramp_time: 0,
        stats: false,

        directory: Vec::new(),
        filename: Vec::new(),
        filename_format: String::new(),
        unique_filename: false,
        opendir: None,
        nrfiles: 0,
        openfiles: 0,
        file_service_type: FileService { kind: FileServiceKind::RoundRobin, ios: 1 },
        filesize: None,
        size: None,
        io_size: None,
        offset: SizeValue::Bytes(0),
        offset_increment: SizeValue::Bytes(0),
        offset_align: 0,
        file_append: false,
        fill_device: false,
        number_ios: 0,
        create_serialize: false,
        create_fsync: false,
        create_on_open: false,
        create_only: false,
        allow_file_create: false,
        allow_mounted_write: false,
        overwrite: false,
        fallocate: Fallocate::None,
        pre_read: false,
        invalidate: false,
        fadvise_hint: FadviseHint::None,
        unlink: false,
        unlink_each_loop: false,
        lockfile: LockFile::None,
        filetype: FileType::None,

        rw: ReadWrite::Read,
        rw_modifier: ReadWriteModifier(0),
        rw_sequencer: Sequencer::Sequential,
        rwmixread: 0,
        percentage_random: PerDirection::all(0),
        bs: PerDirection::all(0),
        ba: PerDirection::all(0),
        bsrange: None,
        bssplit: None,
        bs_unaligned: false,
        bs_is_seq_rand: false,
        norandommap: false,
        softrandommap: false,
        random_generator: RandomGenerator::Tausworthe,
        random_distribution: RandomDistribution::Random,
        random_sequence_stride: false,
        zonemode: ZoneMode::None,
        zonesize: 0,
        zonerange: 0,
        zoneskip: ZoneSkip::Bytes(0),
        sprandom: false,
        spr_op: 0.0,
        spr_cs: 0,
        spr_num_regions: 0,
        randrepeat: false,
        randseed: 0,

        direct: false,
        sync: SyncMode::None,
        fsync: 0,
        fdatasync: 0,
        sync_file_range: None,
        write_barrier: 0,
        end_fsync: false,
        end_syncfs: false,
        fsync_on_close: false,

        zero_buffers: false,
        refill_buffers: false,
        scramble_buffers: false,
        buffer_pattern: Vec::new(),
        buffer_compress_percentage: 0,
        buffer_compress_chunk: 0,
        dedupe_percentage: 0,
        dedupe_mode: DedupeMode::Repeat,
        dedupe_working_set_percentage: 0,
        dedupe_global: false,
        mem: MemoryKind::Malloc,
        mem_file: None,
        iomem_align: 0,
        lockmem: 0,
        hugepage_size: 0,

        iodepth: 0,
        iodepth_batch: 0,
        iodepth_batch_complete_min: 0,
        iodepth_batch_complete_max: 0,
        iodepth_low: 0,
        thinktime: 0,
        thinktime_spin: 0,
        thinkcycles: 0,
        thinktime_blocks: 0,
        thinktime_blocks_type: ThinktimeBlocks::Complete,
        thinktime_iotime: 0,
        rate: PerDirection::all(0),
        rate_min: PerDirection::all(0),
        rate_process: RateProcess::Linear,
        rate_cycle: 0,
        rate_ignore_thinktime: false,
        rate_iops: PerDirection::all(0),
        rate_iops_min: PerDirection::all(0),
        max_latency: PerDirection::all(0),
        latency_target: 0,
        latency_window: 0,
        latency_percentile: 0.0,
        latency_run: false,
        comm: None,
        uid: None,
        gid: None,
        exec_prerun: None,
        exec_postrun: None,
        serialize_overlap: false,

        cpus_allowed: Vec::new(),
        cpus_allowed_policy: CpusPolicy::Shared,
        numa_cpu_nodes: Vec::new(),
        numa_mem_policy: None,
        nice: 0,
        prio: None,
        prioclass: None,
        priohint: None,

        continue_on_error: ErrorKinds::NONE,
        ignore_error: IgnoredErrors::default(),
        error_dump: false,

        clocksource: None,
        gtod_reduce: false,
        disable_lat: false,
        disable_clat: false,
        disable_slat: false,
        disable_bw: false,
        clat_percentiles: false,
        lat_percentiles: false,
        slat_percentiles: false,
        percentile_list: Vec::new(),
        unified_rw_reporting: UnifiedReporting::None,
        lat_from_intended_start: false,
        significant_figures: 0,
        kb_base: 1024,
        unit_base: 0,
        disk_util: false,
        bwavgtime: 0,
        iopsavgtime: 0,

        ioengine: String::new(),
        engine: EngineOptions {
            hipri: false,
            hipri_percentage: 0,
            uncached: false,
            nowait: false,
            fixedbufs: false,
            registerfiles: false,
            sqthread_poll: false,
            sqthread_poll_cpu: None,
            nonvectored: None,
            force_async: 0,
            userspace_reap: false,
            libaio_vectored: false,
            thp: false,
            cmdprio_percentage: PerDirection::all(0),
            cmdprio_class: PerDirection::all(0),
            cmdprio: PerDirection::all(0),
            cmdprio_hint: PerDirection::all(0),
            cmdprio_bssplit: PerDirection::default(),
        },

        given: Vec::new(),
        given_global: Vec::new(),
        origins: BTreeMap::new(),
    }
}
