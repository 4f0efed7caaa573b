//! When the parts of a request take place.

use super::{called_fio, job, report, run};
use crate::common::{Json, Program, scratch};
use iolite_testing::{ObjectServer, Reply, certificate};
use std::fs;
use std::time::Duration;

/// No rights are needed: the engine itself knows the stages of requests.
#[test]
fn stages_of_requests_add_up() {
    const STAGES: [&str; 5] = ["connect", "tls", "send", "first_byte", "last_byte"];
    let delay = Duration::from_millis(20);
    let plain = ObjectServer::behaving(move |_| {
        std::thread::sleep(delay);
        Reply::Granted
    });
    let trusting = format!("--https=on --http_ca_file={}", certificate("authority.crt").display());
    let encrypted = ObjectServer::encrypted("server", false);
    for (server, how, is_encrypted) in [
        (&plain, "", false),
        (&plain, "--thread=1 --iodepth=4", false),
        (&encrypted, trusting.as_str(), true),
        (&encrypted, &format!("{trusting} --iodepth=4"), true),
    ] {
        let line = format!("--filename=/bkt/a --rw=randrw --size=64k --http_create=1 --stages {how}");
        let json = report(server, &line);
        for direction in ["read", "write"] {
            let stages = &json.0["iolite"]["stages"][0][direction];
            let of =
                |stage: &str, figure: &str| stages[format!("{stage}_ns")][figure].as_f64().expect("a figure");
            let ios = Some(json.job().int(&format!("{direction}.total_ios")));
            assert_eq!(stages["ios"].as_u64(), ios, "{how}");
            let sum: f64 = STAGES.iter().map(|stage| of(stage, "mean")).sum();
            let clat = json.job().float(&format!("{direction}.clat_ns.mean"));
            assert!((sum - clat).abs() < 1000.0, "{how}: {sum} {clat}");
            // The delay is in the time to the first byte. (The server may begin to wait before we see that all is sent.)
            assert!(
                is_encrypted || of("first_byte", "mean") > delay.as_nanos() as f64 / 2.0,
                "{how}: {stages}"
            );
        }
        let longest = |stage: &str| {
            let told = &json.0["iolite"]["stages"][0];
            let max = |direction: &str| told[direction][format!("{stage}_ns")]["max"].as_u64().unwrap_or(0);
            max("read").max(max("write"))
        };
        // Somebody has connected. A kept connection takes no time.
        assert!(longest("connect") > 0 && longest("send") > 0, "{how}");
        assert_eq!(longest("tls") > 0, is_encrypted, "{how}");
    }
    // Sending is no part of the handshake.
    let line = format!("--filename=/bkt/b --rw=write --bs=4m --size=4m {trusting} --stages");
    let told = report(&encrypted, &line).0["iolite"]["stages"][0]["write"].clone();
    assert!(told["send_ns"]["min"].as_u64() > Some(0) && told["tls_ns"]["min"].as_u64() > Some(0), "{told}");
    // A request that is sent again has the stages of several.
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let busy =
        ObjectServer::behaving(move |_| match asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Reply::Refused(503, "Retry-After: 1\r\n", ""),
            _ => Reply::Granted,
        });
    let line = "--filename=/bkt/a --rw=write --size=16k --http_retries=3 --stages";
    let told = report(&busy, line).0["iolite"]["stages"][0]["write"].clone();
    assert_eq!((&told["ios"], &told["unmatched"]["untold"]), (&3.into(), &1.into()), "{told}");
}

#[test]
fn the_time_to_the_first_byte_is_reported() {
    let server = ObjectServer::start();
    let dir = scratch();
    for how in ["", "--io_submit_mode=offload --iodepth=2", "--thread=1 --iodepth=4"] {
        let line = format!("--filename=/bkt/a --rw=randrw --size=64k --http_create=1 {how}");
        let json = report(&server, &line);
        for direction in ["read", "write"] {
            let of = |key: &str| json.job().int(&format!("{direction}.{key}"));
            assert_eq!(of("ttfb_ns.N"), of("total_ios"), "{how}");
            assert!(of("ttfb_ns.min") > 0 && of("ttfb_ns.max") <= of("lat_ns.max"), "{how}");
        }
        let normal = run(&server, &line).ok().stdout;
        assert!(normal.contains("    ttfb (") && normal.contains("    ttfb percentiles ("), "{normal}");
        let fio = called_fio(&server, dir.path(), &format!("{line} --output-format=json,normal")).ok().stdout;
        assert!(!fio.contains("ttfb") && !fio.contains("\"requests\""), "{fio}");
        // Logs have it as well, for each request and for windows.
        let log = |name: &str, more: &str| {
            let line = job(&server, &format!("{line} --write_lat_log={name} {more}"));
            Program::own().line(dir.path(), &line).ok();
            let read =
                |kind: &str| fs::read_to_string(dir.path().join(format!("{name}_{kind}.1.log"))).unwrap();
            let values = |text: &str| -> Vec<u64> {
                text.lines().map(|line| line.split(", ").nth(1).unwrap().parse().unwrap()).collect()
            };
            (values(&read("ttfb")), values(&read("lat")))
        };
        let (times, latencies) = log("each", "");
        assert_eq!(times.len(), latencies.len(), "{how}");
        assert!(times.iter().zip(&latencies).all(|(time, latency)| (1..=*latency).contains(time)), "{how}");
        let (times, latencies) = log("mean", "--log_avg_msec=10000");
        assert!(
            times.len() == 2 && times.iter().zip(&latencies).all(|(time, latency)| time <= latency),
            "{how}"
        );
    }
    // A report without requests to a server has no such line.
    let local = Program::own().line(dir.path(), "--name=l --rw=write --size=64k --output-format=json,normal");
    assert!(!local.ok().stdout.contains("ttfb"));
}

/// Sending is a part of the completion latency, as in fio, whose engine sends and waits in one call.
#[test]
fn completion_latency_is_that_of_the_whole_request() {
    let server = ObjectServer::start();
    let dir = scratch();
    let line = "--filename=/bkt/a --rw=randrw --size=64k --http_create=1 --write_lat_log=l --iodepth=2";
    let line = job(&server, &format!("{line} --output-format=json,normal"));
    for program in [Program::own(), Program::called_fio(dir.path())] {
        let told = program.line(dir.path(), &line).ok().stdout;
        assert!(told.contains("    clat (") && !told.contains("    slat ("), "{told}");
        let json = Json::parse(&told);
        for direction in ["read", "write"] {
            let of = |key: &str| json.job().int(&format!("{direction}.{key}"));
            assert_eq!((of("slat_ns.N"), of("clat_ns.N")), (0, of("total_ios")));
            if told.contains("ttfb") {
                assert!(of("ttfb_ns.min") <= of("clat_ns.min") && of("ttfb_ns.max") <= of("clat_ns.max"));
            }
        }
        assert_eq!(fs::read_to_string(dir.path().join("l_slat.1.log")).unwrap(), "");
        let log = fs::read_to_string(dir.path().join("l_clat.1.log")).unwrap();
        assert_eq!(log.lines().count(), 16);
    }
    // With offload, there is a submission latency: the time until a submitter takes the I/O.
    let json = report(&server, "--filename=/bkt/a --rw=write --size=64k --io_submit_mode=offload");
    assert_eq!(json.job().int("write.slat_ns.N"), 16);
    assert!(json.job().int("write.ttfb_ns.max") <= json.job().int("write.clat_ns.max"));
}
