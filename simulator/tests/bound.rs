// SPDX-License-Identifier: GPL-2.0-or-later
//! QJump's bound: with f = 1, whatever the phases of the hosts' epochs, nobody waits longer than
//! 2nP/R in the network (equation 2 without the switches' own delay), and nP/R may be reached
//! (equation 1).

use qjump_sim::{
    network_epoch, Budgets, Bytes, Cable, Gap, LeafSpine, Limit, Limiter, PerHost, Ps, Queue, Rng,
    Scenario, Scheme, Source, Topology, Workload, NS,
};

const P: u16 = 1_500;
const PER_BYTE: u32 = 800;
const DELAY: Ps = 500 * NS;

/// n hosts in racks of 40 and a receiver. Every cable has the same rate, so that a rack's uplink
/// fans in as well; one spine, so that nothing is spread.
fn racks(senders: u32) -> Topology {
    let cable = Cable { rate: 10_000_000_000, delay: DELAY };
    let hosts_per_rack = senders.clamp(1, 40);
    let racks = senders.div_ceil(hosts_per_rack) + 1;
    Topology::leaf_spine(&LeafSpine {
        racks,
        hosts_per_rack,
        spines: 1,
        edge: cable,
        uplink: cable,
    })
    .unwrap()
}

/// When hosts have something to send.
#[derive(Clone, Copy)]
enum Load {
    /// Eight packets an epoch, from the phase on.
    Regular,
    /// As many at random.
    Random,
    /// Three at random: the end of one epoch's budget and the beginning of the next come together.
    Light,
}

/// Largest time in queues and in being sent on the last link, over nP/R, when every host sends at
/// level 0 from a phase in the first `spread` of an epoch on.
fn largest(senders: u32, factor: u64, spread: f64, bytes: u16, load: Load, rng: &mut Rng) -> f64 {
    let topology = racks(senders);
    let epoch = network_epoch(senders, u64::from(P), PER_BYTE);
    let mut budgets: Budgets = [u64::MAX; 8];
    budgets[0] = factor * u64::from(P);
    let scheme = Scheme {
        queue: Queue::DropTail(Limit::None),
        limiter: Limiter::PerHost(PerHost::new(epoch, budgets)),
        ..Scheme::tcp()
    };
    let dst = topology.hosts() - 1;
    let window = (epoch as f64 * spread) as u64 + 1;
    let source = |src| Source {
        src,
        dst,
        level: 0,
        first: rng.below(window),
        gap: match load {
            Load::Regular => Gap::Every(epoch / 8),
            Load::Random => Gap::Poisson(epoch / 8),
            Load::Light => Gap::Poisson(epoch / 3),
        },
        bytes: Bytes::Fixed(bytes),
        count: 60 * factor,
    };
    let sources: Vec<Source> = (0..senders).map(source).collect();
    let workload = Workload::of_sources(sources);
    let outcome =
        Scenario { seed: rng.bits(), ..Scenario::new(topology, scheme, workload) }.run().unwrap();
    assert_eq!(outcome.counters.delivered.datagrams, u64::from(senders) * 60 * factor);
    let delay = outcome.sources.iter().map(|s| s.delay_max).max().unwrap();
    let before = 4 * DELAY + 3 * u64::from(bytes) * u64::from(PER_BYTE);
    (delay - before) as f64 / (epoch / 2) as f64
}

#[test]
fn nobody_waits_longer_than_the_bound() {
    let mut rng = Rng::new(7, 0);
    for senders in [2, 10, 100, 1_000] {
        let mut worst: f64 = 0.0;
        for spread in [0.001, 0.01, 0.1, 0.5, 1.0] {
            let loads = [
                (P, Load::Regular),
                (P, Load::Random),
                (P / 3, Load::Regular),
                (P / 3, Load::Random),
                (P / 3, Load::Light),
                (P / 2 + 1, Load::Random),
            ];
            for (bytes, load) in loads {
                let waited = largest(senders, 1, spread, bytes, load, &mut rng);
                assert!(
                    waited <= 2.0,
                    "{senders} hosts, phases within {spread} of an epoch: {waited:.3} nP/R"
                );
                worst = worst.max(waited);
            }
        }
        println!("{senders} hosts: {worst:.3} nP/R");
        assert!(worst >= 0.9, "{senders} hosts come no nearer than {worst:.3} nP/R");
    }
}

/// The assumption carries the bound: with f = 3 and all n hosts sending, more is sent than the link
/// carries.
#[test]
fn a_factor_too_large_breaks_it() {
    let waited = largest(100, 3, 1.0, P, Load::Regular, &mut Rng::new(7, 0));
    assert!(waited > 2.0, "{waited:.3} nP/R");
}
