//! `block_error_percentiles`: how many trims the blocks of a device survive.
//!
//! Files are divided into blocks of the size of a trim. Each block has a state and counts its trims until its first
//! failed trim or write. Then it is dead, and the count is its lifetime. This takes four bytes per block, allocated at
//! set-up and limited.

use super::failure::Attempt;
use iolite_plan::{FileLayout, Layout};
use iolite_stats::BlockState;
use iolite_stats::live::LiveBlocks;
use iolite_types::Operation;

/// The state of each block.
#[derive(Debug)]
pub struct BlockLives<'a> {
    size: u64,
    files: Vec<Lives>,
    live: &'a LiveBlocks,
}

/// The blocks of one file's region.
#[derive(Debug)]
struct Lives {
    /// The start of the region.
    offset: u64,
    /// For each block, the state in the lowest bits and the number of trims above them.
    blocks: Vec<u32>,
}

/// The most blocks: they take 64 MiB of memory.
const MOST_BLOCKS: u64 = 16 << 20;

/// Number of bits of a state.
const STATE_BITS: u32 = 3;

impl<'a> BlockLives<'a> {
    /// The lives of blocks of `size` bytes.
    ///
    /// # Errors
    /// There are too many blocks. The text is for the user.
    pub fn new(size: u64, layout: &Layout, live: &'a LiveBlocks) -> Result<Self, String> {
        let blocks = |file: &FileLayout| file.length.div_ceil(size);
        let total = layout.files.iter().map(blocks).fold(0, u64::saturating_add);
        if total > MOST_BLOCKS {
            return Err(format!(
                "block_error_percentiles: {total} blocks of {size} bytes are more than {MOST_BLOCKS}; make them larger \
                 (the third value of bs), or the files smaller"
            ));
        }
        live.prepare(total);
        let lives = |file: &FileLayout| Lives { offset: file.offset, blocks: vec![0; blocks(file) as usize] };
        Ok(BlockLives { size, files: layout.files.iter().map(lives).collect(), live })
    }

    /// Counts an operation that succeeded or failed.
    pub(super) fn done(&mut self, attempt: &Attempt, failed: bool) {
        let state = match (attempt.operation, failed) {
            (Operation::Trim, false) => BlockState::Trimmed,
            (Operation::Trim, true) => BlockState::TrimFailed,
            (Operation::Write, false) => BlockState::Written,
            (Operation::Write, true) => BlockState::WriteFailed,
            _ => return,
        };
        let Some(file) = self.files.get_mut(attempt.file as usize) else { return };
        let first = attempt.offset.saturating_sub(file.offset) / self.size;
        let behind = (attempt.offset + attempt.length).saturating_sub(file.offset).div_ceil(self.size);
        let range = first as usize..(behind as usize).min(file.blocks.len());
        for block in file.blocks.get_mut(range).unwrap_or_default() {
            let before = BlockState::ALL[(*block & ((1 << STATE_BITS) - 1)) as usize];
            if before.is_dead() {
                continue;
            }
            let trims = (*block >> STATE_BITS).saturating_add(u32::from(state == BlockState::Trimmed));
            let trims = trims.min(u32::MAX >> STATE_BITS);
            *block = trims << STATE_BITS | state as u32;
            self.live.change(before, state);
            if state.is_dead() {
                self.live.failed(trims.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_os::shared::Arena;
    use iolite_plan::FileKind;

    #[test]
    fn lives_end_with_the_first_failure() {
        let arena = Arena::new(1).unwrap();
        let live = &arena.slot(0).stats.blocks;
        let file = FileLayout {
            path: "f".into(),
            kind: FileKind::Regular,
            exists: true,
            offset: 4096,
            length: 5 * 4096,
            amount: 5 * 4096,
            extend_to: None,
            is_whole: false,
            zoned: None,
        };
        let layout = Layout {
            files: vec![file],
            pass_bytes: None,
            left_out: iolite_plan::LeftOut::default(),
            named: None,
        };
        let mut lives = BlockLives::new(4096, &layout, live).unwrap();
        let mut io = |operation, block: u64, blocks: u64, failed| {
            let (offset, length) = (4096 + block * 4096, blocks * 4096);
            lives.done(&Attempt { operation, file: 0, offset, length }, failed);
        };
        for _ in 0..3 {
            io(Operation::Trim, 0, 2, false);
        }
        io(Operation::Write, 0, 1, true);
        io(Operation::Trim, 0, 1, false);
        io(Operation::Trim, 1, 1, true);
        io(Operation::Write, 2, 1, false);
        io(Operation::Trim, 3, 1, false);
        io(Operation::Read, 4, 1, true);
        let report = live.read();
        assert_eq!(report.states, [1, 1, 1, 1, 1], "unwritten, trimmed, written, failed trim, failed write");
        assert_eq!(report.lifetimes.occupied().collect::<Vec<_>>(), [(3, 2)]);
        let mut layout = layout;
        layout.files[0].length = 1 << 40;
        assert!(BlockLives::new(1, &layout, live).unwrap_err().contains("1099511627776 blocks of 1 bytes"));
    }
}
