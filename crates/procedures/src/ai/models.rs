//! Published models: what their training reads, and what their checkpoints write.
//!
//! Source: MLPerf Storage 2.0, github.com/mlcommons/storage: the configurations of training workloads (`unet3d_a100.yaml` and so
//! on) and the rules (`Submission_guidelines.md`, table 1 for the least utilisation, table 2 for checkpoints).

/// The source of these figures.
pub const SOURCE: &str = "MLPerf Storage 2.0";

/// A model in training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// Its name on command lines.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The mean size of a sample in bytes, and its standard deviation.
    pub sample: u64,
    /// The standard deviation of that size.
    pub deviation: u64,
    /// Samples in a file.
    pub per_file: u64,
    /// Samples in a batch of one accelerator.
    pub batch: u64,
    /// Threads that read for one accelerator.
    pub readers: u64,
    /// How long an A100 and an H100 compute with a batch, in microseconds.
    pub compute_us: [u64; 2],
    /// The least utilisation with which an accelerator counts, in percent.
    pub least_percent: f64,
}

/// The accelerators whose computing times are published.
pub const ACCELERATORS: [&str; 2] = ["a100", "h100"];

/// The models in training.
pub const TRAINING: [Training; 3] = [
    Training {
        name: "unet3d",
        title: "3D U-Net",
        sample: 146_600_628,
        deviation: 68_341_808,
        per_file: 1,
        batch: 7,
        readers: 4,
        compute_us: [636_000, 323_000],
        least_percent: 90.0,
    },
    Training {
        name: "resnet50",
        title: "ResNet-50",
        sample: 114_660,
        deviation: 0,
        per_file: 1251,
        batch: 400,
        readers: 8,
        compute_us: [435_000, 224_000],
        least_percent: 90.0,
    },
    Training {
        name: "cosmoflow",
        title: "CosmoFlow",
        sample: 2_828_486,
        deviation: 71_311,
        per_file: 1,
        batch: 1,
        readers: 4,
        compute_us: [5510, 3500],
        least_percent: 70.0,
    },
];

/// A model that is saved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saved {
    /// Its name on command lines.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Accelerators, each of which saves its part.
    pub ranks: u64,
    /// Bytes of a checkpoint: model and optimiser.
    pub bytes: u64,
}

/// The models that are saved.
pub const SAVED: [Saved; 4] = [
    Saved { name: "llama3-8b", title: "Llama 3 8B", ranks: 8, bytes: 105_000_000_000 },
    Saved { name: "llama3-70b", title: "Llama 3 70B", ranks: 64, bytes: 912_000_000_000 },
    Saved { name: "llama3-405b", title: "Llama 3 405B", ranks: 512, bytes: 5_290_000_000_000 },
    Saved { name: "llama3-1t", title: "a model of 1T parameters", ranks: 1024, bytes: 18_000_000_000_000 },
];

impl Training {
    /// The model with this name.
    ///
    /// # Errors
    /// There is none.
    pub fn of(name: &str) -> Result<Training, String> {
        let found = TRAINING.into_iter().find(|model| model.name == name);
        found.ok_or_else(|| format!("not one of {}", TRAINING.map(|model| model.name).join(", ")))
    }

    /// How long an accelerator of this kind computes with a batch, in microseconds.
    ///
    /// # Errors
    /// The kind is unknown.
    pub fn compute_us(&self, accelerator: &str) -> Result<u64, String> {
        let place = ACCELERATORS.iter().position(|known| *known == accelerator);
        place
            .map(|place| self.compute_us[place])
            .ok_or_else(|| format!("not one of {}", ACCELERATORS.join(", ")))
    }
}

impl Saved {
    /// The model with this name.
    ///
    /// # Errors
    /// There is none.
    pub fn of(name: &str) -> Result<Saved, String> {
        let found = SAVED.into_iter().find(|model| model.name == name);
        found.ok_or_else(|| format!("not one of {}", SAVED.map(|model| model.name).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        let unet = Training::of("unet3d").unwrap();
        assert_eq!((unet.compute_us("h100"), unet.compute_us("a100")), (Ok(323_000), Ok(636_000)));
        assert_eq!(unet.compute_us("v100"), Err("not one of a100, h100".to_owned()));
        assert_eq!(Training::of("bert"), Err("not one of unet3d, resnet50, cosmoflow".to_owned()));
        assert_eq!(Saved::of("llama3-8b").unwrap().ranks, 8);
        assert!(Saved::of("llama3").is_err());
    }
}
