//! The program as a user runs it: real command lines, real files, loop devices, signals.
//!
//! One test binary with a module per subject, so that it is linked once and the helpers in `common` are
//! shared. Run a subject with `cargo test -p iolite --test system engines::`.
//!
//! `IOLITE_TEST_PROGRAM=/usr/bin/fio cargo test -p iolite --test system` puts another program under the
//! same tests: that is how the expectations written here were checked against fio itself.

mod as_fio;
mod ceph;
mod cli;
mod coming_back;
mod common;
mod companions;
mod comparing;
mod content;
mod corruption;
mod crashes;
mod debugging;
mod deployed;
mod devices;
mod differential;
mod documents;
mod earlier_runs;
mod effects;
mod emulated;
mod ends;
mod engines;
mod errors;
mod examples;
mod exchange;
mod extents;
mod external;
mod failures;
mod gluster;
mod http;
mod idleness;
mod keeping;
mod keys;
mod launched;
mod libiscsi;
mod live;
mod log_tools;
mod logs;
mod machine;
mod memory;
mod names;
mod nbd;
mod network;
mod nfs;
mod object_stores;
mod offload;
mod offsets;
mod order;
mod over_ssh;
mod own_files;
mod own_storage;
mod pages;
mod pictures;
mod power_cut;
mod priorities;
mod profiles;
mod published;
mod rates;
mod recorded_traces;
mod remote;
mod reporting;
mod reports;
mod safety;
mod seeds;
mod serving;
mod sharing;
mod signals;
mod states;
mod status;
mod steady_state;
mod sweeping;
mod syncs;
mod times;
mod trace_companion;
mod traces;
mod trims;
mod uploads;
mod verified_replays;
mod verify;
mod watching;
mod web;
mod working;
