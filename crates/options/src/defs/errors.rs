//! What happens on errors.

use crate::definition::{Category, Definition, Kind};

const fn errors(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Errors, kind, help)
}

/// Errors that are none.
pub static IGNORED: &[Definition] =
    &[errors("ignore_error", Kind::Str, "Errors that do not count, per kind: READ,WRITE,VERIFY with colons")
        .under("rw")];

/// Whether a job goes on.
pub static POLICY: &[Definition] = &[
    errors("continue_on_error", Kind::Str, "After which errors the job goes on")
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
        .off(&["0"]),
    errors("error_dump", Kind::Bool, "Describe each error that does not end the job").default("0"),
];
