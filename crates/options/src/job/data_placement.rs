//! Where a device should put written data.

use crate::typed::{DataPlacement, PlacementChoice};

options! {
    /// Where a device should put written data.
    pub struct DataPlacementOptions at data_placement {
        pub dataplacement: DataPlacement,
        pub plid_select: PlacementChoice,
        /// Places in the device's list of handles, or streams; empty = all handles.
        pub plids: Vec<u16>,
        /// The file with the handles for ranges of offsets; empty = none.
        pub dp_scheme: String,
    }
}
