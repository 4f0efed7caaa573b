//! The jobs that are compared, as data.

use crate::measure::Measure;

/// One job and the number in its report that is compared.
#[derive(Debug, PartialEq)]
pub struct Case {
    /// How it is chosen on the command line.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The job's options. `{directory}` stands for a fresh directory that is removed afterwards.
    pub job: &'static str,
    /// The number that is compared.
    pub measure: Measure,
}

/// All cases, in the order of the table. The null engine completes each I/O at once: what is left is what
/// the program itself costs.
pub const CASES: &[Case] = &[
    Case {
        name: "null-randread-qd32",
        about: "random reads, 32 deep, no I/O",
        job: "--ioengine=null --thread --size=100G --bs=4k --rw=randread --iodepth=32",
        measure: Measure::Iops,
    },
    Case {
        name: "null-randread-qd1",
        about: "random reads one at a time, no I/O",
        job: "--ioengine=null --thread --size=100G --bs=4k --rw=randread --iodepth=1",
        measure: Measure::Iops,
    },
    Case {
        name: "null-read-qd32",
        about: "sequential reads, 32 deep, no I/O",
        job: "--ioengine=null --thread --size=100G --bs=4k --rw=read --iodepth=32",
        measure: Measure::Iops,
    },
    Case {
        name: "null-randrw-qd32",
        about: "random reads and writes, 32 deep, no I/O",
        job: "--ioengine=null --thread --size=100G --bs=4k --rw=randrw --iodepth=32",
        measure: Measure::Iops,
    },
    Case {
        name: "null-randwrite-qd32",
        about: "random writes, 32 deep, no I/O",
        job: "--ioengine=null --thread --size=100G --bs=4k --rw=randwrite --iodepth=32",
        measure: Measure::Iops,
    },
    Case {
        name: "psync-randread-cpu",
        about: "user CPU per random read of a file in memory",
        job: "--ioengine=psync --thread --directory={directory} --size=256M --bs=4k --rw=randread",
        measure: Measure::UserCpuPerIo,
    },
];

/// The cases whose names contain one of `parts`; all when there are none.
pub fn chosen(parts: &[String]) -> Result<Vec<&'static Case>, String> {
    for part in parts {
        if !CASES.iter().any(|case| case.name.contains(part.as_str())) {
            let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
            return Err(format!("no case named {part}; there are {}", names.join(", ")));
        }
    }
    let wanted =
        |case: &&Case| parts.is_empty() || parts.iter().any(|part| case.name.contains(part.as_str()));
    Ok(CASES.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_chosen_by_parts_of_their_names() {
        assert_eq!(chosen(&[]).unwrap().len(), CASES.len());
        let names: Vec<&str> =
            chosen(&["qd1".into(), "cpu".into()]).unwrap().iter().map(|case| case.name).collect();
        assert_eq!(names, ["null-randread-qd1", "psync-randread-cpu"]);
        assert!(chosen(&["nosuch".into()]).unwrap_err().contains("no case named nosuch"));
    }

    #[test]
    fn names_are_unique() {
        for (at, case) in CASES.iter().enumerate() {
            assert!(CASES[..at].iter().all(|earlier| earlier.name != case.name), "{}", case.name);
        }
    }
}
