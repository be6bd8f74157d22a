// SPDX-License-Identifier: GPL-2.0-or-later
//! Hosts: both ends of flows, congestion control, limiters and datagrams.

pub(crate) mod acks;
pub(crate) mod aequitas;
pub(crate) mod congestion;
pub(crate) mod emitter;
pub(crate) mod eqds;
pub(crate) mod flow;
pub(crate) mod flow_events;
pub(crate) mod homa;
pub(crate) mod homa_messages;
pub(crate) mod hosts;
pub(crate) mod jitter;
pub(crate) mod limiter;
pub(crate) mod ndp;
pub(crate) mod ndp_pulls;
pub(crate) mod part_boundary;
pub(crate) mod path;
pub(crate) mod protocol;
pub(crate) mod receiver;
pub(crate) mod remote_flows;
pub(crate) mod result;
pub(crate) mod sequence_set;
pub(crate) mod sockets;
pub(crate) mod traffic;
pub(crate) mod transport;
