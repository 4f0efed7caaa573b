//! Which files a worker uses.
//!
//! With `filename`, all clones share the files named there, in the first `directory` given. Without, every clone
//! has files of its own, named by `filename_format`, and the clones are shared out evenly over the directories.
//! (Both rules as fio documents them under `directory`.)

use iolite_options::JobOptions;
use std::path::{Path, PathBuf};

/// The option to blame and what is wrong with it.
pub type Blame = (&'static str, String);

/// The worker's files. Looks at the disk only for `directory` (which must exist) and `opendir`.
pub fn names(options: &JobOptions, clone: u32) -> Result<Vec<PathBuf>, Blame> {
    for directory in &options.directory {
        match std::fs::metadata(directory) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(("directory", format!("directory={directory}: this is not a directory"))),
            Err(error) => {
                return Err((
                    "directory",
                    format!("directory={directory}: {}", iolite_types::describe_error(&error)),
                ));
            }
        }
    }
    if let Some(directory) = &options.opendir {
        let mut files = Vec::new();
        collect(Path::new(directory), &mut files).map_err(|error| {
            ("opendir", format!("opendir={directory}: {}", iolite_types::describe_error(&error)))
        })?;
        if files.is_empty() {
            return Err(("opendir", format!("opendir={directory}: there are no files in it")));
        }
        files.sort();
        if options.nrfiles_limits_names {
            files.truncate(options.nrfiles as usize);
        }
        return Ok(files);
    }
    Ok(nominal(options, clone))
}

/// The names alone, without a look at the disk.
pub fn nominal(options: &JobOptions, clone: u32) -> Vec<PathBuf> {
    if options.filename.is_empty() {
        let directory = match options.directory.len() {
            0 => Path::new(""),
            count => Path::new(&options.directory[clone as usize % count]),
        };
        return (0..options.nrfiles).map(|file| directory.join(generated(options, clone, file))).collect();
    }
    let directory = options.directory.first().map_or(Path::new(""), Path::new);
    let place = |name: &String| match name.as_str() {
        "-" => PathBuf::from(name),
        name => prefixed(directory, Path::new(name)),
    };
    options.filename.iter().map(place).collect()
}

/// `directory/name`, also where the name begins with a slash: a directory is a prefix, not a suggestion.
pub(crate) fn prefixed(directory: &Path, name: &Path) -> PathBuf {
    if directory.as_os_str().is_empty() {
        return name.to_owned();
    }
    directory.join(name.strip_prefix("/").unwrap_or(name))
}

/// A name from `filename_format`.
fn generated(options: &JobOptions, clone: u32, file: u32) -> String {
    let format = if options.filename_format.is_empty() {
        "$jobname.$jobnum.$filenum"
    } else {
        &options.filename_format
    };
    let name = format
        .replace("$jobname", &options.name)
        .replace("$clientuid", "localhost")
        .replace("$jobnum", &clone.to_string())
        .replace("$filenum", &file.to_string());
    if options.directory.is_empty() { name } else { name.trim_start_matches('/').to_owned() }
}

/// All regular files below a directory.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(change: impl FnOnce(&mut JobOptions), clone: u32) -> Vec<String> {
        let mut options = JobOptions { name: "test".into(), ..JobOptions::default() };
        change(&mut options);
        nominal(&options, clone).iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn clones_are_shared_out_over_directories() {
        let two = |o: &mut JobOptions| o.directory = vec!["/mnt/0/".into(), "/mnt/1/".into()];
        assert_eq!(named(two, 0), ["/mnt/0/test.0.0"]);
        assert_eq!(named(two, 1), ["/mnt/1/test.1.0"]);
        assert_eq!(named(two, 4), ["/mnt/0/test.4.0"]);
    }

    #[test]
    fn a_clones_files_stay_together() {
        let files = named(
            |o| {
                o.directory = vec!["a".into(), "b".into()];
                o.nrfiles = 2;
            },
            3,
        );
        assert_eq!(files, ["b/test.3.0", "b/test.3.1"]);
    }

    #[test]
    fn given_names_are_shared_and_live_in_the_first_directory() {
        let files = named(
            |o| {
                o.directory = vec!["/mnt/0".into(), "/mnt/1".into()];
                o.filename = vec!["hello".into(), "world".into()];
            },
            5,
        );
        assert_eq!(files, ["/mnt/0/hello", "/mnt/0/world"]);
    }

    #[test]
    fn a_format_may_leave_the_job_out() {
        let files = named(
            |o| {
                o.filename_format = "shared.$filenum".into();
                o.nrfiles = 2;
            },
            7,
        );
        assert_eq!(files, ["shared.0", "shared.1"]);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let options = JobOptions { directory: vec!["/no/such".into()], ..JobOptions::default() };
        let (option, message) = names(&options, 0).unwrap_err();
        assert_eq!(option, "directory");
        assert_eq!(message, "directory=/no/such: No such file or directory");
    }

    #[test]
    fn opendir_takes_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        std::fs::write(directory.path().join("sub/b"), "x").unwrap();
        std::fs::write(directory.path().join("a"), "x").unwrap();
        let options =
            JobOptions { opendir: Some(directory.path().display().to_string()), ..JobOptions::default() };
        let files = names(&options, 0).unwrap();
        assert_eq!(files, [directory.path().join("a"), directory.path().join("sub/b")]);
        let limited = JobOptions { nrfiles: 1, nrfiles_limits_names: true, ..options };
        assert_eq!(names(&limited, 0).unwrap(), [directory.path().join("a")]);
    }
}
