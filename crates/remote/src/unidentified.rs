//! Connections that have not identified themselves yet: the limit, and which one makes room for another. Agents and
//! pages use it.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most concurrent connections of a server that are not authenticated yet.
pub const MOST: usize = 64;

/// The connections that have not identified themselves yet. Copies share them.
#[derive(Debug)]
pub struct Strangers<C>(Arc<Shared<C>>);

#[derive(Debug)]
struct Shared<C> {
    /// In the order of their arrival.
    present: Mutex<VecDeque<Stranger<C>>>,
    /// The number of connections so far.
    arrived: AtomicU64,
}

/// A connection that has not identified itself yet.
#[derive(Debug)]
struct Stranger<C> {
    number: u64,
    /// The address; `None` = this machine.
    from: Option<IpAddr>,
    connection: C,
}

/// Holds a place among the unidentified connections, as long as it lives and the client is not identified.
#[derive(Debug)]
pub struct Place<C> {
    strangers: Strangers<C>,
    number: u64,
}

impl<C> Place<C> {
    /// The client has identified itself.
    pub fn leave(&self) {
        self.strangers.present().retain(|stranger| stranger.number != self.number);
    }
}

impl<C> Drop for Place<C> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<C> Default for Strangers<C> {
    fn default() -> Strangers<C> {
        Strangers(Arc::new(Shared { present: Mutex::default(), arrived: AtomicU64::default() }))
    }
}

impl<C> Strangers<C> {
    /// Gives a connection a place. If all are taken, the oldest one from the address with the most of them loses its
    /// place, and is to be closed: a client that opens many connections shuts out only itself, and not even itself once
    /// it identifies itself.
    pub fn admit(&self, connection: C, from: Option<IpAddr>) -> (Place<C>, Option<C>) {
        let number = self.0.arrived.fetch_add(1, SeqCst);
        let mut present = self.present();
        let mut displaced = None;
        if present.len() >= MOST {
            let of_address = |from| present.iter().filter(|stranger| stranger.from == from).count();
            let most = present.iter().map(|stranger| of_address(stranger.from)).max();
            let oldest = present.iter().position(|stranger| Some(of_address(stranger.from)) == most);
            displaced = oldest.and_then(|oldest| present.remove(oldest)).map(|stranger| stranger.connection);
        }
        present.push_back(Stranger { number, from, connection });
        drop(present);
        (Place { strangers: Strangers(self.0.clone()), number }, displaced)
    }

    fn present(&self) -> MutexGuard<'_, VecDeque<Stranger<C>>> {
        self.0.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that opens many connections shuts out only itself.
    #[test]
    fn strangers_of_one_address_keep_nobody_else_out() {
        let strangers = Strangers::default();
        let come = |ip: [u8; 4], name: usize| strangers.admit(name, Some(ip.into()));
        let (own, _) = come([10, 0, 0, 1], 1000);
        let many: Vec<_> = (0..200).map(|name| come([10, 0, 0, 2], name)).collect();
        let later = come([10, 0, 0, 3], 1001);
        let present: Vec<usize> = strangers.present().iter().map(|stranger| stranger.connection).collect();
        assert_eq!(present.len(), MOST);
        assert!([1000, 1001, 199].iter().all(|name| present.contains(name)), "{present:?}");
        let displaced: Vec<usize> =
            many.iter().chain([&later]).filter_map(|(_, displaced)| *displaced).collect();
        assert_eq!(displaced, (0..=200 + 2 - MOST - 1).collect::<Vec<_>>(), "the oldest of them, in order");
        drop(own);
        assert_eq!(strangers.present().len(), MOST - 1);
        many[199].0.leave();
        assert_eq!(strangers.present().len(), MOST - 2);
    }
}
