// SPDX-License-Identifier: GPL-2.0-or-later
//! Hosts: flows from both ends, what holds them back, datagrams.

pub(crate) mod admission;
pub(crate) mod away;
pub(crate) mod congestion;
pub(crate) mod crossing;
pub(crate) mod emitter;
pub(crate) mod flow;
pub(crate) mod homa;
pub(crate) mod hosts;
pub(crate) mod jitter;
pub(crate) mod limiter;
pub(crate) mod messages;
pub(crate) mod path;
pub(crate) mod protocol;
pub(crate) mod receiver;
pub(crate) mod reply;
pub(crate) mod result;
pub(crate) mod sending;
pub(crate) mod sockets;
pub(crate) mod traffic;
pub(crate) mod transport;
pub(crate) mod window;
