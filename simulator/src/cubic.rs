// SPDX-License-Identifier: GPL-2.0-or-later
//! CUBIC's window (RFC 9438) in whole numbers: C = 0.4, a cut to 0.7, fast convergence. Windows have 16 fractional bits.

use crate::time::{Ps, US};

/// One packet of window.
const ONE: u64 = 1 << 16;

/// C as a fraction, in packets per cubic second.
const C: (u128, u128) = (4, 10);
/// Microseconds of a second, cubed.
const CUBIC_SECOND: u128 = 1_000_000_000_000_000_000;
/// Farther from the plateau nothing changes: the largest window is reached.
const FARTHEST: i64 = 1 << 31;

/// What CUBIC knows beside the window. The congestion-avoidance stage begins with the first packet acknowledged in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cubic {
    /// `W_max`: window before the last reduction, or less, if it fell short of the one before (fast convergence); 0: unknown.
    most: u32,
    /// `cwnd_prior`: window before the last reduction.
    prior: u32,
    /// When the stage began.
    epoch: Option<Ps>,
    /// Window at the plateau of the stage's curve, and K: microseconds from the stage's beginning to there.
    plateau: u32,
    k: i64,
    /// `W_est`: the window that Reno would have; 32 fractional bits.
    reno: u64,
}

impl Cubic {
    /// The window after `acked` packets more, in congestion avoidance (RFC 9438, sections 4.2 to 4.5).
    pub fn grow(&mut self, window: u32, acked: u32, now: Ps, round_trip: Ps) -> u32 {
        if self.epoch.is_none() {
            self.begin(window);
        }
        let passed = now - *self.epoch.get_or_insert(now);
        // alpha = 3 (1 - 0.7) / (1 + 0.7), and 1 as soon as the old window is reached.
        let (share, whole) = if self.reno >> 16 < u64::from(self.prior) { (9, 17) } else { (1, 1) };
        self.reno += u64::from(acked) * ((share << 48) / (whole * u64::from(window)));
        let reno = self.reno >> 16;
        if self.curve(passed) < reno {
            return u32::try_from(reno).unwrap_or(u32::MAX).max(window);
        }
        let window = u64::from(window);
        let target = self.curve(passed.saturating_add(round_trip)).clamp(window, window + window / 2);
        let more = u64::from(acked) * (target - window) * ONE / window;
        u32::try_from(window + more).unwrap_or(u32::MAX)
    }

    fn begin(&mut self, window: u32) {
        self.reno = u64::from(window) << 16;
        self.plateau = self.most.max(window);
        let below = u128::from(self.plateau - window);
        self.k = cube_root(below * CUBIC_SECOND * C.1 / (C.0 * u128::from(ONE))) as i64;
    }

    /// `W_cubic`, `passed` after the stage's beginning.
    fn curve(&self, passed: Ps) -> u64 {
        let from_plateau = ((passed / US) as i64 - self.k).clamp(-FARTHEST, FARTHEST);
        let cube = i128::from(from_plateau).pow(3);
        let rise = cube * (C.0 * u128::from(ONE)) as i128 / (C.1 * CUBIC_SECOND) as i128;
        (i128::from(self.plateau) + rise).clamp(0, i128::from(u32::MAX)) as u64
    }

    /// The window after a loss (sections 4.6 and 4.7).
    pub fn reduce(&mut self, window: u32) -> u32 {
        self.most = if window < self.most { (u64::from(window) * 17 / 20) as u32 } else { window };
        self.leave(window)
    }

    /// Where slow start ends after a timeout; the stage after it has its plateau where it begins (section 4.8).
    pub fn time_out(&mut self, window: u32) -> u32 {
        self.most = 0;
        self.leave(window)
    }

    fn leave(&mut self, window: u32) -> u32 {
        self.prior = window;
        self.restart();
        (u64::from(window) * 7 / 10).max(2 * ONE) as u32
    }

    /// The next packet acknowledged in congestion avoidance begins a stage.
    pub fn restart(&mut self) {
        self.epoch = None;
    }

    /// The sender had nothing to send for so long, which does not count (section 5.8).
    pub fn idle(&mut self, idle: Ps) {
        self.epoch = self.epoch.map(|epoch| epoch + idle);
    }
}

/// The largest whole number whose cube is not above `of`, which is below 2^93.
fn cube_root(of: u128) -> u64 {
    let mut root = 0u128;
    for bit in (0..31).rev() {
        let larger = root | 1 << bit;
        if larger.pow(3) <= of {
            root = larger;
        }
    }
    root as u64
}
