//! The idleness of the CPUs as text.

use iolite_stats::IdleReport;
use std::io::{self, Write};

/// Writes the lines about idleness.
pub fn write(idleness: &IdleReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nCPU idleness:")?;
    writeln!(out, "  system: {:3.2}%", idleness.system())?;
    if idleness.per_cpu {
        let shares: Vec<String> = idleness.cpus.iter().map(|cpu| format!("{:3.2}%", cpu.percent)).collect();
        writeln!(out, "  percpu: {}", shares.join(", "))?;
    }
    write_unit(idleness, out)
}

/// The result of a calibration as text: the time that a unit of work takes.
pub fn calibration(idleness: &IdleReport) -> String {
    let mut text = b"CPU idleness:\n".to_vec();
    // Writing to memory cannot fail.
    let _ = write_unit(idleness, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn write_unit(idleness: &IdleReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "  unit work: mean={:3.2}us, stddev={:3.2}",
        idleness.unit_mean(),
        idleness.unit_deviation()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_stats::IdleCpu;

    /// The sample of fio 3.42 (7.11 is the mean of 7.10 and 7.12).
    #[test]
    fn lines() {
        let cpu = |cpu, percent, unit_us| IdleCpu { cpu, percent, unit_us };
        let mut idleness =
            IdleReport { cpus: vec![cpu(0, 23.57, 7.1029), cpu(1, 40.99, 7.1171)], per_cpu: true };
        let mut text = Vec::new();
        write(&idleness, &mut text).unwrap();
        let unit = "  unit work: mean=7.11us, stddev=0.01\n";
        let expected = format!("\nCPU idleness:\n  system: 32.28%\n  percpu: 23.57%, 40.99%\n{unit}");
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        idleness.per_cpu = false;
        text = Vec::new();
        write(&idleness, &mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), format!("\nCPU idleness:\n  system: 32.28%\n{unit}"));
        assert_eq!(calibration(&idleness), format!("CPU idleness:\n{unit}"));
    }
}
