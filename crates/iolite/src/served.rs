//! What a server with `--serve-only` serves: jobs that name anything else are refused in words, before anything is made.
//!
//! The kernel refuses it too, whatever it is called ([`iolite_remote::confine`]). This is what tells the client why.

use iolite_options::engines::{
    Data, E4defragOptions, ExternalOptions, HttpOptions, NbdOptions, NetOptions, Protocol, engine,
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
pub fn outside(job: &JobOptions, only: &[PathBuf]) -> Vec<String> {
    let mut found: Vec<(&'static str, PathBuf)> = Vec::new();
    let mut name = |option: &'static str, path: &str| {
        if !path.is_empty() {
            found.push((option, path.into()));
        }
    };
    let is_local = engine(&job.ioengine).is_none_or(|engine| engine.facets.data == Data::LocalFiles);
    let waits_at_socket = job.engine.of::<NetOptions>().is_some_and(|net| net.protocol == Protocol::Unix);
    if is_local || waits_at_socket {
        job.files.directory.iter().for_each(|path| name("directory", path));
        job.files.filename.iter().for_each(|path| name("filename", path));
        job.files.opendir.iter().for_each(|path| name("opendir", path));
        if job.files.directory.is_empty() && job.files.filename.is_empty() && job.files.opendir.is_none() {
            name("directory", ".");
        }
    }
    job.replay.read_iolog.iter().for_each(|path| name("read_iolog", path));
    job.replay.replay_redirect.iter().for_each(|path| name("replay_redirect", path));
    job.replay.write_iolog.iter().for_each(|path| name("write_iolog", path));
    job.replay.merge_blktrace_file.iter().for_each(|path| name("merge_blktrace_file", path));
    job.buffers.mem_file.iter().for_each(|path| name("mem", path));
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
        let query = options.uri.reveal().split_once('?').map_or("", |(_, query)| query);
        let sockets = query.split('&').filter_map(|part| part.strip_prefix("socket="));
        // What is written in another way is not what it looks like.
        sockets.for_each(|path| name("uri", if path.contains('%') { "/" } else { path }));
    }
    let outside = found.into_iter().filter(|(_, path)| !covers(only, path));
    let told = outside.map(|(option, path)| {
        let shown = match path.to_str() {
            Some(".") => format!("{option}: without one, files are in the directory of the server"),
            _ => format!("{option}={}", path.display()),
        };
        Problem::of(job, option, format!("{shown}: {}", words(only))).to_string()
    });
    told.collect()
}
