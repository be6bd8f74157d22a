// SPDX-License-Identifier: GPL-2.0-or-later
//! Fits Figure 9's settings of the named schemes to another network, by what its base path holds
//! and how long its round trip is. On Figure 9's own fabric nothing changes.

use crate::core::error::Result;
use crate::core::time::{ps_per_byte, Ps, S};
use crate::host::congestion::{Congestion, Dctcp, Eqds, Hpcc, Nscc, PowerTcp, Swift};
use crate::host::limiter::Limiter;
use crate::host::transport::{Transport, DATA};
use crate::net::pause::Pause;
use crate::net::topology::{LeafSpine, Topology};
use crate::queue::kinds::{Marking, PFabric, Priority, Queue};
use crate::queue::level_red::LevelRed;
use crate::queue::limit::Limit;
use crate::queue::red::{Profile, Red};
use crate::queue::wfq::Wfq;
use crate::sim::base_path::BasePath;
use crate::sim::scheme::Scheme;

/// The largest window of any transport, in packets.
const LARGEST: u64 = (1 << 15) - 1;
const PACKET: u64 = DATA as u64;
/// Flows for which additive increases leave room: W_AI is B T (1 - eta) / N (HPCC, section 4.1),
/// and PowerTCP's beta is B T / N (section 3.3).
const FLOWS: u64 = 100;

/// The base paths of a network and of Figure 9's fabric.
pub(crate) struct Fit<'a> {
    topology: &'a Topology,
    here: BasePath,
    fig9: BasePath,
}

impl<'a> Fit<'a> {
    /// # Errors
    /// A rate that [`ps_per_byte`] refuses.
    pub fn new(topology: &'a Topology) -> Result<Self> {
        let fig9 = BasePath::of(&Topology::leaf_spine(&LeafSpine::FIG9)?)?;
        Ok(Fit { topology, here: BasePath::of(topology)?, fig9 })
    }

    /// The scheme with this name, from its settings for Figure 9.
    ///
    /// # Errors
    /// A rate of a cable that [`ps_per_byte`] refuses.
    pub fn fit(&self, name: &str, mut scheme: Scheme) -> Result<Scheme> {
        if matches!(name, "hpcc" | "powertcp" | "bbr3") {
            self.one_path(name, &mut scheme.transport);
            return Ok(scheme);
        }
        self.windows_and_timeouts(&mut scheme);
        match name {
            "dctcp" => self.dctcp(&mut scheme),
            "pfabric" => self.pfabric(&mut scheme),
            "qjump-script" => self.qjump_script(&mut scheme),
            "swift" => self.swift(&mut scheme),
            "aequitas" => self.aequitas(&mut scheme),
            "bbr" => {
                // Its greatest gain is 2.89 (2 / ln 2).
                let most = window(3 * self.here.holds().div_ceil(PACKET));
                scheme.transport.max_window = scheme.transport.max_window.max(most);
            }
            "dcqcn" | "dcqcn-pfc" | "roce" => self.dcqcn(&mut scheme)?,
            "irn" => self.irn(&mut scheme)?,
            "homa" => self.homa(&mut scheme),
            "ndp" | "eqds" => self.ndp(&mut scheme),
            "nscc" => self.nscc(&mut scheme),
            _ => {}
        }
        Ok(scheme)
    }

    /// This many times as much as on Figure 9's fabric, by what the base path holds; rounded up, so
    /// that as large a share of its rate is used as there.
    fn by_path(&self, published: u64) -> u64 {
        let (here, fig9) = (self.here, self.fig9);
        scaled(
            published,
            (here.round_trip, fig9.fastest.into()),
            (fig9.round_trip, here.fastest.into()),
        )
    }

    /// A time, by the base round trip.
    fn by_trip(&self, published: Ps) -> Ps {
        scaled(published, (self.here.round_trip, 1), (self.fig9.round_trip, 1))
    }

    /// A quantity, by the rate of the fastest host.
    fn by_rate(&self, published: u64) -> u64 {
        scaled(published, (self.fig9.fastest.into(), 1), (self.here.fastest.into(), 1))
    }

    /// A time, by that of a packet on the slowest host's cable.
    fn by_packet(&self, published: Ps) -> Ps {
        scaled(published, (self.here.slowest.into(), 1), (self.fig9.slowest.into(), 1))
    }

    /// Packets that the base path holds beyond those of Figure 9's.
    fn more(&self) -> u64 {
        self.here.holds().saturating_sub(self.fig9.holds()).div_ceil(PACKET)
    }

    /// Packets of a queue: they take at least as long to send as published, and what the path holds
    /// beyond Figure 9's has room (Villamizar and Song, CCR 24(5), 1994).
    fn buffer(&self, published: u64) -> u64 {
        self.by_rate(published).max(published) + self.more()
    }

    /// A window has as much beyond what the path holds as published, and timeouts are at least as
    /// long as published, in time and in round trips.
    fn windows_and_timeouts(&self, scheme: &mut Scheme) {
        let t = &mut scheme.transport;
        t.max_window = window(u64::from(t.max_window) + self.more());
        t.min_rto = t.min_rto.max(self.by_trip(super::fig9::MIN_RTO));
        t.max_rto = t.max_rto.max(t.min_rto);
        if let Queue::DropTail(Limit::Bytes(limit)) = &mut scheme.queue {
            *limit = PACKET * self.buffer(*limit / PACKET);
        }
        if let Queue::Priority(Priority { limit }) = &mut scheme.queue {
            *limit = PACKET * self.buffer(*limit / PACKET);
        }
    }

    /// A flow begins with what the base path holds, and timeouts take at least three round trips.
    /// HPCC has the paper's eta and `maxStage`, PowerTCP the paper's gamma.
    fn one_path(&self, name: &str, t: &mut Transport) {
        let (base, holds) = (self.here.round_trip.clamp(1, S), self.here.holds());
        let first = window(holds.div_ceil(PACKET).min(LARGEST / 4));
        t.max_window = t.max_window.max(2 * first);
        t.min_rto = t.min_rto.max(3 * base);
        t.max_rto = t.max_rto.max(t.min_rto);
        let increase = |bytes: u64| (bytes / FLOWS).clamp(1, 1_000_000) as u32;
        if name == "bbr3" {
            t.congestion = Congestion::Bbr3;
            self.bbr3(first, t);
            return;
        }
        t.initial_window = first;
        t.congestion = if name == "hpcc" {
            let of = Hpcc { base, ..Hpcc::default() };
            let spare = holds * u64::from(1_000_000 - of.utilisation) / 1_000_000;
            Congestion::Hpcc(Hpcc { increase: increase(spare), ..of })
        } else {
            Congestion::PowerTcp(PowerTcp { base, gamma: 900_000, increase: increase(holds) })
        };
    }

    /// Windows that hold four times what the path does, and RACK-TLP, with which BBR version 3
    /// comes in Linux. As there, the least timeout is what a round trip may be longer than the
    /// smoothed one: a full queue, as published. The first packets may find two.
    fn bbr3(&self, holds: u32, t: &mut Transport) {
        t.max_window = window(u64::from(t.max_window.max(4 * holds)));
        t.rack_tlp = true;
        t.rto_above_rtt = true;
        t.min_rto = t.min_rto.max(self.by_packet(super::fig9::MIN_RTO));
        t.initial_rto = Some(2 * t.min_rto);
        t.max_rto = t.max_rto.max(2 * t.min_rto);
    }

    /// Marks from a seventh of what the path holds on (Alizadeh et al., SIGCOMM 2010, equation 13),
    /// and g = 2^-n below 1.386 / sqrt(2 (C · RTT + K)) (equation 15).
    fn dctcp(&self, scheme: &mut Scheme) {
        let Queue::Marking(Marking { limit, threshold }) = &mut scheme.queue else { return };
        let holds = self.here.holds();
        *limit = PACKET * self.buffer(*limit / PACKET);
        *threshold = holds.div_ceil(7).max(*threshold);
        let Congestion::Dctcp(Dctcp { shift }) = &mut scheme.transport.congestion else { return };
        // 1.386^2 / 2 is 0.96.
        let packets = (holds + *threshold).div_ceil(PACKET);
        while *shift < 20 && 100 * packets >= 96 << (2 * *shift) {
            *shift += 1;
        }
    }

    /// All is in round trips: the first window is one, a queue holds two, a timeout is three
    /// (Alizadeh et al., SIGCOMM 2013, sections 4.3 and 5).
    fn pfabric(&self, scheme: &mut Scheme) {
        let published = Scheme::pfabric();
        let t = &mut scheme.transport;
        t.max_window = window(self.by_path(published.transport.max_window.into()));
        t.initial_window =
            window(self.by_path(published.transport.initial_window.into())).min(t.max_window);
        t.min_rto = self.by_trip(published.transport.min_rto);
        t.max_rto = published.transport.max_rto.max(t.min_rto);
        if let Queue::PFabric(PFabric { limit }) = &mut scheme.queue {
            *limit = PACKET * self.by_path(*limit / PACKET);
        }
    }

    /// The epoch of nP/R has the rate of this network; n stays that of the scripts.
    fn qjump_script(&self, scheme: &mut Scheme) {
        if let Limiter::PerFlow { epoch, .. } = &mut scheme.limiter {
            *epoch = self.by_packet(*epoch);
        }
    }

    /// The base target has as much beyond the base round trip as on Figure 9's fabric (Kumar et al.,
    /// SIGCOMM 2020, section 3.5).
    fn swift(&self, scheme: &mut Scheme) {
        if let Congestion::Swift(Swift { base, .. }) = &mut scheme.transport.congestion {
            *base = (*base - self.fig9.round_trip).saturating_add(self.here.round_trip);
        }
    }

    /// Targets are as many round trips as on Figure 9's fabric, and as many times as long as a
    /// packet takes.
    fn aequitas(&self, scheme: &mut Scheme) {
        self.swift(scheme);
        if let Queue::Wfq(Wfq { limit, .. }) = &mut scheme.queue {
            *limit = PACKET * self.buffer(*limit / PACKET);
        }
        if let Limiter::Aequitas(of) = &mut scheme.limiter {
            for target in of.targets.iter_mut().flatten() {
                *target = self.by_trip(*target).max(self.by_packet(*target));
            }
        }
    }

    /// Thresholds grow with the rate. Pauses have the headroom of the cable that needs most.
    fn dcqcn(&self, scheme: &mut Scheme) -> Result<()> {
        let grown = |bytes: u64| self.by_rate(bytes).max(bytes);
        if let Queue::Red(Red { profile: Profile { max: Limit::Bytes(max), .. }, .. })
        | Queue::LevelRed(LevelRed { max, .. }) = &mut scheme.queue
        {
            *max = grown(*max);
        }
        let mut room = 0;
        let edges = self.topology.hosts.iter().map(|(_, cable)| cable);
        for cable in edges.chain(self.topology.trunks.iter().map(|(_, _, cable)| cable)) {
            room = Pause::headroom(cable.delay, ps_per_byte(cable.rate)?, DATA).max(room);
        }
        scheme.pause = scheme.pause.map(|Pause { xoff, xon, per_level, .. }| Pause {
            xoff: grown(xoff),
            xon: grown(xon),
            buffer: grown(xoff) + room,
            per_level,
        });
        Ok(())
    }

    /// The window is what the base path holds, and `RTO_high` at least as long as the base path
    /// with a full buffer on it takes; `RTO_low` grows with the round trip (Mittal et al., SIGCOMM
    /// 2018, sections 3.2 and 4.1).
    fn irn(&self, scheme: &mut Scheme) -> Result<()> {
        self.dcqcn(scheme)?;
        let mut full = 0;
        if let Queue::Red(Red { limit: Limit::Bytes(limit), .. }) = &mut scheme.queue {
            *limit = PACKET * self.buffer(*limit / PACKET);
            full = *limit * u64::from(self.here.slowest);
        }
        let t = &mut scheme.transport;
        t.max_window = window(self.here.holds().div_ceil(PACKET));
        t.initial_window = t.max_window;
        t.low_rto = t.low_rto.map(|low| self.by_trip(low).max(low));
        t.min_rto = t.min_rto.max(self.here.round_trip.saturating_add(full));
        t.max_rto = t.max_rto.max(t.min_rto);
        Ok(())
    }

    /// The unscheduled packets are `RTTbytes` (Montazeri et al., SIGCOMM 2018, section 3.2): what
    /// the base path holds. Receivers grant so much to several messages at a time, for which ports
    /// have room.
    fn homa(&self, scheme: &mut Scheme) {
        let t = &mut scheme.transport;
        let published = Scheme::homa();
        t.initial_window = window(self.by_path(published.transport.initial_window.into()));
        t.max_window = t.max_window.max(window(2 * u64::from(t.initial_window)));
        if let (
            Queue::Priority(Priority { limit: published }),
            Queue::Priority(Priority { limit }),
        ) = (published.queue, &mut scheme.queue)
        {
            *limit = PACKET * self.by_path(published / PACKET).max(*limit / PACKET);
        }
    }

    /// The first window is what the base path holds (Handley et al., SIGCOMM 2017, section 3).
    fn ndp(&self, scheme: &mut Scheme) {
        let t = &mut scheme.transport;
        t.initial_window = window(self.by_path(Scheme::ndp().transport.initial_window.into()));
        t.max_window = t.max_window.max(t.initial_window);
        if let Congestion::Eqds(Eqds { ahead }) = &mut t.congestion {
            *ahead = 2 * t.initial_window;
        }
    }

    /// The target, marks and windows are as many base round trips as on Figure 9's fabric.
    fn nscc(&self, scheme: &mut Scheme) {
        let (base, holds) = (self.here.round_trip.clamp(1, S), self.here.holds());
        let t = &mut scheme.transport;
        t.congestion = Congestion::Nscc(Nscc { base, target: base });
        t.initial_window = window((3 * holds).div_ceil(2 * PACKET).min(LARGEST / 4));
        t.max_window = t.max_window.max(2 * t.initial_window);
        if let Queue::Red(Red { limit: Limit::Bytes(limit), profile, .. }) = &mut scheme.queue {
            *limit = PACKET * self.buffer(*limit / PACKET);
            (profile.min, profile.max) =
                (Limit::Bytes((holds / 5).max(1)), Limit::Bytes((holds * 4 / 5).max(2)));
        }
    }
}

fn window(packets: u64) -> u32 {
    packets.clamp(1, LARGEST) as u32
}

/// `published` times the first product over the second, rounded up.
fn scaled(published: u64, (a, b): (u64, u64), (c, d): (u64, u64)) -> u64 {
    let product = |one: u64, other: u64| u128::from(one) * u128::from(other);
    let times = u128::from(published).saturating_mul(product(a, b));
    u64::try_from(times.div_ceil(product(c, d))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::{NS, US};
    use crate::net::topology::Cable;
    use crate::sim::rivals::RIVALS;

    fn fabric(edge: Cable) -> Topology {
        Topology::leaf_spine(&LeafSpine { edge, ..LeafSpine::FIG9 }).unwrap()
    }

    fn congestion(name: &str, topology: &Topology) -> Congestion {
        Scheme::named(name, topology).unwrap().transport.congestion
    }

    /// On the published fabric, and on one of more racks with the same cables.
    #[test]
    fn figure_9_keeps_its_settings() {
        for racks in [9, 25] {
            let fabric = LeafSpine { racks, ..LeafSpine::FIG9 };
            let topology = Topology::leaf_spine(&fabric).unwrap();
            for (name, _) in RIVALS {
                let scheme = Scheme::named(name, &topology).unwrap();
                assert_eq!(Some(scheme), Scheme::rival(name), "{name}");
            }
            for (name, published) in [
                ("tcp", Scheme::tcp()),
                ("dctcp", Scheme::dctcp()),
                ("pfabric", Scheme::pfabric()),
                ("qjump-script", Scheme::qjump_script()),
                ("qjump-paper", Scheme::qjump_paper(&topology).unwrap()),
            ] {
                assert_eq!(Scheme::named(name, &topology).unwrap(), published, "{name}");
            }
        }
    }

    /// Of edges of 52.7 us instead of 2.7: a round trip of 214.68 us, which holds 178.9 packets
    /// where 12.2 were. By hand: Swift has 10.32 us beyond it; 12 and 23 packets become 175.5 and
    /// 336.4, 45 us become 658.1; a seventh is 25.6 packets; and g < 1.386 / sqrt(2 (178.9 + 25.6))
    /// = 0.069 leaves 1/16. IRN's 100 us become 1,462.4, and its 320 us 13.6 round
    /// trips, 2,924.8.
    #[test]
    fn settings_follow_the_base_round_trip() {
        let far = fabric(Cable { delay: 52_700 * NS, ..LeafSpine::FIG9.edge });
        let Congestion::Swift(swift) = congestion("swift", &far) else { unreachable!() };
        assert_eq!((swift.base, swift.scaling), (225 * US, 25 * US));
        let homa = Scheme::named("homa", &far).unwrap().transport;
        assert_eq!(homa.initial_window, 176);
        let pfabric = Scheme::named("pfabric", &far).unwrap().transport;
        assert_eq!((pfabric.initial_window, pfabric.max_window), (176, 337));
        assert_eq!(pfabric.min_rto / US, 658);
        let irn = Scheme::named("irn", &far).unwrap().transport;
        assert_eq!((irn.initial_window, irn.max_window), (179, 179));
        assert_eq!((irn.low_rto.unwrap() / US, irn.min_rto / US), (1_462, 2_924));
        let dctcp = Scheme::named("dctcp", &far).unwrap();
        let Queue::Marking(Marking { threshold, .. }) = dctcp.queue else { unreachable!() };
        assert_eq!(threshold, 268_350u64.div_ceil(7));
        assert_eq!(congestion("dctcp", &far), Congestion::Dctcp(Dctcp { shift: 4 }));
        // At 100 Gb/s it holds 1,770 packets, and g < 0.022.
        let fast = fabric(Cable { rate: 100_000_000_000, delay: 52_700 * NS });
        assert_eq!(congestion("dctcp", &fast), Congestion::Dctcp(Dctcp { shift: 6 }));
    }
}
