// SPDX-License-Identifier: GPL-2.0-or-later
//! What a queue tells its link to do next: send a packet, wait, or idle.

use crate::core::time::Ps;

/// What a free link does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Send this packet; `marked`: it was marked just now.
    Send { handle: u32, marked: bool },
    /// Packets wait, but none may be sent before this time.
    Wait(Ps),
    /// Nothing waits, or only levels that are stopped.
    Idle,
}

impl From<Option<u32>> for Next {
    #[inline]
    fn from(handle: Option<u32>) -> Self {
        handle.map_or(Next::Idle, |handle| Next::Send { handle, marked: false })
    }
}

impl From<Option<(u32, bool)>> for Next {
    #[inline]
    fn from(sent: Option<(u32, bool)>) -> Self {
        sent.map_or(Next::Idle, |(handle, marked)| Next::Send { handle, marked })
    }
}
