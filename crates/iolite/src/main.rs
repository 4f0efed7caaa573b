//! Starts the program. All of it is in the library, which cargo compiles while the crates below are still being optimised.

fn main() -> std::process::ExitCode {
    iolite::main()
}
