//! The files of a worker.
//!
//! With `filename`, all clones share the named files. Without `filename`, every
//! clone has its own files, named by `filename_format`, and clones take the directories in turn. (fio documents both
//! rules under `directory`. The directory of named files is a part of their names already, see its options.)

use crate::Names;
use iolite_host::{EntryKind, Machine, Refusal};
use iolite_options::JobOptions;
use std::path::{Path, PathBuf};

/// The option to blame and the refusal.
pub type Blame = (&'static str, Refusal);

/// The worker's files. Looks at the disk only for `directory` (which must exist) and `opendir`.
pub fn names(options: &JobOptions, clone: u32, machine: &dyn Machine) -> Result<Names, Blame> {
    for directory in &options.files.directory {
        let refused = match machine.file(Path::new(directory)) {
            Ok(Some(found)) if found.kind == EntryKind::Directory => continue,
            Ok(Some(_)) => Refusal { errno: Some(libc::ENOTDIR), words: "this is not a directory".into() },
            Ok(None) => {
                let missing = Refusal::not_found();
                Refusal { words: format!("{missing}; mkdir -p {directory} creates it"), ..missing }
            }
            Err(refusal) => refusal,
        };
        return Err(("directory", about("directory", directory, refused)));
    }
    if let Some(directory) = &options.files.opendir {
        let blame = |refusal| ("opendir", about("opendir", directory, refusal));
        if !options.files.filename.is_empty() {
            let words = "it cannot be combined with filename; give one of them".to_owned();
            return Err(blame(Refusal { errno: None, words }));
        }
        let mut files = machine.list(Path::new(directory)).map_err(blame)?;
        if files.is_empty() {
            return Err(blame(Refusal {
                errno: Some(libc::ENOENT),
                words: "there are no files in it".into(),
            }));
        }
        files.truncate(options.files.most_names());
        return Ok(files.into());
    }
    Ok(nominal(options, clone))
}

/// The refusal with the option in front.
fn about(option: &str, value: &str, refusal: Refusal) -> Refusal {
    Refusal { words: format!("{option}={value}: {refusal}"), ..refusal }
}

/// The names that follow from the options alone.
pub fn nominal(options: &JobOptions, clone: u32) -> Names {
    if options.files.filename.is_empty() {
        let directory = match options.files.directory.len() {
            0 => Path::new(""),
            count => Path::new(&options.files.directory[clone as usize % count]),
        };
        let files = &options.files;
        let first = u64::from(files.filenum_first) + u64::from(files.filenum_increment) * u64::from(clone);
        return Names::numbered(directory, &format_of(options, clone), FILE_NUMBER, files.nrfiles)
            .beginning_at(first)
            .in_tree(files.tree_depth, files.tree_breadth);
    }
    options.files.filename.iter().map(PathBuf::from).collect::<Vec<PathBuf>>().into()
}

/// The placeholder for the number of a file in `filename_format`.
const FILE_NUMBER: &str = "$filenum";

/// The format of a clone's names, with a placeholder only for the number of the file.
fn format_of(options: &JobOptions, clone: u32) -> String {
    let format = if options.files.filename_format.is_empty() {
        "$jobname.$jobnum.$filenum"
    } else {
        &options.files.filename_format
    };
    let client = &options.files.client[..];
    let name = format
        .replace("$jobname", &options.name)
        .replace("$clientuid", if client.is_empty() { "localhost" } else { client })
        .replace("$jobnum", &clone.to_string());
    if options.files.directory.is_empty() {
        return name;
    }
    options.files.name_for_client(name.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::MadeUp;
    use iolite_options::FileOptions;

    fn named(change: impl FnOnce(&mut JobOptions), clone: u32) -> Vec<String> {
        let mut options = JobOptions { name: "test".into(), ..JobOptions::default() };
        change(&mut options);
        nominal(&options, clone).iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn clones_are_shared_out_over_directories() {
        let two = |o: &mut JobOptions| o.files.directory = vec!["/mnt/0/".into(), "/mnt/1/".into()];
        assert_eq!(named(two, 0), ["/mnt/0/test.0.0"]);
        assert_eq!(named(two, 1), ["/mnt/1/test.1.0"]);
        assert_eq!(named(two, 4), ["/mnt/0/test.4.0"]);
    }

    #[test]
    fn a_clones_files_stay_together() {
        let files = named(
            |o| {
                o.files.directory = vec!["a".into(), "b".into()];
                o.files.nrfiles = 2;
            },
            3,
        );
        assert_eq!(files, ["b/test.3.0", "b/test.3.1"]);
    }

    #[test]
    fn given_names_are_shared() {
        let files = named(
            |o| {
                o.files.directory = vec!["/mnt/0".into(), "/mnt/1".into()];
                o.files.filename = vec!["/mnt/0/hello".into(), "world".into()];
            },
            5,
        );
        assert_eq!(files, ["/mnt/0/hello", "world"]);
    }

    #[test]
    fn a_format_may_leave_the_job_out() {
        let files = named(
            |o| {
                o.files.filename_format = "shared.$filenum".into();
                o.files.nrfiles = 2;
            },
            7,
        );
        assert_eq!(files, ["shared.0", "shared.1"]);
    }

    #[test]
    fn clients_of_a_server_have_files_of_their_own() {
        let with = |unique: bool, directory: bool, format: &str| {
            named(
                |o| {
                    o.files.client = "10.0.0.7".into();
                    o.files.unique_filename = unique;
                    o.files.directory = if directory { vec!["d".into()] } else { Vec::new() };
                    o.files.filename_format = format.into();
                },
                0,
            )
        };
        assert_eq!(with(true, true, ""), ["d/10.0.0.7.test.0.0"]);
        assert_eq!(with(false, true, ""), ["d/test.0.0"]);
        assert_eq!(with(true, false, ""), ["test.0.0"]);
        assert_eq!(with(false, true, "$clientuid-$jobname"), ["d/10.0.0.7-test"]);
        let given = |o: &mut JobOptions| {
            o.files.client = "10.0.0.7".into();
            o.files.unique_filename = true;
            o.files.directory = vec!["d".into()];
            o.files.filename = vec!["d/f".into()];
        };
        assert_eq!(named(given, 0), ["d/f"]);
    }

    #[test]
    fn a_directory_has_to_be_one() {
        let machine = MadeUp::new().with_file("/file", 0).refused("/secret", libc::EACCES);
        let refused = |directory: &str| {
            let options = JobOptions {
                files: FileOptions { directory: vec![directory.into()], ..FileOptions::default() },
                ..JobOptions::default()
            };
            let (option, refusal) = names(&options, 0, &machine).unwrap_err();
            (option, refusal.words)
        };
        let message = |text: &str| ("directory", text.to_owned());
        assert_eq!(
            refused("/none"),
            message("directory=/none: No such file or directory; mkdir -p /none creates it")
        );
        assert_eq!(refused("/file"), message("directory=/file: this is not a directory"));
        assert_eq!(refused("/secret"), message("directory=/secret: Permission denied"));
    }

    #[test]
    fn opendir_takes_the_existing_files() {
        let machine =
            MadeUp::new().with_file("/data/sub/b", 1).with_file("/data/a", 1).with_directory("/empty");
        let options = JobOptions {
            files: FileOptions { opendir: Some("/data".into()), ..FileOptions::default() },
            ..JobOptions::default()
        };
        let files = names(&options, 0, &machine).unwrap();
        assert_eq!(files, Names::from(vec!["/data/a".into(), "/data/sub/b".into()]));
        let limited = {
            let mut options = options.clone();
            options.files.nrfiles = 1;
            options.files.nrfiles_limits_names = true;
            options
        };
        assert_eq!(names(&limited, 0, &machine).unwrap(), Names::from(vec!["/data/a".into()]));
        let named = {
            let mut options = options.clone();
            options.files.filename = vec!["a".into()];
            options
        };
        let (blamed, refusal) = names(&named, 0, &machine).unwrap_err();
        assert_eq!(blamed, "opendir");
        assert!(refusal.words.contains("cannot be combined with filename"), "{refusal}");
        let empty = {
            let mut options = options;
            options.files.opendir = Some("/empty".into());
            options
        };
        let message = "opendir=/empty: there are no files in it".to_owned();
        let refusal = Refusal { errno: Some(libc::ENOENT), words: message };
        assert_eq!(names(&empty, 0, &machine), Err(("opendir", refusal)));
    }
}
