//! Lost machines in reports: their measurements until then are kept and marked in every format.

use crate::common::{Json, Program, scratch};
use crate::remote::{Agent, ENDLESS, job, run};
use serde_json::Value;

/// The errno of the jobs of a lost machine: `EHOSTDOWN`.
const DOWN: i32 = 112;

#[test]
pub fn measurements_of_a_lost_host_are_kept_and_marked() {
    let dir = scratch();
    let agents = ["a", "b", "c"].map(|name| Agent::on_socket(dir.path(), name));
    job(dir.path(), ENDLESS);
    let clients = agents.each_ref().map(Agent::client);
    let [a, b, c] = clients.each_ref().map(String::as_str);
    let words = [
        "--output-format=terse,json,normal",
        "--output=report",
        "--client-lost=abort",
        "--status-interval=1",
        a,
        b,
        c,
        "job.fio",
    ];
    let mut client = Program::own().start(dir.path(), words);
    let report = || std::fs::read_to_string(dir.path().join("report")).unwrap_or_default();
    client.wait_until("an interim report of all", |_| {
        report().contains("\nAll clients: (groupid=0, jobs=6): err= 0")
    });
    agents[1].running.signal(libc::SIGKILL);
    let finished = client.wait();
    assert_eq!(finished.code(), 1, "{finished}");
    let text = report();
    let json = Json::last_in(&text);
    let stats = json.0["client_stats"].as_array().unwrap();
    let place = |name: &str| dir.path().join(name).join("s").display().to_string();
    let of = |name: &str| {
        let all = stats.iter().filter(|job| job["hostname"] == place(name));
        all.map(|job| {
            let ios = job["write"]["total_ios"].as_u64().unwrap();
            assert!(ios > 0, "{job}");
            (job["error"].clone(), job.get("lost").is_some(), ios)
        })
        .collect::<Vec<_>>()
    };
    let (fine, lost) = (Value::from(0), Value::from(DOWN));
    for (name, error) in [("a", &fine), ("b", &lost), ("c", &fine)] {
        let jobs = of(name);
        assert!(jobs.iter().all(|job| job.0 == *error && job.1 == (*error == lost)), "{name}: {}", json.0);
        assert_eq!(jobs.len(), 2, "{name}");
    }
    let all = stats.last().unwrap();
    let sum: u64 = ["a", "b", "c"].iter().flat_map(|name| of(name)).map(|job| job.2).sum();
    assert_eq!((&all["error"], all["write"]["total_ios"].as_u64()), (&lost, Some(sum)));
    assert!(all["lost"].as_str().unwrap().starts_with("1 of 3 hosts lost: "), "{all}");
    let host = &json.0["hosts"][1];
    assert!(host["lost"].is_string() && host.get("percent_from_median").is_none(), "{host}");
    assert!(json.0["hosts"][0]["percent_from_median"].is_number(), "{}", json.0);

    let terse: Vec<&str> = text.lines().filter(|line| line.starts_with("3;")).collect();
    let last = &terse[terse.len() - 7..];
    let errors: Vec<i32> = last.iter().map(|line| line.split(';').nth(4).unwrap().parse().unwrap()).collect();
    assert_eq!(errors, [0, 0, DOWN, DOWN, 0, 0, DOWN]);

    let normal = &text[text.rfind("\nAll clients: ").unwrap()..];
    assert!(
        normal.starts_with("\nAll clients: (groupid=0, jobs=6): err=112 (1 of 3 hosts lost: "),
        "{normal}"
    );
    let row = normal.lines().find(|line| line.contains(&place("b"))).unwrap();
    assert!(normal.contains("b/s was lost: it has closed the connection\n"), "{normal}");
    assert!(
        row.contains("lost")
            && text.contains(" lost: it has closed the connection; its last report:\nlong: "),
        "{text}"
    );
}

#[test]
pub fn a_run_without_surviving_hosts_is_reported() {
    let dir = scratch();
    let program = Program::called_fio(dir.path());
    for format in ["normal", "json", "terse"] {
        let agent = Agent::on_socket(dir.path(), format);
        job(dir.path(), ENDLESS);
        let words = [&format!("--output-format={format}"), &agent.client(), "job.fio"];
        let mut client = program.start(dir.path(), words);
        client.wait_until("its jobs", |_| agent.family().len() >= 4);
        agent.running.signal(libc::SIGKILL);
        let finished = client.wait();
        assert_eq!(finished.code(), 1, "{finished}");
        agent.running.wait();
        match format {
            "normal" => {
                let all = finished.stdout.lines().find(|line| line.starts_with("All clients: ")).unwrap();
                assert!(all.contains("): err=112 (1 of 1 hosts lost: "), "{finished}");
            }
            "json" => {
                let json = Json::parse(&finished.stdout);
                let all = json.0["client_stats"].as_array().unwrap().last().unwrap();
                assert_eq!((&all["jobname"], &all["error"]), (&"All clients".into(), &DOWN.into()));
                assert!(json.0["hosts"][0]["lost"].is_string(), "{finished}");
            }
            _ => {
                let all = finished.stdout.lines().last().unwrap();
                assert!(all.starts_with("3;fio-3.42;All clients;0;112;"), "{finished}");
            }
        }
    }
    // Without lost machines, the report does not mention them.
    let agent = Agent::on_socket(dir.path(), "alive");
    job(dir.path(), crate::remote::TWO);
    let fine = run(dir.path(), &["--output-format=json", &agent.client(), "job.fio"]).ok();
    assert!(!fine.stdout.contains("\"lost\""), "{fine}");
    agent.end();
}
