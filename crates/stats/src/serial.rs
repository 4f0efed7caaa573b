//! How numbers leave the process that not every reader can hold.
//!
//! JavaScript's numbers, and those of many JSON readers, are exact up to 2⁵³. Sums of 128 bits are therefore written as
//! decimal text.

/// `u128` as decimal text: `"340282366920938463463374607431768211455"`. For `#[serde(with = "…")]`.
pub(crate) mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|why| D::Error::custom(format_args!("{text:?} is no 128-bit number: {why}")))
    }
}
