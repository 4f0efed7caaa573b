//! An HDFS cluster for tests, in one Java process: a namenode and a datanode. All tests of a program share it, one at a
//! time, because some of them stop parts of it. It ends when the program does, because its standard input ends then.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A cluster.
pub struct Hdfs {
    /// The port of its namenode, on 127.0.0.1.
    pub port: u16,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    id: i32,
}

impl Hdfs {
    /// The cluster, locked for the caller. The first call starts it.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    ///
    /// # Panics
    /// When it is installed but does not start.
    pub fn shared() -> Result<MutexGuard<'static, Hdfs>, String> {
        static SHARED: OnceLock<Result<Mutex<Hdfs>, String>> = OnceLock::new();
        match SHARED.get_or_init(|| Hdfs::start().map(Mutex::new)) {
            Ok(shared) => Ok(shared.lock().unwrap_or_else(PoisonError::into_inner)),
            Err(reason) => Err(reason.clone()),
        }
    }

    fn start() -> Result<Hdfs, String> {
        let installed = match std::env::var_os("IOLITE_HDFS") {
            Some(named) => PathBuf::from(named),
            None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/hdfs"),
        };
        if !installed.join("version").exists() {
            return Err(
                "HDFS is not installed (scripts/hdfs fetches it, scripts/test --everything does)".to_owned()
            );
        }
        let directory = std::env::temp_dir().join(format!("iolite-hdfs-{}", std::process::id()));
        fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let classes = format!("{0}/classes:{0}/lib/*", installed.display());
        let mut command = Command::new("java");
        command.args(["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
        command.args(["--add-opens", "java.base/java.lang=ALL-UNNAMED", "-cp", &classes, "Cluster"]);
        let log = fs::File::create(directory.join("log")).map_err(|error| error.to_string())?;
        command.arg(&directory).current_dir(&directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        // If a signal ended it, it would not clean up. So it ends when its standard input ends.
        let mut server = command.spawn().map_err(|error| format!("java: {error}"))?;
        let id = i32::try_from(server.id()).expect("a pid fits");
        let orders = server.stdin.take().expect("it has a standard input");
        let answers = BufReader::new(server.stdout.take().expect("it has a standard output"));
        let mut hdfs = Hdfs { port: 0, orders, answers, id };
        let words = || fs::read_to_string(directory.join("log")).unwrap_or_default();
        let said = hdfs.answer();
        hdfs.port = match said.strip_prefix("ready ").and_then(|port| port.parse().ok()) {
            Some(port) => port,
            None => panic!("HDFS does not start: {said}{}", words()),
        };
        Ok(hdfs)
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("its output can be read");
        line.trim_end().to_owned()
    }

    /// Sends the cluster a command; `hdfs/Cluster.java` lists them.
    ///
    /// # Panics
    /// When the cluster does not answer.
    #[track_caller]
    pub fn tell(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").expect("the cluster runs");
        let answer = self.answer();
        match answer.strip_prefix("ok") {
            Some(rest) => rest.trim().to_owned(),
            None => panic!("{order}: {answer}"),
        }
    }

    /// Stops the cluster or lets it continue (SIGSTOP, SIGCONT).
    pub fn signal(&self, signal: i32) {
        // SAFETY: takes nothing but integers; the child has not been waited for.
        unsafe { libc::kill(self.id, signal) };
    }

    /// The files in a directory with their lengths, sorted by name: `NAME=BYTES`.
    #[track_caller]
    pub fn list(&mut self, directory: &str) -> Vec<String> {
        let mut found: Vec<String> =
            self.tell(&format!("list {directory}")).split_whitespace().map(str::to_owned).collect();
        found.sort();
        found
    }
}
