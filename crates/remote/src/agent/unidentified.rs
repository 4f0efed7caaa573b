//! Connections that have not identified themselves yet: the limit, and which one is closed to make room for another.

use crate::connection::{Connection, Peer};
use crate::greeting::Refusal;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most concurrent connections that are not authenticated yet.
const MOST: usize = 64;

/// The connections that have not identified themselves yet.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    /// In the order of their arrival.
    present: Mutex<VecDeque<Stranger>>,
    /// The number of connections so far.
    arrived: AtomicU64,
}

/// A connection that has not identified itself yet.
#[derive(Debug)]
struct Stranger {
    number: u64,
    /// The address; `None` = this machine.
    from: Option<IpAddr>,
    connection: Connection,
}

/// Holds a place among the unidentified connections, as long as it lives and the client is not identified.
pub(super) struct Place<'a> {
    strangers: &'a Strangers,
    number: u64,
}

impl Place<'_> {
    /// Keeps the place reserved: another owner will free it ([`Strangers::place`]).
    pub fn keep(self) -> u64 {
        let number = self.number;
        std::mem::forget(self);
        number
    }

    /// The client has identified itself.
    pub fn leave(&self) {
        self.strangers.present().retain(|stranger| stranger.number != self.number);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Strangers {
    /// Gives a connection a place. If all are taken, the oldest one from the address with the most of them is closed: a
    /// client that opens many connections shuts out only itself.
    pub fn admit(&self, connection: &Connection, peer: Peer) -> Place<'_> {
        let number = self.arrived.fetch_add(1, SeqCst);
        let from = peer.address();
        let mut present = self.present();
        if present.len() >= MOST {
            let of_address = |from| present.iter().filter(|stranger| stranger.from == from).count();
            let most = present.iter().map(|stranger| of_address(stranger.from)).max();
            let oldest = present.iter().position(|stranger| Some(of_address(stranger.from)) == most);
            if let Some(made_room) = oldest.and_then(|oldest| present.remove(oldest)) {
                made_room.connection.refuse(Refusal::IsFull);
                made_room.connection.end();
            }
        }
        present.push_back(Stranger { number, from, connection: connection.clone() });
        drop(present);
        self.place(number)
    }

    /// The place with this number, which was kept.
    pub fn place(&self, number: u64) -> Place<'_> {
        Place { strangers: self, number }
    }

    fn present(&self) -> MutexGuard<'_, VecDeque<Stranger>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Stream;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// A client that opens many connections shuts out only itself.
    #[test]
    fn strangers_of_one_address_keep_nobody_else_out() {
        let strangers = Strangers::default();
        let mut others = Vec::new();
        let mut come = |ip: [u8; 4]| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let connection = Connection::over(Stream::over_socket(ours)).unwrap();
            let number = strangers.admit(&connection, Peer::At((ip, 1).into())).keep();
            others.push((theirs, connection));
            number
        };
        let own = come([10, 0, 0, 1]);
        let many: Vec<u64> = (0..200).map(|_| come([10, 0, 0, 2])).collect();
        let later = come([10, 0, 0, 3]);
        let numbers: Vec<u64> = strangers.present().iter().map(|stranger| stranger.number).collect();
        assert_eq!(numbers.len(), MOST);
        assert!(numbers.contains(&own) && numbers.contains(&later) && numbers.contains(many.last().unwrap()));
        assert!(!numbers.contains(&many[0]));
        // The connection that was closed got a message first.
        let mut said = Vec::new();
        others[1].0.read_to_end(&mut said).unwrap();
        assert!(!said.is_empty());
        drop(strangers.place(own));
        assert_eq!(strangers.present().len(), MOST - 1);
    }
}
