//! What a server with `--serve-only` serves: jobs that name anything else are refused in words, before anything is made.
//!
//! The kernel refuses it too, whatever it is called ([`iolite_remote::confine`]). This is what tells the client why.

use iolite_options::engines::{
    Data, E4defragOptions, ExternalOptions, HttpOptions, NbdOptions, NetOptions, Protocol, RadosOptions,
};
use iolite_options::{JobOptions, SentFile, SentJobs};
use iolite_plan::Problem;
use iolite_remote::confine::covers;
use std::path::{Path, PathBuf};

/// What is served, in words.
pub fn words(only: &[PathBuf]) -> String {
    let names: Vec<String> = only.iter().map(|path| path.display().to_string()).collect();
    format!("the server serves nothing but {} (--serve-only)", names.join(" and "))
}

/// What is asked of this machine besides jobs that is not served.
pub fn outside_of_jobs(sent: &SentJobs, only: &[PathBuf]) -> Vec<String> {
    let files = sent.files.iter().filter_map(|file| match file {
        SentFile::There(name) => Some(("--remote-config", Path::new(name))),
        SentFile::Here(_) => None,
    });
    let aux = sent.run.aux_path.iter().map(|path| ("--aux-path", path.as_path()));
    let outside = files.chain(aux).filter(|(_, path)| !covers(only, path));
    outside.map(|(option, path)| format!("{option}={}: {}", path.display(), words(only))).collect()
}

/// What a job names that is not served.
pub fn outside(job: &JobOptions, only: &[PathBuf]) -> Vec<Problem> {
    let mut found: Vec<(&'static str, PathBuf)> = Vec::new();
    let mut strange_uri = false;
    let mut name = |option: &'static str, path: &str| {
        if !path.is_empty() {
            found.push((option, path.into()));
        }
    };
    let is_local = job.chosen_engine().is_none_or(|engine| engine.facets.data == Data::LocalFiles);
    let waits_at_socket = job.engine.of::<NetOptions>().is_some_and(|net| net.protocol == Protocol::Unix);
    if is_local || waits_at_socket {
        job.files.directory.iter().for_each(|path| name("directory", path));
        job.files.filename.iter().for_each(|path| name("filename", path));
        job.files.opendir.iter().for_each(|path| name("opendir", path));
        if job.files.directory.is_empty() && job.files.filename.is_empty() && job.files.opendir.is_none() {
            name("directory", ".");
        }
    }
    // The kernel does not refuse to connect to sockets.
    if let Some(net) = job.engine.of::<NetOptions>().filter(|_| waits_at_socket) {
        name("hostname", &net.hostname);
    }
    // Read while the job file was; the kernel lets every run read more than what is served.
    for (option, text) in job.given_global.iter().chain(&job.given) {
        if let Some(option) = PATTERNS.into_iter().find(|pattern| pattern == option) {
            files_in_pattern(text).for_each(|path| name(option, path));
        }
    }
    job.replay.read_iolog.iter().for_each(|path| name("read_iolog", path));
    job.replay.replay_redirect.iter().for_each(|path| name("replay_redirect", path));
    job.replay.write_iolog.iter().for_each(|path| name("write_iolog", path));
    job.replay.merge_blktrace_file.iter().for_each(|path| name("merge_blktrace_file", path));
    job.buffers.mem_file.iter().for_each(|path| name("mem", path));
    name("dp_scheme", &job.data_placement.dp_scheme);
    if let Some(options) = job.engine.of::<RadosOptions>() {
        name("conf", &options.conf);
    }
    if let Some(options) = job.engine.of::<E4defragOptions>() {
        name("donorname", &options.donorname);
    }
    if let Some(options) = job.engine.of::<ExternalOptions>() {
        name("ioengine", &options.library.to_string_lossy());
    }
    if let Some(options) = job.engine.of::<HttpOptions>() {
        name("http_ca_file", &options.http_ca_file);
        name("http_cert_file", &options.http_cert_file);
        name("http_key_file", &options.http_key_file);
    }
    if let Some(options) = job.engine.of::<NbdOptions>() {
        match nbd_socket(options.uri.reveal()) {
            Ok(socket) => name("uri", socket.unwrap_or_default()),
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

/// The options whose values may name files that become data.
const PATTERNS: [&str; 2] = ["buffer_pattern", "verify_pattern"];

/// The files that a pattern names: what is between apostrophes. (Those in quotation marks may be data; a path is made of them
/// all the same, and refused if it is not served.)
fn files_in_pattern(text: &str) -> impl Iterator<Item = &str> {
    text.split('\'').skip(1).step_by(2)
}

/// The socket that libnbd connects to for this URI. Libnbd reads a URI in more ways than one, and the kernel refuses no
/// socket, so what is written in another way than the plain one is an error.
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
    use super::{files_in_pattern, nbd_socket, outside};
    use iolite_options::JobOptions;
    use iolite_options::engines::{RadosOptions, engine};

    #[test]
    fn what_tells_of_clusters_and_handles_is_a_file_of_this_machine() {
        let served = tempfile::tempdir().unwrap();
        let inside = |name: &str| served.path().join(name).display().to_string();
        let outside_of = |conf: Option<String>, scheme: &str| {
            let mut job = JobOptions { name: "j".into(), ..JobOptions::default() };
            job.choose_engine(engine("rados").unwrap());
            job.data_placement.dp_scheme = scheme.to_owned();
            if let Some(conf) = conf {
                job.engine.of_mut::<RadosOptions>().unwrap().conf = conf;
            }
            let found = outside(&job, &[served.path().canonicalize().unwrap()]);
            found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(outside_of(Some(inside("conf")), &inside("handles")), "");
        let usual = outside_of(None, "");
        assert!(usual.contains("conf=/etc/ceph/ceph.conf: the server serves nothing but "), "{usual}");
        let scheme = outside_of(Some(inside("conf")), "elsewhere/handles");
        assert!(scheme.contains("dp_scheme=elsewhere/handles: the server serves nothing but "), "{scheme}");
    }

    #[test]
    fn files_in_patterns_are_found() {
        let found = |text| files_in_pattern(text).collect::<Vec<_>>();
        assert_eq!(found("0xdead'/etc/passwd'\"x\"'b'%o"), ["/etc/passwd", "b"]);
        assert_eq!(found("0xdeadface"), [""; 0]);
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
