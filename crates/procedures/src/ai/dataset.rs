//! The samples of a dataset, and the job that writes them.
//!
//! A file has one sample, or many records of one size. Sizes of files are whole numbers of blocks, the reads of a loader, because
//! jobs read whole blocks. Published sizes vary as a normal distribution; here they are spread evenly over a range that has the
//! same mean and the same standard deviation.

use super::Section;
use super::place::{Kind, Place, part_of};
use serde_json::{Value, json};
use std::ops::Range;

/// The most bytes of a read of files.
const READ: u64 = 1 << 20;
/// The most bytes of an object that is read and written at once.
const WHOLE: u64 = 32 << 20;
/// The units of direct I/O.
const DIRECT: u64 = 4096;
/// The half width of an even distribution, in standard deviations: the root of 3.
const HALF_WIDTH: f64 = 1.732_050_807_568_877_2;
/// The most files. Numbers of files are 32 bits wide.
pub const MOST_FILES: u64 = 1 << 30;

/// The samples of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a read.
    pub block: u64,
    /// The fewest blocks of a file.
    pub least: u64,
    /// The most blocks of a file.
    pub most: u64,
    /// Samples in a file. Each of several is one block.
    pub per_file: u64,
}

impl Shape {
    /// Samples of this mean size, with this standard deviation, so many in each file. The reads suit the place.
    pub fn new(sample: u64, deviation: u64, per_file: u64, place: &Place) -> Shape {
        let align = |bytes: u64| if place.is_direct { bytes.next_multiple_of(DIRECT) } else { bytes };
        if per_file > 1 {
            return Shape { block: align(sample), least: per_file, most: per_file, per_file };
        }
        let most = match place.kind {
            Kind::Objects if sample <= WHOLE => WHOLE,
            Kind::Objects => part_of(sample),
            Kind::Files | Kind::Export | Kind::Device => READ,
        };
        let half = (HALF_WIDTH * deviation as f64 / most as f64).round() as u64;
        let blocks = sample.div_ceil(most);
        if half == 0 || place.kind == Kind::Objects && sample <= WHOLE {
            return Shape { block: align(sample.div_ceil(blocks)), least: blocks, most: blocks, per_file };
        }
        let mean = (sample as f64 / most as f64).round() as u64;
        Shape { block: most, least: mean.saturating_sub(half).max(1), most: mean + half, per_file }
    }

    /// Whether samples of this mean size can have this standard deviation, which is not 0, in this shape.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn check_deviation(&self, sample: u64, deviation: u64) -> Result<(), String> {
        let most = (sample as f64 / HALF_WIDTH) as u64;
        if deviation > most {
            return Err(format!(
                "sizes are spread evenly around {sample} bytes, so that it can be {most} at most (the mean by the root of 3)"
            ));
        }
        if self.least == self.most {
            return Err(format!(
                "all samples would have one size, because sizes are whole numbers of blocks of {} bytes; leave it out",
                self.block
            ));
        }
        Ok(())
    }

    /// The mean bytes of a file.
    pub fn file_bytes(&self) -> u64 {
        self.block.saturating_mul(self.least + self.most) / 2
    }

    /// The mean bytes of a sample.
    pub fn sample_bytes(&self) -> u64 {
        self.file_bytes() / self.per_file.max(1)
    }

    /// Each sample is an object, which is read and written at once.
    pub fn is_whole(&self) -> bool {
        self.per_file == 1 && self.most == 1
    }
}

/// A dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dataset {
    /// Its samples.
    pub shape: Shape,
    /// Its files.
    pub files: u64,
}

impl Dataset {
    /// A dataset with at least this many samples.
    pub fn with_samples(shape: Shape, samples: u64) -> Dataset {
        Dataset { shape, files: samples.div_ceil(shape.per_file.max(1)).max(1) }
    }

    /// All samples.
    pub fn samples(&self) -> u64 {
        self.files.saturating_mul(self.shape.per_file)
    }

    /// Its numbers are so small that all of them can be counted.
    pub fn is_possible(&self) -> bool {
        let Shape { block, most, per_file, .. } = self.shape;
        let bytes = most
            .checked_add(1)
            .and_then(|blocks| blocks.checked_mul(2)?.checked_mul(block)?.checked_mul(self.files));
        self.files <= MOST_FILES && bytes.is_some() && self.files.checked_mul(per_file).is_some()
    }

    /// The number of a sample file, or object, of this dataset that has this name behind the prefix; `None` = it is none of its
    /// names.
    pub fn number_of(&self, place: &Place, name: &str) -> Option<u64> {
        let canonical =
            |digits: &str| digits.parse::<u64>().ok().filter(|number| number.to_string() == digits);
        let number = if self.is_of_blocks(place) {
            let (offset, length) = name.strip_prefix("sample_")?.split_once('_')?;
            let block = canonical(length).filter(|length| *length == self.shape.block)?;
            canonical(offset).filter(|offset| offset.is_multiple_of(block))? / block
        } else {
            canonical(name.strip_prefix("sample.")?)?
        };
        (number < self.files).then_some(number)
    }

    /// The expected bytes.
    pub fn bytes(&self) -> u64 {
        self.files.saturating_mul(self.shape.file_bytes())
    }

    /// Samples are objects of which each is a block of one name.
    pub fn is_of_blocks(&self, place: &Place) -> bool {
        place.kind == Kind::Objects && self.shape.is_whole()
    }

    /// How many of its writers share out the files evenly.
    pub fn writers(&self, most: u64) -> u64 {
        (1..=most.min(self.files)).rev().find(|writers| self.files.is_multiple_of(*writers)).unwrap_or(1)
    }

    /// Bytes of a write: those of a read; or, of objects with many records, a part that has whole records.
    fn part(&self, place: &Place) -> u64 {
        let Shape { block, most, per_file, .. } = self.shape;
        if place.kind != Kind::Objects || per_file == 1 {
            return block;
        }
        let least = part_of(block * most).div_ceil(block);
        let fits = |records: &u64| per_file.is_multiple_of(*records);
        let records = (least..per_file).take(1 << 20).find(fits).filter(|_| place.is_s3());
        records.unwrap_or(per_file) * block
    }

    /// Options of a job whose workers share out files, as many as the first one has of them; `bs`: bytes of an I/O.
    pub(crate) fn shared_out(
        &self,
        section: Section,
        place: &Place,
        files: Range<u64>,
        workers: u64,
        bs: u64,
    ) -> Section {
        let Shape { block, .. } = self.shape;
        let (first, each) = (files.start, files.end - files.start);
        let section = section.set("bs", bs);
        if self.is_of_blocks(place) {
            return section
                .set("filename", place.name("sample"))
                .set_if(first > 0, "offset", first * block)
                .set("size", each * block)
                .set_if(workers > 1, "offset_increment", each * block);
        }
        let section = section
            .set("filename_format", place.name("sample.$filenum"))
            .set("nrfiles", each)
            .set_if(first > 0, "filenum_first", first)
            .set_if(workers > 1, "filenum_increment", each);
        // (Parts are writes. Those of a sample have 6.4 MiB at the least, and stores take 5.)
        place.of_whole_objects(section, self.shape.most * block, self.part(place))
    }

    /// What an interrupted job with this many workers has not written, as ranges of files. Each worker writes its files in their
    /// order; so those behind the first one that is missing are left, and the last one that is there may be incomplete.
    pub fn rest(&self, most_writers: u64, is_there: impl Fn(u64) -> bool) -> Vec<Range<u64>> {
        let writers = self.writers(most_writers);
        let each = self.files / writers;
        let of_writer = |writer: u64| {
            let mut files = writer * each..(writer + 1) * each;
            let end = files.end;
            let missing = files.find(|file| !is_there(*file)).unwrap_or(end);
            missing.saturating_sub(1).max(writer * each)..end
        };
        (0..writers).map(of_writer).collect()
    }

    /// The job that writes it, with this many workers.
    pub fn job(&self, place: &Place, most_writers: u64) -> String {
        let writers = self.writers(most_writers);
        place.global().text() + &self.section(place, 0..self.files / writers, writers)
    }

    /// The job that writes these files of it, with a worker for each range.
    pub fn job_of(&self, place: &Place, ranges: &[Range<u64>]) -> String {
        let sections = ranges.iter().map(|range| self.section(place, range.clone(), 1));
        place.global().text() + &sections.collect::<String>()
    }

    /// The section of workers that write so many files each; the first one writes these.
    fn section(&self, place: &Place, files: Range<u64>, writers: u64) -> String {
        let Shape { block, least, most, .. } = self.shape;
        let each = files.end - files.start;
        let section = Section::new("dataset").set("rw", "write");
        let section = self.shared_out(section, place, files, writers, self.part(place));
        let is_of_blocks = self.is_of_blocks(place);
        let size = if least == most {
            (block * least).to_string()
        } else {
            // A size is drawn by the byte, and rounded down to blocks.
            format!("{}-{}", block * least, block * (most + 1) - 1)
        };
        let section = section
            .set_if(!is_of_blocks, "filesize", size)
            .set_if(!is_of_blocks, "openfiles", 1)
            .set_if(!is_of_blocks && each > 1, "file_service_type", "sequential")
            // Files are made when they are opened, not all of them at the begin.
            .set_if(place.kind == Kind::Files, "create_on_open", 1)
            .set_if(place.kind == Kind::Files, "fallocate", "none")
            .set_if(place.kind == Kind::Files, "end_syncfs", 1)
            .set_if(place.kind == Kind::Export, "fsync_on_close", 1);
        section.set_if(writers > 1, "numjobs", writers).set("group_reporting", 1).text()
    }

    /// What was written, as a report has it: bytes.
    pub fn written(report: &Value) -> u64 {
        let jobs = super::jobs_named(report, "dataset");
        jobs.iter().map(|job| iolite_stored::number(&job["write"], "io_bytes") as u64).sum()
    }

    /// Its description, from which a reader knows it again.
    pub fn described(&self) -> Value {
        let Shape { block, least, most, per_file } = self.shape;
        json!({
            "format": 1, "files": self.files, "samples_per_file": per_file, "block": block,
            "least_blocks": least, "most_blocks": most,
        })
    }

    /// The dataset of a description.
    ///
    /// # Errors
    /// It is damaged, or of a later version.
    pub fn of(description: &Value) -> Result<Dataset, String> {
        let number = |key: &str| {
            let number = description[key].as_u64().filter(|number| (1..=1 << 50).contains(number));
            number.ok_or_else(|| format!("its \"{key}\" is missing or damaged"))
        };
        if number("format")? != 1 {
            return Err("it was made by a later version of this program".to_owned());
        }
        let shape = Shape {
            block: number("block")?,
            least: number("least_blocks")?,
            most: number("most_blocks")?,
            per_file: number("samples_per_file")?,
        };
        let dataset = Dataset { shape, files: number("files")? };
        if shape.least > shape.most || !dataset.is_possible() {
            return Err("its sizes are damaged".to_owned());
        }
        Ok(dataset)
    }

    /// The bytes that a file of it may have.
    pub fn has_size(&self, bytes: u64) -> bool {
        let Shape { block, least, most, .. } = self.shape;
        bytes.is_multiple_of(block) && (least..=most).contains(&(bytes / block))
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::tests::{files, objects};
    use super::*;

    #[test]
    fn sizes_have_the_mean_and_the_deviation() {
        let unet = Shape::new(146_600_628, 68_341_808, 1, &files());
        assert_eq!(unet, Shape { block: 1 << 20, least: 27, most: 253, per_file: 1 });
        assert!((unet.sample_bytes() as f64 / 146_600_628.0 - 1.0).abs() < 0.002);
        let deviation = ((unet.most - unet.least) * unet.block) as f64 / 12f64.sqrt();
        assert!((deviation / 68_341_808.0 - 1.0).abs() < 0.002);
        // A deviation of less than a read is left out.
        let cosmoflow = Shape::new(2_828_486, 71_311, 1, &files());
        assert_eq!(cosmoflow, Shape { block: 942_829, least: 3, most: 3, per_file: 1 });
        let direct = Place { is_direct: true, ..files() };
        assert_eq!(Shape::new(2_828_486, 71_311, 1, &direct).block, 946_176);
        let resnet = Shape::new(114_660, 0, 1251, &files());
        assert_eq!(
            (resnet.block, resnet.sample_bytes(), resnet.file_bytes()),
            (114_660, 114_660, 143_439_660)
        );
        assert_eq!(unet.check_deviation(146_600_628, 68_341_808), Ok(()));
        assert!(cosmoflow.check_deviation(2_828_486, 71_311).unwrap_err().contains("one size"));
        let wide = Shape::new(65_536, 1 << 30, 1, &files());
        assert!(wide.check_deviation(65_536, 1 << 30).unwrap_err().contains("37837 at most"));
        // Objects are read at once, or in large parts.
        assert!(Shape::new(2_828_486, 71_311, 1, &objects()).is_whole());
        assert_eq!(Shape::new(146_600_628, 0, 1, &objects()).most, 18);
    }

    #[test]
    fn writers_share_out_the_files() {
        let shape = Shape::new(1000, 0, 1, &files());
        let writers = |files| Dataset { shape, files }.writers(4);
        assert_eq!([1, 2, 3, 8, 9, 10, 7].map(writers), [1, 2, 3, 4, 3, 2, 1]);
        let dataset = Dataset::with_samples(Shape::new(10, 0, 5, &files()), 12);
        assert_eq!((dataset.files, dataset.samples(), dataset.bytes()), (3, 15, 150));
        let job = Dataset { shape, files: 8 }.job(&files(), 4);
        assert!(job.contains("nrfiles=2\nfilenum_increment=2\nfilesize=1000\n"), "{job}");
        assert!(job.contains("numjobs=4\n"), "{job}");
        let varied =
            Dataset { shape: Shape { block: 10, least: 2, most: 4, per_file: 1 }, files: 1 }.job(&files(), 1);
        assert!(varied.contains("filesize=20-49\n"), "{varied}");
    }

    #[test]
    fn objects_of_records_have_parts_of_whole_records() {
        let resnet = Dataset { shape: Shape::new(114_660, 0, 1251, &objects()), files: 4 };
        let job = resnet.job(&objects(), 2);
        assert!(job.contains("bs=15937740\n") && job.contains("http_s3_multipart_size=15937740\n"), "{job}");
        // Small ones are written at once; so are those that cannot be divided.
        let small = Dataset { shape: Shape::new(1000, 0, 50, &objects()), files: 4 };
        let job = small.job(&objects(), 2);
        assert!(job.contains("bs=50000\n") && !job.contains("multipart"), "{job}");
        let prime = Dataset { shape: Shape::new(1 << 20, 0, 101, &objects()), files: 4 };
        let job = prime.job(&objects(), 2);
        assert!(job.contains("bs=105906176\n") && !job.contains("multipart"), "{job}");
        assert!(resnet.job(&files(), 2).contains("bs=114660\n"));
    }

    #[test]
    fn what_is_left_begins_with_the_file_that_may_be_incomplete() {
        let dataset = Dataset { shape: Shape::new(1000, 0, 1, &files()), files: 12 };
        let there = [0, 1, 2, 4, 8, 9, 10, 11];
        let rest = dataset.rest(3, |file| there.contains(&file));
        assert_eq!(rest, [2..4, 4..8, 11..12]);
        assert_eq!(dataset.rest(3, |_| false), [0..4, 4..8, 8..12]);
        let job = dataset.job_of(&files(), &rest);
        assert!(
            job.contains("nrfiles=2\nfilenum_first=2\n") && job.contains("nrfiles=4\nfilenum_first=4\n"),
            "{job}"
        );
        assert!(!job.contains("numjobs"), "{job}");
        let dataset = Dataset { shape: Shape::new(1000, 0, 1, &objects()), files: 12 };
        let job = dataset.job_of(&objects(), &rest);
        assert!(job.contains("filename=/bucket/sample\noffset=2000\nsize=2000\n"), "{job}");
    }

    #[test]
    fn descriptions_are_read_again() {
        let dataset = Dataset { shape: Shape::new(146_600_628, 68_341_808, 1, &files()), files: 168 };
        assert_eq!(Dataset::of(&dataset.described()), Ok(dataset));
        assert!(
            dataset.has_size(27 << 20) && !dataset.has_size(26 << 20) && !dataset.has_size((27 << 20) + 1)
        );
        let damages =
            [("format", 2), ("block", 0), ("least_blocks", 300), ("files", 1_u64 << 31), ("block", 1 << 50)];
        for (key, value) in damages {
            let mut damaged = dataset.described();
            damaged[key] = value.into();
            assert!(Dataset::of(&damaged).is_err(), "{key}");
        }
        assert!(Dataset::of(&Value::Null).is_err());
    }

    #[test]
    fn only_names_of_samples_belong_to_a_dataset() {
        let of = |place: &Place, names: &[&str]| -> Vec<Option<u64>> {
            let dataset = Dataset { shape: Shape::new(1000, 0, 1, place), files: 12 };
            names.iter().map(|name| dataset.number_of(place, name)).collect()
        };
        assert_eq!(of(&files(), &["sample.0", "sample.11"]), [Some(0), Some(11)]);
        let others = [
            "sample.12",
            "sample.01",
            "sample.+1",
            "sample.csv",
            "sample.1.csv",
            "samples/thesis.pdf",
            "sample",
        ];
        assert_eq!(of(&files(), &others), [None; 7]);
        assert_eq!(of(&objects(), &["sample_0_1000", "sample_11000_1000"]), [Some(0), Some(11)]);
        let others = [
            "sample_12000_1000",
            "sample_500_1000",
            "sample_0_500",
            "sample.0",
            "sample_0_1000.bak",
            "sample.csv",
        ];
        assert_eq!(of(&objects(), &others), [None; 6]);
    }
}
