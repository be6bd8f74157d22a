// SPDX-License-Identifier: GPL-2.0-or-later
//! PowerTCP (Addanki, Michel and Schmid, NSDI 2022, Algorithm 1): the window follows the power of
//! the path's ports, the product of their current (arrival rate) and voltage (queue plus what a
//! base round trip holds), by what ports report.
//!
//! Every packet is paced at a window a round trip, up to the host's rate. Losses and timeouts do
//! not change the window. Powers have 20 fractional bits, windows are packets with 16.

use serde::{Deserialize, Serialize};

use super::hpcc::{packets_in, set_paced};
use super::traits::{AckInfo, CongestionLaw, LawState, SentInfo, Window, ONE};
use crate::core::time::{Ps, S};
use crate::core::units::{Duration, Fraction, In, Octets};
use crate::net::telemetry::{PathMeter, PortRecord};

/// Settings. The transport's initial window should be what a base round trip holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerTcp {
    /// Tau: the longest round trip without queues.
    #[serde(with = "In::<Duration>")]
    pub base: Ps,
    /// Gamma: the weight of a new window.
    #[serde(with = "In::<Fraction>")]
    pub gamma: u32,
    /// Beta: the additive increase in bytes, which is what each flow leaves in a queue.
    #[serde(with = "In::<Octets>")]
    pub increase: u32,
}

impl CongestionLaw for PowerTcp {
    type State = Box<PowerState>;
    const NAME: &str = "powertcp";
    const SEES_EVERY_ACK: bool = true;
    const READS_TELEMETRY: bool = true;

    fn problem(&self) -> Option<String> {
        if self.base == 0 || self.base > S {
            Some("PowerTCP's base round trip must be above 0 and at most 1 s".to_owned())
        } else if self.gamma == 0 || self.gamma > MILLION {
            Some("PowerTCP's gamma must be above 0 and at most 1".to_owned())
        } else {
            (self.increase == 0 || self.increase > LARGEST)
                .then(|| format!("PowerTCP's increase must be 1 to {LARGEST} bytes"))
        }
    }

    fn start(self, window: &mut Window, line: u64) -> Box<PowerState> {
        Box::new(PowerState::new(self, window.bounds.most, line))
    }
}

const MILLION: u32 = 1_000_000;
/// A power of 1: a busy port without a queue.
const FULL: u64 = 1 << 20;
/// The least window: 1/1000 of a packet.
const LEAST: u64 = ONE as u64 / 1_000;
/// The largest increase, in bytes.
const LARGEST: u32 = 1_000_000;

#[derive(Debug, Clone)]
pub(crate) struct PowerState {
    of: PowerTcp,
    line: u64,
    power: PathMeter,
    /// The window; 0: that of the line's rate.
    cwnd: u64,
    /// By packet number, one window of them: the window when the packet left.
    old: Box<[u64]>,
}

impl LawState for PowerState {
    fn on_send(&mut self, _window: &mut Window, sent: &SentInfo) {
        if self.cwnd == 0 {
            self.cwnd = packets_in(self.of.base, self.line, sent.bytes);
        }
        let cwnd = self.cwnd;
        *self.slot(sent.number) = cwnd;
    }

    fn on_telemetry(&mut self, records: &[PortRecord]) {
        let base = self.of.base;
        self.power.update(records, base, |old, new| port_power(old, new, base));
    }

    fn on_every_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        let Some(number) = ack.number else { return };
        let Some(power) = self.power.take() else { return };
        let (old, PowerTcp { base, gamma, increase }) = (*self.slot(number), self.of);
        let beta = u64::from(increase) * u64::from(ONE) / u64::from(ack.bytes);
        let by_power = u128::from(old) * u128::from(FULL) / u128::from(power.max(1));
        let (weight, all) = (u128::from(gamma), u128::from(MILLION));
        let sum = weight * (by_power + u128::from(beta)) + (all - weight) * u128::from(self.cwnd);
        let held = packets_in(base, self.line, ack.bytes);
        // Of a flow alone, the equilibrium.
        let largest = held + beta;
        self.cwnd = (sum / all).clamp(LEAST.into(), largest.max(LEAST).into()) as u64;
        set_paced(window, self.cwnd, base, ack.bytes);
        window.pace = window.pace.min(self.line);
    }

    fn on_loss(&mut self, _window: &mut Window, _now: Ps) {}

    fn on_timeout(&mut self, _window: &mut Window, _now: Ps) {}

    /// After a long time the flow starts at the line's rate, as a new one does.
    fn on_idle(&mut self, window: &mut Window, _now: Ps, _idle: Ps, long: bool) {
        if long {
            *self = PowerState::new(self.of, window.bounds.most, self.line);
            (window.cwnd, window.pace) = (window.bounds.initial * ONE, 0);
        }
    }
}

/// Current times voltage, over those of a busy port without a queue.
fn port_power(old: &PortRecord, new: &PortRecord, base: Ps) -> u64 {
    let came = (new.waiting + new.sent - old.sent).saturating_sub(old.waiting);
    let per_byte = u128::from(new.ps_per_byte);
    let current = u128::from(came) * per_byte * u128::from(FULL) / u128::from(new.at - old.at);
    let voltage = u128::from(base) + u128::from(new.waiting) * per_byte;
    u64::try_from(current * voltage / u128::from(base)).unwrap_or(u64::MAX)
}

impl PowerState {
    /// `most`: packets of the largest window.
    fn new(of: PowerTcp, most: u32, line: u64) -> Self {
        PowerState {
            of,
            line,
            power: PathMeter::new(FULL),
            cwnd: 0,
            old: vec![0; (most as usize + 1).next_power_of_two()].into(),
        }
    }

    fn slot(&mut self, number: u32) -> &mut u64 {
        let mask = self.old.len() - 1;
        &mut self.old[number as usize & mask]
    }
}
