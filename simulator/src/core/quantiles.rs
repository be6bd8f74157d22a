// SPDX-License-Identifier: GPL-2.0-or-later
//! A distribution of times, given by its quantiles.

use serde::Deserialize;

use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{Duration, In};

/// A distribution of times.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Quantiles {
    /// Share of draws, in units of 1/`u32::MAX`, that do not exceed a time.
    points: Vec<(u32, Ps)>,
}

/// The serialized form.
#[derive(Deserialize)]
#[serde(rename = "Quantiles", deny_unknown_fields)]
struct Written {
    points: Vec<Point>,
}

#[derive(Deserialize)]
#[serde(expecting = "a percentage and a time")]
struct Point(f64, #[serde(with = "In::<Duration>")] Ps);

impl TryFrom<Written> for Quantiles {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self> {
        Quantiles::new(
            &written
                .points
                .iter()
                .map(|Point(percent, time)| (*percent, *time))
                .collect::<Vec<_>>(),
        )
    }
}

impl Quantiles {
    /// From points (per cent, ps). For example (50, 85,000,000): half of the draws do not exceed 85
    /// us.
    ///
    /// # Errors
    /// The points must go from 0 to 100 %, shares must rise, and times must not fall.
    pub fn new(points: &[(f64, Ps)]) -> Result<Self> {
        let share = |percent: f64| (percent / 100.0 * f64::from(u32::MAX)).round() as u32;
        match points {
            [(0.0, _), .., (100.0, _)] => {}
            _ => return Err(Error::new("quantiles must go from 0 to 100 %")),
        }
        let points: Vec<(u32, Ps)> =
            points.iter().map(|&(percent, time)| (share(percent), time)).collect();
        if points.windows(2).any(|pair| pair[0].0 >= pair[1].0 || pair[0].1 > pair[1].1) {
            return Err(Error::new("quantiles must ascend"));
        }
        Ok(Quantiles { points })
    }

    /// The largest possible draw.
    pub(crate) fn most(&self) -> Ps {
        self.points.last().map_or(0, |&(_, most)| most)
    }

    /// The time that this share of draws does not exceed.
    pub(crate) fn at(&self, share: u32) -> Ps {
        // The last point's share is the largest there is.
        let above = self.points.partition_point(|&(of, _)| of < share).max(1);
        let ((below, least), (above, most)) = (self.points[above - 1], self.points[above]);
        let part = u128::from(share - below) * u128::from(most - least) / u128::from(above - below);
        least + part as Ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::US;

    const POINTS: [(f64, Ps); 4] =
        [(0.0, 10 * US), (50.0, 85 * US), (99.9, 90 * US), (100.0, 126 * US)];

    #[test]
    fn between_two_quantiles_a_share_has_its_part() {
        let quantiles = Quantiles::new(&POINTS).unwrap();
        let half = quantiles.points[1].0;
        assert_eq!((half, quantiles.points[2].0), (1 << 31, 4_290_672_328));
        assert_eq!(
            [0, half, u32::MAX].map(|share| quantiles.at(share)),
            [10 * US, 85 * US, 126 * US]
        );
        assert_eq!(quantiles.at(1 << 30), 10 * US + 75 * US / 2);
        // One of the 2^32 - 1 above the median, in whole picoseconds.
        assert_eq!(
            quantiles.at(half + (1 << 20)),
            85 * US + ((5 * US) << 20) / Ps::from(quantiles.points[2].0 - half)
        );
        let flat = Quantiles::new(&[(0.0, US), (30.0, US), (100.0, US)]).unwrap();
        assert_eq!([0, 1, half, u32::MAX].map(|share| flat.at(share)), [US; 4]);
    }

    #[test]
    fn quantiles_that_cannot_be_are_told() {
        let said = |points: &[(f64, Ps)]| Quantiles::new(points).unwrap_err().to_string();
        let ends: [&[(f64, Ps)]; 6] = [
            &[],
            &[(0.0, 1)],
            &[(100.0, 1)],
            &[(0.0, 1), (99.0, 2)],
            &[(1.0, 1), (100.0, 2)],
            &[(0.0, 1), (f64::NAN, 2)],
        ];
        assert!(ends.iter().all(|points| said(points) == "quantiles must go from 0 to 100 %"));
        let falls: [&[(f64, Ps)]; 4] = [
            &[(0.0, 2), (100.0, 1)],
            &[(0.0, 1), (60.0, 2), (50.0, 3), (100.0, 4)],
            &[(0.0, 1), (f64::NAN, 2), (100.0, 3)],
            &[(0.0, 1), (101.0, 2), (100.0, 3)],
        ];
        assert!(falls.iter().all(|points| said(points) == "quantiles must ascend"));
    }
}
