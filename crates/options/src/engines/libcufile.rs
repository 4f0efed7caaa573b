//! The options of `libcufile` and `libhipfile`.

use super::own::{Obstacle, OwnOptions, own, own_options, place};
use super::shared::option;
use super::{Completion, Facets};
use crate::definition::{Definition, Kind};
use crate::{JobOptions, SubmitMode};
use serde::{Deserialize, Serialize};

/// How data gets between a file and the memory of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GpuIo {
    /// Directly, by the vendor's library.
    #[default]
    Direct,
    /// Through memory of the machine.
    Posix,
}

/// Who makes a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "these are names")]
pub enum GpuVendor {
    #[default]
    Nvidia,
    Amd,
}

own_options! {
    /// The options of `libcufile` and `libhipfile`.
    pub struct LibcufileOptions declared by OPTIONS {
        /// The numbers of the GPUs, which workers take in turn; empty = the first.
        pub gpu_dev_ids: Vec<u32>,
        /// How data gets between a file and a GPU.
        pub way: GpuIo,
        /// The longest time without a completion while requests of batches are in flight, in microseconds; 0 = no limit.
        pub libcufile_timeout: u64,
        /// Whose GPUs these are, which the engine decides.
        pub vendor: GpuVendor,
    }
}

impl LibcufileOptions {
    /// The defaults of `libhipfile`.
    pub(super) fn of_amd() -> Self {
        LibcufileOptions { vendor: GpuVendor::Amd, ..Self::default() }
    }

    /// The GPU of a worker with this number.
    pub fn gpu_of(&self, worker: u32) -> u32 {
        match self.gpu_dev_ids.len() {
            0 => 0,
            count => self.gpu_dev_ids[worker as usize % count],
        }
    }
}

impl OwnOptions for LibcufileOptions {
    /// Only requests of batches are completed later.
    fn facets(&self, facets: Facets) -> Facets {
        let completion = if self.way == GpuIo::Posix { Completion::Call } else { facets.completion };
        Facets { completion, ..facets }
    }

    fn obstacles(&self, job: &JobOptions) -> Vec<Obstacle> {
        let (is_amd, mut why) = (self.vendor == GpuVendor::Amd, Vec::new());
        if self.way == GpuIo::Posix {
            return why;
        }
        if !job.durability.direct {
            let option = if is_amd { "hip_io" } else { "cuda_io" };
            why.push((
                "direct",
                format!(
                    "direct: the library moves data directly between file and GPU; add direct=1, or use {option}=posix"
                ),
            ));
        }
        if is_amd && job.depth.iodepth > 1 && job.depth.io_submit_mode == SubmitMode::Inline {
            let words = "iodepth: hipFile implements no batches of requests yet; use iodepth=1, or \
                         io_submit_mode=offload, whose threads each make one";
            why.push(("iodepth", words.to_owned()));
        }
        why
    }
}

/// Reads numbers with colons between them.
fn numbers(text: &str) -> Result<Vec<u32>, String> {
    let number = |part: &str| {
        part.trim()
            .parse()
            .map_err(|_| format!("\"{part}\" is not the number of a GPU (0:1:2 are the first three)"))
    };
    text.split(':').map(number).collect()
}

static GPU_DEV_IDS: Definition =
    option("gpu_dev_ids", Kind::Str, "Numbers of GPUs, with colons between them; workers take them in turn")
        .lands_in_engine(|own, given| {
            place::<LibcufileOptions>(own)?.gpu_dev_ids = numbers(given.required()?)?;
            Ok(())
        });
/// The option that says how data gets to a GPU, with the word for the library.
const fn way(name: &'static str, keywords: &'static [(&'static str, &'static str)]) -> Definition {
    option(name, Kind::Str, "How data gets between file and GPU")
        .default(keywords[0].0)
        .keywords(keywords)
        .lands_in_engine(|own, given| {
            place::<LibcufileOptions>(own)?.way = match given.keyword()? {
                "posix" => GpuIo::Posix,
                _ => GpuIo::Direct,
            };
            Ok(())
        })
}

const POSIX: (&str, &str) = ("posix", "Through memory of the machine");
static CUDA_IO: Definition = way("cuda_io", &[("cufile", "Directly, by libcufile"), POSIX]);
static HIP_IO: Definition = way("hip_io", &[("hipfile", "Directly, by libhipfile"), POSIX]);

static TIMEOUT: Definition = option(
    "libcufile_timeout",
    Kind::Time,
    "The longest time without a completion while requests of batches are in flight; 0 = no limit",
)
.default("60s")
.lands_in_engine(own!(LibcufileOptions.libcufile_timeout, time(1_000_000)));

/// All of `libcufile`.
pub static OPTIONS: &[&Definition] = &[&GPU_DEV_IDS, &CUDA_IO, &TIMEOUT];

/// All of `libhipfile`.
pub static OF_HIPFILE: &[&Definition] = &[&GPU_DEV_IDS, &HIP_IO];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::chosen;

    #[test]
    fn workers_take_gpus_in_turn() {
        let own = LibcufileOptions { gpu_dev_ids: numbers("0:2: 5").unwrap(), ..Default::default() };
        assert_eq!([0, 1, 2, 3].map(|worker| own.gpu_of(worker)), [0, 2, 5, 0]);
        assert_eq!(LibcufileOptions::default().gpu_of(7), 0);
        for wrong in ["", "0:", "a", "-1", "0,1"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn direct_transfers_need_direct_io_and_batches() {
        let told = |own: LibcufileOptions, way, direct, depth| {
            let mut job = JobOptions::default();
            (job.durability.direct, job.depth.iodepth) = (direct, depth);
            let refused = LibcufileOptions { way, ..own }.obstacles(&job);
            refused.into_iter().map(|(option, _)| option).collect::<Vec<_>>()
        };
        let (nvidia, amd) = (LibcufileOptions::default, LibcufileOptions::of_amd);
        for own in [nvidia, amd] {
            assert_eq!(told(own(), GpuIo::Direct, false, 1), ["direct"]);
            assert!(told(own(), GpuIo::Direct, true, 1).is_empty());
            assert!(told(own(), GpuIo::Posix, false, 8).is_empty());
        }
        assert!(told(nvidia(), GpuIo::Direct, true, 8).is_empty());
        assert_eq!(told(amd(), GpuIo::Direct, true, 8), ["iodepth"]);
    }

    #[test]
    fn only_batches_have_a_depth() {
        let is_synchronous = |name, way| {
            let own = LibcufileOptions { way, ..Default::default() };
            chosen(name, &own.into()).unwrap().facets.is_synchronous()
        };
        assert!(!is_synchronous("libcufile", GpuIo::Direct) && is_synchronous("libcufile", GpuIo::Posix));
        assert!(is_synchronous("libhipfile", GpuIo::Direct) && is_synchronous("libhipfile", GpuIo::Posix));
    }
}
