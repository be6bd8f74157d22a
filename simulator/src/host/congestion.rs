// SPDX-License-Identifier: GPL-2.0-or-later
//! Congestion control: a window, a pace, and what ACKs, marks, losses and timeouts do to them.
//!
//! A law is a file of this folder with its settings; a new law is also a `mod` line and a line of
//! the list here. Windows are fixed-point numbers of packets with 16 fractional bits: no floating
//! point decides anything.

mod bbr;
mod bbr3;
mod code;
mod cubic;
mod custom;
mod dcqcn;
mod dctcp;
mod delivery_rate;
mod ecn;
mod eqds;
mod homa;
mod hpcc;
mod ndp;
mod nscc;
mod powertcp;
mod reno;
mod swift;
#[cfg(test)]
mod tests;
mod traits;
#[cfg(feature = "wasm")]
mod wasm;

use serde::{Deserialize, Serialize};

use self::bbr::Bbr;
use self::bbr3::Bbr3;
pub use self::code::Code;
use self::cubic::Cubic;
pub(crate) use self::custom::Failures;
pub use self::custom::{Custom, FlowLaw, OwnLaw, Sending, Signal};
pub use self::dcqcn::Dcqcn;
pub use self::dctcp::Dctcp;
use self::ecn::Ecn;
pub use self::eqds::Eqds;
pub use self::homa::Homa;
pub use self::hpcc::Hpcc;
use self::ndp::Ndp;
pub use self::nscc::Nscc;
pub use self::powertcp::PowerTcp;
use self::reno::Reno;
pub use self::swift::Swift;
pub use self::traits::AckInfo;
use self::traits::{CongestionLaw, LawState, Window};
pub(crate) use self::traits::{Echo, Protocol, SentInfo, Windows, ONE};
use crate::core::time::{Ps, S};
use crate::net::telemetry::PortRecord;

/// The settings of a law: those of its variant, or its name if it has none.
macro_rules! settings {
    ($law:ident) => {
        $law
    };
    ($law:ident, $settings:ident) => {
        $settings
    };
}

/// A `match` selects the law, not a table of functions, so that each is compiled into its sender.
macro_rules! laws {
    ($($(#[$doc:meta])* $law:ident $(($settings:ident: $type:ty))?,)*) => {
        /// The law of congestion control.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub enum Congestion {
            $($(#[$doc])* $law $(($type))?,)*
        }

        impl Congestion {
            /// The names of all laws in scheme files, each with its variant.
            pub const NAMES: &[(&str, &str)] = &[$(($law::NAME, stringify!($law)),)*];

            pub(crate) fn problem(self) -> Option<String> {
                match self {
                    $(Congestion::$law $(($settings))? => {
                        settings!($law $(, $settings)?).problem()
                    })*
                }
            }

            pub(crate) fn scheduled(self) -> u8 {
                match self {
                    $(Congestion::$law $(($settings))? => {
                        settings!($law $(, $settings)?).scheduled()
                    })*
                }
            }

            pub(crate) fn ahead(self) -> Option<u32> {
                match self {
                    $(Congestion::$law $(($settings))? => {
                        settings!($law $(, $settings)?).ahead()
                    })*
                }
            }

            #[inline]
            pub(crate) fn protocol(self) -> Protocol {
                match self { $(Congestion::$law { .. } => $law::PROTOCOL,)* }
            }

            #[inline]
            pub(crate) fn echo(self) -> Echo {
                match self { $(Congestion::$law { .. } => $law::ECHO,)* }
            }

            #[inline]
            pub(crate) fn ecn_capable(self) -> bool {
                match self {
                    $(Congestion::$law $(($settings))? => {
                        settings!($law $(, $settings)?).ecn_capable()
                    })*
                }
            }

            #[inline]
            pub(crate) fn is_scalable(self) -> bool {
                match self { $(Congestion::$law { .. } => $law::IS_SCALABLE,)* }
            }

            #[inline]
            pub(crate) fn sends_cwr(self) -> bool {
                match self { $(Congestion::$law { .. } => $law::SENDS_CWR,)* }
            }

            #[inline]
            pub(crate) fn allows_ack_per_packet(self) -> bool {
                match self { $(Congestion::$law { .. } => $law::ALLOWS_ACK_PER_PACKET,)* }
            }

            #[inline]
            pub(crate) fn sees_delay(self) -> bool {
                match self { $(Congestion::$law { .. } => $law::SEES_DELAY,)* }
            }

            #[inline]
            pub(crate) fn sees_every_ack(self) -> bool {
                match self { $(Congestion::$law { .. } => $law::SEES_EVERY_ACK,)* }
            }

            #[inline]
            pub(crate) fn reads_telemetry(self) -> bool {
                match self { $(Congestion::$law { .. } => $law::READS_TELEMETRY,)* }
            }
        }

        /// A law's own state beside the window.
        #[derive(Debug, Clone)]
        enum State {
            $($law(<$law as CongestionLaw>::State),)*
        }

        /// A sender's law with its window; [`LawState`] says what the functions do.
        #[derive(Debug, Clone)]
        pub(crate) struct Control {
            window: Window,
            state: State,
        }

        impl Control {
            /// `line`: rate of the host's link, in bit/s.
            pub fn new(congestion: Congestion, windows: Windows, line: u64) -> Self {
                let mut window = Window::new(windows);
                let state = match congestion {
                    $(Congestion::$law $(($settings))? => {
                        State::$law(settings!($law $(, $settings)?).start(&mut window, line))
                    })*
                };
                Control { window, state }
            }

            /// Returns how long the next packet must wait.
            #[inline(never)]
            pub fn on_send(&mut self, sent: &SentInfo) -> Ps {
                let Control { window, state } = self;
                match state { $(State::$law(law) => law.on_send(window, sent),)* }
                let bits = u128::from(sent.bytes) * 8;
                self.pacing_rate().map_or(0, |rate| (bits * u128::from(S) / u128::from(rate)) as Ps)
            }

            #[inline(never)]
            pub fn on_lost(&mut self, now: Ps, number: u32) {
                let Control { window, state } = self;
                match state { $(State::$law(law) => law.on_lost(window, now, number),)* }
            }

            pub fn on_telemetry(&mut self, records: &[PortRecord]) {
                match &mut self.state { $(State::$law(law) => law.on_telemetry(records),)* }
            }

            #[inline(never)]
            pub fn on_every_ack(&mut self, ack: &AckInfo) {
                let Control { window, state } = self;
                match state { $(State::$law(law) => law.on_every_ack(window, ack),)* }
            }

            #[inline]
            pub fn on_ack(&mut self, now: Ps, acked: u32, round_trip: Ps) {
                let Control { window, state } = self;
                match state { $(State::$law(law) => law.on_ack(window, now, acked, round_trip),)* }
            }

            pub fn on_window(&mut self, marked: u32, acked: u32) {
                match &mut self.state { $(State::$law(law) => law.on_window(marked, acked),)* }
            }

            pub fn on_mark(&mut self, now: Ps) {
                let Control { window, state } = self;
                match state { $(State::$law(law) => law.on_mark(window, now),)* }
            }

            pub fn on_loss(&mut self, now: Ps) {
                let Control { window, state } = self;
                match state { $(State::$law(law) => law.on_loss(window, now),)* }
            }

            pub fn on_timeout(&mut self, now: Ps) {
                let Control { window, state } = self;
                match state { $(State::$law(law) => law.on_timeout(window, now),)* }
            }

            pub fn on_connected(&mut self, now: Ps, round_trip: Ps, bytes: u16) {
                let Control { window, state } = self;
                match state {
                    $(State::$law(law) => law.on_connected(window, now, round_trip, bytes),)*
                }
            }

            pub fn on_idle(&mut self, now: Ps, idle: Ps, long: bool) {
                let Control { window, state } = self;
                match state { $(State::$law(law) => law.on_idle(window, now, idle, long),)* }
            }
        }
    };
}

laws! {
    /// Reno (RFC 5681); ignores marks.
    Reno,
    /// Reno with ECN: a mark halves the window (RFC 3168).
    Ecn,
    /// CUBIC (RFC 9438); ignores marks.
    Cubic,
    /// DCTCP (RFC 8257).
    Dctcp(dctcp: Dctcp),
    /// Swift: a target delay.
    Swift(swift: Swift),
    /// BBR, version 1: a model of the path.
    Bbr,
    /// DCQCN: a rate, controlled by marks.
    Dcqcn(dcqcn: Dcqcn),
    /// Homa: receivers grant.
    Homa(homa: Homa),
    /// NDP: receivers pull.
    Ndp,
    /// HPCC: a window after what ports report.
    Hpcc(hpcc: Hpcc),
    /// PowerTCP: a window after the power of queues, which ports report.
    PowerTcp(power: PowerTcp),
    /// BBR, version 3: a model of the path, with limits by losses and marks.
    Bbr3,
    /// EQDS: receivers credit in turns.
    Eqds(eqds: Eqds),
    /// NSCC: a window after marks and the queueing delay.
    Nscc(nscc: Nscc),
    /// A law of the user's own.
    Custom(custom: Custom),
}

impl Congestion {
    /// Whether it is the user's own.
    #[inline]
    pub(crate) fn is_own(self) -> bool {
        matches!(self, Congestion::Custom(_))
    }

    /// Whether a run with it may have several parts.
    pub(crate) fn runs_in_parts(self) -> bool {
        !matches!(self, Congestion::Custom(custom) if !custom.law.runs_in_parts())
    }
}

impl Control {
    /// A flow begins to use the law.
    #[inline]
    pub fn serve(&mut self, now: Ps, flow: u32, transport: u8) {
        if let State::Custom(custom) = &mut self.state {
            custom.serve(&mut self.window, now, (flow, transport));
        }
    }

    /// Whole packets that may be under way.
    #[inline]
    pub fn window(&self) -> u32 {
        (self.window.cwnd / ONE).max(1)
    }

    /// In bit/s; none: the window alone decides.
    #[inline]
    pub fn pacing_rate(&self) -> Option<u64> {
        (self.window.pace > 0).then_some(self.window.pace)
    }

    /// Limits the window; to one packet after a lost SYN (RFC 5681, section 3.1).
    pub fn limit(&mut self, most: u32) {
        self.window.cwnd = self.window.cwnd.min(most * ONE);
    }

    /// DCTCP's alpha.
    #[cfg(test)]
    pub fn alpha(&self) -> u32 {
        match &self.state {
            State::Dctcp(dctcp) => dctcp.alpha,
            _ => 0,
        }
    }
}
