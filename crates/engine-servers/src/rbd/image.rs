//! An image, open.

use super::librbd::{Encryption, Librbd, LuksOptions};
use crate::ceph::{Pool, text};
use iolite_engine::library::Handle;
use iolite_options::engines::{Luks, RbdOptions};
use iolite_os::explained;
use iolite_types::describe_error;
use std::io;
use std::ptr;

/// An open image. Dropping it writes its cache and closes it.
pub(super) struct Image {
    pub(super) rbd: &'static Librbd,
    pub(super) handle: Handle,
}

// SAFETY: the library may be called from any thread.
unsafe impl Send for Image {}

impl Image {
    /// Opens the image of these options, read-only if the job does not write.
    ///
    /// # Errors
    /// The image does not exist or may not be used; the error says why.
    pub(super) fn open(
        rbd: &'static Librbd,
        pool: &Pool,
        options: &RbdOptions,
        writes: bool,
    ) -> io::Result<Image> {
        let refused = |(errno, words)| explained(&io::Error::from_raw_os_error(errno), words);
        let name = text("rbdname", options.image()).map_err(refused)?;
        let snapshot = options.snapshot().map(|name| text("rbdname", name)).transpose().map_err(refused)?;
        let snapshot = snapshot.as_ref().map_or(ptr::null(), |name| name.as_ptr());
        let mut handle = ptr::null_mut();
        let open = if writes { rbd.open } else { rbd.open_read_only };
        // SAFETY: the pool is open, the names end with a zero (no snapshot is null), and there is room for the handle.
        let result = unsafe { open(pool.handle, name.as_ptr(), &raw mut handle, snapshot) };
        if result < 0 {
            return Err(refused((-result, why_not_open(-result, pool, options))));
        }
        let image = Image { rbd, handle };
        if let Some(format) = options.rbd_encryption_format {
            image.decrypt(format, options).map_err(refused)?;
        }
        if writes {
            // The library's cache delays writes only after a first flush, which shows that its user flushes. With fio
            // it does so from the first write on, so results must be comparable with that.
            image.flush()?;
        }
        Ok(image)
    }

    /// Sets up encryption, so that the library decrypts reads and encrypts writes.
    fn decrypt(&self, format: Luks, options: &RbdOptions) -> Result<(), (i32, String)> {
        let passphrase = options.rbd_encryption_passphrase.given("rbd_encryption_passphrase");
        let passphrase = passphrase.map_err(|words| (libc::EINVAL, words))?.unwrap_or_default();
        let encryption = Encryption::load().map_err(|words| (libc::ENOSYS, words))?;
        let (number, word) = match format {
            Luks::One => (0, "luks1"),
            Luks::Two => (1, "luks2"),
        };
        // (The algorithm matters only when an image is formatted.)
        let mut luks =
            LuksOptions { algorithm: 1, passphrase: passphrase.as_ptr().cast(), length: passphrase.len() };
        // SAFETY: the image is open, and these are the options of that format, valid through the call.
        let result = unsafe {
            (encryption.load)(self.handle, number, (&raw mut luks).cast(), size_of::<LuksOptions>())
        };
        let image = &options.rbdname;
        match -result {
            ..=0 => Ok(()),
            errno @ (libc::EPERM | libc::EACCES) => {
                Err((errno, format!("image {image}: rbd_encryption_passphrase is wrong")))
            }
            errno @ libc::EINVAL => Err((
                errno,
                format!(
                    "image {image}: it is not encrypted with rbd_encryption_format={word} (rbd encryption format encrypts an \
                     image)"
                ),
            )),
            errno => {
                Err((errno, format!("image {image}: it cannot be decrypted as {word}: {}", describe(errno))))
            }
        }
    }

    /// Its size in bytes.
    pub(super) fn size(&self) -> io::Result<u64> {
        let mut size = 0;
        // SAFETY: the image is open, and there is room for the size.
        match unsafe { (self.rbd.size)(self.handle, &raw mut size) } {
            0.. => Ok(size),
            result => Err(io::Error::from_raw_os_error(-result)),
        }
    }

    /// Puts written data on stable storage.
    pub(super) fn flush(&self) -> io::Result<()> {
        // SAFETY: the image is open.
        match unsafe { (self.rbd.flush)(self.handle) } {
            0.. => Ok(()),
            result => Err(io::Error::from_raw_os_error(-result)),
        }
    }

    /// Closes it.
    ///
    /// # Errors
    /// Written data may be lost.
    pub(super) fn close(self) -> io::Result<()> {
        let (rbd, handle) = (self.rbd, self.handle);
        std::mem::forget(self);
        // SAFETY: the image is open, and not used after this.
        match unsafe { (rbd.close)(handle) } {
            0.. => Ok(()),
            result => Err(io::Error::from_raw_os_error(-result)),
        }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: the image is open, and not used after this.
        unsafe { (self.rbd.close)(self.handle) };
    }
}

fn why_not_open(errno: i32, pool: &Pool, options: &RbdOptions) -> String {
    let (pool, image) = (&pool.name, options.image());
    match (errno, options.snapshot()) {
        (libc::ENOENT, None) => {
            format!(
                "there is no image {image} in pool {pool}; rbd create --size 1G {pool}/{image} makes one of 1 GiB"
            )
        }
        (libc::ENOENT, Some(snapshot)) => format!(
            "there is no image {image} in pool {pool}, or it has no snapshot {snapshot}; rbd snap create \
             {pool}/{image}@{snapshot} makes one"
        ),
        (libc::EPERM | libc::EACCES, _) => format!(
            "the user has no permission for image {image} of pool {pool} (ceph auth get shows the permissions; \
             'profile rbd' is needed)"
        ),
        (libc::EROFS, _) => format!("image {image} of pool {pool} can only be read"),
        (errno, _) => format!("image {image} of pool {pool} cannot be opened: {}", describe(errno)),
    }
}

fn describe(errno: i32) -> String {
    describe_error(&io::Error::from_raw_os_error(errno))
}
