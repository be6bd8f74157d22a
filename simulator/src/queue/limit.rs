// SPDX-License-Identifier: GPL-2.0-or-later
//! Queue limits and thresholds: in bytes, packets or time.

use serde::{Deserialize, Serialize};

use crate::core::time::Ps;
use crate::core::units::{Duration, In, Octets, Packets};

/// A limit of a queue, or a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Limit {
    /// No limit.
    None,
    /// Bytes, including those of the packet being sent that are still to go.
    Bytes(#[serde(with = "In::<Octets>")] u64),
    /// Packets, including the one being sent.
    Packets(#[serde(with = "In::<Packets>")] u32),
    /// As many bytes as the link sends in this time: it depends on the link's rate.
    Time(#[serde(with = "In::<Duration>")] Ps),
}
