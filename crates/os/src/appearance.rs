//! How a process appears to others: its name, its command line and its process group. Commands that end processes
//! select them by these.

use std::ffi::CStr;

/// Bytes of a process's name, with the zero at its end.
const NAME: usize = 16;

/// How a process appeared before.
#[derive(Debug)]
pub struct Appearance {
    name: [u8; NAME],
    /// `None` = the kernel does not report its place, so it is left unchanged.
    line: Option<CommandLine>,
    /// `None` = the process has not left it.
    group: Option<libc::pid_t>,
}

impl Appearance {
    /// Gives this process another name and command line, which are cut if they are too long, and its own process group.
    /// Commands that end processes by name (`killall`, `pkill`) or by group (`kill %1`, `timeout -k`) then miss it.
    ///
    /// The process must be single-threaded, and must not read its arguments any more.
    pub fn replace(name: &CStr, line: &str) -> Appearance {
        let mut before = Appearance { name: [0; NAME], line: CommandLine::of_this_process(), group: None };
        // SAFETY: the kernel writes 16 bytes, and reads up to the zero. Other calls have no pointers.
        unsafe {
            libc::prctl(libc::PR_GET_NAME, before.name.as_mut_ptr());
            libc::prctl(libc::PR_SET_NAME, name.as_ptr());
            // A group of another PID namespace has no number here, so the process could not return to it.
            let group = libc::getpgrp();
            if group > 0 && libc::setpgid(0, 0) == 0 {
                before.group = Some(group);
            }
        }
        if let Some(place) = &before.line {
            place.show(line.as_bytes());
        }
        before
    }

    /// Restores the old appearance, in a process that was forked in the meantime. (A group that is gone cannot be
    /// joined.)
    pub fn restore(&self) {
        // SAFETY: the name ends with a zero: the kernel has written it. The other call has no pointers.
        unsafe {
            libc::prctl(libc::PR_SET_NAME, self.name.as_ptr());
            if let Some(group) = self.group {
                libc::setpgid(0, group);
            }
        }
        if let Some(line) = &self.line {
            line.show(&line.text);
        }
    }
}

/// The memory that the kernel shows as the command line.
#[derive(Debug)]
struct CommandLine {
    start: usize,
    /// Its original content.
    text: Vec<u8>,
}

impl CommandLine {
    fn of_this_process() -> Option<CommandLine> {
        /// The position of `arg_start` in `stat`, counted from the field behind the name; `arg_end` follows.
        const START: usize = 45;
        let text = std::fs::read("/proc/self/cmdline").ok()?;
        let stat = String::from_utf8_lossy(&std::fs::read("/proc/self/stat").ok()?).into_owned();
        let mut fields = stat.rsplit_once(") ")?.1.split_ascii_whitespace().skip(START);
        let [start, end]: [usize; 2] = [fields.next()?.parse().ok()?, fields.next()?.parse().ok()?];
        // An emulator may report other places.
        (start > 0 && end.checked_sub(start) == Some(text.len())).then_some(CommandLine { start, text })
    }

    /// Shows this text, cut to the room for it.
    fn show(&self, text: &[u8]) {
        let mut shown = vec![0; self.text.len()];
        // The last byte is a zero, or else the kernel also shows the environment.
        let length = text.len().min(shown.len().saturating_sub(1));
        shown[..length].copy_from_slice(&text[..length]);
        let place = std::ptr::with_exposed_provenance_mut::<u8>(self.start);
        // SAFETY: the kernel has put the arguments there, in writable memory, and said how many bytes they take.
        // Nothing reads them in the meantime: this process has one thread, which does not read its arguments.
        unsafe { std::ptr::copy_nonoverlapping(shown.as_ptr(), place, shown.len()) };
    }
}
