//! The sources of traces: files, standard input, pipes and sockets.

use iolite_types::is_standard_stream;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Opens the source of this name: standard input for `-`, a connection for a Unix socket, anything else as a file.
///
/// # Errors
///
/// The system's error if the source cannot be opened; `EISDIR` if it is a directory.
pub fn open(path: &Path) -> io::Result<File> {
    if is_standard_stream(path) {
        // This bypasses the buffer of the standard library, which would withhold bytes from a later reader.
        return Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?));
    }
    if std::fs::metadata(path)?.file_type().is_socket() {
        return Ok(File::from(OwnedFd::from(UnixStream::connect(path)?)));
    }
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    Ok(file)
}

/// Whether the source of this name can be read only once.
pub fn is_stream(path: &Path) -> bool {
    is_standard_stream(path)
        || std::fs::metadata(path).is_ok_and(|metadata| {
            let kind = metadata.file_type();
            kind.is_fifo() || kind.is_socket() || kind.is_char_device()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_is_connected_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        assert!(is_stream(&path));
        let server = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"trace").unwrap());
        let mut text = String::new();
        open(&path).unwrap().read_to_string(&mut text).unwrap();
        server.join().unwrap();
        assert_eq!(text, "trace");
    }

    #[test]
    fn files_can_be_read_again_and_directories_not_at_all() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(!is_stream(file.path()));
        assert!(is_stream(Path::new("-")));
        let directory = tempfile::tempdir().unwrap();
        let errno = |path: &Path| open(path).err().and_then(|error| error.raw_os_error());
        assert_eq!(errno(directory.path()), Some(libc::EISDIR));
        assert_eq!(errno(&directory.path().join("none")), Some(libc::ENOENT));
    }
}
