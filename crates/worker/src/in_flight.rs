//! The tables of units, in memory that the controller can read: what is in flight, also while a worker hangs.
//!
//! A worker keeps its units, their time stamps and the list of free units here instead of in memory of its own, and
//! stores nothing more for that. A unit that is not in the list of free ones is in flight (or about to be). The
//! controller only loads. It may see a unit in the middle of a change, so it looks twice and believes what is the same
//! both times.
//!
//! A synchronous engine's units have no stamp: the loop keeps it in a register. Their age is known from outside, by how
//! long the worker has neither issued nor completed anything ([`UnitTables::free`] and the counters).

use crate::io_loop::failure::{Attempt, failed_operation, io_error_line, too_long};
use iolite_engine::{Errno, Unit};
use iolite_os::memory;
use iolite_types::Operation;
use std::alloc::Layout;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Two workers share no cache line, nor a pair of lines that are fetched together.
const APART: usize = 128;

/// When a unit was made and issued, in nanoseconds of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamps {
    /// It was made.
    pub start: u64,
    /// It was issued; 0 = it was not yet, or is a synchronous engine's.
    pub issue: u64,
    /// `UNCOUNTED`, `REST` and `GIVEN_UP`: the parts of the unit that are not counted; 0 = everything counts.
    pub marks: u8,
}

/// The unit was in flight when the ramp ended, so it belongs to the ramp.
pub(crate) const UNCOUNTED: u8 = 1;
/// The unit is the rest of a short I/O. Its submission was counted with its first part.
pub(crate) const REST: u8 = 2;

/// The unit's I/O has taken too long and has failed, but has not come back.
pub const GIVEN_UP: u8 = 4;

/// The tables of all workers of a run.
#[derive(Debug)]
pub struct UnitTables {
    start: *mut u8,
    bytes: usize,
    places: Vec<Place>,
}

// SAFETY: all memory behind the pointer is shared between processes anyway. A worker's table has one writer (see
// `UnitTables::table`), and readers use volatile or atomic loads.
unsafe impl Send for UnitTables {}
// SAFETY: as above.
unsafe impl Sync for UnitTables {}

/// Where a worker's table is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Bytes from the start of the mapping.
    at: usize,
    /// The most units.
    depth: usize,
    /// Bytes from the start of the table to its parts.
    units: usize,
    stamps: usize,
    free: usize,
}

/// The numbers at the start of a table.
#[derive(Debug)]
#[repr(C)]
struct Head {
    /// How many units exist.
    made: AtomicU32,
    /// How many of them are free.
    free: AtomicU32,
}

/// A unit in flight, as the controller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitInFlight {
    /// The operation.
    pub operation: Operation,
    /// The file's number.
    pub file: u32,
    /// The offset in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
    /// When it was issued, in nanoseconds of the run's clock; 0 = not known.
    pub issue: u64,
    /// The worker no longer waits for it.
    pub given_up: bool,
}

impl UnitInFlight {
    /// The message that this I/O on the file of this name has taken too long.
    pub fn too_long(&self, file: &str, age_ns: u64) -> String {
        let UnitInFlight { operation, file: number, offset, length, .. } = *self;
        let attempt = Attempt { operation, file: number, offset, length };
        io_error_line(file, &attempt, Errno(libc::ETIMEDOUT), &too_long(age_ns))
    }

    /// The same for the job's line in the report.
    pub fn failed(&self, file: &str) -> String {
        failed_operation(file, self.operation)
    }
}

impl UnitTables {
    /// Tables for workers with these depths. Pages take no memory until they are written to.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(depths: impl IntoIterator<Item = u32>) -> io::Result<UnitTables> {
        let none = || io::Error::from_raw_os_error(libc::ENOMEM);
        let mut places = Vec::new();
        let mut bytes: usize = 0;
        for depth in depths {
            let depth = depth as usize;
            let table = Layout::new::<Head>();
            let parts = || {
                let (table, units) = table.extend(Layout::array::<Unit>(depth).ok()?).ok()?;
                let (table, stamps) = table.extend(Layout::array::<Stamps>(depth).ok()?).ok()?;
                let (table, free) = table.extend(Layout::array::<AtomicU32>(depth).ok()?).ok()?;
                Some((table.size(), Place { at: bytes, depth, units, stamps, free }))
            };
            let (size, place) = parts().ok_or_else(none)?;
            places.push(place);
            bytes = bytes
                .checked_add(size)
                .and_then(|end| end.checked_next_multiple_of(APART))
                .ok_or_else(none)?;
        }
        let bytes = bytes.max(APART);
        Ok(UnitTables { start: memory::map_shared(bytes)?.cast(), bytes, places })
    }

    /// A worker's table, for the worker. It begins without units.
    ///
    /// # Safety
    /// Only one table of each worker is in use at a time.
    pub(crate) unsafe fn table(&self, worker: usize) -> Table<'_> {
        let place = self.places[worker];
        let head = self.head(place);
        head.made.store(0, Relaxed);
        head.free.store(0, Relaxed);
        let Place { depth, .. } = place;
        Table {
            units: Slab::new(self.part(place, place.units), depth),
            stamps: Slab::new(self.part(place, place.stamps), depth),
            free: FreeUnits { words: self.words(place), count: &head.free },
            made: &head.made,
        }
    }

    /// The number of a worker's units that are free.
    pub fn free(&self, worker: usize) -> u32 {
        self.head(self.places[worker]).free.load(Relaxed)
    }

    /// The units of a worker that are in flight.
    pub fn in_flight(&self, worker: usize) -> Vec<UnitInFlight> {
        let mut seen = self.look(worker);
        if !seen.is_empty() {
            let again = self.look(worker);
            seen.retain(|unit| {
                again.binary_search_by_key(&unit.0, |other| other.0).is_ok_and(|at| again[at] == *unit)
            });
        }
        seen.into_iter().map(|(_, unit)| unit).collect()
    }

    /// The units that are not free, with their numbers, in order.
    fn look(&self, worker: usize) -> Vec<(usize, UnitInFlight)> {
        let place = self.places[worker];
        let head = self.head(place);
        let made = (head.made.load(Relaxed) as usize).min(place.depth);
        let free = (head.free.load(Relaxed) as usize).min(made);
        if free == made {
            return Vec::new();
        }
        let mut is_free = vec![false; made];
        for word in &self.words(place)[..free] {
            if let Some(is_free) = is_free.get_mut(word.load(Relaxed) as usize) {
                *is_free = true;
            }
        }
        let units: *const Unit = self.part(place, place.units);
        let stamps: *const Stamps = self.part(place, place.stamps);
        let in_use = (0..made).filter(|&index| !is_free[index]);
        let copied = in_use.map(|index| {
            // SAFETY: both are within the mapping, aligned, and initialised by the worker before it counted them in
            // `made`; all values that the worker stores are valid. It may store meanwhile, hence the volatile loads.
            let (unit, issue, marks) = unsafe {
                let (unit, stamps) = (units.add(index), stamps.add(index));
                let unit = UnitInFlight {
                    operation: (&raw const (*unit).operation).read_volatile(),
                    file: (&raw const (*unit).file).read_volatile(),
                    offset: (&raw const (*unit).offset).read_volatile(),
                    length: (&raw const (*unit).length).read_volatile(),
                    issue: 0,
                    given_up: false,
                };
                let marks = (&raw const (*stamps).marks).read_volatile();
                (unit, (&raw const (*stamps).issue).read_volatile(), marks)
            };
            (index, UnitInFlight { issue, given_up: marks & GIVEN_UP != 0, ..unit })
        });
        copied.collect()
    }

    fn part<T>(&self, place: Place, from: usize) -> *mut T {
        self.start.wrapping_add(place.at + from).cast()
    }

    fn head(&self, place: Place) -> &Head {
        // SAFETY: within the mapping and aligned; zeros are a valid head; its words are atomic.
        unsafe { &*self.part(place, 0) }
    }

    fn words(&self, place: Place) -> &[AtomicU32] {
        // SAFETY: as above; there are `depth` words.
        unsafe { std::slice::from_raw_parts(self.part(place, place.free), place.depth) }
    }
}

impl Drop for UnitTables {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and references into it borrow from this value.
        unsafe { memory::unmap(self.start.cast(), self.bytes) };
    }
}

/// A worker's table.
pub(crate) struct Table<'a> {
    pub units: Slab<'a, Unit>,
    pub stamps: Slab<'a, Stamps>,
    pub free: FreeUnits<'a>,
    made: &'a AtomicU32,
}

impl Table<'_> {
    /// Adds a unit, which is not among the free ones.
    pub fn push(&mut self, unit: Unit) {
        self.units.push(unit);
        self.stamps.push(Stamps::default());
        self.made.store(self.units.len() as u32, Relaxed);
    }
}

/// A vector of limited length in shared memory.
pub(crate) struct Slab<'a, T> {
    start: *mut T,
    length: usize,
    room: usize,
    memory: PhantomData<&'a mut [T]>,
}

impl<T> Slab<'_, T> {
    fn new(start: *mut T, room: usize) -> Self {
        const { assert!(!std::mem::needs_drop::<T>()) };
        Slab { start, length: 0, room, memory: PhantomData }
    }

    fn push(&mut self, value: T) {
        assert!(self.length < self.room, "a table has as many units as the depth");
        // SAFETY: within the room, aligned, and only this value writes there.
        unsafe { self.start.add(self.length).write(value) };
        self.length += 1;
    }
}

impl<T> Deref for Slab<'_, T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: so many values were written, and only this value hands out references to them.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl<T> DerefMut for Slab<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

/// The units that are free: the one that was freed last is used first.
pub(crate) struct FreeUnits<'a> {
    words: &'a [AtomicU32],
    count: &'a AtomicU32,
}

impl FreeUnits<'_> {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    #[inline(always)]
    pub fn pop(&mut self) -> Option<u32> {
        let left = self.count.load(Relaxed).checked_sub(1)?;
        self.count.store(left, Relaxed);
        Some(self.words[left as usize].load(Relaxed))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let count = self.count.load(Relaxed) as usize;
        self.words[..count].iter().map(|word| word.load(Relaxed))
    }

    #[inline(always)]
    pub fn push(&mut self, index: u32) {
        let count = self.count.load(Relaxed);
        self.words[count as usize].store(index, Relaxed);
        self.count.store(count + 1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(index: u32) -> Unit {
        Unit {
            buffer: std::ptr::null_mut(),
            length: 4096,
            offset: 4096 * u64::from(index),
            index,
            file: 0,
            operation: Operation::Write,
            priority: 0,
        }
    }

    #[test]
    fn what_is_not_free_is_in_flight() {
        let tables = UnitTables::new([1, 3, 1000]).unwrap();
        // SAFETY: it is the only one.
        let mut table = unsafe { tables.table(1) };
        (0..3).for_each(|index| table.push(unit(index)));
        [2, 1].into_iter().for_each(|index| table.free.push(index));
        table.stamps[0].issue = 77;
        let found = tables.in_flight(1);
        let expected = UnitInFlight {
            operation: Operation::Write,
            file: 0,
            offset: 0,
            length: 4096,
            issue: 77,
            given_up: false,
        };
        assert_eq!((found, tables.free(1)), (vec![expected], 2));
        assert_eq!(table.free.pop(), Some(1));
        assert_eq!(tables.in_flight(1).iter().map(|unit| unit.offset).collect::<Vec<_>>(), [0, 4096]);
        [0, 1].into_iter().for_each(|index| table.free.push(index));
        assert_eq!(tables.in_flight(1), []);
        assert_eq!((tables.in_flight(0), tables.in_flight(2)), (vec![], vec![]), "those of other workers");
    }

    #[test]
    fn the_last_one_freed_is_used_first() {
        let tables = UnitTables::new([2]).unwrap();
        // SAFETY: it is the only one.
        let mut table = unsafe { tables.table(0) };
        assert_eq!((table.free.is_empty(), table.free.pop()), (true, None));
        [0, 1].into_iter().for_each(|index| table.free.push(index));
        assert_eq!([table.free.pop(), table.free.pop(), table.free.pop()], [Some(1), Some(0), None]);
    }

    #[test]
    fn impossible_depths_are_errors() {
        assert_eq!(UnitTables::new(vec![u32::MAX; 1 << 20]).unwrap_err().raw_os_error(), Some(libc::ENOMEM));
    }
}
