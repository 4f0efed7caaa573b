//! Verified files that fio wrote are read here, and the other way round.

use crate::common::{Program, scratch};
use crate::skip;
use std::fs;

const BASE: &str = "--name=v --filename=data --size=256k --bs=4k";

/// The types whose digest is the standard one in fio 3.33.
const TYPES: &[&str] = &[
    "--verify=md5",
    "--verify=crc64",
    "--verify=crc32",
    "--verify=crc32c",
    "--verify=crc32c-intel",
    "--verify=crc16",
    "--verify=crc7",
    "--verify=sha1",
    "--verify=sha3-224",
    "--verify=sha3-256",
    "--verify=sha3-384",
    "--verify=sha3-512",
    "--verify=xxhash",
    "--verify=meta",
    "--verify=pattern --verify_pattern=0xdeadbeef",
    "--verify=pattern --verify_pattern=0xff%o\"abcd\"-12",
    "--verify_pattern=0xdeadbeef",
];

const SHAPES: &[&str] = &["", "--verify_interval=1k", "--verify_offset=512", "--bs=16k --verify_interval=4k"];

#[test]
fn files_of_fio_are_read_here() {
    let Some(peer) = Program::peer() else { skip!("no fio is installed") };
    for kind in TYPES {
        for shape in SHAPES {
            // There the pattern in front is damaged by the header of an earlier write: fio refills its buffers only in
            // part, and does not look at that place.
            if kind.starts_with("--verify_pattern") && shape.contains("offset") {
                continue;
            }
            let dir = scratch();
            peer.line(dir.path(), &format!("{BASE} --rw=randwrite {kind} {shape} --do_verify=0")).ok();
            let read = format!("{BASE} --rw=read {kind} {shape}");
            Program::under_test().line(dir.path(), &read).ok();
            let path = dir.path().join("data");
            let mut bytes = fs::read(&path).unwrap();
            bytes[100_000] ^= 1;
            fs::write(&path, bytes).unwrap();
            let damaged = Program::under_test().line(dir.path(), &read);
            // Headers alone say nothing of the data.
            assert_eq!(damaged.code(), i32::from(*kind != "--verify=meta"), "{damaged}");
        }
    }
}

#[test]
fn files_of_ours_are_read_by_fio() {
    let Some(peer) = Program::peer() else { skip!("no fio is installed") };
    for kind in TYPES {
        for shape in SHAPES {
            let dir = scratch();
            let ours =
                format!("{BASE} --rw=randwrite {kind} {shape} --do_verify=0 --verify_header_format=3.33");
            Program::under_test().line(dir.path(), &ours).ok();
            peer.line(dir.path(), &format!("{BASE} --rw=read {kind} {shape}")).ok();
        }
    }
}
