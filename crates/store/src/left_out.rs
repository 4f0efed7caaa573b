//! What stands for a store in a program without SQLite. None can be opened.

use crate::error::{Result, StoreError};
use crate::{Kept, Limits, Run};
use std::path::Path;
use std::time::Duration;

/// An open store: there is none.
#[derive(Debug)]
pub enum Store {}

#[expect(missing_docs, clippy::missing_errors_doc, reason = "those of the other `Store`")]
impl Store {
    pub fn open(_: &Path) -> Result<Store> {
        Err(StoreError::LeftOut)
    }

    pub fn open_within(_: &Path, _: Duration) -> Result<Store> {
        Err(StoreError::LeftOut)
    }

    pub fn open_existing(_: &Path) -> Result<Option<Store>> {
        Err(StoreError::LeftOut)
    }

    pub fn keep(&mut self, _: &str, _: &str, _: u64) -> Result<Kept> {
        match *self {}
    }

    pub fn import(&mut self, _: &str, _: &str, _: u64) -> Result<Kept> {
        match *self {}
    }

    pub fn runs(&self) -> Result<Vec<Run>> {
        match *self {}
    }

    pub fn report(&self, _: i64) -> Result<Option<String>> {
        match *self {}
    }

    pub fn label(&mut self, _: &[i64], _: &str) -> Result<()> {
        match *self {}
    }

    pub fn remove(&mut self, _: &[i64]) -> Result<()> {
        match *self {}
    }

    pub fn limits(&self) -> Result<Limits> {
        match *self {}
    }

    pub fn set_limits(&mut self, _: Limits, _: u64) -> Result<Vec<Run>> {
        match *self {}
    }

    pub fn beyond(&mut self, _: Limits, _: u64) -> Result<Vec<Run>> {
        match *self {}
    }

    pub fn check(&self) -> Result<Vec<String>> {
        match *self {}
    }
}
