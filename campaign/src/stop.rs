//! Why a trial cannot go on.

/// Why a trial ended early.
#[derive(Clone, Debug)]
pub struct Stop(pub String);

impl Stop {
    /// Describes the operation that failed with a system error.
    pub fn of(what: &str) -> impl Fn(std::io::Error) -> Stop {
        move |error| Stop(format!("{what}: {error}"))
    }
}
