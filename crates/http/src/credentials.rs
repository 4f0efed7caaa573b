//! Keys of an S3 account, from the environment or the usual files.

use std::fmt;
use std::io;
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
    /// No file has the profile with both keys.
    #[error("{0}")]
    Missing(
        /// What is missing in each file.
        String,
    ),
}

/// Where to look for keys if the job does not give them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
    pub environment: [Option<String>; 3],
    /// `AWS_REGION`, or else `AWS_DEFAULT_REGION`.
    pub environment_region: Option<String>,
    /// The file with profiles: `AWS_SHARED_CREDENTIALS_FILE`, or `~/.aws/credentials`.
    pub file: Option<PathBuf>,
    /// The file with settings, which may have keys as well: `AWS_CONFIG_FILE`, or `~/.aws/config`.
    pub settings: Option<PathBuf>,
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
            .field("settings", &self.settings)
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
        let settings = variable("AWS_CONFIG_FILE").map(PathBuf::from);
        let usual = |name| Some(PathBuf::from(variable("HOME")?).join(".aws").join(name));
        let asked = profile.map(str::to_owned).or_else(|| variable("AWS_PROFILE"));
        // A requested profile takes precedence over the environment.
        let unless_asked = |name| if profile.is_some() { None } else { variable(name) };
        Source {
            environment: ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]
                .map(unless_asked),
            environment_region: unless_asked("AWS_REGION").or_else(|| unless_asked("AWS_DEFAULT_REGION")),
            is_demanded: named.is_some() || settings.is_some() || asked.is_some(),
            file: named.or_else(|| usual("credentials")),
            settings: settings.or_else(|| usual("config")),
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
        let mut missing = Vec::new();
        for (file, kind) in self.files() {
            let shown = file.display();
            let why = match std::fs::read_to_string(file) {
                Ok(text) => match Profile::of(&text, kind, &self.profile) {
                    Some(profile) => match profile.credentials(&self.profile) {
                        Ok(found) => return Ok(Some(found)),
                        Err(why) => why,
                    },
                    None => format!("there is no profile [{}]", kind.heading(&self.profile)),
                },
                Err(error) if error.kind() == io::ErrorKind::NotFound => error.to_string(),
                Err(error) => {
                    return Err(CredentialsError::Unreadable {
                        file: shown.to_string(),
                        why: error.to_string(),
                    });
                }
            };
            missing.push(format!("{shown}: {why}"));
        }
        match self.is_demanded {
            true => Err(CredentialsError::Missing(missing.join("; "))),
            false => Ok(None),
        }
    }

    /// The region of the environment, or else of the profile; `None` = neither has one, or no file can be read.
    pub fn region(&self) -> Option<String> {
        self.environment_region.clone().or_else(|| self.region_of_profile())
    }

    fn region_of_profile(&self) -> Option<String> {
        self.files().find_map(|(file, kind)| {
            let text = std::fs::read_to_string(file).ok()?;
            Profile::of(&text, kind, &self.profile)?.region
        })
    }

    /// The files, the one that takes precedence first.
    fn files(&self) -> impl Iterator<Item = (&Path, Kind)> {
        let files = [(&self.file, Kind::Credentials), (&self.settings, Kind::Settings)];
        files.into_iter().filter_map(|(file, kind)| Some((file.as_deref()?, kind)))
    }
}

/// The kind of a file with profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Credentials,
    Settings,
}

impl Kind {
    /// The heading of a profile.
    fn heading(self, profile: &str) -> String {
        match self {
            Kind::Settings if profile != "default" => format!("profile {profile}"),
            _ => profile.to_owned(),
        }
    }

    /// Whether this is the heading of a profile.
    fn is_heading(self, heading: &str, profile: &str) -> bool {
        let words = || heading.split_whitespace();
        words().eq([profile]) && (self == Kind::Credentials || profile == "default")
            || self == Kind::Settings && words().eq(["profile", profile])
    }
}

/// What a file says about a profile.
#[derive(Default)]
struct Profile {
    id: Option<String>,
    secret: Option<String>,
    token: Option<String>,
    region: Option<String>,
}

impl Profile {
    /// The profile in the text of a file; `None` = it is not there.
    fn of(text: &str, kind: Kind, profile: &str) -> Option<Profile> {
        let mut found: Option<Profile> = None;
        let mut is_here = false;
        for line in text.lines() {
            // An indented line belongs to a setting above it.
            if kind == Kind::Settings && line.starts_with([' ', '\t']) {
                continue;
            }
            let line = line.trim();
            if line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                is_here = kind.is_heading(name, profile);
                if is_here {
                    found.get_or_insert_default();
                }
            } else if let Some((key, value)) = line.split_once('=')
                && let Some(found) = found.as_mut().filter(|_| is_here)
            {
                let place = match key.trim() {
                    "aws_access_key_id" => &mut found.id,
                    "aws_secret_access_key" => &mut found.secret,
                    "aws_session_token" => &mut found.token,
                    "region" => &mut found.region,
                    _ => continue,
                };
                *place = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
            }
        }
        found
    }

    /// The keys, or which one is missing.
    fn credentials(self, profile: &str) -> Result<Credentials, String> {
        let missing = |key| format!("[{profile}] has no {key}");
        let id = self.id.ok_or_else(|| missing("aws_access_key_id"))?;
        let secret = self.secret.ok_or_else(|| missing("aws_secret_access_key"))?;
        Ok(Credentials { id, secret, token: self.token })
    }
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
        let source =
            Source { file: Some(file), is_demanded, profile: profile.to_owned(), ..Source::default() };
        (directory, source)
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
    fn demanded_credentials_must_exist() {
        for (profile, why) in
            [("none", "there is no profile [none]"), ("half", "[half] has no aws_secret_access_key")]
        {
            let (_kept, asked) = source(Some(FILE), profile, true);
            assert!(asked.credentials().unwrap_err().to_string().ends_with(why));
            assert_eq!(Source { is_demanded: false, ..asked }.credentials(), Ok(None));
        }
        let (_kept, asked) = source(None, "default", true);
        assert!(matches!(asked.credentials(), Err(CredentialsError::Missing(_))));
        assert_eq!(Source { is_demanded: false, ..asked }.credentials(), Ok(None));
    }

    #[test]
    fn settings_may_have_keys_and_name_the_region() {
        let (directory, mut source) = source(Some(FILE), "other", true);
        let settings = directory.path().join("config");
        let text = "[default]\nregion = r0\ns3 =\n  region = nested\naws_access_key_id=A2\n[profile other]\n\
                    region=r1\n[ profile  third ]\naws_access_key_id = C\naws_secret_access_key = sc\n\
                    aws_session_token = tc\nregion = r3\n[third]\nregion = none\n";
        std::fs::write(&settings, text).unwrap();
        source.settings = Some(settings.clone());
        let of = |profile: &str| Source { profile: profile.to_owned(), ..source.clone() };
        let found = of("third").credentials().unwrap().unwrap();
        assert_eq!((&*found.id, &*found.secret, found.token.as_deref()), ("C", "sc", Some("tc")));
        assert_eq!(of("third").region().as_deref(), Some("r3"));
        // If both files have keys, those of the keys file are used.
        assert_eq!(of("default").credentials().unwrap().unwrap().id, "A");
        assert_eq!(of("default").region().as_deref(), Some("r0"));
        assert_eq!(of("other").region().as_deref(), Some("x"));
        let why = of("none").credentials().unwrap_err().to_string();
        let said = format!(
            ": there is no profile [none]; {}: there is no profile [profile none]",
            settings.display()
        );
        assert!(why.ends_with(&said), "{why}");
        assert_eq!(of("none").region(), None);
        let (_kept, neither) = super::tests::source(None, "default", false);
        assert_eq!((neither.credentials(), neither.region()), (Ok(None), None));
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
