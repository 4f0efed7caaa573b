//! External engines for tests: C that is compiled against `include/iolite-engine.h`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the engine `examples/engines/NAME.c` into a directory.
///
/// # Errors
/// There is no C compiler.
///
/// # Panics
/// When the example does not compile without a warning.
pub fn example_engine(name: &str, directory: &Path) -> Result<PathBuf, String> {
    compile(&root().join(format!("examples/engines/{name}.c")), name, directory)
}

/// Compiles an engine from this text.
///
/// # Errors
/// There is no C compiler.
///
/// # Panics
/// When it does not compile without a warning.
pub fn engine_of(text: &str, name: &str, directory: &Path) -> Result<PathBuf, String> {
    let source = directory.join(format!("{name}.c"));
    std::fs::write(&source, text).expect("the directory can be written to");
    compile(&source, name, directory)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn compile(source: &Path, name: &str, directory: &Path) -> Result<PathBuf, String> {
    compile_to(source, &directory.join(format!("{name}.so")))
}

/// Compiles a shared object of this name.
pub(crate) fn compile_to(source: &Path, library: &Path) -> Result<PathBuf, String> {
    let output = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", "-I"])
        .arg(root().join("include"))
        .arg("-o")
        .arg(library)
        .arg(source)
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(library.to_owned()),
        Ok(output) => panic!("{}: {}", source.display(), String::from_utf8_lossy(&output.stderr)),
        Err(error) if error.kind() == ErrorKind::NotFound => Err("there is no C compiler (cc)".into()),
        Err(error) => panic!("cc: {error}"),
    }
}
