//! `iolite trace` beside btt, on what blktrace records of real devices.

use super::run;
use crate::common::Program;
use crate::trace_subcommand::{has_btt, of_btt, ours};
use iolite_testing::or_skip;
use std::fs;

/// What is recorded, and the actions that must occur in it (so that there is something to compare).
const RECORDED: [(&str, &str, &str); 8] = [
    ("plain", "two processes on a disk", "QGDC"),
    ("scheduled", "with a scheduler, from two CPUs", "QGIDC"),
    ("merged", "neighbours", "QGMDC"),
    ("split", "larger than requests", "QXGDC"),
    ("flushed", "with flushes and discards", "QGDC"),
    ("mapped", "a disk and a device on top of it", "QAGDC"),
    ("returned", "a disk that is often busy", "QGDRC"),
    ("lost", "more than blktrace can take", "QGDC"),
];

#[test]
fn steps_take_as_long_as_for_btt() {
    or_skip!(has_btt());
    let program = Program::own().path;
    let script = format!(
        r#"
mount -t debugfs none /sys/kernel/debug 2>/dev/null
# recorded NAME DEVICE…: records what the function of this name does.
recorded() {{
    local name=$1 device devices=() inputs=() tracer
    shift
    for device in "$@"; do devices+=(-d "$device") inputs+=(-i "${{device##*/}}"); done
    mkdir "$name.parts"
    blktrace $buffers -D "$name.parts" "${{devices[@]}}" >"$name.told" 2>&1 &
    tracer=$!
    sleep 1
    "$name" >"$name.did" 2>&1
    sync
    sleep 0.3
    kill -INT $tracer
    wait $tracer
    (cd "$name.parts" && blkparse -q "${{inputs[@]}}" -d "../$name.dump" >../$name.text)
    btt -i "$name.dump" >"$name.btt"
    '{program}' trace "$name.dump" >"$name.ours" || exit
    awk '{{ print $6 }}' "$name.text" | sort -u | tr -d '\n' >"$name.actions"
    rm -rf "$name.parts" "$name.dump" "$name.text" *.dat
}}
io() {{ '{program}' --name=j --filename=$disk --direct=1 --bs=4k --size=32m "$@"; }}
plain_disk || exit
queue=/sys/block/nullb0/queue
echo none >$queue/scheduler
plain() {{ io --rw=randrw --ioengine=libaio --iodepth=8 --io_size=2m --numjobs=2; }}
recorded plain $disk
echo mq-deadline >$queue/scheduler
scheduled() {{ taskset -c 0 '{program}' --name=a --filename=$disk --direct=1 --rw=randwrite --ioengine=io_uring --iodepth=16 --size=2m & plain; wait $!; }}
recorded scheduled $disk
merged() {{ io --rw=write --ioengine=libaio --iodepth=32 --iodepth_batch=32 --size=2m; dd if=/dev/zero of=$disk bs=4k count=300 conv=fsync; }}
recorded merged $disk
split() {{ io --rw=write --bs=256k --size=4m; io --rw=randread --bs=64k,256k --io_size=4m; }}
echo 32 >$queue/max_sectors_kb
recorded split $disk
flushed() {{ io --rw=randwrite --fsync=3 --io_size=256k; blkdiscard -f -o 1048576 -l 1048576 $disk; dd if=/dev/zero of=$disk bs=4k count=20 oflag=direct,dsync; }}
null_disk discard=1 cache_size=8 || exit
echo mq-deadline >$queue/scheduler
recorded flushed $disk
modprobe dm-mod || exit
dmsetup create --noudevsync part --table "0 $((32 << 11)) linear $disk 2048" || exit
lower=$disk
disk=/dev/$(dmsetup info -c --noheadings -o blkdevname part)
appear $disk || exit
mapped() {{ io --rw=randrw --ioengine=libaio --iodepth=8 --io_size=1m --size=16m; }}
recorded mapped $lower $disk
dmsetup remove --noudevsync part
scsi_disk dev_size_mb=64 opts=0x8000 every_nth=7 delay=1 || exit
returned() {{ io --rw=randrw --ioengine=libaio --iodepth=8 --io_size=1m --size=16m; }}
recorded returned $disk
modprobe -r scsi_debug
plain_disk || exit
echo none >$queue/scheduler
buffers="-b 4 -n 2"
lost() {{ io --rw=randread --ioengine=libaio --iodepth=32 --time_based --runtime=1; }}
recorded lost $disk
cat *.told
"#,
        program = program.display()
    );
    let ran = or_skip!(run("block-traces", &script));
    for (name, of, actions) in RECORDED {
        let read = |kind: &str| {
            let path = ran.directory.join(format!("{name}.{kind}"));
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}.{kind}: {error}\n{}", ran.output))
        };
        let (theirs, ours) = (of_btt(&read("btt")), ours(&read("ours")));
        assert_eq!(ours, theirs, "{name} ({of})\n{}", ran.output);
        let happened = read("actions");
        let is_missing = |action: &char| !happened.contains(*action);
        assert_eq!(
            actions.chars().find(is_missing),
            None,
            "{name} ({of}): {happened}\n{}\n{}",
            read("did"),
            ran.output
        );
        assert!(theirs.contains_key("Q2C") || name == "split", "{name} ({of}): {theirs:?}");
    }
    let lost = fs::read_to_string(ran.directory.join("lost.told")).expect("blktrace has ended");
    assert!(lost.contains("dropped"), "nothing was lost: {lost}");
}
