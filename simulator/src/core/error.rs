// SPDX-License-Identifier: GPL-2.0-or-later
//! What is wrong with an input: one sentence with the place.

use std::fmt;

/// A topology, scheme or workload that cannot be simulated, in one sentence that says what and where.
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

/// A result whose error is a sentence.
pub type Result<T> = std::result::Result<T, Error>;
