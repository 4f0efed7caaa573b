//! The formats of metrics: the texts of OpenMetrics 1.0 and of Prometheus (0.0.4), and the messages of Prometheus, which alone
//! have native histograms.

mod protobuf;

use std::collections::BTreeMap;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0: <https://prometheus.io/docs/specs/om/open_metrics_spec/>.
    OpenMetrics,
    /// Prometheus 0.0.4: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
    Prometheus,
    /// `io.prometheus.client.MetricFamily`, each after its length:
    /// <https://github.com/prometheus/client_model/blob/master/io/prometheus/client/metrics.proto>.
    Protobuf,
}

impl Format {
    /// The format that a reader wants, by its header `Accept`. Prometheus lists messages first if it takes native
    /// histograms, and last if it takes them only in need.
    pub fn wanted(accept: Option<&str>) -> Format {
        let weight = |range: &str| {
            let quality = range.split(';').find_map(|part| part.trim().strip_prefix("q=")?.parse().ok());
            quality.unwrap_or(1.0_f64)
        };
        let of = |range: &str| match range.split(';').next()?.trim() {
            "application/vnd.google.protobuf"
                if range.contains("io.prometheus.client.MetricFamily") && range.contains("delimited") =>
            {
                Some(Format::Protobuf)
            }
            "application/openmetrics-text" => Some(Format::OpenMetrics),
            "text/plain" => Some(Format::Prometheus),
            _ => None,
        };
        let ranges = accept.unwrap_or_default().split(',');
        let mut known: Vec<(Format, f64)> =
            ranges.filter_map(|range| Some((of(range)?, weight(range)))).collect();
        // (Of those with the same weight, the first is preferred.)
        known.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        known.first().map_or(Format::Prometheus, |(format, _)| *format)
    }

    /// The kind of content.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

/// Names and values of labels.
pub type Labels<'a> = Vec<(&'a str, String)>;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Constant facts, as labels.
    Info,
    /// A value that goes up and down.
    Gauge,
    /// A value that only grows.
    Counter,
    /// A distribution.
    Histogram,
}

/// A metric: its name without the suffix of its kind, and one line on what it is.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The name, which ends with the unit if there is one.
    pub name: &'static str,
    /// The unit, if it is in the name.
    pub unit: Option<&'static str>,
    /// What it is.
    pub kind: Kind,
    /// Its help.
    pub help: &'static str,
}

/// A distribution: upper limits with the number of values up to each, the number of all values, and their sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// Pairs of limit and count, ascending.
    pub up_to: Vec<(f64, u64)>,
    /// All values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The values of zero, and the others in the buckets of [`bucket_of`].
    pub zeros: u64,
    /// Buckets with their counts.
    pub native: BTreeMap<i32, u64>,
}

/// The logarithm of the number of buckets per power of two in native histograms: a bucket is 4.4% wide.
pub const SCHEMA: i32 = 4;

/// The bucket of a value above 0 in a native histogram: the limit above it is 2^(bucket / 2^[`SCHEMA`]).
pub fn bucket_of(value: f64) -> i32 {
    (value.log2() * f64::from(1 << SCHEMA)).ceil() as i32
}

/// Writes metrics.
#[derive(Debug)]
pub struct Exposition {
    format: Format,
    text: String,
    /// Instead of the text.
    messages: Vec<u8>,
}

impl Exposition {
    /// One without metrics.
    pub fn new(format: Format) -> Exposition {
        Exposition { format, text: String::new(), messages: Vec::new() }
    }

    /// Begins a metric.
    fn begin(&mut self, family: &Family) -> String {
        let (word, suffix) = match family.kind {
            Kind::Info if self.format == Format::OpenMetrics => ("info", "_info"),
            Kind::Info => ("gauge", "_info"),
            Kind::Gauge => ("gauge", ""),
            Kind::Counter => ("counter", "_total"),
            Kind::Histogram => ("histogram", ""),
        };
        let sample = format!("{}{suffix}", family.name);
        // The older format has the name of the samples here.
        let name = if self.format == Format::OpenMetrics { family.name } else { &sample };
        let text = &mut self.text;
        put!(text, "# TYPE {name} {word}\n");
        if let (Format::OpenMetrics, Some(unit)) = (self.format, family.unit) {
            put!(text, "# UNIT {name} {unit}\n");
        }
        put!(text, "# HELP {name} {}\n", family.help);
        sample
    }

    /// A metric with a value for each set of labels. Without any, it is left out.
    pub fn values(&mut self, family: &Family, values: &[(Labels<'_>, f64)]) {
        if values.is_empty() {
            return;
        }
        if self.format == Format::Protobuf {
            return self.messages.extend(protobuf::values(family, values));
        }
        let name = self.begin(family);
        for (labels, value) in values {
            self.sample(&name, labels, *value);
        }
    }

    /// A metric with a distribution for each set of labels. Without any, it is left out.
    pub fn distributions(&mut self, family: &Family, all: &[(Labels<'_>, Distribution)]) {
        if all.is_empty() {
            return;
        }
        if self.format == Format::Protobuf {
            return self.messages.extend(protobuf::distributions(family, all));
        }
        let name = self.begin(family);
        let bucket = format!("{name}_bucket");
        for (labels, distribution) in all {
            for (limit, count) in &distribution.up_to {
                // As OpenMetrics prefers it, and clients in Go write it: exponents have two digits.
                let limit = ("le", format!("{limit:?}").replace("e-", "e-0"));
                self.sample(&bucket, &[&labels[..], &[limit]].concat(), *count as f64);
            }
            let last = ("le", "+Inf".to_owned());
            self.sample(&bucket, &[&labels[..], &[last]].concat(), distribution.count as f64);
            self.sample(&format!("{name}_sum"), labels, distribution.sum);
            self.sample(&format!("{name}_count"), labels, distribution.count as f64);
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, String)], value: f64) {
        let text = &mut self.text;
        put!(text, "{name}");
        for (position, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            put!(text, "{}{label}=\"{value}\"", if position == 0 { '{' } else { ',' });
        }
        put!(text, "{} {value}\n", if labels.is_empty() { "" } else { "}" });
    }

    /// All of it.
    pub fn end(mut self) -> Vec<u8> {
        match self.format {
            Format::OpenMetrics => self.text.push_str("# EOF\n"),
            Format::Protobuf => return self.messages,
            Format::Prometheus => {}
        }
        self.text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_choose_the_format() {
        let protobuf =
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        let text = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, wanted) in [
            (format!("{protobuf},{text}"), Format::Protobuf),
            (text.to_owned(), Format::OpenMetrics),
            (format!("{text},{protobuf};q=0.3"), Format::OpenMetrics),
            (format!("text/plain;q=0.2,{protobuf};q=0.3"), Format::Protobuf),
            ("application/vnd.google.protobuf;proto=other;encoding=delimited".to_owned(), Format::Prometheus),
            ("text/plain".to_owned(), Format::Prometheus),
            ("*/*".to_owned(), Format::Prometheus),
            (String::new(), Format::Prometheus),
        ] {
            assert_eq!(Format::wanted(Some(&accept)), wanted, "{accept}");
        }
        assert_eq!(Format::wanted(None), Format::Prometheus);
    }

    #[test]
    fn buckets_are_as_wide_as_the_schema_says() {
        assert_eq!([1.0, 2.0, 0.5, 1.01, 2.01].map(bucket_of), [0, 16, -16, 1, 17]);
    }

    #[test]
    fn both_formats() {
        let family = |name, unit, kind| Family { name, unit, kind, help: "Words." };
        let made = |format| {
            let mut text = Exposition::new(format);
            let labels = vec![("job", "a \"b\"\\\n".to_owned())];
            text.values(&family("x_bytes", Some("bytes"), Kind::Counter), &[(labels.clone(), 12.0)]);
            text.values(&family("x", None, Kind::Info), &[(labels.clone(), 1.0)]);
            text.values(&family("left_out", None, Kind::Gauge), &[]);
            let up_to = vec![(1e-6, 3), (0.5, 4)];
            let distribution = Distribution { up_to, count: 5, sum: 1.5, ..Distribution::default() };
            text.distributions(
                &family("y_seconds", Some("seconds"), Kind::Histogram),
                &[(Vec::new(), distribution)],
            );
            String::from_utf8(text.end()).unwrap()
        };
        assert_eq!(
            made(Format::OpenMetrics),
            "# TYPE x_bytes counter\n# UNIT x_bytes bytes\n# HELP x_bytes Words.\nx_bytes_total{job=\"a \\\"b\\\"\\\\\\n\"} 12\n\
             # TYPE x info\n# HELP x Words.\nx_info{job=\"a \\\"b\\\"\\\\\\n\"} 1\n\
             # TYPE y_seconds histogram\n# UNIT y_seconds seconds\n# HELP y_seconds Words.\n\
             y_seconds_bucket{le=\"1e-06\"} 3\ny_seconds_bucket{le=\"0.5\"} 4\ny_seconds_bucket{le=\"+Inf\"} 5\n\
             y_seconds_sum 1.5\ny_seconds_count 5\n# EOF\n"
        );
        let older = made(Format::Prometheus);
        assert!(
            older.starts_with("# TYPE x_bytes_total counter\n# HELP x_bytes_total Words.\nx_bytes_total{"),
            "{older}"
        );
        assert!(older.contains("# TYPE x_info gauge\n") && older.ends_with("y_seconds_count 5\n"), "{older}");
    }
}
