//! The script for the pods of a Kubernetes job (`deploy/kubernetes`), in separate networks. A file resolves the names
//! instead of a cluster.

use crate::common::program::Running;
use crate::common::wires::Network;
use crate::common::{Json, Program, scratch};
use iolite_testing::skip;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
pub fn the_pods_of_a_job_find_each_other() {
    let network = match Network::new(3) {
        Ok(network) => network,
        Err(error) => skip!("networks of its own cannot be made: {error}"),
    };
    let dir = scratch();
    let at = |name: &str| dir.path().join(name);
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes");
    fs::create_dir(at("bin")).unwrap();
    std::os::unix::fs::symlink(&Program::own().path, at("bin/iolite")).unwrap();
    Program::own().run(dir.path(), ["keys", "new", "keys"]).ok();
    let names = (0..3).map(|pod| format!("{} lab-{pod}.lab\n", network.address(pod)));
    fs::write(at("hosts"), names.collect::<String>()).unwrap();
    // The job file of `deploy`, with a small size and no run time.
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
    let path = format!("{}:{}", at("bin").display(), std::env::var("PATH").unwrap_or_default());
    let start = |pod: usize| {
        let script = "mount --bind hosts /etc/hosts && exec \"$0\" job.fio --output-format=json";
        let mut command = Command::new("unshare");
        command.args(["-m", "bash", "-c", script]).arg(deploy.join("run-job")).current_dir(dir.path());
        command.env("PATH", &path).env("TMPDIR", dir.path()).env("IOLITE_KEYS_FROM", at("keys"));
        command.env("IOLITE_PODS", "3").env("IOLITE_NAME", "lab").env("WORK", at(&format!("work{pod}")));
        command.env("JOB_COMPLETION_INDEX", pod.to_string()).env("POD_IP", network.address(pod));
        network.machines[pod].enter(&mut command);
        Running::start(&mut command)
    };
    // The coordinator does not start last.
    let last = start(2);
    let first = start(0);
    let others = [start(1), last];
    let finished = first.wait().ok();
    for other in others {
        other.signal(libc::SIGTERM);
        assert_eq!(other.wait().code(), 128 + libc::SIGTERM);
    }
    // No keys are left.
    let left = fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("tmp.")).collect();
    assert_eq!(left, [""; 0]);
    let json = Json::parse(&finished.stdout);
    let stats = json.0["client_stats"].as_array().unwrap();
    let hosts: Vec<_> = stats.iter().map(|job| job["hostname"].as_str().unwrap()).collect();
    assert_eq!(hosts, ["lab-0.lab", "lab-1.lab", "lab-2.lab", "All clients"], "{finished}");
    assert_eq!(stats[3]["read"]["total_ios"], 3 * 256, "{finished}");
    for pod in 0..3 {
        assert_eq!(fs::read_dir(at(&format!("work{pod}"))).unwrap().count(), 1);
    }
}

/// The description of the job provides what the script needs.
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
