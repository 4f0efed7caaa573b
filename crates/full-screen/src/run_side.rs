//! The run's side: it starts the process, lends it the terminal, and takes the terminal back however the process ends.

use crate::{WORD, terminal};
use iolite_os::process::{replace, start_with_blocked, start_with_standard_streams_only};
use iolite_stats::Event;
use iolite_types::describe_error;
use iolite_web::{Handing, Hello, Lost};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long the process may take to give the terminal back.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often to check whether it has.
const LOOK: Duration = Duration::from_millis(5);

/// What the terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Only ASCII.
    pub is_ascii: bool,
    /// Colours.
    pub has_colors: bool,
}

impl Look {
    /// As an argument of the process.
    fn word(self) -> String {
        format!(
            "{}{}",
            if self.is_ascii { "ascii" } else { "utf8" },
            if self.has_colors { "+colors" } else { "" }
        )
    }

    /// From an argument of the process.
    pub(crate) fn of_word(word: &str) -> Look {
        Look { is_ascii: word.starts_with("ascii"), has_colors: word.ends_with("+colors") }
    }
}

/// The terminal while it shows a run. It is given back at the end, or when this is dropped.
#[derive(Debug)]
pub struct FullScreen {
    process: Child,
    /// `None` = the run no longer tells anything.
    handing: Option<Handing>,
    terminal: File,
    before: Termios,
    /// What was written to the terminal in the meantime, and how much of it the terminal has.
    kept: File,
    shown: u64,
    has_output: bool,
    has_error: bool,
}

impl FullScreen {
    /// Takes the terminal of standard output, and shows this run on it.
    ///
    /// # Errors
    /// The terminal cannot be used, or the process cannot be started; the message names the step that failed.
    pub fn start(hello: Hello, look: Look) -> Result<FullScreen, String> {
        let failed =
            |step: &'static str| move |error: io::Error| format!("{step}: {}", describe_error(&error));
        // The process reads keys from there.
        File::open("/dev/tty").map_err(failed("/dev/tty"))?;
        let terminal = duplicate(&io::stdout()).map_err(failed("the terminal"))?;
        let before = tcgetattr(&terminal).map_err(|error| failed("the terminal")(error.into()))?;
        let kept = memfd_create("output", MemfdFlags::CLOEXEC)
            .map_err(|error| failed("memory for output")(error.into()))?;
        let (channel, its_channel) =
            UnixStream::pair().map_err(failed("a socket for the process of the screen"))?;
        // Not by path: the file may have been replaced, and both ends must be the same program.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("iolite").args([WORD, &look.word()]).current_dir("/");
        let its_terminal = duplicate(&terminal).map_err(failed("the terminal"))?;
        command.stdin(std::os::fd::OwnedFd::from(its_channel)).stdout(its_terminal).stderr(Stdio::null());
        start_with_standard_streams_only(&mut command);
        // What ends the run ends the process after it has given the terminal back.
        start_with_blocked(&mut command, &[libc::SIGINT, libc::SIGTERM, libc::SIGQUIT, libc::SIGTSTP]);
        let process = command.spawn().map_err(failed("the process of the screen"))?;
        drop(command);
        let mut screen = FullScreen {
            process,
            handing: None,
            terminal,
            before,
            kept: kept.into(),
            shown: 0,
            has_output: true,
            has_error: io::stderr().is_terminal(),
        };
        let handing = Handing::to_viewer(channel, hello);
        screen.handing = Some(handing.map_err(failed("the process of the screen does not take the run"))?);
        let _ = io::stdout().flush();
        replace(&io::stdout(), &screen.kept).map_err(failed("standard output"))?;
        if screen.has_error {
            replace(&io::stderr(), &screen.kept).map_err(failed("standard error"))?;
        }
        Ok(screen)
    }

    /// Passes on an event. Does not block.
    ///
    /// # Errors
    /// The process has ended, so the terminal is as before. This is reported once.
    pub fn take(&mut self, event: &Event) -> Result<(), Lost> {
        let Some(handing) = &mut self.handing else { return Ok(()) };
        let Err(error) = handing.take(event) else { return Ok(()) };
        let why = match self.end() {
            Some(status) => format!("its process had {status}"),
            None => describe_error(&error),
        };
        Err(Lost::of("the screen of this run (--live=full)", &why))
    }

    /// Gives the terminal back, and shows what was written in the meantime. Returns how the process ended, if it did so by
    /// itself.
    pub fn end(&mut self) -> Option<std::process::ExitStatus> {
        // The process notices that nothing more comes.
        let was_open = self.handing.take().is_some();
        let status = self.ended();
        if status.is_none() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
        if was_open && !status.is_some_and(|status| status.success()) {
            let _ = terminal::leave(&mut self.terminal);
        }
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
        let _ = io::stdout().flush();
        if std::mem::take(&mut self.has_output) {
            let _ = replace(&io::stdout(), &self.terminal);
        }
        if std::mem::take(&mut self.has_error) {
            let _ = replace(&io::stderr(), &self.terminal);
        }
        let _ = self.show_kept();
        status
    }

    /// How the process has ended.
    fn ended(&mut self) -> Option<std::process::ExitStatus> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            match self.process.try_wait() {
                Ok(None) => thread::sleep(LOOK),
                Ok(Some(status)) => return Some(status),
                Err(_) => return None,
            }
        }
        None
    }

    fn show_kept(&mut self) -> io::Result<()> {
        let mut part = [0; 4096];
        loop {
            let count = self.kept.read_at(&mut part, self.shown)?;
            if count == 0 {
                return Ok(());
            }
            self.terminal.write_all(&part[..count])?;
            self.shown += count as u64;
        }
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.end();
    }
}

fn duplicate(stream: &impl AsFd) -> io::Result<File> {
    Ok(stream.as_fd().try_clone_to_owned()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_travel_as_words() {
        for is_ascii in [true, false] {
            for has_colors in [true, false] {
                let look = Look { is_ascii, has_colors };
                assert_eq!(Look::of_word(&look.word()), look);
            }
        }
    }
}
