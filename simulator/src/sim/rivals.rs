// SPDX-License-Identifier: GPL-2.0-or-later
//! Schemes published after QJump, in Figure 9's fabric. What a scheme does not set is as in the
//! published scripts.

use crate::core::time::{MS, NS, US};
use crate::host::aequitas::Aequitas;
use crate::host::congestion::{Congestion, Dcqcn, Eqds, Homa, Nscc, Swift};
use crate::host::limiter::Limiter;
use crate::host::transport::{Recovery, DATA};
use crate::net::pause::Pause;
use crate::net::routes::Routing;
use crate::queue::aqm::Protection;
use crate::queue::kinds::{Priority, Queue};
use crate::queue::level_red::LevelRed;
use crate::queue::limit::Limit;
use crate::queue::red::{Profile, Reading, Red};
use crate::queue::trim::Trim;
use crate::queue::wfq::Wfq;
use crate::sim::scheme::Scheme;

/// These schemes, by name.
pub(crate) const RIVALS: [(&str, fn() -> Scheme); 11] = [
    ("swift", Scheme::swift),
    ("bbr", Scheme::bbr),
    ("dcqcn", Scheme::dcqcn),
    ("dcqcn-pfc", Scheme::dcqcn_pfc),
    ("homa", Scheme::homa),
    ("aequitas", Scheme::aequitas),
    ("ndp", Scheme::ndp),
    ("roce", Scheme::roce),
    ("irn", Scheme::irn),
    ("eqds", Scheme::eqds),
    ("nscc", Scheme::nscc),
];

/// A queue that marks by its length of now, from `min` bytes on, and everything from `max` on.
fn marking(limit: Limit, min: u64, max: u64, max_p: u32) -> Queue {
    Queue::Red(Red {
        limit,
        profile: Profile { min: Limit::Bytes(min), max: Limit::Bytes(max), max_p },
        not_ect: None,
        gentle: false,
        weight: 0,
        in_packets: false,
        mean_packet: DATA,
        reading: Reading::Each,
        mark_p: None,
        protection: Protection::AckSyn,
    })
}

impl Scheme {
    /// Swift: a target of 25 us, where an empty round trip takes 15, and at most as much again for
    /// small windows.
    pub fn swift() -> Self {
        let mut scheme = Self::tcp();
        scheme.transport.congestion =
            Congestion::Swift(Swift { base: 25 * US, scaling: 25 * US, ..Swift::default() });
        scheme
    }

    /// BBR, version 1.
    pub fn bbr() -> Self {
        let mut scheme = Self::tcp();
        scheme.transport.congestion = Congestion::Bbr;
        scheme
    }

    /// DCQCN with its thresholds scaled to the links' rate (5 to 50 kB, 1 %), over links that pause
    /// from 100 kB on, so that nothing is lost.
    pub fn dcqcn() -> Self {
        let mut scheme = Self::tcp();
        scheme.queue = marking(Limit::None, 5_000, 50_000, 10_000);
        // The headroom of a host's cable at 10 Gb/s or of one at 40 Gb/s between switches.
        let room = Pause::headroom(2_700 * NS, 800, DATA).max(Pause::headroom(200 * NS, 200, DATA));
        scheme.pause =
            Some(Pause { xoff: 100_000, xon: 50_000, buffer: 100_000 + room, per_level: false });
        scheme.transport.max_window = 8_000;
        scheme.transport.min_rto = 10 * MS;
        scheme.transport.congestion = Congestion::Dcqcn(Dcqcn::default());
        scheme
    }

    /// DCQCN over links that pause levels (802.1Qbb), where each level marks by itself. All data
    /// has one level; ACKs have another, which comes first.
    pub fn dcqcn_pfc() -> Self {
        let mut scheme = Self::dcqcn();
        scheme.queue = Queue::LevelRed(LevelRed {
            limit: 1 << 30,
            min: 5_000,
            max: 50_000,
            max_p: 10_000,
            weights: None,
        });
        scheme.pause = scheme.pause.map(|pause| Pause { per_level: true, ..pause });
        // All flows are of level 1.
        scheme.levels =
            std::array::from_fn(|level| if level == 0 { 0 } else { u32::MAX - 6 + level as u32 });
        scheme
    }

    /// Homa: 12 unscheduled packets on two levels by the message's size, and six levels for
    /// scheduled packets.
    pub fn homa() -> Self {
        let mut scheme = Self::tcp();
        scheme.queue = Queue::Priority(Priority { limit: 150 * u64::from(DATA) });
        scheme.transport.max_window = 1_000;
        scheme.transport.min_rto = 10 * MS;
        scheme.transport.congestion = Congestion::Homa(Homa { scheduled: 6 });
        scheme
    }

    /// Aequitas over Swift: two levels with targets for short flows; everything else is on the
    /// lowest. Switches and hosts share links among the three levels by weights of 8, 4 and 1, as
    /// in the paper; each level has a third of the buffer.
    pub fn aequitas() -> Self {
        let mut scheme = Self::swift();
        scheme.queue =
            Queue::Wfq(Wfq { limit: 50 * u64::from(DATA), weights: [8, 4, 1, 1, 1, 1, 1, 1] });
        let mut targets = [None; 8];
        (targets[0], targets[1]) = (Some(20 * US), Some(5 * US));
        scheme.levels = [6, 133, 134, 135, 136, 137, 138];
        scheme.limiter = Limiter::Aequitas(Aequitas { targets, ..Aequitas::default() });
        scheme
    }

    /// NDP: switches trim what exceeds eight packets, and keep headers in the rest of the buffer of
    /// 150 packets; a first window of 12 packets, and hosts whose control packets leave before data.
    pub fn ndp() -> Self {
        let mut scheme = Self::tcp();
        scheme.queue = Queue::Trim(Trim { headers: 142 * u64::from(DATA), ..Trim::default() });
        scheme.host_queue = Some(Queue::Priority(Priority { limit: 1 << 30 }));
        scheme.transport.max_window = 1_000;
        scheme.transport.min_rto = 10 * MS;
        scheme.transport.congestion = Congestion::Ndp;
        scheme
    }

    /// EQDS: the switches, hosts and first window of `ndp`, and at most two such windows of credit
    /// ahead of what has come.
    pub fn eqds() -> Self {
        let mut scheme = Self::ndp();
        scheme.transport.congestion =
            Congestion::Eqds(Eqds { ahead: 2 * scheme.transport.initial_window });
        scheme
    }

    /// NSCC: targets of a base round trip, as without trimming, and first windows of 1.5. Ports
    /// mark from a fifth of what the base path holds on, and everything from four fifths on, which
    /// is htsim's.
    pub fn nscc() -> Self {
        // Figure 9's base round trip, and the bytes that it holds: `Fit` computes the same.
        let (base, holds) = (14_680 * NS, 18_350);
        let mut scheme = Self::tcp();
        scheme.queue =
            marking(Limit::Bytes(150 * u64::from(DATA)), holds / 5, holds * 4 / 5, 1_000_000);
        scheme.transport.initial_window = 19;
        // What is sent again would be dropped where all is marked.
        scheme.transport.ect_again = true;
        scheme.transport.congestion = Congestion::Nscc(Nscc { base, target: base });
        scheme
    }

    /// `RoCEv2` (Guo et al., SIGCOMM 2016): `dcqcn-pfc` with go-back-N, and one path for each flow.
    pub fn roce() -> Self {
        let mut scheme = Self::dcqcn_pfc();
        scheme.routing = Routing::PerFlow;
        scheme.transport.recovery = Recovery::GoBackN;
        (scheme.transport.sack, scheme.transport.dupacks) = (false, None);
        scheme.transport.ect_again = true;
        scheme
    }

    /// IRN with DCQCN, without pauses: its paper's timeouts, and windows of what the base path
    /// holds, 13 packets. Switches have buffers of 150 packets; in hosts nothing is lost, and ACKs
    /// leave before data.
    pub fn irn() -> Self {
        let mut scheme = Self::dcqcn();
        if let Queue::Red(red) = &mut scheme.queue {
            red.limit = Limit::Bytes(150 * u64::from(DATA));
        }
        scheme.host_queue = Some(Queue::Priority(Priority { limit: 1 << 30 }));
        scheme.pause = None;
        scheme.routing = Routing::PerFlow;
        let t = &mut scheme.transport;
        t.recovery = Recovery::Selective;
        (t.dupacks, t.ect_again) = (Some(1), true);
        (t.initial_window, t.max_window) = (13, 13);
        (t.low_rto, t.min_rto, t.fixed_rto) = (Some(100 * US), 320 * US, true);
        scheme
    }

    /// TCP whose flows take one path each, and take three packets above a hole for a loss: what
    /// HPCC, PowerTCP and BBR version 3 are fitted from.
    pub(crate) fn of_one_path() -> Self {
        let mut scheme = Self::tcp();
        scheme.transport.dupacks = Some(3);
        scheme.routing = Routing::PerFlow;
        scheme
    }

    pub(crate) fn rival(name: &str) -> Option<Self> {
        RIVALS.iter().find(|(known, _)| *known == name).map(|(_, make)| make())
    }
}
