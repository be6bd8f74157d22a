// SPDX-License-Identifier: GPL-2.0-or-later
//! HPCC (Li et al., SIGCOMM 2019, Algorithm 1): the window follows the most loaded port of the
//! path, by what ports report, so that this port is used to a share eta of its rate.
//!
//! The window is at most what the host's link sends in a base round trip, and every packet is paced
//! at a window a round trip. Losses and timeouts do not change it, as published. Loads have 20
//! fractional bits, windows are packets with 16.

use serde::{Deserialize, Serialize};

use super::traits::{AckInfo, CongestionLaw, LawState, SentInfo, Window, ONE};
use crate::core::time::{Ps, S};
use crate::core::units::{Duration, Fraction, In, Octets};
use crate::net::telemetry::{PathMeter, PortRecord};

/// Settings; the defaults are the paper's (section 5.1), with its base round trip. The transport's
/// initial window should be what a base round trip holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hpcc {
    /// T: the longest round trip without queues.
    #[serde(with = "In::<Duration>")]
    pub base: Ps,
    /// Eta: the share of a port's rate that is used.
    #[serde(with = "In::<Fraction>")]
    pub utilisation: u32,
    /// `maxStage`: round trips of additive increase between two of multiplicative increase.
    pub stages: u32,
    /// `W_AI`: the additive increase in bytes.
    #[serde(with = "In::<Octets>")]
    pub increase: u32,
}

impl Default for Hpcc {
    fn default() -> Self {
        Hpcc { base: 13_000_000, utilisation: 950_000, stages: 5, increase: 80 }
    }
}

impl CongestionLaw for Hpcc {
    type State = Box<HpccState>;
    const NAME: &str = "hpcc";
    const SEES_EVERY_ACK: bool = true;
    const READS_TELEMETRY: bool = true;

    fn problem(&self) -> Option<String> {
        if self.base == 0 || self.base > S {
            Some("HPCC's base round trip must be above 0 and at most 1 s".to_owned())
        } else if self.utilisation == 0 || self.utilisation > MILLION {
            Some("HPCC's utilisation must be above 0 and at most 1".to_owned())
        } else {
            (self.increase > LARGEST)
                .then(|| format!("HPCC's increase must be at most {LARGEST} bytes"))
        }
    }

    fn start(self, _window: &mut Window, line: u64) -> Box<HpccState> {
        Box::new(HpccState::new(self, line))
    }
}

const MILLION: u32 = 1_000_000;
/// A load of 1.
const FULL: u64 = 1 << 20;
/// The least window: 1/1000 of a packet.
const LEAST: u64 = ONE as u64 / 1_000;
/// The largest `W_AI`, in bytes.
const LARGEST: u32 = 1_000_000;

/// Fixed-point packets that a link of `rate` bit/s sends in `time`, at most 32,767.
pub(super) fn packets_in(time: Ps, rate: u64, bytes: u16) -> u64 {
    let bits = u128::from(rate) * u128::from(time) * u128::from(ONE);
    (bits / (u128::from(S) * 8 * u128::from(bytes))).min(u128::from(ONE) << 15) as u64
}

/// Sets the window, rounded up because the pace is exact, and its pace of a window in `time`.
pub(super) fn set_paced(window: &mut Window, cwnd: u64, time: Ps, bytes: u16) {
    let whole = cwnd.div_ceil(ONE.into()).clamp(1, window.bounds.most.into());
    window.cwnd = whole as u32 * ONE;
    let bits = u128::from(cwnd) * 8 * u128::from(bytes) * u128::from(S);
    window.pace = ((bits / u128::from(ONE) / u128::from(time)) as u64).max(1);
}

#[derive(Debug, Clone)]
pub(crate) struct HpccState {
    of: Hpcc,
    line: u64,
    /// U: the load of the most loaded port.
    load: PathMeter,
    /// `W_c`; 0: that of the line rate.
    reference: u64,
    stage: u32,
    /// One above the last packet sent, and `lastUpdateSeq`: the reference follows the window when a
    /// packet above it is acknowledged.
    next: u32,
    update_at: Option<u32>,
}

impl LawState for HpccState {
    fn on_send(&mut self, _window: &mut Window, sent: &SentInfo) {
        self.next = self.next.max(sent.number + 1);
    }

    fn on_telemetry(&mut self, records: &[PortRecord]) {
        let base = self.of.base;
        self.load.update(records, base, |old, new| port_load(old, new, base));
    }

    fn on_every_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        let Some(number) = ack.number else { return };
        if self.update_at.is_none() {
            self.update_at = Some(self.next);
        }
        let Some(load) = self.load.take() else { return };
        let update = self.update_at.is_none_or(|at| number >= at);
        let cwnd = self.compute_wind(load.max(1), update, ack.bytes);
        if update {
            self.update_at = Some(self.next);
        }
        set_paced(window, cwnd, self.of.base, ack.bytes);
    }

    fn on_loss(&mut self, _window: &mut Window, _now: Ps) {}

    fn on_timeout(&mut self, _window: &mut Window, _now: Ps) {}

    /// Packets are numbered anew. After a long time the flow starts at the line's rate, as a new
    /// one does.
    fn on_idle(&mut self, window: &mut Window, _now: Ps, _idle: Ps, long: bool) {
        if long {
            *self = HpccState::new(self.of, self.line);
            (window.cwnd, window.pace) = (window.bounds.initial * ONE, 0);
        } else {
            (self.next, self.update_at) = (0, None);
        }
    }
}

/// What a port's queue and rate take of its capacity in a base round trip (Equation 2).
fn port_load(old: &PortRecord, new: &PortRecord, base: Ps) -> u64 {
    let full = u128::from(FULL) * u128::from(new.ps_per_byte);
    let queued = u128::from(old.waiting.min(new.waiting)) * full / u128::from(base);
    let sent = u128::from(new.sent - old.sent) * full / u128::from(new.at - old.at);
    u64::try_from(queued + sent).unwrap_or(u64::MAX)
}

impl HpccState {
    fn new(of: Hpcc, line: u64) -> Self {
        HpccState {
            of,
            line,
            load: PathMeter::new(FULL),
            reference: 0,
            stage: 0,
            next: 0,
            update_at: None,
        }
    }

    /// `ComputeWind`: `update` says whether the reference follows.
    fn compute_wind(&mut self, load: u64, update: bool, bytes: u16) -> u64 {
        let largest = packets_in(self.of.base, self.line, bytes);
        if self.reference == 0 {
            self.reference = largest;
        }
        let wanted = u64::from(self.of.utilisation);
        let more = u64::from(self.of.increase) * u64::from(ONE) / u64::from(bytes);
        let over = load * u64::from(MILLION) >= wanted * FULL;
        let multiplies = over || self.stage >= self.of.stages;
        let cwnd = if multiplies {
            let next = u128::from(self.reference) * u128::from(wanted * FULL);
            u64::try_from(next / u128::from(load * u64::from(MILLION))).unwrap_or(u64::MAX)
        } else {
            self.reference
        };
        let cwnd = cwnd.saturating_add(more).clamp(LEAST.min(largest), largest);
        if update {
            self.stage = if multiplies { 0 } else { self.stage + 1 };
            self.reference = cwnd;
        }
        cwnd
    }
}
