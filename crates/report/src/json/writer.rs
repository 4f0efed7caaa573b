//! Writes JSON with the white space that line-oriented scripts for fio expect.

use iolite_types::is_bidi_control;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes one JSON object, member by member.
pub struct Writer<'a> {
    out: &'a mut dyn Write,
    depth: usize,
    /// Whether nothing has been written into the innermost object or array yet.
    empty: bool,
}

impl<'a> Writer<'a> {
    pub fn new(out: &'a mut dyn Write) -> Self {
        Writer { out, depth: 0, empty: true }
    }

    pub fn open_root(&mut self) -> io::Result<()> {
        self.descend("{")
    }

    pub fn close_root(&mut self) -> io::Result<()> {
        self.ascend("}")?;
        writeln!(self.out)
    }

    /// Opens an object that is a member of an object.
    pub fn open(&mut self, key: &str) -> io::Result<()> {
        self.key(key)?;
        self.descend("{")
    }

    /// Opens an object that is an element of an array.
    pub fn open_element(&mut self) -> io::Result<()> {
        self.separate()?;
        self.descend("{")
    }

    /// Closes an object.
    pub fn close(&mut self) -> io::Result<()> {
        self.ascend("}")
    }

    pub fn open_array(&mut self, key: &str) -> io::Result<()> {
        self.key(key)?;
        self.descend("[")
    }

    pub fn close_array(&mut self) -> io::Result<()> {
        self.ascend("]")
    }

    pub fn integer(&mut self, key: &str, value: u64) -> io::Result<()> {
        self.key(key)?;
        write!(self.out, "{value}")
    }

    /// An array of integers.
    pub fn integers(&mut self, key: &str, values: impl Iterator<Item = u64>) -> io::Result<()> {
        self.open_array(key)?;
        for value in values {
            self.separate()?;
            write!(self.out, "{value}")?;
        }
        self.close_array()
    }

    /// A member whose value is any JSON text, on one line.
    pub fn line(&mut self, key: &str, value: &str) -> io::Result<()> {
        self.key(key)?;
        write!(self.out, "{value}")
    }

    pub fn signed(&mut self, key: &str, value: i64) -> io::Result<()> {
        self.key(key)?;
        write!(self.out, "{value}")
    }

    /// A number with six decimals. JSON cannot express numbers that are not finite, so they become 0.
    pub fn float(&mut self, key: &str, value: f64) -> io::Result<()> {
        self.key(key)?;
        write!(self.out, "{:.6}", if value.is_finite() { value } else { 0.0 })
    }

    pub fn text(&mut self, key: &str, value: &str) -> io::Result<()> {
        self.key(key)?;
        self.string(value)
    }

    /// Texts, each on a line.
    pub fn texts(&mut self, key: &str, values: &[String]) -> io::Result<()> {
        self.open_array(key)?;
        for value in values {
            self.separate()?;
            self.string(value)?;
        }
        self.close_array()
    }

    fn key(&mut self, key: &str) -> io::Result<()> {
        self.separate()?;
        self.string(key)?;
        write!(self.out, " : ")
    }

    fn string(&mut self, text: &str) -> io::Result<()> {
        write!(self.out, "\"")?;
        for character in text.chars() {
            match character {
                '"' | '\\' => write!(self.out, "\\{character}")?,
                '\n' => write!(self.out, "\\n")?,
                '\t' => write!(self.out, "\\t")?,
                '\r' => write!(self.out, "\\r")?,
                // Otherwise the filter for terminals would replace bidirectional controls, and damage the JSON.
                acts if acts.is_control() || is_bidi_control(acts) => {
                    write!(self.out, "\\u{:04x}", u32::from(acts))?;
                }
                other => write!(self.out, "{other}")?,
            }
        }
        write!(self.out, "\"")
    }

    /// Starts the line of the next member or element.
    fn separate(&mut self) -> io::Result<()> {
        let comma = if self.empty { "" } else { "," };
        self.empty = false;
        write!(self.out, "{comma}\n{:width$}", "", width = self.depth * 2)
    }

    fn descend(&mut self, bracket: &str) -> io::Result<()> {
        self.depth += 1;
        self.empty = true;
        write!(self.out, "{bracket}")
    }

    fn ascend(&mut self, bracket: &str) -> io::Result<()> {
        self.depth -= 1;
        self.empty = false;
        write!(self.out, "\n{:width$}{bracket}", "", width = self.depth * 2)
    }
}

/// A list of numbers, which has a line of its own.
pub fn list(items: impl Iterator<Item = impl std::fmt::Display>) -> String {
    let mut text = "[".to_owned();
    for (position, item) in items.enumerate() {
        // Writing to a String does not fail.
        let _ = write!(text, "{}{item}", if position > 0 { "," } else { "" });
    }
    text + "]"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_escapes() {
        let mut out = Vec::new();
        let mut json = Writer::new(&mut out);
        let written = (|| {
            json.open_root()?;
            json.text("a \"b\"", "c\\d\te\u{1}é\u{202e}\u{200f}")?;
            json.open_array("list")?;
            json.open_element()?;
            json.float("x", 0.5)?;
            json.signed("y", -1)?;
            json.close()?;
            json.open_element()?;
            json.integer("z", u64::MAX)?;
            json.close()?;
            json.close_array()?;
            json.float("nan", f64::NAN)?;
            json.close_root()
        })();
        written.expect("memory takes everything");
        let expected = "{\n  \"a \\\"b\\\"\" : \"c\\\\d\\te\\u0001é\\u202e\\u200f\",\n  \"list\" : [\n    {\n      \"x\" : \
                        0.500000,\n      \"y\" : -1\n    },\n    {\n      \"z\" : 18446744073709551615\n    }\n  \
                        ],\n  \"nan\" : 0.000000\n}\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}
