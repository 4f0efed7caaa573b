//! Runs work in a child process.
//!
//! The controller checks first whether the engines are usable, and forks later; and a process with threads must not
//! fork. A library starts threads as soon as it is loaded or used, and may crash, print, or change the process in other
//! ways. So before the run, libraries are only loaded in a child that does nothing else and sends its answer through a
//! pipe.

use crate::{EngineError, Errno, UNLIMITED};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How long an answer may take, beyond the time that the engine allows a request.
const PATIENCE: Duration = Duration::from_secs(60);

/// Minimum interval between two reports of progress.
const PROGRESS: Duration = Duration::from_millis(5);

/// The content of the pipe: blanks for progress, then the answer, or an error's number and message.
type Answer<T> = Result<T, (i32, String)>;

/// Does work for an engine in a child of this process, and returns its result. This process must be single-threaded.
///
/// # Errors
/// An error of `work`; a system call fails; the child died without an answer.
pub fn in_child_process<T: Serialize + DeserializeOwned>(
    engine: &str,
    work: impl FnOnce() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    in_child_process_within(engine, PATIENCE, |_| work())
}

/// The same for long work that reports progress. Each request may take this many microseconds: 0 = no limit, `None` =
/// requests are short.
///
/// # Errors
/// As [`in_child_process()`].
pub fn in_child_process_with_progress<T: Serialize + DeserializeOwned>(
    engine: &str,
    request_us: Option<u64>,
    work: impl FnOnce(&mut dyn FnMut()) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let patience = match request_us {
        Some(0) => UNLIMITED,
        limit => PATIENCE + Duration::from_micros(limit.unwrap_or(0)),
    };
    in_child_process_within(engine, patience, work)
}

fn in_child_process_within<T: Serialize + DeserializeOwned>(
    engine: &str,
    patience: Duration,
    work: impl FnOnce(&mut dyn FnMut()) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let refused = |call| {
        move |source| EngineError::InChild {
            errno: Errno::from(&source).0,
            message: format!("{call}: {source}"),
        }
    };
    let (theirs, ours) = pipe().map_err(refused("pipe"))?;
    // SAFETY: the child runs on a copy of this process, which has no other thread that could hold a lock in it, and ends
    // with _exit.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(refused("fork")(io::Error::last_os_error())),
        0 => {
            drop(theirs);
            answer(ours, work);
        }
        _ => {
            drop(ours);
            let text = read_within(theirs, patience);
            if text.is_none() {
                // SAFETY: takes nothing but integers; the child has not been waited for.
                unsafe { libc::kill(child, libc::SIGKILL) };
            }
            let status = wait(child);
            let answer = text.as_deref().and_then(|text| serde_json::from_slice::<Answer<T>>(text).ok());
            match answer {
                Some(Ok(value)) => Ok(value),
                Some(Err((errno, message))) => Err(EngineError::InChild { errno, message }),
                None if text.is_none() => {
                    Err(EngineError::Silent { engine: engine.to_owned(), seconds: patience.as_secs() })
                }
                None => Err(EngineError::Died { engine: engine.to_owned(), how: how_it_died(status) }),
            }
        }
    }
}

/// Child side: runs `work`, writes the result to the pipe, exits.
fn answer<T: Serialize>(pipe: OwnedFd, work: impl FnOnce(&mut dyn FnMut()) -> Result<T, EngineError>) -> ! {
    // The process that waits for the answer may be gone. SAFETY: takes nothing but integers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let mut pipe = File::from(pipe);
    // A blank before the answer is a sign of life.
    let mut told = Instant::now();
    let mut progress = || {
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            // (If the pipe has no reader, there is no reader for the answer either.)
            let _ = pipe.write_all(b" ");
        }
    };
    let done = catch_unwind(AssertUnwindSafe(|| work(&mut progress)));
    let status = match done {
        Ok(result) => {
            let answer = result.map_err(|error| (error.errno(), error.to_string()));
            let text = serde_json::to_vec(&answer).unwrap_or_default();
            i32::from(pipe.write_all(&text).is_err())
        }
        Err(_) => 1,
    };
    // Resources shared with the parent (buffered output, for one) must not be touched.
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: there is room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptors are new, and nothing else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Everything that is written to the pipe until it is closed; `None` = it was silent for too long.
fn read_within(pipe: OwnedFd, patience: Duration) -> Option<Vec<u8>> {
    let mut end = Instant::now() + patience;
    let mut pipe = File::from(pipe);
    let (mut text, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let mut watched = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor, valid through the call.
        let ready = unsafe { libc::poll(&raw mut watched, 1, left.as_millis().min(1 << 30) as libc::c_int) };
        match ready {
            0 if left.is_zero() => return None,
            ..=0 => continue,
            _ => {}
        }
        match pipe.read(&mut piece) {
            Ok(0) => return Some(text),
            Ok(count) => {
                text.extend_from_slice(&piece[..count]);
                end = Instant::now() + patience;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Some(text),
        }
    }
}

fn wait(child: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    // SAFETY: the pointer is valid.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    status
}

fn how_it_died(status: libc::c_int) -> String {
    if libc::WIFSIGNALED(status) {
        format!("signal {}", libc::WTERMSIG(status))
    } else {
        format!("exit status {}", libc::WEXITSTATUS(status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_errors_come_back() {
        assert_eq!(in_child_process("x", || Ok(("text".to_owned(), 7))).unwrap(), ("text".to_owned(), 7));
        // More than a pipe holds.
        let long = in_child_process("x", || Ok("x".repeat(1 << 20))).unwrap();
        assert_eq!(long.len(), 1 << 20);
        let error = in_child_process::<()>("x", || Err(EngineError::PolledNeedsDirect)).unwrap_err();
        assert_eq!(error.to_string(), EngineError::PolledNeedsDirect.to_string());
        assert_eq!(error.errno(), EngineError::PolledNeedsDirect.errno());
    }

    #[test]
    fn a_dead_child_is_reported() {
        // SAFETY: ends the process, which is the child.
        let killed = in_child_process::<()>("x", || unsafe {
            libc::kill(libc::getpid(), libc::SIGKILL);
            libc::_exit(0)
        });
        assert!(killed.unwrap_err().to_string().contains("signal 9"));
        // SAFETY: as above.
        let ended = in_child_process::<()>("x", || unsafe { libc::_exit(3) });
        assert!(ended.unwrap_err().to_string().contains("exit status 3"));
    }

    #[test]
    fn a_child_that_does_not_answer_is_ended() {
        let silent = in_child_process_within::<()>("x", Duration::from_millis(10), |_| {
            loop {
                std::thread::sleep(Duration::from_secs(1000));
            }
        });
        assert!(matches!(silent, Err(EngineError::Silent { .. })), "{silent:?}");
    }

    #[test]
    fn a_call_that_makes_progress_may_take_long() {
        // The complete work takes longer than the limit, each part of it much less, even on a busy machine.
        let slow = in_child_process_within("x", Duration::from_secs(3), |progress| {
            for _ in 0..12 {
                std::thread::sleep(Duration::from_millis(300));
                progress();
            }
            Ok(7)
        });
        assert_eq!(slow.unwrap(), 7);
    }

    #[test]
    fn changes_in_the_child_do_not_affect_the_parent() {
        // (Not its environment: another test may hold the lock of the standard library at the fork, and nobody would release it
        // in the child.)
        let before = std::env::current_dir().unwrap();
        in_child_process("x", || {
            std::env::set_current_dir("/").unwrap();
            Ok(())
        })
        .unwrap();
        assert_eq!(std::env::current_dir().unwrap(), before);
    }
}
