//! `-`: standard input and output, each in a child process.
//!
//! The test binary runs itself again with the streams connected to pipes; the copy does the I/O.

use crate::common::*;
use iolite_engine::Engine;
use iolite_engines::Visitor;
use iolite_types::Operation;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const ENGINE: &str = "IOLITE_TEST_STREAM_ENGINE";
const DIRECTION: &str = "IOLITE_TEST_STREAM_DIRECTION";
const BLOCKS: u64 = 16;

/// Moves the blocks of the test through one of the standard streams.
struct Stream {
    write: bool,
}

impl Visitor for Stream {
    type Out = ();
    fn visit<E: Engine>(self, mut engine: E) {
        let mut buffers = Buffers::new(BLOCK, 1);
        engine.open(0, &spec(Path::new("-"), 0), if self.write { WRITE } else { READ }).unwrap();
        engine.prepare(&buffers.layout).unwrap();
        for block in 0..BLOCKS {
            let offset = block * BLOCK as u64;
            if self.write {
                buffers.of(0).copy_from_slice(&content(offset, BLOCK));
                let unit = buffers.unit(0, Operation::Write, offset, BLOCK as u64);
                assert_eq!(perform(&mut engine, &unit), Ok(BLOCK as u64));
            } else {
                // The other side writes complete blocks, each of at most PIPE_BUF bytes, which a pipe moves at once.
                let unit = buffers.unit(0, Operation::Read, offset, BLOCK as u64);
                assert_eq!(perform(&mut engine, &unit), Ok(BLOCK as u64));
                assert!(buffers.of(0) == content(offset, BLOCK), "block {block}");
            }
        }
        if !self.write {
            let end = buffers.unit(0, Operation::Read, BLOCKS * BLOCK as u64, 16);
            assert_eq!(perform(&mut engine, &end), Ok(0), "the end of the stream");
        }
        engine.close(0).unwrap();
    }
}

/// The work of the copy of this test binary; the original returns at once.
#[test]
fn stream_of_the_copy() {
    let (Ok(engine), Ok(direction)) = (std::env::var(ENGINE), std::env::var(DIRECTION)) else { return };
    with_engine(&engine, &config(&engine, 1), Stream { write: direction == "write" });
    // No output of the test harness may follow in the stream.
    std::process::exit(0);
}

fn copy(engine: &str, direction: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "streams::stream_of_the_copy", "--nocapture"]);
    command.env(ENGINE, engine).env(DIRECTION, direction);
    command
}

#[test]
fn standard_input_is_read() {
    for engine in ["sync", "vsync", "io_uring"] {
        let mut child = copy(engine, "read")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stream = child.stdin.take().unwrap();
        for block in 0..BLOCKS {
            stream.write_all(&content(block * BLOCK as u64, BLOCK)).unwrap();
        }
        drop(stream);
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{engine}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}

#[test]
fn standard_output_is_written() {
    for engine in ["sync", "vsync", "io_uring"] {
        let mut child = copy(engine, "write").stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut bytes = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
        assert!(child.wait().unwrap().success(), "{engine}");
        let expected: Vec<u8> = (0..BLOCKS).flat_map(|block| content(block * BLOCK as u64, BLOCK)).collect();
        // The test harness in the copied process prints first.
        assert!(bytes.ends_with(&expected), "{engine}: {} bytes", bytes.len());
    }
}
