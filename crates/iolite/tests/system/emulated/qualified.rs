//! `iolite pts` on emulated NVMe and SCSI devices: format, write cache, serial numbers.

use super::nvme::left;
use super::run_newest;
use crate::common::Program;
use iolite_testing::or_skip;
use serde_json::Value;

fn result(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The first half of the namespace is tested; the other half has what the format left.
#[test]
fn a_namespace_is_formatted_before_a_test() {
    let program = Program::under_test().path;
    let script = format!(
        r#"
nvme_namespaces || exit
pts() {{ local name=$1; shift; '{}' pts $disk "$@" >$name.out 2>&1; echo "status $?" >>$name.out; }}
tr '\0' x </dev/zero | dd of=$disk bs=1M count=32 iflag=fullblock oflag=direct status=none || exit
pts wrong --destroy=other --output=wrong
dd if=$disk bs=1M skip=16 iflag=direct status=none | tr -d x | wc -c >kept
pts sanitize --destroy=iolite --purge=sanitize --output=sanitize
pts right --destroy=iolite --quick --range=16m --test=wsat --output=right
dd if=$disk bs=1M skip=16 iflag=direct status=none | tr -d '\0' | wc -c >left
pts client --destroy=iolite --quick --range=16m --test=tp --class=client --output=client
cp right/result.json right.json; cp client/result.json client.json
"#,
        program.display()
    );
    let ran = or_skip!(run_newest("pts-nvme", &script));
    assert!(left(&ran, "wrong.out").contains("nothing was written"), "{}", left(&ran, "wrong.out"));
    assert_eq!(left(&ran, "kept").trim(), "0", "all bytes are as they were");
    let sanitize = left(&ran, "sanitize.out");
    assert!(sanitize.contains("status 1") && sanitize.contains("--purge=sanitize: "), "{sanitize}");
    let right = left(&ran, "right.out");
    assert!(right.contains("status 0"), "{right}");
    assert_eq!(left(&ran, "left").trim(), "0", "bytes that the format has left: {right}");
    let value = result(&left(&ran, "right.json"));
    let header = &value["header"];
    assert_eq!(header["purges"]["wsat"], "NVMe Format NVM with an erasure of user data");
    assert_eq!((&header["device"]["serial"], &header["write_cache"]), (&"iolite".into(), &"off".into()));
    assert_eq!(value["tests"][0]["name"], "wsat");
    let client = result(&left(&ran, "client.json"));
    assert_eq!(client["header"]["write_cache"], "on");
    assert_eq!(
        client["tests"][0]["preconditioning"]["written_bytes"],
        32 << 20,
        "twice the range, as it is quick"
    );
}

/// A SCSI disk without SANITIZE is purged by discards; its write cache is a file in sysfs, and is restored.
#[test]
fn a_scsi_disk_is_purged_by_discards() {
    let program = Program::under_test().path;
    let script = format!(
        r#"
scsi_disk dev_size_mb=32 lbpu=1 || exit
serial=$('{program}' device $disk --json | sed -n 's/.*"serial": "\(.*\)".*/\1/p' | head -n 1)
cache=(/sys/block/${{disk##*/}}/device/scsi_disk/*/cache_type)
cat $cache >before
tr '\0' x </dev/zero | dd of=$disk bs=1M count=32 iflag=fullblock oflag=direct status=none || exit
'{program}' pts $disk --destroy="$serial" --quick --range=16m --test=wsat --output=r >out 2>&1
echo "status $?" >>out
dd if=$disk bs=1M skip=16 iflag=direct status=none | tr -d '\0' | wc -c >left
cat $cache >after
cp r/result.json result.json
"#,
        program = program.display()
    );
    let ran = or_skip!(run_newest("pts-scsi", &script));
    let out = left(&ran, "out");
    assert!(out.contains("status 0"), "{out}");
    assert_eq!(left(&ran, "left").trim(), "0", "bytes that the discards have left: {out}");
    let value = result(&left(&ran, "result.json"));
    let purge = value["header"]["purges"]["wsat"].as_str().unwrap();
    assert!(purge.starts_with("discards of all blocks (") && purge.contains("SANITIZE"), "{purge}");
    assert_eq!(left(&ran, "before"), left(&ran, "after"), "the cache is as it was: {out}");
}
