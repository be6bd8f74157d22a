// SPDX-License-Identifier: GPL-2.0-or-later
//! How long a queue may be.

use serde::{Deserialize, Serialize};

use crate::core::time::Ps;
use crate::core::units::{Duration, In, Octets, Packets};

/// How long a queue may be, or is when something is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Limit {
    /// As long as it becomes.
    None,
    /// Bytes, of which those of the packet being sent that are still to go count.
    Bytes(#[serde(with = "In::<Octets>")] u64),
    /// Packets with the one being sent.
    Packets(#[serde(with = "In::<Packets>")] u32),
    /// As many bytes as the link sends in so long: other ones for links of other rates.
    Time(#[serde(with = "In::<Duration>")] Ps),
}
