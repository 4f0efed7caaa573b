use super::*;
use iolite_options::{ReadWrite, ZoneShare};
use iolite_types::PerDirection;

const MIB: u64 = 1 << 20;

fn regular(size: Option<u64>) -> FileFacts {
    FileFacts { kind: FileKind::Regular, size }
}

fn block(size: u64) -> FileFacts {
    FileFacts { kind: FileKind::Block, size: Some(size) }
}

fn run(facts: &[FileFacts], clone: u32, change: impl FnOnce(&mut JobOptions)) -> Result<Layout, LayoutError> {
    let mut options = JobOptions::default();
    change(&mut options);
    let files: Vec<_> =
        facts.iter().enumerate().map(|(i, facts)| (PathBuf::from(format!("f{i}")), *facts)).collect();
    layout(
        &options,
        LayoutContext {
            clone,
            facets: iolite_options::engines::engine("psync").unwrap().facets,
            seed: 12345,
        },
        &files,
    )
}

fn size(bytes: u64) -> impl Fn(&mut JobOptions) {
    move |options| options.extent.size = Some(SizeValue::Bytes(bytes))
}

#[test]
fn size_is_shared_out_over_the_files() {
    let layout = run(&[regular(None); 5], 0, size(10 * MIB)).unwrap();
    assert!(layout.files.iter().all(|file| file.length == 2 * MIB && file.extend_to == Some(2 * MIB)));
    let layout = run(&[regular(None); 3], 0, size(MIB)).unwrap();
    assert!(layout.files.iter().all(|file| file.length == 349_525));
}

#[test]
fn filesize_overrides_size_which_becomes_the_amount() {
    let both = |o: &mut JobOptions| {
        size(300 << 10)(o);
        o.extent.filesize = Some(Range { low: MIB, high: MIB });
    };
    let layout = run(&[regular(None); 3], 0, both).unwrap();
    assert!(layout.files.iter().all(|file| file.length == MIB));
    assert_eq!(layout.bytes_per_pass(), 300 << 10);
    let layout = run(&[regular(None); 3], 0, |o| {
        both(o);
        o.extent.io_size = Some(SizeValue::Bytes(5 * MIB));
    });
    assert_eq!(layout.unwrap().bytes_per_pass(), 5 * MIB);
}

#[test]
fn a_larger_file_keeps_its_size_and_a_smaller_one_grows() {
    assert_eq!(run(&[regular(Some(4 * MIB))], 0, size(MIB)).unwrap().files[0].extend_to, None);
    let grown = run(&[regular(Some(4 * MIB))], 0, |o| {
        size(5 * MIB)(o);
        o.extent.offset = SizeValue::Bytes(MIB);
    });
    assert_eq!(grown.unwrap().files[0].extend_to, Some(6 * MIB));
}

#[test]
fn zones_in_bytes_lie_within_the_files() {
    let of = |rw, zones: [u64; 2], offset| {
        run(&[regular(Some(4 * MIB))], 0, |o| {
            o.pattern.rw = rw;
            o.extent.offset = SizeValue::Bytes(offset);
            let zones = zones.map(|size| ZoneShare { share: 50, size: SizeValue::Bytes(size) }).to_vec();
            o.pattern.random_distribution =
                RandomDistribution::Zoned(PerDirection::new(zones.clone(), Vec::new(), Vec::new()));
        })
    };
    assert!(of(ReadWrite::RandRead, [MIB, 3 * MIB], 0).is_ok());
    let refused = of(ReadWrite::RandRead, [MIB, 3 * MIB], MIB).unwrap_err();
    let told = "zoned_abs sizes exceed file size: the zones of reads have 4194304 bytes, and f0 has 3145728 to work on";
    assert!(refused.to_string().contains(told), "{refused}");
    // Zones of directions that are not used, and of jobs that are not random, mean nothing.
    assert!(of(ReadWrite::RandWrite, [20 << 30, 100 << 30], 0).is_ok());
    assert!(of(ReadWrite::Read, [20 << 30, 100 << 30], 0).is_ok());
}

/// Lengths of regions, sizes to extend to, and the files left out.
type Found = (Vec<u64>, Vec<Option<u64>>, LeftOut);

/// The layout for files of these sizes that were found.
fn found(sizes: &[u64], change: impl Fn(&mut JobOptions)) -> Result<Found, LayoutError> {
    let facts: Vec<_> = sizes.iter().map(|&size| regular(Some(size))).collect();
    let layout = run(&facts, 0, |o| {
        o.files.opendir = Some("d".into());
        change(o);
    })?;
    let lengths = layout.files.iter().map(|file| file.length).collect();
    Ok((lengths, layout.files.iter().map(|file| file.extend_to).collect(), layout.left_out))
}

#[test]
fn found_files_stay_as_large_as_they_are() {
    let sizes = [9, MIB, 0, 10_000, 4096];
    let out = LeftOut { empty: 1, short: 1, block: 4096 };
    let kept = |lengths: &[u64]| Ok((lengths.to_vec(), vec![None; lengths.len()], out));
    for rw in [ReadWrite::RandRead, ReadWrite::Write, ReadWrite::RandRw] {
        let of = |change: &dyn Fn(&mut JobOptions)| {
            found(&sizes, |o| {
                o.pattern.rw = rw;
                change(o);
            })
        };
        assert_eq!(of(&|_| ()), kept(&[MIB, 10_000, 4096]));
        // Sequential I/O takes the block in which its share ends.
        let share = if rw.is_random() { 10_000 } else { 12_288 };
        assert_eq!(of(&size(30_000)), kept(&[share, 10_000, 4096]), "each of three has a share");
        assert_eq!(of(&size(1 << 40)), kept(&[MIB, 10_000, 4096]));
        assert_eq!(of(&|o| o.extent.fill_device = true), kept(&[MIB, 10_000, 4096]));
        assert_eq!(
            of(&|o| o.extent.size = Some(SizeValue::Percent(50))).map(|found| found.2),
            Err(LayoutError::SmallerThanBlock { path: "f4".into(), length: 2048, block: 4096 })
        );
    }
}

#[test]
fn found_files_grow_only_if_a_writer_gives_their_size() {
    let filesize = |o: &mut JobOptions| o.extent.filesize = Some(Range { low: MIB, high: MIB });
    let writes = |o: &mut JobOptions| o.pattern.rw = ReadWrite::Write;
    let sizes = [4096, 0];
    let limited = found(&sizes, filesize).unwrap();
    assert_eq!((limited.0, limited.1, limited.2.empty), (vec![4096], vec![None], 1));
    let grown = found(&sizes, |o| {
        filesize(o);
        writes(o);
    });
    assert_eq!(grown.unwrap().1, [Some(MIB), Some(MIB)]);
    let appended = found(&sizes, |o| {
        size(2 * MIB)(o);
        writes(o);
        o.extent.file_append = true;
    });
    assert_eq!(appended.unwrap().1, [Some(MIB + 4096), Some(MIB)]);
    // A reader finds nothing behind the end.
    let nothing = found(&sizes, |o| o.extent.file_append = true).unwrap_err();
    let text = "opendir=d: there is nothing to work on; 2 files are left out: 1 empty, 1 with less than one block \
                (4096 bytes)";
    assert_eq!(nothing.to_string(), text);
}

#[test]
fn files_left_out_are_reported() {
    let words = |empty, short| LeftOut { empty, short, block: 512 }.in_words();
    assert_eq!(words(0, 0), None);
    assert_eq!(words(1, 0).unwrap(), "1 file is left out: empty");
    assert_eq!(words(2, 0).unwrap(), "2 files are left out: empty");
    assert_eq!(words(0, 1).unwrap(), "1 file is left out: less than one block (512 bytes)");
}

#[test]
fn verified_regular_files_are_whole_whatever_their_size() {
    let is_whole = |facts, verifies: bool, offset| {
        let layout = run(&[facts], 0, |o| {
            size(MIB)(o);
            o.extent.offset = SizeValue::Bytes(offset);
            o.verification.verify =
                if verifies { iolite_options::Verify::Md5 } else { iolite_options::Verify::None };
        });
        layout.unwrap().files[0].is_whole
    };
    let longer = regular(Some(4 * MIB));
    assert!(is_whole(regular(None), false, 0) && is_whole(regular(None), true, 0));
    assert!(!is_whole(longer, false, 0) && is_whole(longer, true, 0));
    assert!(!is_whole(longer, true, 4096) && !is_whole(regular(None), true, 4096));
    assert!(!is_whole(block(4 * MIB), true, 0) && is_whole(block(MIB), true, 0));
}

#[test]
fn without_a_size_the_existing_file_size_is_used() {
    let layout = run(&[regular(Some(4 * MIB))], 0, |o| o.extent.offset = SizeValue::Bytes(MIB)).unwrap();
    assert_eq!((layout.files[0].offset, layout.files[0].length), (MIB, 3 * MIB));
    assert!(matches!(run(&[regular(None)], 0, |_| {}), Err(LayoutError::NoSize { .. })));
    assert!(matches!(run(&[regular(Some(0))], 0, |_| {}), Err(LayoutError::NoSize { .. })));
}

#[test]
fn percentages_are_of_the_real_size() {
    let layout = run(&[regular(Some(6 * MIB))], 0, |o| {
        o.extent.offset = SizeValue::Percent(50);
        o.extent.size = Some(SizeValue::Percent(25));
    });
    let file = &layout.unwrap().files[0];
    assert_eq!((file.offset, file.length), (3 * MIB, 3 * MIB / 2));
}

#[test]
fn shares_are_rounded_up_to_the_alignment() {
    // 33% of 1 MiB is 346 030 bytes; the values are those of fio.
    let start = |clone, offset, increment, align| {
        let layout = run(&[regular(Some(MIB))], clone, |o| {
            size(8192)(o);
            o.extent.offset = offset;
            o.extent.offset_increment = increment;
            o.extent.offset_align = align;
        });
        layout.unwrap().files[0].offset
    };
    use SizeValue::{Bytes, Percent};
    assert_eq!(start(0, Percent(33), Bytes(0), 0), 348_160);
    assert_eq!(start(0, Percent(33), Bytes(0), 65_536), 393_216);
    assert_eq!(start(2, Bytes(0), Percent(33), 0), 692_224);
    assert_eq!(start(1, Percent(33), Bytes(10_240), 0), 356_352);
    assert_eq!(start(0, Bytes(10_240), Percent(33), 0), 12_288);
    assert_eq!(start(1, Bytes(10_240), Bytes(10_240), 16_384), 20_480);
}

#[test]
fn devices_clip_and_clones_step() {
    let file = &run(&[block(64 * MIB)], 0, size(100 * MIB)).unwrap().files[0];
    assert_eq!((file.length, file.extend_to), (64 * MIB, None));
    let file = &run(&[block(64 * MIB)], 2, |o| {
        size(16 * MIB)(o);
        o.extent.offset_increment = SizeValue::Bytes(16 * MIB);
    })
    .unwrap()
    .files[0];
    assert_eq!((file.offset, file.length), (32 * MIB, 16 * MIB));
    let behind = run(&[block(64 * MIB)], 0, |o| o.extent.offset = SizeValue::Bytes(65 * MIB));
    assert!(matches!(behind, Err(LayoutError::OffsetBehindEnd { .. })));
}

#[test]
fn a_region_smaller_than_a_block_is_refused() {
    assert!(matches!(run(&[regular(None)], 0, size(1024)), Err(LayoutError::SmallerThanBlock { .. })));
    let small = run(&[regular(None)], 0, |o| {
        size(1024)(o);
        o.pattern.rw = ReadWrite::Write;
        o.pattern.bs[iolite_types::Direction::Write] = 512;
    });
    assert!(small.is_ok());
}

#[test]
fn file_sizes_from_a_range_stay_in_it() {
    let layout = run(&[regular(None); 50], 0, |o| {
        o.extent.filesize = Some(Range { low: 100 << 10, high: MIB });
    });
    let sizes: Vec<u64> = layout.unwrap().files.iter().map(|file| file.length).collect();
    assert!(sizes.iter().all(|size| (100 << 10..=MIB).contains(size) && size % 4096 == 0));
    assert!(sizes.iter().any(|&size| size != sizes[0]));
}

#[test]
fn appending_starts_at_the_end() {
    let layout = run(&[regular(Some(MIB))], 0, |o| {
        size(MIB)(o);
        o.extent.file_append = true;
        o.pattern.rw = ReadWrite::Write;
    });
    let file = &layout.unwrap().files[0];
    assert_eq!((file.offset, file.length, file.extend_to), (MIB, MIB, Some(2 * MIB)));
}

#[test]
fn filesize_is_the_size_of_the_file_not_of_the_region() {
    let region = |facts, offset, filesize: u64, size: Option<SizeValue>| {
        let layout = run(&[facts], 0, |o| {
            o.extent.offset = offset;
            o.extent.filesize = Some(Range { low: filesize, high: filesize });
            o.extent.size = size;
        })?;
        let file = &layout.files[0];
        Ok((file.offset, file.length, file.extend_to))
    };
    use SizeValue::{Bytes, Percent};
    const KIB: u64 = 1024;
    assert_eq!(region(regular(None), Bytes(900 * KIB), MIB, None), Ok((900 * KIB, 124 * KIB, Some(MIB))));
    assert_eq!(region(regular(None), Bytes(256 * KIB), MIB, None), Ok((256 * KIB, 768 * KIB, Some(MIB))));
    assert_eq!(region(regular(Some(4 * MIB)), Bytes(0), MIB, None), Ok((0, MIB, None)));
    // Percentages are of the filesize, and start at the offset.
    assert_eq!(region(regular(None), Bytes(0), MIB, Some(Percent(50))), Ok((0, MIB / 2, Some(MIB / 2))));
    assert_eq!(
        region(regular(None), Bytes(256 * KIB), MIB, Some(Percent(50))),
        Ok((256 * KIB, MIB / 2, Some(768 * KIB)))
    );
    assert!(matches!(
        region(regular(None), Bytes(2 * MIB), MIB, None),
        Err(LayoutError::OffsetBehindEnd { size: MIB, .. })
    ));
    assert!(matches!(
        region(regular(None), Bytes(MIB), MIB, None),
        Err(LayoutError::SmallerThanBlock { .. })
    ));
}

#[test]
fn io_size_is_a_share_of_the_region_that_filesize_and_size_give() {
    let layout = run(&[regular(None)], 0, |o| {
        o.extent.filesize = Some(Range { low: MIB, high: MIB });
        o.extent.size = Some(SizeValue::Percent(50));
        o.extent.io_size = Some(SizeValue::Percent(25));
    });
    assert_eq!(layout.unwrap().bytes_per_pass(), 128 << 10);
}

#[test]
fn filling_a_device_ends_with_the_size_where_one_is_given() {
    let fill = |o: &mut JobOptions| {
        o.extent.fill_device = true;
        o.pattern.rw = ReadWrite::Write;
    };
    let zero = FileFacts { kind: FileKind::Char, size: None };
    for facts in [regular(None), zero] {
        let layout = run(&[facts], 0, |o| {
            fill(o);
            size(MIB)(o);
        });
        assert_eq!(layout.unwrap().files[0].length, MIB);
        assert!(run(&[facts], 0, fill).unwrap().files[0].length > 1 << 62);
    }
}

#[test]
fn filled_files_have_the_size_they_reached() {
    let layout = run(&[regular(None); 3], 0, |o| {
        o.extent.fill_device = true;
        o.extent.offset = SizeValue::Bytes(4096);
    });
    let sizes = |path: &Path| if path == Path::new("f0") { 21_000 } else { 5000 };
    let reached = layout.unwrap().reached(4096, sizes);
    assert_eq!(reached.files.len(), 1);
    assert_eq!((reached.files[0].length, reached.files[0].extend_to), (16_384, Some(21_000)));
    assert_eq!(reached.bytes_per_pass(), 16_384);
}

#[test]
fn files_without_a_size_are_not_reported_as_missing() {
    for (kind, words) in [(FileKind::Char, "is a character device"), (FileKind::Pipe, "is a pipe")] {
        let facts = FileFacts { kind, size: None };
        let error = run(&[facts], 0, |_| {}).unwrap_err().to_string();
        assert!(error.contains("need to specify size=") && error.contains(words), "{error}");
        let percent = run(&[facts], 0, |o| o.extent.size = Some(SizeValue::Percent(50))).unwrap_err();
        assert!(percent.to_string().contains(words), "{percent}");
    }
}
