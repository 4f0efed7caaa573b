//! `scripts/release`, in a repository of its own with the files that it reads.

use crate::common::scratch;
use iolite_testing::{skip, write_program};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Checkout(PathBuf);

impl Checkout {
    /// Runs git; the user's settings do not matter.
    fn git(&self, words: &[&str]) -> Output {
        let mut command = Command::new("git");
        command.args(words).current_dir(&self.0);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@example.org");
        }
        command.output().unwrap()
    }

    fn said(&self, words: &[&str]) -> String {
        let said = self.git(words);
        assert!(said.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    }

    fn commit(&self) {
        self.said(&["add", "-A"]);
        self.said(&["commit", "-q", "-m", "c"]);
    }

    fn replace(&self, file: &str, old: &str, new: &str) {
        let text = fs::read_to_string(self.0.join(file)).unwrap();
        assert!(text.contains(old), "{file}: {old}");
        fs::write(self.0.join(file), text.replacen(old, new, 1)).unwrap();
    }

    /// Exit status and all output of a release by root.
    fn release(&self, words: &[&str]) -> (Option<i32>, String) {
        self.release_by("0", words)
    }

    /// The same by the user with this number, whoever runs the test.
    fn release_by(&self, user: &str, words: &[&str]) -> (Option<i32>, String) {
        let programs = self.0.with_file_name("bin");
        fs::create_dir_all(&programs).unwrap();
        write_program(&programs.join("id"), &format!("#!/bin/sh\necho {user}\n")).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(self.0.join("scripts/release"));
        command.env("PATH", format!("{}:{path}", programs.display()));
        command.args(words).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.env("GIT_COMMITTER_NAME", "a").env("GIT_COMMITTER_EMAIL", "a@example.org");
        command.env("IOLITE_MAINTAINER", "a <a@example.org>");
        let said = command.output().unwrap();
        let text = [said.stdout, said.stderr].concat();
        (said.status.code(), String::from_utf8_lossy(&text).into_owned())
    }
}

/// A step of a release that writes down what it was told.
const STEP: &str = "#!/bin/sh\necho \"$(basename \"$0\") $IOLITE_COMMIT $SOURCE_DATE_EPOCH\" >>../steps\n";

const STEPS: [&str; 3] = ["test", "package", "test-packages"];

#[test]
pub fn a_release_is_checked_tested_packaged_and_tagged() {
    if Command::new("git").arg("--version").output().is_err() {
        skip!("git is not installed");
    }
    let dir = scratch();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let checkout = Checkout(dir.path().join("checkout"));
    for directory in ["docs", "scripts"] {
        fs::create_dir_all(checkout.0.join(directory)).unwrap();
    }
    for file in ["Cargo.toml", "Cargo.lock", "docs/iolite.1", "scripts/release"] {
        fs::copy(root.join(file), checkout.0.join(file)).unwrap();
    }
    let version = env!("CARGO_PKG_VERSION");
    let changes = format!(
        "# Changelog\n\n## [{version}] - unreleased\n\n### Added\n\n- All.\n\n## [0.0.1] - 2020-01-01\n\n- Old.\n"
    );
    fs::write(checkout.0.join("CHANGELOG.md"), changes).unwrap();
    for step in STEPS {
        write_program(&checkout.0.join("scripts").join(step), STEP).unwrap();
    }
    checkout.said(&["init", "-q"]);
    checkout.commit();

    let refused = |words: &[&str], whys: &[&str]| {
        let (status, said) = checkout.release(words);
        assert_eq!(status, Some(1), "{words:?}: {said}");
        for why in whys {
            assert!(said.contains(why), "{words:?}: {why}: {said}");
        }
        assert!(!dir.path().join("steps").exists() && checkout.said(&["tag"]).is_empty(), "{said}");
    };
    refused(&[], &["usage: "]);
    refused(&["1.0"], &["\"1.0\" is no version"]);
    refused(&["--dry", version], &["unknown option --dry"]);
    fs::write(checkout.0.join("notes"), "").unwrap();
    // All at once.
    let whys = ["uncommitted: ?? notes", "set \"99.0.0\" there", "there is no section \"## [99.0.0] - "];
    refused(&["99.0.0"], &whys);
    fs::remove_file(checkout.0.join("notes")).unwrap();
    refused(&[version], &["- unreleased\" has no date of the release"]);
    checkout.replace("CHANGELOG.md", "unreleased\n\n### Added\n\n- All.", "2026-11-28");
    checkout.commit();
    refused(&[version], &["is empty"]);
    checkout.replace("CHANGELOG.md", "2026-11-28\n", "2026-11-28\n\n### Added\n\n- All.\n");
    checkout.replace("docs/iolite.1", version, "0.0.0");
    checkout.commit();
    refused(&[version], &["docs/iolite.1: its first lines do not name"]);
    checkout.replace("docs/iolite.1", "0.0.0", version);
    checkout.commit();

    let (status, said) = checkout.release(&["--dry-run", version]);
    assert_eq!(status, Some(0), "{said}");
    let tag = format!("v{version}");
    assert!(
        said.contains(&format!(
            "    scripts/package --arch=amd64,arm64 --to=target/release-{version} tar deb rpm wheel push image sbom\n    \
             scripts/test-packages --arch=arm64 --from=target/release-{version}\n"
        )) && said.contains(&format!("git tag -a {tag}\n")),
        "{said}"
    );
    assert!(!dir.path().join("steps").exists() && checkout.said(&["tag"]).is_empty(), "{said}");

    // A failure leaves no tag.
    for (step, why) in [("package", "sbom has failed"), ("test-packages", "1.0.0 has failed")] {
        write_program(&checkout.0.join("scripts").join(step), "#!/bin/sh\nexit 3\n").unwrap();
        checkout.commit();
        let (status, said) = checkout.release(&[version]);
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains(&format!("{why}; nothing is tagged").replace("1.0.0", version)), "{said}");
        assert!(checkout.said(&["tag"]).is_empty(), "{said}");
        write_program(&checkout.0.join("scripts").join(step), STEP).unwrap();
        checkout.commit();
    }
    fs::remove_file(dir.path().join("steps")).unwrap();

    let (status, said) = checkout.release(&[version]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains(&format!("git push origin {tag}\n")), "{said}");
    let commit = checkout.said(&["rev-parse", "HEAD"]);
    let time = checkout.said(&["log", "-1", "--format=%ct"]);
    let steps = STEPS.map(|step| format!("{step} {commit} {time}\n")).concat();
    assert_eq!(fs::read_to_string(dir.path().join("steps")).unwrap(), steps);
    assert_eq!(checkout.said(&["rev-parse", &format!("{tag}^{{commit}}")]), commit);
    let about = checkout.said(&["tag", "-l", "--format=%(contents)", &tag]);
    assert_eq!(about, format!("Iolite {version}\n\n### Added\n\n- All."));
    let (status, said) = checkout.release(&[version]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains(&format!("the tag {tag} is there already")), "{said}");

    // Someone who is not root cannot install packages, and says that the tests come later.
    checkout.said(&["tag", "-d", &tag]);
    let (status, said) = checkout.release_by("1000", &[version]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("take --untested") && checkout.said(&["tag"]).is_empty(), "{said}");
    fs::remove_file(dir.path().join("steps")).unwrap();
    let (status, said) = checkout.release_by("1000", &["--untested", version]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("sudo scripts/test-packages --arch=arm64 --from="), "{said}");
    let steps = fs::read_to_string(dir.path().join("steps")).unwrap();
    assert_eq!(steps.lines().count(), 2, "{steps}");
    checkout.said(&["tag", "v98.0.0-rc.1"]);
    checkout.said(&["tag", "-d", &tag]);
    assert!(checkout.release(&[version]).1.contains("is older than the last release, 98.0.0-rc.1"));
}
