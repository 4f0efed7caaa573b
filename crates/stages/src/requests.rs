//! Requests of the block layer in flight, followed by their sectors.

use crate::kernel::{Device, Sectors, What};
use std::collections::{BTreeMap, HashMap};

/// The number of a request.
pub(crate) type Id = usize;

/// A part of a request that the driver has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// When the driver got it; 0 = that record is missing.
    pub issued: u64,
    pub completed: u64,
}

/// A request that the block layer got (a bio), with all that has become of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// When the block layer got it.
    pub queued: u64,
    pub sectors: u64,
    /// The parts that are complete.
    pub parts: Vec<Part>,
    /// Pieces that are still in flight, on this device or on those below it.
    open: u32,
    /// Others accessed the same sectors at the same time, so it is unknown whose records are whose.
    pub overlaps: bool,
    /// The driver got it together with others.
    pub merged: bool,
    /// No I/O will ask for it any more: it can be forgotten when it is complete.
    unwanted: bool,
    /// Where its pieces are that live on in others.
    above: Vec<(Device, u64)>,
}

impl Request {
    pub(crate) fn is_complete(&self) -> bool {
        self.open == 0
    }
}

/// Sectors of a device that belong to a request.
#[derive(Clone, Debug)]
struct Piece {
    request: Id,
    sectors: Sectors,
    /// The sectors that are not complete.
    left: u64,
    /// What the driver got, and when.
    issued: Vec<(Sectors, u64)>,
    /// It was remapped, and the block layer has not seen it yet on this device.
    comes: bool,
    /// It lives on in pieces of devices below.
    is_above: bool,
}

/// The pieces in flight on one device, by their first sector.
#[derive(Debug, Default)]
struct Flight {
    pieces: BTreeMap<u64, Vec<Piece>>,
    /// The sectors of the longest piece so far.
    longest: u64,
}

impl Flight {
    fn add(&mut self, piece: Piece) {
        self.longest = self.longest.max(piece.sectors.count());
        self.pieces.entry(piece.sectors.first).or_default().push(piece);
    }

    /// The pieces that have one of these sectors.
    fn touching(&mut self, sectors: Sectors) -> impl Iterator<Item = &mut Piece> {
        let from = sectors.first.saturating_sub(self.longest);
        let near = self.pieces.range_mut(from..sectors.end).flat_map(|(_, pieces)| pieces);
        near.filter(move |piece| piece.sectors.and(sectors).is_some())
    }

    /// Removes pieces that are complete or given up.
    fn remove(&mut self, gone: &[u64]) {
        for first in gone {
            if let Some(pieces) = self.pieces.get_mut(first) {
                pieces.retain(|piece| piece.left > 0 || piece.is_above);
                if pieces.is_empty() {
                    self.pieces.remove(first);
                }
            }
        }
    }
}

/// All requests that are known.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    all: Vec<Option<Request>>,
    free: Vec<Id>,
    flights: HashMap<Device, Flight>,
    in_flight: usize,
}

/// If completions were lost, pieces remain for ever: more than these are too many for any device.
const MOST_IN_FLIGHT: usize = 1 << 18;

impl Requests {
    pub(crate) fn get(&self, id: Id) -> &Request {
        self.all[id].as_ref().expect("requests are kept until they are forgotten")
    }

    /// A record of the block layer. Returns the new request, if it is one.
    pub(crate) fn see(&mut self, time: u64, what: &What) -> Option<Id> {
        match *what {
            What::Queued(device, sectors) => return self.queued(time, device, sectors),
            What::Commanded(device, sectors) => {
                let id = self.queued(time, device, sectors);
                self.issued(time, device, sectors);
                return id;
            }
            What::Answered(device, sectors) => self.completed(time, device, sectors),
            What::Issued(device, sectors) => self.issued(time, device, sectors),
            What::Completed(device, sectors) => self.completed(time, device, sectors),
            What::Ended(device, sectors) => self.ended(device, sectors),
            What::Remapped { from, to } => self.remapped(from, to),
            What::RingMade { .. } | What::Submitted { .. } | What::HandedOn { .. } => {}
        }
        None
    }

    fn queued(&mut self, time: u64, device: Device, sectors: Sectors) -> Option<Id> {
        let flight = self.flights.entry(device).or_default();
        if let Some(piece) = flight.touching(sectors).find(|piece| piece.comes && piece.sectors == sectors) {
            piece.comes = false;
            return None;
        }
        let mut overlapped = Vec::new();
        overlapped.extend(flight.touching(sectors).map(|piece| piece.request));
        let request = Request {
            queued: time,
            sectors: sectors.count(),
            open: 1,
            overlaps: !overlapped.is_empty(),
            ..Request::default()
        };
        for other in overlapped {
            self.get_mut(other).overlaps = true;
        }
        let id = match self.free.pop() {
            Some(id) => {
                self.all[id] = Some(request);
                id
            }
            None => {
                self.all.push(Some(request));
                self.all.len() - 1
            }
        };
        self.add_piece(
            device,
            Piece {
                request: id,
                sectors,
                left: sectors.count(),
                issued: Vec::new(),
                comes: false,
                is_above: false,
            },
        );
        Some(id)
    }

    fn get_mut(&mut self, id: Id) -> &mut Request {
        self.all[id].as_mut().expect("requests are kept until they are forgotten")
    }

    fn add_piece(&mut self, device: Device, piece: Piece) {
        self.flights.entry(device).or_default().add(piece);
        self.in_flight += 1;
        if self.in_flight > MOST_IN_FLIGHT {
            self.give_up();
        }
    }

    fn issued(&mut self, time: u64, device: Device, sectors: Sectors) {
        let Some(flight) = self.flights.get_mut(&device) else { return };
        let mut merged = Vec::new();
        for piece in flight.touching(sectors) {
            let Some(part) = piece.sectors.and(sectors) else { continue };
            // A driver that was busy gets the same sectors again.
            match piece.issued.iter_mut().find(|(known, _)| *known == part) {
                Some(known) => known.1 = time,
                None => piece.issued.push((part, time)),
            }
            if part != sectors {
                merged.push(piece.request);
            }
        }
        for request in merged {
            self.get_mut(request).merged = true;
        }
    }

    fn completed(&mut self, time: u64, device: Device, sectors: Sectors) {
        let Some(flight) = self.flights.get_mut(&device) else { return };
        let mut touched: Vec<&mut Piece> =
            flight.touching(sectors).filter(|piece| piece.left > 0 && !piece.comes).collect();
        let in_order = |piece: &&mut Piece| self.all[piece.request].as_ref().map_or(0, |it| it.queued);
        touched.sort_by_key(in_order);
        let (mut parts, mut gone): (Vec<(Id, Part, bool)>, _) = (Vec::new(), Vec::new());
        let mut taken: Vec<Sectors> = Vec::new();
        for piece in touched {
            let Some(part) = piece.sectors.and(sectors) else { continue };
            // The same sectors twice: one completion ends one request, and the other goes on.
            if taken.iter().any(|other| other.and(part).is_some()) {
                continue;
            }
            taken.push(part);
            let issued = piece.issued.iter().find(|(known, _)| known.and(part).is_some());
            piece.left = piece.left.saturating_sub(part.count());
            let is_over = piece.left == 0;
            let part = Part { issued: issued.map_or(0, |it| it.1), completed: time };
            parts.push((piece.request, part, is_over));
            if is_over {
                gone.push(piece.sectors.first);
                self.in_flight -= 1;
            }
        }
        flight.remove(&gone);
        for (id, part, is_over) in parts {
            self.get_mut(id).parts.push(part);
            if is_over {
                self.close(id);
            }
        }
    }

    /// A request is over that the driver never got. (Others end with their last sector.)
    fn ended(&mut self, device: Device, sectors: Sectors) {
        let Some(flight) = self.flights.get_mut(&device) else { return };
        let never_issued = |piece: &&mut Piece| piece.sectors == sectors && piece.issued.is_empty();
        let Some(piece) = flight.touching(sectors).find(never_issued) else { return };
        piece.left = 0;
        let request = piece.request;
        flight.remove(&[sectors.first]);
        self.in_flight -= 1;
        self.close(request);
    }

    /// A piece of a request is over.
    fn close(&mut self, id: Id) {
        let request = self.get_mut(id);
        request.open = request.open.saturating_sub(1);
        if request.open > 0 {
            return;
        }
        let (above, unwanted) = (std::mem::take(&mut request.above), request.unwanted);
        for (device, first) in above {
            let Some(flight) = self.flights.get_mut(&device) else { continue };
            let Some(pieces) = flight.pieces.get_mut(&first) else { continue };
            pieces.retain(|piece| piece.request != id);
            if pieces.is_empty() {
                flight.pieces.remove(&first);
            }
        }
        if unwanted {
            self.forget(id);
        }
    }

    /// Device mapper, md, or a partition passes sectors on.
    fn remapped(&mut self, from: (Device, u64), to: (Device, Sectors)) {
        let old = Sectors { first: from.1, end: from.1 + to.1.count() };
        // A device above the disk.
        let above = self.flights.get_mut(&from.0).filter(|_| from.0 != to.0);
        let source = above.and_then(|flight| {
            let mut pieces = flight.touching(old).filter(|piece| !piece.comes);
            pieces.next().map(|piece| {
                let part = piece.sectors.and(old).map_or(0, Sectors::count);
                let was_left = piece.left > 0;
                // (Each leg of a mirror has all sectors.)
                piece.left = piece.left.saturating_sub(part);
                piece.is_above = true;
                (piece.request, piece.sectors.first, was_left && piece.left == 0)
            })
        });
        if let Some((id, first, has_moved)) = source {
            let request = self.get_mut(id);
            let place = (from.0, first);
            if !request.above.contains(&place) {
                request.above.push(place);
            }
            // When all of it lives on below, it is no piece of its own any more.
            request.open += u32::from(!has_moved);
            if has_moved {
                self.in_flight -= 1;
            }
            let request = id;
            self.add_piece(
                to.0,
                Piece {
                    request,
                    sectors: to.1,
                    left: to.1.count(),
                    issued: Vec::new(),
                    comes: true,
                    is_above: false,
                },
            );
            return;
        }
        // A partition: what was remapped a moment ago, to the first sector of the partition, moves on.
        let Some(flight) = self.flights.get_mut(&to.0) else { return };
        let Some(pieces) = flight.pieces.get_mut(&from.1) else { return };
        if let Some(place) = pieces.iter().position(|piece| piece.comes && piece.sectors == old) {
            let mut piece = pieces.remove(place);
            if pieces.is_empty() {
                flight.pieces.remove(&from.1);
            }
            piece.sectors = to.1;
            flight.add(piece);
        }
    }

    /// Whether drivers have got all of what is left of a request. (A driver may have given it back.)
    pub(crate) fn is_issued(&self, id: Id) -> bool {
        let pieces = self.flights.values().flat_map(|flight| flight.pieces.values()).flatten();
        let mut open = pieces.filter(|piece| piece.request == id && piece.left > 0);
        let issued = |piece: &Piece| piece.issued.iter().map(|(part, _)| part.count()).sum::<u64>();
        open.all(|piece| issued(piece) >= piece.sectors.count())
    }

    /// The request is not needed any more.
    pub(crate) fn forget(&mut self, id: Id) {
        let Some(request) = &mut self.all[id] else { return };
        if request.open > 0 {
            request.unwanted = true;
        } else {
            self.all[id] = None;
            self.free.push(id);
        }
    }

    /// Forgets what is in flight: records were lost, so it will never be complete.
    fn give_up(&mut self) {
        for flight in self.flights.values_mut() {
            for piece in std::mem::take(&mut flight.pieces).into_values().flatten() {
                if let Some(request) = &mut self.all[piece.request] {
                    request.open = request.open.saturating_sub(1);
                    if request.open == 0 && request.unwanted {
                        self.all[piece.request] = None;
                        self.free.push(piece.request);
                    }
                }
            }
        }
        self.in_flight = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Device = 8 << 20;
    const MAPPED: Device = 253 << 20;

    fn at(first: u64, count: u64) -> Sectors {
        Sectors { first, end: first + count }
    }

    fn see(requests: &mut Requests, time: u64, what: What) -> Option<Id> {
        requests.see(time, &what)
    }

    #[test]
    fn a_request_is_followed_to_its_end() {
        let mut requests = Requests::default();
        let id = see(&mut requests, 10, What::Queued(DISK, at(64, 8))).unwrap();
        see(&mut requests, 20, What::Issued(DISK, at(64, 8)));
        assert!(!requests.get(id).is_complete());
        see(&mut requests, 25, What::Completed(DISK, at(128, 8)));
        see(&mut requests, 30, What::Completed(DISK, at(64, 8)));
        assert!(requests.get(id).is_complete());
        assert_eq!(requests.get(id).parts, [Part { issued: 20, completed: 30 }]);
        requests.forget(id);
        assert_eq!(see(&mut requests, 40, What::Queued(DISK, at(0, 8))), Some(id), "numbers are used again");
    }

    #[test]
    fn merged_split_and_requeued_requests() {
        let mut requests = Requests::default();
        let first = see(&mut requests, 1, What::Queued(DISK, at(0, 8))).unwrap();
        let second = see(&mut requests, 2, What::Queued(DISK, at(8, 8))).unwrap();
        see(&mut requests, 3, What::Issued(DISK, at(0, 16)));
        // The driver was busy.
        see(&mut requests, 5, What::Issued(DISK, at(0, 16)));
        see(&mut requests, 9, What::Completed(DISK, at(0, 16)));
        for id in [first, second] {
            assert!(requests.get(id).merged && requests.get(id).is_complete());
            assert_eq!(requests.get(id).parts, [Part { issued: 5, completed: 9 }]);
        }
        let large = see(&mut requests, 10, What::Queued(DISK, at(100, 32))).unwrap();
        see(&mut requests, 11, What::Issued(DISK, at(100, 16)));
        see(&mut requests, 12, What::Issued(DISK, at(116, 16)));
        see(&mut requests, 20, What::Completed(DISK, at(116, 16)));
        see(&mut requests, 21, What::Completed(DISK, at(100, 16)));
        let parts = &requests.get(large).parts;
        assert_eq!(parts[..], [Part { issued: 12, completed: 20 }, Part { issued: 11, completed: 21 }]);
    }

    #[test]
    fn a_request_that_the_driver_never_got_is_not_in_the_way() {
        let mut requests = Requests::default();
        let refused = see(&mut requests, 1, What::Queued(DISK, at(0, 8))).unwrap();
        see(&mut requests, 2, What::Ended(DISK, at(0, 8)));
        assert!(requests.get(refused).is_complete() && requests.get(refused).parts.is_empty());
        let again = see(&mut requests, 3, What::Queued(DISK, at(0, 8))).unwrap();
        see(&mut requests, 4, What::Issued(DISK, at(0, 8)));
        see(&mut requests, 4, What::Ended(DISK, at(0, 8)));
        assert!(!requests.get(again).overlaps && !requests.get(again).is_complete());
    }

    #[test]
    fn the_same_sectors_twice_are_noticed() {
        let mut requests = Requests::default();
        let first = see(&mut requests, 1, What::Queued(DISK, at(0, 8))).unwrap();
        let second = see(&mut requests, 2, What::Queued(DISK, at(4, 8))).unwrap();
        assert!(requests.get(first).overlaps && requests.get(second).overlaps);
        let other = see(&mut requests, 3, What::Queued(DISK + 16, at(0, 8))).unwrap();
        assert!(!requests.get(other).overlaps, "it is another device");
    }

    #[test]
    fn a_stripe_is_as_late_as_its_latest_disk() {
        let mut requests = Requests::default();
        let id = see(&mut requests, 1, What::Queued(MAPPED, at(0, 16))).unwrap();
        for (from, disk, to) in [(0, DISK, 2048), (8, DISK + 16, 4096)] {
            see(&mut requests, 2, What::Remapped { from: (MAPPED, from), to: (disk, at(to, 8)) });
            assert_eq!(see(&mut requests, 3, What::Queued(disk, at(to, 8))), None, "it is the same request");
        }
        see(&mut requests, 4, What::Issued(DISK, at(2048, 8)));
        see(&mut requests, 5, What::Issued(DISK + 16, at(4096, 8)));
        see(&mut requests, 8, What::Completed(DISK, at(2048, 8)));
        assert!(!requests.get(id).is_complete());
        see(&mut requests, 9, What::Completed(DISK + 16, at(4096, 8)));
        assert!(requests.get(id).is_complete());
        assert_eq!(requests.get(id).parts.last(), Some(&Part { issued: 5, completed: 9 }));
        assert_eq!(requests.in_flight, 0);
    }

    #[test]
    fn a_mirror_is_as_late_as_its_latest_leg() {
        let mut requests = Requests::default();
        let id = see(&mut requests, 1, What::Queued(MAPPED, at(0, 8))).unwrap();
        for disk in [DISK, DISK + 16] {
            see(&mut requests, 2, What::Remapped { from: (MAPPED, 0), to: (disk, at(64, 8)) });
            assert_eq!(see(&mut requests, 3, What::Queued(disk, at(64, 8))), None);
            see(&mut requests, 4, What::Issued(disk, at(64, 8)));
        }
        see(&mut requests, 5, What::Completed(DISK, at(64, 8)));
        assert!(!requests.get(id).is_complete());
        see(&mut requests, 9, What::Completed(DISK + 16, at(64, 8)));
        assert!(requests.get(id).is_complete());
        assert_eq!(requests.get(id).parts.last(), Some(&Part { issued: 4, completed: 9 }));
        assert_eq!(requests.in_flight, 0);
        let next = see(&mut requests, 10, What::Queued(MAPPED, at(0, 8))).unwrap();
        assert!(!requests.get(next).overlaps, "the one before is over");
    }

    #[test]
    fn a_completion_ends_one_of_two_requests_for_the_same_sectors() {
        let mut requests = Requests::default();
        let first = see(&mut requests, 1, What::Queued(DISK, at(0, 8))).unwrap();
        let second = see(&mut requests, 2, What::Queued(DISK, at(0, 8))).unwrap();
        see(&mut requests, 3, What::Issued(DISK, at(0, 8)));
        see(&mut requests, 4, What::Issued(DISK, at(0, 8)));
        see(&mut requests, 10, What::Completed(DISK, at(0, 8)));
        assert!(requests.get(first).is_complete() && !requests.get(second).is_complete());
        let third = see(&mut requests, 11, What::Queued(DISK, at(0, 8))).unwrap();
        see(&mut requests, 12, What::Issued(DISK, at(0, 8)));
        see(&mut requests, 20, What::Completed(DISK, at(0, 8)));
        assert!(requests.get(third).overlaps && !requests.get(third).is_complete());
        see(&mut requests, 90, What::Completed(DISK, at(0, 8)));
        assert!(requests.get(third).is_complete());
    }

    #[test]
    fn a_mapping_on_a_partition_is_followed() {
        let mut requests = Requests::default();
        let id = see(&mut requests, 1, What::Queued(MAPPED, at(0, 8))).unwrap();
        see(&mut requests, 2, What::Remapped { from: (MAPPED, 0), to: (DISK, at(100, 8)) });
        see(&mut requests, 3, What::Remapped { from: (DISK + 1, 100), to: (DISK, at(2148, 8)) });
        assert_eq!(see(&mut requests, 4, What::Queued(DISK, at(2148, 8))), None);
        see(&mut requests, 5, What::Issued(DISK, at(2148, 8)));
        see(&mut requests, 6, What::Completed(DISK, at(2148, 8)));
        assert_eq!(requests.get(id).parts, [Part { issued: 5, completed: 6 }]);
    }
}
