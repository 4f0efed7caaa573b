//! The architectures of virtual machines.

use std::path::{Path, PathBuf};

/// What differs between architectures.
pub(super) struct Architecture {
    /// The name of QEMU for it.
    pub(super) qemu: &'static str,
    /// The kind of machine.
    pub(super) machine: &'static str,
    /// The console of the kernel, which is the first serial port.
    pub(super) console: &'static str,
    /// The port of the agent, with the devices that it consists of.
    pub(super) port: (&'static str, &'static [&'static str]),
    /// Words for the kernel.
    pub(super) words: &'static str,
    /// Persistent memory can be made of usual memory, by the last words.
    pub(super) persistent: &'static str,
}

// On a busy machine, the emulated timer fires too late for the kernel's timer check, and the kernel would panic.
const X86_64: Architecture = Architecture {
    qemu: "qemu-system-x86_64",
    machine: "q35",
    console: "ttyS0",
    port: ("ttyS1", &["-serial", "stdio"]),
    words: "no_timer_check",
    // Two pieces of its memory that the kernel treats as persistent memory.
    persistent: "memmap=64M!1536M memmap=64M!1664M",
};

const AARCH64: Architecture = Architecture {
    qemu: "qemu-system-aarch64",
    machine: "virt",
    console: "ttyAMA0",
    port: (
        "hvc0",
        &[
            "-chardev",
            "stdio,id=agent",
            "-device",
            "virtio-serial-pci",
            "-device",
            "virtconsole,chardev=agent",
        ],
    ),
    words: "",
    persistent: "",
};

/// The system of a machine that does not have that of this machine: its root file system.
pub(super) fn own_system(installed: &Path) -> Option<PathBuf> {
    Some(installed.join("system")).filter(|system| system.exists())
}

impl Architecture {
    /// That of the machine in this directory: all that have a system of their own are for aarch64.
    pub(super) fn of(installed: &Path) -> &'static Architecture {
        if own_system(installed).is_some() { &AARCH64 } else { &X86_64 }
    }
}
