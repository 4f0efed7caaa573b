//! The size of the files, the part of them that is used, and the amount of I/O.

use crate::typed::{Range, SizeValue};

options! {
    /// The size of the files, the part of them that is used, and the amount of I/O.
    pub struct ExtentOptions at extent {
        pub filesize: Option<Range>,
        pub size: Option<SizeValue>,
        pub io_size: Option<SizeValue>,
        pub offset: SizeValue,
        pub offset_increment: SizeValue,
        /// 0 = aligned to `ba` only.
        pub offset_align: u64,
        pub file_append: bool,
        pub fill_device: bool,
        /// 0 = no limit.
        pub number_ios: u64,
        /// Ranges per trim; 0 and 1 = one.
        pub num_range: u32,
    }
}

impl ExtentOptions {
    /// Whether an option gives the size of the files in bytes, rather than as a share of what is there, or not at all.
    pub fn gives_size(&self) -> bool {
        matches!(self.size, Some(SizeValue::Bytes(_))) || self.filesize.is_some()
    }
}
