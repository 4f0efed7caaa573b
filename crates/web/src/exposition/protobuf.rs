//! Metrics as Protocol Buffers messages. The few that are needed are written by hand: a message is a list of fields, each with
//! a number, the kind of its value, and the value (<https://protobuf.dev/programming-guides/encoding/>).

use super::{Distribution, Family, Kind, Labels, SCHEMA};

/// Kinds of values.
const VARINT: u64 = 0;
const DOUBLE: u64 = 1;
const BYTES: u64 = 2;

/// The fields of a message.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    fn unsigned(&mut self, field: u64, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    /// A number that is often small, with its sign in the lowest bit.
    fn signed(&mut self, field: u64, value: i64) {
        self.unsigned(field, (value << 1 ^ value >> 63) as u64);
    }

    fn double(&mut self, field: u64, value: f64) {
        self.key(field, DOUBLE);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }
}

/// A family of plain values.
pub fn values(family: &Family, values: &[(Labels<'_>, f64)]) -> Vec<u8> {
    let (suffix, kind, field) = match family.kind {
        Kind::Counter => ("_total", 0, 3),
        Kind::Info => ("_info", 1, 2),
        Kind::Gauge | Kind::Histogram => ("", 1, 2),
    };
    let metrics = values.iter().map(|(labels, value)| {
        let mut number = Message::default();
        number.double(1, *value);
        (labels, field, number)
    });
    of(&format!("{}{suffix}", family.name), family, kind, metrics)
}

/// A family of distributions, each as a classic and as a native histogram.
pub fn distributions(family: &Family, all: &[(Labels<'_>, Distribution)]) -> Vec<u8> {
    let metrics = all.iter().map(|(labels, distribution)| (labels, 7, histogram(distribution)));
    of(family.name, family, 4, metrics)
}

/// A family: its name, what it is, and for each set of labels the field with the value.
fn of<'a>(
    name: &str,
    family: &Family,
    kind: u64,
    metrics: impl Iterator<Item = (&'a Labels<'a>, u64, Message)>,
) -> Vec<u8> {
    let mut all = Message::default();
    all.bytes(1, name.as_bytes());
    all.bytes(2, family.help.as_bytes());
    all.unsigned(3, kind);
    for (labels, field, value) in metrics {
        let mut metric = Message::default();
        for (name, value) in labels {
            let mut label = Message::default();
            label.bytes(1, name.as_bytes());
            label.bytes(2, value.as_bytes());
            metric.bytes(1, &label.0);
        }
        metric.bytes(field, &value.0);
        all.bytes(4, &metric.0);
    }
    let mut delimited = Message::default();
    delimited.varint(all.0.len() as u64);
    delimited.0.extend(all.0);
    delimited.0
}

fn histogram(distribution: &Distribution) -> Message {
    let mut histogram = Message::default();
    histogram.unsigned(1, distribution.count);
    histogram.double(2, distribution.sum);
    for (limit, count) in &distribution.up_to {
        let mut bucket = Message::default();
        bucket.unsigned(1, *count);
        bucket.double(2, *limit);
        histogram.bytes(3, &bucket.0);
    }
    histogram.signed(5, SCHEMA.into());
    // Nothing but zero counts as zero.
    histogram.double(6, 0.0);
    histogram.unsigned(7, distribution.zeros);
    // Spans of neighbouring buckets: how far each is behind the one before, and how long it is. Counts are the
    // differences to those of the bucket before.
    let mut spans: Vec<(i64, u64)> = Vec::new();
    let mut next = 0;
    for bucket in distribution.native.keys().map(|bucket| i64::from(*bucket)) {
        match spans.last_mut() {
            Some((_, length)) if bucket == next => *length += 1,
            _ => spans.push((bucket - next, 1)),
        }
        next = bucket + 1;
    }
    if spans.is_empty() {
        // By this, a reader knows that it is native.
        spans.push((0, 0));
    }
    for (offset, length) in spans {
        let mut span = Message::default();
        span.signed(1, offset);
        span.unsigned(2, length);
        histogram.bytes(12, &span.0);
    }
    let mut before = 0;
    for count in distribution.native.values().map(|count| i64::try_from(*count).unwrap_or(i64::MAX)) {
        histogram.signed(13, count - before);
        before = count;
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_specification_says() {
        let made = |write: fn(&mut Message)| {
            let mut message = Message::default();
            write(&mut message);
            message.0
        };
        assert_eq!(made(|it| it.unsigned(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(made(|it| it.bytes(2, b"testing")), *b"\x12\x07testing");
        assert_eq!(made(|it| it.signed(1, -1)), [0x08, 1]);
        assert_eq!(made(|it| it.signed(1, 1)), [0x08, 2]);
        assert_eq!(
            made(|it| it.signed(1, i64::MIN))[1..],
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]
        );
        assert_eq!(made(|it| it.double(1, 1.0)), [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }

    #[test]
    fn buckets_are_spans_and_differences() {
        let native = [(-3, 5), (-2, 7), (4, 6)].into();
        let made = histogram(&Distribution { count: 18, native, ..Distribution::default() }).0;
        let spans = [0x62, 4, 0x08, 5, 0x10, 2, 0x62, 4, 0x08, 10, 0x10, 1];
        let counts = [0x68, 10, 0x68, 4, 0x68, 1];
        assert!(made.ends_with(&[&spans[..], &counts].concat()), "{made:x?}");
    }
}
