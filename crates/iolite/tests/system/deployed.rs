//! The script for the pods of a job in Kubernetes (`deploy/kubernetes`), with names from a file instead of a cluster's.

use crate::common::program::Running;
use crate::common::{Json, Program, is_root, scratch};
use iolite_testing::skip;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
pub fn the_pods_of_a_job_find_each_other() {
    if !is_root() {
        skip!("a network and names of its own need root");
    }
    let dir = scratch();
    let at = |name: &str| dir.path().join(name);
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes");
    fs::create_dir(at("bin")).unwrap();
    std::os::unix::fs::symlink(&Program::own().path, at("bin/iolite")).unwrap();
    Program::own().run(dir.path(), ["keys", "new", "keys"]).ok();
    fs::write(at("hosts"), "127.0.77.1 lab-0.lab\n127.0.77.2 lab-1.lab\n127.0.77.3 lab-2.lab\n").unwrap();
    // The existing script, without its slow steps.
    let job = fs::read_to_string(deploy.join("job.fio")).unwrap();
    assert!(
        job.contains("directory=/work") && job.contains("runtime=60s") && job.contains("time_based"),
        "{job}"
    );
    let job = job
        .replace("/work", "${WORK}")
        .replace("time_based\nruntime=60s\n", "")
        .replace("size=1g", "size=1m");
    let job = job.replace("direct=1\n", "").replace("io_uring", "psync");
    fs::write(at("job.fio"), job).unwrap();
    for pod in 0..3 {
        fs::create_dir(at(&format!("work{pod}"))).unwrap();
    }
    let script = format!(
        "set -e; mount --bind {dir}/hosts /etc/hosts; ip link set lo up\n\
         pod() {{ export WORK={dir}/work$1 JOB_COMPLETION_INDEX=$1 POD_IP=127.0.77.$(($1 + 1))\n\
         exec {deploy}/run-job {dir}/job.fio --output-format=json; }}\n\
         pod 2 >/dev/null & pod 1 >/dev/null & (pod 0)\n\
         kill $(jobs -p)",
        dir = dir.path().display(),
        deploy = deploy.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "-n", "bash", "-c", &script]).current_dir(dir.path());
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", at("bin").display()));
    command.env("IOLITE_PODS", "3").env("IOLITE_NAME", "lab").env("IOLITE_KEYS_FROM", at("keys"));
    let finished = Running::start(&mut command).wait().ok();
    let json = Json::parse(&finished.stdout);
    let stats = json.0["client_stats"].as_array().unwrap();
    let hosts: Vec<_> = stats.iter().map(|job| job["hostname"].as_str().unwrap()).collect();
    assert_eq!(hosts, ["lab-0.lab", "lab-1.lab", "lab-2.lab", "All clients"], "{finished}");
    assert_eq!(stats[3]["read"]["total_ios"], 3 * 256, "{finished}");
    for pod in 0..3 {
        assert_eq!(fs::read_dir(at(&format!("work{pod}"))).unwrap().count(), 1);
    }
}

/// The description of the job agrees with the needs of the script.
#[test]
pub fn the_description_of_a_job() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes");
    let read = |name: &str| fs::read_to_string(deploy.join(name)).unwrap();
    let [job, script, list, service] =
        ["job.yaml", "run-job", "kustomization.yaml", "service.yaml"].map(read);
    for variable in ["IOLITE_PODS", "IOLITE_NAME", "POD_IP"] {
        assert!(job.contains(&format!("name: {variable}")) && script.contains(variable), "{variable}");
    }
    let value =
        |key: &str| job.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap().trim().to_owned();
    assert_eq!(value("completions:"), value("parallelism:"));
    assert!(
        job.contains(&format!("name: IOLITE_PODS\n              value: \"{}\"", value("completions:"))),
        "{job}"
    );
    assert_eq!(value("subdomain:"), "iolite");
    assert!(service.contains("clusterIP: None") && service.contains("name: iolite\n"), "{service}");
    for file in ["job.yaml", "service.yaml", "job.fio"] {
        assert!(list.contains(file) && deploy.join(file).exists(), "{file}");
    }
}
