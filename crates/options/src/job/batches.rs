//! Samples that an accelerator consumes in batches.

use crate::typed::Sample;

options! {
    /// Samples that an accelerator consumes in batches.
    pub struct BatchOptions at batches {
        /// Samples in a batch; 0 = there is no accelerator.
        pub batch_size: u64,
        pub batch_sample: Sample,
        /// How long the accelerator computes with a batch.
        pub batch_compute: u64,
        /// How many batches may be read while the one before is computed.
        pub batch_prefetch: u64,
    }
}
