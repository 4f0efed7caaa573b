//! Files: their names, sizes, how they are created, and the order of their use.

use crate::definition::{Category, Definition, Given, Kind, Limits};
use crate::values::{file_service, names, range};
use crate::{Fallocate, JobOptions, Range, SizeValue};
use iolite_types::{is_standard_stream, prefixed};
use std::path::Path;

const fn files(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Files, kind, help)
}

/// Their names.
pub static NAMES: &[Definition] = &[
    files("filename", Kind::Str, "Files or devices to use, separated by colons (given again: more of them); \\: is a colon in a name, - is standard input or output")
        .names_files(|job| in_files(job, || job.files.filename.clone()))
        .lands(|job, given| {
            let directory = job.files.directory.first().cloned();
            let prefix = Path::new(directory.as_deref().unwrap_or_default());
            let place = |name: String| match Path::new(&name) {
                stream if is_standard_stream(stream) => name,
                path => prefixed(prefix, path).display().to_string(),
            };
            let names = names(given.required()?)?.into_iter().map(place);
            if !std::mem::replace(&mut job.files.names_are_own, true) {
                job.files.filename.clear();
            }
            job.files.filename.extend(names);
            job.files.names_in = directory;
            job.files.nrfiles_limits_names = false;
            Ok(())
        }),
    files("lockfile", Kind::Str, "Lock each file while an I/O to it is in flight")
        .under("filename")
        .default(crate::LockFile::DEFAULT)
        .keywords(&[
            ("none", "No locks"),
            ("exclusive", "One worker at a time"),
            ("readwrite", "Several readers or one writer"),
        ])
        .lands(put_keyword!(files.lockfile, LockFile)),
    files("filetype", Kind::Str, "Kind of file to assume for a name that does not exist")
        .default(crate::FileType::DEFAULT)
        .keywords(&[
            ("none", "Find out"),
            ("file", "Regular file"),
            ("block", "Block device"),
            ("char", "Character device"),
        ])
        .lands(put_keyword!(files.filetype, FileType)),
    files("directory", Kind::Str, "Directories for the files, separated by colons; clones of a job share them out")
        .names_files(|job| in_files(job, || job.files.directory.clone()))
        .lands(|job, given| {
            job.files.directory = names(given.required()?)?;
            Ok(())
        }),
    files("filename_format", Kind::Str, "How file names are made from $jobname, $clientuid, $jobnum and $filenum")
        .default("$jobname.$jobnum.$filenum")
        .lands(put!(files.filename_format, string())),
    files("unique_filename", Kind::Bool, "Put the address of the client into file names when it runs on a server")
        .default("1")
        .lands(put!(files.unique_filename, boolean())),
    files("opendir", Kind::Str, "Use every file below this directory")
        .names_files(|job| in_files(job, || job.files.opendir.iter().cloned().collect()))
        .lands(|job, given| {
            job.files.opendir = Some(given.string()?);
            job.files.nrfiles_limits_names = false;
            Ok(())
        }),
];

/// The names of the job's files, if they are files of this machine.
fn in_files(job: &JobOptions, names: impl FnOnce() -> Vec<String>) -> Vec<String> {
    if job.has_files_here() { names() } else { Vec::new() }
}

/// Their sizes, and the part of them that is used.
pub static SIZES: &[Definition] = &[
    files("size", Kind::Size, "Bytes that each worker's files have together, or percent of what exists")
        .lands(|job, given| {
            job.extent.size = some_size(given.size()?);
            Ok(())
        }),
    files(
        "io_size",
        Kind::Size,
        "Bytes of I/O that each worker does, where that differs from the size of its files",
    )
    .aliases(&["io_limit"])
    .lands(|job, given| {
        job.extent.io_size = some_size(given.size()?);
        Ok(())
    }),
    files("fill_device", Kind::Bool, "Write until there is no space left")
        .aliases(&["fill_fs"])
        .default("0")
        .lands(put!(extent.fill_device, boolean())),
    files("filesize", Kind::Str, "Size of each file; from a range, each file gets its own")
        .limits(Limits::OnlyMin(1))
        .lands(|job, given| {
            job.extent.filesize = Some(ranges_as_one(given)?);
            Ok(())
        }),
    files("file_append", Kind::Bool, "Start at the end of each file; passes go on there, up to the size")
        .default("0")
        .lands(put!(extent.file_append, boolean())),
    files("offset", Kind::Size, "Where in each file the I/O starts, in bytes or percent")
        .aliases(&["fileoffset"])
        .default("0")
        .lands(|job, given| {
            job.extent.offset = given.size()?;
            Ok(())
        }),
    files("offset_increment", Kind::Size, "Distance between the starts of successive clones of the job")
        .under("offset")
        .default("0")
        .lands(|job, given| {
            job.extent.offset_increment = given.size()?;
            Ok(())
        }),
    files(
        "offset_align",
        Kind::Int,
        "Round the start of the I/O up to a multiple of this, if offset or offset_increment is a percentage",
    )
    .default("0")
    .min(0)
    .lands(put!(extent.offset_align, number())),
    files(
        "number_ios",
        Kind::Str,
        "End the job after this many I/Os, counted from the end of the ramp; 0 is not a limit",
    )
    .default("0")
    .lands(put!(extent.number_ios, number())),
    files("num_range", Kind::Int, "How many ranges one trim command carries")
        .default("1")
        .range(0, 256)
        .lands(|job, given| {
            job.extent.num_range = given.number()?;
            Ok(())
        }),
];

/// The range from the smallest to the largest of a list of sizes and ranges: fio takes each of them for a direction,
/// and draws from all of them together.
fn ranges_as_one(given: &mut Given<'_>) -> Result<Range, String> {
    let mut all: Option<Range> = None;
    for part in given.required()?.split(',').filter(|part| !part.trim().is_empty()) {
        let Range { low, high } = range(part, given.kb_base, true, &mut given.notes)?;
        if low == 0 {
            return Err("must be at least 1".to_owned());
        }
        all =
            Some(all.map_or(Range { low, high }, |all| Range {
                low: all.low.min(low),
                high: all.high.max(high),
            }));
    }
    all.ok_or_else(|| "needs a value".to_owned())
}

/// 0 is not a size.
fn some_size(size: SizeValue) -> Option<SizeValue> {
    (size != SizeValue::Bytes(0)).then_some(size)
}

/// The number of files, the order of their use, and advice to the kernel.
pub static SHARING: &[Definition] = &[
    files("nrfiles", Kind::Int, "Number of files over which each worker spreads its I/O")
        .aliases(&["nr_files"])
        .default("1")
        .min(0)
        .lands(|job, given| match given.number()? {
            0 => Err("a job needs at least 1 file".to_owned()),
            files => {
                job.files.nrfiles = files;
                job.files.nrfiles_limits_names =
                    !job.files.filename.is_empty() || job.files.opendir.is_some();
                Ok(())
            }
        }),
    files(
        "file_service_type",
        Kind::Str,
        "How the file of the next I/O is chosen; :N stays with it for N I/Os",
    )
    .under("nrfiles")
    .default("roundrobin")
    .keywords(&[
        ("random", "Any open file, all equally often"),
        ("zipf", "Few files often, by a Zipf distribution"),
        ("pareto", "Few files often, by a Pareto distribution"),
        ("normal", "Around one file, by a normal distribution"),
        ("gauss", "Same as normal"),
        ("roundrobin", "One after the other, over and over"),
        ("sequential", "Finish one file before the next"),
    ])
    .lands(|job, given| {
        let keywords = given.definition.keywords;
        job.files.file_service_type =
            file_service(given.required()?, keywords, given.kb_base, &mut given.notes)?;
        Ok(())
    }),
    files("openfiles", Kind::Int, "Number of files open at the same time; by default, all")
        .min(0)
        .lands(put!(files.openfiles, number())),
    files("fallocate", Kind::Str, "How space is reserved when files are laid out")
        .default("native")
        .keywords(&[
            ("none", "Not at all"),
            ("native", "By the system's own call, if the file system supports it"),
            ("posix", "By posix_fallocate(3)"),
            ("keep", "By fallocate(2) without changing the file's size"),
            ("truncate", "By setting the file's size"),
            ("0", "Same as none"),
            ("1", "Same as posix"),
        ])
        .lands(|job, given| {
            job.files.fallocate = match given.keyword()? {
                "native" => Fallocate::Native,
                "posix" | "1" => Fallocate::Posix,
                "keep" => Fallocate::Keep,
                "truncate" => Fallocate::Truncate,
                _ => Fallocate::None,
            };
            Ok(())
        }),
    files("fadvise_hint", Kind::Str, "The access pattern announced to the kernel")
        .default(crate::FadviseHint::DEFAULT)
        .keywords(&[
            ("0", "Nothing"),
            ("1", "Random or sequential, as the workload is"),
            ("random", "Random"),
            ("sequential", "Sequential"),
            ("noreuse", "Data is used once"),
        ])
        .lands(put_keyword!(files.fadvise_hint, FadviseHint)),
];

/// How writes treat an existing file.
pub static OVERWRITE: &[Definition] = &[files(
    "overwrite",
    Kind::Bool,
    "Lay out a file before writing to it, so that only blocks that exist are written",
)
.default("0")
.lands(put!(files.overwrite, boolean()))];

/// How they are created.
pub static CREATION: &[Definition] = &[
    files("create_serialize", Kind::Bool, "Lay out the files of one job after the other")
        .default("1")
        .lands(put!(files.create_serialize, boolean())),
    files("create_fsync", Kind::Bool, "Flush each file after it was laid out")
        .default("1")
        .lands(put!(files.create_fsync, boolean())),
    files("create_on_open", Kind::Bool, "Make files when they are first opened, not beforehand")
        .default("0")
        .lands(put!(files.create_on_open, boolean())),
    files("create_only", Kind::Bool, "Lay out the files and do no I/O (logs that are asked for are empty)")
        .default("0")
        .lands(put!(files.create_only, boolean())),
    files(
        "allow_file_create",
        Kind::Bool,
        "Make files that do not exist, and extend those that are too short; otherwise they are errors (file_append still \
         extends files, and ftruncate still makes them shorter)",
    )
    .default("1")
    .lands(put!(files.allow_file_create, boolean())),
    files("allow_mounted_write", Kind::Bool, "Write and trim devices even while they are mounted or in use")
        .default("0")
        .lands(put!(files.allow_mounted_write, boolean())),
    files("pre_read", Kind::Bool, "Read each file once before the job starts")
        .default("0")
        .lands(put!(files.pre_read, boolean())),
];

/// How they are removed.
pub static REMOVAL: &[Definition] = &[
    files("unlink", Kind::Bool, "Remove the files when the job has ended")
        .default("0")
        .lands(put!(files.unlink, boolean())),
    files("unlink_each_loop", Kind::Bool, "Remove the files after each loop")
        .default("0")
        .lands(put!(files.unlink_each_loop, boolean())),
];
