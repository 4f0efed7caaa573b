//! Regenerates docs/options.md, docs/iolite.1 and the table in docs/engines.md.
//!
//! `cargo run -p iolite-options --example manual`

use iolite_options::manual;
use std::fs;
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let engines = docs.join("engines.md");
    let page = manual::with_facets(&fs::read_to_string(&engines)?);
    fs::write(engines, page.ok_or_else(|| io::Error::other("docs/engines.md has no place for its table"))?)?;
    fs::write(docs.join("options.md"), manual::markdown())?;
    fs::write(docs.join("iolite.1"), manual::roff())
}
