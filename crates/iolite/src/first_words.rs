//! What to type instead, for those who begin: a directory, a device or a kind of workload in the place of a job file.

use iolite_options::commands::with_workload;
use iolite_options::registry;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
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

/// Whether a file begins with something else than text, in whatever encoding.
fn is_data(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4096).read_to_end(&mut begin));
    // (Text has tabs and line ends, and some editors leave ^L and ^Z.)
    let is_odd = |byte: &&u8| byte.is_ascii_control() && !b"\t\n\r\x0c\x1a".contains(byte);
    // Texts in UTF-16 have a zero beside each letter; reading them says what they are.
    let is_wide =
        matches!(begin[..], [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, 1..=255, ..] | [1..=255, 0, ..]);
    read.is_ok() && !is_wide && begin.iter().filter(is_odd).count() * 20 > begin.len()
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
        Ok(found) if found.is_file() && is_data(Path::new(first)) => Some(format!(
            "{word}: this is a file of data, not a job file; iolite test {word} measures it, and only reads"
        )),
        Err(_) if is_workload(&word) => Some(format!(
            "{word}: this is a kind of workload, not a job file; {} runs it, and iolite test DIRECTORY measures storage",
            with_workload(&word)
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
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("f");
        for (bytes, is_data) in [
            (&[0; 5000][..], true),
            (b"\x7fELF\x02\x01\x01\x00\x00", true),
            (b"[global]\r\n; caf\xe9\n\trw=read\n", false),
            (b"\xff\xfe[\x00a\x00]\x00", false),
            (b"[\x00a\x00]\x00", false),
            (b"", false),
        ] {
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(
                told(file.to_str().unwrap()).contains("a file of data, not a job file"),
                is_data,
                "{bytes:?}"
            );
        }
    }
}
