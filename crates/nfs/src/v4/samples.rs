//! Answers and parts of answers, for tests that damage them.

use super::attributes::{self, read_attributes};
use super::compound::operation as op;
use super::{client, open};
use crate::xdr::{Reader, Writer};

/// Reads a part of an answer, and returns what came of it.
pub(crate) fn take_part(which: u8, body: &[u8]) -> String {
    let mut reader = Reader::new(body);
    match which {
        0 => format!("attributes {:?}", read_attributes(&mut reader).map(|given| given.kind)),
        1 => format!("open {:?}", open::read(&mut reader).map(|_| ())),
        _ => format!("channel {:?}", client::granted(&mut reader).map(|_| ())),
    }
}

/// Undamaged ones, with the numbers by which they are chosen.
pub(crate) fn samples() -> Vec<(u8, Vec<u8>)> {
    let with = |write: &dyn Fn(&mut Writer<'_>)| {
        let mut bytes = Vec::new();
        write(&mut Writer(&mut bytes));
        bytes
    };
    let answer = |operations: u32, write: &dyn Fn(&mut Writer<'_>)| {
        with(&|writer| {
            // The first slot that is not reserved.
            writer.u32(0).u32(0).u32(1 + operations).u32(op::SEQUENCE).u32(0);
            writer.u64(0).u64(0).u32(1).u32(2).u32(7).u32(7).u32(0);
            if operations > 0 {
                writer.u32(op::PUTFH).u32(0);
            }
            write(writer);
        })
    };
    vec![
        (
            1,
            answer(2, &|writer| {
                writer.u32(op::READ).u32(0).u32(1).opaque(b"abcd");
            }),
        ),
        (
            3,
            answer(2, &|writer| {
                writer.u32(op::WRITE).u32(0).u32(64).u32(0).u64(1);
            }),
        ),
        (
            5,
            answer(2, &|writer| {
                writer.u32(op::COMMIT).u32(0).u64(1);
            }),
        ),
        (
            5,
            answer(2, &|writer| {
                writer.u32(op::COMMIT).u32(10025);
            }),
        ),
        (7, answer(0, &|_| ())),
        (
            3,
            with(&|writer| {
                writer.u32(10008).u32(0).u32(1).u32(op::SEQUENCE).u32(10008);
            }),
        ),
        (
            0x80,
            with(&|writer| {
                attributes::bitmap(writer, &attributes::OF_FILE);
                writer.u32(20).u32(1).u64(4096).u64(4096);
            }),
        ),
        (
            0x81,
            with(&|writer| {
                // A state, a change, flags, no attributes, and a delegation to write.
                writer.u64(1).u64(2).u32(1).u64(0).u64(1).u32(4).u32(0).u32(2).u64(3).u64(4);
                writer.u32(0).u32(1).u64(9).u64(0).u32(0).opaque(b"me");
            }),
        ),
        (0x82, with(&|writer| client::channel(writer, 1 << 20, 2048, 8, 64))),
    ]
}
