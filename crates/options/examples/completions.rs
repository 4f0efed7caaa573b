//! Writes the scripts for the completion of shells, as `iolite completion` prints them: for packages, which may be made for
//! another processor than that of the machine.
//!
//! `cargo run -p iolite-options --example completions DIRECTORY`

use iolite_options::completion;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let directory = env::args_os().nth(1).ok_or_else(|| io::Error::other("usage: completions DIRECTORY"))?;
    for shell in ["bash", "zsh", "fish"] {
        let script =
            completion::script(shell).ok_or_else(|| io::Error::other(format!("no script for {shell}")))?;
        fs::write(Path::new(&directory).join(shell), script)?;
    }
    Ok(())
}
