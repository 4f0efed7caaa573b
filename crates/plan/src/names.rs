//! The names of a worker's files.
//!
//! Names that follow from a format take no memory, however many there are: each is made on demand. They may be spread over
//! a tree of directories in turns: the file with number `n` is in directory `n` modulo their count, however many files a job
//! has. The directories are numbered level by level: the first is that of the format itself, and those in directory `d` are
//! `d × breadth + 1` and the next ones.

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
        count: u32,
        /// The first number.
        first: u32,
        /// The tree that they are spread over.
        tree: Option<Tree>,
    },
}

/// A tree of directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Tree {
    depth: u32,
    breadth: u32,
}

impl Tree {
    /// How many directories there are, with the first one.
    fn directories(self) -> u64 {
        let level = |sum: u64, _| sum.saturating_mul(self.breadth.into()).saturating_add(1);
        (0..self.depth).fold(1, level)
    }

    /// The path of a directory below the first one.
    fn path(self, directory: u64) -> String {
        let (mut parts, mut at) = (Vec::new(), directory);
        while at > 0 {
            parts.push(format!("t{}", (at - 1) % u64::from(self.breadth)));
            at = (at - 1) / u64::from(self.breadth);
        }
        parts.reverse();
        parts.join("/")
    }
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
    /// Names made from a format: `number` in it stands for the number of a file.
    pub(crate) fn numbered(directory: &Path, format: &str, number: &str, count: u32) -> Names {
        let pieces = format.split(number).map(str::to_owned).collect();
        Names(Form::Numbered { directory: directory.to_owned(), pieces, count, first: 0, tree: None })
    }

    /// The same, with another first number.
    pub(crate) fn beginning_at(mut self, number: u32) -> Names {
        if let Form::Numbered { first, .. } = &mut self.0 {
            *first = number;
        }
        self
    }

    /// The same, spread over a tree of directories.
    pub(crate) fn in_tree(mut self, depth: u32, breadth: u32) -> Names {
        if let Form::Numbered { tree, .. } = &mut self.0 {
            *tree = (depth > 0).then_some(Tree { depth, breadth });
        }
        self
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
            Form::Numbered { directory, pieces, count, first, tree } => {
                (index < *count as usize).then(|| {
                    let number = u64::from(*first) + index as u64;
                    let name = pieces.join(&number.to_string());
                    let Some(tree) = tree else { return Cow::Owned(directory.join(name)) };
                    let (above, file) = name.rsplit_once('/').unwrap_or(("", &name));
                    Cow::Owned(directory.join(above).join(tree.path(number % tree.directories())).join(file))
                })
            }
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
    /// more than a thousand in one directory or tree, only those with the file name of a place: so many are not searched for
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
        let Form::Numbered { pieces, first: least, .. } = &self.0 else { return None };
        let first = pieces.first()?.rsplit('/').next()?;
        let number = file_name.to_str()?.strip_prefix(first)?;
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        // Behind the number, the format may go on with a digit. Without a number, all names are the same.
        let numbers = (1..=digits).filter_map(|digits| number[..digits].parse().ok());
        numbers
            .chain([*least as usize])
            .filter_map(|number: usize| self.get(number.checked_sub(*least as usize)?))
            .find(|name| name.file_name() == Some(file_name))
    }

    /// Whether there are many names, all in one directory or tree, that differ only in numbers.
    fn are_many_alike(&self) -> bool {
        match &self.0 {
            Form::Numbered { pieces, .. } => self.len() > MANY && numbers_only_files(pieces),
            Form::Listed(_) => false,
        }
    }

    /// Names of which at least one is in each of their directories.
    pub fn in_all_directories(&self) -> impl Iterator<Item = Cow<'_, Path>> {
        let enough = match &self.0 {
            Form::Numbered { tree, pieces, .. } if numbers_only_files(pieces) => {
                tree.map_or(1, Tree::directories)
            }
            _ => u64::MAX,
        };
        self.iter().take(usize::try_from(enough).unwrap_or(usize::MAX))
    }
}

/// Whether the number of a file is only in the last component of its name.
fn numbers_only_files(pieces: &[String]) -> bool {
    pieces.iter().skip(1).all(|piece| !piece.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(names: &Names) -> Vec<String> {
        names.iter().map(|name| name.display().to_string()).collect()
    }

    #[test]
    fn names_follow_from_their_format() {
        let names = Names::numbered(Path::new("d"), "a.#.b#", "#", 3);
        assert_eq!(all(&names), ["d/a.0.b0", "d/a.1.b1", "d/a.2.b2"]);
        assert_eq!((names.len(), names.get(3)), (3, None));
        let same = Names::numbered(Path::new(""), "same", "#", 2);
        assert_eq!(all(&same), ["same", "same"]);
        let listed = Names::from(vec!["x".into(), "y".into()]);
        assert_eq!(all(&listed), ["x", "y"]);
        assert!(Names::default().is_empty());
    }

    #[test]
    fn names_begin_where_they_should_and_spread_over_a_tree() {
        let names = Names::numbered(Path::new("d"), "w#/f#", "#", 3).beginning_at(7);
        assert_eq!(all(&names), ["d/w7/f7", "d/w8/f8", "d/w9/f9"]);
        let tree = |depth, breadth, count| {
            all(&Names::numbered(Path::new("d"), "w/f#", "#", count).in_tree(depth, breadth))
        };
        assert_eq!(tree(1, 2, 3), ["d/w/f0", "d/w/t0/f1", "d/w/t1/f2"]);
        assert_eq!(
            tree(2, 2, 7),
            [
                "d/w/f0",
                "d/w/t0/f1",
                "d/w/t1/f2",
                "d/w/t0/t0/f3",
                "d/w/t0/t1/f4",
                "d/w/t1/t0/f5",
                "d/w/t1/t1/f6"
            ]
        );
        assert_eq!(tree(2, 1, 4), ["d/w/f0", "d/w/t0/f1", "d/w/t0/t0/f2", "d/w/f3"]);
        let all = Names::numbered(Path::new(""), "w/f#", "#", 1_000_000).in_tree(3, 10);
        assert_eq!(all.in_all_directories().count(), 1111);
        let places = ["x/f21", "x/f1000000"].map(PathBuf::from);
        assert_eq!(all.near(&places).collect::<Vec<_>>(), [Path::new("w/t1/t0/f21")]);
        let plain = Names::numbered(Path::new(""), "w/f#", "#", 1_000_000);
        assert_eq!(plain.in_all_directories().count(), 1);
        assert_eq!(Names::numbered(Path::new(""), "w#/f", "#", 9).in_all_directories().count(), 9);
        // More directories than numbers have digits.
        assert_eq!(Tree { depth: 32, breadth: 65_536 }.directories(), u64::MAX);
        assert_eq!(tree(32, 65_536, 1), ["d/w/f0"]);
        let many = Names::numbered(Path::new("d"), "a.#", "#", 5000).beginning_at(10).in_tree(2, 10);
        assert_eq!(many.places().count(), 1);
        let later = Names::numbered(Path::new("d"), "a.#", "#", 5000).beginning_at(10);
        let near = |name: &str| later.near(&[PathBuf::from(name)]).count();
        assert_eq!((near("x/a.10"), near("x/a.5009"), near("x/a.9"), near("x/a.5010")), (1, 1, 0, 0));
    }

    #[test]
    fn many_names_in_one_directory_are_one_place() {
        let places = |format, count| Names::numbered(Path::new("d"), format, "#", count).places().count();
        assert_eq!(places("a.#", 1_000_000), 1);
        assert_eq!(places("#/a", 2000), 2000);
        assert_eq!(places("a.#", 3), 3);
    }

    #[test]
    fn names_near_a_place_share_its_file_name() {
        let near = |format, count, places: &[&str]| {
            let names = Names::numbered(Path::new("d"), format, "#", count);
            let places: Vec<PathBuf> = places.iter().map(PathBuf::from).collect();
            names.near(&places).map(|name| name.display().to_string()).collect::<Vec<_>>()
        };
        let places = ["/x/d/a.7", "/x/d/a.1000000", "/x/d/a.007", "/x/d/a.", "/x/d/b.7", "/"];
        assert_eq!(near("a.#", 1_000_000, &places), ["d/a.7"]);
        assert_eq!(near("s/a.#", 1_000_000, &places), ["d/s/a.7"]);
        assert_eq!(near("a.#.b#", 2000, &["a.12.b12", "a.12.b13"]), ["d/a.12.b12"]);
        assert_eq!(near("a#5", 2000, &["a125"]), ["d/a125"]);
        assert_eq!(near("same", 2000, &["same", "other"]), ["d/same"]);
        // A few names may be links, and names in different directories share no pattern.
        assert_eq!(near("a.#", 2, &["x"]), ["d/a.0", "d/a.1"]);
        assert_eq!(near("#/a", 1001, &["x"]).len(), 1001);
    }

    #[test]
    fn names_travel() {
        let names = Names::numbered(Path::new("d"), "a.#", "#", 1 << 20);
        let text = serde_json::to_string(&names).unwrap();
        assert!(text.len() < 100, "{text}");
        assert_eq!(serde_json::from_str::<Names>(&text).unwrap(), names);
    }
}
