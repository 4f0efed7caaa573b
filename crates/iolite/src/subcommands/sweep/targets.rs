//! Targets that differ in several options: a mounted directory, a server by its engine.

use super::checked;
use iolite_options::commands::Asked;
use iolite_sweep::{Axis, Point};

/// The name of the axis of targets.
pub const AXIS: &str = "target";

/// A place to measure, with its options.
pub struct Target {
    pub name: String,
    pub settings: Point,
}

/// The targets that were named: `NAME: option=value option=value`.
pub fn read(asked: &Asked) -> Result<Vec<Target>, String> {
    let mut targets: Vec<Target> = Vec::new();
    for text in asked.values("target") {
        let told = |why: String| format!("--target={}: {why}", shown(text));
        let target = one(text).map_err(told)?;
        if targets.iter().any(|known| known.name == target.name) {
            return Err(told("this name is given twice".to_owned()));
        }
        targets.push(target);
    }
    Ok(targets)
}

/// Only the name: the options may contain secrets.
fn shown(text: &str) -> String {
    text.split_once(':').map_or_else(|| "…".to_owned(), |(name, _)| format!("{name}: …"))
}

fn one(text: &str) -> Result<Target, String> {
    let named =
        text.split_once(':').filter(|(name, _)| !name.trim().is_empty() && !name.contains(['=', '/']));
    let Some((name, words)) = named else {
        return Err(
            "needs a name, a colon, and options: 'nfs: ioengine=nfs nfs_url=nfs://server/export'".to_owned()
        );
    };
    let mut settings = Point::new();
    for word in words.split_whitespace() {
        let Some((option, value)) = word.split_once('=') else {
            return Err(format!("{word}: options have the form option=value, without blanks in the value"));
        };
        let option = checked(option)?;
        if settings.iter().any(|(known, _)| known == option) {
            return Err(format!("{option} is given twice"));
        }
        settings.push((option.to_owned(), value.to_owned()));
    }
    if settings.is_empty() {
        return Err("there are no options behind the name".to_owned());
    }
    Ok(Target { name: name.trim().to_owned(), settings })
}

/// The axis of these targets; `None` = no targets.
///
/// # Errors
/// Another axis sets an option of a target.
pub fn axis(targets: &[Target], others: &[Axis]) -> Result<Option<Axis>, String> {
    for target in targets {
        if let Some((name, _)) =
            target.settings.iter().find(|(name, _)| others.iter().any(|axis| axis.name == *name))
        {
            return Err(format!("--{name}: target {} sets it as well", target.name));
        }
    }
    let values = targets.iter().map(|target| target.name.clone()).collect();
    Ok((!targets.is_empty()).then(|| Axis { name: AXIS.to_owned(), values }))
}

/// The settings of a point, with its target replaced by the target's options.
pub fn settings(values: &Point, targets: &[Target]) -> Point {
    let of = |(name, value): &(String, String)| match targets
        .iter()
        .find(|target| name == AXIS && target.name == *value)
    {
        Some(target) => target.settings.clone(),
        None => vec![(name.clone(), value.clone())],
    };
    values.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_name_and_options() {
        let target = one("s3: ioengine=http http_host=h:9 filename=/b/x").unwrap();
        assert_eq!((target.name.as_str(), target.settings.len()), ("s3", 3));
        assert_eq!(target.settings[1], ("http_host".to_owned(), "h:9".to_owned()));
        for (text, why) in [
            ("", "needs a name"),
            ("ioengine=nfs", "needs a name"),
            ("ioengine=nfs nfs_url=nfs://h/e", "needs a name"),
            (": bs=4k", "needs a name"),
            ("a:", "there are no options"),
            ("a: direct", "direct: options have the form"),
            ("a: bs=4k bs=8k", "bs is given twice"),
            ("a: iodpeth=3", "unknown option --iodpeth; did you mean \"--iodepth\"?"),
            ("a: name=x", "no values to sweep"),
        ] {
            let error = one(text).err().unwrap();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_point_has_the_options_of_its_target() {
        let targets = [one("a: directory=x").unwrap(), one("b: ioengine=null size=1m").unwrap()];
        let axis = axis(&targets, &[]).unwrap().unwrap();
        assert_eq!(axis.values, ["a", "b"]);
        let point = vec![("bs".to_owned(), "4k".to_owned()), (AXIS.to_owned(), "b".to_owned())];
        let names: Vec<String> = settings(&point, &targets).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["bs", "ioengine", "size"]);
        let other = Axis { name: "size".to_owned(), values: vec!["1g".to_owned()] };
        assert!(super::axis(&targets, &[other]).unwrap_err().contains("--size: target b sets it"));
    }
}
