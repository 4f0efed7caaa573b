//! Why the kernel did not take an I/O that bypasses the page cache, and what to change.

use iolite_host::{Machine, ThisMachine};
use iolite_os::files;
use std::path::Path;

/// What direct I/O to a file has to be aligned to, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// There is none: the file cannot be accessed so.
    Unsupported,
    /// Buffers, and offsets with lengths.
    Multiples { memory: u64, offset: u64 },
}

impl Alignment {
    /// Of a file, as the kernel tells it; otherwise that of the disk that it is on. `None` where nothing is known.
    pub fn of(path: &Path) -> Option<Alignment> {
        let told = files::statx(path, libc::STATX_DIOALIGN)
            .filter(|found| found.stx_mask & libc::STATX_DIOALIGN != 0)
            .map(|found| (found.stx_dio_mem_align.into(), found.stx_dio_offset_align.into()));
        if let Some((memory, offset)) = told {
            let supported = memory > 0 && offset > 0;
            return Some(if supported {
                Alignment::Multiples { memory, offset }
            } else {
                Alignment::Unsupported
            });
        }
        let block = ThisMachine::new().disk(path)?.queue.logical_block.filter(|&block| block > 0)?;
        Some(Alignment::Multiples { memory: block, offset: block })
    }

    /// Whether that is why this I/O was not taken, and what to change.
    pub fn advice(alignment: Option<Alignment>, offset: u64, length: u64, memory: u64) -> String {
        const ELSE: &str = "use direct=0";
        let multiples = match alignment {
            Some(Alignment::Unsupported) => return format!("it cannot be accessed so; {ELSE}"),
            Some(Alignment::Multiples { memory, offset }) => Some((memory, offset)),
            None => None,
        };
        let mut found = Vec::new();
        let mut remedies = Vec::new();
        if let Some((of_memory, of_offset)) = multiples {
            let odd_length = !length.is_multiple_of(of_offset);
            if odd_length {
                found.push(format!("the length {length} is no multiple of {of_offset}"));
                remedies.push("bs");
            }
            // Blocks that do not fit do not begin where they should either.
            let follows = odd_length && offset.is_multiple_of(length);
            if !offset.is_multiple_of(of_offset) && !follows {
                found.push(format!("the offset {offset} is no multiple of {of_offset}"));
                remedies.extend(["offset", "ba"]);
            }
            if !memory.is_multiple_of(of_memory) {
                found.push(format!("the buffer is not aligned to {of_memory} bytes"));
                remedies.push("iomem_align");
            }
        }
        if found.is_empty() {
            return format!(
                "its file system or device may not support that, or not these blocks; change bs, or {ELSE}"
            );
        }
        format!("{}; change {}, or {ELSE}", found.join(", "), remedies.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_told_with_its_remedy() {
        let advice = |offset, length, memory| {
            let alignment = Alignment::Multiples { memory: 4, offset: 512 };
            Alignment::advice(Some(alignment), offset, length, memory)
        };
        assert_eq!(advice(512, 1000, 4), "the length 1000 is no multiple of 512; change bs, or use direct=0");
        assert_eq!(advice(3000, 1000, 4), advice(0, 1000, 4));
        assert_eq!(
            advice(100, 1000, 4),
            "the length 1000 is no multiple of 512, the offset 100 is no multiple of 512; change bs, offset, ba, or use direct=0"
        );
        assert_eq!(
            advice(100, 512, 4),
            "the offset 100 is no multiple of 512; change offset, ba, or use direct=0"
        );
        assert_eq!(
            advice(0, 100, 6),
            "the length 100 is no multiple of 512, the buffer is not aligned to 4 bytes; change bs, iomem_align, or use direct=0"
        );
        assert!(advice(0, 512, 4).starts_with("its file system or device may not support"));
        assert!(Alignment::advice(None, 1, 1, 1).starts_with("its file system or device may not support"));
        assert_eq!(
            Alignment::advice(Some(Alignment::Unsupported), 0, 512, 0),
            "it cannot be accessed so; use direct=0"
        );
    }
}
