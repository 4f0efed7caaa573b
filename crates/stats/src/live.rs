//! The form in which a worker publishes its numbers.
