//! Where the I/O of a trace goes.

use iolite_host::{DeviceNumber, Machine};
use iolite_options::JobOptions;
use iolite_trace::FileName;
use iolite_types::prefixed;
use std::path::PathBuf;

/// Where the I/O of a trace goes: to the files that it names, below a directory, or all to one.
#[derive(Clone, Debug, Default)]
pub struct Target {
    redirect: Option<PathBuf>,
    directory: PathBuf,
}

impl Target {
    pub(super) fn new(options: &JobOptions) -> Target {
        Target {
            redirect: options.replay.replay_redirect.as_ref().map(PathBuf::from),
            directory: options.files.directory.first().map(PathBuf::from).unwrap_or_default(),
        }
    }

    /// The file that replaces this file of the trace. Devices are found by their numbers, unless the engine uses no
    /// local devices and `needs_devices` is false.
    ///
    /// # Errors
    /// There is no such device here.
    pub fn of(&self, name: &FileName, needs_devices: bool, machine: &dyn Machine) -> Result<PathBuf, String> {
        if let Some(path) = &self.redirect {
            return Ok(path.clone());
        }
        match name {
            FileName::Path(path) => Ok(prefixed(&self.directory, path)),
            FileName::Device { .. } if !needs_devices => Ok(PathBuf::from(name.to_string())),
            &FileName::Device { major, minor } => {
                machine.device_node(DeviceNumber { major, minor }).ok_or_else(|| {
                    format!(
                        "the trace uses the device {major}:{minor}, and there is none of these numbers here; \
                     replay_redirect=DEVICE sends all I/O to another"
                    )
                })
            }
        }
    }
}
