//! The virtual machine of tests that need devices which the kernel of this machine does not have: disks that speak SCSI or
//! NVMe, flash, persistent memory.
//!
//! It is QEMU with Debian's kernel, which `scripts/vm` has put below `target/vm`. Its root is that of this machine,
//! read-only by 9p with a layer in memory above it, so programs are called by the paths that they have here. The machine is
//! booted when the first test wants it, and serves all tests of the process: a script at a time, each of which has the
//! machine to itself, and makes the devices that it needs with the functions in `vm/devices`. Devices that have to be there
//! when it boots are in `hardware`.
//!
//! A test that finds it busy boots a second one. There are two kinds of them, with the same devices: [`run`] uses the
//! release's QEMU and kernel, and [`run_newest`] those of its backports, because NVMe devices that place data need QEMU 8.1,
//! and the kernel's part in NVMe commands differs. Where the release's QEMU is new enough, one machine serves both. With
//! `IOLITE_VM=target/vm/backports`, the newer one runs all tests.
//!
//! They end with the process, however that ends. Nothing in them tells anything about speed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Condvar, Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;
use std::{fs, thread};

/// On a machine that is busy otherwise it takes a minute.
const BOOT: Duration = Duration::from_secs(300);

/// A script that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(600);

/// A script that was run in the virtual machine.
#[derive(Debug)]
pub struct Ran {
    /// Its exit status.
    pub status: i32,
    /// Its standard output and standard error.
    pub output: String,
    /// The files that it has left in its current directory, without those of a MiB and more.
    pub directory: PathBuf,
}

/// Runs a script of bash as root in the virtual machine. The name is that of its directory, and belongs to one test.
///
/// # Errors
/// Why there is no machine: the reason to skip the test.
///
/// # Panics
/// When the script does not end, or the machine dies in the middle.
pub fn run(name: &str, script: &str) -> Result<Ran, String> {
    run_in(&USUAL, &installed(), name, script)
}

/// The same in the machine with the newest QEMU and kernel.
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

/// How many machines a process can have at a time.
const MACHINES: usize = 4;

/// Those of the usual kind, and those of the newest. There are two of each, because a machine keeps one CPU busy for most
/// of the time.
const USUAL: [usize; 2] = [0, 1];
const NEWEST: [usize; 2] = [2, 3];

/// Runs a script in the first of these machines that is free.
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

/// A machine that runs no other script for as long as this exists.
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

/// The directory where `scripts/vm` has put the virtual machine's files.
fn installed() -> PathBuf {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/vm");
    std::env::var_os("IOLITE_VM").map_or_else(usual, PathBuf::from)
}

/// The properties of each NVMe namespace besides those of all; `vm/devices` names them.
const NAMESPACES: [&str; 8] = [
    "logical_block_size=512",
    "logical_block_size=4096,physical_block_size=4096",
    // Metadata: in a separate buffer or interleaved (mset), with protection information of a type (pi), in the first
    // bytes (pil), with a guard of 64 bits (pif).
    "logical_block_size=512,ms=8,mset=0,pi=1",
    "logical_block_size=512,ms=8,mset=1,pi=1",
    "logical_block_size=4096,physical_block_size=4096,ms=16,mset=1,pi=2,pif=2",
    "logical_block_size=512,ms=16,mset=0,pi=3,pil=1",
    "logical_block_size=512,ms=16,mset=1",
    // Zones of 4 MiB, of which 3 can be used.
    "logical_block_size=4096,physical_block_size=4096,zoned=on,zoned.zone_size=4M,zoned.zone_capacity=3M,zoned.max_open=4,\
     zoned.max_active=6",
];

/// Bytes of a namespace.
const NAMESPACE: u64 = 32 << 20;

/// The QEMU of a machine: its own, or that of this system.
fn qemu(installed: &Path) -> PathBuf {
    let own = installed.join("qemu");
    if own.exists() { own } else { "qemu-system-x86_64".into() }
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

/// The devices that exist when the machine boots, as arguments of QEMU and words of the kernel's command line. Their
/// data is in files of the directory.
fn hardware(qemu: &Path, directory: &Path) -> std::io::Result<(Vec<String>, Vec<&'static str>)> {
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
    // Two pieces of its memory that the kernel takes for persistent.
    Ok((devices, vec!["memmap=64M!1536M", "memmap=64M!1664M"]))
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
            // Leftovers of a killed process with the same number.
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
        fs::create_dir(&directory).expect("each script has a name of its own");
        fs::write(directory.join("script"), script).expect("the directory can be written to");
        writeln!(self.names, "{name}").expect("the virtual machine takes the name of a script");
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
        // SAFETY: takes nothing but integers; the process was started here, and nobody has waited for it.
        unsafe { libc::kill(self.process, libc::SIGKILL) };
    }

    /// The end of its kernel's and QEMU's output.
    fn last_words(&self) -> String {
        let last = |name: &str| {
            let text = fs::read(self.directory.join(name)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(15)..].join("\n")
        };
        format!("console: {}\nqemu: {}", last("console"), last("qemu"))
    }
}

/// The machine: the first serial port is the kernel's console, the second the way to the agent.
fn command(
    qemu: &Path,
    installed: &Path,
    directory: &Path,
    (devices, words): (Vec<String>, Vec<&'static str>),
) -> Command {
    let path = |name: &str| installed.join(name).display().to_string();
    // On a machine that is busy the emulated timer comes too late for the kernel's check of it, which gives up then.
    let mut line = format!(
        "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check modules={}",
        path("lib/modules")
    );
    words.iter().for_each(|word| line.extend([" ", word]));
    let mut command = Command::new(qemu);
    command.args(["-nodefaults", "-display", "none", "-no-reboot", "-machine", "q35", "-cpu", "max"]);
    // Emulated: within other virtual machines KVM is missing, or there and unable.
    command.args(["-accel", "tcg,thread=multi", "-smp", "2", "-m", "2048"]);
    command.args(["-kernel", &path("vmlinuz"), "-initrd", &path("initrd"), "-append", &line]);
    command.args(["-serial", &format!("file:{}", directory.join("console").display()), "-serial", "stdio"]);
    let shares = [(Path::new("/"), "host", ",readonly=on,multidevs=remap"), (directory, "shared", "")];
    for (path, tag, options) in shares {
        let path = path.display();
        command.args(["-fsdev", &format!("local,id={tag},path={path},security_model=none{options}")]);
        command.args(["-device", &format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}")]);
    }
    command.args(devices);
    let complaints = fs::File::create(directory.join("qemu")).map_or_else(|_| Stdio::null(), Stdio::from);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complaints).process_group(0);
    command
}

/// Starts it from a thread that stays: it dies with its parent, and the kernel takes the thread for that.
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

/// The lines that it prints, as they come.
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
    // A machine that comes after a lost one has the same.
    let _ = DIRECTORIES[number].set(directory.to_owned());
    // SAFETY: the function takes no arguments, and is there for as long as the process is.
    IS_SET.call_once(|| unsafe {
        libc::atexit(clean_up);
    });
}

extern "C" fn clean_up() {
    for process in PROCESSES.iter().map(|process| process.load(Relaxed)).filter(|&process| process > 0) {
        // SAFETY: takes nothing but integers; the process was started here, and nobody else waits for it.
        unsafe {
            libc::kill(process, libc::SIGKILL);
            libc::waitpid(process, std::ptr::null_mut(), 0);
        }
    }
    for directory in DIRECTORIES.iter().filter_map(OnceLock::get) {
        // Nobody is left to report a failure to.
        let _ = fs::remove_dir_all(directory);
    }
}
