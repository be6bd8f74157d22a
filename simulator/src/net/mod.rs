// SPDX-License-Identifier: GPL-2.0-or-later
//! The network: nodes, links, ports and routes.

pub(crate) mod adaptive;
pub(crate) mod graph;
pub(crate) mod link;
pub(crate) mod link_config;
pub(crate) mod link_failure;
pub(crate) mod loss;
pub(crate) mod lossy_links;
pub(crate) mod network;
pub(crate) mod partition;
pub(crate) mod pause;
pub(crate) mod port;
pub(crate) mod port_events;
pub(crate) mod routes;
pub(crate) mod shared_buffer;
pub(crate) mod shortest;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub(crate) mod telemetry;
pub(crate) mod topology;
pub(crate) mod topology_parse;
