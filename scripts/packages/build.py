"""The programs: one for glibc 2.17 and later, one that is static, for each processor.

zig is the linker and the C compiler, as it has the headers and symbols of every glibc; cargo-zigbuild puts it in its
place. cargo-auditable writes the list of dependencies into the program (read it with `cargo audit bin`); cargo-cyclonedx makes the
bill of materials beside it.
"""

import os
import pathlib
import re
import shlex
import shutil

import elf
from common import BUILD, ROOT, TOOLS, Failed, Skipped, ask, run

# Pinned: other versions may make other bytes.
PYTHON_TOOLS = ["cargo-zigbuild==0.24.1", "ziglang==0.15.2", "auditwheel==6.8.2"]
CARGO_TOOLS = ["cargo-auditable@0.7.7", "cargo-cyclonedx@0.5.9"]
LARGEST = 25 << 20
# What scripts/cross sets for a whole shell.
FOREIGN = ["CARGO_BUILD_TARGET", "CARGO_BUILD_RUSTFLAGS", "RUSTC_BOOTSTRAP"]


def tools():
    """Installs the tools below target/, once. Returns the environment that finds them."""
    # They are programs of this machine, whatever the caller's shell builds for (scripts/cross).
    for name in [name for name in os.environ if name.startswith("CARGO_UNSTABLE_") or name in FOREIGN]:
        del os.environ[name]
    # (Scripts of Python have the path of their place.)
    stamp, wanted = TOOLS / "installed", "\n".join([str(TOOLS), *PYTHON_TOOLS, *CARGO_TOOLS])
    if not stamp.exists() or stamp.read_text() != wanted:
        # zig comes from Python's registry, as cargo-zigbuild does.
        run("python3", "-m", "venv", TOOLS)
        run(TOOLS / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *PYTHON_TOOLS)
        root = ["--root", TOOLS, "--target-dir", TOOLS / "build"]
        run("cargo", "install", "--quiet", "--locked", *root, *CARGO_TOOLS)
        shutil.rmtree(TOOLS / "build", ignore_errors=True)
        stamp.write_text(wanted)
    return {"PATH": f"{TOOLS}/bin:{os.environ['PATH']}"}


def standard_library(triple):
    """Finds Rust's standard library for a target, or fetches it, or has it built. Returns the options for cargo."""
    libraries = ask("rustc", "--print", "target-libdir", "--target", triple)
    if libraries and any(pathlib.Path(libraries).glob("libstd-*.rlib")):
        return []
    sysroot = pathlib.Path(ask("rustc", "--print", "sysroot") or "")
    if shutil.which("rustup") and ask("rustup", "target", "add", triple) is not None:
        return []
    if (sysroot / "lib/rustlib/src/rust/library/Cargo.lock").exists():
        return ["-Zbuild-std=std,panic_unwind"]
    raise Skipped(f"there is no standard library for {triple}: rustup target add {triple}, or rustup component add rust-src")


def sources():
    """Where sources lie here, and what programs call these places: the same everywhere."""
    cargo = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    places = [(ROOT, "/iolite"), *((path, "/cargo") for path in sorted((cargo / "registry/src").glob("*")))]
    # Without the component rust-src, the compiler has mapped its own sources so.
    sysroot, about = ask("rustc", "--print", "sysroot"), ask("rustc", "--version", "--verbose") or ""
    commit = re.search(r"^commit-hash: (\w+)$", about, re.M)
    return [*places, *([(f"{sysroot}/lib/rustlib/src/rust", f"/rustc/{commit[1]}")] if commit else [])]


def build(triple, glibc, release):
    """Builds the program for a target. Returns its path."""
    library = standard_library(triple)
    env = tools()
    run("cargo", "fetch", "--quiet", "--locked")
    env["SOURCE_DATE_EPOCH"] = str(release.epoch)
    if release.commit:
        env["IOLITE_COMMIT"] = release.commit
    # (The separator permits blanks in names of directories.)
    flags = [f"--remap-path-prefix={here}={there}" for here, there in sources()]
    if triple.endswith("-musl"):
        # The types of times that libc means to change for musl are those of the kernel on 64-bit machines.
        flags.append("-Adeprecated")
    env["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(flags)
    env["CC_SHELL_ESCAPED_FLAGS"] = "1"
    env["CFLAGS"] = shlex.join(f"-ffile-prefix-map={here}={there}" for here, there in sources())
    if library:
        env["RUSTC_BOOTSTRAP"] = "1"
    words = ["cargo", "auditable", "zigbuild", "--locked", "--profile", "dist", "-p", "iolite", *library]
    run(*words, "--target", triple + (f".{glibc}" if glibc else ""), "--target-dir", BUILD, env=env)
    program = BUILD / triple / "dist/iolite"
    if program.stat().st_size > LARGEST:
        raise Failed(f"{program} has {program.stat().st_size} bytes, and packages promise less than {LARGEST}")
    return program


def for_glibc(arch, release):
    program = build(arch.gnu, "2.17", release)
    elf.check_dynamic(program)
    return program


def static(arch, release):
    program = build(arch.musl, None, release)
    elf.check_static(program)
    return program
