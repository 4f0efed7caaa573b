//! The text formats of metrics: OpenMetrics 1.0, and the older one of Prometheus (0.0.4).

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0: <https://prometheus.io/docs/specs/om/open_metrics_spec/>.
    OpenMetrics,
    /// Prometheus 0.0.4: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
    Prometheus,
}

impl Format {
    /// The format that a reader wants, by its header `Accept`.
    pub fn wanted(accept: Option<&str>) -> Format {
        match accept.is_some_and(|accept| accept.contains("application/openmetrics-text")) {
            true => Format::OpenMetrics,
            false => Format::Prometheus,
        }
    }

    /// The kind of content.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
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
}

/// Writes metrics.
#[derive(Debug)]
pub struct Text {
    format: Format,
    text: String,
}

impl Text {
    /// An empty text.
    pub fn new(format: Format) -> Text {
        Text { format, text: String::new() }
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

    /// The complete text.
    pub fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats() {
        let family = |name, unit, kind| Family { name, unit, kind, help: "Words." };
        let made = |format| {
            let mut text = Text::new(format);
            let labels = vec![("job", "a \"b\"\\\n".to_owned())];
            text.values(&family("x_bytes", Some("bytes"), Kind::Counter), &[(labels.clone(), 12.0)]);
            text.values(&family("x", None, Kind::Info), &[(labels.clone(), 1.0)]);
            text.values(&family("left_out", None, Kind::Gauge), &[]);
            let distribution = Distribution { up_to: vec![(1e-6, 3), (0.5, 4)], count: 5, sum: 1.5 };
            text.distributions(
                &family("y_seconds", Some("seconds"), Kind::Histogram),
                &[(Vec::new(), distribution)],
            );
            text.end()
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
