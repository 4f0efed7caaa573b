//! The services of systemd (`deploy/systemd`), as far as they can be checked without running them.

use crate::common::{Program, scratch};
use iolite_testing::skip;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/systemd")
}

/// Our services, and the highest exposure (of 10) that systemd may find in them, in tenths.
const SERVICES: [(&str, u32); 2] = [("iolite-agent.service", 18), ("iolite-web.service", 10)];

fn analyze(words: &[&str]) -> Option<Output> {
    Command::new("systemd-analyze").args(words).env("LC_ALL", "C").output().ok()
}

/// What a unit says for this key, in order.
fn values(unit: &str, key: &str) -> Vec<String> {
    let text = std::fs::read_to_string(deploy().join(unit)).unwrap();
    text.lines().filter_map(|line| line.strip_prefix(&format!("{key}="))).map(str::to_owned).collect()
}

#[test]
pub fn systemd_accepts_the_units() {
    let dir = scratch();
    for (unit, _) in SERVICES {
        // The program is not installed.
        let text = std::fs::read_to_string(deploy().join(unit)).unwrap();
        let own = Program::own().path.display().to_string();
        assert!(text.contains("=/usr/bin/iolite "), "{text}");
        let place = dir.path().join(unit);
        std::fs::write(&place, text.replace("/usr/bin/iolite", &own)).unwrap();
        let Some(said) = analyze(&["verify", "--man=no", place.to_str().unwrap()]) else {
            skip!("there is no systemd-analyze (package systemd)");
        };
        let words = String::from_utf8_lossy(&said.stderr);
        if words.contains("sysinit.target not found") {
            skip!("systemd's own units are not installed");
        }
        assert!(said.status.success(), "{unit}: {words}");
        // Warnings, such as those of misspelt settings. (systemd says its own things about other units.)
        let ours: Vec<&str> = words.lines().filter(|line| line.contains("iolite-")).collect();
        assert!(ours.is_empty(), "{unit}: {ours:?}");
    }
}

#[test]
pub fn the_units_are_closed_as_far_as_documented() {
    let documentation =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/services.md"))
            .unwrap();
    for (unit, most) in SERVICES {
        let score = format!("| `{unit}` | {}.{} |", most / 10, most % 10);
        assert!(documentation.contains(&score), "docs/services.md lacks {score}");
        let threshold = format!("--threshold={most}");
        let place = deploy().join(unit);
        let words = ["security", "--offline=true", "--no-pager", &threshold, place.to_str().unwrap()];
        let Some(said) = analyze(&words) else {
            skip!("there is no systemd-analyze (package systemd)");
        };
        let errors = String::from_utf8_lossy(&said.stderr);
        if errors.contains("unrecognized option") {
            skip!("systemd-analyze does not judge files (--offline), which it does since systemd 250");
        }
        assert!(said.status.success(), "{errors}\n{}", String::from_utf8_lossy(&said.stdout));
    }
}

/// What the units and their files of settings say about each other, and to the program.
#[test]
pub fn units_and_settings_agree() {
    for (unit, conf) in [("iolite-agent.service", "agent.conf"), ("iolite-web.service", "web.conf")] {
        assert_eq!(values(unit, "EnvironmentFile"), [format!("-/etc/iolite/{conf}")]);
        let settings = std::fs::read_to_string(deploy().join(conf)).unwrap();
        let settings: Vec<&str> =
            settings.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        let defaults = values(unit, "Environment");
        for setting in &settings {
            let (name, value) = setting.split_once('=').unwrap();
            // A service whose file of settings was removed has the same settings, and no weaker ones.
            assert!(
                value.is_empty() || defaults.iter().any(|default| default == setting),
                "{unit}: {setting}"
            );
            let start = values(unit, "ExecStart").concat();
            assert!(name == "IOLITE_KEYS" || start.contains(name), "{unit}: {name} in {start}");
        }
        let start = values(unit, "ExecStart").concat();
        for name in start.split('$').skip(1) {
            let name: String = name.chars().filter(|c| c.is_ascii_uppercase() || *c == '_').collect();
            assert!(
                settings.iter().any(|setting| setting.starts_with(&format!("{name}="))),
                "{conf}: {name}"
            );
        }
    }
    let agent = |key: &str| values("iolite-agent.service", key);
    // The process of a run gets no SIGTERM, and the agent may wait for it.
    assert_eq!((agent("KillMode"), agent("TimeoutStopSec")), (vec!["mixed".into()], vec!["infinity".into()]));
    // An agent that lacks keys is not started again and again, and says how to make them.
    assert_eq!(agent("Restart"), ["on-abnormal"]);
    let dir = scratch();
    let keys = dir.path().join("agents.keys");
    let said =
        Command::new(Program::own().path).arg("--server=ip:127.0.0.1,0").env("IOLITE_KEYS", &keys).output();
    let said = said.unwrap();
    assert_eq!(said.status.code(), Some(1));
    let words = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(words.contains("iolite keys new") && words.contains("scp -p "), "{words}");
    assert!(words.contains(&format!(":{})", keys.display())), "{words}");
}

#[test]
pub fn maintainer_scripts_can_be_read() {
    for script in ["deb/postinst", "deb/prerm", "deb/postrm", "rpm/post", "rpm/preun", "rpm/postun"] {
        let place = deploy().join("..").join(script);
        let said = Command::new("sh").arg("-n").arg(&place).output().unwrap();
        assert!(said.status.success(), "{script}: {}", String::from_utf8_lossy(&said.stderr));
    }
}

/// The service begins before the first run is kept.
#[test]
pub fn the_history_may_be_empty() {
    let dir = scratch();
    let manager = std::os::unix::net::UnixDatagram::bind(dir.path().join("manager")).unwrap();
    let mut command = Command::new(Program::own().path);
    command.args(["web", "--listen=127.0.0.1:0"]).env("XDG_DATA_HOME", dir.path());
    let running =
        crate::common::program::Running::start(command.env("NOTIFY_SOCKET", dir.path().join("manager")));
    let mut told = [0; 7];
    manager.recv(&mut told).unwrap();
    assert_eq!(&told, b"READY=1");
    assert!(dir.path().join("iolite/runs.db").exists());
    running.signal(libc::SIGTERM);
    running.wait();
}
