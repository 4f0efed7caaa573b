//! Finds the launcher's interface, and joins its ranks.

use super::board::Board;
use super::directory::Directory;
use super::pmi2::Pmi2;
use super::pmix::Pmix;

/// Joins the ranks of this launcher by this interface: `pmix`, `pmi2`, `dir:PATH`, or empty, which takes the first
/// available.
///
/// # Errors
/// There is no launcher, or it does not offer this interface.
pub fn join(way: &str) -> Result<Box<dyn Board>, String> {
    let has = |variable: &str| std::env::var_os(variable).is_some();
    match way {
        "pmix" => Ok(Box::new(Pmix::join()?)),
        "pmi2" => Ok(Box::new(Pmi2::join()?)),
        "" if has("PMIX_RANK") => Ok(Box::new(Pmix::join()?)),
        "" if has("PMI_FD") || has("PMI_RANK") => Ok(Box::new(Pmi2::join()?)),
        "" if has("SLURM_PROCID") => Err("srun offers its tasks no key space: say srun --mpi=pmix or srun --mpi=pmi2, or \
                                          have them meet in a directory that all of them see, with --mpi=dir:PATH"
            .to_owned()),
        "" => Err("no launcher has started this: say mpirun -np N iolite --mpi …, or srun --mpi=pmix iolite --mpi …".to_owned()),
        other => match other.strip_prefix("dir:") {
            Some(path) if !path.is_empty() => Ok(Box::new(Directory::join(path.as_ref())?)),
            _ => Err(format!("\"{other}\" is no way to find the other ranks (pmix, pmi2, dir:PATH)")),
        },
    }
}
