// SPDX-License-Identifier: GPL-2.0-or-later
//! What an event is, in 32 bits: the kind and whom it concerns.

/// An event's kind is in the upper 3 bits of 32, its index in the others.
pub(crate) const INDEX: u32 = 29;
pub(crate) const ARRIVE: u32 = 0;
/// A host's limiter lets a packet go.
pub(crate) const RELEASE: u32 = 1 << INDEX;
/// A host that has drawn how long it takes hands a packet over. It is the last kind of which the index is a packet's handle.
pub(crate) const HAND_OVER: u32 = 2 << INDEX;
pub(crate) const DEPART: u32 = 3 << INDEX;
pub(crate) const TIMER: u32 = 4 << INDEX;
pub(crate) const START: u32 = 5 << INDEX;
/// Of a source's datagram; above the number of sources of an application's event.
pub(crate) const EMIT: u32 = 6 << INDEX;
/// Beside a host's number in a timer event: its link may be free for its messages. Flows have slots below.
pub(crate) const HOST: u32 = 1 << 28;
/// Beside a link's number in a departure event: a pause frame has arrived at the link's end.
pub(crate) const TOLD: u32 = 1 << 28;
/// The same: what waits there may be sent by now.
pub(crate) const WAKE: u32 = 1 << 27;
/// The same, beside the number of a change: a cable fails or works again. Links' numbers are below.
pub(crate) const CHANGE: u32 = 1 << 26;
