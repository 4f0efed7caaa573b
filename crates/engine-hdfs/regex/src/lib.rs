//! `regex-lite` under the name of `regex`, for hdfs-native.

pub use regex_lite::*;
