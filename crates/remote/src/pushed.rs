//! The program that `--push` sends to another machine: this one, a file, or the one for the machine's processor from a directory of
//! packages.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// This program, as a path.
pub const THIS: &str = "/proc/self/exe";

/// A processor: its name in `uname -m`, in packages, and its number in ELF files.
struct Processor(&'static str, &'static str, u16);

/// Those that there are packages for.
const PROCESSORS: [Processor; 2] = [Processor("x86_64", "amd64", 62), Processor("aarch64", "arm64", 183)];

/// Opens the program for a machine of this kind, which is what `uname -sm` says there.
///
/// # Errors
/// There is none, or it cannot be read.
pub(crate) fn program_for(from: &Path, kind: &str) -> Result<File, String> {
    let processor = PROCESSORS.iter().find(|Processor(name, ..)| kind == format!("Linux {name}"));
    if !from.is_dir() {
        return open(from, kind, processor);
    }
    let Some(Processor(_, arch, _)) = processor else {
        return Err(format!(
            "--push: that machine is \"{kind}\", for which there are no packages; install a program that was built there"
        ));
    };
    let file = from.join(format!("iolite-push-{}-linux-{arch}", env!("CARGO_PKG_VERSION")));
    if file.exists() {
        return open(&file, kind, processor);
    }
    // This program may be meant for its own processor, and the directory for the others.
    open(Path::new(THIS), kind, processor).map_err(|_| {
        format!(
            "--push: that machine is \"{kind}\", and there is no {} (scripts/package --arch={arch} push makes it)",
            file.display()
        )
    })
}

/// Opens a program, if it is for this processor.
fn open(path: &Path, kind: &str, processor: Option<&Processor>) -> Result<File, String> {
    let is_this = path == Path::new(THIS);
    let what = if is_this { "this program".to_owned() } else { path.display().to_string() };
    let failed = |error: std::io::Error| format!("--push: {what}: {error}");
    let machine = machine_of(path).map_err(failed)?;
    let fits = machine.is_some() && machine == processor.map(|Processor(.., number)| *number);
    // (There are packages for two processors; this program may be for another one.)
    if fits || is_this && kind == format!("Linux {}", std::env::consts::ARCH) {
        return File::open(path).map_err(failed);
    }
    let is_for = match PROCESSORS.iter().find(|Processor(.., known)| Some(*known) == machine) {
        Some(Processor(name, ..)) => format!("for \"Linux {name}\""),
        None if is_this => format!("for \"Linux {}\"", std::env::consts::ARCH),
        None => "no program for Linux that is known here".to_owned(),
    };
    let remedy = match processor {
        Some(_) => {
            "--push=DIRECTORY takes iolite-push for its processor from a directory of packages, or install the program there"
        }
        None => "install a program that was built there",
    };
    Err(format!("--push: that machine is \"{kind}\", and {what} is {is_for}; {remedy}"))
}

/// The number of the processor that an ELF file is for; `None` = it is no ELF file.
fn machine_of(path: &Path) -> std::io::Result<Option<u16>> {
    let mut head = Vec::new();
    File::open(path)?.take(20).read_to_end(&mut head)?;
    let is_elf = head.len() == 20 && head.starts_with(b"\x7fELF\x02\x01");
    Ok(is_elf.then(|| u16::from_le_bytes([head[18], head[19]])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn elf(machine: u16) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(18, 0);
        bytes.extend(machine.to_le_bytes());
        bytes
    }

    #[test]
    fn each_machine_gets_the_program_of_its_processor() {
        let own = format!("Linux {}", std::env::consts::ARCH);
        let other = PROCESSORS.iter().find(|Processor(name, ..)| *name != std::env::consts::ARCH).unwrap();
        let others = format!("Linux {}", other.0);
        let size = |file: Result<File, String>| file.unwrap().metadata().unwrap().len();
        let why = |from: &Path, kind: &str| program_for(from, kind).unwrap_err();

        let this = Path::new(THIS);
        assert_eq!(size(program_for(this, &own)), fs::metadata(THIS).unwrap().len());
        assert!(why(this, &others).contains(&format!("is \"{others}\", and this program is for \"{own}\"")));

        let directory = tempfile::tempdir().unwrap();
        let of = |arch: &str| format!("iolite-push-{}-linux-{arch}", env!("CARGO_PKG_VERSION"));
        assert_eq!(size(program_for(directory.path(), &own)), fs::metadata(THIS).unwrap().len());
        assert!(
            why(directory.path(), &others)
                .contains(&format!("there is no {}", directory.path().join(of(other.1)).display()))
        );
        assert!(why(directory.path(), "Linux riscv64").contains("there are no packages"));
        for Processor(_, arch, machine) in PROCESSORS {
            let mut bytes = elf(machine);
            bytes.extend(vec![0; usize::from(machine)]);
            fs::write(directory.path().join(of(arch)), bytes).unwrap();
        }
        for Processor(name, arch, machine) in PROCESSORS {
            let kind = format!("Linux {name}");
            assert_eq!(size(program_for(directory.path(), &kind)), 20 + u64::from(machine));
            assert_eq!(size(program_for(&directory.path().join(of(arch)), &kind)), 20 + u64::from(machine));
        }

        let script = directory.path().join("script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        assert!(why(&script, &own).contains("script is no program for Linux"));
        assert!(why(&directory.path().join("none"), &own).contains("No such file"));
    }
}
