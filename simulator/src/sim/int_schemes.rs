// SPDX-License-Identifier: GPL-2.0-or-later
//! Schemes of today whose parameters follow the topology's base round trip: HPCC, PowerTCP and BBR
//! version 3. What a scheme does not set is as in the published scripts of Figure 9.

use crate::core::error::Result;
use crate::core::time::{Ps, S};
use crate::host::congestion::{Congestion, Hpcc, PowerTcp};
use crate::host::transport::Transport;
use crate::net::routes::Routing;
use crate::net::topology::Topology;
use crate::sim::base_path::BasePath;
use crate::sim::scheme::Scheme;

/// Flows for which additive increases leave room: W_AI is B T (1 - eta) / N (HPCC, section 4.1), and
/// PowerTCP's beta is B T / N (section 3.3).
const FLOWS: u64 = 100;
/// The largest window that a transport may have.
const MOST: u64 = (1 << 15) - 1;

impl Scheme {
    /// HPCC with the paper's eta and `maxStage`. A flow takes one path, as it needs.
    ///
    /// # Errors
    /// A cable's rate that cannot be simulated.
    pub fn hpcc(topology: &Topology) -> Result<Self> {
        let (mut scheme, base, held) = Self::of_one_path(topology)?;
        let of = Hpcc { base, ..Hpcc::default() };
        let spare = held * u64::from(1_000_000 - of.utilisation) / 1_000_000;
        let increase = (spare / FLOWS).clamp(1, 1_000_000) as u32;
        scheme.transport.congestion = Congestion::Hpcc(Hpcc { increase, ..of });
        Ok(scheme)
    }

    /// PowerTCP with the paper's gamma. A flow takes one path, as it needs.
    ///
    /// # Errors
    /// A cable's rate that cannot be simulated.
    pub fn powertcp(topology: &Topology) -> Result<Self> {
        let (mut scheme, base, held) = Self::of_one_path(topology)?;
        let increase = (held / FLOWS).clamp(1, 1_000_000) as u32;
        scheme.transport.congestion =
            Congestion::PowerTcp(PowerTcp { base, gamma: 900_000, increase });
        Ok(scheme)
    }

    /// BBR, version 3, with windows that hold four times what the path does, and RACK-TLP, with
    /// which it comes in Linux. A flow takes one path.
    ///
    /// # Errors
    /// A cable's rate that cannot be simulated.
    pub fn bbr3(topology: &Topology) -> Result<Self> {
        let (mut scheme, _, _) = Self::of_one_path(topology)?;
        let transport = &mut scheme.transport;
        let held = std::mem::replace(&mut transport.initial_window, 12);
        transport.max_window = transport.max_window.max(4 * held).min(MOST as u32);
        transport.rack_tlp = true;
        transport.congestion = Congestion::Bbr3;
        Ok(scheme)
    }

    /// TCP whose flows take one path and begin with what a base round trip holds; that round trip,
    /// and what it holds in bytes. Three packets above a hole indicate a loss, and timeouts take at
    /// least three round trips.
    fn of_one_path(topology: &Topology) -> Result<(Self, Ps, u64)> {
        let mut scheme = Self::tcp();
        let path = BasePath::of(topology)?;
        let (base, held) = (path.round_trip.clamp(1, S), path.holds());
        let transport = &mut scheme.transport;
        transport.initial_window = packets(held, transport);
        transport.max_window = transport.max_window.max(2 * transport.initial_window);
        transport.dupacks = Some(3);
        transport.min_rto = transport.min_rto.max(3 * base);
        transport.max_rto = transport.max_rto.max(transport.min_rto);
        scheme.routing = Routing::PerFlow;
        Ok((scheme, base, held))
    }
}

/// Full packets of so many bytes, rounded up, that a window may have.
fn packets(bytes: u64, transport: &Transport) -> u32 {
    bytes.div_ceil(transport.data_bytes.into()).clamp(1, MOST / 4) as u32
}
