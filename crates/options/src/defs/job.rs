//! The job itself: what it is called, how often and when it runs.

use crate::definition::{Category, Definition, Kind};

const fn job(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Job, kind, help)
}

/// What the job is called.
pub static IDENTITY: &[Definition] = &[
    job("description", Kind::Str, "Free text about the job, repeated in the report").lands(|job, given| {
        job.description = Some(given.required()?.to_owned());
        Ok(())
    }),
    job("name", Kind::Str, "Name of the job; also the stem of its file names").lands(|job, given| {
        job.name = given.required()?.to_owned();
        Ok(())
    }),
];
