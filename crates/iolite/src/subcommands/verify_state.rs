//! `iolite verify-state`: shows the writes of an interrupted job, and which of them a check will require.

use crate::console::Shown;
use iolite_options::commands::Asked;
use iolite_verify::state::{Accepted, Demand, Policy, Saved, SavedFile, StateError, StateFile, Summary};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;

/// Prints the report. (Not as a string: its list may be larger than memory.)
pub fn run(asked: &Asked) -> Result<String, String> {
    let (report, is_json) = read(asked)?;
    super::print(|to| report.tell(is_json, to))
}

/// The report, and whether it is for programs.
fn read(asked: &Asked) -> Result<(Report, bool), String> {
    let [file] = &asked.operands[..] else {
        return Err("needs the name of one state file".to_owned());
    };
    let path = Path::new(file);
    let policy = match asked.value("policy") {
        Some("fsynced") => Policy::Fsynced,
        _ => Policy::Completed,
    };
    let report = Report::read(path, policy, asked.has("list"));
    let report = report.map_err(|why| format!("{}: {why}", path.display()))?;
    Ok((report, asked.has("json")))
}

struct Report {
    saved: Saved,
    policy: Policy,
    files: Vec<(SavedFile, Summary)>,
    listed: bool,
}

impl Report {
    /// Reads a complete state, so that errors are found before anything is printed.
    fn read(path: &Path, policy: Policy, listed: bool) -> Result<Report, StateError> {
        let saved = Saved::open(path)?;
        let files = (0..saved.setup.files.len() as u32).map(|number| {
            let file = saved.file(number, policy)?;
            let summary = file.summary();
            Ok((file, summary))
        });
        let files = files.collect::<Result<_, StateError>>()?;
        Ok(Report { saved, policy, files, listed })
    }

    fn policy(&self) -> &'static str {
        match self.policy {
            Policy::Completed => "completed",
            Policy::Fsynced => "fsynced",
        }
    }

    fn tell(&self, is_json: bool, to: &mut dyn Write) -> io::Result<()> {
        if is_json { self.json(to) } else { self.text(&mut Shown(to)) }
    }

    fn text(&self, to: &mut dyn Write) -> io::Result<()> {
        let (saved, setup) = (&self.saved, &self.saved.setup);
        let (job, number, program) = (&setup.job, setup.number, &setup.program);
        writeln!(to, "verify state of job {job} (number {number}), written by {program}")?;
        let (began, kind, seed) = (setup.began, &setup.kind, setup.seed);
        let began = iolite_types::utc(began);
        writeln!(to, "began {began}, verify={kind}, seed {seed}")?;
        let (issued, acknowledged) = (saved.issued, saved.acknowledged);
        let in_flight = saved.in_flight.len();
        writeln!(to, "writes: {issued} issued, {acknowledged} acknowledged, {in_flight} in flight")?;
        for write in &saved.in_flight {
            let file = &setup.files[write.file as usize].name;
            let (number, offset, length) = (write.number, write.offset, write.length);
            writeln!(to, "  in flight: write {number}, {file} offset {offset}, length {length}")?;
        }
        for (place, (file, summary)) in setup.files.iter().zip(&self.files) {
            self.file(to, place, file, summary)?;
        }
        Ok(())
    }

    fn file(
        &self,
        to: &mut dyn Write,
        StateFile { name, offset, length, .. }: &StateFile,
        file: &SavedFile,
        summary: &Summary,
    ) -> io::Result<()> {
        let (block, policy) = (self.saved.setup.block, self.policy());
        let Summary { blocks, writes, demands, open } = summary;
        writeln!(to, "file {name}: offset {offset}, length {length}, in blocks of {block}")?;
        writeln!(
            to,
            "  requires {demands} writes (verify_policy={policy}), {open} of which may hold several versions"
        )?;
        writeln!(to, "  records {blocks} blocks and {writes} intact writes")?;
        if !self.listed {
            return Ok(());
        }
        file.demands().try_for_each(|Demand { offset, length, accepted, .. }| {
            writeln!(to, "  offset {offset}, length {length}: {}", numbers(&accepted))
        })
    }

    fn json(&self, to: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *to, self)?;
        writeln!(to)
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (saved, setup) = (&self.saved, &self.saved.setup);
        let in_flight = saved.in_flight.iter().map(|write| {
            json!({ "number": write.number, "file": setup.files[write.file as usize].name,
                    "offset": write.offset, "length": write.length })
        });
        let files = setup.files.iter().zip(&self.files);
        let files = files.map(|(place, (file, summary))| Section { report: self, place, file, summary });
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("program", &setup.program)?;
        map.serialize_entry("job", &setup.job)?;
        map.serialize_entry("number", &setup.number)?;
        map.serialize_entry("verify", &setup.kind)?;
        map.serialize_entry("began", &setup.began)?;
        map.serialize_entry("seed", &setup.seed)?;
        map.serialize_entry("block", &setup.block)?;
        map.serialize_entry("verify_policy", self.policy())?;
        map.serialize_entry("issued", &saved.issued)?;
        map.serialize_entry("acknowledged", &saved.acknowledged)?;
        map.serialize_entry("in_flight", &in_flight.collect::<Vec<Value>>())?;
        map.serialize_entry("files", &files.collect::<Vec<_>>())?;
        map.end()
    }
}

/// The part of a report about one file.
struct Section<'a> {
    report: &'a Report,
    place: &'a StateFile,
    file: &'a SavedFile,
    summary: &'a Summary,
}

impl Serialize for Section<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (StateFile { name, offset, length, .. }, summary) = (self.place, self.summary);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", name)?;
        map.serialize_entry("offset", offset)?;
        map.serialize_entry("length", length)?;
        map.serialize_entry("blocks", &summary.blocks)?;
        map.serialize_entry("writes", &summary.writes)?;
        map.serialize_entry("demands", &summary.demands)?;
        map.serialize_entry("open", &summary.open)?;
        if self.report.listed {
            map.serialize_entry("list", &List(self.file))?;
        }
        map.end()
    }
}

/// The required writes of a file, one after the other.
struct List<'a>(&'a SavedFile);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.demands().map(|write| demand(&write)))
    }
}

fn numbers(accepted: &Accepted) -> String {
    let Accepted { oldest, latest, in_flight } = accepted;
    let acknowledged =
        if oldest == latest { format!("write {latest}") } else { format!("writes {oldest} to {latest}") };
    in_flight.map_or(acknowledged.clone(), |number| format!("{acknowledged}, or {number}"))
}

fn demand(demand: &Demand) -> Value {
    let Accepted { oldest, latest, in_flight } = demand.accepted;
    json!({ "offset": demand.offset, "length": demand.length, "oldest": oldest, "latest": latest, "in_flight": in_flight })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::commands;
    use iolite_verify::state::{Recorder, Setup, StateFile};
    use std::ffi::OsString;
    use std::fs;

    fn answer(words: &[&str]) -> Result<String, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let command = commands::ALL.iter().find(|command| command.name == "verify-state").unwrap();
        let mut text = Vec::new();
        let (report, is_json) = read(&command.read(&words)?)?;
        report.tell(is_json, &mut text).unwrap();
        Ok(String::from_utf8(text).unwrap())
    }

    /// Four writes, the second not flushed, and one in flight.
    fn state(path: &Path) {
        let setup = Setup {
            program: "iolite-0".into(),
            job: "j".into(),
            number: 1,
            kind: "md5".into(),
            began: 5,
            seed: 7,
            block: 512,
            depth: 2,
            is_uniform: true,
            is_durable: false,
            is_copied: false,
            per_pass: 0,
            has_flushes: true,
            imprint: None,
            files: vec![StateFile { name: "f".into(), offset: 0, length: 4096, identity: None, place: None }],
        };
        let mut recorder = Recorder::create(path, &setup).unwrap();
        recorder.issue(0, 0, 0, 0, 512);
        recorder.acknowledge(0);
        let covered = recorder.flush(0);
        recorder.flushed(0, covered);
        recorder.issue(0, 1, 0, 0, 512);
        recorder.acknowledge(0);
        recorder.issue(1, 2, 0, 512, 512);
        recorder.acknowledge(1);
        recorder.issue(1, 3, 0, 512, 512);
    }

    #[test]
    fn a_state_is_printed_as_text_and_as_json() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        state(&path);
        let name = path.to_str().unwrap();
        let text = answer(&["--list", name]).unwrap();
        for line in [
            "verify state of job j (number 1), written by iolite-0\n",
            "writes: 4 issued, 3 acknowledged, 1 in flight\n",
            "  in flight: write 3, f offset 512, length 512\n",
            "  requires 2 writes (verify_policy=completed), 1 of which may hold several versions\n",
            "  offset 0, length 512: write 1\n",
            "  offset 512, length 512: write 2, or 3\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let json: Value =
            serde_json::from_str(&answer(&["--json", "--list", "--policy", "fsynced", name]).unwrap())
                .unwrap();
        assert_eq!(json["in_flight"][0]["number"], 3);
        let list = json!([{ "offset": 0, "length": 512, "oldest": 0, "latest": 1, "in_flight": null }]);
        assert_eq!(json["files"][0]["list"], list);
        assert_eq!(json["files"][0]["demands"], 1);
    }

    #[test]
    fn invalid_arguments_and_damaged_states_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        state(&path);
        let name = path.to_str().unwrap();
        assert!(answer(&[]).unwrap_err().contains("one state file"));
        assert!(answer(&["--policy=all", name]).unwrap_err().contains("--policy=all"));
        assert!(answer(&["/dev/zero"]).unwrap_err().contains("/dev/zero: not a regular file"));
        assert!(answer(&["/"]).unwrap_err().contains("Is a directory"));
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(
            made.success() && answer(&[pipe.to_str().unwrap()]).unwrap_err().contains("not a regular file")
        );
        let missing = dir.path().join("missing");
        let missing = missing.to_str().unwrap();
        assert!(answer(&[missing]).unwrap_err().contains(&format!("{missing}: No such file")));
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let why = answer(&[name]).unwrap_err();
        assert!(why.contains(name) && why.contains("cut or extended"), "{why}");
    }
}
