// SPDX-License-Identifier: GPL-2.0-or-later
//! The cycle of BBR, version 3: when it probes for more, how far, and when it looks for the least
//! round trip (draft-ietf-ccwg-bbr-06, sections 5.3.3, 5.3.4 and 5.5.10).

use super::{Bbr3State, Mode, Phase, BETA, DURATION, INTERVAL, MEMORY, NONE, RENO_ROUNDS};
use crate::core::rng::mix;
use crate::core::time::{Ps, S};
use crate::host::congestion::delivery_rate::Sample;
use crate::host::congestion::traits::AckInfo;

impl Bbr3State {
    /// `AdaptLongTermModel`; returns whether a phase begins.
    pub(super) fn adapt_upper_bounds(
        &mut self,
        sample: &Sample,
        round: bool,
        cwnd: u64,
        ack: &AckInfo,
    ) -> bool {
        if round && self.phase == Phase::Starting {
            self.phase = Phase::Feedback;
        } else if round && self.phase == Phase::Stopping {
            (self.probes, self.phase) = (false, Phase::Init);
            if self.is_in_cycle() && !sample.limited && self.max_bw[0] > 0 {
                self.max_bw = [0, self.max_bw[0]];
            }
            if self.is_in_cycle() && self.precaution && !self.too_high_before {
                self.start_refill(0);
                return true;
            }
        }
        if Self::is_too_high(sample) || self.has_too_many_marks(sample) {
            if self.probes {
                self.handle_too_high(sample.under_way, sample.limited, cwnd, ack.now);
            }
        } else if self.inflight_hi != NONE {
            self.inflight_hi = self.inflight_hi.max(sample.under_way);
            if self.mode == Mode::Up {
                self.raise_inflight_hi(round, cwnd, ack);
            }
        }
        false
    }

    /// `ProbeInflightLongtermUpward`.
    fn raise_inflight_hi(&mut self, round: bool, cwnd: u64, ack: &AckInfo) {
        if !self.window_limits || cwnd < self.inflight_hi {
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

    /// `HandleInflightTooHigh`.
    pub(super) fn handle_too_high(&mut self, under_way: u64, limited: bool, cwnd: u64, now: Ps) {
        (self.too_high_before, self.probes) = (true, false);
        if !limited {
            self.inflight_hi = under_way.max(self.target(cwnd) * BETA / 100);
        }
        if self.mode == Mode::Up {
            self.start_down(now);
        }
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_slope(&mut self, cwnd: u64) {
        self.up_count = (cwnd >> self.up_rounds).max(1);
        self.up_rounds = (self.up_rounds + 1).min(30);
    }

    pub(super) fn start_down(&mut self, now: Ps) {
        // `ResetCongestionSignals`.
        (self.loss_in_round, self.bw_latest, self.inflight_latest) = (false, 0, 0);
        (self.marks_in_round, self.marks_in_cycle, self.loss_in_cycle) = (false, false, false);
        self.up_count = NONE;
        // `PickProbeWait`: 2 to 3 s, and a round or none.
        let drawn = mix(now ^ self.rate.delivered);
        self.rounds_since_probe = drawn & 1;
        self.probe_wait = 2 * S + (drawn >> 1) % S;
        (self.cycle_at, self.phase, self.mode) = (now, Phase::Stopping, Mode::Down);
        self.start_round();
    }

    fn start_refill(&mut self, up_rounds: u32) {
        self.reset_lower_bounds();
        (self.up_rounds, self.up_acks, self.precaution) = (up_rounds, 0, false);
        (self.phase, self.mode) = (Phase::Refilling, Mode::Refill);
        self.start_round();
    }

    fn start_up(&mut self, sample: &Sample, cwnd: u64, now: Ps) {
        (self.cycle_at, self.phase, self.mode) = (now, Phase::Starting, Mode::Up);
        self.start_round();
        self.reset_full(sample.rate);
        self.raise_slope(cwnd);
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn step(&mut self, sample: &Sample, round: bool, cwnd: u64, ack: &AckInfo) {
        let under_way = u64::from(ack.under_way);
        let goes_down = self.mode == Mode::Up && self.is_time_to_go_down(sample, cwnd, ack);
        match self.mode {
            Mode::Down | Mode::Cruise if self.marks_cease() => {
                // As much more in the first round as half of what was too much.
                self.start_refill((self.inflight_hi / 2).max(1).ilog2().min(30));
            }
            Mode::Down | Mode::Cruise if self.is_time_to_probe(cwnd, ack) => self.start_refill(0),
            Mode::Down if under_way <= self.with_headroom().min(self.max_bdp()) => {
                self.mode = Mode::Cruise;
            }
            Mode::Refill if round => {
                self.probes = true;
                self.start_up(sample, cwnd, ack.now);
            }
            Mode::Up if goes_down => {
                self.too_high_before = false;
                self.start_down(ack.now);
            }
            _ => {}
        }
    }

    /// `IsTimeToGoDown`; what was under way before this ACK counts, as in Linux.
    fn is_time_to_go_down(&mut self, sample: &Sample, cwnd: u64, ack: &AckInfo) -> bool {
        let under_way = u64::from(ack.under_way + ack.packets);
        if self.too_high_before && under_way >= self.inflight_hi {
            self.precaution = true;
            return true;
        }
        if self.window_limits && cwnd >= self.inflight_hi {
            self.reset_full(sample.rate);
            return false;
        }
        self.full_now
    }

    /// Linux: without losses, but with marks that have ceased, it probes again at once.
    fn marks_cease(&self) -> bool {
        let marks = self.marks_in_round || self.marks_before;
        self.heeds_marks && self.marks_in_cycle && !self.loss_in_cycle && !marks
    }

    /// `IsTimeToProbeBW`: after 2 to 3 s, or as many rounds as Reno needs to get back what half a
    /// window is.
    fn is_time_to_probe(&self, cwnd: u64, ack: &AckInfo) -> bool {
        let rounds = self.target(cwnd).min(RENO_ROUNDS);
        ack.now > self.cycle_at + self.probe_wait || self.rounds_since_probe >= rounds
    }

    /// `UpdateMinRTT` and `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, round: bool, cwnd: u64, ack: &AckInfo) {
        let expired = ack.now > self.probe_rtt_min_at + INTERVAL && self.probe_rtt_min != Ps::MAX;
        if ack.round_trip < self.probe_rtt_min || expired {
            (self.probe_rtt_min, self.probe_rtt_min_at) = (ack.round_trip, ack.now);
        }
        if self.probe_rtt_min < self.min_rtt || ack.now > self.min_rtt_at + MEMORY {
            (self.min_rtt, self.min_rtt_at) = (self.probe_rtt_min, self.probe_rtt_min_at);
        }
        if expired && !self.idle && self.mode != Mode::ProbeRtt {
            self.save_cwnd(cwnd);
            (self.mode, self.phase, self.probe_rtt_done) = (Mode::ProbeRtt, Phase::Stopping, None);
            self.start_round();
        }
        self.idle &= ack.packets == 0;
        if self.mode != Mode::ProbeRtt {
            return;
        }
        self.rate.limit(ack.under_way);
        if self.probe_rtt_done.is_some() {
            self.probe_rtt_round |= round;
            if self.probe_rtt_round {
                self.check_probe_rtt_done(ack.now);
            }
        } else if u64::from(ack.under_way) <= self.probe_rtt_cwnd() {
            (self.probe_rtt_done, self.probe_rtt_round) = (Some(ack.now + DURATION), false);
            self.start_round();
        }
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT`.
    pub(super) fn check_probe_rtt_done(&mut self, now: Ps) {
        if self.probe_rtt_done.is_none_or(|done| now <= done) {
            return;
        }
        (self.probe_rtt_min_at, self.restores) = (now, true);
        self.reset_lower_bounds();
        if self.full_reached {
            self.start_down(now);
            self.mode = Mode::Cruise;
        } else {
            self.mode = Mode::Startup;
        }
    }
}
