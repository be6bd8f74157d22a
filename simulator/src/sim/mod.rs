// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulation: scenarios, schemes, workloads, runs and their outcomes.

mod base_path;
pub(crate) mod engine;
pub(crate) mod fig9;
mod fit;
mod flow_lines;
pub(crate) mod ns2_arrivals;
pub(crate) mod outcome;
pub(crate) mod parallel;
pub(crate) mod progress;
pub(crate) mod regions;
pub(crate) mod rivals;
pub(crate) mod scenario;
mod scenario_parse;
pub(crate) mod scheme;
pub(crate) mod series;
pub(crate) mod trace;
pub(crate) mod watch;
pub(crate) mod workload;
