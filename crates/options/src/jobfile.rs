//! Job files: ini text in, sections out.
//!
//! A line is a `[section]` header, a `key` or `key=value`, an `include FILE`, or empty. A comment begins at the first
//! `;` or `#`, anywhere in the line, and ends with the line. Mistakes are collected with their places, and parsing
//! continues.

use crate::section::{Section, Setting, is_global_name, odd_global_name, shortened};
use crate::system_variables::MachineFacts;
use crate::{Diagnostic, Name, Origin, commands, engines, registry, substitute};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The limit on the size of a job file together with all files that it includes.
const MAX_BYTES: u64 = 16 << 20;
/// The limit on the nesting of includes.
const MAX_INCLUDE_DEPTH: usize = 16;

/// The environment for parsing a job file.
pub(crate) struct Surroundings<'a> {
    /// The environment variables.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The values of the reserved words.
    pub facts: MachineFacts,
    /// The contents of the file named `-`.
    pub standard_input: &'a mut dyn Read,
    /// The source of the texts of job files.
    pub texts: Texts<'a>,
    /// The name of the program: what fio ignores is an error under our own.
    pub name: Name,
}

/// The source of the texts of job files, and of their includes.
pub(crate) enum Texts<'a> {
    /// From the disk.
    OnDisk,
    /// The disk; the texts are kept here, by name. An include with variables is kept under its line.
    Kept(BTreeMap<String, Vec<u8>>),
    /// From the disk, if the function permits it; its error is the reason why not.
    Served(&'a dyn Fn(&Path) -> Result<(), String>),
    /// Another machine has sent them, by name.
    Sent(&'a BTreeMap<String, Vec<u8>>),
}

/// Parses one job file. Mistakes go to `errors`, suspicious but accepted input goes to `warnings`.
pub(crate) fn read(
    path: &OsStr,
    surroundings: &mut Surroundings<'_>,
    errors: &mut Vec<Diagnostic>,
    warnings: &mut Vec<Diagnostic>,
) -> Vec<Section> {
    let mut reader = Reader {
        surroundings,
        errors,
        warnings,
        sections: Vec::new(),
        including: Vec::new(),
        bytes_left: MAX_BYTES,
        complained: false,
    };
    match reader.load(Path::new(path)) {
        Ok(bytes) => reader.file(Path::new(path), &bytes),
        Err(reason) => {
            let name = Path::new(path).display().to_string();
            // It may be an option without its hyphens, or the URL of a server, with a password.
            let is_known =
                |key: &str| registry::find_job(key).is_some() || !registry::find_any_engine(key).is_empty();
            let (name, is_option) = match name.split_once('=').filter(|(key, _)| is_known(key)) {
                Some((key, value)) => (format!("{key}={}", registry::shown(key, value)), true),
                None => (engines::masked(&name).into_owned(), false),
            };
            let hint = match is_option {
                true => format!("; if an option is meant, write --{name}"),
                false => commands::hint_at(&name),
            };
            reader.errors.push(Diagnostic { origin: None, message: format!("{name}: {reason}{hint}") });
        }
    }
    reader.sections
}

struct Reader<'a, 'b> {
    surroundings: &'a mut Surroundings<'b>,
    errors: &'a mut Vec<Diagnostic>,
    warnings: &'a mut Vec<Diagnostic>,
    sections: Vec<Section>,
    /// The files that are being parsed: the job file, then each included file.
    including: Vec<PathBuf>,
    /// How many bytes may still be read.
    bytes_left: u64,
    /// Options outside of any section have been reported, which is done once.
    complained: bool,
}

/// Why a text of this name is not a job file, if it is in UTF-16 or UTF-32: it begins with a byte order mark, or a part of
/// its first letter is empty.
pub fn wrong_encoding(bytes: &[u8], name: &str) -> Option<String> {
    let encoding = match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] | [1..=255, 0, 0, 0, ..] | [0, 0, 0, 1..=255, ..] => {
            "UTF-32"
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, 1..=255, ..] | [1..=255, 0, ..] => "UTF-16",
        _ => return None,
    };
    Some(format!(
        "this text is {encoding}, as some editors of Windows save it, and job files are UTF-8; iconv -f {encoding} -t UTF-8 {name} > \
         NEW converts it"
    ))
}

/// One line: its place, and its text without the comment.
struct Line<'a> {
    path: &'a Path,
    number: u32,
    text: &'a str,
}

impl Line<'_> {
    /// The place of a part of this line's text.
    fn at(&self, part: &str) -> Origin {
        let bytes = part.as_ptr() as usize - self.text.as_ptr() as usize;
        let column = self.text[..bytes].chars().count() + 1;
        self.column(column)
    }

    fn column(&self, column: usize) -> Origin {
        Origin::File {
            path: self.path.display().to_string(),
            line: self.number,
            column: u32::try_from(column).unwrap_or(u32::MAX),
        }
    }
}

impl Reader<'_, '_> {
    fn load(&mut self, path: &Path) -> Result<Vec<u8>, String> {
        if let Texts::Served(may_read) = &self.surroundings.texts {
            may_read(path)?;
        }
        let name = path.display().to_string();
        let mut bytes = Vec::new();
        let result = if let Texts::Sent(texts) = &self.surroundings.texts {
            let Some(text) = texts.get(&name) else {
                return Err("the client has not sent this file".to_owned());
            };
            text.as_slice().take(self.bytes_left + 1).read_to_end(&mut bytes)
        } else if iolite_types::is_standard_stream(path) {
            self.surroundings.standard_input.take(self.bytes_left + 1).read_to_end(&mut bytes)
        } else {
            File::open(path).and_then(|file| file.take(self.bytes_left + 1).read_to_end(&mut bytes))
        };
        result.map_err(|error| format!("unable to read this job file: {error}"))?;
        self.bytes_left = self.bytes_left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            format!("a job file, with all that it includes, has at most {} MiB", MAX_BYTES >> 20)
        })?;
        if let Some(why) = wrong_encoding(&bytes, &name) {
            return Err(why);
        }
        if let Texts::Kept(texts) = &mut self.surroundings.texts {
            texts.insert(name, bytes.clone());
        }
        Ok(bytes)
    }

    /// Whether a text of this name exists.
    fn is_there(&self, path: &Path) -> bool {
        match &self.surroundings.texts {
            Texts::Sent(texts) => texts.contains_key(&path.display().to_string()),
            Texts::Served(may_read) => may_read(path).is_ok() && path.exists(),
            Texts::OnDisk | Texts::Kept(_) => path.exists(),
        }
    }

    fn file(&mut self, path: &Path, bytes: &[u8]) {
        self.including.push(path.to_owned());
        // Some editors insert a byte order mark at the beginning.
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            match std::str::from_utf8(line) {
                Ok(text) if !text.contains('\0') => self.line(&Line { path, number, text }),
                Ok(text) => {
                    let column = text.chars().take_while(|&character| character != '\0').count() + 1;
                    let line = Line { path, number, text };
                    self.error(line.column(column), "a NUL byte; a job file is text".to_owned());
                }
                Err(error) => {
                    let (valid, rest) = line.split_at(error.valid_up_to());
                    let valid = String::from_utf8_lossy(valid);
                    if valid.contains([';', '#']) {
                        // The bytes are in a comment, where any are allowed: comments may be in other encodings.
                        self.line(&Line { path, number, text: &valid });
                        continue;
                    }
                    let byte = rest[0];
                    let column = valid.chars().count() + 1;
                    let line = Line { path, number, text: "" };
                    self.error(line.column(column), format!("byte 0x{byte:02x} is not valid UTF-8"));
                }
            }
        }
        self.including.pop();
    }

    fn line(&mut self, line: &Line<'_>) {
        let comment = line.text.find([';', '#']).unwrap_or(line.text.len());
        let (code, comment) = line.text.split_at(comment);
        let code_and_blanks = code;
        let code = code.trim();
        if code.is_empty() {
            return;
        }
        if let Some(header) = code.strip_prefix('[') {
            self.header(line, code, header);
            return;
        }
        if !comment.is_empty() && !code_and_blanks.ends_with([' ', '\t']) && code.contains('=') {
            let message = format!(
                "{}: \"{}\" is taken as a comment; put a blank in front of it if that is meant",
                shortened(code),
                shortened(comment.trim_end())
            );
            self.warn(line.at(comment), message);
        }
        if self.sections.is_empty() {
            if !self.complained {
                self.complained = true;
                let message = format!(
                    "option {} is outside of any [section]; begin with [global] or [jobname]",
                    shortened(code)
                );
                self.error(line.at(code), message);
            }
            return;
        }
        match included_name(code) {
            Some(name) => self.include(line, code, name),
            None => self.setting(line, code),
        }
    }

    fn header(&mut self, line: &Line<'_>, code: &str, header: &str) {
        let origin = line.at(code);
        let shown = shortened(code);
        if self.including.len() > 1 {
            let message = format!("{shown}: an included file holds options only, no sections");
            self.error(origin, message);
            return;
        }
        let name = match header.rsplit_once(']') {
            Some((name, "")) => name,
            Some((name, ignored)) => {
                let what = format!("{shown}: the text behind the closing ]");
                match self.surroundings.name {
                    Name::Fio => self.warn(line.at(ignored), format!("{what} is ignored")),
                    Name::Iolite => self.error(
                        line.at(ignored),
                        format!("{what} means nothing; leave it out, or make it a comment (# or ;)"),
                    ),
                }
                name
            }
            None if header.is_empty() => {
                self.error(origin, format!("{shown}: a section needs a name and a closing ]"));
                return;
            }
            None => {
                self.warn(origin.clone(), format!("{shown}: the closing ] of this section is missing"));
                header
            }
        };
        self.warnings.extend(odd_global_name(name, &origin));
        self.sections.push(Section {
            name: name.to_owned(),
            is_global: is_global_name(name),
            is_left_out: false,
            origin,
            settings: Vec::new(),
        });
    }

    fn setting(&mut self, line: &Line<'_>, code: &str) {
        let (key, value) = match code.split_once('=') {
            Some((key, value)) => (key.trim_end(), Some(value.trim())),
            None => (code, None),
        };
        let key_origin = line.at(code);
        let value_origin =
            value.filter(|value| !value.is_empty()).map_or(key_origin.clone(), |value| line.at(value));
        let key = self.expand(key, &key_origin);
        let value = match value {
            Some(value) => {
                let value = self.expand(value, &value_origin);
                match substitute::reserved_words(&value, &self.surroundings.facts) {
                    Ok(value) => Some(value),
                    Err(reason) => {
                        self.error(value_origin, format!("{}: {reason}", shortened(code)));
                        return;
                    }
                }
            }
            None => None,
        };
        let setting = Setting { key, value, key_origin, value_origin };
        if let Some(section) = self.sections.last_mut() {
            section.settings.push(setting);
        }
    }

    fn include(&mut self, line: &Line<'_>, code: &str, name: &str) {
        let origin = line.at(name);
        let shown = shortened(code);
        let name = self.included_name(name, &origin);
        let path = self.find_included(&name);
        let same = |other: &PathBuf| {
            *other == path
                || matches!((other.canonicalize(), path.canonicalize()), (Ok(other), Ok(path)) if other == path)
        };
        if name.is_empty() {
            self.error(origin, format!("{shown}: the name of the file to include is missing"));
        } else if self.including.iter().any(same) {
            self.error(origin, format!("{shown}: this file includes itself"));
        } else if self.including.len() > MAX_INCLUDE_DEPTH {
            self.error(origin, format!("{shown}: includes nest deeper than {MAX_INCLUDE_DEPTH} files"));
        } else {
            match self.load(&path) {
                Ok(bytes) => self.file(&path, &bytes),
                Err(reason) => {
                    let path = path.display().to_string();
                    // The path differs from the name in the line: the file was found elsewhere, or a variable was
                    // replaced.
                    let found = if shown.ends_with(&path) { "" } else { &format!("{}: ", shortened(&path)) };
                    self.error(origin, format!("{shown}: {found}{reason}"));
                }
            }
        }
    }

    /// The name in an include, with its variables replaced on the machine where the file is, because the line was
    /// written there.
    fn included_name(&mut self, written: &str, origin: &Origin) -> String {
        let key = format!("include {written}");
        if let Texts::Sent(texts) = &self.surroundings.texts
            && let Some(name) = texts.get(&key)
        {
            return String::from_utf8_lossy(name).into_owned();
        }
        let name = self.expand(written, origin);
        if let Texts::Kept(texts) = &mut self.surroundings.texts
            && name != written
        {
            texts.insert(key, name.clone().into_bytes());
        }
        name
    }

    /// An included file is looked for relative to the current directory, then relative to the file that includes it.
    fn find_included(&self, name: &str) -> PathBuf {
        let named = PathBuf::from(name);
        if self.is_there(&named) || named.is_absolute() {
            return named;
        }
        let beside =
            self.including.last().and_then(|includer| includer.parent()).map(|parent| parent.join(name));
        beside.filter(|beside| self.is_there(beside)).unwrap_or(named)
    }

    fn expand(&mut self, text: &str, origin: &Origin) -> String {
        let (text, unknown) = substitute::environment(text, self.surroundings.environment);
        for name in unknown {
            self.warn(
                origin.clone(),
                format!("environment variable \"{name}\" is not set; it is taken as empty"),
            );
        }
        text
    }

    fn error(&mut self, origin: Origin, message: String) {
        self.errors.push(Diagnostic { origin: Some(origin), message });
    }

    fn warn(&mut self, origin: Origin, message: String) {
        self.warnings.push(Diagnostic { origin: Some(origin), message });
    }
}

/// The file that an `include FILE` (or `include=FILE`) line names.
fn included_name(code: &str) -> Option<&str> {
    let rest = code.strip_prefix("include")?;
    if !rest.is_empty() && !rest.starts_with([' ', '\t', '=']) {
        return None;
    }
    let rest = rest.trim_start();
    Some(rest.strip_prefix('=').unwrap_or(rest).trim_start())
}

#[cfg(test)]
#[path = "jobfile_tests.rs"]
mod tests;
