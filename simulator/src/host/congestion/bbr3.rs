// SPDX-License-Identifier: GPL-2.0-or-later
//! BBR, version 3 (draft-ietf-ccwg-bbr-06): version 1's model of the path, with limits of what may
//! be under way, by losses and marks.
//!
//! The draft leaves the reaction to marks open; it is that of Linux's BBRv3 here, as are what
//! counts as several losses of a round, and the window at a timeout. Hosts send single packets, so
//! that no allowance for offloading is due. No loss turns out to be none (receivers report no
//! duplicates), so that nothing is undone. Rates are in bit/s; gains have eight fractional bits.

mod cycle;
mod model;

use super::delivery_rate::DeliveryRate;
use super::traits::{AckInfo, CongestionLaw, Echo, LawState, SentInfo, Window, ONE};
use crate::core::time::{Ps, MS, S};

/// Gains for pace and window by state (section 5.6.1).
const UNIT: u64 = 256;
const STARTUP: (u64, u64) = (710, 2 * UNIT);
const DRAIN: (u64, u64) = (UNIT / 2, 2 * UNIT);
const DOWN: (u64, u64) = (230, 2 * UNIT);
const CRUISE: (u64, u64) = (UNIT, 2 * UNIT);
const UP: (u64, u64) = (320, 576);
const PROBE_RTT: (u64, u64) = (UNIT, UNIT / 2);
/// `LossThresh`, `Beta`, `Headroom` in per cent; `PacingMarginPercent` is 1.
const LOSS_THRESH: u64 = 2;
const BETA: u64 = 70;
const HEADROOM: u64 = 15;
const MARGIN: u64 = 99;
/// `MinPipeCwnd`, `BBRStartupFullLossCnt`, rounds without a growth of a quarter, and the rounds
/// after which Drain ends anyway.
const MIN_PIPE: u64 = 4;
const FULL_LOSSES: u32 = 6;
const FULL_ROUNDS: u32 = 3;
const DRAIN_ROUNDS: u64 = 3;
/// `MinRTTFilterLen`, `ProbeRTTInterval`, `ProbeRTTDuration`.
const MEMORY: Ps = 10 * S;
const INTERVAL: Ps = 5 * S;
const DURATION: Ps = 200 * MS;
/// Rounds between probes are at most these, as many as Reno needs to fill the path.
const RENO_ROUNDS: u64 = 63;
/// Time stamps make round trips longer by so much at most.
const STAMP: Ps = 8_192;
const NONE: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// `ack_phase`: what ACKs that come now answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
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
    const IS_SCALABLE: bool = true;
    const SEES_EVERY_ACK: bool = true;

    #[inline]
    fn ecn_capable(&self) -> bool {
        true
    }

    fn start(self, _window: &mut Window, _line: u64) -> Box<Bbr3State> {
        Box::new(Bbr3State {
            bw_lo: NONE,
            inflight_lo: NONE,
            inflight_hi: NONE,
            up_count: NONE,
            loss_round_end: 1,
            alpha: model::ALL,
            min_rtt: Ps::MAX,
            probe_rtt_min: Ps::MAX,
            ..Bbr3State::default()
        })
    }
}

/// Names are the draft's; `lo` and `hi` are Linux's for its `shortterm` and `longterm`.
#[derive(Debug, Clone, Default)]
// The draft's own.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Bbr3State {
    rate: DeliveryRate,
    mode: Mode,
    phase: Phase,
    /// Bytes of a full packet.
    bytes: u16,
    /// Of this cycle and the last.
    max_bw: [u64; 2],
    bw_lo: u64,
    inflight_lo: u64,
    inflight_hi: u64,
    bw_latest: u64,
    inflight_latest: u64,
    /// A round ends when what was delivered at its start is.
    round: u64,
    round_end: u64,
    loss_round_end: u64,
    drain_round: u64,
    loss_in_round: bool,
    loss_in_cycle: bool,
    /// ACKs of this round before which something was lost.
    losses: u32,
    lost_before: u64,
    /// Marks count (`ecn_eligible`); there were some in this round, in the last, in this cycle.
    heeds_marks: bool,
    marks_in_round: bool,
    marks_before: bool,
    marks_in_cycle: bool,
    /// Share of marks, with 20 fractional bits; what had been delivered and marked at its update.
    alpha: u64,
    alpha_delivered: u64,
    alpha_marked: u64,
    marked_rounds: u32,
    /// `extra_acked`: of these rounds and those before.
    extra: [u64; 2],
    extra_rounds: u32,
    extra_delivered: u64,
    extra_at: Ps,
    full_bw: u64,
    full_count: u32,
    full_now: bool,
    full_reached: bool,
    /// `is_cwnd_limited`, in this round.
    window_limits: bool,
    /// `is_bw_probe_sample`, `prev_probe_too_high`, `prev_probe_precautionary`.
    probes: bool,
    too_high_before: bool,
    precaution: bool,
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
    /// The window before `ProbeRTT` or a timeout, restored after it.
    prior_cwnd: u64,
    restores: bool,
    /// After a timeout, until so many packets are delivered.
    recover: Option<u64>,
    idle: bool,
}

impl LawState for Bbr3State {
    fn on_send(&mut self, window: &mut Window, sent: &SentInfo) {
        self.window_limits |= sent.under_way >= window.cwnd / ONE;
        self.rate.on_send(sent);
    }

    fn on_every_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        let ack = &AckInfo { round_trip: ack.round_trip.max(1), ..*ack };
        self.bytes = ack.bytes;
        let least = self.min_rtt.min(ack.round_trip);
        let sample = self.rate.on_ack(ack).filter(|sample| sample.took + STAMP >= least);
        let cwnd = u64::from(window.cwnd / ONE);
        let mut round = false;
        if let Some(sample) = &sample {
            round = self.update_round(sample);
            let loss_round = self.update_signals(sample, round, cwnd, ack);
            self.update_aggregation(round, cwnd, ack);
            self.check_full(sample, round);
            self.check_startup(sample, loss_round, ack);
            if self.full_reached && !self.adapt_upper_bounds(sample, round, cwnd, ack) {
                self.step(sample, round, cwnd, ack);
            }
            if loss_round {
                (self.bw_latest, self.inflight_latest) = (sample.rate, sample.delivered);
            }
            self.loss_in_cycle |= sample.lost > 0;
            self.marks_in_cycle |= sample.marked > 0;
        }
        self.window_limits &= !round;
        self.check_probe_rtt(round, cwnd, ack);
        if self.recover.is_some_and(|end| self.rate.delivered >= end) {
            (self.recover, self.restores) = (None, true);
        }
        window.cwnd = self.cwnd(cwnd, window, ack) as u32 * ONE;
        window.pace = self.pace(window, self.gains().0);
    }

    fn on_lost(&mut self, window: &mut Window, now: Ps, number: u32) {
        self.note_loss();
        let sample = self.rate.on_lost(number, now).filter(|_| self.probes);
        if let Some(sample) = sample.filter(Self::is_too_high) {
            // `InflightAtLoss` of a single packet.
            let before = sample.under_way.saturating_sub(1);
            let enough = 100 * (sample.lost - 1) >= LOSS_THRESH * before;
            let under_way = if enough { before } else { sample.under_way };
            self.handle_too_high(under_way, sample.limited, u64::from(window.cwnd / ONE), now);
        }
    }

    fn on_loss(&mut self, _window: &mut Window, _now: Ps) {
        self.note_loss();
    }

    fn on_timeout(&mut self, window: &mut Window, _now: Ps) {
        self.note_loss();
        self.save_cwnd((window.cwnd / ONE).into());
        self.recover = Some(self.rate.distinct);
        self.reset_full(0);
        if !self.is_probing() && self.inflight_lo == NONE {
            self.inflight_lo = self.prior_cwnd;
        }
        window.cwnd = ONE;
    }

    /// Sets the pace of the first window.
    fn on_connected(&mut self, window: &mut Window, now: Ps, round_trip: Ps, bytes: u16) {
        (self.min_rtt, self.min_rtt_at) = (round_trip.max(1), now);
        (self.probe_rtt_min, self.probe_rtt_min_at) = (self.min_rtt, now);
        (self.bytes, self.extra_at) = (bytes, now);
        window.pace = self.pace(window, STARTUP.0);
    }

    /// `HandleRestartFromIdle`.
    fn on_idle(&mut self, window: &mut Window, now: Ps, _idle: Ps, _long: bool) {
        self.rate.restart();
        (self.idle, self.extra_at, self.extra_delivered) = (true, now, 0);
        self.recover = None;
        if self.is_in_cycle() {
            window.pace = self.pace(window, UNIT);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
        if std::mem::take(&mut self.restores) {
            window.cwnd = window.cwnd.max(self.prior_cwnd as u32 * ONE);
        }
    }
}

impl Bbr3State {
    fn is_probing(&self) -> bool {
        matches!(self.mode, Mode::Startup | Mode::Refill | Mode::Up)
    }

    fn is_in_cycle(&self) -> bool {
        !matches!(self.mode, Mode::Startup | Mode::Drain | Mode::ProbeRtt)
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

    /// `SaveCwnd`.
    fn save_cwnd(&mut self, cwnd: u64) {
        let cut = self.recover.is_some() || self.mode == Mode::ProbeRtt;
        self.prior_cwnd = if cut { self.prior_cwnd.max(cwnd) } else { cwnd };
    }

    /// `SetCwnd`, `BoundCwndForProbeRTT` and `BoundCwndForModel`.
    fn cwnd(&mut self, cwnd: u64, window: &Window, ack: &AckInfo) -> u64 {
        let restores = std::mem::take(&mut self.restores);
        let had = if restores { cwnd.max(self.prior_cwnd) } else { cwnd };
        let max_inflight = self.bdp(self.bw(), self.gains().1) + self.extra_acked();
        let (max_inflight, newly) = (self.quantized(max_inflight), u64::from(ack.packets));
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
            Mode::ProbeRtt => self.with_headroom().min(self.probe_rtt_cwnd()),
        };
        let cap = cap.min(self.inflight_lo).max(MIN_PIPE);
        next.max(MIN_PIPE).min(cap).min(window.bounds.most.into())
    }

    /// `SetPacingRateWithGain`: until the pipe is full, not slower than before, nor than the
    /// initial window a round trip.
    fn pace(&self, window: &Window, gain: u64) -> u64 {
        let pace = u128::from(self.bw()) * u128::from(gain * MARGIN) / u128::from(UNIT * 100);
        if self.full_reached {
            return (pace as u64).max(1);
        }
        let bits = u128::from(window.bounds.initial) * 8 * u128::from(self.bytes) * u128::from(S);
        let first = bits / u128::from(self.min_rtt) * u128::from(STARTUP.0) / u128::from(UNIT);
        u64::try_from(pace.max(first)).unwrap_or(u64::MAX).max(window.pace)
    }
}
