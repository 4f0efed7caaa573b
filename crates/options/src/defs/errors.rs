//! Handling of errors.

use crate::definition::{Category, Definition, Kind};
use crate::{ErrorKinds, values};

const fn errors(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Errors, kind, help)
}

/// Errors that are ignored.
pub static IGNORED: &[Definition] =
    &[errors("ignore_error", Kind::Str, "Errors to ignore, as lists with colons: READ,WRITE,VERIFY")
        .under("rw")
        .lands(|job, given| {
            let text = given.required()?;
            job.errors.ignore_error = values::ignored_errors(text, &mut given.notes)?;
            Ok(())
        })];

/// Whether a job continues after errors.
pub static POLICY: &[Definition] = &[
    errors("continue_on_error", Kind::Str, "Errors after which the job continues")
        .default("none")
        .keywords(&[
            ("none", "After none"),
            ("read", "After those of reads"),
            ("write", "After those of writes"),
            ("io", "After those of any I/O"),
            ("verify", "After wrong data"),
            ("all", "After all"),
            ("0", "Same as none"),
            ("1", "Same as all"),
        ])
        .lands(|job, given| {
            let io = |read, write| ErrorKinds { read, write, verify: false };
            job.errors.continue_on_error = match given.keyword()? {
                "read" => io(true, false),
                "write" => io(false, true),
                "io" => io(true, true),
                "verify" => ErrorKinds { verify: true, ..ErrorKinds::NONE },
                "all" | "1" => ErrorKinds::ALL,
                _ => ErrorKinds::NONE,
            };
            Ok(())
        }),
    errors("error_dump", Kind::Bool, "Describe each error that does not end the job")
        .default("0")
        .lands(put!(errors.error_dump, boolean())),
];
