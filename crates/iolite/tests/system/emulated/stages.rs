//! `--stages` on devices whose truth is known: a delay of the device or above it, stripes, NVMe and SCSI disks, zones.

use super::{nvme::json, run};
use iolite_testing::or_skip;
use serde_json::Value;

/// The stages of the reads of a job.
fn reads(ran: &iolite_testing::vm::Ran, name: &str) -> Value {
    let stages = json(ran, name).0["iolite"]["stages"][0]["read"].clone();
    assert!(stages.is_object(), "{name} has stages");
    stages
}

fn unmatched(stages: &Value) -> u64 {
    stages["unmatched"].as_object().expect("reasons").values().filter_map(Value::as_u64).sum()
}

fn median(stages: &Value, stage: &str) -> u64 {
    stages[format!("{stage}_ns")]["percentile"]["50.000000"].as_u64().expect("a median")
}

#[test]
fn stages_of_disks_with_known_delays() {
    let ran = or_skip!(run(
        "stages",
        r#"
mount -t tracefs tracefs /sys/kernel/tracing
nvme_namespaces || exit
stages() { local name=$1; shift; ours $name --stages --output-format=json --direct=1 --bs=4k --rw=randread "$@"; }
stages psync --filename=$disk --ioengine=psync --number_ios=100
stages uring --filename=$disk --ioengine=io_uring --iodepth=8 --number_ios=400
stages libaio --filename=$disk4k --ioengine=libaio --iodepth=8 --iodepth_batch=4 --number_ios=400
ours passed --stages --output-format=json --filename=$ng --ioengine=io_uring_cmd --cmd_type=nvme --rw=randread --bs=4k --iodepth=8 --number_ios=400
modprobe dm-mod && modprobe -q dm-stripe
echo "0 32768 striped 2 8 $disk 0 $disk4k 0" | dmsetup create striped --noudevsync && dmsetup mknodes || exit
stages striped --filename=/dev/mapper/striped --ioengine=psync --bs=16k --number_ios=100
stages striped_deep --filename=/dev/mapper/striped --ioengine=io_uring --iodepth=8 --number_ios=400
dmsetup remove --noudevsync striped
if modprobe -q dm-delay; then
    echo "0 32768 delay $disk 0 20" | dmsetup create slow --noudevsync && dmsetup mknodes || exit
    stages delayed --filename=/dev/mapper/slow --ioengine=psync --number_ios=40
    dmsetup remove --noudevsync slow
fi
mkfs.ext4 -q -F $disk && mkdir -p /run/mounted && mount $disk /run/mounted || exit
stages ext4 --filename=/run/mounted/f --size=4m --ioengine=psync --number_ios=100
umount /run/mounted
modprobe -qr nvme
nvme_namespaces poll_queues=1 || exit
stages polled --filename=$disk --ioengine=io_uring --hipri --iodepth=4 --number_ios=200
modprobe -qr nvme
scsi_disk dev_size_mb=16 ndelay=20000000 delay=1 || exit
stages scsi --filename=$disk --ioengine=psync --number_ios=40
ours sg --stages --output-format=json --filename=$sg --ioengine=sg --rw=randread --bs=4k --number_ios=40
modprobe -r scsi_debug
zoned_disk 0 || exit
ours zoned --stages --output-format=json --filename=$disk --ioengine=psync --direct=1 --rw=write --bs=64k --size=1z --zonemode=zbd
"#
    ));
    for (name, ios) in [
        ("psync", 100),
        ("uring", 400),
        ("libaio", 400),
        ("striped", 100),
        ("striped_deep", 400),
        ("ext4", 100),
        ("polled", 200),
    ] {
        let stages = reads(&ran, name);
        let known = stages["ios"].as_u64().expect("a number");
        assert_eq!(known + unmatched(&stages), ios, "{name}: {stages}");
        // Random reads of a deep queue may meet at a block.
        assert!(unmatched(&stages) * 20 <= ios, "{name}: {}", stages["unmatched"]);
        assert!(median(&stages, "device") > 0, "{name}");
    }
    assert_eq!(unmatched(&reads(&ran, "psync")), 0);
    assert!(reads(&ran, "striped")["several_requests"].as_u64() > Some(0), "16 KiB are on both disks");
    // 20 ms in the device; an emulated processor takes a few for everything else.
    for name in ["scsi", "sg"] {
        let scsi = reads(&ran, name);
        assert_eq!((scsi["ios"].as_u64(), unmatched(&scsi)), (Some(40), 0), "{name}: {scsi}");
        assert!(median(&scsi, "device") >= 20_000_000, "{name}: {} ns", median(&scsi, "device"));
        for stage in ["submit", "queue", "reap"] {
            assert!(median(&scsi, stage) < 20_000_000, "{name}, {stage}: {} ns", median(&scsi, stage));
        }
    }
    // Commands that go past the block layer.
    let passed = reads(&ran, "passed");
    assert_eq!((passed["ios"].as_u64(), unmatched(&passed)), (Some(400), 0), "{passed}");
    assert!(median(&passed, "device") > 0);
    if ran.directory.join("delayed.ours").exists() {
        // The mapping holds requests back before the disk gets them.
        let delayed = reads(&ran, "delayed");
        assert_eq!((delayed["ios"].as_u64(), unmatched(&delayed)), (Some(40), 0), "{delayed}");
        assert!(median(&delayed, "queue") >= 20_000_000, "{} ns", median(&delayed, "queue"));
        assert!(median(&delayed, "device") < 20_000_000, "{} ns", median(&delayed, "device"));
    }
    let zoned = json(&ran, "zoned").0["iolite"]["stages"][0]["write"].clone();
    assert_eq!((zoned["ios"].as_u64(), unmatched(&zoned)), (Some(48), 0), "{zoned}");
}
