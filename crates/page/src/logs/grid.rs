//! Rates and latency distributions of single I/Os over time, in intervals of equal length.

use std::collections::BTreeMap;

/// The shortest interval, and the one that the extremes of a rate refer to, in milliseconds.
const FINEST_MS: u64 = 10;
/// With fewer I/Os than this, a rate is dominated by chance.
const LEAST_IOS: u64 = 20;
/// With fewer latencies than this, a column of a heat map is too sparse.
const LEAST_LATENCIES: u64 = 50;

/// Amounts over time: I/Os, or bytes.
#[derive(Clone, Debug)]
pub struct Rates {
    width: u64,
    bins: Vec<Bin>,
    most: usize,
    /// The interval that is being counted, and its amount.
    now: (u64, u64),
    ios: u64,
    end: u64,
}

#[derive(Clone, Copy, Debug)]
struct Bin {
    amount: u64,
    /// The extremes of the amounts of the shortest intervals.
    low: u64,
    high: u64,
}

const NOTHING: Bin = Bin { amount: 0, low: u64::MAX, high: 0 };

/// A rate: its start and end in milliseconds, its amount per second, and its extremes if they are meaningful.
pub type Rate = (u64, u64, f64, Option<(f64, f64)>);

impl Rates {
    /// No I/Os yet; will keep at most twice this many intervals.
    pub fn new(most: usize) -> Rates {
        Rates { width: FINEST_MS, bins: Vec::new(), most: most.max(2), now: (0, 0), ios: 0, end: 0 }
    }

    /// Adds an I/O of this amount.
    pub fn add(&mut self, at: u64, amount: u64) {
        self.ios += 1;
        self.end = self.end.max(at);
        let piece = at / FINEST_MS;
        if piece > self.now.0 {
            self.close();
            // The intervals in between were idle. Their first and last one stand for all.
            for skipped in [self.now.0 + 1, piece - 1] {
                if (self.now.0 + 1..piece).contains(&skipped) {
                    self.bin(skipped * FINEST_MS).low = 0;
                }
            }
            self.now = (piece, 0);
        }
        if piece == self.now.0 {
            self.now.1 = self.now.1.saturating_add(amount);
        }
        let bin = self.bin(at);
        bin.amount = bin.amount.saturating_add(amount);
    }

    fn close(&mut self) {
        let (piece, amount) = self.now;
        let bin = self.bin(piece * FINEST_MS);
        (bin.low, bin.high) = (bin.low.min(amount), bin.high.max(amount));
    }

    fn bin(&mut self, at: u64) -> &mut Bin {
        while at / self.width >= 2 * self.most as u64 {
            self.fold();
        }
        let place = (at / self.width) as usize;
        if place >= self.bins.len() {
            self.bins.resize(place + 1, NOTHING);
        }
        &mut self.bins[place]
    }

    fn fold(&mut self) {
        let two = |pair: &[Bin]| {
            pair[1..].iter().fold(pair[0], |one, other| Bin {
                amount: one.amount.saturating_add(other.amount),
                low: one.low.min(other.low),
                high: one.high.max(other.high),
            })
        };
        self.bins = self.bins.chunks(2).map(two).collect();
        self.width = self.width.saturating_mul(2);
    }

    /// The number of I/Os.
    pub fn ios(&self) -> u64 {
        self.ios
    }

    /// The combined rates of several logs, in at most this many intervals.
    pub fn together(mut all: Vec<Rates>, most: usize) -> Vec<Rate> {
        let ios: u64 = all.iter().map(|one| one.ios).sum();
        let end = all.iter().map(|one| one.end).max().unwrap_or(0);
        let has_extremes = all.len() == 1 && ios / (end / FINEST_MS + 1) >= LEAST_IOS;
        let mut width = all.iter().map(|one| one.width).max().unwrap_or(FINEST_MS);
        while end / width >= most.max(1) as u64 || (end / width > 1 && ios / (end / width + 1) < LEAST_IOS) {
            width = width.saturating_mul(2);
        }
        let mut bins: Vec<Bin> = Vec::new();
        for one in &mut all {
            while one.width < width {
                one.fold();
            }
            bins.resize(bins.len().max(one.bins.len()), NOTHING);
            for (bin, other) in bins.iter_mut().zip(&one.bins) {
                *bin = Bin { amount: bin.amount.saturating_add(other.amount), ..*other };
            }
        }
        // The last interval is incomplete.
        let whole = if bins.len() > 3 { bins.len() - 1 } else { bins.len() };
        let rate = |amount: u64, length: u64| amount as f64 * 1000.0 / length as f64;
        let told = |(place, bin): (usize, &Bin)| {
            // Every interval in this one was skipped.
            let (low, high) = if bin.amount == 0 { (0, 0) } else { (bin.low.min(bin.high), bin.high) };
            let extremes =
                (has_extremes && width > FINEST_MS).then(|| (rate(low, FINEST_MS), rate(high, FINEST_MS)));
            (place as u64 * width, (place as u64 + 1) * width, rate(bin.amount, width), extremes)
        };
        bins.iter().take(whole).enumerate().map(told).collect()
    }
}

/// The distribution of latencies over time.
#[derive(Clone, Debug)]
pub struct Columns {
    /// The length of a column in milliseconds.
    pub width: u64,
    /// Counts by the first bucket of each group.
    pub counts: Vec<BTreeMap<usize, u64>>,
    /// The number of buckets in a group.
    pub buckets: usize,
    most: usize,
    total: u64,
}

impl Columns {
    /// Empty columns of this length, which will be at most twice this many.
    pub fn new(width: u64, buckets: usize, most: usize) -> Columns {
        Columns { width: width.max(1), counts: Vec::new(), buckets, most: most.max(2), total: 0 }
    }

    /// Adds latencies of the group that starts with this bucket.
    pub fn add(&mut self, at: u64, bucket: usize, count: u64) {
        while at / self.width >= 2 * self.most as u64 {
            self.fold();
        }
        let place = (at / self.width) as usize;
        if place >= self.counts.len() {
            self.counts.resize_with(place + 1, BTreeMap::new);
        }
        let known = self.counts[place].entry(bucket).or_default();
        *known = known.saturating_add(count);
        self.total = self.total.saturating_add(count);
    }

    fn fold(&mut self) {
        let pairs = std::mem::take(&mut self.counts);
        let mut pairs = pairs.into_iter();
        while let Some(mut one) = pairs.next() {
            for (bucket, count) in pairs.next().unwrap_or_default() {
                let known = one.entry(bucket).or_default();
                *known = known.saturating_add(count);
            }
            self.counts.push(one);
        }
        self.width = self.width.saturating_mul(2);
    }

    /// At most this many columns. For single I/Os, columns with too few latencies are also merged.
    pub fn coarsened(mut self, most: usize, is_single: bool) -> Columns {
        let has_few = |one: &Columns| one.total / (one.counts.len() as u64).max(1) < LEAST_LATENCIES;
        while self.counts.len() > most.max(1) || (is_single && self.counts.len() > 1 && has_few(&self)) {
            self.fold();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_single_ios() {
        let mut rates = Rates::new(100);
        // 50 I/Os per 10 ms for 10 s, with a pause of 100 ms.
        for n in (0..50_000_u64).filter(|n| !(20_000..20_500).contains(n)) {
            rates.add(n / 5, 4096);
        }
        assert_eq!(rates.ios(), 49_500);
        let told = Rates::together(vec![rates.clone()], 100);
        assert!(told.len() <= 100 && told.len() > 40, "{}", told.len());
        let (_, _, usual, extremes) = told[3];
        assert_eq!((usual, extremes), (5000.0 * 4096.0, Some((5000.0 * 4096.0, 5000.0 * 4096.0))));
        assert!(told.iter().any(|(_, _, rate, extremes)| *rate > 0.0 && extremes.unwrap().0 == 0.0));
        let twice = Rates::together(vec![rates.clone(), rates], 100);
        assert_eq!((twice[3].2, twice[3].3), (2.0 * usual, None));
        assert_eq!(Rates::together(Vec::new(), 10), []);
        let mut few = Rates::new(100);
        (0..100).for_each(|n| few.add(n * 10, 1));
        let told = Rates::together(vec![few], 1000);
        assert!(
            told.len() <= 6 && told.iter().all(|(_, _, rate, extremes)| *rate > 80.0 && extremes.is_none()),
            "{told:?}"
        );
        let mut far = Rates::new(4);
        far.add(super::super::LATEST_MS, 1);
        far.add(0, u64::MAX);
        assert!(Rates::together(vec![far], 4).len() <= 8);
    }

    #[test]
    fn columns_of_latencies() {
        let mut columns = Columns::new(1, 1, 100);
        (0..100_000_u64).for_each(|n| columns.add(n / 10, 500 + (n % 2) as usize, 1));
        assert!(columns.counts.len() <= 200);
        let all: u64 = columns.counts.iter().flat_map(BTreeMap::values).sum();
        assert_eq!(all, 100_000);
        let coarse = columns.coarsened(50, true);
        assert!(coarse.counts.len() <= 50 && coarse.width >= 200);
        let mut sparse = Columns::new(1, 1, 100);
        (0..100).for_each(|n| sparse.add(n, 5, 1));
        assert_eq!(sparse.clone().coarsened(100, true).counts.len(), 2);
        assert_eq!(sparse.coarsened(100, false).counts.len(), 100);
        let mut far = Columns::new(1, 1, 4);
        far.add(super::super::LATEST_MS, 5, u64::MAX);
        far.add(super::super::LATEST_MS, 5, 1);
        assert!(far.counts.len() <= 8);
    }
}
