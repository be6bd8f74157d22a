// SPDX-License-Identifier: GPL-2.0-or-later
//! The random loss of a cable.

use serde::{Deserialize, Serialize};

use crate::core::units::{Fraction, In};

/// Random loss on a cable, or on all cables between two switches, in both directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// A node at one end.
    pub one: String,
    /// The node at the other end.
    pub other: String,
    /// The share of packets that is lost, below 1. A lost packet has crossed the queue and taken
    /// its time on the link.
    #[serde(with = "In::<Fraction>")]
    pub share: u32,
}
