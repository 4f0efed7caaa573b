//! Memory.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Huge pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugePages {
    /// The size of a page in bytes.
    pub page_bytes: u64,
    /// The number of reserved pages.
    pub total: u64,
    /// The number of free pages.
    pub free: u64,
}

/// The memory of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The total memory in bytes; `None` = unknown.
    pub total: Option<u64>,
    /// Memory available without swapping, in bytes; `None` = unknown.
    pub available: Option<u64>,
    /// Free swap space in bytes.
    pub free_swap: u64,
    /// The size of the huge pages that a program gets if it does not ask for a size; `None` = unknown.
    pub default_huge_page: Option<u64>,
    /// Huge pages, in ascending order of their sizes.
    pub huge_pages: Vec<HugePages>,
}

impl Memory {
    /// The current memory of this machine.
    pub fn now() -> Memory {
        let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let mut huge_pages = huge_pages();
        huge_pages.sort_unstable_by_key(|pages| pages.page_bytes);
        Memory { huge_pages, ..Memory::parse(&text) }
    }

    /// Memory available with swapping, in bytes; `u64::MAX` if unknown.
    pub fn obtainable(&self) -> u64 {
        self.available.map_or(u64::MAX, |bytes| bytes.saturating_add(self.free_swap))
    }

    /// The format is documented in proc_meminfo(5).
    fn parse(text: &str) -> Memory {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib << 10)
        };
        Memory {
            total: field("MemTotal:"),
            available: field("MemAvailable:"),
            free_swap: field("SwapFree:").unwrap_or(0),
            default_huge_page: field("Hugepagesize:"),
            huge_pages: Vec::new(),
        }
    }
}

fn huge_pages() -> Vec<HugePages> {
    let of_size = |directory: &Path| {
        let name = directory.file_name()?.to_str()?;
        let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let number = |name: &str| fs::read_to_string(directory.join(name)).ok()?.trim().parse::<u64>().ok();
        Some(HugePages {
            page_bytes: kib << 10,
            total: number("nr_hugepages")?,
            free: number("free_hugepages")?,
        })
    };
    let entries = fs::read_dir("/sys/kernel/mm/hugepages").into_iter().flatten().flatten();
    entries.filter_map(|entry| of_size(&entry.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_meminfo() {
        let text = "MemTotal:        8000 kB\nMemAvailable:    4000 kB\nSwapFree:         100 kB\n\
                    Hugepagesize:     524288 kB\n";
        let memory = Memory::parse(text);
        assert_eq!((memory.total, memory.available), (Some(8000 << 10), Some(4000 << 10)));
        assert_eq!(memory.obtainable(), 4100 << 10);
        assert_eq!(memory.default_huge_page, Some(512 << 20));
        assert_eq!(Memory::parse("").obtainable(), u64::MAX);
    }

    #[test]
    fn this_machine_has_memory() {
        let memory = Memory::now();
        assert!(memory.obtainable() > 1 << 20);
        assert!(memory.huge_pages.iter().all(|pages| pages.page_bytes > 4096 && pages.free <= pages.total));
    }
}
