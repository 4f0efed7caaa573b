//! What the names of files mean on the server: sizes, making and removing what is there.
//!
//! Where each block is an object, a file is as long as its objects reach without a gap from its beginning. That is found
//! by looking at a few of them: every protocol can look up an object, and not every one can list them.

use super::multipart::Whole;
use super::{HttpEngine, name_object, remedy};
use crate::{Room, Storage, Stored};
use iolite_http::multipart::MOST_PARTS;
use iolite_http::{Answer, Method, Object, Refusal};
use iolite_options::Fallocate;
use iolite_options::engines::ObjectMode;
use std::io;
use std::path::{Path, PathBuf};

/// The blocks of a file that are objects of their own.
pub(super) struct Blocks<'a> {
    engine: &'a mut HttpEngine,
    name: String,
    /// How long the file will be.
    end: u64,
    /// Where the bytes begin that wait for the rest of their object.
    start: u64,
    waiting: Vec<u8>,
    /// The parts so far, where the object is uploaded in parts.
    whole: Option<Whole>,
}

impl HttpEngine {
    /// Asks for something and waits for the answer.
    fn ask(&mut self, method: Method, name: &str, body: &[u8]) -> io::Result<Answer> {
        let head = self.client.head(method, &Object::whole(name), body);
        let answer = self.client.call(head, body, method == Method::Head);
        let refused = |words: &str| io::Error::other(format!("{} {name}: {words}", method.word()));
        let answer = answer.map_err(|failure| refused(&failure.words))?;
        if answer.is_success() || answer.status == 404 {
            return Ok(answer);
        }
        let refusal = Refusal::of(&answer);
        Err(refused(&format!("{refusal}{}", remedy::of(&refusal, &self.options, method == Method::Head))))
    }

    /// Whether the server has this block of a file.
    fn has_block(&mut self, file: &str, number: u64) -> io::Result<bool> {
        let mut name = String::new();
        let offset = number.checked_mul(self.block).filter(|&offset| offset <= i64::MAX as u64 - self.block);
        let offset = offset.ok_or_else(|| {
            io::Error::other(format!(
                "the server says of every block of {file} that it is there: it is no store of objects"
            ))
        })?;
        name_object(&mut name, &self.options, file, offset, self.block);
        let answer = self.ask(Method::Head, &name, &[])?;
        match answer.told {
            Some(told) if answer.is_success() && told != self.block => Err(io::Error::other(format!(
                "{name} has {told} bytes, not {}: it is no block of {file}",
                self.block
            ))),
            _ => Ok(answer.is_success()),
        }
    }

    /// How many blocks of a file there are from its beginning without a gap, found by halving. If there are several gaps, it
    /// is the blocks before any one of them.
    fn count_blocks(&mut self, file: &str) -> io::Result<u64> {
        if !self.has_block(file, 0)? {
            return Ok(0);
        }
        // One that is there, and one that is not.
        let (mut there, mut missing) = (0, 1);
        while self.has_block(file, missing)? {
            there = missing;
            missing = missing.saturating_mul(2);
        }
        while missing - there > 1 {
            let middle = there + (missing - there) / 2;
            if self.has_block(file, middle)? { there = middle } else { missing = middle }
        }
        Ok(missing)
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

    fn open(&mut self, name: &Path) -> io::Result<Box<dyn Stored + '_>> {
        let name = self.server_name(name)?;
        if self.options.http_object_mode == ObjectMode::Block {
            self.needs_one_block()?;
        }
        Ok(Box::new(Blocks { engine: self, name, end: 0, start: 0, waiting: Vec::new(), whole: None }))
    }

    /// What a server has acknowledged it has.
    fn sync(&mut self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn unlink(&mut self, name: &Path) -> io::Result<()> {
        let name = self.server_name(name)?;
        if self.options.http_object_mode == ObjectMode::Range {
            let answer = self.ask(Method::Delete, &name, &[])?;
            return if answer.is_success() { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) };
        }
        self.needs_one_block()?;
        // What the job may have written, wherever in the file; otherwise what is found.
        let known = self.files.iter().flatten().find(|file| file.name == name).map(|file| file.end);
        let count = match known {
            Some(end) => end.div_ceil(self.block),
            None => self.count_blocks(&name)?,
        };
        let mut object = String::new();
        for number in 0..count {
            name_object(&mut object, &self.options, &name, number * self.block, self.block);
            self.ask(Method::Delete, &object, &[])?;
        }
        Ok(())
    }

    fn list(&mut self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "ioengine=http lists no names; give them with filename=",
        ))
    }
}

impl Blocks<'_> {
    /// Writes what has been waiting.
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

    /// Writes the part that has been waiting. The last one makes the object.
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

    /// Bytes of a part, where the object is one file that is not held in memory as a whole.
    fn part(&self) -> Option<u64> {
        let part = self.engine.uploads.as_ref()?.part();
        let least = self.end.div_ceil(MOST_PARTS);
        let part = if part >= least { part } else { least.next_multiple_of(1 << 20) };
        (self.engine.options.http_object_mode == ObjectMode::Range && self.end > part).then_some(part)
    }

    /// Bytes that are sent at once: an object, or a part of one.
    fn object(&self) -> u64 {
        match self.engine.options.http_object_mode {
            ObjectMode::Block => self.engine.block,
            ObjectMode::Range => self.part().unwrap_or(self.end),
        }
    }
}

impl Stored for Blocks<'_> {
    /// A file that is one object is written anew as a whole.
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
        // An object is written as a whole: somebody's shorter one would be replaced.
        if self.engine.options.http_object_mode == ObjectMode::Range
            && let Some(found) = self.engine.size_of(&self.name)?
        {
            return Err(io::Error::other(format!(
                "{} is there with {found} bytes, and {size} are needed; remove it, or use size={found}",
                self.name
            )));
        }
        self.end = size;
        Ok(())
    }

    fn write(&mut self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        let object = self.object();
        if object == 0 {
            // As with fill_device, which nobody can fill here.
            return Err(io::Error::other(format!(
                "{}: nobody has said how large the object will be; give size=",
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
