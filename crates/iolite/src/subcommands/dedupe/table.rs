//! Counts of hashes in bounded memory.
//!
//! The table is divided into shards by the upper bits of the hashes, so that threads seldom wait for each other. A full
//! shard keeps only the hashes that end in a zero bit, then in two zero bits, in three, and so on: a sample of the
//! distinct blocks that does not depend on how often or where they occur (Flajolet: On adaptive sampling, 1990). A
//! count in the sample times 2^bits is an unbiased estimate of the total; with a hundred thousand entries its standard
//! deviation is a third of a percent, with seven million a twenty-fifth.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard};

const SHARD_BITS: u32 = 6;

/// Counts of hashes.
pub(super) struct Table {
    shards: Vec<Mutex<Shard>>,
    room: usize,
    list: bool,
}

#[derive(Default)]
struct Shard {
    entries: HashMap<u128, Entry, BuildHasherDefault<Middle>>,
    /// How many bits at the end of a hash must be zero.
    level: u32,
    /// All places of each hash, if requested.
    places: HashMap<u128, Vec<u64>, BuildHasherDefault<Middle>>,
}

struct Entry {
    count: u64,
    /// Where it was seen first.
    first: u64,
}

/// Places at which a hash was found, at equal distances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub first: u64,
    pub step: u64,
    pub times: u64,
}

/// The result of adding a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It is new.
    New,
    /// It is known, or not in the sample.
    Known,
}

/// The sums of the table.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Distinct hashes.
    pub unique: u64,
    /// The number of distinct blocks that occur more than once.
    pub duplicated: u64,
    /// One in this many distinct hashes was counted; 1 = all.
    pub sampled: u64,
    /// The places of duplicates, if requested, sorted by the first place.
    pub listed: Vec<(u128, Vec<u64>)>,
}

impl Table {
    /// A table for this many hashes; `list` keeps the places of each.
    pub(super) fn new(room: usize, list: bool) -> Self {
        let shards = (0..1 << SHARD_BITS).map(|_| Mutex::default()).collect();
        Table { shards, room: (room >> SHARD_BITS).max(1), list }
    }

    fn shard(&self, hash: u128) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[(hash >> (128 - SHARD_BITS)) as usize];
        // No code panics while it holds the lock.
        shard.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The first place of a hash, if it is known.
    pub(super) fn look(&self, hash: u128) -> Option<u64> {
        self.shard(hash).entries.get(&hash).map(|entry| entry.first)
    }

    /// Counts a hash that was found at these places.
    pub(super) fn count(&self, hash: u128, Run { first, step, times }: Run) -> Seen {
        let mut shard = self.shard(hash);
        let shard = &mut *shard;
        if !is_sampled(hash, shard.level) {
            return Seen::Known;
        }
        if self.list {
            shard.places.entry(hash).or_default().extend((0..times).map(|number| first + number * step));
        }
        if let Some(entry) = shard.entries.get_mut(&hash) {
            entry.count += times;
            return Seen::Known;
        }
        shard.entries.insert(hash, Entry { count: times, first });
        while shard.entries.len() > self.room {
            shard.level += 1;
            let level = shard.level;
            shard.entries.retain(|hash, _| is_sampled(*hash, level));
            shard.places.retain(|hash, _| is_sampled(*hash, level));
        }
        Seen::New
    }

    /// The sums.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals { sampled: 1, ..Totals::default() };
        let mut listed = BTreeMap::new();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            totals.unique += (shard.entries.len() as u64) << shard.level;
            let duplicated = shard.entries.values().filter(|entry| entry.count > 1).count();
            totals.duplicated += (duplicated as u64) << shard.level;
            totals.sampled = totals.sampled.max(1 << shard.level);
            for (hash, places) in shard.places.iter().filter(|(_, places)| places.len() > 1) {
                let mut places = places.clone();
                places.sort_unstable();
                listed.insert(places[0], (*hash, places));
            }
        }
        totals.listed = listed.into_values().collect();
        totals
    }
}

fn is_sampled(hash: u128, level: u32) -> bool {
    hash.trailing_zeros() >= level
}

/// Hashes are random already: their middle bits, which choose neither the shard nor the sample, need no further
/// hashing.
#[derive(Default)]
struct Middle(u64);

impl Hasher for Middle {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only u128 are hashed");
    }
    fn write_u128(&mut self, hash: u128) {
        self.0 = (hash >> 48) as u64;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A different hash for each number, spread over all bits.
    fn hash(number: u64) -> u128 {
        xxhash_rust::xxh3::xxh3_128(&number.to_le_bytes())
    }

    fn once(first: u64) -> Run {
        Run { first, step: 1, times: 1 }
    }

    #[test]
    fn exact_while_there_is_room() {
        let table = Table::new(1 << 16, true);
        for place in 0..3000 {
            let seen = table.count(hash(place % 1000), once(place));
            assert_eq!(seen == Seen::New, place < 1000);
        }
        table.count(hash(5000), once(9));
        let totals = table.totals();
        assert_eq!((totals.unique, totals.duplicated, totals.sampled), (1001, 1000, 1));
        assert_eq!(totals.listed[7], (hash(7), vec![7, 1007, 2007]));
        assert_eq!(table.look(hash(7)), Some(7));
        assert_eq!(table.look(hash(6000)), None);
    }

    #[test]
    fn a_full_table_estimates_from_a_sample() {
        let table = Table::new(1 << 14, false);
        for number in 0..200_000 {
            table.count(hash(number), once(number));
            if number % 4 == 0 {
                table.count(hash(number), once(number));
            }
        }
        let totals = table.totals();
        // Some 12,000 entries: a standard deviation of 1%.
        assert!((totals.unique as f64 / 200_000.0 - 1.0).abs() < 0.04, "{totals:?}");
        assert!((totals.duplicated as f64 / 50_000.0 - 1.0).abs() < 0.08, "{totals:?}");
        assert!(totals.sampled >= 16, "{totals:?}");
        let entries: usize = table.shards.iter().map(|shard| shard.lock().unwrap().entries.len()).sum();
        assert!(entries <= 1 << 14);
    }
}
