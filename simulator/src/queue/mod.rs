// SPDX-License-Identifier: GPL-2.0-or-later
//! Queues: which packet a link sends next, and which packets are dropped or marked.

pub(crate) mod admission;
pub(crate) mod aqm;
pub(crate) mod codel;
pub(crate) mod dualpi2;
pub(crate) mod fifo;
pub(crate) mod kinds;
pub(crate) mod level_red;
pub(crate) mod levels;
pub(crate) mod limit;
pub(crate) mod marking;
pub(crate) mod next;
pub(crate) mod pfabric;
pub(crate) mod pi_controller;
pub(crate) mod pie;
pub(crate) mod priority;
pub(crate) mod red;
pub(crate) mod round_robin;
pub(crate) mod threshold;
pub(crate) mod time_aware;
pub(crate) mod traits;
pub(crate) mod trim;
pub(crate) mod wfq;
