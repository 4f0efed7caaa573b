//! The kernel's tracepoints: which there are, what their records look like, and whether this process may use them.

use crate::refusal::Refusal;
use iolite_os::tracefs::TraceFs;
use std::io;

/// A tracepoint of this kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracepoint {
    /// The number that its records begin with.
    pub id: u64,
    /// The fields of its records.
    pub fields: Vec<Field>,
}

/// A field of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub offset: usize,
    /// Its bytes.
    pub size: usize,
}

/// The tracepoints that `--stages` can use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracing {
    /// The CPUs that are online.
    pub cpus: Vec<u32>,
    /// Those of [`Tracing::NAMES`] that this kernel has, in that order.
    pub points: Vec<(&'static str, Tracepoint)>,
    /// The pages of the kernel's buffers.
    pub page: Page,
}

impl Tracing {
    /// The tracepoints that are looked for.
    pub const NAMES: [&'static str; 13] = [
        "block/block_bio_queue",
        "block/block_rq_issue",
        "block/block_rq_complete",
        "block/block_bio_remap",
        "block/block_bio_complete",
        "io_uring/io_uring_create",
        "io_uring/io_uring_submit_req",
        // Its name before Linux 6.4.
        "io_uring/io_uring_submit_sqe",
        "io_uring/io_uring_queue_async_work",
        "nvme/nvme_setup_cmd",
        "nvme/nvme_complete_rq",
        "scsi/scsi_dispatch_cmd_start",
        "scsi/scsi_dispatch_cmd_done",
    ];

    /// How many of them nothing works without.
    const REQUIRED: usize = 3;

    /// Reads the formats, and tries whether this process may record.
    pub(crate) fn read() -> Result<Tracing, Refusal> {
        let files = TraceFs::open().map_err(|error| unreadable(&error))?;
        let cpus = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
        let mut tracing = Tracing { cpus: crate::cpus::parse_list(cpus.trim()), ..Tracing::default() };
        for (number, name) in Tracing::NAMES.into_iter().enumerate() {
            match files.read(&format!("events/{name}/format")) {
                Ok(text) => {
                    let point = Tracepoint::parse(&text)
                        .ok_or_else(|| io::Error::other(format!("the format of {name} is unknown")))?;
                    tracing.points.push((name, point));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && number >= Tracing::REQUIRED => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let words =
                        format!("this kernel has no tracepoint {name} (CONFIG_BLOCK, CONFIG_TRACEPOINTS)");
                    return Err(Refusal { errno: Some(libc::ENOENT), words });
                }
                Err(error) => return Err(Refusal::from(error).about(name)),
            }
        }
        files.may_record().map_err(|error| forbidden(&error))?;
        if !is_in_first_namespace() {
            let words = "stages are not found in a container with process numbers of its own, because the kernel's \
                         records have those of the host; run on the host, or with its numbers (`--pid=host`)";
            return Err(Refusal { errno: Some(libc::EPERM), words: words.to_owned() });
        }
        tracing.page = Page::parse(&files.read("events/header_page")?)
            .ok_or_else(|| io::Error::other("the kernel's trace buffers have an unknown format"))?;
        Ok(tracing)
    }
}

/// Whether this process has the numbers by which the kernel's records call it.
fn is_in_first_namespace() -> bool {
    /// The inode of the first one is fixed (`PROC_PID_INIT_INO`).
    const FIRST: &str = "pid:[4026531836]";
    std::fs::read_link("/proc/self/ns/pid").map_or(true, |link| link.as_os_str() == FIRST)
}

/// What the pages of a trace buffer look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Where the count of bytes begins.
    pub commit: usize,
    /// Where the records begin.
    pub data: usize,
    /// The bytes of a page.
    pub size: usize,
}

impl Page {
    /// Reads `events/header_page`.
    fn parse(text: &str) -> Option<Page> {
        let fields = text.lines().filter_map(|line| Field::parse(line.trim().strip_prefix("field:")?));
        let mut page = Page::default();
        for field in fields {
            match field.name.as_str() {
                "commit" => page.commit = field.offset,
                "data" => (page.data, page.size) = (field.offset, field.offset + field.size),
                _ => {}
            }
        }
        (page.data > page.commit && page.size > page.data).then_some(page)
    }
}

/// Why the formats cannot be read.
fn unreadable(error: &io::Error) -> Refusal {
    let words = match error.raw_os_error() {
        Some(libc::EACCES) => {
            "the kernel's tracepoints cannot be read; as root, `mount -o remount,mode=755 /sys/kernel/tracing` \
             allows it, or run as root"
        }
        _ => {
            "the kernel's tracepoints cannot be found; as root, `mount -t tracefs nodev /sys/kernel/tracing` \
              shows them (a container needs the host's), or run as root"
        }
    };
    Refusal { errno: error.raw_os_error(), words: words.to_owned() }
}

/// Why recording is refused.
fn forbidden(error: &io::Error) -> Refusal {
    let words = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "recording the kernel's tracepoints needs root, or the rights to write to \
             /sys/kernel/tracing (`mount -o remount,mode=770,gid=GROUP /sys/kernel/tracing` as root)"
        }
        _ => {
            return Refusal::from(io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO)))
                .about("/sys/kernel/tracing/instances");
        }
    };
    Refusal { errno: error.raw_os_error(), words: words.to_owned() }
}

impl Tracepoint {
    /// Reads a `format` file.
    fn parse(text: &str) -> Option<Tracepoint> {
        let mut point = Tracepoint::default();
        for line in text.lines() {
            let line = line.trim();
            if let Some(id) = line.strip_prefix("ID:") {
                point.id = id.trim().parse().ok()?;
            } else if let Some(field) = line.strip_prefix("field:") {
                point.fields.push(Field::parse(field)?);
            }
        }
        (point.id > 0).then_some(point)
    }

    /// A field; `None` = its records have no such field.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    /// Reads `char rwbs[10]; offset:34; size:10; signed:0;`.
    fn parse(line: &str) -> Option<Field> {
        let mut parts = line.split(';').map(str::trim);
        let declared = parts.next()?;
        let name = declared.split_whitespace().next_back()?;
        let mut field =
            Field { name: name.split('[').next()?.trim_start_matches('*').to_owned(), ..Field::default() };
        for part in parts {
            match part.split_once(':') {
                Some(("offset", number)) => field.offset = number.parse().ok()?,
                Some(("size", number)) => field.size = number.parse().ok()?,
                _ => {}
            }
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read() {
        let text = "name: block_rq_issue\nID: 2104\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \n\
            \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
            \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
            \tfield:void * ctx;\toffset:48;\tsize:8;\tsigned:0;\n\
            \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\n\
            print fmt: \"%d,%d %s\", REC->dev, REC->sector\n";
        let point = Tracepoint::parse(text).unwrap();
        assert_eq!(point.id, 2104);
        let at = |name: &str| point.field(name).map(|field| (field.offset, field.size));
        assert_eq!((at("sector"), at("rwbs")), (Some((16, 8)), Some((34, 10))));
        assert_eq!((at("ctx"), at("cmd"), at("dev")), (Some((48, 8)), Some((60, 4)), None));
        assert_eq!(Tracepoint::parse("name: x\nformat:\n"), None, "without a number");
    }

    #[test]
    fn the_head_of_a_page_is_read() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        assert_eq!(Page::parse(text), Some(Page { commit: 8, data: 16, size: 4096 }));
        assert_eq!(Page::parse("nothing"), None);
    }

    #[test]
    fn refusals_name_the_remedy() {
        let error = |errno| io::Error::from_raw_os_error(errno);
        assert!(forbidden(&error(libc::EACCES)).words.contains("needs root"));
        assert_eq!(
            forbidden(&error(libc::EMFILE)).words,
            "/sys/kernel/tracing/instances: Too many open files"
        );
        assert!(unreadable(&error(libc::EACCES)).words.contains("remount,mode=755"));
        assert!(unreadable(&error(libc::ENOENT)).words.contains("mount -t tracefs"));
    }

    #[test]
    fn the_tracepoints_of_this_machine_are_found_or_refused_with_words() {
        match Tracing::read() {
            Ok(tracing) => {
                assert!(!tracing.cpus.is_empty());
                for name in &Tracing::NAMES[..Tracing::REQUIRED] {
                    let point = tracing.points.iter().find(|(known, _)| known == name);
                    assert!(point.is_some_and(|(_, point)| point.field("sector").is_some()), "{name}");
                }
            }
            Err(refusal) => assert!(refusal.words.len() > 20, "{refusal:?}"),
        }
    }
}
