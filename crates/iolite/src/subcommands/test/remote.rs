//! Targets that a URL names: storage of servers, which jobs reach through an engine.

use super::cases::{Case, Pace, Place};
use crate::subcommands::performer;
use iolite_engine::{Storage, in_child_process_with_progress};
use iolite_engines::storage_of;
use iolite_findings::Role;
use iolite_host::{Machine, ThisMachine};
use iolite_options::engines::masked;
use iolite_types::describe_error;
use std::io;
use std::path::{Path, PathBuf};

/// How the names begin that a test makes on a server: of files, and of objects, which can be listed below a directory.
const FILE: &str = "iolite-test.";
const OBJECT: &str = "iolite-test/";
/// The server of S3, if the environment has no other.
const S3_HOST: &str = "s3.amazonaws.com";
/// The environment variables that name the server of S3, as in the tools of AWS.
const S3_ENDPOINTS: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];
/// The environment variable with the password of a user of WebDAV.
const PASSWORD: &str = "IOLITE_HTTP_PASS";
/// The parts in which large objects are sent.
const PART: u64 = 8 << 20;
/// The size of the objects of a pool, which is that of most clients (an OSD takes at most 128 MiB, and one object is at one place), and
/// how many there are: a small cluster must not be filled by a test.
pub const POOL_OBJECT: u64 = 4 << 20;
pub const POOL_OBJECTS: u64 = 64;
/// More than a block of any object has.
const EACH: u64 = u32::MAX as u64;
/// The objects of each size: name, bytes, and how many there are.
const OBJECTS: [(&str, u64, u64); 3] = [("4k", 4 << 10, 256), ("1m", 1 << 20, 64), ("64m", 64 << 20, 1)];

/// How the storage is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One disk, whose data belongs to somebody.
    Disk,
    /// Files, or objects of which parts can be read and written: the test makes one of its own.
    File,
    /// Objects that are read and written as a whole: the test makes some of its own.
    Objects,
}

/// Storage of a server.
#[derive(Clone, Debug)]
pub struct Remote {
    /// What it is, in a few words.
    pub words: &'static str,
    pub layout: Layout,
    /// The engine that reaches it.
    pub engine: &'static str,
    /// The options that say where it is.
    pub options: Vec<(&'static str, String)>,
    /// It speaks S3: large objects are sent in parts, and names can be listed by the thousand.
    pub is_s3: bool,
    /// Older versions of the names are somebody's, and stay when names are removed.
    pub has_older: bool,
    /// Where own names are made: what stands before them.
    pub place: String,
    /// How often a request over HTTP is repeated. A busy store asks for patience, also when what it has is to be removed.
    retries: u32,
    /// What stands in the names of this test: at random, so that no test uses those of another one.
    pub number: String,
}

impl Remote {
    /// The storage that a URL names; `None` = this is no URL of a server.
    pub fn of(url: &str) -> Option<Result<Remote, String>> {
        let (scheme, rest) = url.split_once(':')?;
        let remote = |words, layout, engine, options, place: &str| Remote {
            words,
            layout,
            engine,
            options,
            is_s3: scheme == "s3",
            has_older: false,
            place: place.to_owned(),
            retries: 8,
            number: format!("{:016x}", ThisMachine::new().random()),
        };
        let behind = rest.strip_prefix("//");
        let found = match (scheme, behind) {
            ("nbd" | "nbds" | "nbd+unix" | "nbds+unix", Some(_)) => {
                Ok(remote("NBD export", Layout::Disk, "nbd", vec![("uri", url.to_owned())], ""))
            }
            ("iscsi", Some(_)) => Ok(remote(
                "iSCSI disk",
                Layout::Disk,
                "libiscsi",
                vec![("filename", url.replace(':', "\\:"))],
                "",
            )),
            ("rbd", None) => match rest.split_once('/') {
                Some((pool, image)) if !pool.is_empty() && !image.is_empty() => {
                    let options = vec![("pool", pool.to_owned()), ("rbdname", image.to_owned())];
                    Ok(remote("RBD image", Layout::Disk, "rbd", options, ""))
                }
                _ => Err("an image is named rbd:POOL/IMAGE".to_owned()),
            },
            ("rados", None) if !rest.is_empty() && !rest.contains('/') => {
                let mut options = vec![("pool", rest.to_owned())];
                // As the tools of Ceph do. (The engine does not look there, because that of fio does not.)
                options.extend(std::env::var("CEPH_CONF").ok().map(|path| ("conf", path)));
                Ok(remote("pool of RADOS", Layout::File, "rados", options, ""))
            }
            ("rados", _) => Err("a pool is named rados:POOL".to_owned()),
            ("nfs", Some(_)) => {
                Ok(remote("NFS export", Layout::File, "nfs", vec![("nfs_url", url.to_owned())], ""))
            }
            ("s3", Some(rest)) => s3(rest)
                .map(|(options, place)| remote("bucket of S3", Layout::Objects, "http", options, &place)),
            ("http" | "https", Some(rest)) => webdav(rest, scheme == "https").map(|(options, place)| {
                remote("directory of WebDAV", Layout::Objects, "http", options, &place)
            }),
            ("rbd" | "nbd" | "nfs" | "s3" | "iscsi" | "http" | "https", _) => {
                Err(format!("this is no URL of that kind, which looks like {}", example(scheme)))
            }
            _ => return None,
        };
        Some(found.and_then(Remote::named))
    }

    /// This storage, if job files can name it.
    fn named(self) -> Result<Remote, String> {
        let is_other = |letter: &char| letter.is_control() || matches!(letter, ';' | '#');
        // Own names begin with the place, and stand behind `filename=`.
        let in_name = |letter: &char| is_other(letter) || matches!(letter, ':' | '$' | '"' | '\\');
        let of_place = self.place.chars().find(in_name).map(|letter| ("it", letter));
        let of_value = |(option, value): &(&str, String)| {
            let what = if *option == "conf" { "CEPH_CONF" } else { "it" };
            let variable = value.contains("${").then_some('$');
            Some((what, value.chars().find(is_other).or(variable)?))
        };
        match of_place.or_else(|| self.options.iter().find_map(of_value)) {
            Some((what, letter)) => Err(format!(
                "a job file would take {letter:?} in {what} for something else; use a name without it"
            )),
            None => Ok(self),
        }
    }

    /// Asks the storage, which gets the name of the disk if it is one. `block`: the size of objects, where each is a block;
    /// [`EACH`]: about each object.
    fn ask<T: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        block: u64,
        ask: impl FnOnce(&mut dyn Storage, &mut dyn FnMut(), &Path) -> io::Result<T>,
    ) -> Result<T, String> {
        let is_whole = self.is_s3 && block > PART;
        let whole = if is_whole { "http_object_mode=range\n" } else { "" };
        // (Names are the test's own, so all versions of them are.)
        let all = if self.is_s3 && !self.has_older { "http_s3_delete_versions=1\n" } else { "" };
        let options: String = self.options.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        let patience = match self.engine {
            "http" => format!("http_retries={}\n", self.retries),
            _ => String::new(),
        };
        let name = if self.layout == Layout::Disk { "" } else { "filename=x\n" };
        let text = format!(
            "[x]\nioengine={}\n{name}{options}{whole}{all}{patience}bs={}\n",
            self.engine,
            block.clamp(512, 64 << 20)
        );
        let jobs = performer::jobs(&text)?;
        let job = jobs.first().ok_or("there is no job")?;
        let config = iolite_plan::resolve::storage_config(job);
        // (Passwords in names are options by now.)
        let disk = PathBuf::from(job.files.filename.first().map_or("", String::as_str));
        let asked = in_child_process_with_progress(&job.ioengine, job.engine.patience_us(), |progress| {
            let mut storage = storage_of(&job.ioengine, &config)?;
            Ok(ask(&mut *storage, progress, &disk).map_err(|error| describe_error(&error)))
        });
        asked.map_err(|error| error.to_string())?
    }

    /// The bytes of a disk.
    pub fn size(&self) -> Result<u64, String> {
        let size = self.ask(0, |storage, _, disk| storage.size(disk))?;
        size.ok_or_else(|| "the server does not know its size".to_owned())
    }

    /// The data is in many objects.
    pub fn is_pool(&self) -> bool {
        self.engine == "rados"
    }

    /// How own names begin.
    fn prefix(&self) -> &'static str {
        if self.layout == Layout::Objects { OBJECT } else { FILE }
    }

    /// Own names with this number.
    fn names(&self, number: &str) -> Vec<(u64, PathBuf)> {
        let base = format!("{}{}{number}", self.place, self.prefix());
        match self.layout {
            Layout::Disk => Vec::new(),
            Layout::File if self.is_pool() => {
                (0..POOL_OBJECTS).map(|one| (0, format!("{base}.{one}").into())).collect()
            }
            Layout::File => vec![(0, base.into())],
            Layout::Objects => {
                OBJECTS.iter().map(|(name, bytes, _)| (*bytes, format!("{base}/{name}").into())).collect()
            }
        }
    }

    /// Names can be listed, so what a killed test has left is found.
    fn has_lists(&self) -> bool {
        self.is_s3 || self.engine != "http"
    }

    /// The name of the data of this test.
    pub fn own_name(&self) -> String {
        format!("{}{}{}", self.place, self.prefix(), self.number)
    }

    /// Checks that the server answers and that a bucket exists, before anything is measured.
    pub fn check(&self) -> Result<(), String> {
        // A wrong address is told within seconds.
        let brief = Remote { retries: 3, ..self.clone() };
        if self.is_s3 {
            // The answer to a question about an object does not tell which is missing, the object or the bucket. A list does; who is
            // not allowed to list may still test.
            let listed =
                brief.for_names(&format!("{}{}", self.place, self.number), |_| false, |_, _, _| Ok(()));
            if listed.is_err_and(|why| why.contains("NoSuchBucket")) {
                return Err("there is no such bucket; create it first".to_owned());
            }
        }
        let names = self.names(&self.number);
        names
            .first()
            .map_or(Ok(()), |(block, name)| brief.ask(*block, |storage, _, _| storage.size(name)).map(drop))
    }

    /// Removes names of a test. The first error is told, after all was tried.
    fn remove(&self, names: &[(u64, PathBuf)]) -> Result<(), String> {
        let mut first = Ok(());
        // Each time, a process connects to the server.
        for alike in names.chunk_by(|one, other| one.0 == other.0) {
            let removed = self.ask(alike[0].0, |storage, progress, _| {
                let mut failed = Vec::new();
                for (_, name) in alike {
                    progress();
                    match storage.unlink(name) {
                        Err(error) if error.kind() != io::ErrorKind::NotFound => {
                            failed.push(format!("{}: {}", name.display(), describe_error(&error)));
                        }
                        _ => {}
                    }
                }
                Ok(failed)
            });
            let removed = removed.and_then(|failed| failed.into_iter().next().map_or(Ok(()), Err));
            first = first.and(removed);
        }
        first
    }

    /// The numbers of other tests whose names are there.
    pub fn left(&self) -> Result<Vec<String>, String> {
        if !self.has_lists() {
            return Ok(Vec::new());
        }
        let prefix = format!("{}{}", self.place, self.prefix());
        let directory = match self.layout {
            Layout::Objects => prefix.trim_end_matches('/').to_owned(),
            _ => String::new(),
        };
        let names: Vec<PathBuf> = self.ask(EACH, |storage, progress, _| {
            match storage.list_with_older(Path::new(&directory), progress) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
                other => other,
            }
        })?;
        let number = |name: &PathBuf| {
            let name = name.display().to_string();
            let rest = name.trim_start_matches('/').strip_prefix(prefix.trim_start_matches('/'))?;
            let digits = rest.split(['/', '_', '.']).next().unwrap_or_default();
            let is_one = digits.len() == 16 && digits.chars().all(|digit| digit.is_ascii_hexdigit());
            (is_one && digits != self.number).then(|| digits.to_owned())
        };
        let mut found: Vec<String> = names.iter().filter_map(number).collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Removes all names that begin like this, each object on its own. Returns how many there were.
    pub fn remove_all(&self, start: &str) -> Result<u64, String> {
        let is_ours = |name: &str| name.starts_with(start.trim_start_matches('/'));
        self.for_names(start, is_ours, unlink_all)
    }

    /// The first name at the place for which this is true. It is asked with what stands behind the place. Notes whether there are
    /// such names of which only older versions are left.
    pub fn first_name(&mut self, is_wanted: impl Fn(&str) -> bool) -> Result<Option<String>, String> {
        let place = self.place.trim_start_matches('/');
        let is_wanted = |name: &str| name.strip_prefix(place).is_some_and(&is_wanted);
        let first = |storage: &mut dyn Storage, progress: &mut dyn FnMut(), names: Vec<PathBuf>| {
            let Some(name) = names.first() else { return Ok((false, None)) };
            let current = storage.list(name.parent().unwrap_or(name), progress)?;
            let there = names.iter().find(|name| current.binary_search(name).is_ok());
            Ok((true, there.map(|name| name.to_string_lossy().trim_start_matches('/').to_owned())))
        };
        let (has_some, there) = self.for_names(&self.place, is_wanted, first)?;
        self.has_older = has_some && there.is_none();
        Ok(there)
    }

    /// Removes the names at the place for which this is true. Returns how many there were.
    pub fn remove_names(&self, is_wanted: impl Fn(&str) -> bool) -> Result<u64, String> {
        let place = self.place.trim_start_matches('/');
        let is_wanted = |name: &str| name.strip_prefix(place).is_some_and(&is_wanted);
        self.for_names(&self.place, is_wanted, unlink_all)
    }

    /// Does this with all wanted names of a directory (of objects; a server with files has one), and with those of which only
    /// older versions are left, unless these are somebody's. They are told without the slash at the begin.
    fn for_names<T: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        directory: &str,
        is_wanted: impl Fn(&str) -> bool,
        act: impl FnOnce(&mut dyn Storage, &mut dyn FnMut(), Vec<PathBuf>) -> io::Result<T>,
    ) -> Result<T, String> {
        let directory = match self.layout {
            Layout::Objects => directory.trim_end_matches('/'),
            _ => "",
        };
        self.ask(EACH, |storage, progress, _| {
            let listed = match self.has_older {
                false => storage.list_with_older(Path::new(directory), progress),
                true => storage.list(Path::new(directory), progress),
            };
            let mut names = match listed {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                other => other?,
            };
            names.retain(|name| is_wanted(name.to_string_lossy().trim_start_matches('/')));
            act(storage, progress, names)
        })
    }

    /// Removes what tests with these numbers have left.
    pub fn remove_left(&self, numbers: &[String]) -> Result<(), String> {
        numbers.iter().try_for_each(|number| self.remove(&self.names(number)))
    }

    /// Why what is left cannot be found.
    pub fn without_lists(&self) -> Option<String> {
        (!self.has_lists()).then(|| {
            format!("WebDAV has no lists of names; remove {}{} where the files are", self.place, OBJECT)
        })
    }
}

/// Removes each object on its own. Returns how many there were.
fn unlink_all(storage: &mut dyn Storage, progress: &mut dyn FnMut(), names: Vec<PathBuf>) -> io::Result<u64> {
    for name in &names {
        progress();
        match storage.unlink(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(names.len() as u64)
}

/// How a URL of this kind looks.
fn example(scheme: &str) -> &'static str {
    match scheme {
        "nbd" => "nbd://HOST/EXPORT or nbd+unix:///EXPORT?socket=PATH",
        "nfs" => "nfs://HOST/EXPORT",
        "s3" => "s3://BUCKET/PREFIX",
        "iscsi" => "iscsi://HOST/TARGET/LUN",
        "rbd" => "rbd:POOL/IMAGE",
        _ => "https://HOST/DIRECTORY",
    }
}

type Options = (Vec<(&'static str, String)>, String);

/// A bucket, at the server that the environment names.
fn s3(rest: &str) -> Result<Options, String> {
    let bucket = rest.split('/').next().unwrap_or_default();
    if bucket.is_empty() {
        return Err(format!("the bucket is missing: {}", example("s3")));
    }
    let given = |name| Some((name, std::env::var(name).ok().filter(|value| !value.is_empty())?));
    let endpoint = S3_ENDPOINTS.into_iter().find_map(given);
    let (host, is_encrypted) = match &endpoint {
        None => (S3_HOST, true),
        Some((name, endpoint)) => match (endpoint.strip_prefix("http://"), endpoint.strip_prefix("https://"))
        {
            (Some(host), _) => (host.trim_end_matches('/'), false),
            (_, Some(host)) => (host.trim_end_matches('/'), true),
            _ => {
                return Err(format!("{name}={endpoint}: not the URL of a server, such as https://HOST:PORT"));
            }
        },
    };
    Ok(http("s3", host, is_encrypted, rest))
}

fn webdav(rest: &str, is_encrypted: bool) -> Result<Options, String> {
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, host) = place.rsplit_once('@').map_or((None, place), |(user, host)| (Some(user), host));
    if host.is_empty() {
        return Err(format!("the server is missing: {}", example("https")));
    }
    let (mut options, place) = http("webdav", host, is_encrypted, path);
    if let Some(user) = user {
        if user.contains(':') {
            return Err(format!(
                "lists of processes would show the password; put it into {PASSWORD} of the environment"
            ));
        }
        options.extend([("http_user", user.to_owned()), ("http_pass_env", PASSWORD.to_owned())]);
    }
    Ok((options, place))
}

fn http(mode: &str, host: &str, is_encrypted: bool, path: &str) -> Options {
    let path = path.trim_matches('/');
    let place = if path.is_empty() { "/".to_owned() } else { format!("/{path}/") };
    let options = vec![
        ("http_mode", mode.to_owned()),
        ("http_host", host.to_owned()),
        ("https", if is_encrypted { "on" } else { "off" }.to_owned()),
    ];
    (options, place)
}

/// The names of a test on a server. They are removed when this value is dropped.
#[derive(Debug)]
pub struct OwnNames {
    remote: Remote,
    is_removed: bool,
}

impl OwnNames {
    pub fn of(remote: &Remote) -> OwnNames {
        OwnNames { remote: remote.clone(), is_removed: false }
    }

    /// Removes them.
    pub fn remove(mut self) -> Result<(), String> {
        self.is_removed = true;
        self.remote.remove(&self.remote.names(&self.remote.number))
    }
}

impl Drop for OwnNames {
    fn drop(&mut self) {
        if !self.is_removed {
            // What cannot be removed now is removed by --clean.
            let _ = self.remote.remove(&self.remote.names(&self.remote.number));
        }
    }
}

/// The cases of an object store: objects of three sizes are written and read, and lists.
pub fn objects(remote: &Remote, place: &Place, pace: &Pace) -> Vec<Case> {
    let own = remote.own_name();
    let case = |name: String, what: String, rw: &str, depth: u32, object: usize| {
        let (size_name, bytes, count) = OBJECTS[object];
        let mut case = Case::new(&name, Role::Objects, what, place)
            .with(&[
                ("rw", &rw),
                ("bs", &bytes),
                ("size", &(bytes * count)),
                ("filename", &format!("{own}/{size_name}")),
            ])
            .deep(depth, 1, remote.engine);
        if remote.is_s3 && bytes > PART {
            case.set("http_s3_multipart_size", PART);
            // Objects of several parts are whole files.
            case.set("http_object_mode", "range");
        }
        case.lasting(pace.case, pace.is_steady)
    };
    let mut cases = Vec::new();
    for (depth, object) in [(1, 0), (16, 0), (8, 1)] {
        let size = OBJECTS[object].0;
        let name = |verb: &str| {
            if object == 0 && depth > 1 { format!("{verb}-{size}-{depth}") } else { format!("{verb}-{size}") }
        };
        cases.push(case(name("put"), format!("{size}, depth {depth}"), "write", depth, object));
        let mut get = case(name("get"), format!("{size}, depth {depth}"), "randread", depth, object);
        // A slow store has not got all of them in the time of the case before.
        get.set("http_create", 1);
        cases.push(get);
    }
    if remote.is_s3 {
        cases.push(case("put-64m".to_owned(), "64m in parts of 8m".to_owned(), "write", 8, 2));
        let mut list = Case::new("list", Role::Objects, "256 names each".to_owned(), place)
            .with(&[
                ("rw", &"read"),
                ("bs", &"4k"),
                ("size", &"1m"),
                ("filename", &format!("{own}/4k")),
                ("http_s3_list", &1000),
            ])
            .deep(1, 1, remote.engine);
        list = list.lasting(pace.step.max(1.0), false);
        cases.push(list);
    }
    cases
}

/// A name for people, without secrets.
pub fn shown(url: &str) -> String {
    masked(url).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Result<(Layout, &'static str, String), String> {
        Remote::of(url).expect("it is a URL").map(|remote| {
            let options: Vec<String> =
                remote.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
            (remote.layout, remote.engine, options.join(" ") + " " + &remote.place)
        })
    }

    #[test]
    fn urls() {
        let of = |url: &str| parsed(url).unwrap();
        assert_eq!(of("nbd://h/x"), (Layout::Disk, "nbd", "uri=nbd://h/x ".to_owned()));
        assert_eq!(of("rbd:p/i"), (Layout::Disk, "rbd", "pool=p rbdname=i ".to_owned()));
        assert_eq!(of("rados:p"), (Layout::File, "rados", "pool=p ".to_owned()));
        assert_eq!(of("nfs://h/export"), (Layout::File, "nfs", "nfs_url=nfs://h/export ".to_owned()));
        assert_eq!(
            of("https://h:8443/dav/"),
            (Layout::Objects, "http", "http_mode=webdav http_host=h:8443 https=on /dav/".to_owned())
        );
        assert!(
            of("http://u@h").2.contains("http_host=h https=off http_user=u http_pass_env=IOLITE_HTTP_PASS /")
        );
        for (url, why) in [
            ("rbd:p", "rbd:POOL/IMAGE"),
            ("rados:", "rados:POOL"),
            ("s3:bucket", "s3://BUCKET/PREFIX"),
            ("s3:///x", "the bucket is missing"),
            ("https://u:p@h/x", "IOLITE_HTTP_PASS"),
            ("https://u@/x", "the server is missing"),
            ("nbd:h", "nbd://HOST/EXPORT"),
        ] {
            let told = parsed(url).unwrap_err();
            assert!(told.contains(why), "{url}: {told}");
        }
        assert!(
            Remote::of("/mnt/a:b").is_none()
                && Remote::of("data").is_none()
                && Remote::of("ftp://h").is_none()
        );
    }
}
