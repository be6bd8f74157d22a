// SPDX-License-Identifier: GPL-2.0-or-later
//! Networks: nodes, cables, ports and the ways of packets.

pub(crate) mod asking;
pub(crate) mod division;
pub(crate) mod equipment;
pub(crate) mod failing;
pub(crate) mod graph;
pub(crate) mod link;
pub(crate) mod network;
pub(crate) mod pause;
pub(crate) mod port;
pub(crate) mod reading;
pub(crate) mod routes;
pub(crate) mod shortest;
pub(crate) mod stats;
pub(crate) mod topology;
mod written;
