// SPDX-License-Identifier: GPL-2.0-or-later
//! The cycle of BBR, version 3: when it probes for more, how far, and when it looks for the least
//! round trip (draft-ietf-ccwg-bbr, section 5.3).

use super::{
    Bbr3State, Mode, Phase, BETA, DURATION, FULL_ROUNDS, INTERVAL, LOSS_THRESH, MEMORY, MIN_PIPE,
    NONE, RENO_ROUNDS, UNIT,
};
use crate::core::rng::mix;
use crate::core::time::{Ps, S};
use crate::host::congestion::delivery_rate::Sample;
use crate::host::congestion::traits::AckInfo;

impl Bbr3State {
    /// `BBRAdaptLongTermModel`.
    pub(super) fn adapt_upper_bounds(
        &mut self,
        sample: &Sample,
        round: bool,
        cwnd: u64,
        ack: &AckInfo,
    ) {
        if round && self.phase == Phase::Starting {
            self.phase = Phase::Feedback;
        } else if round && self.phase == Phase::Stopping {
            (self.probes, self.phase) = (false, Phase::Init);
            if !sample.limited && !matches!(self.mode, Mode::Drain | Mode::ProbeRtt) {
                self.max_bw = [0, self.max_bw[0]];
            }
        }
        let many = 100 * sample.lost > LOSS_THRESH * u64::from(sample.under_way);
        if many || 2 * sample.marked > sample.delivered {
            if self.probes {
                self.handle_too_high(sample, cwnd, ack);
            }
            return;
        }
        if self.inflight_hi == NONE {
            return;
        }
        self.inflight_hi = self.inflight_hi.max(sample.under_way.into());
        // `BBRProbeInflightHiUpward`.
        if self.mode != Mode::Up || !self.window_limits || cwnd < self.inflight_hi {
            return;
        }
        self.up_acks += u64::from(ack.packets);
        if self.up_acks >= self.up_count {
            let more = self.up_acks / self.up_count;
            self.up_acks -= more * self.up_count;
            self.inflight_hi += more;
        }
        if round {
            self.raise_slope(cwnd);
        }
    }

    /// `BBRHandleInflightTooHigh`.
    fn handle_too_high(&mut self, sample: &Sample, cwnd: u64, ack: &AckInfo) {
        self.probes = false;
        if !sample.limited {
            let target = self.inflight(UNIT, ack.bytes).min(cwnd) * BETA / 100;
            self.inflight_hi = u64::from(sample.under_way).max(target).max(MIN_PIPE);
        }
        if self.mode == Mode::Up {
            self.start_down(ack.now);
        }
    }

    /// `BBRRaiseInflightHiSlope`.
    fn raise_slope(&mut self, cwnd: u64) {
        self.up_count = (cwnd >> self.up_rounds).max(1);
        self.up_rounds = (self.up_rounds + 1).min(30);
    }

    pub(super) fn start_down(&mut self, now: Ps) {
        (self.loss_in_round, self.bw_latest, self.inflight_latest) = (false, 0, 0);
        self.up_count = NONE;
        // `BBRPickProbeWait`: 2 to 3 s, and a round or none.
        let drawn = mix(now ^ self.rate.delivered);
        self.rounds_since_probe = drawn & 1;
        self.probe_wait = 2 * S + (drawn >> 1) % S;
        (self.cycle_at, self.phase, self.mode) = (now, Phase::Stopping, Mode::Down);
        self.start_round();
    }

    fn start_refill(&mut self) {
        self.reset_lower_bounds();
        (self.up_rounds, self.up_acks) = (0, 0);
        (self.phase, self.mode) = (Phase::Refilling, Mode::Refill);
        self.start_round();
    }

    fn start_up(&mut self, cwnd: u64, now: Ps) {
        (self.full_bw, self.full_count) = (0, 0);
        (self.cycle_at, self.phase, self.mode) = (now, Phase::Starting, Mode::Up);
        self.start_round();
        self.raise_slope(cwnd);
    }

    pub(super) fn reset_lower_bounds(&mut self) {
        (self.bw_lo, self.inflight_lo) = (NONE, NONE);
    }

    /// `BBRUpdateProbeBWCyclePhase`.
    pub(super) fn step(&mut self, round: bool, cwnd: u64, ack: &AckInfo) {
        let under_way = u64::from(ack.under_way);
        match self.mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe(cwnd, ack) => self.start_refill(),
            Mode::Down
                if under_way <= self.with_headroom()
                    && under_way <= self.inflight(UNIT, ack.bytes) =>
            {
                self.mode = Mode::Cruise;
            }
            Mode::Refill if round => {
                self.probes = true;
                self.start_up(cwnd, ack.now);
            }
            Mode::Up if self.window_limits && cwnd >= self.inflight_hi => {
                (self.full_bw, self.full_count) = (self.max_bw(), 0);
            }
            Mode::Up if self.full_count >= FULL_ROUNDS => self.start_down(ack.now),
            _ => {}
        }
    }

    /// After 2 to 3 s, or as many rounds as Reno needs to get back what half a window is.
    fn is_time_to_probe(&self, cwnd: u64, ack: &AckInfo) -> bool {
        let rounds = self.inflight(UNIT, ack.bytes).min(cwnd).min(RENO_ROUNDS);
        ack.now > self.cycle_at + self.probe_wait || self.rounds_since_probe >= rounds
    }

    /// `BBRUpdateMinRTT` and `BBRCheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, round: bool, cwnd: u64, ack: &AckInfo) {
        let expired = ack.now > self.probe_rtt_min_at + INTERVAL && self.probe_rtt_min != Ps::MAX;
        if ack.round_trip < self.probe_rtt_min || expired {
            (self.probe_rtt_min, self.probe_rtt_min_at) = (ack.round_trip, ack.now);
        }
        if self.probe_rtt_min < self.min_rtt || ack.now > self.min_rtt_at + MEMORY {
            (self.min_rtt, self.min_rtt_at) = (self.probe_rtt_min, self.probe_rtt_min_at);
        }
        if expired && !self.idle && self.mode != Mode::ProbeRtt {
            (self.mode, self.phase, self.probe_rtt_done) = (Mode::ProbeRtt, Phase::Stopping, None);
            self.prior_cwnd = cwnd;
            self.start_round();
        }
        self.idle &= ack.packets == 0;
        if self.mode != Mode::ProbeRtt {
            return;
        }
        self.rate.limit(ack.under_way);
        let Some(done) = self.probe_rtt_done else {
            if u64::from(ack.under_way) <= self.probe_rtt_cwnd(ack.bytes) {
                (self.probe_rtt_done, self.probe_rtt_round) = (Some(ack.now + DURATION), false);
                self.start_round();
            }
            return;
        };
        self.probe_rtt_round |= round;
        if self.probe_rtt_round && ack.now > done {
            self.probe_rtt_min_at = ack.now;
            self.reset_lower_bounds();
            if self.full_reached {
                self.start_down(ack.now);
                self.mode = Mode::Cruise;
            } else {
                self.mode = Mode::Startup;
            }
        }
    }
}
