// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulation: all layers together.

pub(crate) mod diary;
pub(crate) mod engine;
pub(crate) mod fig9;
pub(crate) mod outcome;
pub(crate) mod parted;
pub(crate) mod progress;
pub(crate) mod published;
pub(crate) mod regions;
pub(crate) mod rivals;
pub(crate) mod scenario;
pub(crate) mod scheme;
pub(crate) mod series;
pub(crate) mod watch;
pub(crate) mod workload;
mod written;
