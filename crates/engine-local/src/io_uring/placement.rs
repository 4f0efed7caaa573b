//! Where the device should put written data: placement handles (Flexible Data Placement) and streams.
//!
//! A write has two fields for this: the directive's type in dword 12, and the directive's value (a placement
//! identifier, a stream) in the upper half of dword 13.

use iolite_engine::EngineError;
use iolite_options::{DataPlacement, DataPlacementOptions, PlacementChoice};
use iolite_os::nvme::{Handle, PlacementSupport};

/// Directive types: streams, and data placement.
const STREAMS: u32 = 1;
const DATA_PLACEMENT: u32 = 2;

/// Chooses the placement of each write.
#[derive(Debug)]
pub struct Placement {
    kind: DataPlacement,
    choice: PlacementChoice,
    /// The job's choice: indexes into the device's list of handles, or streams. Empty = all handles.
    wanted: Vec<u16>,
    /// Ranges of offsets with their choices.
    scheme: Vec<(u64, u64, u16)>,
    state: u64,
}

impl Placement {
    /// The placement that the job's options ask for; `None` = none.
    ///
    /// # Errors
    /// The file with the scheme cannot be read.
    pub fn new(
        engine: &'static str,
        options: &DataPlacementOptions,
        seed: u64,
    ) -> Result<Option<Placement>, EngineError> {
        if options.dataplacement == DataPlacement::None {
            return Ok(None);
        }
        let has_scheme = options.plid_select == PlacementChoice::Scheme;
        let name = &options.dp_scheme;
        let refused = |errno, why: String| EngineError::Remote {
            engine,
            errno,
            why: format!("dp_scheme={name}: {why}"),
        };
        let scheme = if has_scheme {
            let text = std::fs::read_to_string(name).map_err(|error| {
                refused(error.raw_os_error().unwrap_or(libc::EINVAL), iolite_types::describe_error(&error))
            })?;
            scheme(&text).map_err(|why| refused(libc::EINVAL, why))?
        } else {
            Vec::new()
        };
        Ok(Some(Placement {
            kind: options.dataplacement,
            choice: options.plid_select,
            wanted: options.plids.clone(),
            scheme,
            state: if options.plid_select == PlacementChoice::Random { seed | 1 } else { 0 },
        }))
    }

    /// The value of `dataplacement`.
    pub fn keyword(&self) -> &'static str {
        self.kind.keyword()
    }

    /// The streams that the job names.
    pub fn streams(&self) -> impl Iterator<Item = u16> {
        let named = self.wanted.iter().copied().chain(self.scheme.iter().map(|&(_, _, place)| place));
        named.filter(|_| self.kind == DataPlacement::Streams)
    }

    /// Whether the device must be asked for its handles.
    pub fn needs_handles(&self) -> bool {
        self.kind == DataPlacement::Fdp
    }

    /// Why a device with these capabilities cannot place data as requested.
    pub fn refusal(&self, support: &PlacementSupport) -> Option<String> {
        match (self.kind, support) {
            (DataPlacement::Fdp, PlacementSupport { has_fdp: false, .. }) => Some(
                "dataplacement=fdp: the controller says that it has no Flexible Data Placement (CTRATT bit 19 of Identify \
                 Controller is 0)"
                    .to_owned(),
            ),
            (DataPlacement::Fdp, PlacementSupport { enabled: Some((group, false)), .. }) => Some(format!(
                "dataplacement=fdp: Flexible Data Placement is not enabled in endurance group {group}, where the namespace is \
                 (feature 1Dh); nvme set-feature enables it, before namespaces are made"
            )),
            (DataPlacement::Streams, PlacementSupport { streams: Some(0), .. }) => Some(
                "dataplacement=streams: the controller says that it has no streams (OACS bit 5 of Identify Controller, or \
                 the most streams of Directive Receive, is 0)"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// The directive's values that the job may use on a device with these handles.
    ///
    /// # Errors
    /// The device has fewer handles than the job names.
    pub fn values(&self, handles: &[Handle]) -> Result<Vec<u16>, String> {
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
            // The places of a scheme are looked up among all handles.
            self.scheme.iter().map(|(_, _, place)| handle(place)).collect::<Result<Vec<_>, _>>()?;
            return Ok(handles.iter().map(|handle| handle.identifier).collect());
        }
        match &self.wanted[..] {
            [] => Ok(handles.iter().map(|handle| handle.identifier).collect()),
            wanted => wanted.iter().map(handle).collect(),
        }
    }

    /// The placement bits of dwords 12 and 13 of the next write. `values` are those of its device.
    #[inline(always)]
    pub fn next(&mut self, values: &[u16], offset: u64) -> (u32, u32) {
        let kind = if self.kind == DataPlacement::Streams { STREAMS } else { DATA_PLACEMENT };
        let value = match self.choice {
            PlacementChoice::Scheme => {
                let range = self.scheme.iter().find(|(from, to, _)| (*from..*to).contains(&offset));
                match range {
                    Some(&(_, _, place)) if self.kind == DataPlacement::Streams => place,
                    Some(&(_, _, place)) => values[usize::from(place)],
                    // Outside of all ranges: the default of the device.
                    None => 0,
                }
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
                values[((drawn * values.len() as u64) >> 32) as usize]
            }
        };
        (kind << 20, u32::from(value) << 16)
    }
}

/// Reads lines of `start, end, handle`: offsets in bytes, the end not included.
fn scheme(text: &str) -> Result<Vec<(u64, u64, u16)>, String> {
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let read = |(line, number): (&str, usize)| {
        let fields: Vec<&str> = line.split(',').map(str::trim).filter(|field| !field.is_empty()).collect();
        let wrong = || format!("line {number} is not \"start, end, handle\": {line}");
        let [from, to, handle] = fields[..] else { return Err(wrong()) };
        match (from.parse(), to.parse(), handle.parse()) {
            (Ok(from), Ok(to), Ok(handle)) => Ok((from, to, handle)),
            _ => Err(wrong()),
        }
    };
    let scheme = lines.map(read).collect::<Result<Vec<_>, _>>()?;
    if scheme.is_empty() { Err("there is no range in it".to_owned()) } else { Ok(scheme) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(change: impl FnOnce(&mut DataPlacementOptions)) -> Placement {
        let mut options =
            DataPlacementOptions { dataplacement: DataPlacement::Fdp, ..DataPlacementOptions::default() };
        change(&mut options);
        Placement::new("io_uring_cmd", &options, 7).unwrap().unwrap()
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
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("scheme");
        std::fs::write(&file, "0, 4096, 2\n\n0,8192,1\n").unwrap();
        let mut scheme = placement(|o| {
            o.plid_select = PlacementChoice::Scheme;
            o.dp_scheme = file.display().to_string();
        });
        let values = scheme.values(&handles()).unwrap();
        let told: Vec<_> = [0, 4096, 8192].map(|offset| scheme.next(&values, offset)).to_vec();
        assert_eq!(told, [(2 << 20, 0x102 << 16), (2 << 20, 1 << 16), (2 << 20, 0)]);
        assert_eq!(super::scheme("0, 1\n").unwrap_err(), "line 1 is not \"start, end, handle\": 0, 1");
        assert!(super::scheme("\n").is_err());
    }

    #[test]
    fn devices_without_placement_are_refused_with_a_reason() {
        let support = PlacementSupport { has_fdp: true, enabled: Some((1, true)), streams: Some(0) };
        let fdp = placement(|_| ());
        assert_eq!(fdp.refusal(&support), None);
        assert_eq!(fdp.refusal(&PlacementSupport { enabled: None, ..support }), None, "it may be");
        let disabled = PlacementSupport { enabled: Some((3, false)), ..support };
        assert!(fdp.refusal(&disabled).unwrap().contains("not enabled in endurance group 3"));
        let without = PlacementSupport { has_fdp: false, enabled: None, ..support };
        assert!(fdp.refusal(&without).unwrap().contains("no Flexible Data Placement"));
        let streams = placement(|o| o.dataplacement = DataPlacement::Streams);
        assert!(streams.refusal(&support).unwrap().contains("no streams"));
        assert_eq!(streams.refusal(&PlacementSupport { streams: Some(4), ..support }), None);
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
