//! Values over time: any number of entries, condensed to a bounded number of points.

/// An entry of a log, or several neighbouring ones combined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The start of its time in milliseconds; for a single I/O, the same as the end.
    pub from: u64,
    /// The end of its time.
    pub to: u64,
    /// The number of entries.
    pub entries: u64,
    /// The sum of the entries' values.
    pub sum: f64,
    /// The lowest value.
    pub low: f64,
    /// The highest value.
    pub high: f64,
}

impl Point {
    /// A point of one entry.
    pub fn of(from: u64, to: u64, value: f64, most: Option<f64>) -> Point {
        let high = most.map_or(value, |most| most.max(value));
        Point { from, to, entries: 1, sum: value, low: value, high }
    }

    /// The mean of the values.
    pub fn mean(&self) -> f64 {
        self.sum / self.entries.max(1) as f64
    }

    /// The middle of its time.
    pub fn middle(&self) -> u64 {
        u64::midpoint(self.from, self.to)
    }

    fn take(&mut self, other: &Point) {
        *self = Point {
            from: self.from.min(other.from),
            to: self.to.max(other.to),
            entries: self.entries + other.entries,
            sum: self.sum + other.sum,
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        };
    }
}

/// The entries of a log in their order. If there are too many, neighbours are combined; their extremes are kept.
#[derive(Clone, Debug)]
pub struct Curve {
    points: Vec<Point>,
    most: usize,
    /// The number of entries per point.
    each: u64,
}

impl Curve {
    /// An empty curve, which will keep at most twice this many points.
    pub fn new(most: usize) -> Curve {
        Curve { points: Vec::new(), most: most.max(2), each: 1 }
    }

    /// Adds an entry.
    pub fn push(&mut self, point: Point) {
        match self.points.last_mut() {
            Some(last) if last.entries < self.each => last.take(&point),
            _ => self.points.push(point),
        }
        if self.points.len() > 2 * self.most {
            self.points = joined(&self.points, 2);
            self.each *= 2;
        }
    }

    /// Its points.
    pub fn points(&self) -> &[Point] {
        &self.points
    }
}

/// The points of several logs in the order of their times, combined to at most this many.
pub fn thinned(mut points: Vec<Point>, most: usize) -> Vec<Point> {
    points.sort_by_key(Point::middle);
    match points.len().div_ceil(most.max(1)) {
        0 | 1 => points,
        each => joined(&points, each),
    }
}

fn joined(points: &[Point], each: usize) -> Vec<Point> {
    let join = |some: &[Point]| {
        let mut one = some[0];
        some[1..].iter().for_each(|other| one.take(other));
        one
    };
    points.chunks(each).map(join).collect()
}

/// The sum of the rates of several logs, in at most this many points. Each log has its own windows, so rates are added
/// by time. The extremes of the sum are unknown.
pub fn sum(curves: &[Vec<Point>], most: usize) -> Vec<Point> {
    let all = || curves.iter().flatten();
    let end = all().map(|point| point.to).max().unwrap_or(0);
    let mut lengths: Vec<u64> = all().map(|point| point.to.saturating_sub(point.from).max(1)).collect();
    lengths.sort_unstable();
    let Some(usual) = lengths.get(lengths.len() / 2) else { return Vec::new() };
    let width = (*usual).max(end.div_ceil(most.max(1) as u64)).max(1);
    let count = usize::try_from(end.div_ceil(width)).unwrap_or(0).min(most.max(1));
    let mut rates = vec![0.0; count];
    for point in all() {
        let (from, to) = (point.from, point.to.max(point.from + 1));
        let first = usize::try_from(from / width).unwrap_or(count);
        for (place, rate) in rates.iter_mut().enumerate().skip(first) {
            let begin = place as u64 * width;
            let part = to.min(begin + width).saturating_sub(from.max(begin));
            if part == 0 {
                break;
            }
            *rate += point.mean() * part as f64 / width as f64;
        }
    }
    let at =
        |(place, rate): (usize, f64)| Point::of(place as u64 * width, (place as u64 + 1) * width, rate, None);
    // The last one may cover only a part of its width.
    let whole = if end % width == 0 || count < 3 { count } else { count - 1 };
    rates.into_iter().enumerate().take(whole).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_kept() {
        let mut curve = Curve::new(100);
        for n in 0..100_000_u64 {
            let value = if n == 54_321 {
                1e9
            } else if n == 12_345 {
                1.0
            } else {
                500.0
            };
            curve.push(Point::of(n, n, value, None));
        }
        let points = curve.points();
        assert!((100..=200).contains(&points.len()), "{}", points.len());
        assert_eq!(points.iter().map(|point| point.entries).sum::<u64>(), 100_000);
        assert!(points.iter().any(|point| point.high == 1e9 && point.from <= 54_321 && point.to >= 54_321));
        assert!(points.iter().any(|point| point.low == 1.0));
        let thin = thinned(points.to_vec(), 30);
        assert!(thin.len() <= 30 && thin.iter().any(|point| point.high == 1e9));
        let few = thinned(vec![Point::of(5, 5, 1.0, None), Point::of(2, 2, 2.0, Some(9.0))], 30);
        assert_eq!(
            few.iter().map(|point| (point.middle(), point.high)).collect::<Vec<_>>(),
            [(2, 9.0), (5, 1.0)]
        );
    }

    /// Two workers whose windows end at different times.
    #[test]
    fn rates_are_added_by_time() {
        let one: Vec<Point> = (0..10).map(|n| Point::of(n * 100, n * 100 + 100, 50.0, None)).collect();
        let other: Vec<Point> = (0..9).map(|n| Point::of(n * 100 + 40, n * 100 + 140, 30.0, None)).collect();
        let sums = sum(&[one, other], 1000);
        assert_eq!(sums.len(), 10);
        assert_eq!((sums[0].from, sums[0].to), (0, 100));
        assert!((sums[0].mean() - 68.0).abs() < 1e-9 && (sums[5].mean() - 80.0).abs() < 1e-9, "{sums:?}");
        assert_eq!(sum(&[], 10), []);
        assert!(sum(&[vec![Point::of(0, super::super::LATEST_MS, 1.0, None)]], 10).len() <= 10);
    }
}
