//! Where the data of a test is, as options of jobs.

use super::Section;

/// The least size of objects that are sent in parts, and of the parts.
const PART: u64 = 8 << 20;
/// The most parts of an object.
const MOST_PARTS: u64 = 10_000;

/// The kind of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Files in a directory.
    Files,
    /// Files of an NFS export, reached without mounting it.
    Export,
    /// Objects of S3 or WebDAV.
    Objects,
    /// A block device, whose data is lost.
    Device,
}

/// Where the data of a test is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its kind.
    pub kind: Kind,
    /// The options that say where it is: `directory`, or an engine with its own.
    pub options: Vec<(String, String)>,
    /// What stands before all names.
    pub prefix: String,
    /// Reads and writes go around the page cache.
    pub is_direct: bool,
    /// The jobs run on several machines.
    pub is_on_machines: bool,
}

impl Place {
    /// The section of options that all jobs of a test have.
    pub(crate) fn global(&self) -> Section {
        let mut section = Section::new("global");
        for (option, value) in &self.options {
            section = section.set(option, value);
        }
        section
            .set_if(self.is_direct, "direct", 1)
            .set_if(self.is_on_machines, "client_barrier", 1)
            // (The names tell machines apart.)
            .set_if(self.is_on_machines, "unique_filename", 0)
            .set("lat_percentiles", 1)
    }

    /// A name in it.
    pub(crate) fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Options of jobs whose files are objects of this size, which are read and written by parts of that size.
    pub(crate) fn of_whole_objects(&self, section: Section, bytes: u64, part: u64) -> Section {
        if self.kind != Kind::Objects {
            return section;
        }
        let section = section.set("http_object_mode", "range");
        section.set_if(self.is_s3() && bytes > part, "http_s3_multipart_size", part)
    }

    /// It has objects of S3, which are written at once or in parts.
    pub(crate) fn is_s3(&self) -> bool {
        self.options.iter().any(|(option, value)| option == "http_mode" && value == "s3")
    }
}

/// The size of the parts of an object.
pub(crate) fn part_of(bytes: u64) -> u64 {
    bytes.div_ceil(MOST_PARTS).next_multiple_of(1 << 20).max(PART)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn files() -> Place {
        Place {
            kind: Kind::Files,
            options: vec![("directory".to_owned(), "/d".to_owned())],
            prefix: String::new(),
            is_direct: false,
            is_on_machines: false,
        }
    }

    pub(crate) fn objects() -> Place {
        let options = [("ioengine", "http"), ("http_mode", "s3"), ("http_host", "h")];
        Place {
            kind: Kind::Objects,
            options: options.map(|(option, value)| (option.to_owned(), value.to_owned())).to_vec(),
            prefix: "/bucket/".to_owned(),
            ..files()
        }
    }

    #[test]
    fn large_objects_have_parts_of_a_size_that_the_store_takes() {
        assert_eq!(part_of(1), 8 << 20);
        assert_eq!(part_of(200 << 30), 21 << 20);
        let text = objects().of_whole_objects(Section::new("x"), 9 << 20, PART).text();
        assert_eq!(text, "[x]\nhttp_object_mode=range\nhttp_s3_multipart_size=8388608\n\n");
        assert_eq!(files().of_whole_objects(Section::new("x"), 9 << 20, PART).text(), "[x]\n\n");
    }
}
