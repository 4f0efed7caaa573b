//! The defaults of a job: those that the declarations in `defs` and `engines` have. Defaults that depend on other options
//! are decided when a job is complete (`decided.rs`).

use crate::definition::{Definition, Given};
use crate::values::Notes;
use crate::{JobOptions, registry};
use std::sync::LazyLock;

static DEFAULTS: LazyLock<JobOptions> = LazyLock::new(|| {
    let mut job = JobOptions::blank();
    for definition in registry::job_options() {
        land_default(&mut job, definition);
    }
    job
});

impl Default for JobOptions {
    /// A job without any given options.
    fn default() -> Self {
        DEFAULTS.clone()
    }
}

fn land_default(job: &mut JobOptions, definition: &'static Definition) {
    let (Some(text), Some(land)) = (definition.default, definition.land) else {
        return;
    };
    let mut given = Given { definition, text: Some(text), kb_base: 1024, notes: Notes::default() };
    if let Err(reason) = land.put(job, &mut given) {
        panic!("the default of option {} does not land: {reason}", definition.name);
    }
}
