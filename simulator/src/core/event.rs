// SPDX-License-Identifier: GPL-2.0-or-later
//! Events, packed into 32 bits: a kind, and the index of the packet, link, flow or source
//! concerned.

/// The kind is in the upper 3 bits, the index in the lower 29.
pub(crate) const INDEX: u32 = 29;
pub(crate) const ARRIVE: u32 = 0;
/// A host's limiter releases a packet.
pub(crate) const RELEASE: u32 = 1 << INDEX;
/// A host with jitter hands a packet over. This is the last kind whose index is a packet handle.
pub(crate) const HAND_OVER: u32 = 2 << INDEX;
pub(crate) const DEPART: u32 = 3 << INDEX;
pub(crate) const TIMER: u32 = 4 << INDEX;
pub(crate) const START: u32 = 5 << INDEX;
/// A source emits a datagram; indices from the number of sources on are application events.
pub(crate) const EMIT: u32 = 6 << INDEX;
/// Added to a host's number in a timer event: its link may be free for Homa messages. Flow slots
/// are smaller.
pub(crate) const HOST: u32 = 1 << 28;
/// Added to it: the host may pull a packet.
pub(crate) const PULL: u32 = 1 << 27;
/// Added to a link's number in a departure event: a pause frame has arrived at the link's end.
pub(crate) const PAUSE_FRAME: u32 = 1 << 28;
/// Likewise: packets that had to wait may be sent now.
pub(crate) const WAKE: u32 = 1 << 27;
/// Likewise, added to the number of a change: a cable fails or works again. Link numbers are
/// smaller.
pub(crate) const CHANGE: u32 = 1 << 26;
