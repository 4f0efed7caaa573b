//! The program, which is the crate's library: so it can be compiled while the crates below are still being optimised.

fn main() -> std::process::ExitCode {
    iolite::main()
}
