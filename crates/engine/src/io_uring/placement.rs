//! Where the device is to put what is written: placement handles (Flexible Data Placement) and streams.
//!
//! A write says it in two fields: the directive's type in dword 12, and the directive's value (a placement identifier, a
//! stream) in the upper half of dword 13.

use iolite_options::{DataPlacement, PlacementChoice, PlacementOptions};
use iolite_os::nvme::Handle;

/// Directive types: streams, and data placement.
const STREAMS: u32 = 1;
const DATA_PLACEMENT: u32 = 2;

/// Says for each write where it belongs.
#[derive(Debug)]
pub(super) struct Placement {
    kind: DataPlacement,
    choice: PlacementChoice,
    /// What was asked for: places in the device's list of handles, or streams. Empty = all handles.
    wanted: Vec<u16>,
    /// Ranges of offsets with what is asked for in them.
    scheme: Vec<(u64, u64, u16)>,
    state: u64,
}

impl Placement {
    /// What the job's options say; `None` = nothing.
    pub(super) fn new(options: &PlacementOptions, seed: u64) -> Option<Placement> {
        (options.dataplacement != DataPlacement::None).then(|| Placement {
            kind: options.dataplacement,
            choice: options.plid_select,
            wanted: options.plids.clone(),
            scheme: options.dp_scheme.clone(),
            state: if options.plid_select == PlacementChoice::Random { seed | 1 } else { 0 },
        })
    }

    /// Whether the device has to be asked for its handles.
    pub(super) fn needs_handles(&self) -> bool {
        self.kind == DataPlacement::Fdp
    }

    /// The directive's values that the job may use on a device with these handles.
    ///
    /// # Errors
    /// The device has fewer handles than the job names.
    pub(super) fn values(&self, handles: &[Handle]) -> Result<Vec<u16>, String> {
        if self.kind == DataPlacement::Streams {
            return Ok(self.wanted.clone());
        }
        let handle = |&place: &u16| {
            handles.get(usize::from(place)).map(|handle| handle.identifier).ok_or_else(|| {
                format!(
                    "plids={place}: the namespace has {} placement handles, counted from 0",
                    handles.len()
                )
            })
        };
        if self.choice == PlacementChoice::Scheme {
            // Those of a scheme are looked up in all.
            self.scheme.iter().map(|(_, _, place)| handle(place)).collect::<Result<Vec<_>, _>>()?;
            return Ok(handles.iter().map(|handle| handle.identifier).collect());
        }
        match &self.wanted[..] {
            [] => Ok(handles.iter().map(|handle| handle.identifier).collect()),
            wanted => wanted.iter().map(handle).collect(),
        }
    }

    /// Dwords 12 and 13 of the next write, as far as they are about placement. `values` are those of its device.
    #[inline(always)]
    pub(super) fn next(&mut self, values: &[u16], offset: u64) -> (u32, u32) {
        let kind = if self.kind == DataPlacement::Streams { STREAMS } else { DATA_PLACEMENT };
        let value = match self.choice {
            PlacementChoice::Scheme => {
                let range = self.scheme.iter().find(|(from, to, _)| (*from..*to).contains(&offset));
                // Outside of all ranges, the device decides.
                let Some(&(_, _, place)) = range else { return (0, 0) };
                if self.kind == DataPlacement::Streams { place } else { values[usize::from(place)] }
            }
            _ if values.is_empty() => return (0, 0),
            PlacementChoice::RoundRobin => {
                let place = self.state as usize % values.len();
                self.state = place as u64 + 1;
                values[place]
            }
            PlacementChoice::Random => {
                // xorshift64*
                self.state ^= self.state >> 12;
                self.state ^= self.state << 25;
                self.state ^= self.state >> 27;
                let drawn = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
                values[(drawn * values.len() as u64 >> 32) as usize]
            }
        };
        (kind << 20, u32::from(value) << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(change: impl FnOnce(&mut PlacementOptions)) -> Placement {
        let mut options =
            PlacementOptions { dataplacement: DataPlacement::Fdp, ..PlacementOptions::default() };
        change(&mut options);
        Placement::new(&options, 7).unwrap()
    }

    fn handles() -> Vec<Handle> {
        [0, 1, 0x102, 0x203]
            .map(|identifier| Handle { identifier, unit: identifier & 0xff, room: 64 })
            .to_vec()
    }

    #[test]
    fn handles_take_turns_unless_asked_otherwise() {
        let mut all = placement(|_| ());
        let values = all.values(&handles()).unwrap();
        let told: Vec<_> = (0..5).map(|_| all.next(&values, 0)).collect();
        let fdp = 2 << 20;
        assert_eq!(told, [(fdp, 0), (fdp, 1 << 16), (fdp, 0x102 << 16), (fdp, 0x203 << 16), (fdp, 0)]);
        let mut some = placement(|o| o.plids = vec![3, 0]);
        let values = some.values(&handles()).unwrap();
        assert_eq!([some.next(&values, 0).1, some.next(&values, 0).1], [0x203 << 16, 0]);
        let error = placement(|o| o.plids = vec![4]).values(&handles()).unwrap_err();
        assert!(error.contains("has 4 placement handles"), "{error}");
    }

    #[test]
    fn handles_are_drawn_evenly() {
        let mut random = placement(|o| o.plid_select = PlacementChoice::Random);
        let values = random.values(&handles()).unwrap();
        let mut counts = [0; 4];
        for _ in 0..4000 {
            let value = (random.next(&values, 0).1 >> 16) as u16;
            counts[values.iter().position(|&known| known == value).unwrap()] += 1;
        }
        assert!(counts.iter().all(|&count| (850..1150).contains(&count)), "{counts:?}");
    }

    #[test]
    fn a_scheme_goes_by_the_offset() {
        let mut scheme = placement(|o| {
            o.plid_select = PlacementChoice::Scheme;
            o.dp_scheme = vec![(0, 4096, 2), (0, 8192, 1)];
        });
        let values = scheme.values(&handles()).unwrap();
        let told: Vec<_> = [0, 4096, 8192].map(|offset| scheme.next(&values, offset)).to_vec();
        assert_eq!(told, [(2 << 20, 0x102 << 16), (2 << 20, 1 << 16), (0, 0)]);
    }

    #[test]
    fn streams_are_named_as_they_are() {
        let mut streams = placement(|o| {
            o.dataplacement = DataPlacement::Streams;
            o.plids = vec![5];
        });
        let values = streams.values(&[]).unwrap();
        assert_eq!(streams.next(&values, 0), (1 << 20, 5 << 16));
    }
}
