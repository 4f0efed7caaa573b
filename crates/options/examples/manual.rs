//! Writes docs/options.md and docs/iolite.1 anew.
//!
//! `cargo run -p iolite-options --example manual`

use std::path::Path;

fn main() -> std::io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    std::fs::write(docs.join("options.md"), iolite_options::manual::markdown())?;
    std::fs::write(docs.join("iolite.1"), iolite_options::manual::roff())
}
