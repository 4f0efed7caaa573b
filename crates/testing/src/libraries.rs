//! Libraries of vendors for tests: real ones that a script has fetched, and stand-ins in C that note how they are called.

use crate::engines::compile_to;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of libblkio, for `LD_LIBRARY_PATH`: that of `IOLITE_LIBBLKIO`, the one that `scripts/libblkio` fills, or the
/// system's.
///
/// # Errors
/// There is none.
pub fn libblkio() -> Result<PathBuf, String> {
    const FILE: &str = "libblkio.so.1";
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/libblkio");
    let named = std::env::var_os("IOLITE_LIBBLKIO").map(PathBuf::from);
    if let Some(directory) = named.into_iter().chain([fetched]).find(|place| place.join(FILE).exists()) {
        return directory.canonicalize().map_err(|error| error.to_string());
    }
    let listed = ["ldconfig", "/sbin/ldconfig"].into_iter().find_map(|ldconfig| {
        let listed = Command::new(ldconfig).arg("-p").output().ok()?;
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        text.lines()
            .filter(|line| line.contains(FILE))
            .find_map(|line| Some(line.rsplit_once("=> ")?.1.to_owned()))
    });
    let file = listed.ok_or("libblkio is not installed (scripts/libblkio fetches it, scripts/test does)")?;
    Ok(Path::new(&file).parent().unwrap_or(Path::new("/")).to_owned())
}

/// Compiles a stand-in for a library from this text, with the library's file name, into a directory for `LD_LIBRARY_PATH`.
///
/// # Errors
/// There is no C compiler.
///
/// # Panics
/// When it does not compile without a warning.
pub fn stand_in(text: &str, file: &str, directory: &Path) -> Result<PathBuf, String> {
    let source = directory.join(format!("{file}.c"));
    std::fs::write(&source, text).expect("the directory can be written to");
    compile_to(&source, &directory.join(file))
}
