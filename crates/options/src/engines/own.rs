//! An engine's own options, as its own struct.
//!
//! Each engine that has options with an effect has a struct for them, in the file that declares them. Options that
//! several engines have are declared once ([`super::shared`]); they are stored in the struct of each engine that has a
//! field for them.

use super::facets::Facets;
use super::priorities::CommandPriorities;
use crate::JobOptions;
use crate::definition::{Definition, Given, Land, Places, found};
use crate::values::Notes;
use std::any::Any;
use std::path::Path;

/// An option that has no effect, and why.
pub type Idle = (&'static str, &'static str);

/// Something that a job cannot do: the option to blame, and why.
pub type Obstacle = (&'static str, String);

/// The struct of one engine's own options, and the questions about a job that these options decide.
pub trait OwnOptions: Places {
    /// `cmdprio…`
    fn priorities(&self) -> Option<&CommandPriorities> {
        None
    }

    /// Whether all files have to be known when the engine is created, because it registers them.
    fn registers_files(&self) -> bool {
        false
    }

    /// Whether the engine starts programs of the user, which must not outlive the run.
    fn starts_programs(&self) -> bool {
        false
    }

    /// Whether each block of a file is a separate object, so that the meaning of a name depends on the block size.
    fn blocks_are_objects(&self) -> bool {
        false
    }

    /// What the job cannot do with these.
    fn obstacles(&self, job: &JobOptions) -> Vec<Obstacle> {
        let _ = job;
        Vec::new()
    }

    /// What prevents the job from running with these. (`--parse-only` does not ask.)
    fn obstacle_to_run(&self, job: &JobOptions) -> Option<String> {
        let _ = job;
        None
    }

    /// The options that have no effect with these, each with the reason. The front end warns about those that were
    /// given.
    fn without_effect(&self) -> Vec<Idle> {
        Vec::new()
    }

    /// Whether I/Os are requests to a server, so that the time to the first byte and repetitions are reported.
    fn makes_requests(&self) -> bool {
        false
    }

    /// The longest time in microseconds that a request may take, with its repetitions; 0 = no limit, `None` = the options
    /// do not say.
    fn patience_us(&self) -> Option<u64> {
        None
    }

    /// Behaves like fio where the two differ.
    fn be_as_fio(&mut self, asked: AsFio) {
        let _ = asked;
    }

    /// The name of the job's only file, whatever the job calls it, so that it is known that jobs and clones share it.
    fn only_name(&self) -> Option<&str> {
        None
    }

    /// The file or device of this machine that its storage is, whose users are asked before data on it is changed.
    fn local_target(&self) -> Option<LocalTarget<'_>> {
        None
    }

    /// The command that resizes the object of this name, if jobs cannot; `None` = there is no such command.
    fn resized_by(&self, name: &Path, size: u64) -> Option<String> {
        let _ = (name, size);
        None
    }

    /// The facets of the engine with these options; by default those of its entry.
    fn facets(&self, facets: Facets) -> Facets {
        facets
    }
}

/// A file or device of this machine that an engine with its own storage uses by itself.
#[derive(Clone, Copy, Debug)]
pub struct LocalTarget<'a> {
    /// The option that names it.
    pub option: &'static str,
    /// Its path.
    pub path: &'a str,
}

/// The settings of a job that matter when it has to behave as in fio.
#[derive(Clone, Copy, Debug)]
pub struct AsFio {
    /// It limits the time of requests, which fio does not.
    pub has_limit: bool,
    /// No file may be changed (`--readonly`).
    pub readonly: bool,
}

/// Declares a struct for the options of an engine. Its defaults come from the declarations of the options. `with places`:
/// it has fields of options that several engines share, and an `impl Places` that returns them.
macro_rules! own_options {
    (
        $(#[$meta:meta])*
        pub struct $name:ident declared by $options:ident with places {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)+ }

        impl Default for $name {
            fn default() -> Self {
                $crate::engines::own::declared($name { $($field: Default::default(),)+ }, $options)
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident declared by $options:ident {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)+
        }
    ) => {
        $crate::engines::own::own_options! {
            $(#[$meta])*
            pub struct $name declared by $options with places {
                $($(#[$field_meta])* pub $field: $type,)+
            }
        }

        impl $crate::definition::Places for $name {}
    };
}

/// Assigns a field in the struct of one engine: `own!(IoUringOptions.fixedbufs, boolean())`.
macro_rules! own {
    ($type:ident.$field:ident, $method:ident($($argument:expr),*)) => {
        |own, given| {
            $crate::engines::own::place::<$type>(own)?.$field = given.$method($($argument),*)?;
            Ok(())
        }
    };
}

pub(super) use {own, own_options};

/// The struct of an engine, in which one of its options is stored.
pub(super) fn place<T: OwnOptions>(own: &mut dyn Places) -> Result<&mut T, String> {
    found((own as &mut dyn Any).downcast_mut())
}

/// The file that an option names, in a job with this engine.
pub(super) fn named_by<T: OwnOptions>(job: &JobOptions, name: impl Fn(&T) -> &String) -> Vec<String> {
    job.engine.of::<T>().map(|own| name(own).clone()).into_iter().collect()
}

/// The options with the defaults that their declarations have.
///
/// # Panics
/// When a default is not a value of its option.
pub(super) fn declared<T: OwnOptions>(mut off: T, definitions: &[&'static Definition]) -> T {
    for &definition in definitions {
        let (Some(text), Some(Land::Engine(land))) = (definition.default, definition.land) else { continue };
        let mut given = Given { definition, text: Some(text), kb_base: 1024, notes: Notes::default() };
        if let Err(reason) = land(&mut off, &mut given) {
            panic!("the default of option {} does not land: {reason}", definition.name);
        }
    }
    off
}
