//! The memory of a program and all its descendants: the sum of their proportional set sizes (PSS), sampled continuously
//! while it runs. The peak is the largest sum.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::process::Child;

/// Waits for the program. Returns the largest sum in bytes.
pub fn peak(child: &mut Child) -> std::io::Result<u64> {
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        peak = peak.max(jobs(child.id()).map(pss).sum());
    }
    Ok(peak)
}

/// A program and all its processes, without the one that serves the page of a run.
pub fn jobs(root: u32) -> impl Iterator<Item = u32> {
    family(root).into_iter().filter(|id| !is_page(*id))
}

fn is_page(id: u32) -> bool {
    is_that_of_a_page(&fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default())
}

/// Whether this is the command line of the process of a page: words that end with a zero.
fn is_that_of_a_page(line: &[u8]) -> bool {
    line.split(|byte| *byte == 0).nth(1) == Some(iolite_web::WORD.as_bytes())
}

/// A process and all its descendants.
fn family(root: u32) -> HashSet<u32> {
    let parents: HashMap<u32, u32> = processes().filter_map(|id| Some((id, parent(id)?))).collect();
    let belongs = |mut id: u32| {
        // A chain of parents has at most as many links as there are processes, unless processes change meanwhile.
        for _ in 0..parents.len() {
            if id == root {
                return true;
            }
            match parents.get(&id) {
                Some(&parent) if parent != 0 => id = parent,
                _ => return false,
            }
        }
        false
    };
    parents.keys().copied().filter(|&id| belongs(id)).collect()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name is in parentheses and may contain anything.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// The proportional set size of a process in bytes; 0 if the process is gone.
fn pss(id: u32) -> u64 {
    let Ok(text) = fs::read_to_string(format!("/proc/{id}/smaps_rollup")) else { return 0 };
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_and_its_own_child_are_counted() {
        let mut child = Command::new("sh").args(["-c", "sleep 0.3; true"]).spawn().unwrap();
        assert!(peak(&mut child).unwrap() > 50_000);
        assert!(pss(std::process::id()) > 100_000);
        assert!(family(std::process::id()).contains(&std::process::id()));
    }

    #[test]
    fn the_process_of_a_page_is_no_job() {
        let is_page = |line: &str| is_that_of_a_page(line.replace(' ', "\0").as_bytes());
        let word = iolite_web::WORD;
        assert!(is_page(&format!("iolite {word} ")));
        assert!(!is_page(&format!("iolite --name=x {word} ")) && !is_page("iolite ") && !is_page(""));
        assert!(jobs(std::process::id()).any(|id| id == std::process::id()));
    }
}
