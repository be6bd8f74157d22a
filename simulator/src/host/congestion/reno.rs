// SPDX-License-Identifier: GPL-2.0-or-later
//! Reno (RFC 5681): the state of [`LawState`] with nothing of its own.

use super::traits::{CongestionLaw, LawState, Window};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Reno;

impl CongestionLaw for Reno {
    type State = Reno;
    const NAME: &str = "reno";

    fn start(self, _window: &mut Window, _line: u64) -> Reno {
        self
    }
}

impl LawState for Reno {}
