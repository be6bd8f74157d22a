// SPDX-License-Identifier: GPL-2.0-or-later
//! The model of the path: rates, what it holds, and what losses and marks say of it
//! (draft-ietf-ccwg-bbr-06, sections 5.3.1 and 5.5).

use super::{
    Bbr3State, Mode, BETA, DRAIN_ROUNDS, FULL_LOSSES, FULL_ROUNDS, HEADROOM, LOSS_THRESH, MIN_PIPE,
    NONE, PROBE_RTT, UNIT,
};
use crate::core::time::{Ps, MS, S};
use crate::host::congestion::delivery_rate::Sample;
use crate::host::congestion::traits::AckInfo;

/// Marks, as in Linux: they count if the least round trip is at most 5 ms; g of alpha is 1/16; a
/// round cuts by a third of alpha; more than half marked is too much, in Startup twice in a row.
const MARKS_BELOW: Ps = 5 * MS;
const SHIFT: u32 = 4;
const CUT: u64 = 3;
const MARKED_ROUNDS: u32 = 2;
/// Alpha if every packet is marked.
pub(super) const ALL: u64 = 1 << 20;
/// The greatest extra ACKs of 5 to 10 rounds count, as in Linux, or of one in Startup; at most so
/// much time's.
const EXTRA_ROUNDS: u32 = 5;
const EXTRA_TIME: Ps = 100 * MS;

impl Bbr3State {
    fn max_bw(&self) -> u64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// `BoundBWForModel`.
    pub(super) fn bw(&self) -> u64 {
        self.max_bw().min(self.bw_lo)
    }

    /// `BDPMultiple`: packets that the path holds at this rate, times `gain`.
    pub(super) fn bdp(&self, rate: u64, gain: u64) -> u64 {
        let bits = u128::from(rate) * u128::from(self.min_rtt) * u128::from(gain);
        let packet = u128::from(UNIT) * u128::from(S) * 8 * u128::from(self.bytes);
        bits.div_ceil(packet).min(1 << 20) as u64
    }

    /// `QuantizationBudget`.
    pub(super) fn quantized(&self, packets: u64) -> u64 {
        packets.max(MIN_PIPE) + if self.mode == Mode::Up { 2 } else { 0 }
    }

    /// `Inflight(1.0)` at the greatest rate.
    pub(super) fn max_bdp(&self) -> u64 {
        self.quantized(self.bdp(self.max_bw(), UNIT))
    }

    /// `TargetInflight`.
    pub(super) fn target(&self, cwnd: u64) -> u64 {
        self.quantized(self.bdp(self.bw(), UNIT)).min(cwnd)
    }

    /// `InflightWithHeadroom`.
    pub(super) fn with_headroom(&self) -> u64 {
        if self.inflight_hi == NONE {
            return NONE;
        }
        let headroom = (self.inflight_hi * HEADROOM / 100).max(1);
        self.inflight_hi.saturating_sub(headroom).max(MIN_PIPE)
    }

    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp(self.bw(), PROBE_RTT.1).max(MIN_PIPE)
    }

    pub(super) fn start_round(&mut self) {
        self.round_end = self.rate.delivered;
    }

    /// `UpdateRound`.
    pub(super) fn update_round(&mut self, sample: &Sample) -> bool {
        let begins = sample.before >= self.round_end;
        if begins {
            self.start_round();
            self.round += 1;
            self.rounds_since_probe += 1;
        }
        begins
    }

    /// `IsInflightTooHigh`; marks as in Linux.
    pub(super) fn is_too_high(sample: &Sample) -> bool {
        100 * sample.lost > LOSS_THRESH * sample.under_way
    }

    pub(super) fn has_too_many_marks(&self, sample: &Sample) -> bool {
        self.heeds_marks && 2 * sample.marked > sample.delivered
    }

    /// `NoteLoss`: the round of losses begins with the first.
    pub(super) fn note_loss(&mut self) {
        if !self.loss_in_round {
            self.loss_round_end = self.rate.delivered;
        }
        (self.loss_in_round, self.loss_in_cycle) = (true, true);
    }

    /// `UpdateLatestDeliverySignals` and `UpdateCongestionSignals`; returns whether a round of
    /// losses ends.
    pub(super) fn update_signals(
        &mut self,
        sample: &Sample,
        round: bool,
        cwnd: u64,
        ack: &AckInfo,
    ) -> bool {
        if round {
            self.update_alpha();
        }
        self.marks_in_round |= self.heeds_marks && ack.marked;
        self.bw_latest = self.bw_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if !sample.limited || sample.rate >= self.max_bw() {
            self.max_bw[0] = self.max_bw[0].max(sample.rate);
        }
        if sample.before < self.loss_round_end {
            return false;
        }
        self.loss_round_end = self.rate.delivered;
        self.adapt_lower_bounds(cwnd);
        self.marks_before = self.marks_in_round;
        (self.loss_in_round, self.marks_in_round) = (false, false);
        true
    }

    /// Linux's `bbr_update_ecn_alpha`, once a round.
    fn update_alpha(&mut self) {
        self.heeds_marks |= self.min_rtt <= MARKS_BELOW;
        let delivered = self.rate.delivered - self.alpha_delivered;
        if !self.heeds_marks || delivered == 0 {
            return;
        }
        let marked = self.rate.marked - self.alpha_marked;
        self.alpha = self.alpha - (self.alpha >> SHIFT) + ((marked * ALL / delivered) >> SHIFT);
        (self.alpha_delivered, self.alpha_marked) = (self.rate.delivered, self.rate.marked);
        if self.full_reached {
            return;
        }
        self.marked_rounds = if 2 * marked >= delivered { self.marked_rounds + 1 } else { 0 };
        if self.marked_rounds >= MARKED_ROUNDS {
            self.leave_startup();
        }
    }

    /// The queue is too long in Startup.
    fn leave_startup(&mut self) {
        self.full_reached = true;
        self.inflight_hi = self.max_bdp().max(self.inflight_latest);
    }

    /// `AdaptLowerBoundsFromCongestion`; for marks as in Linux, the lower of both.
    fn adapt_lower_bounds(&mut self, cwnd: u64) {
        if self.is_probing() || !(self.loss_in_round || self.marks_in_round) {
            return;
        }
        if self.inflight_lo == NONE {
            self.inflight_lo = cwnd;
        }
        let mut by_marks = NONE;
        if self.marks_in_round {
            by_marks = self.inflight_lo - self.inflight_lo * self.alpha / CUT / ALL;
        }
        if self.loss_in_round {
            if self.bw_lo == NONE {
                self.bw_lo = self.max_bw();
            }
            self.bw_lo = self.bw_latest.max(self.bw_lo / 100 * BETA).max(1);
            self.inflight_lo = self.inflight_latest.max(self.inflight_lo * BETA / 100);
        }
        self.inflight_lo = self.inflight_lo.min(by_marks);
    }

    pub(super) fn reset_lower_bounds(&mut self) {
        (self.bw_lo, self.inflight_lo) = (NONE, NONE);
    }

    pub(super) fn extra_acked(&self) -> u64 {
        let extra = self.extra[0].max(self.extra[1]);
        extra.min(self.expected(EXTRA_TIME))
    }

    /// Packets in this time at the model's rate.
    fn expected(&self, time: Ps) -> u64 {
        let bits = u128::from(self.bw()) * u128::from(time);
        (bits / (u128::from(S) * 8 * u128::from(self.bytes))) as u64
    }

    /// `UpdateACKAggregation`.
    pub(super) fn update_aggregation(&mut self, round: bool, cwnd: u64, ack: &AckInfo) {
        if round {
            self.extra_rounds += 1;
            if self.extra_rounds >= if self.full_reached { EXTRA_ROUNDS } else { 1 } {
                (self.extra_rounds, self.extra) = (0, [0, self.extra[0]]);
            }
        }
        let mut expected = self.expected(ack.now - self.extra_at);
        if self.extra_delivered <= expected {
            (self.extra_delivered, self.extra_at, expected) = (0, ack.now, 0);
        }
        self.extra_delivered += u64::from(ack.packets);
        self.extra[0] = self.extra[0].max((self.extra_delivered - expected).min(cwnd));
    }

    pub(super) fn reset_full(&mut self, rate: u64) {
        (self.full_bw, self.full_count, self.full_now) = (rate, 0, false);
    }

    /// `CheckFullBWReached`.
    pub(super) fn check_full(&mut self, sample: &Sample, round: bool) {
        if self.full_now || !round || sample.limited {
            return;
        }
        if sample.rate >= self.full_bw + self.full_bw / 4 {
            self.reset_full(sample.rate);
            return;
        }
        self.full_count += 1;
        self.full_now = self.full_count >= FULL_ROUNDS;
        self.full_reached |= self.full_now;
    }

    /// `CheckStartupDone` and `CheckDrainDone`.
    pub(super) fn check_startup(&mut self, sample: &Sample, loss_round: bool, ack: &AckInfo) {
        self.losses += u32::from(self.rate.lost > self.lost_before);
        self.lost_before = self.rate.lost;
        let many = loss_round && self.losses >= FULL_LOSSES && self.recover.is_none();
        if many && !self.full_reached && Self::is_too_high(sample) {
            self.leave_startup();
        }
        if loss_round {
            self.losses = 0;
        }
        if self.mode == Mode::Startup && self.full_reached {
            (self.mode, self.drain_round) = (Mode::Drain, self.round);
        }
        let drained = u64::from(ack.under_way) <= self.target(NONE)
            || self.round > self.drain_round + DRAIN_ROUNDS;
        if self.mode == Mode::Drain && drained {
            self.start_down(ack.now);
        }
    }
}
