//! What NVMe namespaces, and the commands that are passed through to them, do not allow.

use iolite_host::{Machine, Namespace};
use iolite_options::JobOptions;
use iolite_options::engines::{EngineInfo, Target};
use iolite_types::BlockSize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What stands in the way: the option to blame, and why.
pub(crate) fn obstacles(
    options: &JobOptions,
    engine: &EngineInfo,
    names: &BTreeSet<PathBuf>,
    machine: &dyn Machine,
) -> Vec<(&'static str, String)> {
    if engine.facets.target != Target::Nvme {
        return Vec::new();
    }
    // A namespace that does not tell is told about when its size is asked for.
    let told = |name: &PathBuf| Some((name.clone(), machine.namespace(name).ok()??));
    let namespaces = names.iter().filter_map(told);
    namespaces.filter_map(|(name, namespace)| of_namespace(options, &name, &namespace)).collect()
}

fn of_namespace(options: &JobOptions, name: &Path, namespace: &Namespace) -> Option<(&'static str, String)> {
    let name = name.display();
    let format = namespace.format;
    if format.metadata > 0 {
        let message = format!(
            "{name}: its blocks of {} bytes have {} bytes of metadata, which is not supported yet; nvme format gives it a \
             format without",
            format.data, format.metadata
        );
        return Some(("filename", message));
    }
    let block = u64::from(format.data);
    let is_whole = |size: &u64| size.is_multiple_of(block);
    let directions = options.pattern.rw.directions().filter(|_| !options.is_replay());
    let odd = directions
        .flat_map(|direction| sizes(&options.block_size(direction)))
        .find(|size| !is_whole(size))?;
    let message = format!("bs={odd}: {name} has blocks of {block} bytes, and commands are about whole ones");
    Some(("bs", message))
}

/// The sizes that a job says.
fn sizes(size: &BlockSize) -> Vec<u64> {
    match size {
        BlockSize::Fixed(size) => vec![*size],
        BlockSize::Range(low, high) => vec![*low, *high],
        BlockSize::Split(split) => split.iter().map(|&(size, _)| size).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::{Format, MadeUp};
    use iolite_options::engines::engine;

    fn told(format: Format, change: impl FnOnce(&mut JobOptions)) -> Vec<String> {
        let namespace = Namespace { number: 1, blocks: 1 << 20, format, optional: 0 };
        let machine = MadeUp::new().with_namespace("/dev/ng0n1", namespace);
        let entry = engine("io_uring_cmd").unwrap();
        let mut options = JobOptions::default();
        options.choose_engine(entry);
        change(&mut options);
        let names = BTreeSet::from([PathBuf::from("/dev/ng0n1")]);
        obstacles(&options, entry, &names, &machine).into_iter().map(|(_, message)| message).collect()
    }

    #[test]
    fn commands_are_about_whole_blocks() {
        let plain = Format { data: 4096, metadata: 0, extended: false, protection: None };
        assert_eq!(told(plain, |_| ()), [""; 0]);
        assert_eq!(
            told(plain, |o| o.pattern.bs.values = [512; 3]),
            ["bs=512: /dev/ng0n1 has blocks of 4096 bytes, and commands are about whole ones"]
        );
        let [message] = &told(Format { metadata: 8, ..plain }, |_| ())[..] else { panic!("one") };
        assert!(message.contains("have 8 bytes of metadata, which is not supported yet"), "{message}");
    }
}
