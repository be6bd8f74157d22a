// SPDX-License-Identifier: GPL-2.0-or-later
//! What a queue has a link do.

use crate::core::time::Ps;

/// What a link that is free does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It sends this packet, which was marked just now or was not.
    Send { handle: u32, marked: bool },
    /// Packets wait, and none may be sent before this time.
    Wait(Ps),
    /// Nothing waits, or nothing of a level that is not stopped.
    Idle,
}

impl From<Option<u32>> for Next {
    #[inline]
    fn from(handle: Option<u32>) -> Self {
        handle.map_or(Next::Idle, |handle| Next::Send { handle, marked: false })
    }
}
