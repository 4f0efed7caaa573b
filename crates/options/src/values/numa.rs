//! Memory nodes: `numa_cpu_nodes=0-1`, `numa_mem_policy=bind:0`.

use super::Notes;
use super::cpus::number_set;
use super::keyword::not_one_of;
use crate::{NumaPolicy, NumaPolicyMode};

const MODES: [NumaPolicyMode; 5] = [
    NumaPolicyMode::Default,
    NumaPolicyMode::Prefer,
    NumaPolicyMode::Bind,
    NumaPolicyMode::Interleave,
    NumaPolicyMode::Local,
];

/// Parses a list of nodes; `all` is the empty list.
///
/// # Errors
/// As [`number_set`].
pub fn numa_nodes(text: &str, notes: &mut Notes) -> Result<Vec<u32>, String> {
    if text == "all" { Ok(Vec::new()) } else { number_set(text, &[','], notes) }
}

/// Parses `mode[:nodes]`.
///
/// # Errors
/// The mode is unknown, takes no nodes, or lacks the nodes that it needs.
pub fn numa_policy(text: &str, notes: &mut Notes) -> Result<NumaPolicy, String> {
    let (word, nodes) = match text.split_once(':') {
        Some((word, nodes)) => (word.trim(), Some(nodes.trim())),
        None => (text, None),
    };
    let mode = NumaPolicyMode::from_keyword(word)
        .ok_or_else(|| not_one_of(MODES.iter().map(|mode| mode.keyword()), word))?;
    let nodes = match (mode, nodes) {
        (NumaPolicyMode::Default | NumaPolicyMode::Local, Some(_)) => {
            return Err(format!("{word} takes no list of nodes"));
        }
        (NumaPolicyMode::Default | NumaPolicyMode::Local, None) => Vec::new(),
        // All nodes.
        (NumaPolicyMode::Interleave, None) => Vec::new(),
        (_, None | Some("")) => return Err(format!("{word} needs a list of nodes, such as {word}:0")),
        (_, Some(nodes)) => numa_nodes(nodes, notes)?,
    };
    if mode == NumaPolicyMode::Prefer && nodes.len() != 1 {
        return Err("prefer takes exactly one node".to_owned());
    }
    Ok(NumaPolicy { mode, nodes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    fn read(text: &str) -> Result<(NumaPolicyMode, Vec<u32>), String> {
        numa_policy(text, &mut Notes::of(Name::Fio)).map(|policy| (policy.mode, policy.nodes))
    }

    #[test]
    fn modes_and_nodes() {
        assert_eq!(read("local"), Ok((NumaPolicyMode::Local, vec![])));
        assert_eq!(read("bind:0,2-3"), Ok((NumaPolicyMode::Bind, vec![0, 2, 3])));
        assert_eq!(read("prefer:1"), Ok((NumaPolicyMode::Prefer, vec![1])));
        assert_eq!(read("interleave:all"), Ok((NumaPolicyMode::Interleave, vec![])));
        assert_eq!(read("interleave"), Ok((NumaPolicyMode::Interleave, vec![])));
        assert_eq!(read("prefer:0-1"), Err("prefer takes exactly one node".to_owned()));
        assert_eq!(read("bind"), Err("bind needs a list of nodes, such as bind:0".to_owned()));
        assert_eq!(read("default:0"), Err("default takes no list of nodes".to_owned()));
        assert_eq!(
            read("blind:0"),
            Err("not one of default, prefer, bind, interleave, local; did you mean \"bind\"?".to_owned())
        );
    }
}
