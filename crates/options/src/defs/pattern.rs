//! The pattern of the I/O: directions, offsets, block sizes.

use crate::BlockSizes;
use crate::definition::{Category, Definition, Kind, Limits};
use crate::values::{block_size_split, distribution, per_direction, range, read_write, split};

const fn pattern(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Pattern, kind, help)
}

/// Directions and block sizes.
pub static BLOCKS: &[Definition] = &[
    pattern(
        "rw",
        Kind::Str,
        "Directions of the I/O, in sequence or at random; :N changes how offsets advance",
    )
    .aliases(&["readwrite"])
    .default("read")
    .keywords(&[
        ("read", "Reads in sequence"),
        ("write", "Writes in sequence"),
        ("trim", "Trims in sequence"),
        ("randread", "Reads at random"),
        ("randwrite", "Writes at random"),
        ("randtrim", "Trims at random"),
        ("rw", "Reads and writes mixed, each in sequence"),
        ("readwrite", "Same as rw"),
        ("randrw", "Reads and writes mixed, at random"),
        ("trimwrite", "Each block is trimmed, then written, in sequence"),
        ("randtrimwrite", "Each block is trimmed, then written, at random"),
    ])
    .lands(|job, given| {
        let keywords = given.definition.keywords;
        (job.pattern.rw, job.pattern.rw_modifier) =
            read_write(given.required()?, keywords, given.kb_base, &mut given.notes)?;
        Ok(())
    }),
    pattern("bs", Kind::Int, "Block size in bytes, for all directions or as reads,writes,trims")
        .under("rw")
        .aliases(&["blocksize"])
        .default("4096")
        .min(1)
        .lands(|job, given| given.numbers_into(&mut job.pattern.bs)),
    pattern(
        "ba",
        Kind::Int,
        "Align random offsets to a multiple of this; by default, to the smallest block size",
    )
    .under("rw")
    .aliases(&["blockalign"])
    .min(1)
    .lands(|job, given| given.numbers_into(&mut job.pattern.ba)),
    pattern("bsrange", Kind::Range, "Smallest and largest block size; each I/O picks one between")
        .under("rw")
        .aliases(&["blocksize_range"])
        .limits(Limits::OnlyMin(1))
        .lands(|job, given| {
            let mut sizes = job.pattern.block_sizes.clone();
            let parts = per_direction(given.required()?, &[',', '/'], &mut given.notes)?;
            for (of_direction, part) in sizes.values.iter_mut().zip(parts) {
                if let Some(part) = part {
                    *of_direction = BlockSizes::Range(range(part, given.kb_base, false, &mut given.notes)?);
                }
            }
            given.notes.dedup();
            job.pattern.block_sizes = sizes;
            Ok(())
        }),
    pattern(
        "bssplit",
        Kind::Str,
        "Mix of block sizes with their shares: 4k/60:64k/40, per direction with commas",
    )
    .under("rw")
    .lands(|job, given| {
        let mut sizes = job.pattern.block_sizes.clone();
        // An entry contains no comma, so the directions can be split first.
        let parts = per_direction(given.required()?, &[','], &mut given.notes)?;
        for (of_direction, part) in sizes.values.iter_mut().zip(parts) {
            if let Some(part) = part {
                let split = block_size_split(part, given.kb_base, &mut given.notes)?;
                *of_direction = if split.is_empty() { BlockSizes::One } else { BlockSizes::Split(split) };
            }
        }
        given.notes.dedup();
        job.pattern.block_sizes = sizes;
        Ok(())
    }),
    pattern(
        "bs_unaligned",
        Kind::Flag,
        "Sizes between the ends of a range need not be multiples of the smallest",
    )
    .under("rw")
    .aliases(&["blocksize_unaligned"])
    .lands(put!(pattern.bs_unaligned, boolean())),
    pattern(
        "bs_is_seq_rand",
        Kind::Bool,
        "The first block size is for sequential I/O, the second for random I/O",
    )
    .under("rw")
    .default("0")
    .lands(put!(pattern.bs_is_seq_rand, boolean())),
    pattern("randrepeat", Kind::Bool, "The same random choices in every run")
        .under("rw")
        .aliases(&["allrandrepeat"])
        .default("1")
        .lands(put!(pattern.randrepeat, boolean())),
    pattern("randseed", Kind::Str, "Seed of all random choices of the job")
        .under("rw")
        .default("0x89")
        .lands(|job, given| {
            let seed = given.integer()?;
            // A negative seed is valid: its bits are used.
            job.pattern.randseed = match i64::try_from(seed) {
                Ok(seed) => seed as u64,
                Err(_) => u64::try_from(seed).map_err(|_| "a seed has 64 bits".to_owned())?,
            };
            Ok(())
        }),
    pattern("norandommap", Kind::Flag, "Do not keep track of blocks: some may come twice, some never")
        .under("rw")
        .lands(put!(pattern.norandommap, boolean())),
    pattern("softrandommap", Kind::Bool, "Run without a block map if there is no memory for one")
        .under("norandommap")
        .default("0")
        .lands(put!(pattern.softrandommap, boolean())),
    pattern("sprandom", Kind::Bool, "Write so that a flash device ends up as after long random writing")
        .default("0")
        .lands(put!(pattern.sprandom, boolean())),
    pattern("spr_op", Kind::FloatList, "Over-provisioning that sprandom assumes of the device")
        .under("sprandom")
        .default("0.15")
        .lands(|job, given| match given.floats(1)?[..] {
            [ratio] if ratio > 0.0 && ratio < 1.0 => {
                job.pattern.spr_op = ratio;
                Ok(())
            }
            _ => Err("must be between 0 and 1: 0.15 is 15% more flash than addresses".to_owned()),
        }),
    pattern("spr_cs", Kind::Int, "Cache size that sprandom assumes of the device")
        .under("sprandom")
        .default("0")
        .min(0)
        .lands(put!(pattern.spr_cs, number())),
    pattern("spr_num_regions", Kind::Int, "Number of regions into which sprandom divides the device")
        .under("sprandom")
        .default("100")
        .min(0)
        .lands(|job, given| match given.number()? {
            0 => Err("must be at least 1".to_owned()),
            regions => {
                job.pattern.spr_num_regions = regions;
                Ok(())
            }
        }),
];

/// The order of offsets.
pub static SEQUENCE: &[Definition] =
    &[pattern("rw_sequencer", Kind::Str, "Which offsets come between the random ones of rw=…:N")
        .default(crate::Sequencer::DEFAULT)
        .keywords(&[("sequential", "Go on in sequence"), ("identical", "Stay where they are")])
        .lands(put_keyword!(pattern.rw_sequencer, Sequencer))];

/// How random offsets are generated.
pub static RANDOM: &[Definition] = &[
    pattern("random_generator", Kind::Str, "Generator of random offsets")
        .default(crate::RandomGenerator::DEFAULT)
        .keywords(&[
            ("tausworthe", "Pseudo random numbers, up to 2^32 blocks"),
            ("lfsr", "A shift register that visits each block once without a map"),
            ("tausworthe64", "Pseudo random numbers of 64 bits"),
        ])
        .lands(put_keyword!(pattern.random_generator, RandomGenerator)),
    pattern("random_distribution", Kind::Str, "How random offsets are spread over the file")
        .default("random")
        .keywords(&[
            ("random", "Evenly"),
            ("zipf", "Few blocks often, by a Zipf distribution"),
            ("pareto", "Few blocks often, by a Pareto distribution"),
            ("normal", "Many blocks nearly as often, by a normal distribution"),
            ("zoned", "By zones given in percent"),
            ("zoned_abs", "By zones given in bytes"),
            ("sequence", "These blocks in this order, over and over"),
        ])
        .lands(|job, given| {
            let keywords = given.definition.keywords;
            job.pattern.random_distribution =
                distribution(given.required()?, keywords, given.kb_base, &mut given.notes)?;
            Ok(())
        }),
    pattern(
        "random_sequence_stride",
        Kind::Bool,
        "Let each repetition of random_distribution=sequence start where the last one ended",
    )
    .default("0")
    .lands(put!(pattern.random_sequence_stride, boolean())),
    pattern("percentage_random", Kind::Int, "Percent of the offsets of a random workload that are random")
        .default("100,100,100")
        .range(0, 100)
        .lands(|job, given| given.numbers_into(&mut job.pattern.percentage_random)),
];

/// The mix of reads and writes.
pub static MIX: &[Definition] = &[
    pattern("rwmixread", Kind::Int, "Percent of reads in a mixed workload")
        .default("50")
        .range(0, 100)
        .lands(|job, given| {
            job.pattern.rwmixread = percent(given)?.unwrap_or(100);
            job.pattern.rwtmix = None;
            Ok(())
        }),
    pattern(
        "rwmixwrite",
        Kind::Int,
        "Percent of writes in a mixed workload; the later of the two options counts",
    )
    .default("50")
    .range(0, 100)
    .lands(|job, given| {
        job.pattern.rwmixread = percent(given)?.map_or(100, |writes| 100 - writes);
        job.pattern.rwtmix = None;
        Ok(())
    }),
];

/// A percentage, which the option's limits keep within 0 and 100; `None` = for fio, there are only reads.
fn percent(given: &mut crate::definition::Given<'_>) -> Result<Option<u32>, String> {
    if split(given.required()?, &[',']).iter().any(|part| part.ends_with('%')) {
        let what = "is in percent already, without a % sign";
        given.notes.ignore(what.to_owned(), "; with it, all I/Os are reads, as with fio")?;
        return Ok(None);
    }
    given.number().map(Some)
}
