//! How machines protect their TCP connections to each other: by keys, unless `--insecure` was given.

use crate::console;
use iolite_options::Name;
use iolite_remote::INSECURE;
use iolite_remote::keys::{self, Keys, Role};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The file of keys for TCP connections; `None` = `--insecure` was given. The command line overrides the environment,
/// and the environment overrides the default place.
///
/// # Errors
/// Neither keys nor `--insecure` were given, or both were.
pub fn keys(role: Role, file: Option<&Path>, insecure: bool) -> Result<Option<PathBuf>, String> {
    decide(role, file, insecure, &|name| std::env::var_os(name))
}

/// How long before their expiry keys cause a warning.
const SOON: Duration = Duration::from_secs(30 * 86_400);

/// Warns of keys that expire soon. All keys of a set are made on the same day, so all machines stop working at once.
/// Under the name `fio` nothing is printed, because this is no failure.
pub fn warn_of_end(name: Name, keys: &Keys) {
    if !name.is_strict() && keys.until <= SystemTime::now() + SOON {
        let (file, until) = (keys.file.display(), keys::date(keys.until));
        let words = "renew them where they were made (iolite keys renew), and copy the files again";
        console::print_error(&format!("{name}: warning: {file}: the keys expire on {until}; {words}\n"));
    }
}

fn decide(
    role: Role,
    file: Option<&Path>,
    insecure: bool,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<PathBuf>, String> {
    let absolute = |path: &Path| {
        std::path::absolute(path).map(Some).map_err(|error| format!("{}: {error}", path.display()))
    };
    match (file, insecure) {
        (Some(_), true) => return Err("--keys and --insecure exclude each other".to_owned()),
        (Some(file), false) => return absolute(file),
        (None, true) => return Ok(None),
        (None, false) => {}
    }
    let file = variable(keys::VARIABLE).filter(|value| !value.is_empty());
    match (file, variable(INSECURE).is_some_and(|value| value == "1")) {
        (Some(_), true) => return Err(format!("{} and {INSECURE}=1 exclude each other", keys::VARIABLE)),
        (Some(file), false) => return absolute(Path::new(&file)),
        (None, true) => return Ok(None),
        (None, false) => {}
    }
    let usual = keys::directory(variable).map(|directory| directory.join(role.file_name()));
    if let Some(file) = usual.as_ref().filter(|file| file.symlink_metadata().is_ok()) {
        return Ok(Some(file.clone()));
    }
    let file = role.file_name();
    let ways = format!("--keys=FILE, or {}", keys::VARIABLE);
    let place = match usual {
        Some(place) => format!("copy {file} to {} here, or name it ({ways})", place.display()),
        // For example in a unit of systemd.
        None => format!(
            "name {file} ({ways}; there is no default place, because XDG_CONFIG_HOME and HOME are not set)"
        ),
    };
    let over_ssh = match role {
        Role::Agent => "",
        _ => "; or have ssh start the server, --client=ssh:HOST",
    };
    Err(format!(
        "there are no keys for TCP here, and without them whoever reaches the port could run jobs, and read and destroy data, \
         as the user of the server. Make some (iolite keys new), and {place}; or use a socket, sock:PATH (ssh can forward it: \
         ssh -L PATH:PATH HOST){over_ssh}; or, on a network where everybody is trusted, say --insecure (or {INSECURE}=1) at both ends"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_goes_before_the_environment() {
        let of = |file: Option<&str>, insecure, variables: &[(&str, &str)]| {
            let found = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
            };
            decide(Role::Agent, file.map(Path::new), insecure, &found)
        };
        let both = [("IOLITE_KEYS", "/e"), ("IOLITE_INSECURE", "1")];
        assert_eq!(of(Some("/k"), false, &both), Ok(Some("/k".into())));
        assert_eq!(of(None, true, &both), Ok(None));
        assert!(of(Some("/k"), true, &[]).unwrap_err().contains("exclude"));
        assert!(of(None, false, &both).unwrap_err().contains("exclude"));
        assert_eq!(of(None, false, &both[..1]), Ok(Some("/e".into())));
        assert_eq!(of(None, false, &both[1..]), Ok(None));
        assert!(of(None, false, &[("IOLITE_INSECURE", "yes")]).unwrap_err().contains("sock:PATH"));
        let home = tempfile::tempdir().unwrap();
        let variables = [("XDG_CONFIG_HOME", home.path().to_str().unwrap())];
        let none = of(None, false, &variables).unwrap_err();
        let usual = home.path().join("iolite/agents.keys");
        assert!(none.contains("iolite keys new") && none.contains(usual.to_str().unwrap()), "{none}");
        let nowhere = of(None, false, &[]).unwrap_err();
        assert!(nowhere.contains("there is no default place"), "{nowhere}");
        std::fs::create_dir(home.path().join("iolite")).unwrap();
        std::fs::write(&usual, "").unwrap();
        assert_eq!(of(None, false, &variables), Ok(Some(usual)));
    }
}
