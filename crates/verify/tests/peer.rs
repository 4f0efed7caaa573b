//! Blocks written by the installed releases of fio are checked here, and they check blocks written here. Without a fio,
//! the tests are skipped.

use iolite_content::{Fill, PatternPiece};
use iolite_testing::{Peer, peers, skip};
use iolite_verify::block::{Expected, HeaderFormat, Identity, Kind, Spec, Stamper, Verifier};
use std::fs;
use std::path::Path;
use std::process::Command;

const FILE: u64 = 96 << 10;
const BLOCK: usize = 4096;

/// The options of both sides.
struct Case {
    kind: Kind,
    interval: usize,
    offset: usize,
    /// The option's value and its meaning.
    pattern: Option<(&'static str, Vec<PatternPiece>)>,
}

impl Case {
    fn spec(&self, peer: &Peer) -> Spec {
        let fill = self.pattern.clone().map_or(Fill::Random, |(_, pieces)| Fill::Pattern(pieces));
        let format = if peer.release.header == "3.33" { HeaderFormat::V333 } else { HeaderFormat::V342 };
        Spec { interval: self.interval, offset: self.offset, fill, format, ..Spec::new(self.kind) }
    }

    /// A section of a job file.
    fn section(&self, name: usize) -> String {
        let mut section = format!("[{name}]\nfilename={name}\nverify={}\n", self.kind.name());
        if self.interval > 0 {
            section += &format!("verify_interval={}\n", self.interval);
        }
        if self.offset > 0 {
            section += &format!("verify_offset={}\n", self.offset);
        }
        if let Some((pattern, _)) = &self.pattern {
            section += &format!("verify_pattern={pattern}\n");
        }
        section
    }

    /// The place of a bit to flip so that the damage must be found. Kinds without a checksum check only the header.
    fn weak_place(&self, size: usize) -> usize {
        if self.kind == Kind::Meta { self.offset + 10 } else { size - 6 }
    }

    fn describe(&self) -> String {
        format!("{} interval={} offset={} {:?}", self.kind.name(), self.interval, self.offset, self.pattern)
    }
}

/// All kinds for which fio has the standard checksum, in several shapes.
fn cases() -> Vec<Case> {
    let not_standard = [Kind::Sha256, Kind::Sha512];
    // fio knows the number of pattern_hdr, but not the name.
    let unknown = [Kind::PatternHeader, Kind::Null];
    let kinds = Kind::all().filter(|kind| !not_standard.contains(kind) && !unknown.contains(kind));
    let pieces = || {
        let bytes = |bytes: &[u8]| PatternPiece::Bytes(bytes.to_vec());
        vec![bytes(b"\xab"), PatternPiece::Offset, bytes(b"xy"), bytes(&(-12i32).to_le_bytes())]
    };
    let mut cases = Vec::new();
    for kind in kinds {
        for (interval, offset) in [(0, 0), (512, 0), (0, 200), (1024, 600)] {
            for patterned in [false, true] {
                let has_room = !kind.has_header() && (interval, offset) != (0, 0);
                if has_room || (kind == Kind::Pattern && !patterned) {
                    continue;
                }
                let pattern = patterned.then(|| (r#"0xab%o"xy"-12"#, pieces()));
                cases.push(Case { kind, interval, offset, pattern });
            }
        }
    }
    cases
}

/// Runs a fio on the files of all cases: the errors of its jobs, in order.
fn fio(peer: &Peer, dir: &Path, cases: &[Case], global: &str) -> Vec<i64> {
    let mut jobs = format!("[global]\nsize={FILE}\nbs={BLOCK}\nverify_state_save=0\nthread\n{global}\n");
    jobs.extend(cases.iter().enumerate().map(|(name, case)| case.section(name)));
    fs::write(dir.join("jobs.fio"), jobs).unwrap();
    let mut command = Command::new(&peer.path);
    command.current_dir(dir).args(["--output-format=json", "--output=report", "jobs.fio"]);
    command.output().expect("fio can be run");
    let report = fs::read_to_string(dir.join("report")).unwrap();
    let json = report.find("{\n").map_or("", |start| &report[start..]);
    let report: serde_json::Value =
        serde_json::from_str(json).unwrap_or_else(|why| panic!("{why}: {report}"));
    let errors = report["jobs"].as_array().unwrap().iter().map(|job| job["error"].as_i64().unwrap());
    errors.collect()
}

/// All releases of fio; leaves the test if none is installed.
macro_rules! peers {
    () => {{
        let peers = peers();
        if peers.is_empty() {
            skip!("fio is not installed");
        }
        peers
    }};
}

#[test]
fn data_written_by_the_peer_passes_our_check() {
    for peer in peers!() {
        let (cases, dir) = (cases(), tempfile::tempdir().unwrap());
        let errors = fio(peer, dir.path(), &cases, "rw=write\ndo_verify=0");
        assert_eq!(errors, vec![0; cases.len()]);
        for (name, case) in cases.iter().enumerate() {
            let file = fs::read(dir.path().join(name.to_string())).unwrap();
            assert_eq!(file.len() as u64, FILE);
            let mut verifier = Verifier::new(&case.spec(peer));
            for (block, offset) in file.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
                let checked = verifier.check(block, &Expected { offset, writes: &[] });
                assert!(checked.is_ok(), "{}: {}", case.describe(), checked.unwrap_err().text("f"));
                // The checks must not pass only because they check nothing. Once for each case: searching for the
                // flipped bit takes a while.
                if offset > 0 {
                    continue;
                }
                let mut wrong = block.to_vec();
                wrong[case.weak_place(BLOCK)] ^= 4;
                assert!(
                    verifier.check(&wrong, &Expected { offset, writes: &[] }).is_err(),
                    "{}",
                    case.describe()
                );
            }
        }
    }
}

#[test]
fn data_written_here_passes_the_peers_check() {
    for peer in peers!() {
        let (cases, dir) = (cases(), tempfile::tempdir().unwrap());
        let write = |turned: bool| {
            for (name, case) in cases.iter().enumerate() {
                let mut file = vec![0; FILE as usize];
                let mut stamper = Stamper::new(&case.spec(peer));
                for (sequence, block) in (0..).zip(file.chunks_mut(BLOCK)) {
                    let (offset, seed) = (sequence * BLOCK as u64, 77 + sequence);
                    stamper.stamp(block, &Identity { offset, sequence, seed, job: 1, ..Identity::default() });
                }
                file[case.weak_place(FILE as usize)] ^= if turned { 4 } else { 0 };
                fs::write(dir.path().join(name.to_string()), &file).unwrap();
            }
        };
        write(false);
        let errors = fio(peer, dir.path(), &cases, "rw=read");
        for (case, error) in cases.iter().zip(errors) {
            assert_eq!(error, 0, "{}", case.describe());
        }
        write(true);
        for (case, error) in cases.iter().zip(fio(peer, dir.path(), &cases, "rw=read")) {
            assert_ne!(error, 0, "it does not see a wrong bit: {}", case.describe());
        }
    }
}
