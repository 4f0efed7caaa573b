//! Resources that threads and processes have used: CPU time, context switches, page faults.

use std::path::PathBuf;

/// Resources used by a thread, or by all threads of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// User CPU time, µs.
    pub user_us: u64,
    /// System CPU time, µs.
    pub system_us: u64,
    /// Context switches, voluntary or not.
    pub context_switches: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Minor page faults.
    pub minor_faults: u64,
}

impl Usage {
    /// The usage of this thread so far.
    pub fn of_this_thread() -> Usage {
        of(libc::RUSAGE_THREAD)
    }

    /// The usage of this process so far, including threads that have ended.
    pub fn of_this_process() -> Usage {
        of(libc::RUSAGE_SELF)
    }

    /// The usage of a thread of this process so far, by its id; `None` if it has ended. Only the CPU time is known. The
    /// sum is exact; its division into user and system time is known only in ticks of 10 ms.
    pub fn of_thread(id: i32) -> Option<Usage> {
        let total = cpu_time_us(id)?;
        let (user, system) = ticks(&std::fs::read_to_string(stat_of(id)).ok()?)?;
        let user_us = match user + system {
            0 => total,
            ticks => (u128::from(total) * u128::from(user) / u128::from(ticks)) as u64,
        };
        Some(Usage { user_us, system_us: total - user_us, ..Usage::default() })
    }

    /// The sum of both.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            user_us: self.user_us + other.user_us,
            system_us: self.system_us + other.system_us,
            context_switches: self.context_switches + other.context_switches,
            major_faults: self.major_faults + other.major_faults,
            minor_faults: self.minor_faults + other.minor_faults,
        }
    }

    /// The difference from an earlier usage.
    pub fn since(self, before: Usage) -> Usage {
        Usage {
            user_us: self.user_us.saturating_sub(before.user_us),
            system_us: self.system_us.saturating_sub(before.system_us),
            context_switches: self.context_switches.saturating_sub(before.context_switches),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
        }
    }
}

fn of(whom: libc::c_int) -> Usage {
    // SAFETY: the structure is plain data, valid as zeros; the call fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(whom, &raw mut usage);
        usage
    };
    Usage::from(&usage)
}

impl From<&libc::rusage> for Usage {
    fn from(usage: &libc::rusage) -> Usage {
        let microseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        Usage {
            user_us: microseconds(usage.ru_utime),
            system_us: microseconds(usage.ru_stime),
            context_switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
            major_faults: usage.ru_majflt as u64,
            minor_faults: usage.ru_minflt as u64,
        }
    }
}

/// The CPU time of a thread of this process, in µs.
fn cpu_time_us(id: i32) -> Option<u64> {
    // The kernel's id for the CPU clock of a thread (<linux/posix-timers.h>: CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED).
    let clock = (!id << 3) | 6;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid through the call.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then(|| time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000)
}

fn stat_of(id: i32) -> PathBuf {
    format!("/proc/self/task/{id}/stat").into()
}

/// User and system time in ticks: fields 14 and 15 of a line in the format of proc_pid_stat(5). Field 2 is a name in
/// parentheses and may contain any character.
fn ticks(line: &str) -> Option<(u64, u64)> {
    let (_, behind_name) = line.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let user = fields.next()?.parse().ok()?;
    Some((user, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stand_behind_the_name() {
        let line = "7 (a) 1 2) S 1 2 3 4 5 6 7 8 9 10 21 12 13 14";
        assert_eq!(ticks(line), Some((21, 12)));
        assert_eq!(ticks("7 (a"), None);
    }

    #[test]
    fn threads_are_counted_each_for_itself_and_together() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let busy = std::thread::spawn(move || {
            while Usage::of_this_thread().user_us < 20_000 {}
            tell.send(crate::process::thread_id()).unwrap();
            // Stay alive until the test has read the usage.
            ended.recv().ok();
        });
        let id = told.recv().unwrap();
        let used = Usage::of_thread(id).unwrap();
        assert!(used.user_us + used.system_us >= 20_000, "{used:?}");
        let process = Usage::of_this_process();
        assert!(process.user_us + process.system_us >= 20_000, "{process:?}");
        drop(end);
        busy.join().unwrap();
        assert_eq!(Usage::of_thread(-1), None);
        let sum = used.plus(process);
        assert_eq!(sum.since(process), used);
    }
}
