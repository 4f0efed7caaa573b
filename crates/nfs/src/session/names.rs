//! Finds, creates, resizes, removes and lists files on the server.

use super::{Handle, Session, Stability};
use crate::NfsError;
use crate::protocol::{Attributes, HANDLE, Kind, procedure};
use crate::xdr::Reader;
use std::cell::Cell;

/// The mode of new files: the owner may read and write, others may read.
const MODE: u32 = 0o644;
const MODE_OF_DIRECTORY: u32 = 0o755;

/// How many bytes of a directory to request at once.
const PAGE: u32 = 64 << 10;

/// The maximum number of names to list of a directory.
const MOST_NAMES: usize = 10_000_000;

impl Session {
    /// Looks up a path in the export. Returns its handle on the server and its attributes; `None` if it does not exist.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub fn find(&mut self, path: &str) -> Result<Option<(Vec<u8>, Attributes)>, NfsError> {
        let (mut handle, mut found) = (self.root.clone(), None);
        for name in parts(path) {
            match self.look_up(&handle, name, path)? {
                Some((next, attributes)) => (handle, found) = (next, Some(attributes)),
                None => return Ok(None),
            }
        }
        let attributes = match found {
            Some(attributes) => attributes,
            None => self.attributes(&handle, path)?,
        };
        Ok(Some((handle, attributes)))
    }

    fn look_up(
        &mut self,
        directory: &[u8],
        name: &str,
        path: &str,
    ) -> Result<Option<(Vec<u8>, Attributes)>, NfsError> {
        let answer = self.call(procedure::LOOKUP, |writer| {
            writer.opaque(directory).opaque(name.as_bytes());
        })?;
        let mut reader = Reader::new(&answer);
        match self.granted(&mut reader, || format!("LOOKUP {path}")) {
            Err(NfsError::Refused { code: 2, .. }) => return Ok(None),
            result => result?,
        }
        let handle = reader.opaque(HANDLE)?.to_vec();
        let attributes = match Attributes::after(&mut reader)? {
            Some(attributes) => attributes,
            None => self.attributes(&handle, path)?,
        };
        Ok(Some((handle, attributes)))
    }

    fn attributes(&mut self, handle: &[u8], path: &str) -> Result<Attributes, NfsError> {
        let answer = self.call(procedure::GETATTR, |writer| {
            writer.opaque(handle);
        })?;
        let mut reader = Reader::new(&answer);
        self.granted(&mut reader, || format!("GETATTR {path}"))?;
        Attributes::read(&mut reader)
    }

    /// Opens a regular file.
    ///
    /// # Errors
    /// No regular file has this name.
    pub fn open(&mut self, path: &str) -> Result<(Handle, Attributes), NfsError> {
        match self.find(path)? {
            Some((handle, attributes)) if attributes.kind == Kind::File => {
                Ok((self.keep_file(handle, path.to_owned()), attributes))
            }
            Some((_, Attributes { kind: Kind::Directory, .. })) => {
                Err(NfsError::Refused { what: format!("open {path}"), code: 21 })
            }
            Some(_) => {
                Err(NfsError::Refused { what: format!("open {path}: it is not a regular file"), code: 22 })
            }
            None => Err(NfsError::Refused { what: format!("open {path}"), code: 2 }),
        }
    }

    /// Opens a regular file. If it does not exist, creates it and the directories above it.
    ///
    /// # Errors
    /// The file cannot be opened or created.
    pub fn create(&mut self, path: &str) -> Result<(Handle, Attributes), NfsError> {
        match self.open(path) {
            Err(NfsError::Refused { code: 2, .. }) => {}
            result => return result,
        }
        let names: Vec<&str> = parts(path).collect();
        let Some((name, above)) = names.split_last() else {
            return Err(NfsError::Refused { what: format!("open {path}"), code: 21 });
        };
        let mut directory = self.root.clone();
        for step in above {
            directory = match self.look_up(&directory, step, path)? {
                Some((handle, _)) => handle,
                None => self.make(procedure::MKDIR, &directory, step, path)?,
            };
        }
        let handle = self.make(procedure::CREATE, &directory, name, path)?;
        let attributes = self.attributes(&handle, path)?;
        Ok((self.keep_file(handle, path.to_owned()), attributes))
    }

    /// Creates a file or a directory, unless it has come to exist in the meantime. Returns its handle.
    fn make(&mut self, number: u32, directory: &[u8], name: &str, path: &str) -> Result<Vec<u8>, NfsError> {
        let is_file = number == procedure::CREATE;
        let mode = if is_file { MODE } else { MODE_OF_DIRECTORY };
        let answer = self.call(number, |writer| {
            writer.opaque(directory).opaque(name.as_bytes());
            if is_file {
                // UNCHECKED: an existing file is not an error.
                writer.u32(0);
            }
            // Sets the mode, but not the user, group, size or times.
            writer.u32(1).u32(mode).u32(0).u32(0).u32(0).u32(0).u32(0);
        })?;
        let mut reader = Reader::new(&answer);
        let verb = if is_file { "CREATE" } else { "MKDIR" };
        match self.granted(&mut reader, || format!("{verb} {path}")) {
            Err(NfsError::Refused { code: 17, .. }) => {}
            result => {
                result?;
                if reader.boolean()? {
                    return Ok(reader.opaque(HANDLE)?.to_vec());
                }
            }
        }
        let found = self.look_up(directory, name, path)?;
        found.map(|(handle, _)| handle).ok_or(NfsError::Refused { what: format!("{verb} {path}"), code: 2 })
    }

    /// Puts the data of a file on stable storage, and closes the file.
    ///
    /// # Errors
    /// The data may not be on stable storage.
    pub fn close(&mut self, file: Handle) -> Result<(), NfsError> {
        let mut committed = Ok(());
        if self.has_unstable(file) {
            // (If the connection was restored, everything is committed already.)
            committed = self.over_any_connection(|session| match session.has_unstable(file) {
                true => session.commit_all(file.0),
                false => Ok(()),
            });
        }
        let Some(mut closed) = self.calls.close(file.0, &committed) else { return committed };
        match closed.lost {
            0 => committed,
            _ => Err(closed.lose()),
        }
    }

    /// Puts the data of an open file on stable storage, and waits for that.
    ///
    /// # Errors
    /// The data may not be on stable storage.
    pub fn sync(&mut self, file: Handle) -> Result<(), NfsError> {
        self.over_any_connection(|session| match &session.calls.files[file.0 as usize] {
            Some(open) if open.unstable() == 0 && open.lost == 0 => session.commit_now(file.0).map(drop),
            _ => session.commit_all(file.0),
        })?;
        match &mut self.calls.files[file.0 as usize] {
            Some(open) if open.lost > 0 => Err(open.lose()),
            _ => Ok(()),
        }
    }

    fn has_unstable(&self, file: Handle) -> bool {
        self.calls.files[file.0 as usize].as_ref().is_some_and(|file| file.unstable() > 0)
    }

    /// The open file of this name.
    pub fn opened(&self, path: &str) -> Option<Handle> {
        let is_it = |file: &Option<super::File>| file.as_ref().is_some_and(|file| file.name == path);
        self.calls.files.iter().position(is_it).map(|place| Handle(place as u32))
    }

    /// Sets the size of an open file.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub fn set_size(&mut self, file: Handle, size: u64) -> Result<(), NfsError> {
        let (handle, name) = self.of(file);
        let answer = self.call(procedure::SETATTR, |writer| {
            // Sets the size, but not the mode, user, group or times, and without a guard against changes in the
            // meantime.
            writer.opaque(&handle).u32(0).u32(0).u32(0).u32(1).u64(size).u32(0).u32(0).u32(0);
        })?;
        self.granted(&mut Reader::new(&answer), || format!("SETATTR {name} size {size}"))
    }

    /// The attributes of an open file.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub fn status(&mut self, file: Handle) -> Result<Attributes, NfsError> {
        let (handle, name) = self.of(file);
        self.attributes(&handle, &name)
    }

    /// How many bytes are free for this user.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub fn free(&mut self) -> Result<u64, NfsError> {
        let root = self.root.clone();
        let answer = self.call(procedure::FSSTAT, |writer| {
            writer.opaque(&root);
        })?;
        let mut reader = Reader::new(&answer);
        self.granted(&mut reader, || "FSSTAT".to_owned())?;
        Attributes::after(&mut reader)?;
        let (_, _) = (reader.u64()?, reader.u64()?);
        reader.u64()
    }

    /// Writes all of these bytes, and waits until the server has accepted them, at least into its memory.
    ///
    /// # Errors
    /// Some of the bytes may not have been written.
    pub fn write_all(&mut self, file: Handle, bytes: &[u8], offset: u64) -> Result<(), NfsError> {
        let (handle, name) = self.of(file);
        let mut at = 0;
        while at < bytes.len() {
            let part = &bytes[at..bytes.len().min(at + self.most_written)];
            let start = offset + at as u64;
            let (count, verifier) = self.over_any_connection(|session| {
                session.write_now(&handle, &name, start, part, Stability::Unstable)
            })?;
            let kept = self.calls.keeps.then_some(&part[..count]);
            let open = self.calls.files[file.0 as usize].as_mut();
            let has_changed = open.is_some_and(|open| open.note(start, count, kept, verifier));
            at += count;
            if has_changed || self.is_full() {
                self.over_any_connection(|session| session.commit_all(file.0))?;
            }
        }
        Ok(())
    }

    fn of(&self, file: Handle) -> (Vec<u8>, String) {
        let open = self.calls.files[file.0 as usize].as_ref();
        open.map_or_else(Default::default, |open| (open.handle.clone(), open.name.clone()))
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The file does not exist, or cannot be removed.
    pub fn remove(&mut self, path: &str) -> Result<(), NfsError> {
        let (above, name) = path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", path));
        let missing = || NfsError::Refused { what: format!("REMOVE {path}"), code: 2 };
        let (directory, _) = self.find(above)?.ok_or_else(missing)?;
        let tries = Cell::new(0);
        let answer = self.over_any_connection(|session| {
            tries.set(tries.get() + 1);
            session.patiently(procedure::REMOVE, &|writer| {
                writer.opaque(&directory).opaque(name.as_bytes());
            })
        })?;
        match self.granted(&mut Reader::new(&answer), || format!("REMOVE {path}")) {
            // An earlier call removed the file, and its answer was lost with the connection.
            Err(NfsError::Refused { code: 2, .. }) if tries.get() > 1 => Ok(()),
            result => result,
        }
    }

    /// The names of the regular files in a directory, in order.
    ///
    /// # Errors
    /// The directory does not exist, or the server does not answer or refuses.
    pub fn list(&mut self, path: &str) -> Result<Vec<String>, NfsError> {
        let missing = || NfsError::Refused { what: format!("READDIR {path}"), code: 2 };
        let (directory, _) = self.find(path)?.ok_or_else(missing)?;
        let (mut names, mut cookie, mut proof) = (Vec::new(), 0, [0; 8]);
        loop {
            let answer = self.call(procedure::READDIRPLUS, |writer| {
                writer.opaque(&directory).u64(cookie);
                writer.0.extend_from_slice(&proof);
                writer.u32(PAGE / 4).u32(PAGE);
            })?;
            let mut reader = Reader::new(&answer);
            self.granted(&mut reader, || format!("READDIR {path}"))?;
            Attributes::after(&mut reader)?;
            proof = reader.take(8)?.try_into().expect("there are eight");
            let before = cookie;
            while reader.boolean()? {
                reader.u64()?;
                let name = String::from_utf8_lossy(reader.opaque(4096)?).into_owned();
                cookie = reader.u64()?;
                let mut attributes = Attributes::after(&mut reader)?;
                if reader.boolean()? {
                    let handle = reader.opaque(HANDLE)?.to_vec();
                    if attributes.is_none() {
                        attributes = Some(self.attributes(&handle, &name)?);
                    }
                }
                let kind = match attributes {
                    Some(attributes) => Some(attributes.kind),
                    None => self.look_up(&directory, &name, path)?.map(|(_, attributes)| attributes.kind),
                };
                if kind == Some(Kind::File) {
                    names.push(name);
                }
            }
            let is_end = reader.boolean()?;
            if is_end || cookie == before || names.len() > MOST_NAMES {
                break;
            }
        }
        names.sort();
        Ok(names)
    }
}

/// The names that a path consists of.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty() && *name != ".")
}
