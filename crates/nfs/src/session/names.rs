//! Finds, creates, resizes, removes and lists files on the server.

use super::{Handle, Opened, Session};
use crate::NfsError;
use crate::protocol::{Attributes, Kind, Version};
use crate::v4;
use std::cell::Cell;

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
        self.calls.protocol.look_up(self, directory, name, path)
    }

    fn attributes(&mut self, handle: &[u8], path: &str) -> Result<Attributes, NfsError> {
        self.calls.protocol.attributes(self, handle, path)
    }

    fn refused(&self, what: String, code: u32) -> NfsError {
        NfsError::Refused { what, code, version: self.address.version }
    }

    /// Opens a regular file; `writes` = not only to read it.
    ///
    /// # Errors
    /// No regular file has this name.
    pub fn open(&mut self, path: &str, writes: bool) -> Result<(Handle, Attributes), NfsError> {
        match self.find(path)? {
            Some((handle, attributes)) if attributes.kind == Kind::File => {
                let opened = self.calls.protocol.open(self, handle, path, writes)?;
                Ok((self.keep_file(opened), attributes))
            }
            Some((_, Attributes { kind: Kind::Directory, .. })) => {
                Err(self.refused(format!("open {path}"), 21))
            }
            Some(_) => Err(self.refused(format!("open {path}: it is not a regular file"), 22)),
            None => Err(self.refused(format!("open {path}"), 2)),
        }
    }

    /// Opens a regular file. If it does not exist, creates it and the directories above it.
    ///
    /// # Errors
    /// The file cannot be opened or created.
    pub fn create(&mut self, path: &str) -> Result<(Handle, Attributes), NfsError> {
        match self.open(path, true) {
            Err(NfsError::Refused { code: 2, .. }) => {}
            result => return result,
        }
        let names: Vec<&str> = parts(path).collect();
        let Some((name, above)) = names.split_last() else {
            return Err(self.refused(format!("open {path}"), 21));
        };
        let mut directory = self.root.clone();
        for step in above {
            directory = match self.look_up(&directory, step, path)? {
                Some((handle, _)) => handle,
                None => self.calls.protocol.make_directory(self, &directory, step, path)?,
            };
        }
        let opened = self.calls.protocol.create(self, &directory, name, path)?;
        let attributes = self.attributes(&opened.handle, path)?;
        Ok((self.keep_file(opened), attributes))
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
        let done = self.calls.protocol.close(self, &closed.opened);
        match closed.lost {
            0 => committed.and(done),
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
        let is_it = |file: &Option<super::File>| file.as_ref().is_some_and(|file| file.opened.name == path);
        self.calls.files.iter().position(is_it).map(|place| Handle(place as u32))
    }

    /// Sets the size of an open file.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub fn set_size(&mut self, file: Handle, size: u64) -> Result<(), NfsError> {
        self.with_state(file, |session, opened| session.calls.protocol.set_size(session, opened, size))
    }

    /// The attributes of an open file.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub fn status(&mut self, file: Handle) -> Result<Attributes, NfsError> {
        let opened = self.of(file);
        self.attributes(&opened.handle, &opened.name)
    }

    /// How many bytes are free for this user.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub fn free(&mut self) -> Result<u64, NfsError> {
        self.calls.protocol.free(self)
    }

    /// Writes all of these bytes, and waits until the server has accepted them, at least into its memory.
    ///
    /// # Errors
    /// Some of the bytes may not have been written.
    pub fn write_all(&mut self, file: Handle, bytes: &[u8], offset: u64) -> Result<(), NfsError> {
        let mut at = 0;
        while at < bytes.len() {
            let part = &bytes[at..bytes.len().min(at + self.most_written)];
            let start = offset + at as u64;
            let (count, verifier) = self.with_state(file, |session, opened| {
                session.over_any_connection(|session| session.write_now(opened, start, part))
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

    fn of(&self, file: Handle) -> Opened {
        let open = self.calls.files[file.0 as usize].as_ref();
        open.map_or_else(|| Opened::new(Vec::new(), String::new()), |open| open.opened.clone())
    }

    /// Does something with an open file. If the server no longer knows that it is open, opens it again and repeats this
    /// once.
    fn with_state<T>(
        &mut self,
        file: Handle,
        act: impl Fn(&mut Session, &Opened) -> Result<T, NfsError>,
    ) -> Result<T, NfsError> {
        let opened = self.of(file);
        match act(self, &opened) {
            Err(NfsError::Refused { code, version: Version::Four, .. }) if v4::has_lost_state(code) => {
                // (With another connection, the file may have been opened again already.)
                if let Some(file) = &mut self.calls.files[file.0 as usize]
                    && file.opened.state == opened.state
                {
                    file.is_doubtful = true;
                }
                self.over_any_connection(|session| session.calls.protocol.reopen(session))?;
                let opened = self.of(file);
                act(self, &opened)
            }
            result => result,
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The file does not exist, or cannot be removed.
    pub fn remove(&mut self, path: &str) -> Result<(), NfsError> {
        let (above, name) = path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", path));
        let missing = self.refused(format!("REMOVE {path}"), 2);
        let (directory, _) = self.find(above)?.ok_or(missing)?;
        let tries = Cell::new(0);
        let removed = self.over_any_connection(|session| {
            tries.set(tries.get() + 1);
            session.calls.protocol.remove(session, &directory, name, path)
        });
        match removed {
            // An earlier call removed the file, and its answer was lost with the connection.
            Err(NfsError::Refused { code: 2, .. }) if tries.get() > 1 => Ok(()),
            // Another client has removed the file, or its directory, in the middle of the call (NFS4ERR_STALE).
            Err(NfsError::Refused { code: 70, .. }) => Err(self.refused(format!("REMOVE {path}"), 2)),
            result => result,
        }
    }

    /// The names of the regular files in a directory, in order.
    ///
    /// # Errors
    /// The directory does not exist, or the server does not answer or refuses.
    pub fn list(&mut self, path: &str) -> Result<Vec<String>, NfsError> {
        let missing = self.refused(format!("READDIR {path}"), 2);
        let (directory, _) = self.find(path)?.ok_or(missing)?;
        let (mut names, mut cookie, mut proof) = (Vec::new(), 0, [0; 8]);
        loop {
            let page = self.calls.protocol.list(self, &directory, (cookie, proof), path)?;
            for entry in page.entries {
                let kind = match entry.kind {
                    None => {
                        self.look_up(&directory, &entry.name, path)?.map(|(_, attributes)| attributes.kind)
                    }
                    kind => kind,
                };
                if kind == Some(Kind::File) {
                    names.push(entry.name);
                }
            }
            if page.is_end || page.cookie == cookie || names.len() > MOST_NAMES {
                break;
            }
            (cookie, proof) = (page.cookie, page.proof);
        }
        names.sort();
        Ok(names)
    }
}

/// The names that a path consists of.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty() && *name != ".")
}
