//! Keys of an S3 account, from the environment or the usual files.

use std::fmt;
use std::path::{Path, PathBuf};

/// Keys of an S3 account.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The access key, which is not secret.
    pub id: String,
    /// The secret key.
    pub secret: String,
    /// The session token of temporary keys.
    pub token: Option<String>,
}

/// Debug output contains no secrets.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({}, …)", self.id)
    }
}

/// Why keys cannot be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("{file}: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// The system's error message.
        why: String,
    },
    /// The file does not have the profile, or the profile lacks a key.
    #[error("{file}: {what}")]
    Incomplete {
        /// The file.
        file: String,
        /// What is missing.
        what: String,
    },
}

/// Where to look for keys if the job does not give them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
    pub environment: [Option<String>; 3],
    /// The file with profiles: `AWS_SHARED_CREDENTIALS_FILE`, or `~/.aws/credentials`.
    pub file: Option<PathBuf>,
    /// The user named the file or the profile, so keys must be found there.
    pub is_demanded: bool,
    /// The profile: the requested one, or else `AWS_PROFILE`, or else `default`.
    pub profile: String,
}

/// Debug output contains no secrets.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("file", &self.file)
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// The environment and files of this process, with the requested profile or the usual one.
    pub fn of_process(profile: Option<&str>) -> Source {
        let variable = |name| std::env::var(name).ok();
        // (Values that come from a file may end with a carriage return.)
        let variable =
            |name| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let named = variable("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from);
        let asked = profile.map(str::to_owned).or_else(|| variable("AWS_PROFILE"));
        // A requested profile takes precedence over keys in the environment.
        let environment = match profile {
            Some(_) => [None, None, None],
            None => [
                variable("AWS_ACCESS_KEY_ID"),
                variable("AWS_SECRET_ACCESS_KEY"),
                variable("AWS_SESSION_TOKEN"),
            ],
        };
        Source {
            environment,
            is_demanded: named.is_some() || asked.is_some(),
            file: named.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".aws/credentials"))),
            profile: asked.unwrap_or_else(|| "default".to_owned()),
        }
    }

    /// Looks for the keys; `None` = there are none.
    ///
    /// # Errors
    /// The file cannot be read, or the user named the file or the profile and there are no keys.
    pub fn credentials(&self) -> Result<Option<Credentials>, CredentialsError> {
        if let [Some(id), Some(secret), token] = &self.environment {
            return Ok(Some(Credentials { id: id.clone(), secret: secret.clone(), token: token.clone() }));
        }
        let Some(file) = &self.file else { return Ok(None) };
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !self.is_demanded => {
                return Ok(None);
            }
            Err(error) => {
                let (file, why) = (file.display().to_string(), error.to_string());
                return Err(CredentialsError::Unreadable { file, why });
            }
        };
        match of_profile(&text, &self.profile) {
            Ok(found) => Ok(Some(found)),
            Err(_) if !self.is_demanded => Ok(None),
            Err(what) => Err(incomplete(file, what)),
        }
    }
}

fn incomplete(file: &Path, what: String) -> CredentialsError {
    CredentialsError::Incomplete { file: file.display().to_string(), what }
}

/// The keys of a profile in the text of a file with `[PROFILE]` sections.
fn of_profile(text: &str, profile: &str) -> Result<Credentials, String> {
    let mut is_here = false;
    let mut was_here = false;
    let [mut id, mut secret, mut token] = [None, None, None];
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_here = name.trim() == profile;
            was_here |= is_here;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_here) {
            let place = match key.trim() {
                "aws_access_key_id" => &mut id,
                "aws_secret_access_key" => &mut secret,
                "aws_session_token" => &mut token,
                _ => continue,
            };
            *place = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
        }
    }
    if !was_here {
        return Err(format!("there is no profile [{profile}]"));
    }
    let missing = |key| format!("[{profile}] has no {key}");
    let id = id.ok_or_else(|| missing("aws_access_key_id"))?;
    let secret = secret.ok_or_else(|| missing("aws_secret_access_key"))?;
    Ok(Credentials { id, secret, token })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# two accounts\n[default]\naws_access_key_id = A\naws_secret_access_key=sa/+=\n\n[other]\n\
                        aws_access_key_id=B\naws_secret_access_key = sb\naws_session_token = t\nregion = x\n[half]\n\
                        aws_access_key_id=C\n";

    fn source(text: Option<&str>, profile: &str, is_demanded: bool) -> (tempfile::TempDir, Source) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("credentials");
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let profile = profile.to_owned();
        (directory, Source { environment: [None, None, None], file: Some(file), is_demanded, profile })
    }

    #[test]
    fn profiles_have_their_own_keys() {
        let (_kept, default) = source(Some(FILE), "default", false);
        let found = default.credentials().unwrap().unwrap();
        assert_eq!((&*found.id, &*found.secret, found.token), ("A", "sa/+=", None));
        let (_kept, other) = source(Some(FILE), "other", true);
        let found = other.credentials().unwrap().unwrap();
        assert_eq!((&*found.id, &*found.secret, found.token.as_deref()), ("B", "sb", Some("t")));
        assert!(!format!("{:?}", other.credentials()).contains("sb"));
    }

    #[test]
    fn what_was_asked_for_has_to_be_there() {
        for (profile, why) in
            [("none", "there is no profile [none]"), ("half", "[half] has no aws_secret_access_key")]
        {
            let (_kept, asked) = source(Some(FILE), profile, true);
            assert!(asked.credentials().unwrap_err().to_string().ends_with(why));
            assert_eq!(Source { is_demanded: false, ..asked }.credentials(), Ok(None));
        }
        let (_kept, asked) = source(None, "default", true);
        assert!(matches!(asked.credentials(), Err(CredentialsError::Unreadable { .. })));
        assert_eq!(Source { is_demanded: false, ..asked }.credentials(), Ok(None));
    }

    #[test]
    fn the_environment_comes_first() {
        let (_kept, mut both) = source(Some(FILE), "default", false);
        both.environment = [Some("E".into()), Some("se".into()), None];
        assert_eq!(both.credentials().unwrap().unwrap().id, "E");
        both.environment[1] = None;
        assert_eq!(both.credentials().unwrap().unwrap().id, "A", "an incomplete pair of keys does not count");
    }
}
