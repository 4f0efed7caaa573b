//! Engines at work. (Tests that need a process of their own are beside this directory.)

#[path = "../common/mod.rs"]
mod common;
mod devices;
mod in_flight;
mod refusals;
mod streams;
mod transfer;
