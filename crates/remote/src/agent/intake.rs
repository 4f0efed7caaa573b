//! Limits that keep clients from using up this machine: how many may connect, how much each may send, and how much is
//! logged about refused ones.

use crate::stream::IntakeLimit;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The most messages of a client per second: comparing clocks needs tens, at several barriers in a row.
const MOST_MESSAGES: u32 = 10_000;
/// Most refused connections that are reported per second.
const MOST_TOLD: u64 = 10;

/// How much is read from a client before it is identified: a handshake, its greeting and its name.
pub(super) const OF_STRANGER: IntakeLimit = IntakeLimit { bytes: 256 << 10, per_second: 256 << 10 };
/// How much is read from an identified client: at most its jobs in a second.
pub(super) const OF_CLIENT: IntakeLimit = IntakeLimit { bytes: u64::MAX, per_second: 64 << 20 };
/// How many connections are served per second.
const MOST_ARRIVALS: u32 = 1000;
/// How many are refused per second. That costs some microseconds each.
const MOST_REFUSALS: u32 = 20_000;
/// How many connections of one address are served at once after a pause, and how many per second in the long run: each of
/// them costs a thread, and a handshake.
const AT_ONCE: f64 = 64.0;
const PER_SECOND: f64 = 20.0;
/// How many addresses are remembered.
const MOST_ADDRESSES: usize = 4096;

const SECOND: Duration = Duration::from_secs(1);

/// Counts a client as long as it lives.
pub(super) struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    /// Counts one more client; `None` = the limit is reached.
    pub fn one_of(counter: &'a AtomicUsize, most: usize) -> Option<Counted<'a>> {
        let counted = Counted(counter);
        (counter.fetch_add(1, SeqCst) < most).then_some(counted)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Limits a rate of messages or connections, so that they cannot keep this machine busy.
#[derive(Debug)]
pub(super) struct Pace {
    most: u32,
    since: Instant,
    taken: u32,
}

impl Pace {
    fn of(most: u32) -> Pace {
        Pace { most, since: Instant::now(), taken: 0 }
    }

    /// The limit for the messages of a client.
    pub fn of_messages() -> Pace {
        Pace::of(MOST_MESSAGES)
    }

    /// The limit for connections.
    pub fn of_arrivals() -> Pace {
        Pace::of(MOST_ARRIVALS)
    }

    /// The limit for connections that are refused at once.
    pub fn of_refusals() -> Pace {
        Pace::of(MOST_REFUSALS)
    }

    /// Counts a message or connection; waits if there were too many in this second.
    pub fn take(&mut self) {
        if let Some(pause) = self.pause(Instant::now()) {
            thread::sleep(pause);
        }
    }

    /// Counts one that arrives now. Returns how long it must wait if there were too many in this second.
    fn pause(&mut self, now: Instant) -> Option<Duration> {
        let passed = now.saturating_duration_since(self.since);
        let pause = (self.taken >= self.most && passed < SECOND).then(|| SECOND.saturating_sub(passed));
        if pause.is_some() || passed >= SECOND {
            // The next second begins after the pause.
            *self = Pace { most: self.most, since: now + pause.unwrap_or_default(), taken: 0 };
        }
        self.taken += 1;
        pause
    }
}

/// How often connections come from each address.
#[derive(Debug, Default)]
pub(super) struct Arrivals(HashMap<IpAddr, Budget>);

/// How many connections an address may still open, at a given moment.
#[derive(Debug)]
struct Budget {
    left: f64,
    at: Instant,
}

impl Budget {
    fn now(&self, now: Instant) -> f64 {
        AT_ONCE.min(self.left + PER_SECOND * now.saturating_duration_since(self.at).as_secs_f64())
    }
}

impl Arrivals {
    /// Whether to serve a connection that arrives now from this address.
    pub fn take(&mut self, from: IpAddr, now: Instant) -> bool {
        if self.0.len() >= MOST_ADDRESSES {
            self.0.retain(|_, budget| budget.now(now) < AT_ONCE);
        }
        if self.0.len() >= MOST_ADDRESSES {
            // Too many addresses connect at the same time to remember them.
            self.0.clear();
        }
        let budget = self.0.entry(network(from)).or_insert(Budget { left: AT_ONCE, at: now });
        let left = budget.now(now);
        let is_served = left >= 1.0;
        *budget = Budget { left: if is_served { left - 1.0 } else { left }, at: now };
        is_served
    }
}

/// The addresses that one machine usually has: for IPv6, a network.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

/// Logs refused connections, up to a rate limit, so that a scanner cannot fill the disk.
#[derive(Debug)]
pub(super) struct Refusals {
    log: fn(&str),
    /// The start of the current second, and the number of refusals in it.
    counted: Mutex<(Instant, u64)>,
}

impl Refusals {
    pub fn new(log: fn(&str)) -> Refusals {
        Refusals { log, counted: Mutex::new((Instant::now(), 0)) }
    }

    /// Logs a refusal, unless there were too many in this second.
    pub fn log(&self, text: &str) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, told) = &mut *counted;
        let mut more = 0;
        if since.elapsed() >= SECOND {
            more = told.saturating_sub(MOST_TOLD);
            (*since, *told) = (Instant::now(), 0);
        }
        *told += 1;
        let is_told = *told <= MOST_TOLD;
        drop(counted);
        if more > 0 {
            (self.log)(&format!("{more} more connections were refused"));
        }
        if is_told {
            (self.log)(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_above_the_rate_is_slowed_down() {
        let mut pace = Pace::of_messages();
        let begun = pace.since;
        let at = |ms| begun + Duration::from_millis(ms);
        assert!((0..MOST_MESSAGES).all(|_| pace.pause(at(300)).is_none()));
        assert_eq!(pace.pause(at(300)), Some(Duration::from_millis(700)));
        // The pause is over, and counts.
        assert!((1..MOST_MESSAGES).all(|_| pace.pause(at(1500)).is_none()));
        assert_eq!(pace.pause(at(1500)), Some(Duration::from_millis(500)));
        assert_eq!(pace.pause(at(5000)), None, "a later second");
    }

    #[test]
    fn an_address_that_connects_too_often_is_refused() {
        let mut arrivals = Arrivals::default();
        let begun = Instant::now();
        let mut served = |address: &str, count: usize, after_ms: u64| {
            let now = begun + Duration::from_millis(after_ms);
            (0..count).filter(|_| arrivals.take(address.parse().unwrap(), now)).count()
        };
        assert_eq!(served("10.0.0.1", 1000, 0), 64);
        assert_eq!(served("10.0.0.2", 10, 0), 10, "another address");
        assert_eq!(served("10.0.0.1", 1000, 500), 10);
        assert_eq!(served("10.0.0.1", 1000, 3_600_000), 64);
        // One machine has many of these.
        let many = (0..1000).map(|host| served(&format!("fd00::{host:x}"), 1, 0)).sum::<usize>();
        assert_eq!(many, 64);
        assert_eq!(served("fd00:0:0:1::", 1, 0), 1);
    }

    #[test]
    fn addresses_are_forgotten() {
        let mut arrivals = Arrivals::default();
        let now = Instant::now();
        for address in 0..100_000_u32 {
            assert!(arrivals.take(std::net::Ipv4Addr::from_bits(address).into(), now));
            assert!(arrivals.0.len() <= MOST_ADDRESSES);
        }
    }
}
