// SPDX-License-Identifier: GPL-2.0-or-later
//! Queues: which packet is sent next, and which are dropped or marked.

pub(crate) mod aqm;
pub(crate) mod codel;
pub(crate) mod gate;
pub(crate) mod ranked;
pub(crate) mod red;
