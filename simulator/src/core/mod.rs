// SPDX-License-Identifier: GPL-2.0-or-later
//! Time, random numbers, the units, the order of events, and what is wrong with an input.

pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod fetch;
pub(crate) mod mrg;
pub(crate) mod quantiles;
pub(crate) mod rendezvous;
pub(crate) mod rng;
pub(crate) mod time;
pub mod units;
pub(crate) mod wheel;
