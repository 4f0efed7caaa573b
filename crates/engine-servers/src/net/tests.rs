//! Ends that wait for each other, with shorter time limits than in use.

use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// The patience of the ends.
const PATIENCE: Duration = Duration::from_millis(50);

/// Bytes of a block.
const BLOCK: usize = 64;

/// An end that is connected to a socket of the test.
fn connected(change: impl Fn(&mut NetOptions), sends: bool) -> (NetEngine, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = u32::from(listener.local_addr().unwrap().port());
    let mut options = NetOptions {
        hostname: "127.0.0.1".to_owned(),
        port,
        protocol: Protocol::Tcp,
        ..NetOptions::default()
    };
    change(&mut options);
    let mut engine = NetEngine::new(&EngineConfig::default(), &options).unwrap();
    (engine.sends, engine.patience) = (sends, PATIENCE);
    engine.meet(&mut || Ok(())).unwrap();
    let peer = listener.accept().unwrap().0;
    (engine, peer)
}

/// Continues with a block for a slice.
fn slice(engine: &mut NetEngine, buffer: &mut [u8; BLOCK]) -> Queued {
    let unit = Unit {
        buffer: buffer.as_mut_ptr(),
        length: BLOCK as u64,
        offset: 0,
        index: 0,
        file: 0,
        operation: if engine.sends { Operation::Write } else { Operation::Read },
        priority: 0,
    };
    // SAFETY: the buffer is as long as the unit, and nothing is in flight afterwards.
    unsafe { engine.queue(&unit) }
}

/// Continues with a block for longer than the patience, without progress.
fn waits(engine: &mut NetEngine) {
    let begun = Instant::now();
    while begun.elapsed() < 3 * PATIENCE {
        assert_eq!(slice(engine, &mut [0; BLOCK]), Queued::Busy);
    }
}

/// Continues until the block fails.
fn failure(engine: &mut NetEngine) -> String {
    let mut buffer = [1; BLOCK];
    for _ in 0..100 {
        match slice(engine, &mut buffer) {
            Queued::Busy => {}
            Queued::Completed(Err(Errno(libc::ETIMEDOUT))) => return engine.explain(0).unwrap(),
            other => panic!("{other:?}"),
        }
    }
    panic!("it waits for ever");
}

#[test]
fn a_sender_does_not_wait_for_ever_for_an_answer() {
    let (mut engine, _silent) = connected(|options| options.pingpong = true, true);
    assert!(failure(&mut engine).ends_with(NO_ANSWER));
}

#[test]
fn a_receiver_that_connects_does_not_wait_for_ever_for_a_first_block() {
    let (mut engine, _silent) = connected(|_| (), false);
    let mut buffer = [0; BLOCK];
    assert!(failure(&mut engine).ends_with(NOTHING_SENT));
    // After a block, the other end may take its time.
    let (mut engine, mut later) = connected(|_| (), false);
    later.write_all(&[1; BLOCK]).unwrap();
    assert_eq!(slice(&mut engine, &mut buffer), Queued::Completed(Ok(BLOCK as u64)));
    waits(&mut engine);
}

#[test]
fn data_that_is_read_ahead_arrives_in_order_and_before_the_goodbye() {
    for at_once in [true, false] {
        let (mut engine, mut peer) = connected(|_| (), false);
        // A part of a block is left at the end.
        let data: Vec<u8> = (0..BLOCK * 100 + 10).map(|place| place as u8).collect();
        let all: Vec<u8> = data.iter().copied().chain(GOODBYES[0]).collect();
        let pieces = if at_once { all.len() } else { 333 };
        let sender = std::thread::spawn(move || {
            all.chunks(pieces).for_each(|piece| peer.write_all(piece).unwrap());
            peer
        });
        let (mut received, mut buffer) = (Vec::<u8>::new(), [0; BLOCK]);
        loop {
            match slice(&mut engine, &mut buffer) {
                Queued::Completed(Ok(length)) => received.extend(&buffer[..length as usize]),
                Queued::Busy => {}
                Queued::Over => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(received, data);
        drop(sender.join());
    }
}

#[test]
fn data_that_gathers_is_not_held_back() {
    let (mut engine, mut peer) = connected(|_| (), false);
    let (descriptor, mut buffer) = (engine.descriptor, [0; BLOCK]);
    let ahead = engine.ahead.as_mut().unwrap();
    ahead.gather(descriptor, true);
    assert!(ahead.gathers());
    // A slice without data ends the gathering; later blocks complete at once.
    assert_eq!(slice(&mut engine, &mut buffer), Queued::Busy);
    for gathers in [false, true] {
        engine.ahead.as_mut().unwrap().gather(descriptor, gathers);
        peer.write_all(&[1; BLOCK]).unwrap();
        assert_eq!(slice(&mut engine, &mut buffer), Queued::Completed(Ok(BLOCK as u64)));
        assert!(!engine.ahead.as_ref().unwrap().gathers());
    }
}

#[test]
fn a_late_goodbye_means_that_the_other_end_is_done() {
    let (mut engine, mut peer) = connected(|options| options.window_size = 4096, true);
    // The sender is stuck: it does not wait for an acknowledgement that the other machine delays.
    let mut stuck = None;
    while stuck.is_none_or(|since: Instant| since.elapsed() < Duration::from_millis(500)) {
        stuck = match slice(&mut engine, &mut [1; BLOCK]) {
            Queued::Busy => stuck.or_else(|| Some(Instant::now())),
            _ => None,
        };
    }
    let late = std::thread::spawn(move || {
        std::thread::sleep(parting::HEARD + Duration::from_millis(200));
        peer.write_all(&GOODBYES[0]).unwrap();
        peer
    });
    assert!(engine.await_end(engine.socket.as_ref().unwrap()).unwrap());
    drop(late.join());
}

#[test]
fn a_receiver_that_was_connected_to_waits() {
    let (mut engine, _silent) = connected(|_| (), false);
    engine.connected = false;
    waits(&mut engine);
}

#[test]
fn a_slow_answer_is_an_answer() {
    let (mut engine, mut peer) = connected(|options| options.pingpong = true, true);
    let mut buffer = [1; BLOCK];
    assert_eq!(slice(&mut engine, &mut buffer), Queued::Busy);
    peer.read_exact(&mut [0; BLOCK]).unwrap();
    for _ in 0..BLOCK - 1 {
        peer.write_all(&[1]).unwrap();
        // The byte, and a slice without data.
        assert_eq!(slice(&mut engine, &mut buffer), Queued::Busy);
        assert_eq!(slice(&mut engine, &mut buffer), Queued::Busy);
    }
    peer.write_all(&[1]).unwrap();
    assert_eq!(slice(&mut engine, &mut buffer), Queued::Completed(Ok(BLOCK as u64)));
}
