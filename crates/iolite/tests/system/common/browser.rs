//! A browser for tests of pages: headless Chromium, controlled by WebDriver (<https://www.w3.org/TR/webdriver2/>).

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The time limit for answers of the driver, and for the conditions that tests wait for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time limit for scripts and for loading a page.
const SLOWEST: Duration = Duration::from_secs(300);

/// WebDriver's codes of keys.
pub const BACKSPACE: char = '\u{e003}';
pub const TAB: char = '\u{e004}';
pub const ENTER: char = '\u{e006}';
pub const ARROW_DOWN: char = '\u{e015}';

/// Runs the driver and its browser in a process group, and kills the group when the standard input ends: when a test
/// drops the browser, or when the test process is killed. (A killed driver would leave its browser behind.) The shell
/// closes its output, so that the output ends with the driver.
const GROUP: &str = "chromedriver --port=0 & exec >/dev/null; read _; kill -s KILL -- -$$";

/// A browser with one page.
pub struct Browser {
    group: Child,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser.
    ///
    /// # Errors
    /// There is no browser here; the error is the reason to skip the test.
    pub fn start() -> Result<Browser, String> {
        let profile = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut command = Command::new("sh");
        command.args(["-c", GROUP]).process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let started = command.stderr(Stdio::null()).spawn();
        let mut group = started.map_err(|error| format!("chromedriver cannot be started: {error}"))?;
        let output = group.stdout.take().map(BufReader::new);
        let mut lines = output.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
        let port = lines.find_map(|line| {
            let (_, port) = line.split_once("successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        // Drain its other output, so that the pipe does not fill.
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser =
            Browser { group, port: port.unwrap_or(0), session: String::new(), _profile: profile };
        if browser.port == 0 {
            return Err("chromedriver is not installed, or did not say on which port it is".to_owned());
        }
        let directory = format!("--user-data-dir={}", browser._profile.path().display());
        let arguments =
            ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", &directory];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            // Accepts certificates that a run has created for itself.
            "acceptInsecureCerts": true,
            // (The default for scripts is 30 s, which is too short for large pages on a busy machine.)
            "timeouts": {"script": SLOWEST.as_millis() as u64, "pageLoad": SLOWEST.as_millis() as u64},
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let answer = browser.call("POST", "/session", &wanted)?;
        let session = answer["sessionId"].as_str().ok_or_else(|| format!("no browser starts: {answer}"))?;
        browser.session = format!("/session/{session}");
        Ok(browser)
    }

    /// Opens a file.
    ///
    /// # Panics
    /// It cannot be opened.
    pub fn open(&self, page: &Path) {
        self.go_to(&format!("file://{}", page.display()));
    }

    /// Opens an address.
    ///
    /// # Panics
    /// It cannot be opened.
    pub fn go_to(&self, address: &str) {
        self.ask("POST", "/url", &json!({ "url": address }));
    }

    /// Makes each page that is opened from now on store, as `readyAfter`, the milliseconds until its pictures are on
    /// the screen.
    ///
    /// # Panics
    /// The browser cannot do that.
    pub fn note_when_ready(&self) {
        let script = "new MutationObserver(() => document.documentElement.dataset.ready && requestAnimationFrame(() => \
                        requestAnimationFrame(() => { window.readyAfter ??= performance.now(); }))) \
                        .observe(document, { attributes: true, subtree: true, attributeFilter: ['data-ready'] })";
        let added = json!({"cmd": "Page.addScriptToEvaluateOnNewDocument", "params": {"source": script}});
        self.ask("POST", "/goog/cdp/execute", &added);
    }

    /// Shows pages as on a screen of this size, in light or dark colours.
    ///
    /// # Panics
    /// The browser cannot do that.
    pub fn show_as(&self, width: u32, height: u32, is_dark: bool) {
        let scheme = if is_dark { "dark" } else { "light" };
        for (command, parameters) in [
            (
                "Emulation.setDeviceMetricsOverride",
                json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}),
            ),
            (
                "Emulation.setEmulatedMedia",
                json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
            ),
        ] {
            self.ask("POST", "/goog/cdp/execute", &json!({"cmd": command, "params": parameters}));
        }
    }

    /// Types on the keyboard. Keys that are not characters have special codes ([`ARROW_DOWN`] and so on).
    ///
    /// # Panics
    /// The browser cannot do that.
    pub fn type_keys(&self, text: &str) {
        let pressed = |key: char| {
            [
                json!({"type": "keyDown", "value": key.to_string()}),
                json!({"type": "keyUp", "value": key.to_string()}),
            ]
        };
        let keys: Vec<Value> =
            text.chars().map(|key| if key == '\n' { ENTER } else { key }).flat_map(pressed).collect();
        self.ask(
            "POST",
            "/actions",
            &json!({"actions": [{"type": "key", "id": "keyboard", "actions": keys}]}),
        );
    }

    /// The result of a script in the page.
    ///
    /// # Panics
    /// It throws.
    pub fn run(&self, script: &str) -> Value {
        self.ask("POST", "/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Waits until a script in the page returns true.
    ///
    /// # Panics
    /// It does not within the time limit.
    pub fn wait_until(&self, script: &str) {
        let begun = std::time::Instant::now();
        while self.run(script) != true {
            assert!(begun.elapsed() < PATIENCE, "it never comes true: {script}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The messages on the page's console since the last call.
    ///
    /// # Panics
    /// The driver does not answer.
    pub fn console(&self) -> Vec<String> {
        let entries = self.ask("POST", "/se/log", &json!({"type": "browser"}));
        entries.as_array().into_iter().flatten().map(|entry| entry["message"].to_string()).collect()
    }

    /// A screenshot of the page, as PNG in Base64.
    ///
    /// # Panics
    /// The browser cannot take one.
    pub fn screenshot(&self) -> String {
        let picture = json!({"cmd": "Page.captureScreenshot", "params": {"captureBeyondViewport": true}});
        let answer = self.ask("POST", "/goog/cdp/execute", &picture);
        answer["data"].as_str().expect("a picture").to_owned()
    }

    /// Checks the rules for all pages: the page is as wide as its window, texts of its pictures do not overlap, nothing
    /// is loaded from elsewhere, and the console is empty. `IOLITE_SCREENSHOTS=DIRECTORY` keeps a screenshot with this
    /// name.
    ///
    /// # Panics
    /// A check fails.
    pub fn check(&self, name: &str) {
        if let Some(directory) = std::env::var_os("IOLITE_SCREENSHOTS") {
            let file = Path::new(&directory).join(format!("{name}.png.base64"));
            std::fs::write(file, self.screenshot()).expect("a picture can be kept");
        }
        let wide = self.run(
            "return document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('main *')] \
               .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest('.scroll')).map((one) => one.outerHTML.slice(0, 100))",
        );
        assert_eq!(wide, json!([]), "{name} is wider than its window");
        let overlapping = self.run(
            "return [...document.querySelectorAll('svg.chart')].flatMap((svg) => { \
               const boxes = [...svg.querySelectorAll('text')].map((text) => text.getBoundingClientRect()); \
               return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => a.left < b.right - 1 && b.left < a.right - 1 \
                 && a.top < b.bottom - 2 && b.top < a.bottom - 2).map(() => svg.getAttribute('aria-label'))); })",
        );
        assert_eq!(overlapping, json!([]), "texts overlap in {name}");
        let loaded = self.run(
            "return performance.getEntriesByType('resource').map((one) => one.name) \
               .filter((one) => location.protocol === 'file:' || !one.startsWith(location.origin + '/'))",
        );
        assert_eq!(loaded, json!([]), "{name} loads something from elsewhere");
        assert_eq!(self.console(), Vec::<String>::new(), "the console of {name}");
    }

    /// Checks the tables of a page on a phone, a tablet and a screen, with all its parts open: what is wider than its
    /// place can be scrolled with the keyboard too, and shadows at its edges say so; on a phone, IOPS, bandwidth and p99
    /// are in view; and the page itself is as wide as its window.
    ///
    /// # Panics
    /// A check fails.
    pub fn check_tables(&self, name: &str) {
        // Opening a part makes others that can be opened.
        self.wait_until(
            "const closed = document.querySelectorAll('details:not([open])'); closed.forEach((one) => (one.open = true)); \
             return !closed.length && [...document.querySelectorAll('details')].every((one) => one.children.length > 1)",
        );
        for width in [1280, 768, 390] {
            self.show_as(width, 844, false);
            self.wait_until(&format!(
                "return innerWidth === {width} && document.documentElement.scrollWidth <= innerWidth"
            ));
            let cut = self.run(
                "return [...document.querySelectorAll('table')].filter((table) => { \
                   const place = table.closest('.scroll') ?? table.parentElement; \
                   if (place.scrollWidth <= place.clientWidth && table.getBoundingClientRect().right <= innerWidth) return false; \
                   const { overflowX, backgroundAttachment } = getComputedStyle(place); \
                   return overflowX !== 'auto' || !/local.*scroll/.test(backgroundAttachment) || place.tabIndex !== 0; \
                 }).map((table) => table.outerHTML.slice(0, 200))",
            );
            assert_eq!(cut, json!([]), "{name}: tables are cut at {width}");
            let hidden = self.run(
                "return [...document.querySelectorAll('.summary thead th')].filter((one) => /^(IOPS|bandwidth|p99)( now)?$/.test(one.textContent)) \
                   .filter((one) => one.getBoundingClientRect().right > one.closest('.scroll').getBoundingClientRect().right + 1) \
                   .map((one) => one.textContent)",
            );
            assert_eq!(hidden, json!([]), "{name}: figures are out of view at {width}");
        }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.call(method, &format!("{}{path}", self.session), body);
        answer.unwrap_or_else(|why| panic!("{method} {path}: {why}"))
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let words = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(words)?;
        stream.set_read_timeout(Some(SLOWEST + PATIENCE)).map_err(words)?;
        let body = body.to_string();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).map_err(words)?;
        let answer = answer(&mut BufReader::new(stream)).map_err(words)?;
        let value: Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        match value["value"]["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", value["value"]["message"])),
            None => Ok(value["value"].clone()),
        }
    }
}

/// The body of an answer.
fn answer(stream: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    stream.take(length).read_to_end(&mut body)?;
    Ok(body)
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            // The browser ends with its session.
            let _ = self.call("DELETE", &self.session, &Value::Null);
        }
        // This kills whatever has not ended.
        drop(self.group.stdin.take());
        let _ = self.group.wait();
    }
}

/// A failed test leaves no process behind, even if its browser does not answer.
#[test]
fn a_browser_ends_with_its_test() {
    let browser = iolite_testing::or_skip!(Browser::start());
    let family = iolite_os::process::descendants_of(browser.group.id() as i32);
    assert!(family.len() > 3, "{family:?}");
    let driver = family[0];
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        // SAFETY: a plain system call; the process is the driver of this test.
        unsafe { libc::kill(driver, libc::SIGKILL) };
        browser.run("return 1");
    }));
    assert!(failed.is_err());
    let begun = std::time::Instant::now();
    // (A zombie is dead, too.)
    let is_there = |id: &&i32| {
        let state = std::fs::read_to_string(format!("/proc/{id}/stat"));
        state.is_ok_and(|state| !state.contains(") Z "))
    };
    while let Some(id) = family.iter().find(is_there) {
        assert!(begun.elapsed() < PATIENCE, "process {id} of {family:?} is left");
        std::thread::sleep(Duration::from_millis(20));
    }
}
