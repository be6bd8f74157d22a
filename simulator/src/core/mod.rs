// SPDX-License-Identifier: GPL-2.0-or-later
//! Foundations: time, random numbers, units, the event queue and errors.

pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod memory;
pub(crate) mod mrg32k3a;
pub(crate) mod prefetch;
pub(crate) mod quantiles;
pub(crate) mod rng;
pub(crate) mod spin_barrier;
pub(crate) mod stop;
pub(crate) mod time;
pub mod units;
pub(crate) mod wheel;
