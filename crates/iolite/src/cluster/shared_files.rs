//! Files that several hosts of a run share, because these are agents on one machine.

use iolite_options::Name;
use iolite_remote::Address;
use iolite_remote::message::Begun;
use std::collections::BTreeMap;
use std::path::Path;

/// The most hosts that the warning names.
const MOST_NAMED: usize = 5;

/// A warning about files that several of these hosts (indices of addresses) use and at least one of them makes or
/// changes: their numbers are those of a shared file. `None` = there are none. Text from another machine has no control
/// characters here.
pub fn warning(used: &[(usize, Begun)], addresses: &[Address], name: Name) -> Option<String> {
    let mut files: BTreeMap<(&str, &Path), (Vec<usize>, bool)> = BTreeMap::new();
    for (host, begun) in used {
        for (path, is_changed) in &begun.files {
            let (hosts, changed) = files.entry((&begun.machine, path)).or_default();
            hosts.push(*host);
            *changed |= is_changed;
        }
    }
    let mut shared = files.iter().filter(|(_, (hosts, is_changed))| *is_changed && hosts.len() > 1);
    let ((_, path), (hosts, _)) = shared.next()?;
    let more = match shared.count() {
        0 => "",
        _ => " and other files",
    };
    let named = hosts.iter().take(MOST_NAMED).map(|host| addresses[*host].to_string());
    let others = match hosts.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        others => format!(" and {others} others"),
    };
    let is_on_port = |host: &usize| matches!(addresses[*host], Address::Port { .. });
    let remedy = match addresses[hosts[0]] {
        Address::Rank { .. } => {
            "start one rank for each machine, or name files after ranks: filename=data.${PMIX_RANK}"
        }
        // Names in a directory have the server's port.
        _ if !name.is_strict() && hosts.iter().all(is_on_port) => {
            "set directory= without unique_filename=0, or start each server in a directory of its own"
        }
        _ => {
            "start each server in a directory of its own, or give each --client a job file with another directory="
        }
    };
    let words = format!(
        "{}{others} are on one machine and share {}{more}, so their numbers are those of a shared file; {remedy}",
        named.collect::<Vec<_>>().join(" and "),
        path.display()
    );
    Some(words.replace(char::is_control, " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(used: &[(&str, &[(&str, bool)])], name: Name) -> Option<String> {
        let addresses = ["a", "b", "sock:/c"].map(|text| Address::parse(text).unwrap());
        let begun = |(machine, files): &(&str, &[(&str, bool)])| Begun {
            machine: (*machine).to_owned(),
            files: files.iter().map(|(path, is_changed)| (path.into(), *is_changed)).collect(),
            ..Begun::default()
        };
        let used: Vec<_> = used.iter().map(begun).enumerate().collect();
        warning(&used, &addresses, name)
    }

    #[test]
    fn only_changed_files_of_one_machine_are_shared() {
        let told = |used: &[(&str, &[(&str, bool)])]| told(used, Name::Iolite);
        assert_eq!(told(&[("m", &[("/d/f", true)]), ("n", &[("/d/f", true)])]), None);
        assert_eq!(told(&[("m", &[("/d/f", true)]), ("m", &[("/e/f", true)])]), None);
        assert_eq!(told(&[("m", &[("/d/f", false)]), ("m", &[("/d/f", false)])]), None);
        let words = told(&[("m", &[("/d/f", false)]), ("m", &[("/d/f", true)])]).unwrap();
        assert!(words.starts_with("a,8765 and b,8765 are on one machine and share /d/f, so "), "{words}");
        let two: &[(&str, bool)] = &[("/d/e", true), ("/d/f", true)];
        assert!(told(&[("m", two), ("m", two)]).unwrap().contains("/d/e and other files"));
    }

    #[test]
    fn the_remedy_is_one_that_helps() {
        let one: (&str, &[(&str, bool)]) = ("m", &[("/d/f", true)]);
        let remedy = |used: &[(&str, &[(&str, bool)])], name| told(used, name).unwrap();
        assert!(remedy(&[one, one], Name::Iolite).contains("; set directory= "));
        // Under the name `fio`, the port is not in the names, and there is none in the address of a socket.
        assert!(remedy(&[one, one], Name::Fio).contains("give each --client"));
        assert!(remedy(&[one, one, one], Name::Iolite).contains("give each --client"));
    }
}
