//! `iolite verify-state`: what an interrupted job had written, and what a check will insist upon.

use iolite_options::commands::Asked;
use iolite_run::verify_state::{Accepted, Demand, Policy, Saved, Summary};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// The answer, to be printed.
pub fn run(asked: &Asked) -> Result<String, String> {
    let [file] = &asked.operands[..] else {
        return Err("needs the name of one state file".to_owned());
    };
    let path = Path::new(file);
    let policy = match asked.value('p') {
        None | Some("completed") => Policy::Completed,
        Some("fsynced") => Policy::Fsynced,
        Some(other) => return Err(format!("--policy={other}: not one of completed, fsynced")),
    };
    let told = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let saved = Saved::open(path).map_err(|why| told(&why))?;
    let listed = asked.value('l').is_some();
    let files = (0..saved.setup.files.len() as u32).map(|number| {
        let file = saved.file(number, policy)?;
        Ok((file.summary(), if listed { file.demands().collect() } else { Vec::new() }))
    });
    let files: Vec<(Summary, Vec<Demand>)> =
        files.collect::<Result<_, iolite_run::verify_state::StateError>>().map_err(|why| told(&why))?;
    let report = Report { saved: &saved, policy, files, listed };
    Ok(if asked.value('j').is_some() { report.json() } else { report.text() })
}

struct Report<'a> {
    saved: &'a Saved,
    policy: Policy,
    files: Vec<(Summary, Vec<Demand>)>,
    listed: bool,
}

impl Report<'_> {
    fn policy(&self) -> &'static str {
        match self.policy {
            Policy::Completed => "completed",
            Policy::Fsynced => "fsynced",
        }
    }

    fn text(&self) -> String {
        let (saved, setup) = (self.saved, &self.saved.setup);
        let mut text = String::new();
        line!(
            text,
            "verify state of job {} (number {}), written by {}",
            setup.job,
            setup.number,
            setup.program
        );
        line!(text, "began {} s after 1970, verify={}, seed {}", setup.began, setup.kind, setup.seed);
        line!(
            text,
            "writes: {} issued, {} acknowledged, {} in flight",
            saved.issued,
            saved.acknowledged,
            saved.in_flight.len()
        );
        for write in &saved.in_flight {
            let file = &setup.files[write.file as usize].name;
            line!(
                text,
                "  in flight: write {}, {file} offset {}, length {}",
                write.number,
                write.offset,
                write.length
            );
        }
        for (file, (summary, demands)) in setup.files.iter().zip(&self.files) {
            line!(
                text,
                "file {}: offset {}, length {}, in blocks of {}",
                file.name,
                file.offset,
                file.length,
                setup.block
            );
            line!(
                text,
                "  insists on {} writes (verify_policy={}), {} of them with more than one good answer",
                summary.demands,
                self.policy(),
                summary.open
            );
            line!(
                text,
                "  knows of {} blocks, of {} writes that stand as a whole",
                summary.blocks,
                summary.writes
            );
            for demand in demands {
                line!(
                    text,
                    "  offset {}, length {}: {}",
                    demand.offset,
                    demand.length,
                    numbers(&demand.accepted)
                );
            }
        }
        text
    }

    fn json(&self) -> String {
        let (saved, setup) = (self.saved, &self.saved.setup);
        let in_flight = saved.in_flight.iter().map(|write| {
            json!({ "number": write.number, "file": setup.files[write.file as usize].name,
                    "offset": write.offset, "length": write.length })
        });
        let files = setup.files.iter().zip(&self.files).map(|(file, (summary, demands))| {
            let mut value = json!({
                "name": file.name, "offset": file.offset, "length": file.length,
                "blocks": summary.blocks, "writes": summary.writes,
                "demands": summary.demands, "open": summary.open,
            });
            if self.listed {
                value["list"] = demands.iter().map(demand).collect();
            }
            value
        });
        let report = json!({
            "program": setup.program, "job": setup.job, "number": setup.number, "verify": setup.kind,
            "began": setup.began, "seed": setup.seed, "block": setup.block, "verify_policy": self.policy(),
            "issued": saved.issued, "acknowledged": saved.acknowledged,
            "in_flight": in_flight.collect::<Vec<Value>>(), "files": files.collect::<Vec<Value>>(),
        });
        format!("{report:#}\n")
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
    use iolite_run::verify_state::{Recorder, Setup, StateFile};
    use std::ffi::OsString;
    use std::fs;

    fn answer(words: &[&str]) -> Result<String, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let command = commands::ALL.iter().find(|command| command.name == "verify-state").unwrap();
        run(&command.read(&words)?)
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
            has_flushes: true,
            files: vec![StateFile { name: "f".into(), offset: 0, length: 4096 }],
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
    fn a_state_is_told_in_words_and_in_json() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        state(&path);
        let name = path.to_str().unwrap();
        let text = answer(&["-l", name]).unwrap();
        for line in [
            "verify state of job j (number 1), written by iolite-0\n",
            "writes: 4 issued, 3 acknowledged, 1 in flight\n",
            "  in flight: write 3, f offset 512, length 512\n",
            "  insists on 2 writes (verify_policy=completed), 1 of them with more than one good answer\n",
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
    fn what_is_wrong_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        state(&path);
        let name = path.to_str().unwrap();
        assert!(answer(&[]).unwrap_err().contains("one state file"));
        assert!(answer(&["-p", "all", name]).unwrap_err().contains("--policy=all"));
        assert!(answer(&["/dev/zero"]).unwrap_err().contains("/dev/zero: not a regular file"));
        assert!(answer(&["/"]).unwrap_err().contains("Is a directory"));
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(
            made.success() && answer(&[pipe.to_str().unwrap()]).unwrap_err().contains("not a regular file")
        );
        assert!(answer(&["/nosuch"]).unwrap_err().contains("/nosuch: No such file"));
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let why = answer(&[name]).unwrap_err();
        assert!(why.contains(name) && why.contains("cut or extended"), "{why}");
    }
}
