// SPDX-License-Identifier: GPL-2.0-or-later
//! The crate's error: one sentence that says what is wrong in an input, and where.

use std::fmt;

/// A topology, scheme or workload that cannot be simulated: one sentence with what and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Error(sentence.into())
    }
}

impl From<String> for Error {
    fn from(sentence: String) -> Self {
        Error(sentence)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// A result with the crate's error.
pub type Result<T> = std::result::Result<T, Error>;
