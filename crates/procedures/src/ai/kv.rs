//! A cache of keys and values: what inference keeps of the prompts that it has seen, in blocks.
//!
//! Requests of each tenant come at random, at a mean rate, whether or not the storage keeps up. Each asks for a number of blocks
//! that follow each other. A part of all blocks is found (a hit), and read; the others were computed anew, and are written, for
//! which as many old ones are evicted. Hits are in one file of the tenant, new blocks in others, so that what is read is always
//! there, and the shares are exact.

use super::Section;
use super::place::{Kind, Place};
use serde_json::{Value, json};

/// The most files of new blocks that a tenant has at a time, before all of them are evicted.
const GENERATION: u64 = 256;
/// The most reads of a tenant that are in flight behind the first block of a request.
const DEPTH: u64 = 8;

/// How old blocks go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// Each block is a file, which is removed.
    Unlink,
    /// The block (an object, or a part of a device) is discarded, then written anew.
    Trim,
    /// It is overwritten.
    Overwrite,
}

impl Eviction {
    /// As the option has it.
    pub fn word(self) -> &'static str {
        match self {
            Eviction::Unlink => "unlink",
            Eviction::Trim => "trim",
            Eviction::Overwrite => "overwrite",
        }
    }
}

/// A cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// Bytes of a block.
    pub block: u64,
    /// Bytes of each tenant.
    pub bytes: u64,
    /// The rate of each tenant: requests per second.
    pub rates: Vec<f64>,
    /// Blocks of a request.
    pub blocks: u64,
    /// Blocks that are found, in percent.
    pub hit_percent: f64,
    /// How old blocks go.
    pub eviction: Eviction,
    /// Seconds.
    pub seconds: u64,
}

/// What a tenant's requests ask of the storage, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Load {
    /// Reads of the first blocks.
    first: u64,
    /// Reads of further blocks.
    further: u64,
    /// Writes.
    write: u64,
}

impl Cache {
    fn load(&self, rate: f64) -> Load {
        let hits = self.hit_percent / 100.0;
        let bytes = |blocks: f64| (rate * blocks * self.block as f64).round() as u64;
        let blocks = self.blocks as f64;
        Load {
            first: bytes(hits),
            further: bytes(hits * (blocks - 1.0)),
            write: bytes((1.0 - hits) * blocks),
        }
    }

    /// Blocks of a tenant.
    fn held(&self) -> u64 {
        (self.bytes / self.block).max(1)
    }

    /// The files of new blocks, each of one.
    fn generation(&self) -> u64 {
        self.held().min(GENERATION)
    }

    /// The names that it makes, with the blocks in which they are kept, if they are.
    pub fn made(&self, place: &Place) -> Vec<String> {
        let of_tenant = |tenant: usize| {
            let mut names = vec![format!("hits.{tenant}")];
            match self.eviction {
                Eviction::Unlink => {
                    names.extend((0..self.generation()).map(|file| format!("new.{tenant}.{file}")))
                }
                Eviction::Trim | Eviction::Overwrite => names.push(format!("new.{tenant}")),
            }
            names
        };
        (0..self.rates.len()).flat_map(of_tenant).map(|name| place.name(&name)).collect()
    }

    /// The options that say where the hits of a tenant are, or its new blocks: a file, or a part of a device.
    fn data(&self, section: Section, place: &Place, what: &str, tenant: usize) -> Section {
        let size = self.held() * self.block;
        let section = if place.kind == Kind::Device {
            section.set("offset", (2 * tenant as u64 + u64::from(what == "new")) * size)
        } else {
            section.set("filename", place.name(&format!("{what}.{tenant}")))
        };
        section.set("size", size)
    }

    /// Its jobs.
    pub fn job(&self, place: &Place) -> String {
        let mut text = place.global().set("bs", self.block).text();
        let names =
            |tenant: usize| [("fill", "hits"), ("fill-new", "new")].map(|(job, file)| (job, file, tenant));
        for (job, file, tenant) in (0..self.rates.len()).flat_map(names) {
            if file == "new" && !self.begins_full(tenant) {
                continue;
            }
            let section = Section::new(&format!("{job}-{tenant}")).set("rw", "write");
            let section = self.data(section, place, file, tenant);
            text += &section.set_if(place.kind != Kind::Objects, "end_fsync", 1).text();
        }
        let mut is_first = true;
        for (tenant, &rate) in self.rates.iter().enumerate() {
            let load = self.load(rate);
            let hits = |section| self.data(section, place, "hits", tenant).set("norandommap", 1);
            let mut section = |name: &str, rate: u64| {
                let section = Section::new(&format!("{name}-{tenant}"));
                section
                    .set_if(std::mem::take(&mut is_first), "stonewall", 1)
                    .set("time_based", 1)
                    .set("runtime", self.seconds)
                    .set("rate", rate)
                    .set("rate_process", "poisson")
                    .set("lat_from_intended_start", 1)
            };
            if load.first > 0 {
                text += &hits(section("first", load.first).set("rw", "randread")).text();
            }
            if load.further > 0 {
                let further =
                    section("further", load.further).set("rw", format!("randread:{}", self.blocks - 1));
                let is_deep = matches!(place.kind, Kind::Files | Kind::Device);
                let further = hits(further).set_if(is_deep, "ioengine", "io_uring");
                text += &further.set_if(is_deep, "iodepth", DEPTH.min(self.blocks - 1).max(1)).text();
            }
            if load.write > 0 {
                text += &self.new_blocks(section("new", load.write), place, tenant).text();
            }
        }
        if place.kind != Kind::Device && (place.kind != Kind::Files || place.is_on_machines) {
            text += &self.removal(place);
        }
        text
    }

    /// Whether the place of a tenant's new blocks is filled before, so that each of them evicts an old one. (Files that are
    /// removed make room for a generation at once.)
    fn begins_full(&self, tenant: usize) -> bool {
        self.eviction != Eviction::Unlink && self.load(self.rates[tenant]).write > 0
    }

    /// The job that writes new blocks.
    fn new_blocks(&self, section: Section, place: &Place, tenant: usize) -> Section {
        match self.eviction {
            Eviction::Unlink => section
                .set("rw", "write")
                .set("filename_format", place.name(&format!("new.{tenant}.$filenum")))
                .set("nrfiles", self.generation())
                .set("filesize", self.block)
                .set("openfiles", 1)
                .set_if(self.generation() > 1, "file_service_type", "sequential")
                .set("create_on_open", 1)
                .set("unlink_each_loop", 1)
                .set("unlink", 1),
            Eviction::Trim => self.data(section.set("rw", "trimwrite"), place, "new", tenant),
            Eviction::Overwrite => self.data(section.set("rw", "write"), place, "new", tenant),
        }
    }

    /// The job that removes what the others have made where nobody else does.
    fn removal(&self, place: &Place) -> String {
        let mut text = String::new();
        for tenant in 0..self.rates.len() {
            for name in ["hits", "new"] {
                if name == "new" && !self.begins_full(tenant) {
                    continue;
                }
                let section =
                    Section::new(&format!("remove-{name}-{tenant}")).set("stonewall", 1).set("rw", "write");
                let section = section.set("filename", place.name(&format!("{name}.{tenant}")));
                let section = section.set("size", self.held() * self.block).set("number_ios", 1);
                text += &section.set("unlink", 1).set("stats", 0).text();
            }
        }
        text
    }
}

/// What a tenant got.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Its requests per second on all machines, as asked for.
    pub rate: f64,
    /// Times to the first block in nanoseconds, from the moment of the request: median, 99%.
    pub first_ns: Option<[f64; 2]>,
    /// Latencies of all reads, from their moment: 99%.
    pub read_p99_ns: Option<f64>,
    /// Latencies of writes, from their moment: 99%.
    pub write_p99_ns: Option<f64>,
    /// Bytes per second that were read and written, and those asked for.
    pub read: [f64; 2],
    /// Likewise of writes.
    pub write: [f64; 2],
    /// Blocks that were read, written, evicted.
    pub blocks: [u64; 3],
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Of each tenant.
    pub tenants: Vec<Tenant>,
    /// Times to the first block of all tenants: median, 99%.
    pub first_ns: Option<[f64; 2]>,
    /// Latencies of all reads: 99%.
    pub read_p99_ns: Option<f64>,
    /// Reads of all, in percent of all blocks.
    pub hit_percent: f64,
}

impl Figures {
    /// The figures of a report.
    ///
    /// # Errors
    /// It is not a report of such jobs.
    pub fn of(report: &Value, cache: &Cache) -> Result<Figures, String> {
        let jobs = |name: &str, tenant: usize| super::jobs_named(report, &format!("{name}-{tenant}"));
        let tenants = || 0..cache.rates.len();
        let two = |latencies: &[&Value]| {
            let bins = super::bins_of(latencies.iter().copied());
            let percentile = |percent| iolite_stored::percentile_of_bins(&bins, percent);
            percentile(50.0).zip(percentile(99.0)).map(|(p50, p99)| [p50, p99])
        };
        let latencies = |jobs: &[&'_ Value], direction: &str| -> Vec<Value> {
            jobs.iter().map(|job| job[direction]["lat_from_intended_start_ns"].clone()).collect()
        };
        let measured = |jobs: &[&Value], direction: &str| {
            let values = latencies(jobs, direction);
            two(&values.iter().collect::<Vec<_>>())
        };
        let mut all_first = Vec::new();
        let mut all_reads = Vec::new();
        let mut found = Vec::new();
        for tenant in tenants() {
            let first = jobs("first", tenant);
            let reads = [first.clone(), jobs("further", tenant)].concat();
            let new = jobs("new", tenant);
            let sum = |jobs: &[&Value], direction: &str, key: &str| -> f64 {
                jobs.iter().fold(0.0, |sum, job| sum + iolite_stored::number(&job[direction], key))
            };
            // Each machine has such tenants.
            let machines = first.len().max(new.len()).max(1) as u64;
            let load = cache.load(cache.rates[tenant]);
            all_first.extend(latencies(&first, "read"));
            all_reads.extend(latencies(&reads, "read"));
            let written = sum(&new, "write", "total_ios") as u64;
            let evicted = new.iter().map(|job| evicted(cache, job)).sum();
            found.push(Tenant {
                rate: cache.rates[tenant] * machines as f64,
                first_ns: measured(&first, "read"),
                read_p99_ns: measured(&reads, "read").map(|values| values[1]),
                write_p99_ns: measured(&new, "write").map(|values| values[1]),
                read: [sum(&reads, "read", "bw_bytes"), (machines * (load.first + load.further)) as f64],
                write: [sum(&new, "write", "bw_bytes"), (machines * load.write) as f64],
                blocks: [sum(&reads, "read", "total_ios") as u64, written, evicted],
            });
        }
        let [read, written] =
            [0, 1].map(|kind| found.iter().map(|tenant| tenant.blocks[kind]).sum::<u64>() as f64);
        if read + written == 0.0 {
            return Err("the report has no blocks".to_owned());
        }
        let of = |values: &[Value]| two(&values.iter().collect::<Vec<_>>());
        Ok(Figures {
            tenants: found,
            first_ns: of(&all_first),
            read_p99_ns: of(&all_reads).map(|values| values[1]),
            hit_percent: 100.0 * read / (read + written),
        })
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let tenants: Vec<Value> = self
            .tenants
            .iter()
            .map(|tenant| {
                json!({
                    "rate": tenant.rate,
                    "first_block_p50_ns": tenant.first_ns.map(|values| values[0]),
                    "first_block_p99_ns": tenant.first_ns.map(|values| values[1]),
                    "read_p99_ns": tenant.read_p99_ns, "write_p99_ns": tenant.write_p99_ns,
                    "read_bw_bytes": tenant.read[0], "read_bw_bytes_asked": tenant.read[1],
                    "write_bw_bytes": tenant.write[0], "write_bw_bytes_asked": tenant.write[1],
                    "blocks_read": tenant.blocks[0], "blocks_written": tenant.blocks[1],
                    "blocks_evicted": tenant.blocks[2],
                })
            })
            .collect();
        json!({
            "first_block_p50_ns": self.first_ns.map(|values| values[0]),
            "first_block_p99_ns": self.first_ns.map(|values| values[1]),
            "read_p99_ns": self.read_p99_ns, "hit_percent": self.hit_percent, "tenants": tenants,
        })
    }
}

/// Old blocks that the job of a tenant's new blocks has evicted. (At the end everything is removed; that is no eviction.)
fn evicted(cache: &Cache, new: &Value) -> u64 {
    let ios = |direction: &str| iolite_stored::number(&new[direction], "total_ios") as u64;
    match cache.eviction {
        Eviction::Unlink => ios("write").saturating_sub(1) / cache.generation() * cache.generation(),
        Eviction::Trim => ios("trim"),
        Eviction::Overwrite => ios("write"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::tests::{files, objects};
    use super::*;

    fn cache(eviction: Eviction) -> Cache {
        Cache {
            block: 1 << 20,
            bytes: 64 << 20,
            rates: vec![10.0, 40.0],
            blocks: 4,
            hit_percent: 75.0,
            eviction,
            seconds: 5,
        }
    }

    #[test]
    fn hits_are_read_and_the_rest_is_written() {
        // 10 requests of 4 blocks a second: of 40 blocks, 30 are found, and a quarter of these begin a request.
        let load = cache(Eviction::Overwrite).load(10.0);
        let blocks = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        assert_eq!((blocks(load.first), blocks(load.further), blocks(load.write)), (7.5, 22.5, 10.0));
        let job = cache(Eviction::Unlink).job(&files());
        for line in ["[first-0]", "[further-1]", "rw=randread:3", "unlink_each_loop=1", "nrfiles=64"] {
            assert!(job.contains(&format!("{line}\n")), "{line} in {job}");
        }
        assert_eq!(job.matches("stonewall=1\n").count(), 1);
        let job = cache(Eviction::Trim).job(&objects());
        assert!(job.contains("[fill-new-0]\nrw=write\nfilename=/bucket/new.0\n"), "{job}");
        assert!(
            job.contains("rw=trimwrite\nfilename=/bucket/new.1\n") && job.contains("[remove-new-1]\n"),
            "{job}"
        );
        let device = Place {
            kind: Kind::Device,
            options: vec![("filename".to_owned(), "/dev/x".to_owned())],
            ..files()
        };
        let job = cache(Eviction::Trim).job(&device);
        for lines in ["rw=write\noffset=0\n", "rw=trimwrite\noffset=201326592\n", "filename=/dev/x\n"] {
            assert!(job.contains(lines), "{lines} in {job}");
        }
        assert!(!job.contains("[remove"), "{job}");
        let all = Cache { hit_percent: 100.0, ..cache(Eviction::Overwrite) };
        assert!(!all.job(&files()).contains("[new-"));
    }

    #[test]
    fn figures_are_those_of_each_tenant_and_of_all() {
        let job = |name: &str, direction: &str, latency: u64, ios: u64| {
            json!({
                "jobname": name,
                direction: {
                    "total_ios": ios, "bw_bytes": 100, "lat_from_intended_start_ns": { "bins": { (latency.to_string()): ios } }
                },
            })
        };
        let report = json!({ "jobs": [
            job("first-0", "read", 1000, 30), job("further-0", "read", 500, 30), job("new-0", "write", 9000, 20),
            job("first-1", "read", 5000, 10), job("further-1", "read", 500, 10), job("new-1", "write", 9000, 100),
        ] });
        let figures = Figures::of(&report, &cache(Eviction::Unlink)).unwrap();
        assert_eq!(figures.first_ns, Some([1000.0, 5000.0]));
        assert_eq!(figures.tenants[0].first_ns, Some([1000.0, 1000.0]));
        assert_eq!((figures.tenants[0].blocks, figures.tenants[1].blocks), ([60, 20, 0], [20, 100, 64]));
        assert_eq!(figures.hit_percent, 40.0);
        // On two machines, each job is there twice.
        let twice = [&report["jobs"], &report["jobs"]].map(|jobs| jobs.as_array().unwrap().clone()).concat();
        let twice = Figures::of(&json!({ "jobs": twice }), &cache(Eviction::Unlink)).unwrap();
        let (one, two) = (&figures.tenants[1], &twice.tenants[1]);
        assert_eq!((two.rate, two.blocks), (2.0 * one.rate, [40, 200, 128]));
        assert_eq!((two.read[1], two.write[1]), (2.0 * one.read[1], 2.0 * one.write[1]));
        assert!(Figures::of(&json!({ "jobs": [] }), &cache(Eviction::Unlink)).is_err());
    }
}
