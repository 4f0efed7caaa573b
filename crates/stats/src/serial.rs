//! The serialised form of numbers that not every reader can hold.
//!
//! JavaScript's numbers, like those of many JSON readers, are exact only up to 2⁵³. Sums of 128 bits are therefore
//! written as decimal text.

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

#[cfg(test)]
mod tests {
    use crate::arbitrary;
    use crate::report::Report;
    use crate::snapshot::Snapshot;
    use proptest::prelude::*;

    proptest! {
        // A report is large.
        #![proptest_config(iolite_testing::properties(64))]

        #[test]
        fn reports_come_back_as_they_were(report in arbitrary::report()) {
            let text = serde_json::to_string(&report).unwrap();
            prop_assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
        }

        #[test]
        fn snapshots_come_back_as_they_were(snapshot in arbitrary::snapshot()) {
            let text = serde_json::to_string(&snapshot).unwrap();
            prop_assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot);
        }

        #[test]
        fn workers_can_be_merged_elsewhere(jobs in arbitrary::jobs()) {
            let parts = |jobs| [Report { jobs, groups: vec![arbitrary::group(0)], ..Report::default() }];
            let there = serde_json::from_str(&serde_json::to_string(&jobs).unwrap()).unwrap();
            prop_assert_eq!(Report::merge(parts(there)), Report::merge(parts(jobs)));
        }
    }
}
