//! The virtual machine for tests that need devices which this machine does not have: SCSI and NVMe disks, flash,
//! persistent memory.
//!
//! It is QEMU with Debian's kernel, which `scripts/vm` puts below `target/vm`. Its root file system is that of this
//! machine, mounted read-only over 9p with a writable layer in memory above it, so programs have the same paths as
//! here. The machine boots when the first test needs it, and serves all tests of the process. It runs one script at a
//! time. Each script creates the devices that it needs with the functions in `vm/devices`. Devices that must exist when
//! the machine boots are in `hardware`.
//!
//! If the machine is busy, a test boots a second one. There are two kinds of machines, with the same devices: [`run`]
//! uses the QEMU and kernel of the Debian release, and [`run_newest`] those of its backports, because NVMe devices with
//! data placement need QEMU 8.1, and kernels handle NVMe commands differently. If the release's QEMU is new enough, one
//! machine serves both. [`run_on`] uses a machine of another architecture, with a system of its own. With `IOLITE_VM=target/vm/backports`, the newer kind runs all tests.
//!
//! The machines end with the process, even if it is killed. They say nothing about speed.

mod architecture;

use self::architecture::{Architecture, own_system};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Condvar, Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;
use std::{fs, thread};

/// The longest time that a boot may take. It takes a minute if this machine is busy.
const BOOT: Duration = Duration::from_secs(300);

/// A script that takes longer than this is considered to hang.
const PATIENCE: Duration = Duration::from_secs(600);

/// A script that was run in the virtual machine.
#[derive(Debug)]
pub struct Ran {
    /// Its exit status.
    pub status: i32,
    /// Its standard output and standard error.
    pub output: String,
    /// The directory with the files that it left in its current directory, except files of 1 MiB or more.
    pub directory: PathBuf,
}

/// Runs a bash script as root in the virtual machine. `name` is the name of its directory; no other test may use it.
///
/// # Errors
/// There is no machine; the error is the reason to skip the test.
///
/// # Panics
/// When the script hangs, or the machine dies meanwhile.
pub fn run(name: &str, script: &str) -> Result<Ran, String> {
    run_in(&USUAL, &installed(), name, script)
}

/// Runs a script like [`run`], in a machine with the newest QEMU and kernel.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_newest(name: &str, script: &str) -> Result<Ran, String> {
    let newer = installed().join("backports");
    if newer.join("package").exists() { run_in(&NEWEST, &newer, name, script) } else { run(name, script) }
}

/// A machine whose processor is of another architecture than usual (which is x86-64), or whose pages have another size.
/// Its root file system is an installation of Debian below `target/vm`. The project has the same path as here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// An aarch64 processor.
    Arm64,
    /// An aarch64 processor, and a kernel with pages of 16 KiB.
    Arm64Pages16K,
    /// An aarch64 processor, and a kernel with pages of 64 KiB, which is Ubuntu's.
    Arm64Pages64K,
}

/// Runs a script like [`run`], in a machine of another kind.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_on(other: Other, name: &str, script: &str) -> Result<Ran, String> {
    match other {
        Other::Arm64 => run_in(&ARM64, &installed().join("arm64"), name, script),
        Other::Arm64Pages16K => run_in(&ARM64_PAGES_16K, &installed().join("arm64-16k"), name, script),
        Other::Arm64Pages64K => run_in(&ARM64_PAGES_64K, &installed().join("arm64-64k"), name, script),
    }
}

/// The maximum number of machines per process.
const MACHINES: usize = 7;

/// The numbers of the machines of the usual kind, and of those of the newest. There are only two of each, because a
/// machine keeps one CPU busy for most of the time.
const USUAL: [usize; 2] = [0, 1];
const NEWEST: [usize; 2] = [2, 3];
const ARM64: [usize; 1] = [4];
const ARM64_PAGES_16K: [usize; 1] = [5];
const ARM64_PAGES_64K: [usize; 1] = [6];

/// Runs a script in the first free one of these machines.
fn run_in(numbers: &[usize], installed: &Path, name: &str, script: &str) -> Result<Ran, String> {
    static RUNNING: [Mutex<Option<Result<Machine, String>>>; MACHINES] =
        [const { Mutex::new(None) }; MACHINES];
    let taken = Taken::one_of(numbers);
    let mut place = RUNNING[taken.number].lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Ok(machine)) = &*place
        && machine.is_lost
    {
        *place = None;
    }
    match place.get_or_insert_with(|| Machine::boot(taken.number, installed)) {
        Ok(machine) => Ok(machine.run(name, script)),
        Err(reason) => Err(reason.clone()),
    }
}

/// Reserves a machine: it runs no other script while this value exists.
struct Taken {
    number: usize,
}

impl Taken {
    /// Waits until one of these machines is free.
    fn one_of(numbers: &[usize]) -> Taken {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |taken: &mut [bool; MACHINES]| numbers.iter().all(|&number| taken[number]);
        let mut taken = FREED.wait_while(taken, is_full).unwrap_or_else(PoisonError::into_inner);
        let free = numbers.iter().copied().find(|&number| !taken[number]);
        let number = free.expect("the wait ends when one is free");
        taken[number] = true;
        Taken { number }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner)[self.number] = false;
        FREED.notify_all();
    }
}

static TAKEN: Mutex<[bool; MACHINES]> = Mutex::new([false; MACHINES]);
static FREED: Condvar = Condvar::new();

/// The directory into which `scripts/vm` puts the virtual machine's files.
fn installed() -> PathBuf {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/vm");
    std::env::var_os("IOLITE_VM").map_or_else(usual, PathBuf::from)
}

/// The properties of each NVMe namespace, besides those that all have in common; `vm/devices` names the namespaces.
const NAMESPACES: [&str; 8] = [
    "logical_block_size=512",
    "logical_block_size=4096,physical_block_size=4096",
    // Metadata: in a separate buffer or interleaved (mset), with protection information of some type (pi), in the
    // first bytes (pil), with a guard of 64 bits (pif).
    "logical_block_size=512,ms=8,mset=0,pi=1",
    "logical_block_size=512,ms=8,mset=1,pi=1",
    "logical_block_size=4096,physical_block_size=4096,ms=16,mset=1,pi=2,pif=2",
    "logical_block_size=512,ms=16,mset=0,pi=3,pil=1",
    "logical_block_size=512,ms=16,mset=1",
    // Zones of 4 MiB, of which 3 MiB can be used.
    "logical_block_size=4096,physical_block_size=4096,zoned=on,zoned.zone_size=4M,zoned.zone_capacity=3M,zoned.max_open=4,\
     zoned.max_active=6",
];

/// The size of a namespace in bytes.
const NAMESPACE: u64 = 32 << 20;

/// The QEMU of a machine: the one in its directory, or else that of this system.
fn qemu(installed: &Path) -> PathBuf {
    let own = installed.join("qemu");
    if own.exists() { own } else { Architecture::of(installed).qemu.into() }
}

/// Whether this QEMU emulates Flexible Data Placement: since 8.1.
fn places_data(qemu: &Path) -> bool {
    let output = Command::new(qemu).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let version = text.split("version ").nth(1).unwrap_or_default();
    let mut numbers = version.split(['.', ' ', '(']).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (8, 1)
}

/// A separate controller with a namespace that has four placement handles, in a subsystem with reclaim units of 8 MiB.
fn placement(directory: &Path) -> std::io::Result<Vec<String>> {
    let image = directory.join("placement");
    fs::File::create(&image)?.set_len(NAMESPACE)?;
    let drive = format!("file={},if=none,format=raw,discard=unmap,id=placed", image.display());
    let devices = [
        "-device",
        "nvme-subsys,id=placing,fdp=on,fdp.nruh=4,fdp.nrg=1,fdp.runs=8M",
        "-device",
        "nvme,serial=placement,id=placement,subsys=placing",
        "-drive",
        &drive,
        "-device",
        "nvme-ns,drive=placed,bus=placement,nsid=1,logical_block_size=4096,physical_block_size=4096,fdp.ruhs=0;1;2;3",
    ];
    Ok(devices.into_iter().map(str::to_owned).collect())
}

/// The devices that exist when the machine boots, as arguments of QEMU. Their data is in files in the directory.
fn hardware(qemu: &Path, directory: &Path) -> std::io::Result<Vec<String>> {
    let mut devices = vec!["-device".to_owned(), "nvme,serial=iolite,id=nvme".to_owned()];
    for (kind, number) in NAMESPACES.iter().zip(1..) {
        let image = directory.join(format!("namespace{number}"));
        fs::File::create(&image)?.set_len(NAMESPACE)?;
        let drive = format!("file={},if=none,format=raw,discard=unmap,id=drive{number}", image.display());
        let namespace = format!("nvme-ns,drive=drive{number},bus=nvme,nsid={number},{kind}");
        devices.extend(["-drive".to_owned(), drive, "-device".to_owned(), namespace]);
    }
    if places_data(qemu) {
        devices.extend(placement(directory)?);
    }
    Ok(devices)
}

struct Machine {
    directory: PathBuf,
    process: i32,
    names: ChildStdin,
    answers: Receiver<String>,
    is_lost: bool,
}

impl Machine {
    fn boot(number: usize, installed: &Path) -> Result<Machine, String> {
        let installed = installed.canonicalize().map_err(|_| {
            "there is no virtual machine (scripts/vm, or scripts/test --everything, makes one)".to_owned()
        })?;
        let qemu = qemu(&installed);
        let directory = std::env::temp_dir().join(format!("iolite-vm-{}-{number}", std::process::id()));
        let prepared = || {
            // A killed process with the same ID may have left a directory.
            let _ = fs::remove_dir_all(&directory);
            fs::create_dir(&directory)?;
            fs::write(directory.join("agent"), include_str!("vm/agent"))?;
            fs::write(directory.join("devices"), include_str!("vm/devices"))?;
            hardware(&qemu, &directory)
        };
        let hardware = prepared().map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut child = started(command(&qemu, &installed, &directory, hardware))
            .map_err(|error| format!("the virtual machine cannot be started: {}: {error}", qemu.display()))?;
        end_at_exit(number, child.id() as i32, &directory);
        let (answers, names) = (lines_of(&mut child), child.stdin.take().expect("its input is a pipe"));
        let process = child.id() as i32;
        let mut machine = Machine { directory, process, names, answers, is_lost: false };
        match machine.answer(BOOT) {
            Ok(word) if word == "ready" => Ok(machine),
            other => {
                machine.end();
                Err(format!("the virtual machine does not boot ({other:?}); {}", machine.last_words()))
            }
        }
    }

    fn run(&mut self, name: &str, script: &str) -> Ran {
        let directory = self.directory.join(name);
        fs::create_dir(&directory).expect("each script has its own name");
        fs::write(directory.join("script"), script).expect("the directory can be written to");
        writeln!(self.names, "{name}").expect("the virtual machine accepts the name of a script");
        let answer = self.answer(PATIENCE);
        let output = fs::read(directory.join("output")).unwrap_or_default();
        let output = String::from_utf8_lossy(&output).into_owned();
        let status = answer.as_deref().ok().and_then(|answer| answer.strip_prefix(name)?.trim().parse().ok());
        let Some(status) = status else {
            self.end();
            panic!("the script does not end ({answer:?})\n{output}\n{}", self.last_words());
        };
        Ran { status, output, directory }
    }

    fn answer(&mut self, patience: Duration) -> Result<String, RecvTimeoutError> {
        self.answers.recv_timeout(patience)
    }

    fn end(&mut self) {
        self.is_lost = true;
        // SAFETY: takes nothing but integers; the process was started here and has not been waited for.
        unsafe { libc::kill(self.process, libc::SIGKILL) };
    }

    /// The last output of its kernel and of QEMU.
    fn last_words(&self) -> String {
        let last = |name: &str| {
            let text = fs::read(self.directory.join(name)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(80)..].join("\n")
        };
        format!("console: {}\nqemu: {}", last("console"), last("qemu"))
    }
}

/// QEMU's command. The first serial port is the kernel's console, another one the connection to the agent.
fn command(qemu: &Path, installed: &Path, directory: &Path, devices: Vec<String>) -> Command {
    let path = |name: &str| installed.join(name).display().to_string();
    let (is, system) = (Architecture::of(installed), own_system(installed));
    let project =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project is there");
    // In a system of its own, modules are where they belong.
    let (modules, at) = match &system {
        Some(_) => ("/usr/lib/modules".to_owned(), format!("project={}", project.display())),
        None => (path("lib/modules"), String::new()),
    };
    // QEMU translates a program anew wherever it is loaded, which takes longer than to run it: so each is always loaded at the
    // same addresses (norandmaps). The console has the kernel's warnings, with the place where a processor hangs.
    let line = format!(
        "console={} loglevel=5 panic=-1 mitigations=off norandmaps port={} modules={modules} {at} {} {}",
        is.console, is.port.0, is.words, is.persistent
    );
    let mut command = Command::new(qemu);
    command.args(["-nodefaults", "-display", "none", "-no-reboot", "-machine", is.machine, "-cpu", "max"]);
    // Emulated, because within other virtual machines KVM is missing or does not work.
    command.args(["-accel", "tcg,thread=multi", "-smp", "2", "-m", "2048"]);
    command.args(["-kernel", &path("vmlinuz"), "-initrd", &path("initrd"), "-append", &line]);
    command.args(["-serial", &format!("file:{}", directory.join("console").display())]).args(is.port.1);
    const READ: &str = ",readonly=on,multidevs=remap";
    let root = system.as_deref().unwrap_or(Path::new("/"));
    let project = system.is_some().then_some((project.as_path(), "project", READ));
    for (path, tag, options) in [(root, "host", READ), (directory, "shared", "")].into_iter().chain(project) {
        let path = path.display();
        command.args(["-fsdev", &format!("local,id={tag},path={path},security_model=none{options}")]);
        command.args(["-device", &format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}")]);
    }
    command.args(devices);
    let complaints = fs::File::create(directory.join("qemu")).map_or_else(|_| Stdio::null(), Stdio::from);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complaints).process_group(0);
    command
}

/// Starts QEMU from a thread that never ends: QEMU dies with its parent, and for the kernel the parent is the thread.
fn started(mut command: Command) -> std::io::Result<Child> {
    // SAFETY: the call takes nothing but integers, and may be made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let (give, take) = mpsc::channel();
    thread::spawn(move || {
        if give.send(command.spawn()).is_ok() {
            loop {
                thread::park();
            }
        }
    });
    take.recv().expect("the thread answers")
}

/// Receives the lines that it prints.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let (give, take) = mpsc::channel();
    let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
    thread::spawn(move || {
        let lines = output.lines().map_while(Result::ok);
        lines.map(|line| line.trim().to_owned()).take_while(|line| give.send(line.clone()).is_ok()).count()
    });
    take
}

/// The processes to end, and the directories to remove, when this process ends. (Values of statics are not dropped.)
static PROCESSES: [AtomicI32; MACHINES] = [const { AtomicI32::new(0) }; MACHINES];
static DIRECTORIES: [OnceLock<PathBuf>; MACHINES] = [const { OnceLock::new() }; MACHINES];

fn end_at_exit(number: usize, process: i32, directory: &Path) {
    static IS_SET: Once = Once::new();
    PROCESSES[number].store(process, Relaxed);
    // A machine that replaces a dead one has the same directory.
    let _ = DIRECTORIES[number].set(directory.to_owned());
    // SAFETY: the function takes no arguments, and stays valid as long as the process exists.
    IS_SET.call_once(|| unsafe {
        libc::atexit(clean_up);
    });
}

extern "C" fn clean_up() {
    for process in PROCESSES.iter().map(|process| process.load(Relaxed)).filter(|&process| process > 0) {
        // SAFETY: takes nothing but integers; the process was started here, and nothing else waits for it.
        unsafe {
            libc::kill(process, libc::SIGKILL);
            libc::waitpid(process, std::ptr::null_mut(), 0);
        }
    }
    for directory in DIRECTORIES.iter().filter_map(OnceLock::get) {
        // A failure cannot be reported any more.
        let _ = fs::remove_dir_all(directory);
    }
}
