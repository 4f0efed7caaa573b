//! Facts of a device as a table for people, and as JSON.

use iolite_host::{Device, Fact, Value};
use iolite_types::units::exact_bytes;
use serde_json::{Map, Value as Json};
use std::fmt::Write;

/// Suffixes of the names of facts, and their units.
const UNITS: [(&str, &str); 9] = [
    ("_celsius", " °C"),
    ("_percent", "%"),
    ("_us", " µs"),
    ("_ms", " ms"),
    ("_watts", " W"),
    ("_minutes", " min"),
    ("_hours", " h"),
    ("_blocks", " blocks"),
    ("_bits", " bits"),
];

/// The name of a fact, and its value with a unit.
fn words(fact: &Fact) -> (String, String) {
    if let (Some(name), Value::Number(number)) = (fact.name.strip_suffix("_bytes"), &fact.value) {
        return (name.replace('_', " "), exact_bytes(*number));
    }
    let is_text = matches!(fact.value, Value::Text(_) | Value::Is(_));
    let unit = UNITS.into_iter().find_map(|(end, unit)| Some((fact.name.strip_suffix(end)?, unit)));
    match unit {
        // A few have words in place of the number.
        Some((name, unit)) => {
            (name.replace('_', " "), format!("{}{}", fact.value.text(), if is_text { "" } else { unit }))
        }
        None => (fact.name.trim_end_matches("_bytes").replace('_', " "), fact.value.text()),
    }
}

/// Rows of three columns: subject, fact, value.
fn rows(device: &Device) -> Vec<[String; 3]> {
    let mut rows = Vec::new();
    let mut row = |subject: &str, name: String, value: String| {
        // Texts of a device may contain anything.
        rows.push([subject.replace('_', " "), name, value.replace(char::is_control, "?")]);
    };
    for section in &device.sections {
        if section.is_list {
            for facts in &section.rows {
                let mut facts = facts.iter().map(words);
                let first = facts.next().map(|(name, value)| format!("{name} {value}")).unwrap_or_default();
                let rest: Vec<String> = facts.map(|(name, value)| format!("{name} {value}")).collect();
                row(section.name, first, rest.join(", "));
            }
        } else {
            section.rows.iter().flatten().map(words).for_each(|(name, value)| row(section.name, name, value));
        }
    }
    device.untold.iter().for_each(|untold| row("not told", String::new(), untold.clone()));
    rows
}

/// Writes the table of a device, and of the devices below it.
pub(super) fn table(text: &mut String, device: &Device) {
    line!(text, "\n{}: {}", device.name, device.kind);
    let rows = rows(device);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    let mut last = "";
    for [subject, name, value] in &rows {
        let shown = if subject == last { "" } else { subject };
        last = subject;
        line!(text, "  {shown:<first$}  {name:<second$}  {value}");
    }
    for below in &device.below {
        line!(text, "\n{} is built on {}", device.name, below.name);
        table(text, below);
    }
}

fn value(value: &Value) -> Json {
    match value {
        Value::Text(text) => Json::from(text.as_str()),
        Value::Number(number) => Json::from(*number),
        Value::Fraction(number) => Json::from(*number),
        Value::Is(is) => Json::from(*is),
    }
}

fn object(facts: &[Fact]) -> Json {
    Json::Object(facts.iter().map(|fact| (fact.name.to_owned(), value(&fact.value))).collect())
}

/// A device as JSON: an object per subject, or a list of objects.
pub(super) fn json(device: &Device) -> Json {
    let mut told = Map::new();
    told.insert("name".to_owned(), device.name.as_str().into());
    told.insert("kind".to_owned(), device.kind.into());
    for section in &device.sections {
        let rows = section.rows.iter().map(|facts| object(facts));
        let all = if section.is_list {
            Json::Array(rows.collect())
        } else {
            rows.into_iter().next().unwrap_or_default()
        };
        told.insert(section.name.to_owned(), all);
    }
    let lists = [
        ("built_on", device.below.iter().map(json).collect::<Vec<_>>()),
        ("not_told", device.untold.iter().map(|text| Json::from(text.as_str())).collect()),
    ];
    told.extend(
        lists
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| (name.to_owned(), Json::Array(list))),
    );
    Json::Object(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::Section;

    #[test]
    fn facts_have_their_units() {
        let fact = |name, value| words(&Fact { name, value });
        let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(fact("zone_bytes", Value::Number(1 << 20)), of("zone", "1 MiB"));
        assert_eq!(fact("temperature_celsius", Value::Number(38)), of("temperature", "38 °C"));
        assert_eq!(fact("most_watts", Value::Fraction(0.25)), of("most", "0.25 W"));
        assert_eq!(
            fact("largest_transfer_bytes", Value::Text("no limit".into())),
            of("largest transfer", "no limit")
        );
        assert_eq!(fact("rotational", Value::Is(false)), of("rotational", "no"));
    }

    #[test]
    fn subjects_stand_once_and_lists_have_rows() {
        let fact = |name, value: &str| Fact { name, value: Value::Text(value.into()) };
        let device = Device {
            name: "d".into(),
            kind: "disk",
            sections: vec![
                Section {
                    name: "identity",
                    is_list: false,
                    rows: vec![vec![fact("model", "a\u{1b}[0m"), fact("firmware", "1")]],
                },
                Section {
                    name: "formats",
                    is_list: true,
                    rows: vec![vec![fact("number", "0"), fact("guard", "x")]; 2],
                },
            ],
            untold: vec!["wear: denied".into()],
            ..Device::default()
        };
        let mut text = String::new();
        table(&mut text, &device);
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!(text.matches("identity").count(), 1, "{text}");
        assert_eq!(text.matches("number 0  guard x").count(), 2, "{text}");
        let json = json(&device);
        assert_eq!(
            (&json["identity"]["firmware"], &json["formats"][1]["guard"]),
            (&Json::from("1"), &Json::from("x"))
        );
        assert_eq!(json["not_told"][0], "wear: denied");
    }
}
