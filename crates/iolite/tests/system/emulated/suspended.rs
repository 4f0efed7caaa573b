//! I/O that the kernel holds: a mapped device is suspended, and its requests wait until it goes on.

use super::{run, told};
use iolite_testing::or_skip;

/// The kernel may still write to buffers of I/Os that were given up, and cannot end a process that waits for one.
#[test]
fn an_io_that_the_kernel_holds_takes_too_long() {
    let ran = or_skip!(run(
        "suspended",
        r#"
plain_disk || exit
modprobe dm-mod || exit
dmsetup create --noudevsync part --table "0 $((32 << 11)) linear $disk 2048" || exit
disk=/dev/$(dmsetup info -c --noheadings -o blkdevname part)
appear $disk || exit
dmsetup suspend --noflush --nolockfs part || exit
job() { local name=$1; shift; ours $name --filename=$disk --rw=randread --direct=1 --bs=4k --io_timeout=1s --time_based --runtime=5 "$@"; }
job psync --ioengine=psync
job thread --ioengine=psync --thread
job libaio --ioengine=libaio --iodepth=4
job io_uring --ioengine=io_uring --iodepth=4
job fixed --ioengine=io_uring --iodepth=4 --fixedbufs --registerfiles
job tolerant --ioengine=io_uring --iodepth=4 --continue_on_error=io
dmsetup resume part
job after --ioengine=libaio --iodepth=4 --time_based=0 --size=1m
dmsetup remove --noudevsync --retry part
"#
    ));
    for name in ["psync", "thread", "libaio", "io_uring", "fixed"] {
        let (text, status) = told(&ran, name, "ours");
        assert_eq!(status, 1, "{name}: {text}");
        assert!(text.contains("func=read, error=Connection timed out"), "{name}: {text}");
        assert!(
            text.contains("(in flight for 1.") && text.contains(": io_timeout): read offset="),
            "{name}: {text}"
        );
    }
    let (text, status) = told(&ran, "tolerant", "ours");
    assert!(status == 0 && text.contains("total=4, first_error=110"), "{text}");
    let (text, status) = told(&ran, "after", "ours");
    assert!(status == 0 && text.contains("err= 0"), "{text}");
}
