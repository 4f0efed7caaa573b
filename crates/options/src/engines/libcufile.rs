//! The options of `libcufile`.

use super::own::{Obstacle, OwnOptions, own_options, place};
use super::shared::option;
use crate::JobOptions;
use crate::definition::{Definition, Kind};
use serde::{Deserialize, Serialize};

/// How data gets between a file and the memory of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CudaIo {
    /// Directly, by libcufile.
    #[default]
    Cufile,
    /// Through memory of the machine.
    Posix,
}

own_options! {
    /// The options of `libcufile`.
    pub struct LibcufileOptions declared by OPTIONS {
        /// The numbers of the GPUs, which workers take in turn; empty = the first.
        pub gpu_dev_ids: Vec<u32>,
        /// How data gets between a file and a GPU.
        pub cuda_io: CudaIo,
    }
}

impl LibcufileOptions {
    /// The GPU of a worker with this number.
    pub fn gpu_of(&self, worker: u32) -> u32 {
        match self.gpu_dev_ids.len() {
            0 => 0,
            count => self.gpu_dev_ids[worker as usize % count],
        }
    }
}

impl OwnOptions for LibcufileOptions {
    fn obstacles(&self, job: &JobOptions) -> Vec<Obstacle> {
        if self.cuda_io == CudaIo::Posix || job.durability.direct {
            return Vec::new();
        }
        let why = "direct: the library moves data directly between file and GPU; add direct=1, or use cuda_io=posix";
        vec![("direct", why.to_owned())]
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
static CUDA_IO: Definition = option("cuda_io", Kind::Str, "How data gets between file and GPU")
    .default("cufile")
    .keywords(&[("cufile", "Directly, by libcufile"), ("posix", "Through memory of the machine")])
    .lands_in_engine(|own, given| {
        place::<LibcufileOptions>(own)?.cuda_io = match given.keyword()? {
            "posix" => CudaIo::Posix,
            _ => CudaIo::Cufile,
        };
        Ok(())
    });

/// All of them.
pub static OPTIONS: &[&Definition] = &[&GPU_DEV_IDS, &CUDA_IO];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_take_gpus_in_turn() {
        let own = LibcufileOptions { gpu_dev_ids: numbers("0:2: 5").unwrap(), cuda_io: CudaIo::Cufile };
        assert_eq!([0, 1, 2, 3].map(|worker| own.gpu_of(worker)), [0, 2, 5, 0]);
        assert_eq!(LibcufileOptions::default().gpu_of(7), 0);
        for wrong in ["", "0:", "a", "-1", "0,1"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn direct_transfers_need_direct_io() {
        let told = |cuda_io, direct| {
            let mut job = JobOptions::default();
            job.durability.direct = direct;
            LibcufileOptions { cuda_io, ..LibcufileOptions::default() }.obstacles(&job).len()
        };
        assert_eq!((told(CudaIo::Cufile, false), told(CudaIo::Cufile, true)), (1, 0));
        assert_eq!(told(CudaIo::Posix, false), 0);
    }
}
