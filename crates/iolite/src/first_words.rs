//! What to type instead, for those who begin: a directory, a device or a kind of workload in the place of a job file.

use iolite_options::registry;
use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Whether this is a value of `rw`.
fn is_workload(word: &str) -> bool {
    let rw = registry::find_job("rw");
    rw.is_some_and(|rw| rw.keywords.iter().any(|(keyword, _)| *keyword == word))
}

/// Whether this is a URL of storage that `iolite test` measures.
fn is_url(word: &str) -> bool {
    const SCHEMES: [&str; 11] = [
        "s3:",
        "http:",
        "https:",
        "nfs:",
        "nbd:",
        "nbds:",
        "nbd+unix:",
        "nbds+unix:",
        "iscsi:",
        "rados:",
        "rbd:",
    ];
    SCHEMES.iter().any(|scheme| word.starts_with(scheme)) && !word.contains('@')
}

/// What to type instead of these words; `None` = the first one may be a job file.
pub fn instead(words: &[OsString]) -> Option<String> {
    let first = words.first()?;
    let word = first.to_string_lossy();
    if word.starts_with('-') {
        return None;
    }
    match std::fs::metadata(Path::new(first)) {
        Ok(found) if found.is_dir() => {
            Some(format!("{word}: this is a directory, not a job file; iolite test {word} measures it"))
        }
        Ok(found) if found.file_type().is_block_device() => Some(format!(
            "{word}: this is a device, not a job file; iolite test {word} measures it, and only reads"
        )),
        Err(_) if is_url(&word) => Some(format!(
            "{word}: this is storage of a server, not a job file; iolite test {word} measures it"
        )),
        Err(_) if is_workload(&word) => Some(format!(
            "{word}: this is a kind of workload, not a job file; iolite --name=a --rw={word} --bs=4k --size=1g --filename=FILE \
             runs it, and iolite test DIRECTORY measures storage"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_and_workloads_are_no_job_files() {
        let told = |word: &str| instead(&[word.into()]).unwrap_or_default();
        assert!(told("/tmp").ends_with("iolite test /tmp measures it"));
        for workload in ["randread", "rw", "randtrimwrite"] {
            assert!(told(workload).contains(&format!("--rw={workload} ")));
        }
        for other in ["job.fio", "--name=a", "/dev/null", "-"] {
            assert_eq!(told(other), "");
        }
        assert_eq!(instead(&[]), None);
    }
}
