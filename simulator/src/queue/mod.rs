// SPDX-License-Identifier: GPL-2.0-or-later
//! Queues: which packet is sent next, and which are dropped or marked.

pub(crate) mod aqm;
pub(crate) mod codel;
pub(crate) mod discipline;
pub(crate) mod drr;
pub(crate) mod dual;
pub(crate) mod fifo;
pub(crate) mod gate;
pub(crate) mod integral;
pub(crate) mod level_red;
pub(crate) mod levels;
pub(crate) mod limit;
pub(crate) mod next;
pub(crate) mod pfabric;
pub(crate) mod pie;
pub(crate) mod priority;
pub(crate) mod red;
pub(crate) mod setting;
pub(crate) mod timed;
pub(crate) mod wfq;
