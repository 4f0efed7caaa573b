//! The fields of options that several engines share.

use std::any::Any;

/// The address of the other end of a connection, in the struct of an engine that makes connections.
pub struct FarEnd<'a> {
    /// `hostname`
    pub hostname: &'a mut String,
    /// `port`
    pub port: &'a mut u32,
}

/// The struct of one engine's own options, where they land. An option of a single engine finds its field by the type of
/// the struct. The methods return the places of options that several engines share; `None` = the engine has no such
/// option.
pub trait Places: Any {
    /// `hipri`
    fn hipri(&mut self) -> Option<&mut bool> {
        None
    }

    /// `uncached`
    fn uncached(&mut self) -> Option<&mut bool> {
        None
    }

    /// `nowait`
    fn nowait(&mut self) -> Option<&mut bool> {
        None
    }

    /// `readfua`
    fn readfua(&mut self) -> Option<&mut bool> {
        None
    }

    /// `writefua`
    fn writefua(&mut self) -> Option<&mut bool> {
        None
    }

    /// `uring`
    fn uring(&mut self) -> Option<&mut bool> {
        None
    }

    /// `bind`
    fn bind(&mut self) -> Option<&mut String> {
        None
    }

    /// The address of the other end of a connection.
    fn far_end(&mut self) -> Option<FarEnd<'_>> {
        None
    }

    /// A struct of options that several engines share: those of a ring, of a Ceph pool, of priorities.
    fn part(&mut self) -> Option<&mut dyn Any> {
        None
    }
}

impl dyn Places {
    /// The struct of this type: the engine's struct itself, or a part of it.
    pub fn find<T: Any>(&mut self) -> Option<&mut T> {
        match (self as &mut dyn Any).is::<T>() {
            true => (self as &mut dyn Any).downcast_mut(),
            false => self.part()?.downcast_mut(),
        }
    }
}

/// The place of an option.
///
/// # Errors
/// The engine does not have the option.
pub(crate) fn found<T>(place: Option<T>) -> Result<T, String> {
    place.ok_or_else(|| "this engine has no such option".to_owned())
}
