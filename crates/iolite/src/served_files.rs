//! The paths of `--serve-only`: jobs that name anything else are refused before anything is created.
//!
//! The kernel denies access too, by any name ([`iolite_remote::confine`]). The checks here tell the client why.

use iolite_options::engines::NbdOptions;
use iolite_options::{JobOptions, SentFile, SentJobs};
use iolite_plan::Problem;
use iolite_remote::confine::covers;
use std::path::{Path, PathBuf};

/// The served paths, as text.
pub fn words(only: &[PathBuf]) -> String {
    let names: Vec<String> = only.iter().map(|path| path.display().to_string()).collect();
    format!("the server serves nothing but {} (--serve-only)", names.join(" and "))
}

/// The paths outside of jobs (includes, `--aux-path`) that are not served.
pub fn unserved_by_run(sent: &SentJobs, only: &[PathBuf]) -> Vec<String> {
    let files = sent.files.iter().filter_map(|file| match file {
        SentFile::There(name) => Some(("--remote-config", Path::new(name))),
        SentFile::Here(_) => None,
    });
    let aux = sent.run.aux_path.iter().map(|path| ("--aux-path", path.as_path()));
    let outside = files.chain(aux).filter(|(_, path)| !covers(only, path));
    outside.map(|(option, path)| format!("{option}={}: {}", path.display(), words(only))).collect()
}

/// The paths of a job that are not served: those of all options that name files of this machine
/// ([`Definition::files`](iolite_options::definition::Definition::files)), and sockets. The kernel does not refuse
/// connections to sockets. (Nor does it refuse the files of patterns, which are read together with the job file.)
pub fn unserved(job: &JobOptions, only: &[PathBuf]) -> Vec<Problem> {
    let named = job.files_named().into_iter().map(|(option, name)| (option, PathBuf::from(name)));
    let mut found: Vec<(&'static str, PathBuf)> = named.collect();
    let says_where = !job.files.directory.is_empty() || job.files.names_files();
    if job.has_files_here() && !says_where {
        found.push(("directory", ".".into()));
    }
    let mut strange_uri = false;
    if let Some(options) = job.engine.of::<NbdOptions>() {
        match nbd_socket(options.uri.reveal()) {
            Ok(socket) => found.extend(socket.map(|socket| ("uri", socket.into()))),
            Err(()) => strange_uri = true,
        }
    }
    let outside = found.into_iter().filter(|(_, path)| !covers(only, path));
    let told = outside.map(|(option, path)| {
        let shown = match path.to_str() {
            Some(".") => format!("{option}: without one, files are in the directory of the server"),
            _ => format!("{option}={}", path.display()),
        };
        Problem::of(job, option, format!("{shown}: {}", words(only)))
    });
    let strange = strange_uri.then(|| {
        let why = "uri: a server with --serve-only understands nbd://HOST:PORT/EXPORT, nbds:// and \
                   nbd+unix:///EXPORT?socket=FILE, with one socket= and no percent signs or semicolons";
        Problem::of(job, "uri", format!("{why}: {}", words(only)))
    });
    told.chain(strange).collect()
}

/// The socket that libnbd connects to for this URI. Libnbd accepts several spellings of a URI, and the kernel cannot
/// deny access to sockets, so any unusual spelling is an error.
fn nbd_socket(uri: &str) -> Result<Option<&str>, ()> {
    if uri.is_empty() {
        return Ok(None);
    }
    let (scheme, rest) = uri.split_once("://").ok_or(())?;
    let is_plain = !uri.contains(['%', ';', '#']) && !uri.contains(char::is_control);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut sockets = query
        .split('&')
        .filter(|part| part.to_ascii_lowercase().starts_with("socket"))
        .map(|part| part.strip_prefix("socket="));
    match (scheme, sockets.next(), sockets.next()) {
        _ if !is_plain => Err(()),
        ("nbd" | "nbds", None, None) => Ok(None),
        ("nbd+unix" | "nbds+unix", Some(Some(socket)), None)
            if place.starts_with('/') && !socket.is_empty() =>
        {
            Ok(Some(socket))
        }
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{nbd_socket, unserved};
    use iolite_options::engines::{HttpOptions, RadosOptions, Secret, engine, engines};
    use iolite_options::{JobOptions, registry};
    use std::collections::BTreeSet;

    #[test]
    fn cluster_configurations_and_schemes_must_be_served() {
        let served = tempfile::tempdir().unwrap();
        let inside = |name: &str| served.path().join(name).display().to_string();
        let outside_of = |conf: Option<String>, scheme: &str| {
            let mut job = JobOptions { name: "j".into(), ..JobOptions::default() };
            job.choose_engine(engine("rados").unwrap());
            job.data_placement.dp_scheme = scheme.to_owned();
            if let Some(conf) = conf {
                job.engine.of_mut::<RadosOptions>().unwrap().conf = conf;
            }
            let found = unserved(&job, &[served.path().canonicalize().unwrap()]);
            found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(outside_of(Some(inside("conf")), &inside("handles")), "");
        let usual = outside_of(None, "");
        assert!(usual.contains("conf=/etc/ceph/ceph.conf: the server serves nothing but "), "{usual}");
        let scheme = outside_of(Some(inside("conf")), "elsewhere/handles");
        assert!(scheme.contains("dp_scheme=elsewhere/handles: the server serves nothing but "), "{scheme}");
    }

    #[test]
    fn files_with_secrets_are_files_of_this_machine() {
        let mut job = JobOptions { name: "j".into(), ..JobOptions::default() };
        job.choose_engine(engine("http").unwrap());
        job.engine.of_mut::<HttpOptions>().unwrap().http_pass = Secret::File("elsewhere/pass".into());
        let found = unserved(&job, &["/served".into()]);
        let told = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(
            told.contains("http_pass_file=elsewhere/pass: the server serves nothing but /served"),
            "{told}"
        );
    }

    /// Every option whose help mentions a file declares `names_files`, except those listed. Logs go where the run's own
    /// files go.
    #[test]
    fn options_that_name_files_declare_it() {
        let speaks = |help: &str| {
            let help = help.to_lowercase();
            [
                "file of",
                "file with",
                "file that",
                "to this file",
                "this file",
                "files or devices",
                "directory",
                "(pem)",
            ]
            .iter()
            .any(|words| help.contains(words))
        };
        let own = engines().iter().flat_map(|engine| engine.options.iter().copied());
        let silent: BTreeSet<&str> = registry::job_options()
            .chain(own)
            .filter(|option| option.files.is_none() && option.land.is_some() && speaks(option.help))
            .map(|option| option.name)
            .collect();
        // (Chunks are files of HDFS. A suffix, and the breadth of a tree, are parts of names of the job's own files.)
        let known = [
            "chunk_size",
            "file_service_type",
            "hdfsdirectory",
            "http_s3_profile",
            "new_suffix",
            "tree_breadth",
            "zonerange",
        ];
        assert_eq!(silent, BTreeSet::from(known));
    }

    #[test]
    fn only_plain_uris_name_a_socket() {
        for (uri, expected) in [
            ("nbd://host:10809/export", Ok(None)),
            ("nbds://host/?tls-certificates=/served", Ok(None)),
            ("nbd+unix:///?socket=/run/x", Ok(Some("/run/x"))),
            ("nbds+unix:///e?tls-certificates=/k&socket=x", Ok(Some("x"))),
            ("nbd+unix:///?x=1;socket=/run/x", Err(())),
            ("nbd+unix:///?s%6fcket=/run/x", Err(())),
            ("nbd+unix:///?socket=%2Frun%2Fx", Err(())),
            ("nbd+unix:///?socket=fine&socket=/run/x", Err(())),
            ("nbd+unix:///?Socket=/run/x", Err(())),
            ("nbd+unix:///", Err(())),
            ("nbd://host/?socket=/run/x", Err(())),
            ("nbd+vsock://2/", Err(())),
            ("NBD+UNIX:///?socket=/run/x", Err(())),
            ("/run/x", Err(())),
        ] {
            assert_eq!(nbd_socket(uri), expected, "{uri}");
        }
    }
}
