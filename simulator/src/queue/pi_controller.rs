// SPDX-License-Identifier: GPL-2.0-or-later
//! The proportional-integral controller that PIE and DualPI2 share.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::time::{Ps, S, US};
use crate::core::units::{Duration, Gain, In, Unit};

/// Settings: at each `update` the probability grows by `alpha` (delay − `target`) + `beta` (delay −
/// previous delay).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PiController {
    /// The delay to hold.
    #[serde(with = "In::<Duration>")]
    pub target: Ps,
    /// Interval of updates.
    #[serde(with = "In::<Duration>")]
    pub update: Ps,
    /// In thousandths of 1/s.
    #[serde(with = "In::<Gain>")]
    pub alpha: u64,
    /// In thousandths of 1/s.
    #[serde(with = "In::<Gain>")]
    pub beta: u64,
}

impl PiController {
    pub(crate) fn check(&self) -> Result<()> {
        let PiController { target, update, .. } = self;
        if *target == 0 || *target > Duration::MAX {
            return Err(Error::new(format!(
                "a target of {target} ps must be above 0 and at most 1000 s"
            )));
        }
        if !(US..=Duration::MAX).contains(update) {
            return Err(Error::new(format!(
                "updates every {update} ps are not 1 us to 1000 s apart"
            )));
        }
        if self.alpha == 0 || self.alpha.max(self.beta) > 1 << 50 {
            return Err(Error::new(format!(
                "gains of {} and {} thousandths must be above 0 and at most 2^50",
                self.alpha, self.beta
            )));
        }
        Ok(())
    }

    /// The change of the probability, by IEEE 754's exact operations only.
    pub(crate) fn change(&self, delay: Ps, before: Ps) -> f64 {
        let seconds = |a: Ps, b: Ps| (a as f64 - b as f64) / S as f64;
        (self.alpha as f64 * seconds(delay, self.target)
            + self.beta as f64 * seconds(delay, before))
            / 1e3
    }
}
