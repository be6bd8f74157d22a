// SPDX-License-Identifier: GPL-2.0-or-later
//! The proportional integral controller that PIE and `DualPI2` have in common.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::time::{Ps, S, US};
use crate::core::units::{Duration, Gain, In, Unit};

/// A controller's settings: by every `update` a probability grows by `alpha` (delay - `target`) + `beta` (delay - the last one).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Integral {
    /// Delay that is kept.
    #[serde(with = "In::<Duration>")]
    pub target: Ps,
    /// Time between two updates.
    #[serde(with = "In::<Duration>")]
    pub update: Ps,
    /// In thousandths of 1/s.
    #[serde(with = "In::<Gain>")]
    pub alpha: u64,
    /// In thousandths of 1/s.
    #[serde(with = "In::<Gain>")]
    pub beta: u64,
}

impl Integral {
    pub(crate) fn check(&self) -> Result<()> {
        let Integral { target, update, .. } = self;
        if *target == 0 || *target > Duration::MOST {
            return Err(Error::new(format!("a target of {target} ps is not above 0 and at most 1000 s")));
        }
        if !(US..=Duration::MOST).contains(update) {
            return Err(Error::new(format!("updates every {update} ps are not 1 us to 1000 s apart")));
        }
        if self.alpha == 0 || self.alpha.max(self.beta) > 1 << 50 {
            return Err(Error::new(format!(
                "gains of {} and {} thousandths are not above 0 and at most 2^50",
                self.alpha, self.beta
            )));
        }
        Ok(())
    }

    /// What the probability grows by; all of it IEEE 754's exact operations.
    pub(crate) fn change(&self, delay: Ps, before: Ps) -> f64 {
        let seconds = |a: Ps, b: Ps| (a as f64 - b as f64) / S as f64;
        (self.alpha as f64 * seconds(delay, self.target) + self.beta as f64 * seconds(delay, before)) / 1e3
    }
}
