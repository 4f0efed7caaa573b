//! Jobs on the command line of a sweep: `--name=a --filename=f --iodepth=1,4,16`.

use super::load::Case;
use super::{checked, known, shown};
use iolite_sweep::Axis;

/// The places of the jobs' options in messages.
const FILE: &str = "the command line";

/// The axes, and the case with its name; `None` = there is no job.
pub type Split = (Vec<Axis>, Option<(String, Case)>);

/// Splits options into those with several values, which are swept, and the jobs, as in a job file: options before the
/// first `--name` are those of all jobs.
///
/// The values that are swept are given to each job. So with several jobs they have to be options of all jobs, and no job
/// may have a value of its own.
///
/// # Errors
/// An option is unknown, or its values cannot be swept.
pub fn split(given: &[(String, String)]) -> Result<Split, String> {
    let several = given.iter().filter(|(name, _)| name == "name").count() > 1;
    let mut axes: Vec<Axis> = Vec::new();
    let mut first = None;
    let mut text = String::from("[global]\n");
    let mut set: Vec<&str> = Vec::new();
    for (name, values) in given {
        if name == "name" {
            if values.is_empty() || values.contains(['[', ']', ';', '#', '\n', '\r']) {
                return Err(format!("--name={values}: a job has a name without brackets, ; and #"));
            }
            text += &format!("[{values}]\n");
            first.get_or_insert_with(|| values.clone());
            continue;
        }
        let known = known(name)?;
        let axis = Axis::parse(known, values).map_err(|why| format!("--{name}={values}: {why}"))?;
        if let [value] = &axis.values[..] {
            Case::check_value(name, value)?;
            set.push(known);
            text += &format!("{known}={value}\n");
            continue;
        }
        checked(name)?;
        if axes.iter().any(|axis| axis.name == known) {
            return Err(format!("--{name} is given twice; give all values at once: --{name}=1,4"));
        }
        if several && first.is_some() {
            return Err(format!(
                "--{name}={}: with several jobs, an option with several values stands before the first --name, and \
                 holds for all of them",
                shown(name, values)
            ));
        }
        axes.push(axis);
    }
    if let Some(axis) = axes.iter().find(|axis| set.contains(&axis.name.as_str())) {
        return Err(format!(
            "--{0} has several values, which all jobs get, and is given once more",
            axis.name
        ));
    }
    let case = first
        .map(|first| (first, Case { name: String::new(), file: FILE.to_owned(), text, has_lines: false }));
    Ok((axes, case))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Vec<(String, String)> {
        let pair = |word: &str| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        line.split(' ').map(|word| pair(word).expect(word)).collect()
    }

    #[test]
    fn options_with_several_values_are_swept() {
        let (axes, case) =
            split(&options("iodepth=1,4 rw=read name=a bs=4k\\,8k filename=f time_based=1")).unwrap();
        assert_eq!(axes, [Axis::parse("iodepth", "1,4").unwrap()]);
        let (name, case) = case.unwrap();
        assert_eq!((name.as_str(), case.file.as_str()), ("a", FILE));
        assert_eq!(case.text, "[global]\nrw=read\n[a]\nbs=4k,8k\nfilename=f\ntime_based=1\n");
        let (axes, case) = split(&options("bs=4k,8k name=a rw=read name=b rw=write")).unwrap();
        assert_eq!((axes.len(), case.unwrap().1.text.matches("rw=").count()), (1, 2));
        assert!(split(&options("iodepth=1,4")).unwrap().1.is_none());
        for (line, why) in [
            ("name=a iodpeth=1", "did you mean \"--iodepth\"?"),
            ("name=a bs=4k,8k name=b", "stands before the first --name"),
            ("bs=4k,8k name=a bs=16k", "--bs has several values"),
            ("bs=4k,8k name=a blocksize=1k,2k", "is given twice"),
            ("name=a stonewall=0,1", "no values to sweep over"),
            ("name=a filename=a;b", "no ; or #"),
            ("name=a]", "without brackets"),
            ("name=", "a job has a name"),
            ("name=a size=", "an empty value"),
        ] {
            let error = split(&options(line)).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
