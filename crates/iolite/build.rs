//! What the program says about its own build (`iolite version`): the compiler, the target and the profile.
//!
//! The commit is not read here: that would link the program anew after each commit. Who builds for others sets
//! `IOLITE_COMMIT`, as scripts/package does.

use std::path::Path;
use std::process::Command;

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    // cargo runs this again if the compiler, the target or the profile is another.
    println!("cargo:rerun-if-changed=build.rs");
    let said = Command::new(variable("RUSTC")).arg("--version").output();
    let compiler =
        said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned()).unwrap_or_default();
    println!("cargo:rustc-env=IOLITE_BUILD_COMPILER={compiler}");
    println!("cargo:rustc-env=IOLITE_BUILD_TARGET={}", variable("TARGET"));
    // PROFILE is debug or release, whatever the profile's name; the directory of results has its own.
    let out = variable("OUT_DIR");
    let above = Path::new(&out).ancestors().skip_while(|path| !path.ends_with("build")).nth(1);
    let profile = above.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    println!("cargo:rustc-env=IOLITE_BUILD_PROFILE={}", profile.unwrap_or_else(|| variable("PROFILE")));
}
