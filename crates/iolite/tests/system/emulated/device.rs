//! `iolite device` on devices that answer identification commands: NVMe namespaces, SCSI disks, zoned disks.

use super::nvme::{is_at_least, left};
use super::{NO_PLACEMENT, run, run_newest, told};
use crate::common::Program;
use iolite_testing::vm::Ran;
use iolite_testing::{or_skip, partly_skipped, this_test};
use serde_json::Value;
use std::fs;

/// The part of a script that describes a device in `NAME.json`.
fn described(name: &str, device: &str) -> String {
    let program = Program::own().path;
    let program = program.display();
    format!("'{program}' device --json {device} >{name}.json || exit\n")
}

#[track_caller]
fn json(ran: &Ran, name: &str) -> Value {
    let text = fs::read_to_string(ran.directory.join(format!("{name}.json"))).expect("it has been described");
    crate::common::json::strict(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
}

#[test]
fn namespaces_describe_themselves() {
    let program = Program::own().path.display().to_string();
    let names = [
        "disk",
        "ng",
        "ng4k",
        "separate",
        "interleaved",
        "guard64",
        "type3",
        "metadata",
        "zoned",
        "zoneddisk",
    ];
    let mut script = "nvme_namespaces || exit\n".to_owned();
    names.iter().for_each(|name| script.push_str(&described(name, &format!("${name}"))));
    script.push_str(&format!(
        "chmod 777 .; chmod 644 $disk\n\
         setpriv --reuid=65534 --regid=65534 --clear-groups '{program}' device --json $disk >nobody.json || exit\n\
         chmod 600 $disk\n\
         setpriv --reuid=65534 --regid=65534 --clear-groups '{program}' device --json $disk >nothing.json || exit\n\
         '{program}' device $separate >separate.table || exit\n\
         for it in disk zoned zoneddisk guard64 type3; do\n\
         '{program}' device -F jobs ${{!it}} | sed 's/^; \\(\\[.*\\|[a-z_]*=.*\\|time_based\\|stonewall\\|hipri\\)$/\\1/; s/^runtime=.*/runtime=1/; s/^size=[0-9]*$/size=1M/; s/^size=4z/size=1z/' >jobs.fio\n\
         '{program}' --output-format=json,normal jobs.fio >job-$it.ours 2>&1; echo $? >job-$it.ours.status\n\
         done\n\
         two='--rw=randwrite --bs=4k --size=1M --verify=crc32c --name=block --ioengine=io_uring'\n\
         '{program}' $two --filename=$disk --name=generic --ioengine=io_uring_cmd --filename=$ng >nodes.ours 2>&1; echo $? >nodes.ours.status\n\
         '{program}' --name=j --ioengine=io_uring_cmd --filename=$zoned --zonemode=zbd --rw=trimwrite --write_mode=append \
         --bs=64k,64k,4M --size=2z >appended.ours 2>&1; echo $? >appended.ours.status\n\
         '{program}' --name=j --ioengine=io_uring_cmd --filename=$ng4k --rw=read --bs=4k --size=64k --output-format=json >report.json || exit\n\
         '{program}' --name=j --ioengine=io_uring_cmd --filename=$zoned --rw=read --bs=4k --size=64k --output-format=json >zoned-report.json || exit\n\
         echo $disk4k >node; uname -r >kernel\n"
    ));
    let ran = or_skip!(run_newest("device-nvme", &script));

    let told_of = |name: &str| json(&ran, name)["device"].clone();
    for name in names {
        let device = told_of(name);
        assert_eq!(device["kind"], "NVMe namespace", "{name}");
        assert_eq!(device["identity"]["model"], "QEMU NVMe Ctrl", "{name}");
        assert_eq!(device["identity"]["serial"], "iolite", "{name}");
        // Metadata takes space as well.
        let size = device["capacity"]["size_bytes"].as_u64().unwrap();
        assert!((30 << 20..=32 << 20).contains(&size), "{name}: {size}");
        assert_eq!(device["power_states"][0]["most_watts"], 25.0, "{name}");
        assert_eq!(device["power"]["state"], 0, "{name}");
        assert!(device["health"]["temperature_celsius"].as_u64().is_some_and(|heat| heat > 0), "{name}");
        assert_eq!(device["health"]["wear_percent"], 0, "{name}");
        let optional = device["commands"]["optional"].as_str().unwrap();
        assert!(
            optional.contains("Write Zeroes") && !optional.contains("Write Uncorrectable"),
            "{name}: {optional}"
        );
        assert!(device["not_told"].is_null(), "{name}: {}", device["not_told"]);
    }
    let formats = [
        ("disk", 512, 0, "none", Value::Null),
        ("ng4k", 4096, 0, "none", Value::Null),
        ("separate", 512, 8, "type 1 with CRC-16, in the last bytes", "separate".into()),
        ("interleaved", 512, 8, "type 1 with CRC-16, in the last bytes", "interleaved".into()),
        ("guard64", 4096, 16, "type 2 with CRC-64, in the last bytes", "interleaved".into()),
        ("type3", 512, 16, "type 3 with CRC-16, in the first bytes", "separate".into()),
        ("metadata", 512, 16, "none", "interleaved".into()),
    ];
    for (name, data, metadata, protection, place) in formats {
        let device = told_of(name);
        let format = &device["format"];
        assert_eq!(
            (&format["data_bytes"], &format["metadata_bytes"]),
            (&data.into(), &metadata.into()),
            "{name}"
        );
        assert_eq!(
            (&format["protection_information"], &format["metadata"]),
            (&protection.into(), &place),
            "{name}"
        );
        let in_use = device["formats"].as_array().unwrap().iter().filter(|row| row["in_use"] == true);
        let in_use: Vec<_> = in_use.map(|row| (&row["data_bytes"], &row["metadata_bytes"])).collect();
        assert_eq!(in_use, [(&data.into(), &metadata.into())], "{name}");
    }
    for name in ["zoned", "zoneddisk"] {
        let zones = &told_of(name)["zones"];
        let facts = ["zone_bytes", "zones", "most_open", "most_active"].map(|fact| zones[fact].as_u64());
        assert_eq!(facts, [Some(4 << 20), Some(8), Some(4), Some(6)], "{name}: {zones}");
    }
    assert_eq!(told_of("zoneddisk")["zones"]["zone_capacity_bytes"], 3 << 20);
    let table = fs::read_to_string(ran.directory.join("separate.table")).unwrap();
    assert!(table.contains("type 1 with CRC-16") && table.contains("temperature"), "{table}");

    // A user without permission for commands gets the facts from sysfs, and a line about what root would also see.
    // (Since Linux 6.2, permission to read the node is enough to identify the device.)
    let identifies = is_at_least(&left(&ran, "kernel"), (6, 2));
    for name in ["nobody", "nothing"] {
        let device = told_of(name);
        assert_eq!(device["identity"]["model"], "QEMU NVMe Ctrl", "{name}");
        assert_eq!(device["power_states"].is_null(), name == "nothing" || !identifies, "{name}");
        assert!(device["health"].is_null(), "{name}");
        let untold = device["not_told"][0].as_str().unwrap_or_default();
        assert!(untold.contains("Permission denied; root would see it"), "{name}: {device}");
    }
    let both: &[&str] = &["zone-writes", "zones-at-random", "zone-appends"];
    let passed: &[&str] = &["zone-writes", "passed-zone-writes", "passed-zones-at-random", "zone-appends"];
    for (disk, zoned) in
        [("disk", &[][..]), ("zoned", both), ("zoneddisk", passed), ("guard64", &[]), ("type3", &[])]
    {
        let (text, status) = told(&ran, &format!("job-{disk}"), "ours");
        assert_eq!(status, 0, "{disk}: the jobs that are suggested run: {text}");
        for job in zoned {
            assert!(text.contains(&format!("\"jobname\" : \"{job}\"")), "{disk}: {job}: {text}");
        }
    }
    let (text, status) = told(&ran, "nodes", "ours");
    assert!(status != 0 && text.contains("job generic uses the same device by"), "{status}: {text}");
    let (text, status) = told(&ran, "appended", "ours");
    assert_eq!(status, 0, "only writes have to fit into a Zone Append: {text}");

    let report = json(&ran, "report");
    let target = &report["iolite"]["targets"][0];
    assert_eq!(target["device"], left(&ran, "node").trim().trim_start_matches("/dev/"), "{target}");
    assert_eq!(target["model"], "QEMU NVMe Ctrl", "{target}");
    assert_eq!((&target["serial"], &target["wear_percent"]), (&"iolite".into(), &"0".into()), "{target}");
    let expected =
        [("data_per_block_bytes", "4096"), ("metadata", "0"), ("power_state", "0"), ("spare_percent", "0")];
    for (name, value) in expected {
        assert_eq!(target[name], value, "{name}: {target}");
    }
    for (name, subject, own) in [
        ("health_power_cycles", "health", "power_cycles"),
        ("atomic_writes_controller_blocks", "atomic_writes", "controller_blocks"),
        ("identity_subsystem", "identity", "subsystem"),
    ] {
        let of_device = &told_of("ng4k")[subject][own];
        let of_device = of_device.as_str().map_or_else(|| of_device.to_string(), str::to_owned);
        assert_eq!(target[name], of_device, "{name}: {target}");
    }
    assert!(target["power_states_0"].as_str().is_some_and(|row| row.contains("most_watts=25")), "{target}");
    assert!(target["queue_segments"].is_null() && target["formats_0"].is_string(), "{target}");
    let zoned = &json(&ran, "zoned-report")["iolite"]["targets"][0];
    let expected = [("zone_capacity_bytes", "3145728"), ("most_active_zones", "6"), ("zones", "8")];
    for (name, value) in expected {
        assert_eq!(zoned[name], value, "{name}: {zoned}");
    }
}

#[test]
fn placement_handles_are_reported() {
    let program = Program::own().path.display().to_string();
    let ran = or_skip!(run_newest(
        "device-placement",
        &format!(
            "nvme_namespaces || exit\nnvme_placement || {{ touch no-placement; exit 0; }}\n{}{}\
             '{program}' device $placed >placed.table || exit\n\
             '{program}' --name=j --ioengine=io_uring_cmd --filename=$placed --rw=write --bs=4k --size=64k --fdp=1 --plids=1 \
             --output-format=json >report.json || exit\n{}",
            described("placed", "$placed"),
            described("placeddisk", "$placeddisk"),
            described("after", "$placed"),
        )
    ));
    if ran.directory.join("no-placement").exists() {
        return partly_skipped(&this_test!(), NO_PLACEMENT);
    }
    for name in ["placed", "placeddisk"] {
        let device = json(&ran, name)["device"].clone();
        let placement = &device["placement"];
        assert_eq!(
            (&placement["fdp_enabled"], &placement["handles_of_namespace"]),
            (&true.into(), &4.into())
        );
        assert_eq!(placement["reclaim_unit_bytes"], 8 << 20, "{name}");
        let handles = device["placement_handles"].as_array().expect("it has handles");
        let units: Vec<_> = handles.iter().map(|row| row["reclaim_unit_handle"].as_u64().unwrap()).collect();
        assert_eq!(units, [0, 1, 2, 3], "{name}");
    }
    let room = |name: &str| -> Vec<u64> {
        let device = json(&ran, name)["device"].clone();
        let handles = device["placement_handles"].as_array().expect("it has handles");
        handles.iter().map(|row| row["room_bytes"].as_u64().unwrap()).collect()
    };
    let used: Vec<u64> = room("placed")
        .iter()
        .zip(room("after"))
        .map(|(before, after)| (before - after) % (8 << 20))
        .collect();
    assert_eq!(used, [0, 64 << 10, 0, 0], "the writes went to the second handle");
    let table = fs::read_to_string(ran.directory.join("placed.table")).unwrap();
    assert!(table.contains("handles of namespace") && table.contains("plid 3"), "{table}");
    let target = &json(&ran, "report")["iolite"]["targets"][0];
    let expected = [("fdp_enabled", "yes"), ("placement_handles", "4"), ("reclaim_unit_bytes", "8388608")];
    for (name, value) in expected {
        assert_eq!(target[name], value, "{name}: {target}");
    }
}

#[test]
fn disks_and_what_is_built_on_them_describe_themselves() {
    let mut script = "scsi_disk dev_size_mb=16 dif=1 lbpu=1 || exit\n".to_owned();
    script.push_str(&described("disk", "$disk"));
    script.push_str(&described("sg", "$sg"));
    script.push_str(
        "echo \"0 4096 linear $disk 0\" | dmsetup create dev-test --noudevsync && dmsetup mknodes || exit\n",
    );
    script.push_str(&described("mapped", "/dev/mapper/dev-test"));
    script.push_str("dmsetup remove --noudevsync dev-test\nzoned_disk 3 2 4 || exit\n");
    script.push_str(&described("null", "$disk"));
    script.push_str("flash total_size=1024 erase_size=64 || exit\n");
    script.push_str(&described("flash", "$mtd"));
    script.push_str("dax_file_system || exit\n");
    script.push_str(&described("pmem", "/dev/pmem0"));
    let ran = or_skip!(run("device-others", &script));
    let told_of = |name: &str| json(&ran, name)["device"].clone();
    for name in ["disk", "sg"] {
        let device = told_of(name);
        assert_eq!(
            (&device["kind"], &device["identity"]["vendor"]),
            (&"SCSI disk".into(), &"Linux".into()),
            "{name}"
        );
        assert_eq!(device["identity"]["model"], "scsi_debug", "{name}");
        assert!(device["identity"]["serial"].is_string(), "{name}: {device}");
        assert_eq!(device["format"]["protection_information_type"], 1, "{name}: {device}");
        assert_eq!(device["health"]["temperature_celsius"], 38, "{name}: {device}");
        assert_eq!(device["commands"]["trims_by"], "unmap", "{name}: {device}");
    }
    let mapped = told_of("mapped");
    assert_eq!(
        (&mapped["kind"], &mapped["device_mapper"]["name"]),
        (&"device mapper".into(), &"dev-test".into())
    );
    assert_eq!(mapped["built_on"][0]["identity"]["model"], "scsi_debug");
    let zones = &told_of("null")["zones"];
    let facts = ["zone_bytes", "zone_capacity_bytes", "conventional_zones", "most_open", "most_active"];
    let facts = facts.map(|fact| zones[fact].as_u64());
    assert_eq!(facts, [Some(4 << 20), Some(3 << 20), Some(3), Some(2), Some(4)], "{zones}");
    let flash = told_of("flash");
    assert_eq!(flash["flash"]["erase_block_bytes"], 64 << 10, "{flash}");
    let pmem = told_of("pmem");
    assert_eq!((&pmem["kind"], &pmem["queue"]["dax"]), (&"persistent memory".into(), &true.into()), "{pmem}");
}
