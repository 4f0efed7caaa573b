//! `--verify`: whether the tree on disk is exactly what the phases so far must have left.

use iolite_procedures::meta::Course;
use iolite_procedures::meta::expected::{Entry, Kind, XATTR};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Checks the tree.
///
/// # Errors
/// The first difference.
pub fn check(course: &Course, own: &Path) -> Result<(), String> {
    let mut expected = 0u64;
    for entry in course.expected() {
        expected += 1;
        let path = own.join(&entry.path);
        let found = fs::symlink_metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        compare(&entry, &path, &found)?;
    }
    let found = count(own, 0)?;
    if found != expected {
        return Err(format!(
            "{}: there are {found} files and directories of workers instead of {expected}",
            own.display()
        ));
    }
    Ok(())
}

/// Compares an entry with what is there.
fn compare(entry: &Entry, path: &Path, found: &fs::Metadata) -> Result<(), String> {
    let wrong = |what: String| Err(format!("{}: {what}", path.display()));
    match entry.kind {
        Kind::Directory if !found.is_dir() => return wrong("it is not a directory".to_owned()),
        Kind::File { .. } | Kind::AtLeast(_) if !found.is_file() => {
            return wrong("it is not a regular file".to_owned());
        }
        Kind::File { size, .. } if found.len() != size => {
            return wrong(format!("it has {} bytes instead of {size}", found.len()));
        }
        Kind::File { links, .. } if found.nlink() != links => {
            return wrong(format!("it has {} names instead of {links}", found.nlink()));
        }
        Kind::AtLeast(size) if found.len() < size => {
            return wrong(format!("it has {} bytes, fewer than {size}", found.len()));
        }
        // All workers have written their parts of the shared file.
        Kind::AtLeast(size) => {
            let file = fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
            if let Some(hole) = iolite_os::files::first_hole(&file).filter(|hole| *hole < size) {
                return wrong(format!("there is no data at {hole}, before {size}"));
            }
        }
        _ => {}
    }
    if !entry.has_xattr {
        return Ok(());
    }
    let (name, size) = XATTR;
    let value = iolite_os::files::extended_attribute(path, name, size)
        .map_err(|error| format!("{}: {name}: {error}", path.display()))?;
    // The value repeats the name that the file had when it was set.
    let base = path.file_name().unwrap_or_default().to_string_lossy();
    let base = base.trim_end_matches(".link").trim_end_matches(".new");
    let wanted: Vec<u8> = base.bytes().cycle().take(size).collect();
    if value == wanted { Ok(()) } else { wrong(format!("{name} has another value than its name repeated")) }
}

/// The files, and the directories that workers have made, below a directory. Those of trees do not count.
fn count(directory: &Path, level: u32) -> Result<u64, String> {
    let told = |error: io::Error| format!("{}: {error}", directory.display());
    let mut found = 0;
    for entry in fs::read_dir(directory).map_err(told)? {
        let entry = entry.map_err(told)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_directory = entry.file_type().map_err(told)?.is_dir();
        if level == 0 && (name == super::OWN.lock || name == "stamp" || name.starts_with("meet-")) {
            continue;
        }
        let is_of_tree = level == 0 || name.strip_prefix('t').is_some_and(|rest| rest.parse::<u32>().is_ok());
        match is_directory {
            true if is_of_tree => found += count(&entry.path(), level + 1)?,
            _ => found += 1,
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_procedures::meta::{Phase, Setup};

    #[test]
    fn a_part_that_nobody_has_written_is_found() {
        let mut course = Course::new(Setup {
            directory: String::new(),
            machines: 1,
            tasks: 2,
            files: 1,
            is_shared: false,
            depth: 0,
            breadth: 2,
            size: 0,
            seconds: None,
            shift: 0,
            data: 0,
            phases: vec![Phase::IorHardWrite],
            bucket: None,
        });
        course.finish(Phase::IorHardWrite, 3);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ior.hard");
        let bytes = 6 * 47_008;
        fs::write(&path, vec![1; bytes]).unwrap();
        assert_eq!(check(&course, directory.path()), Ok(()));
        fs::write(&path, vec![1; bytes - 1]).unwrap();
        assert!(check(&course, directory.path()).unwrap_err().contains("fewer than"));
        let file = fs::File::create(&path).unwrap();
        file.set_len(bytes as u64).unwrap();
        let told = check(&course, directory.path());
        match iolite_os::files::first_hole(&file) {
            Some(0) => assert!(told.unwrap_err().contains("there is no data at 0")),
            _ => assert_eq!(told, Ok(()), "this file system does not know holes"),
        }
    }

    #[test]
    fn every_difference_is_found() {
        let setup = Setup {
            directory: String::new(),
            machines: 1,
            tasks: 2,
            files: 3,
            is_shared: false,
            depth: 1,
            breadth: 2,
            size: 5,
            seconds: None,
            shift: 0,
            data: 0,
            phases: vec![Phase::Mkdir, Phase::Create, Phase::Link],
            bucket: None,
        };
        let mut course = Course::new(setup);
        for phase in [Phase::Mkdir, Phase::Create, Phase::Link] {
            course.finish(phase, 3);
        }
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path();
        let make = || {
            for entry in course.expected() {
                let path = own.join(&entry.path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                match entry.kind {
                    Kind::Directory => fs::create_dir(&path).unwrap(),
                    _ if entry.path.ends_with(".link") => {
                        fs::hard_link(path.to_str().unwrap().trim_end_matches(".link"), &path).unwrap();
                    }
                    _ => fs::write(&path, "12345").unwrap(),
                }
            }
            fs::write(own.join(super::super::OWN.lock), "").unwrap();
            assert_eq!(check(&course, own), Ok(()));
        };
        type Change<'a> = (&'a str, &'a dyn Fn(&Path));
        let changes: [Change<'_>; 6] = [
            ("No such file", &|own| fs::remove_file(own.join("w0.0/f0")).unwrap()),
            ("4 bytes instead of 5", &|own| fs::write(own.join("w0.1/t0/f1"), "1234").unwrap()),
            ("not a directory", &|own| {
                fs::remove_dir(own.join("w0.0/d0")).unwrap();
                fs::write(own.join("w0.0/d0"), "").unwrap();
            }),
            ("3 names instead of 2", &|own| {
                fs::hard_link(own.join("w0.0/f0"), own.join("w0.0/more")).unwrap()
            }),
            ("19 files and directories of workers instead of 18", &|own| {
                fs::write(own.join("w0.1/t1/other"), "").unwrap();
            }),
            ("19 files", &|own| fs::create_dir(own.join("w0.1/d9")).unwrap()),
        ];
        for (why, change) in changes {
            make();
            change(own);
            let told = check(&course, own).unwrap_err();
            assert!(told.contains(why), "{why}: {told}");
            for entry in fs::read_dir(own).unwrap().flatten() {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}
