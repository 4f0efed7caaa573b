//! The names of a worker's files.
//!
//! Names that follow from a format take no memory, however many there are: each is made on demand.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The most names with a common pattern that are examined one by one.
const MANY: usize = 1000;

/// Names in order, from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names(Form);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Form {
    Listed(Vec<PathBuf>),
    Numbered {
        /// The directory of all names; empty = the current one.
        directory: PathBuf,
        /// The text before, between and behind the numbers.
        pieces: Vec<String>,
        /// The first number.
        #[serde(default)]
        first: u64,
        count: u32,
    },
}

impl Default for Names {
    fn default() -> Self {
        Names(Form::Listed(Vec::new()))
    }
}

impl From<Vec<PathBuf>> for Names {
    fn from(names: Vec<PathBuf>) -> Self {
        Names(Form::Listed(names))
    }
}

impl Names {
    /// Names made from a format: `number` in it stands for the number of a file, from `first` on.
    pub(crate) fn numbered(directory: &Path, format: &str, number: &str, first: u64, count: u32) -> Names {
        let pieces = format.split(number).map(str::to_owned).collect();
        Names(Form::Numbered { directory: directory.to_owned(), pieces, first, count })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Listed(names) => names.len(),
            Form::Numbered { count, .. } => *count as usize,
        }
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name with this number, if any.
    pub fn get(&self, index: usize) -> Option<Cow<'_, Path>> {
        match &self.0 {
            Form::Listed(names) => names.get(index).map(|name| Cow::Borrowed(name.as_path())),
            Form::Numbered { directory, pieces, first, count } => (index < *count as usize).then(|| {
                let number = first + index as u64;
                Cow::Owned(directory.join(pieces.join(&number.to_string())))
            }),
        }
    }

    /// All names, in order.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, Path>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Paths that stand for all names when disks are looked up: usually one.
    ///
    /// Names that differ in numbers are in one directory, unless the number is part of the directory's name. Of more
    /// than a thousand, the first stands for all.
    pub fn places(&self) -> impl Iterator<Item = Cow<'_, Path>> {
        self.iter().take(if self.are_many_alike() { 1 } else { self.len() })
    }

    /// The names that may lead to a file at one of these places (without links). Returns all names, but if there are
    /// more than a thousand in one directory, only those with the file name of a place: so many are not searched for
    /// links.
    pub fn near<'a>(&'a self, places: &'a [PathBuf]) -> Box<dyn Iterator<Item = Cow<'a, Path>> + 'a> {
        if self.are_many_alike() {
            Box::new(places.iter().filter_map(|place| self.named(place.file_name()?)))
        } else {
            Box::new(self.iter())
        }
    }

    /// The name that ends in this file name; for names that differ in the numbers of their last component.
    fn named(&self, file_name: &OsStr) -> Option<Cow<'_, Path>> {
        let Form::Numbered { pieces, first, .. } = &self.0 else { return None };
        let before = pieces.first()?.rsplit('/').next()?;
        let number = file_name.to_str()?.strip_prefix(before)?;
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        // Behind the number, the format may go on with a digit. Without a number, all names are the same.
        let numbers = (1..=digits).filter_map(|digits| number[..digits].parse::<u64>().ok());
        numbers
            .chain([*first])
            .filter_map(|number| self.get(number.checked_sub(*first)? as usize))
            .find(|name| name.file_name() == Some(file_name))
    }

    /// Whether there are many names, all in one directory, that differ only in numbers.
    fn are_many_alike(&self) -> bool {
        match &self.0 {
            Form::Numbered { pieces, .. } => {
                self.len() > MANY && pieces.iter().skip(1).all(|piece| !piece.contains('/'))
            }
            Form::Listed(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(names: &Names) -> Vec<String> {
        names.iter().map(|name| name.display().to_string()).collect()
    }

    #[test]
    fn names_follow_from_their_format() {
        let names = Names::numbered(Path::new("d"), "a.#.b#", "#", 0, 3);
        assert_eq!(all(&names), ["d/a.0.b0", "d/a.1.b1", "d/a.2.b2"]);
        assert_eq!((names.len(), names.get(3)), (3, None));
        let later = Names::numbered(Path::new("d"), "a.#", "#", 7, 2);
        assert_eq!((all(&later), later.get(2)), (vec!["d/a.7".to_owned(), "d/a.8".to_owned()], None));
        let same = Names::numbered(Path::new(""), "same", "#", 0, 2);
        assert_eq!(all(&same), ["same", "same"]);
        let listed = Names::from(vec!["x".into(), "y".into()]);
        assert_eq!(all(&listed), ["x", "y"]);
        assert!(Names::default().is_empty());
    }

    #[test]
    fn many_names_in_one_directory_are_one_place() {
        let places = |format, count| Names::numbered(Path::new("d"), format, "#", 0, count).places().count();
        assert_eq!(places("a.#", 1_000_000), 1);
        assert_eq!(places("#/a", 2000), 2000);
        assert_eq!(places("a.#", 3), 3);
    }

    #[test]
    fn names_near_a_place_share_its_file_name() {
        let near = |format, count, places: &[&str]| {
            let names = Names::numbered(Path::new("d"), format, "#", 0, count);
            let places: Vec<PathBuf> = places.iter().map(PathBuf::from).collect();
            names.near(&places).map(|name| name.display().to_string()).collect::<Vec<_>>()
        };
        let places = ["/x/d/a.7", "/x/d/a.1000000", "/x/d/a.007", "/x/d/a.", "/x/d/b.7", "/"];
        assert_eq!(near("a.#", 1_000_000, &places), ["d/a.7"]);
        assert_eq!(near("s/a.#", 1_000_000, &places), ["d/s/a.7"]);
        assert_eq!(near("a.#.b#", 2000, &["a.12.b12", "a.12.b13"]), ["d/a.12.b12"]);
        assert_eq!(near("a#5", 2000, &["a125"]), ["d/a125"]);
        assert_eq!(near("same", 2000, &["same", "other"]), ["d/same"]);
        let later = Names::numbered(Path::new("d"), "a.#", "#", 5000, 2000);
        let places: Vec<PathBuf> = ["a.4999", "a.5000", "a.7000"].iter().map(PathBuf::from).collect();
        assert_eq!(later.near(&places).collect::<Vec<_>>(), [Path::new("d/a.5000")]);
        // A few names may be links, and names in different directories share no pattern.
        assert_eq!(near("a.#", 2, &["x"]), ["d/a.0", "d/a.1"]);
        assert_eq!(near("#/a", 1001, &["x"]).len(), 1001);
    }

    #[test]
    fn names_travel() {
        let names = Names::numbered(Path::new("d"), "a.#", "#", 0, 1 << 20);
        let text = serde_json::to_string(&names).unwrap();
        assert!(text.len() < 100, "{text}");
        assert_eq!(serde_json::from_str::<Names>(&text).unwrap(), names);
    }
}
