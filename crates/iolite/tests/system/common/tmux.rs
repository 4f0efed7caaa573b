//! A terminal that a test sees as text: tmux without a client.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The longest wait for text.
const SLOWEST: Duration = Duration::from_secs(120);
/// The end of a command, in the title of the terminal, where no text is in its way.
const ENDED: &str = "ended with ";

/// A terminal.
pub struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// Runs a shell command in a terminal of this size, in this directory.
    ///
    /// # Errors
    /// tmux is not installed.
    pub fn start(dir: &Path, (columns, rows): (u16, u16), command: &str) -> Result<Tmux, String> {
        // Servers end some time after they were told to.
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let socket = dir.join(format!("tmux{}", STARTED.fetch_add(1, Relaxed)));
        let told = Command::new("tmux").arg("-V").output();
        if !told.is_ok_and(|output| output.status.success()) {
            return Err("tmux is not installed".to_owned());
        }
        let terminal = Tmux { socket };
        // The shell stays after the command, so that the screen does.
        let command = format!("{command}; printf '\\033]2;{ENDED}%d\\033\\\\' $?; exec sleep 600");
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let dir = dir.to_string_lossy();
        let words =
            ["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows, "-c", &dir, &command];
        let started = terminal.tmux(&words);
        assert!(started.status.success(), "{started:?}");
        Ok(terminal)
    }

    fn tmux(&self, words: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        // UTF-8, whatever the locale of the tests is.
        command.args(["-u", "-S"]).arg(&self.socket).args(words).env("LC_ALL", "C.UTF-8");
        command.output().expect("tmux starts")
    }

    /// The screen as text, with its colours if `is_colored`.
    pub fn screen(&self, is_colored: bool) -> String {
        let words: &[&str] = if is_colored { &["capture-pane", "-p", "-e"] } else { &["capture-pane", "-p"] };
        String::from_utf8_lossy(&self.tmux(words).stdout).trim_end().to_owned()
    }

    /// Changes the number of columns.
    pub fn resize(&self, columns: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string()]);
    }

    /// Changes the number of columns and rows.
    pub fn resize_to(&self, columns: u16, rows: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// Presses a key, by tmux's name for it.
    pub fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Whether programs draw on the screen without a history.
    pub fn is_alternate(&self) -> bool {
        self.tmux(&["display-message", "-p", "#{alternate_on}"]).stdout.starts_with(b"1")
    }

    /// The settings of the terminal, as `stty` tells them.
    pub fn settings(&self) -> String {
        let device = String::from_utf8(self.tmux(&["display-message", "-p", "#{pane_tty}"]).stdout).unwrap();
        let told = Command::new("stty").args(["-a", "-F", device.trim()]).output().expect("stty starts");
        String::from_utf8(told.stdout).unwrap()
    }

    /// Presses ^C.
    pub fn interrupt(&self) {
        self.tmux(&["send-keys", "C-c"]);
    }

    /// Waits until the screen is as required, and returns it.
    pub fn wait_until(&self, what: &str, condition: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let screen = self.screen(false);
            if condition(&screen) {
                return screen;
            }
            assert!(began.elapsed() < SLOWEST, "{what}:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the command has ended; returns its exit status and the last screen.
    pub fn end(&self) -> (i32, String) {
        let began = Instant::now();
        loop {
            let title = self.tmux(&["display-message", "-p", "#{pane_title}"]).stdout;
            let title = String::from_utf8_lossy(&title).trim().to_owned();
            if let Some(status) = title.strip_prefix(ENDED) {
                return (status.parse().expect("a status"), self.screen(false));
            }
            assert!(began.elapsed() < SLOWEST, "it has not ended:\n{}", self.screen(false));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
