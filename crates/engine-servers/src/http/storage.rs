//! Finds the sizes of files on the server, and creates, removes and lists files.
//!
//! If each block is an object, the size of a file is the length of its blocks from the beginning up to the first
//! missing one. A binary search finds it with a few requests, because every protocol can look up an object, but not
//! every protocol can list objects.

use super::multipart::Whole;
use super::{HttpEngine, name_object, remedy};
use iolite_engine::{Room, Storage, Stored};
use iolite_http::multipart::MOST_PARTS;
use iolite_http::{Answer, Failure, Method, Object, Refusal, Request, Sink, listing};
use iolite_options::Fallocate;
use iolite_options::engines::{Addressing, HttpProtocol, ObjectMode};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file that is being laid out.
pub(super) struct Blocks<'a> {
    engine: &'a mut HttpEngine,
    name: String,
    /// The final length of the file.
    end: u64,
    /// The offset of the waiting bytes.
    start: u64,
    waiting: Vec<u8>,
    /// The upload, if the object is uploaded in parts.
    whole: Option<Whole>,
}

/// How many files to look up at a time.
const LOOK_UPS: usize = 16;

/// The search for the size of one file.
struct LookUp {
    file: String,
    /// The size, if the file is one object; `Some(None)` = it does not exist.
    whole: Option<Option<u64>>,
    search: Search,
}

/// Finds how many blocks a file has before a gap, with a binary search. If there are several gaps, it finds any one
/// of them.
#[derive(Default)]
struct Search {
    /// The highest block that was found.
    there: Option<u64>,
    /// The lowest block that is missing.
    missing: Option<u64>,
}

impl Search {
    /// The block to look up next; `None` = the search is over.
    fn next(&self) -> Option<u64> {
        match (self.there, self.missing) {
            (None, None) => Some(0),
            (None, Some(_)) => None,
            (Some(there), None) => Some(there.saturating_mul(2).max(1)),
            (Some(there), Some(missing)) => (missing - there > 1).then(|| there + (missing - there) / 2),
        }
    }

    /// Notes whether that block exists.
    fn learn(&mut self, is_there: bool) {
        let asked = self.next();
        if is_there { self.there = asked } else { self.missing = asked }
    }

    fn count(&self) -> u64 {
        self.missing.unwrap_or(0)
    }
}

impl HttpEngine {
    /// Sends a request and waits for the answer.
    fn ask(&mut self, method: Method, name: &str, body: &[u8]) -> io::Result<Answer> {
        let head = self.client.head(method, &Object::whole(name), body);
        let answer = self.client.call(head, body, method == Method::Head);
        let refused = |words: &str| io::Error::other(format!("{} {name}: {words}", method.word()));
        let answer = answer.map_err(|failure| refused(&failure.words))?;
        if answer.is_success() || answer.status == 404 {
            if method == Method::Delete {
                self.note_mark(&answer);
            }
            return Ok(answer);
        }
        let refusal = Refusal::of(&answer);
        Err(refused(&format!("{refusal}{}", remedy::of(&refusal, &self.options, method == Method::Head))))
    }

    /// The name of the object with this block of a file.
    fn block_name(&self, file: &str, number: u64) -> io::Result<String> {
        let mut name = String::new();
        let offset = number.checked_mul(self.block).filter(|&offset| offset <= i64::MAX as u64 - self.block);
        let offset = offset.ok_or_else(|| {
            io::Error::other(format!(
                "the server claims that every block of {file} exists: it is not an object store"
            ))
        })?;
        name_object(&mut name, &self.options, file, offset, self.block);
        Ok(name)
    }

    /// Whether an answer to HEAD says that this block of a file exists.
    fn is_block(&self, answer: &Answer, name: &str, file: &str) -> io::Result<bool> {
        match answer.told {
            Some(told) if answer.is_success() && told != self.block => Err(io::Error::other(format!(
                "{name} has {told} bytes, not {}: it is not a block of {file}",
                self.block
            ))),
            _ => Ok(answer.is_success()),
        }
    }

    /// The answer to HEAD, if it shows whether the object exists.
    fn looked_up(&self, result: Result<Answer, Failure>, name: &str) -> io::Result<Answer> {
        let refused = |words: &str| io::Error::other(format!("HEAD {name}: {words}"));
        let answer = result.map_err(|failure| refused(&failure.words))?;
        if answer.is_success() || answer.status == 404 {
            return Ok(answer);
        }
        let refusal = Refusal::of(&answer);
        Err(refused(&format!("{refusal}{}", remedy::of(&refusal, &self.options, true))))
    }

    /// The object to look up next; `None` = the file's size is known.
    fn question(&self, looked: &LookUp) -> io::Result<Option<String>> {
        match self.options.http_object_mode {
            ObjectMode::Range => Ok(looked.whole.is_none().then(|| looked.file.clone())),
            ObjectMode::Block => match looked.search.next() {
                Some(number) => Ok(Some(self.block_name(&looked.file, number)?)),
                None => Ok(None),
            },
        }
    }

    /// Takes the answer of a lookup.
    fn learn(&self, looked: &mut LookUp, name: &str, result: Result<Answer, Failure>) -> io::Result<()> {
        let answer = self.looked_up(result, name)?;
        match self.options.http_object_mode {
            ObjectMode::Range => {
                looked.whole = Some(answer.is_success().then(|| answer.told.unwrap_or(0)));
            }
            ObjectMode::Block => {
                let is_there = self.is_block(&answer, name, &looked.file)?;
                looked.search.learn(is_there);
            }
        }
        Ok(())
    }

    /// The size of a file at the end of its lookup.
    fn found(&self, looked: &LookUp) -> Option<u64> {
        match looked.whole {
            Some(size) => size,
            None => Some(looked.search.count() * self.block).filter(|&size| size > 0),
        }
    }

    /// Looks up many files, several at a time.
    fn look_up_all(
        &mut self,
        names: &[PathBuf],
        progress: &mut dyn FnMut(),
    ) -> Result<Vec<Option<u64>>, String> {
        let mut all = Vec::with_capacity(names.len());
        for name in names {
            let file = self.server_name(name).map_err(|error| error.to_string())?;
            all.push(LookUp { file, whole: None, search: Search::default() });
        }
        let mut asked: Vec<String> = vec![String::new(); all.len()];
        let mut next = 0;
        loop {
            while let Some(done) = self.client.next_done() {
                let place = done.token as usize;
                let words = |error: io::Error| {
                    format!("{}: {}", names[place].display(), iolite_types::describe_error(&error))
                };
                self.learn(&mut all[place], &asked[place], done.result).map_err(words)?;
                self.look_on(&all[place], &mut asked[place], done.token)?;
                progress();
            }
            // (Finished requests are taken first, which makes room, so that this never waits while it could send.)
            while next < all.len() && self.client.in_flight() < LOOK_UPS {
                self.look_on(&all[next], &mut asked[next], next as u32)?;
                next += 1;
            }
            if next == all.len() && self.client.in_flight() == 0 {
                return Ok(all.iter().map(|looked| self.found(looked)).collect());
            }
            // (A request that could not be sent is done already.)
            let at_most = (self.client.count_done() > 0).then_some(Duration::ZERO);
            match self.client.drive(at_most) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error.to_string()),
                _ => {}
            }
        }
    }

    /// Sends the next lookup for a file, if there is one.
    fn look_on(&mut self, looked: &LookUp, asked: &mut String, token: u32) -> Result<(), String> {
        let Some(name) = self.question(looked).map_err(|error| error.to_string())? else { return Ok(()) };
        let head = self.client.head(Method::Head, &Object::whole(&name), &[]);
        *asked = name;
        let request = Request {
            head,
            body: (std::ptr::null(), 0),
            sink: Sink::Text,
            head_only: true,
            fields: true,
            patient: false,
        };
        // SAFETY: there is no body, and the answer does not go to memory of the caller.
        unsafe { self.client.begin(token, request) };
        Ok(())
    }

    /// The number of blocks that a file has.
    fn count_blocks(&mut self, file: &str) -> io::Result<u64> {
        let mut looked = LookUp { file: file.to_owned(), whole: None, search: Search::default() };
        while let Some(name) = self.question(&looked)? {
            let head = self.client.head(Method::Head, &Object::whole(&name), &[]);
            let result = self.client.call(head, &[], true);
            self.learn(&mut looked, &name, result)?;
        }
        Ok(looked.search.count())
    }

    fn needs_one_block(&self) -> io::Result<()> {
        if self.block > 0 {
            return Ok(());
        }
        let words = "each block is an object, and blocks differ in size: nobody knows which objects there are; give one \
                     block size with bs=, or the file's size with size=";
        Err(io::Error::new(io::ErrorKind::InvalidInput, words))
    }

    fn size_of(&mut self, file: &str) -> io::Result<Option<u64>> {
        if self.options.http_s3_list > 0 {
            return Ok(None);
        }
        match self.options.http_object_mode {
            ObjectMode::Range => {
                let answer = self.ask(Method::Head, file, &[])?;
                Ok(answer.is_success().then(|| answer.told.unwrap_or(0)))
            }
            ObjectMode::Block => {
                self.needs_one_block()?;
                let size = self.count_blocks(file)? * self.block;
                Ok((size > 0).then_some(size))
            }
        }
    }
}

impl Storage for HttpEngine {
    fn size(&mut self, name: &Path) -> io::Result<Option<u64>> {
        let name = self.server_name(name)?;
        self.size_of(&name)
    }

    fn sizes(&mut self, names: &[PathBuf], progress: &mut dyn FnMut()) -> Result<Vec<Option<u64>>, String> {
        if self.options.http_s3_list > 0 {
            return Ok(vec![None; names.len()]);
        }
        if self.options.http_object_mode == ObjectMode::Block {
            self.needs_one_block().map_err(|error| error.to_string())?;
        }
        self.look_up_all(names, progress)
    }

    fn open(&mut self, name: &Path) -> io::Result<Box<dyn Stored + '_>> {
        let name = self.server_name(name)?;
        if self.options.http_object_mode == ObjectMode::Block {
            self.needs_one_block()?;
        }
        Ok(Box::new(Blocks { engine: self, name, end: 0, start: 0, waiting: Vec::new(), whole: None }))
    }

    /// There is nothing to do: the server has stored everything that it has acknowledged.
    fn sync(&mut self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn unlink(&mut self, name: &Path) -> io::Result<()> {
        let name = self.server_name(name)?;
        if self.options.http_s3_delete_versions {
            return self.unlink_versions(&name);
        }
        self.unlink_current(&name)
    }

    fn list(&mut self, directory: &Path, progress: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        if self.options.http_mode != HttpProtocol::S3 {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "only http_mode=s3 lists names; give them with filename=",
            ));
        }
        let (bucket, mut prefix) = self.listed(directory).map_err(io::Error::other)?;
        // The slash excludes objects whose names only begin like the directory's name.
        if !prefix.is_empty() && !prefix.ends_with('/') {
            prefix.push('/');
        }
        let refused = |why: String| io::Error::other(format!("GET {bucket}: {why}"));
        let mut names = Vec::new();
        let (mut bytes, mut empty) = (0, 0);
        let mut other_block = None;
        let mut from: Option<String> = None;
        loop {
            let query = listing::query(&prefix, listing::MOST_NAMES, from.as_deref());
            let object = Object { name: &bucket, part: None, query: &query, source: "" };
            let head = self.client.head(Method::Get, &object, &[]);
            let answer = self.client.call(head, &[], false);
            let answer = answer.map_err(|failure| format!("GET {bucket}: {}", failure.words));
            let answer = answer.and_then(|answer| match answer.is_success() {
                true => Ok(answer),
                false => {
                    let refusal = Refusal::of(&answer);
                    Err(format!("GET {bucket}: {refusal}{}", remedy::of(&refusal, &self.options, false)))
                }
            });
            let answer = answer.map_err(io::Error::other)?;
            let page = listing::page(&answer).map_err(refused)?;
            let listed = listing::names(&answer).map_err(refused)?;
            let before = names.len();
            names.extend(listed.into_iter().filter_map(|name| self.file_of(&bucket, name, &mut other_block)));
            // (Many blocks belong to the same file, and lists are in order.)
            names.dedup();
            count(&names, before, &mut bytes)?;
            empty = if page.names == 0 { empty + 1 } else { 0 };
            if page.next.is_some() && (page.next == from || empty > MOST_EMPTY) {
                return Err(refused(ENDLESS.into()));
            }
            progress();
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        if let Some(length) = other_block.filter(|_| names.is_empty()) {
            return Err(io::Error::other(format!(
                "the objects there are blocks of {length} bytes; use bs={length}"
            )));
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn list_with_older(&mut self, directory: &Path, progress: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        let mut names = self.list(directory, progress)?;
        let (bucket, mut prefix) = self.listed(directory).map_err(io::Error::other)?;
        if !prefix.is_empty() {
            prefix = format!("{}/", prefix.trim_end_matches('/'));
        }
        let mut after = None;
        let mut bytes = 0;
        count(&names, 0, &mut bytes)?;
        loop {
            let is_first = after.is_none();
            let versions = match self.versions(&bucket, &prefix, &mut after) {
                Ok(versions) => versions,
                // Not every server has versions, and not everybody may list them.
                Err(_) if is_first => break,
                Err(error) => return Err(error),
            };
            let before = names.len();
            let files = versions.into_iter().filter_map(|one| self.file_of(&bucket, one.key, &mut None));
            names.extend(files);
            names.dedup();
            count(&names, before, &mut bytes)?;
            progress();
            if after.is_none() {
                break;
            }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }
}

/// Adds the bytes of the names from `from` on, and checks that the list is not too long.
fn count(names: &[PathBuf], from: usize, bytes: &mut usize) -> io::Result<()> {
    *bytes += names.iter().skip(from).map(|name| name.as_os_str().len()).sum::<usize>();
    match names.len() > MOST_LISTED || *bytes > MOST_BYTES {
        true => {
            Err(io::Error::other(format!("more than {MOST_LISTED} names, or {MOST_BYTES} bytes of them")))
        }
        false => Ok(()),
    }
}

/// Why a list is given up.
const ENDLESS: &str = "the list has no end: the server gives the same part of it again and again";
/// The maximum number of names to list.
const MOST_LISTED: usize = 10_000_000;
/// The maximum total length of these names in bytes.
const MOST_BYTES: usize = 256 << 20;
/// The maximum number of consecutive answers without a name. Servers send some if many objects have been removed.
const MOST_EMPTY: u32 = 1000;

impl HttpEngine {
    /// Removes the objects of a file.
    fn unlink_current(&mut self, name: &str) -> io::Result<()> {
        if self.options.http_object_mode == ObjectMode::Range {
            let answer = self.ask(Method::Delete, name, &[])?;
            return if answer.is_success() { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) };
        }
        self.needs_one_block()?;
        // Removes all blocks that the job may have written, anywhere in the file. Of other files, removes the blocks
        // that a lookup finds.
        let known = self.files.iter().find(|file| file.name == name).map(|file| file.end);
        let count = match known {
            Some(end) => end.div_ceil(self.block),
            None => self.count_blocks(name)?,
        };
        let mut object = String::new();
        for number in 0..count {
            name_object(&mut object, &self.options, name, number * self.block, self.block);
            self.ask(Method::Delete, &object, &[])?;
        }
        Ok(())
    }

    /// Removes all versions of the objects of a file. Where the server does not list versions, removes the objects; that is
    /// enough if the bucket keeps none, which the answers tell.
    fn unlink_versions(&mut self, name: &str) -> io::Result<()> {
        let is_whole = self.options.http_object_mode == ObjectMode::Range;
        if !is_whole {
            self.needs_one_block()?;
        }
        let path = Path::new(name);
        let (bucket, key) = self.listed(path).map_err(io::Error::other)?;
        let prefix = if is_whole { key } else { format!("{key}_") };
        let mut after = None;
        loop {
            let versions = match self.versions(&bucket, &prefix, &mut after) {
                Err(why) if after.is_none() => {
                    let marked = self.marked;
                    self.unlink_current(name)?;
                    return if self.marked == marked { Ok(()) } else { Err(why) };
                }
                listed => listed?,
            };
            for version in versions {
                let file = self.file_of(&bucket, version.key.clone(), &mut None);
                if file.is_some_and(|file| file == path) {
                    let between = if bucket == "/" { "" } else { "/" };
                    let object = format!("{bucket}{between}{}", version.key);
                    self.demand(Method::Delete, &object, &listing::version_query(&version.id))?;
                }
            }
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// The next part of the list of versions, after the last one of the part before. Then `after` is the last of this one; `None` =
    /// there are no more.
    fn versions(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: &mut Option<listing::Version>,
    ) -> io::Result<Vec<listing::Version>> {
        let answer = self.demand(Method::Get, bucket, &listing::versions_query(prefix, after.as_ref()))?;
        let listed = listing::versions(&answer);
        let (versions, is_cut) =
            listed.map_err(|why| io::Error::other(format!("GET versions in {bucket}: {why}")))?;
        let last = versions.last().cloned().filter(|_| is_cut);
        if last.is_some() && last == *after {
            return Err(io::Error::other(format!("GET versions in {bucket}: {ENDLESS}")));
        }
        *after = last;
        Ok(versions)
    }

    /// The answer of a request with a query, which has to be granted. What is removed already counts as removed.
    fn demand(&mut self, method: Method, name: &str, query: &str) -> io::Result<Answer> {
        let head = self.client.head(method, &Object { query, ..Object::whole(name) }, &[]);
        let refused = |words: String| io::Error::other(format!("{} {name}: {words}", method.word()));
        let answer = self.client.call(head, &[], false).map_err(|failure| refused(failure.words))?;
        if answer.is_success() || (method == Method::Delete && answer.status == 404) {
            return Ok(answer);
        }
        let refusal = Refusal::of(&answer);
        Err(refused(format!("{refusal}{}", remedy::of(&refusal, &self.options, false))))
    }

    /// The bucket, as in requests, and the prefix of names in it that this name stands for.
    pub(super) fn listed(&self, name: &Path) -> Result<(String, String), String> {
        let text = name.to_str().ok_or_else(|| format!("{}: names of objects are UTF-8", name.display()))?;
        let text = text.trim_start_matches('/');
        if self.options.http_s3_addressing == Addressing::Virtual {
            return Ok(("/".to_owned(), text.to_owned()));
        }
        let (bucket, prefix) = text.split_once('/').unwrap_or((text, ""));
        if bucket.is_empty() {
            return Err("this names no bucket; give /BUCKET or /BUCKET/PREFIX".to_owned());
        }
        Ok((format!("/{bucket}"), prefix.to_owned()))
    }

    /// The file to which an object of the list belongs; `None` = the object is not a block of this size.
    fn file_of(&self, bucket: &str, object: String, other_block: &mut Option<u64>) -> Option<PathBuf> {
        let file = match self.options.http_object_mode {
            ObjectMode::Range => object,
            ObjectMode::Block => {
                let (rest, length) = object.rsplit_once('_')?;
                let (file, offset) = rest.rsplit_once('_')?;
                let (offset, length) = (offset.parse::<u64>().ok()?, length.parse::<u64>().ok()?);
                // Objects whose names only look like names of blocks belong to no file.
                let is_block = length > 0 && offset.is_multiple_of(length);
                if is_block && self.block > 0 && length != self.block {
                    *other_block = Some(length);
                    return None;
                }
                is_block.then(|| file.to_owned())?
            }
        };
        let between = if bucket == "/" { "" } else { "/" };
        Some(PathBuf::from(format!("{bucket}{between}{file}")))
    }
}

impl Blocks<'_> {
    /// Writes the waiting bytes.
    fn put(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if let Some(part) = self.part() {
            return self.put_part(part);
        }
        let mut name = String::new();
        name_object(&mut name, &self.engine.options, &self.name, self.start, self.waiting.len() as u64);
        let answer = self.engine.ask(Method::Put, &name, &self.waiting)?;
        if !answer.is_success() {
            let refusal = Refusal::of(&answer);
            let remedy = remedy::of(&refusal, &self.engine.options, false);
            return Err(io::Error::other(format!("PUT {name}: {refusal}{remedy}")));
        }
        self.waiting.clear();
        Ok(())
    }

    /// Writes the waiting part. The last part also creates the object.
    fn put_part(&mut self, part: u64) -> io::Result<()> {
        if self.start != self.whole.as_ref().map_or(0, Whole::count) * part {
            return Err(io::Error::other(format!("{}: parts are laid out in order", self.name)));
        }
        if self.whole.is_none() {
            self.engine.abort_left();
        }
        let end = self.start + self.waiting.len() as u64;
        self.engine.put_part(&mut self.whole, &self.name, &self.waiting).map_err(io::Error::other)?;
        self.waiting.clear();
        if end == self.end
            && let Some(whole) = self.whole.take()
        {
            self.engine.end_parts(&whole, &self.name).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// The size of a part in bytes, if the file is one object that is too large for one request.
    fn part(&self) -> Option<u64> {
        let part = self.engine.uploads.as_ref()?.part();
        let least = self.end.div_ceil(MOST_PARTS);
        let part = if part >= least { part } else { least.next_multiple_of(1 << 20) };
        (self.engine.options.http_object_mode == ObjectMode::Range && self.end > part).then_some(part)
    }

    /// How many bytes to send at once: an object or a part of one.
    fn object(&self) -> u64 {
        match self.engine.options.http_object_mode {
            ObjectMode::Block => self.engine.block,
            ObjectMode::Range => self.part().unwrap_or(self.end),
        }
    }
}

impl Stored for Blocks<'_> {
    /// The current size. It is 0 for a file that is one object, because it is rewritten completely.
    fn size(&mut self) -> io::Result<u64> {
        match self.engine.options.http_object_mode {
            ObjectMode::Block => Ok(self.engine.size_of(&self.name)?.unwrap_or(0)),
            ObjectMode::Range => Ok(0),
        }
    }

    fn room(&mut self) -> io::Result<Option<Room>> {
        Ok(None)
    }

    fn extend(&mut self, size: u64, _: Fallocate) -> io::Result<()> {
        // An object can only be written completely, so this would replace a shorter object that may belong to another
        // user.
        if self.engine.options.http_object_mode == ObjectMode::Range
            && let Some(found) = self.engine.size_of(&self.name)?
        {
            return Err(io::Error::other(format!(
                "{} exists with {found} bytes, and {size} are needed; remove it, or use size={found}",
                self.name
            )));
        }
        self.end = size;
        Ok(())
    }

    fn write(&mut self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        let object = self.object();
        if object == 0 {
            // This happens with fill_device: an object store cannot be filled.
            return Err(io::Error::other(format!(
                "{}: the size of the object is unknown; give size=",
                self.name
            )));
        }
        while !bytes.is_empty() {
            if self.waiting.is_empty() {
                self.start = offset;
            }
            let until = (offset / object + 1) * object;
            let until = if self.part().is_some() { until.min(self.end) } else { until };
            let count = (until - offset).min(bytes.len() as u64) as usize;
            self.waiting.extend_from_slice(&bytes[..count]);
            offset += count as u64;
            bytes = &bytes[count..];
            if offset == until {
                self.put()?;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
