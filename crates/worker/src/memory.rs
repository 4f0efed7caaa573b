//! A worker's buffers: one region of the kind of memory that the job requests, with a buffer per unit.
//!
//! Nothing is touched here: unused memory costs nothing.

use iolite_engine::{Storage, Stored};
use iolite_host::{Machine, ThisMachine};
use iolite_os::explained;
use iolite_os::memory::{self, page_size};
use iolite_plan::resolve::{BufferRules, Fallocate, MemoryKind};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

/// The region. It must outlive everything that points into it; dropping it frees the memory.
pub struct Buffers {
    /// The first buffer.
    pub start: *mut u8,
    /// Bytes from one buffer to the next, at least the largest block size.
    pub stride: usize,
    /// The number of buffers.
    pub count: usize,
    origin: Origin,
}

/// Where the memory came from, which decides how to free it.
enum Origin {
    Heap(*mut u8, Layout),
    Mapping(*mut libc::c_void, usize),
    Segment(*mut libc::c_void),
    /// The storage of the engine frees it.
    Storage,
}

impl Buffers {
    /// Allocates the buffers that these rules describe: in the memory of the engine's storage, if it has a kind of its own
    /// and the job asks for no other.
    ///
    /// # Errors
    /// There is not enough memory of this kind, or the file to map cannot be used.
    pub fn new(rules: &BufferRules, storage: Option<&mut dyn Storage>) -> io::Result<Buffers> {
        let (largest, count) = (rules.largest, rules.count);
        let page = page_size();
        let align = rules.align.max(1) as usize;
        // Direct I/O needs buffers aligned to the device's logical blocks; a page is enough for all.
        let unit = if rules.direct || rules.align > 0 { page } else { 64 };
        let stride = usize::try_from(largest).ok().and_then(|size| size.checked_next_multiple_of(unit));
        let stride = stride.and_then(|size| size.checked_next_multiple_of(align));
        let bytes = stride
            .and_then(|stride| stride.checked_mul(count))
            .and_then(|bytes| bytes.checked_add(align))
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM));
        let storage = storage.filter(|_| rules.of_storage);
        let taken = bytes.and_then(|bytes| match storage.and_then(|storage| storage.memory(bytes)) {
            Some(memory) => Ok((memory?, Origin::Storage)),
            None => take(rules, bytes, page),
        });
        let (base, origin) = taken.map_err(|error| too_much(rules, error))?;
        // If the size is not zero, there is a stride.
        let stride = stride.unwrap_or(unit);
        let past = base.addr() % align;
        let start = base.wrapping_add(if past == 0 { 0 } else { align - past });
        Ok(Buffers { start, stride, count, origin })
    }

    /// The buffers, in order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let (start, stride) = (self.start, self.stride);
        // SAFETY: the buffers are disjoint parts of one live region, and `self` is borrowed uniquely meanwhile.
        (0..self.count)
            .map(move |index| unsafe { std::slice::from_raw_parts_mut(start.add(index * stride), stride) })
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        match self.origin {
            // SAFETY: allocated with this layout.
            Origin::Heap(start, layout) => unsafe { dealloc(start, layout) },
            // SAFETY: the mapping is this value's own, and nothing is in flight that uses it.
            Origin::Mapping(start, bytes) => unsafe { memory::unmap(start, bytes) },
            // SAFETY: attached by `segment`, which also marked it for removal, so detaching frees it.
            Origin::Segment(start) => unsafe {
                libc::shmdt(start);
            },
            Origin::Storage => {}
        }
    }
}

/// Allocates memory of the kind that the job asks for.
fn take(rules: &BufferRules, bytes: usize, page: usize) -> io::Result<(*mut u8, Origin)> {
    match rules.kind {
        MemoryKind::Malloc => heap(bytes, page),
        MemoryKind::Shm => segment(bytes, 0),
        MemoryKind::ShmHuge => {
            let (size, flag) = huge_pages(rules);
            segment(round_up(bytes, size)?, libc::SHM_HUGETLB | flag)
        }
        MemoryKind::Mmap => mapping(rules, bytes, libc::MAP_PRIVATE),
        MemoryKind::MmapShared => mapping(rules, bytes, libc::MAP_SHARED),
        MemoryKind::MmapHuge => mapping(rules, round_up(bytes, huge_pages(rules).0)?, libc::MAP_PRIVATE),
    }
}

/// Adds the purpose of the memory to an out-of-memory error.
fn too_much(rules: &BufferRules, error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(libc::ENOMEM) {
        return error;
    }
    let (largest, count) = (rules.largest, rules.count);
    let alignment = match rules.align {
        0 => String::new(),
        align => format!(", each at a multiple of {align} (iomem_align)"),
    };
    let text = format!("no memory for {count} buffers of {largest} bytes (iodepth, bs){alignment}");
    explained(&error, text)
}

fn round_up(bytes: usize, unit: usize) -> io::Result<usize> {
    bytes.checked_next_multiple_of(unit).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
}

/// The size of the huge pages to use, and the flag that asks for it (linux/mman.h): that of the job if the kernel has such
/// pages, and otherwise the kernel's default, without a flag. (Which sizes there are depends on the size of its pages; the
/// default is 2 MiB with 4 KiB, 32 MiB with 16 KiB, and 512 MiB with 64 KiB.)
fn huge_pages(rules: &BufferRules) -> (usize, libc::c_int) {
    let memory = ThisMachine::new().memory();
    let size = rules.huge_page.or(memory.default_huge_page).unwrap_or(0).max(page_size() as u64) as usize;
    if size.is_power_of_two() && memory.huge_pages.iter().any(|pages| pages.page_bytes == size as u64) {
        return (size, (size.trailing_zeros() as libc::c_int) << libc::MAP_HUGE_SHIFT);
    }
    let default = memory.default_huge_page.map_or(1, |bytes| bytes.max(1) as usize);
    (size.checked_next_multiple_of(default).unwrap_or(size), 0)
}

/// Zeroed memory that begins at a page. The requested alignment is that of calloc(3): with a larger one, the standard
/// library would write the zeros itself, and so touch every page.
fn heap(bytes: usize, page: usize) -> io::Result<(*mut u8, Origin)> {
    let none = || io::Error::from_raw_os_error(libc::ENOMEM);
    let whole = bytes.checked_add(page).ok_or_else(none)?;
    let layout = Layout::from_size_align(whole, align_of::<u64>()).map_err(|_| none())?;
    // SAFETY: the size is not zero: there is a page for alignment.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return Err(none());
    }
    let gap = start.addr().next_multiple_of(page) - start.addr();
    Ok((start.wrapping_add(gap), Origin::Heap(start, layout)))
}

/// Writes a zero to every page, so that the kernel allocates the buffer's memory now.
pub fn touch(buffer: &mut [u8]) {
    for byte in buffer.iter_mut().step_by(page_size()) {
        // SAFETY: the reference is valid. The write is volatile, because writing a zero to a zero has no other effect
        // than the page.
        unsafe { ptr::write_volatile(byte, 0) };
    }
}

/// Anonymous memory, or the file that `mem=mmap…:FILE` names.
fn mapping(rules: &BufferRules, bytes: usize, sharing: libc::c_int) -> io::Result<(*mut u8, Origin)> {
    let huge = rules.kind == MemoryKind::MmapHuge;
    let start = match &rules.file {
        None => {
            let pages = if huge { libc::MAP_HUGETLB | huge_pages(rules).1 } else { 0 };
            memory::map(bytes, sharing | libc::MAP_ANONYMOUS | pages, -1)
                .map_err(|error| explain(error, huge))?
        }
        Some(path) => {
            let file = open_mem_file(path, bytes as u64, sharing)
                .map_err(|error| explained(&error, format!("mem file {path}: {error}")))?;
            map_file(&file, bytes, sharing)?
        }
    };
    Ok((start.cast(), Origin::Mapping(start, bytes)))
}

/// Maps a file, and anonymous memory for the part beyond its end: an access beyond the end of a mapped file raises
/// SIGBUS. Devices cannot be mapped beyond their end.
fn map_file(file: &File, bytes: usize, sharing: libc::c_int) -> io::Result<*mut libc::c_void> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() >= bytes as u64 {
        return memory::map(bytes, sharing, file.as_raw_fd());
    }
    let start = memory::map(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)?;
    let within = round_up(metadata.len() as usize, page_size())?.min(bytes);
    // SAFETY: the mapping is new, unused, and at least this long.
    let mapped = unsafe { memory::map_over(start, within, sharing, file.as_raw_fd()) };
    // SAFETY: the mapping was made above, and nothing else refers to it.
    mapped.map(|()| start).inspect_err(|_| unsafe { memory::unmap(start, bytes) })
}

/// Opens the file that is to be mapped, and extends it unless it holds data. A file that exists is shared. A file that
/// this worker creates is its own: it is removed at once, and the mapping keeps it alive.
///
/// Writes to a shared mapping go into the file, so room for it is reserved: a full file system would raise SIGBUS
/// later.
fn open_mem_file(path: &str, bytes: u64, sharing: libc::c_int) -> io::Result<File> {
    let how = || {
        let mut how = File::options();
        how.read(true).write(true);
        how
    };
    let mut file = loop {
        match how().create_new(true).open(path) {
            Ok(file) => match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => break file,
            },
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        match how().open(path) {
            Ok(file) => break file,
            // Another worker has created and removed it in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    };
    let metadata = file.metadata()?;
    let holds_data = metadata.len() > 0 && iolite_plan::holds_data(&ThisMachine::new(), path.as_ref());
    if metadata.is_file() && metadata.len() < bytes && !holds_data {
        file.set_len(bytes)?;
        if sharing == libc::MAP_SHARED {
            match file.extend(bytes, Fallocate::Native) {
                Err(error) if !matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) => {
                    return Err(error);
                }
                _ => {}
            }
        }
    }
    Ok(file)
}

fn segment(bytes: usize, flags: libc::c_int) -> io::Result<(*mut u8, Origin)> {
    // SAFETY: no pointers into our memory are involved. The segment is marked for removal as soon as it is attached, so
    // it goes with the last process that uses it.
    let start = unsafe {
        let id = libc::shmget(libc::IPC_PRIVATE, bytes, libc::IPC_CREAT | 0o600 | flags);
        if id < 0 {
            return Err(explain(io::Error::last_os_error(), flags & libc::SHM_HUGETLB != 0));
        }
        let start = libc::shmat(id, ptr::null(), 0);
        let attached = if start.addr() == usize::MAX { Err(io::Error::last_os_error()) } else { Ok(start) };
        libc::shmctl(id, libc::IPC_RMID, ptr::null_mut());
        attached?
    };
    Ok((start.cast(), Origin::Segment(start)))
}

/// Adds a remedy to the error if there are no huge pages.
fn explain(error: io::Error, huge: bool) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOMEM | libc::EPERM | libc::EINVAL) if huge => explained(
            &error,
            format!("no huge pages for the buffers ({error}); reserve some with sysctl vm.nr_hugepages=N"),
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(largest: u64, count: usize) -> BufferRules {
        let (kind, file) = (MemoryKind::Malloc, None);
        BufferRules {
            count,
            largest,
            kind,
            of_storage: false,
            file,
            align: 0,
            direct: false,
            huge_page: None,
            ready: count,
        }
    }

    #[test]
    fn every_kind_gives_disjoint_aligned_buffers() {
        for mem in [MemoryKind::Malloc, MemoryKind::Shm, MemoryKind::Mmap, MemoryKind::MmapShared] {
            let rules = BufferRules { kind: mem, direct: true, align: 8192, ..rules(5000, 3) };
            let mut buffers = Buffers::new(&rules, None).unwrap();
            assert_eq!((buffers.stride, buffers.count), (8192, 3), "{mem:?}");
            assert_eq!(buffers.start.addr() % 8192, 0, "{mem:?}");
            for (index, buffer) in buffers.iter_mut().enumerate() {
                buffer.fill(index as u8 + 1);
            }
            for (index, buffer) in buffers.iter_mut().enumerate() {
                assert!(buffer.iter().all(|&byte| byte == index as u8 + 1), "{mem:?}");
            }
        }
    }

    #[test]
    fn a_file_can_be_the_memory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = file.path().display().to_string();
        let rules = BufferRules { kind: MemoryKind::MmapShared, file: Some(name), ..rules(4096, 2) };
        let mut buffers = Buffers::new(&rules, None).unwrap();
        buffers.iter_mut().next().unwrap()[0] = 77;
        drop(buffers);
        assert_eq!(std::fs::read(file.path()).unwrap()[0], 77);
        let new = file.path().with_extension("new");
        let rules = BufferRules { file: Some(new.display().to_string()), ..rules };
        Buffers::new(&rules, None).unwrap().iter_mut().for_each(|buffer| buffer.fill(1));
        assert!(!new.exists(), "a file made for this goes with it");
    }

    #[test]
    fn a_file_that_holds_something_is_not_changed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for size in [5, 4096, 4097, 8192, 20_000] {
            let content = vec![7; size];
            std::fs::write(file.path(), &content).unwrap();
            let name = file.path().display().to_string();
            let rules = BufferRules { kind: MemoryKind::Mmap, file: Some(name), ..rules(4096, 3) };
            let mut buffers = Buffers::new(&rules, None).unwrap();
            assert_eq!(buffers.iter_mut().next().unwrap()[0], 7, "the file is the memory");
            buffers.iter_mut().for_each(|buffer| buffer.fill(1));
            drop(buffers);
            assert!(std::fs::read(file.path()).unwrap() == content, "{size}");
        }
    }

    #[test]
    fn errors_name_a_remedy_and_keep_their_number() {
        let error = explain(io::Error::from_raw_os_error(libc::ENOMEM), true);
        assert_eq!(iolite_os::errno_of(&error), libc::ENOMEM);
        assert!(error.to_string().ends_with("sysctl vm.nr_hugepages=N"), "{error}");
    }

    #[test]
    fn impossible_sizes_are_errors() {
        assert!(Buffers::new(&rules(u64::MAX, 2), None).is_err());
        assert!(Buffers::new(&rules(1 << 62, 8), None).is_err());
        let error = Buffers::new(&BufferRules { align: 1 << 60, ..rules(4096, 2) }, None).err().unwrap();
        assert_eq!(iolite_os::errno_of(&error), libc::ENOMEM);
        assert!(error.to_string().contains("iomem_align"), "{error}");
    }

    #[test]
    fn clones_may_make_the_same_file_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mem").display().to_string();
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let file = open_mem_file(&path, 4096, libc::MAP_SHARED).unwrap();
                        assert_eq!(file.metadata().unwrap().len(), 4096);
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_memory_file_that_cannot_grow_is_an_error_with_its_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        let rules = BufferRules { file: Some(path.clone()), ..rules(4096, 2) };
        // More than any file system supports.
        let error = mapping(&rules, i64::MAX as usize, libc::MAP_SHARED).err().unwrap();
        assert!(error.to_string().starts_with(&format!("mem file {path}: ")), "{error}");
    }
}
