// SPDX-License-Identifier: GPL-2.0-or-later
//! BBR, version 3 (draft-ietf-ccwg-bbr): version 1's model of the path, with limits of what may be
//! under way, by losses and marks.
//!
//! Losses are judged when a packet arrives, by what was lost since it left, and not one by one.
//! There is no allowance for aggregated ACKs. Marks count as in Linux's BBRv3, whose constants
//! these are; the draft has none. Rates are in bit/s; gains have eight fractional bits.

mod cycle;

use super::delivery_rate::{DeliveryRate, Sample};
use super::traits::{AckInfo, CongestionLaw, Echo, LawState, SentInfo, Window, ONE};
use crate::core::time::{Ps, MS, S};

/// Section 2: gains for pace and window by state.
const UNIT: u64 = 256;
const STARTUP: (u64, u64) = (709, 2 * UNIT);
const DRAIN: (u64, u64) = (UNIT / 2, 2 * UNIT);
const DOWN: (u64, u64) = (230, 2 * UNIT);
const CRUISE: (u64, u64) = (UNIT, 2 * UNIT);
const UP: (u64, u64) = (320, 576);
const PROBE_RTT: (u64, u64) = (UNIT, UNIT / 2);
/// `BBRLossThresh` and `BBRBeta` in per cent, `BBRHeadroom` likewise; pacing margin of 1 %.
const LOSS_THRESH: u64 = 2;
const BETA: u64 = 70;
const HEADROOM: u64 = 15;
const MARGIN: u64 = 99;
/// `BBRMinPipeCwnd`, `BBRStartupFullLossCnt`, and rounds without a growth of a quarter.
const MIN_PIPE: u64 = 4;
const FULL_LOSS: u64 = 6;
const FULL_ROUNDS: u32 = 3;
/// `MinRTTFilterLen`, `ProbeRTTInterval`, `ProbeRTTDuration`.
const MEMORY: Ps = 10 * S;
const INTERVAL: Ps = 5 * S;
const DURATION: Ps = 200 * MS;
/// Rounds between probes are at most these, as many as Reno needs to fill the path.
const RENO_ROUNDS: u64 = 63;
/// Marks, as in Linux: g of alpha is 1/16, a round cuts by a third of alpha, and more than half
/// marked is too much.
const SHIFT: u32 = 4;
const ECN_FACTOR: u64 = 3;
const NONE: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// `BBR.ack_phase`: what ACKs that come now answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bbr3;

impl CongestionLaw for Bbr3 {
    type State = Box<Bbr3State>;
    const NAME: &str = "bbr3";
    const ECHO: Echo = Echo::Exactly;
    const ECN_CAPABLE: bool = true;
    const IS_SCALABLE: bool = true;
    const SEES_EVERY_ACK: bool = true;

    fn start(self, window: &mut Window, _line: u64) -> Box<Bbr3State> {
        Box::new(Bbr3State::new(window.bounds.most))
    }
}

/// Names are the draft's, without `BBR.`.
#[derive(Debug, Clone)]
// The draft's own.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Bbr3State {
    rate: DeliveryRate,
    mode: Mode,
    phase: Phase,
    /// Of this cycle and the last.
    max_bw: [u64; 2],
    bw_lo: u64,
    inflight_lo: u64,
    inflight_hi: u64,
    bw_latest: u64,
    inflight_latest: u64,
    /// A round ends when what was delivered at its start is.
    round_end: u64,
    loss_round_end: u64,
    /// Lost and delivered, marked when the round of losses began; what had been lost before this
    /// ACK.
    lost_before: u64,
    round_lost: u64,
    round_delivered: u64,
    round_marked: u64,
    loss_in_round: bool,
    /// Share of marks, with 20 fractional bits.
    alpha: u64,
    full_bw: u64,
    full_count: u32,
    full_reached: bool,
    /// `is_cwnd_limited`, in this round.
    window_limits: bool,
    probes: bool,
    rounds_since_probe: u64,
    probe_wait: Ps,
    cycle_at: Ps,
    up_rounds: u32,
    up_acks: u64,
    up_count: u64,
    min_rtt: Ps,
    min_rtt_at: Ps,
    probe_rtt_min: Ps,
    probe_rtt_min_at: Ps,
    probe_rtt_done: Option<Ps>,
    probe_rtt_round: bool,
    /// The window before `ProbeRTT` or a timeout, restored after it; 0: none.
    prior_cwnd: u64,
    timed_out: bool,
    idle: bool,
}

impl LawState for Bbr3State {
    fn on_send(&mut self, window: &mut Window, sent: &SentInfo) {
        self.window_limits |= sent.under_way >= window.cwnd / ONE;
        self.rate.on_send(sent);
    }

    fn on_every_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        let ack = &AckInfo { round_trip: ack.round_trip.max(1), ..*ack };
        let sample = self.rate.on_ack(ack, self.min_rtt).unwrap_or_default();
        let has = sample.delivered > 0;
        let cwnd = u64::from(window.cwnd / ONE);
        let round = has && sample.before >= self.round_end;
        if round {
            self.start_round();
            self.rounds_since_probe += 1;
        }
        self.update_signals(&sample, has, cwnd);
        if round {
            self.check_full(&sample);
        }
        if self.mode == Mode::Startup && self.full_reached {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && u64::from(ack.under_way) <= self.inflight(UNIT, ack.bytes) {
            self.start_down(ack.now);
        }
        if self.full_reached && has {
            self.adapt_upper_bounds(&sample, round, cwnd, ack);
            self.step(round, cwnd, ack);
        }
        self.window_limits &= !round;
        self.check_probe_rtt(round, cwnd, ack);
        window.cwnd = self.cwnd(cwnd, window, ack) as u32 * ONE;
        window.pace = self.pace(window, ack.bytes);
    }

    fn on_loss(&mut self, _window: &mut Window, _now: Ps) {}

    fn on_timeout(&mut self, window: &mut Window, _now: Ps) {
        self.prior_cwnd = self.prior_cwnd.max(u64::from(window.cwnd / ONE));
        self.timed_out = true;
        window.cwnd = ONE;
    }

    /// Sets the pace of the first window.
    fn on_connected(&mut self, window: &mut Window, now: Ps, round_trip: Ps, bytes: u16) {
        (self.min_rtt, self.min_rtt_at) = (round_trip.max(1), now);
        (self.probe_rtt_min, self.probe_rtt_min_at) = (self.min_rtt, now);
        window.pace = self.pace(window, bytes);
    }

    fn on_idle(&mut self, _window: &mut Window, _now: Ps, _idle: Ps, _long: bool) {
        self.idle = true;
    }
}

impl Bbr3State {
    /// `most`: packets of the largest window.
    fn new(most: u32) -> Self {
        Bbr3State {
            rate: DeliveryRate::new(most),
            mode: Mode::Startup,
            phase: Phase::Init,
            max_bw: [0; 2],
            bw_lo: NONE,
            inflight_lo: NONE,
            inflight_hi: NONE,
            bw_latest: 0,
            inflight_latest: 0,
            round_end: 0,
            loss_round_end: 0,
            lost_before: 0,
            round_lost: 0,
            round_delivered: 0,
            round_marked: 0,
            loss_in_round: false,
            alpha: 0,
            full_bw: 0,
            full_count: 0,
            full_reached: false,
            window_limits: false,
            probes: false,
            rounds_since_probe: 0,
            probe_wait: 0,
            cycle_at: 0,
            up_rounds: 0,
            up_acks: 0,
            up_count: NONE,
            min_rtt: Ps::MAX,
            min_rtt_at: 0,
            probe_rtt_min: Ps::MAX,
            probe_rtt_min_at: 0,
            probe_rtt_done: None,
            probe_rtt_round: false,
            prior_cwnd: 0,
            timed_out: false,
            idle: false,
        }
    }

    fn start_round(&mut self) {
        self.round_end = self.rate.delivered;
    }

    fn max_bw(&self) -> u64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// Packets that the path holds, times `gain`, at the greatest rate.
    fn inflight(&self, gain: u64, bytes: u16) -> u64 {
        if self.min_rtt == Ps::MAX {
            return 1 << 20;
        }
        let rate = self.max_bw().min(self.bw_lo);
        let bits = u128::from(rate) * u128::from(self.min_rtt) * u128::from(gain);
        let held = bits.div_ceil(u128::from(UNIT) * u128::from(S) * 8 * u128::from(bytes));
        held.min(1 << 20) as u64
    }

    fn is_probing(&self) -> bool {
        matches!(self.mode, Mode::Startup | Mode::Refill | Mode::Up)
    }

    /// `BBRUpdateLatestDeliverySignals`, `BBRUpdateCongestionSignals` and
    /// `BBRAdvanceLatestDeliverySignals`.
    fn update_signals(&mut self, sample: &Sample, has: bool, cwnd: u64) {
        self.loss_in_round |= self.rate.lost > self.lost_before;
        self.lost_before = self.rate.lost;
        if !has {
            return;
        }
        self.bw_latest = self.bw_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if !sample.limited || sample.rate >= self.max_bw() {
            self.max_bw[0] = self.max_bw[0].max(sample.rate);
        }
        if sample.before < self.loss_round_end {
            return;
        }
        self.loss_round_end = self.rate.delivered;
        let delivered = self.rate.delivered - self.round_delivered;
        let (lost, marked) =
            (self.rate.lost - self.round_lost, self.rate.marked - self.round_marked);
        let share = (marked << 20) / delivered.max(1);
        self.alpha = self.alpha - (self.alpha >> SHIFT) + (share >> SHIFT);
        if self.mode == Mode::Startup
            && lost >= FULL_LOSS
            && 100 * lost > LOSS_THRESH * (lost + delivered)
        {
            self.full_reached = true;
            self.inflight_hi = self.inflight_latest.max(MIN_PIPE);
        }
        self.adapt_lower_bounds(marked > 0, cwnd);
        (self.round_lost, self.round_delivered, self.round_marked) =
            (self.rate.lost, self.rate.delivered, self.rate.marked);
        self.loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (sample.rate, sample.delivered);
    }

    /// `BBRAdaptLowerBoundsFromCongestion`.
    fn adapt_lower_bounds(&mut self, marked: bool, cwnd: u64) {
        if self.is_probing() || !(self.loss_in_round || marked) {
            return;
        }
        if self.inflight_lo == NONE {
            self.inflight_lo = cwnd;
        }
        if marked {
            let less = (self.inflight_lo * self.alpha / ECN_FACTOR) >> 20;
            self.inflight_lo -= less;
        }
        if self.loss_in_round {
            if self.bw_lo == NONE {
                self.bw_lo = self.max_bw();
            }
            self.bw_lo = self.bw_latest.max(self.bw_lo / 100 * BETA);
            self.inflight_lo = self.inflight_latest.max(self.inflight_lo * BETA / 100);
        }
    }

    /// `BBRCheckFullBWReached`, once a round.
    fn check_full(&mut self, sample: &Sample) {
        if sample.limited || !matches!(self.mode, Mode::Startup | Mode::Up) {
            return;
        }
        if sample.rate >= self.full_bw + self.full_bw / 4 {
            (self.full_bw, self.full_count) = (sample.rate, 0);
            return;
        }
        self.full_count += 1;
        self.full_reached |= self.full_count >= FULL_ROUNDS;
    }

    /// `BBRInflightWithHeadroom`.
    fn with_headroom(&self) -> u64 {
        if self.inflight_hi == NONE {
            return NONE;
        }
        let headroom = (self.inflight_hi * HEADROOM / 100).max(1);
        self.inflight_hi.saturating_sub(headroom).max(MIN_PIPE)
    }

    fn probe_rtt_cwnd(&self, bytes: u16) -> u64 {
        self.inflight(PROBE_RTT.1, bytes).max(MIN_PIPE)
    }

    fn gains(&self) -> (u64, u64) {
        match self.mode {
            Mode::Startup => STARTUP,
            Mode::Drain => DRAIN,
            Mode::Down => DOWN,
            Mode::Cruise | Mode::Refill => CRUISE,
            Mode::Up => UP,
            Mode::ProbeRtt => PROBE_RTT,
        }
    }

    /// `BBRSetCwnd`.
    fn cwnd(&mut self, cwnd: u64, window: &Window, ack: &AckInfo) -> u64 {
        let max_inflight = self.inflight(self.gains().1, ack.bytes) + 3;
        let probes_rtt = self.mode == Mode::ProbeRtt;
        let prior = if probes_rtt && !self.timed_out {
            0
        } else {
            self.timed_out = false;
            std::mem::take(&mut self.prior_cwnd)
        };
        let (had, newly) = (cwnd.max(prior), u64::from(ack.packets));
        let next = if self.full_reached {
            (had + newly).min(max_inflight)
        } else if had < max_inflight || self.rate.delivered < u64::from(window.bounds.initial) {
            had + newly
        } else {
            had
        };
        let cap = match self.mode {
            Mode::Startup | Mode::Drain => NONE,
            Mode::Down | Mode::Refill | Mode::Up => self.inflight_hi,
            Mode::Cruise => self.with_headroom(),
            Mode::ProbeRtt => self.with_headroom().min(self.probe_rtt_cwnd(ack.bytes)),
        };
        let cap = cap.min(self.inflight_lo).max(MIN_PIPE);
        next.max(MIN_PIPE).min(cap).min(window.bounds.most.into())
    }

    /// Until the pipe is full, or nothing is known of its rate, not slower than before, nor than the initial window a round trip.
    fn pace(&self, window: &Window, bytes: u16) -> u64 {
        let rate = u128::from(self.max_bw().min(self.bw_lo));
        let pace = rate * u128::from(self.gains().0 * MARGIN) / u128::from(UNIT * 100);
        if self.full_reached && rate > 0 {
            return (pace as u64).max(1);
        }
        let bits = u128::from(window.bounds.initial) * 8 * u128::from(bytes) * u128::from(S);
        let first = bits / u128::from(self.min_rtt) * u128::from(STARTUP.0) / u128::from(UNIT);
        u64::try_from(pace.max(first)).unwrap_or(u64::MAX).max(window.pace)
    }
}
