//! Chooses the next file, if there are several and perhaps not all of them may be open at once.
//!
//! The files in use form a short list. At first it holds as many files as may be open, in order. A file that is
//! finished leaves the list, and the next unused file joins at the end. Round robin goes around this list, random draws
//! from it, and sequential stays with its head.
//!
//! A skewed order draws one of all files by its law; if that file is not in use, it takes the next one in use. The law
//! has 1024 consecutive ranks for each file (as fio's I/O logs show), so the most popular file has a far larger share
//! than the first rank would have if each file were one rank: with 16 files and a zipf exponent of 1.1, four fifths of
//! the accesses.

use crate::{
    FileOrder,
    offset::{Skewed, hottest},
    rng::Rng,
};
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    order: FileOrder,
    files: u32,
    limit: usize,
    ios_per_file: u64,
    /// Files in use, ascending.
    open: VecDeque<u32>,
    /// The first file that has not been used yet.
    unused: u32,
    cursor: usize,
    ios_left: u64,
    draw: bool,
    skew: Option<FileSkew>,
}

/// The number of ranks of each file in a skewed order.
const RANKS_PER_FILE: u64 = 1024;

/// The popularity of the files.
#[derive(Clone, Debug)]
struct FileSkew {
    table: Arc<Skewed>,
    /// The place of the first rank. There are as many places as ranks.
    first: u64,
    places: u64,
}

impl FileSkew {
    fn new(skew: &crate::Skew, files: u32, seed: u64) -> Self {
        let places = u64::from(files.max(1)) * RANKS_PER_FILE;
        let table = Skewed::new(skew.law, places);
        let hottest = match skew.centre {
            None if table.favourite() == 0 => {
                // A random place is rounded to the beginning of a file.
                hottest(skew, places, seed, usize::MAX >> 1) / RANKS_PER_FILE * RANKS_PER_FILE
            }
            _ => hottest(skew, places, seed, 0),
        };
        let first = (hottest + places - table.favourite()) % places;
        FileSkew { table: Arc::new(table), first, places }
    }

    fn draw(&self, rng: &mut Rng) -> u32 {
        let place = (self.first + self.table.draw(rng)) % self.places;
        (place / RANKS_PER_FILE) as u32
    }
}

impl Rotation {
    pub(crate) fn new(order: FileOrder, files: u32, limit: usize, ios_per_file: u64, seed: u64) -> Self {
        let limit = limit.clamp(1, (files as usize).max(1));
        let mut rotation = Rotation {
            order,
            files,
            limit,
            ios_per_file: ios_per_file.max(1),
            open: VecDeque::with_capacity(limit),
            unused: 0,
            cursor: 0,
            ios_left: 0,
            draw: false,
            skew: match &order {
                FileOrder::Skewed(skew) => Some(FileSkew::new(skew, files, seed)),
                _ => None,
            },
        };
        rotation.restart();
        rotation
    }

    /// Starts over: all files are unused again.
    pub(crate) fn restart(&mut self) {
        self.open.clear();
        self.open.extend((0..self.files).take(self.limit));
        self.unused = self.open.len() as u32;
        self.cursor = 0;
        self.turn();
    }

    fn turn(&mut self) {
        self.ios_left = self.ios_per_file;
        self.draw = matches!(self.order, FileOrder::Random | FileOrder::Skewed(_));
    }

    /// The file for the next I/O; `None` if all files are finished.
    #[inline(always)]
    pub(crate) fn current(&mut self, rng: &mut Rng) -> Option<u32> {
        if self.draw && !self.open.is_empty() {
            self.cursor = match &self.skew {
                None => rng.below(self.open.len() as u64) as usize,
                Some(skew) => {
                    let file = skew.draw(rng);
                    let cursor = self.open.partition_point(|&open| open < file);
                    if cursor == self.open.len() { 0 } else { cursor }
                }
            };
            self.draw = false;
        }
        self.open.get(self.cursor).copied()
    }

    /// A file, drawn from all files, for a skewed order in which no file is ever finished; `None` for other orders.
    #[inline]
    pub(crate) fn any(&self, rng: &mut Rng) -> Option<u32> {
        self.skew.as_ref().map(|skew| skew.draw(rng))
    }

    /// Notes that an I/O was issued on the current file.
    #[inline(always)]
    pub(crate) fn issued(&mut self) {
        self.ios_left -= 1;
        if self.ios_left == 0 {
            self.turn();
            if self.order == FileOrder::RoundRobin {
                self.cursor += 1;
                if self.cursor >= self.open.len() {
                    self.cursor = 0;
                }
            }
        }
    }

    /// Notes that the current file is finished.
    #[cold]
    pub(crate) fn finished(&mut self) {
        // With a million files, removing one in the middle must not move all those behind it. A random draw does not
        // depend on their order.
        if self.order == FileOrder::Random {
            self.open.swap_remove_back(self.cursor);
        } else {
            self.open.remove(self.cursor);
        }
        if self.unused < self.files {
            self.open.push_back(self.unused);
            self.unused += 1;
        }
        if self.cursor >= self.open.len() {
            self.cursor = 0;
        }
        self.turn();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of the files, if each has this many `blocks`, one per I/O.
    fn order(order: FileOrder, blocks: &[u32], limit: usize, ios_per_file: u64) -> Vec<u32> {
        let mut rotation = Rotation::new(order, blocks.len() as u32, limit, ios_per_file, 7);
        let mut left = blocks.to_vec();
        let mut rng = Rng::new(1);
        let mut result = Vec::new();
        while let Some(file) = rotation.current(&mut rng) {
            if left[file as usize] == 0 {
                rotation.finished();
            } else {
                left[file as usize] -= 1;
                result.push(file);
                rotation.issued();
            }
        }
        result
    }

    /// The orders of fio 3.33 for three files of the same size, from its I/O logs.
    #[test]
    fn the_orders_are_those_of_the_reference() {
        use FileOrder::*;
        assert_eq!(order(RoundRobin, &[4, 4, 4], 3, 1), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
        assert_eq!(order(RoundRobin, &[4, 4, 4], 3, 2), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
        assert_eq!(order(RoundRobin, &[4, 4, 4], 2, 1), [0, 1, 0, 1, 0, 1, 0, 1, 2, 2, 2, 2]);
        assert_eq!(order(RoundRobin, &[4, 4, 4], 2, 2), [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 2, 2]);
        assert_eq!(order(RoundRobin, &[4, 4, 4], 1, 1), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(order(RoundRobin, &[2, 3, 3], 3, 1), [0, 1, 2, 0, 1, 2, 1, 2]);
        assert_eq!(order(Sequential, &[4, 4, 4], 3, 1), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(order(Sequential, &[4, 4, 4], 3, 2), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn random_uses_every_file_in_runs() {
        let files = order(FileOrder::Random, &[40, 40, 40, 40], 2, 2);
        assert_eq!(files.len(), 160);
        assert!(files.chunks(2).all(|run| run[0] == run[1]));
        // With two open at once, the fourth file only comes after two have been finished.
        let first_of_fourth = files.iter().position(|&file| file == 3).unwrap();
        let used: std::collections::HashSet<u32> = files[first_of_fourth..].iter().copied().collect();
        assert!(used.len() <= 2, "{files:?}");
    }
}
