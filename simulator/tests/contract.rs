// SPDX-License-Identifier: GPL-2.0-or-later
//! One seed, one result, and no packet is lost without a reason.

use std::collections::BTreeMap;

use proptest::prelude::*;
use qjump_sim::{
    Aequitas, Arrivals, Bytes, Cable, CoDel, Congestion, Counters, Dcqcn, Dctcp, DualPi2, Epochs,
    FlowSpec, Flows, Gap, Homa, LeafSpine, LevelRed, Limit, Limiter, Marking, Mode, Outcome,
    PFabric, Pause, PerHost, PiController, Pie, Priority, Profile, Protection, Quantiles, Queue,
    Reading, Recovery, Red, Routing, Scenario, Scheme, Simulation, Sizes, Source, Swift, Threshold,
    TimeAware, Topology, Transport, Tree, Wfq, Workload, MS, NS, S, US,
};

fn protection() -> impl Strategy<Value = Protection> {
    prop_oneof![
        Just(Protection::Default),
        Just(Protection::EceBit),
        Just(Protection::AckSyn),
        Just(Protection::NoDrop)
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::None),
        (1_500u64..60_000).prop_map(Limit::Bytes),
        (1u32..40).prop_map(Limit::Packets),
        (12u64..200).prop_map(|us| Limit::Time(us * US)),
    ]
}

fn profile() -> impl Strategy<Value = Profile> {
    let thresholds = prop_oneof![
        (0u64..20_000, 1u64..40_000)
            .prop_map(|(min, more)| (Limit::Bytes(min), Limit::Bytes(min + more))),
        (0u32..10, 1u32..20)
            .prop_map(|(min, more)| (Limit::Packets(min), Limit::Packets(min + more))),
        (0u64..20, 1u64..40)
            .prop_map(|(min, more)| (Limit::Time(min * US), Limit::Time((min + more) * US))),
    ];
    (thresholds, 1u32..1_000_000).prop_map(|((min, max), max_p)| Profile { min, max, max_p })
}

fn red() -> impl Strategy<Value = Queue> {
    let how = (any::<bool>(), any::<bool>(), any::<bool>(), 0u32..10, 40u16..1_500);
    (
        limit(),
        profile(),
        prop::option::of(profile()),
        how,
        prop::option::of(0u32..1_000_000),
        protection(),
    )
        .prop_map(
            |(
                limit,
                profile,
                not_ect,
                (gentle, in_packets, linux, weight, mean_packet),
                mark_p,
                protection,
            )| {
                let reading = if linux { Reading::Linux } else { Reading::Ns2 };
                let red = Red {
                    limit,
                    profile,
                    not_ect,
                    gentle,
                    weight,
                    in_packets,
                    mean_packet,
                    reading,
                    mark_p,
                    protection,
                };
                Queue::Red(red)
            },
        )
}

fn codel() -> impl Strategy<Value = Queue> {
    (limit(), 0u64..100, 1u64..500, protection()).prop_map(
        |(limit, target, interval, protection)| {
            Queue::CoDel(CoDel { limit, target: target * US, interval: interval * US, protection })
        },
    )
}

fn pause() -> impl Strategy<Value = Pause> {
    (1_500u64..20_000, 0u64..20_000, 0u64..20_000).prop_map(|(xoff, below, more)| Pause {
        xoff,
        xon: (xoff - 1).saturating_sub(below),
        buffer: xoff + more,
        per_level: false,
    })
}

/// A part of a limit; without one, packets.
fn share(limit: Limit, percent: u32) -> Limit {
    let part = |whole: u64| whole * u64::from(percent) / 100;
    match limit {
        Limit::None => Limit::Packets(percent),
        Limit::Bytes(bytes) => Limit::Bytes(part(bytes)),
        Limit::Packets(packets) => Limit::Packets(part(packets.into()) as u32),
        Limit::Time(time) => Limit::Time(part(time)),
    }
}

fn queue() -> impl Strategy<Value = Queue> {
    let bytes = 1_500u64..60_000;
    prop_oneof![
        bytes.clone().prop_map(|limit| Queue::DropTail(Limit::Bytes(limit))),
        (1u32..40).prop_map(|n| Queue::DropTail(Limit::Packets(n))),
        (bytes.clone(), 0u64..30_000).prop_map(|(limit, mark)| Queue::Marking(Marking {
            limit,
            threshold: mark.min(limit)
        })),
        bytes.clone().prop_map(|limit| Queue::Priority(Priority { limit })),
        bytes.prop_map(|limit| Queue::PFabric(PFabric { limit })),
        (limit(), 0u32..=100).prop_map(|(limit, percent)| {
            Queue::Threshold(Threshold { limit, threshold: share(limit, percent) })
        }),
        red(),
        codel(),
        asked(),
    ]
}

/// Queues that a link asks for every packet, and PIE.
fn asked() -> impl Strategy<Value = Queue> {
    let control = (1u64..100, 10u64..100, 1u64..1 << 30, 0u64..1 << 30).prop_map(
        |(target, update, alpha, beta)| PiController {
            target: target * US,
            update: update * US,
            alpha,
            beta,
        },
    );
    prop_oneof![
        (1_500u64..60_000, prop::array::uniform8(1u32..100))
            .prop_map(|(limit, weights)| Queue::Wfq(Wfq { limit, weights })),
        (
            1_500u64..60_000,
            (0u64..20_000, 1u64..20_000),
            1u32..=1_000_000,
            prop::option::of(prop::array::uniform8(1u32..100))
        )
            .prop_map(|(limit, (min, more), max_p, weights)| Queue::LevelRed(LevelRed {
                limit,
                min: min.min(limit),
                max: min + more,
                max_p,
                weights
            })),
        (1_500u64..60_000, 0u64..200, prop::collection::vec((2u64..50, any::<u8>()), 1..8))
            .prop_map(|(limit, base, mut list)| {
                // Every level has a time that is long enough.
                list.push((13, u8::MAX));
                let list: Vec<_> = list.into_iter().map(|(us, gates)| (us * US, gates)).collect();
                Queue::TimeAware(TimeAware::new(limit, base * US, &list).unwrap())
            }),
        (limit(), control.clone(), 0u64..200, 0u32..=1_000_000, protection()).prop_map(
            |(limit, control, burst, mark_p, protection)| {
                Queue::Pie(Pie { limit, control, burst: burst * US, mark_p, protection })
            }
        ),
        (1_500u64..60_000, control, 1u32..5, (0u64..100, 0u64..100), 1u32..100).prop_map(
            |(limit, control, coupling, (least, range), classic_share)| {
                let (least, range) = (least * US, range * US);
                Queue::DualPi2(DualPi2 { limit, control, coupling, least, range, classic_share })
            }
        ),
    ]
}

fn per_host() -> impl Strategy<Value = Limiter> {
    let mode = prop_oneof![Just(Mode::Delay), Just(Mode::Drop)];
    let epochs =
        prop_oneof![Just(Epochs::FirstPacket), Just(Epochs::Rolling), Just(Epochs::Aligned)];
    (10u64..500, 1_500u64..20_000, mode, epochs, prop::option::of(1u32..20)).prop_map(
        |(us, b, mode, epochs, limit)| {
            Limiter::PerHost(PerHost { mode, epochs, limit, ..PerHost::new(us * US, [b; 8]) })
        },
    )
}

fn scheme() -> impl Strategy<Value = Scheme> {
    let limiter = prop_oneof![
        Just(Limiter::None),
        (10u64..500, 1_500u64..20_000)
            .prop_map(|(us, b)| Limiter::PerFlow { epoch: us * US, budgets: [b; 8] }),
        per_host(),
        (1u64..20).prop_map(|us| Limiter::Aequitas(Aequitas {
            targets: [Some(us * US), None, None, None, None, None, None, None],
            ..Aequitas::default()
        })),
    ];
    let base = prop_oneof![Just(Scheme::tcp()), Just(Scheme::dctcp()), Just(Scheme::pfabric())];
    let routing = prop_oneof![Just(Routing::Spray), Just(Routing::PerFlow)];
    let congestion = prop_oneof![
        Just(None),
        Just(Some(Congestion::Reno)),
        Just(Some(Congestion::Ecn)),
        Just(Some(Congestion::Cubic)),
        (0u32..=20).prop_map(|shift| Some(Congestion::Dctcp(Dctcp { shift }))),
        Just(Some(Congestion::Swift(Swift::default()))),
        Just(Some(Congestion::Bbr)),
        Just(Some(Congestion::Dcqcn(Dcqcn::default()))),
        (1u8..8).prop_map(|scheduled| Some(Congestion::Homa(Homa { scheduled }))),
    ];
    let times = (prop::option::of(1u64..2_000), prop::option::of(1u64..5_000));
    let recovery = prop_oneof![
        3 => Just(Recovery::Tcp), 1 => Just(Recovery::GoBackN), 1 => Just(Recovery::Selective)
    ];
    let transport =
        (prop::option::of(1u32..5), 0u32..3, congestion, any::<bool>(), times, recovery);
    let queues = (queue(), prop::option::of(queue()), prop::option::weighted(0.4, pause()));
    (base, queues, limiter, routing, transport).prop_map(
        |(
            mut scheme,
            queues,
            limiter,
            routing,
            (dupacks, connections, congestion, sack, (delay, handshake), recovery),
        )| {
            (scheme.queue, scheme.host_queue, scheme.pause) = queues;
            let is_pie = |queue: &Queue| matches!(queue, Queue::Pie(_));
            if is_pie(&scheme.queue) || scheme.host_queue.as_ref().is_some_and(is_pie) {
                scheme.pause = None;
            }
            scheme.limiter = limiter;
            scheme.routing = routing;
            scheme.transport.dupacks = dupacks;
            scheme.transport.connections = connections;
            scheme.transport.congestion = congestion.unwrap_or(scheme.transport.congestion);
            scheme.transport.sack = sack;
            scheme.transport.delayed_ack = delay.map(|us| us * US);
            scheme.transport.handshake = handshake.map(|us| us * US);
            scheme.transport.fixed_rto &= bears_fixed_rto(&scheme);
            recover(&mut scheme.transport, recovery);
            // What a limiter drops, Homa's receivers ask for again without end, which is refused.
            if matches!(scheme.transport.congestion, Congestion::Homa { .. }) {
                scheme.limiter = match scheme.limiter {
                    Limiter::PerFlow { .. } => Limiter::None,
                    Limiter::PerHost(rule) => {
                        Limiter::PerHost(PerHost { mode: Mode::Delay, limit: None, ..rule })
                    }
                    other => other,
                };
            }
            // Doubled without end, a timeout makes a flow that is starved on purpose last for
            // hours.
            scheme.transport.max_rto = 10 * MS;
            scheme
        },
    )
}

/// Sets how losses are made good, where the law can, with what that needs.
fn recover(t: &mut Transport, recovery: Recovery) {
    if matches!(t.congestion, Congestion::Homa { .. }) {
        return;
    }
    t.recovery = recovery;
    match recovery {
        Recovery::Tcp => {}
        Recovery::GoBackN => (t.sack, t.dupacks) = (false, None),
        Recovery::Selective => {
            (t.sack, t.dupacks, t.probe_after) = (true, t.dupacks.or(Some(1)), None);
            t.low_rto = Some(t.min_rto / 3);
        }
    }
}

/// Whether a timeout that is never doubled comes to an end: it fills a queue without a limit faster
/// than that empties, and can keep step with a limiter's epochs for ever.
fn bears_fixed_rto(scheme: &Scheme) -> bool {
    let is_limited = |queue: &Queue| match *queue {
        Queue::Threshold(Threshold { limit, .. }) => limit != Limit::None,
        Queue::Red(red) => red.limit != Limit::None,
        Queue::CoDel(codel) => codel.limit != Limit::None,
        Queue::Pie(pie) => pie.limit != Limit::None,
        _ => true,
    };
    matches!(scheme.limiter, Limiter::None)
        && is_limited(&scheme.queue)
        && scheme.host_queue.as_ref().is_none_or(is_limited)
}

fn fabric() -> impl Strategy<Value = LeafSpine> {
    let cable = (1u64..16, 0u64..5_000)
        .prop_map(|(gb, ns)| Cable { rate: gb * 1_000_000_000, delay: ns * NS });
    (1u32..4, 2u32..5, 1u32..4, cable.clone(), cable).prop_map(
        |(racks, hosts_per_rack, spines, edge, uplink)| LeafSpine {
            racks,
            hosts_per_rack,
            spines,
            edge,
            uplink,
        },
    )
}

fn flows() -> impl Strategy<Value = Vec<FlowSpec>> {
    let flow = (0u64..300, 0u32..12, 1u32..12, 1u32..200)
        .prop_map(|(us, src, over, packets)| FlowSpec { start: us * US, src, dst: over, packets });
    prop::collection::vec(flow, 1..20)
}

fn sources() -> impl Strategy<Value = Vec<Source>> {
    let gap = prop_oneof![
        (0u64..20).prop_map(|us| Gap::Every(us * US)),
        (1u64..20).prop_map(|us| Gap::Poisson(us * US))
    ];
    let bytes =
        prop_oneof![(1u16..1_500).prop_map(Bytes::Fixed), (1u16..300).prop_map(Bytes::Exponential)];
    let source = (0u32..12, 1u32..12, 0u8..8, gap, bytes, 0u64..50).prop_map(
        |(src, dst, level, gap, bytes, count)| Source {
            src,
            dst,
            level,
            first: 3 * US,
            gap,
            bytes,
            count,
        },
    );
    prop::collection::vec(source, 0..5)
}

/// By host.
fn jitter() -> impl Strategy<Value = BTreeMap<u32, Quantiles>> {
    let quantiles = (0u64..20, 0u64..40, 1u32..100).prop_map(|(least, more, percent)| {
        let points =
            [(0.0, least * US), (percent.into(), least * US), (100.0, (least + more) * US)];
        Quantiles::new(&points).unwrap()
    });
    prop::collection::btree_map(0u32..6, quantiles, 0..4)
}

/// Ends drawn for 12 hosts, brought to as many as there are, and apart.
fn ends(src: u32, over: u32, hosts: u32) -> (u32, u32) {
    let src = src % hosts;
    (src, (src + 1 + over % (hosts - 1)) % hosts)
}

fn kept(c: &Counters) -> bool {
    let dropped = c.full.total() + c.pushed_out.total() + c.early.total() + c.limited.total();
    c.sent.total() == c.delivered.total() + dropped + c.in_flight
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Settings have one form in which they are written, which holds all of them.
    #[test]
    fn a_scheme_that_is_written_is_read(scheme in scheme()) {
        let text = serde_json::to_string(&scheme).unwrap();
        prop_assert_eq!(serde_json::from_str::<Scheme>(&text).unwrap(), scheme);
    }

    /// At every stop; at the end nothing is in flight, every flow has finished and every packet has
    /// been received.
    #[test]
    fn packets_are_conserved(
        scheme in scheme(), fabric in fabric(), mut flows in flows(), mut sources in sources(),
        jitter in jitter(), seed: u64,
    ) {
        let mut topology = Topology::leaf_spine(&fabric).unwrap();
        let hosts = topology.hosts();
        for (host, quantiles) in jitter.into_iter().filter(|(host, _)| *host < hosts) {
            topology.set_jitter(host, quantiles).unwrap();
        }
        for flow in &mut flows {
            (flow.src, flow.dst) = ends(flow.src, flow.dst, hosts);
        }
        for source in &mut sources {
            (source.src, source.dst) = ends(source.src, source.dst, hosts);
        }
        let workload = Workload { flows: Flows::List(flows), sources, apps: Vec::new() };
        let mut simulation = Simulation::new(&topology, &scheme, &workload, seed).unwrap();
        for stop in [0, 2 * US, 7 * US, 20 * US, 100 * US, 350 * US, 2 * MS] {
            simulation.run_until(stop);
            let counters = simulation.outcome().counters;
            prop_assert!(kept(&counters), "at {stop} ps: {counters:?}");
        }
        simulation.run_until(1_000 * S);
        let outcome = simulation.outcome();
        let mut watching = Simulation::watching(&topology, &scheme, &workload, seed).unwrap();
        watching.run_until(1_000 * S);
        prop_assert_eq!(&watching.outcome(), &outcome, "watching ports changes the outcome");
        let ports = watching.ports();
        let (full, early): (Vec<u64>, Vec<u64>) =
            ports.iter().map(|port| (port.full, port.early)).unzip();
        let counted = &outcome.counters;
        prop_assert_eq!(
            (full.iter().sum::<u64>(), early.iter().sum::<u64>()),
            (counted.full.total() + counted.pushed_out.total(), counted.early.total())
        );
        let stop = Some(1_000 * S);
        let straight = Scenario { seed, stop, ..Scenario::new(topology, scheme, workload) }
            .run()
            .unwrap();
        prop_assert_eq!(&straight, &outcome, "stops on the way change the outcome");
        prop_assert!(kept(&outcome.counters), "{:?}", outcome.counters);
        prop_assert_eq!(outcome.counters.in_flight, 0);
        prop_assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()));
        prop_assert!(simulation.is_clean(), "a slot or a packet of the pool was not given back");
        let delivered: u64 = outcome.sources.iter().map(|source| source.delivered).sum();
        prop_assert_eq!(delivered, outcome.counters.delivered.datagrams);
    }

    /// Nodes, cables, flows and sources may be given in any order.
    #[test]
    fn order_of_building_does_not_matter(
        scheme in scheme(), flows in flows(), sources in sources(), seed: u64,
        swaps in prop::collection::vec(0usize..1000, 30),
    ) {
        let build = |shuffle: &dyn Fn(usize) -> Vec<usize>| {
            let mut tree = Tree::new();
            for i in shuffle(3) {
                tree = tree.switch(["s0", "s1", "s2"][i]);
            }
            for i in shuffle(6) {
                tree = tree.host(["a", "b", "c", "d", "e", "f"][i]);
            }
            let ends = [
                ("s0", "s1"), ("s2", "s0"), ("a", "s0"), ("s1", "b"), ("c", "s1"), ("d", "s1"),
                ("s2", "e"), ("f", "s2"),
            ];
            for i in shuffle(ends.len()) {
                let cable = Cable { rate: [1, 2, 4, 5][i % 4] * 1_000_000_000, delay: US };
                tree = tree.cable(ends[i].0, ends[i].1, cable);
            }
            let topology = tree.build().unwrap();
            let flows = shuffle(flows.len()).into_iter().map(|i| {
                let (src, dst) = ends_of(flows[i].src, flows[i].dst);
                FlowSpec { src, dst, ..flows[i] }
            });
            let sources = shuffle(sources.len()).into_iter().map(|i| {
                let (src, dst) = ends_of(sources[i].src, sources[i].dst);
                Source { src, dst, ..sources[i] }
            });
            let (flows, sources) = (Flows::List(flows.collect()), sources.collect());
            let workload = Workload { flows, sources, apps: Vec::new() };
            Scenario { seed, stop: Some(20 * MS), ..Scenario::new(topology, scheme, workload) }
                .run()
                .unwrap()
        };
        let straight = build(&|n| (0..n).collect());
        let shuffled = build(&|n| {
            let mut order: Vec<usize> = (0..n).collect();
            for (i, swap) in swaps.iter().enumerate().filter(|_| n > 0) {
                order.swap(i % n, swap % n);
            }
            order
        });
        prop_assert_eq!(straight, shuffled);
    }
}

fn ends_of(src: u32, over: u32) -> (u32, u32) {
    ends(src, over, 6)
}

/// A number that changes when a completion time or a count does (FNV-1a over 64-bit words).
fn digest(outcome: &Outcome) -> u64 {
    let c = &outcome.counters;
    let counts =
        [c.hops, c.events, c.sent.data, c.full.total(), c.pushed_out.total(), c.marked, c.timeouts];
    let times = outcome.flows.iter().map(|flow| flow.finish.unwrap());
    times
        .chain(counts)
        .fold(0xcbf2_9ce4_8422_2325, |sum: u64, word| (sum ^ word).wrapping_mul(0x0100_0000_01b3))
}

/// Pinned: the same on every machine. A change of these is a change of results, and belongs into
/// the change log.
#[test]
fn outcomes_are_pinned() {
    let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
    for (name, pinned) in PINNED {
        let sizes = Sizes::web_search();
        let workload = Workload::of_flows(Flows::Drawn {
            arrivals: Arrivals::Poisson,
            sizes,
            load: 0.8,
            count: 200,
        });
        let scheme = Scheme::named(name, &topology).unwrap();
        let run = |seed| {
            Scenario { seed, ..Scenario::new(topology.clone(), scheme, workload.clone()) }.run()
        };
        let outcome = run(1).unwrap();
        assert_eq!(outcome, run(1).unwrap(), "{name}");
        assert_ne!(outcome, run(2).unwrap(), "{name}: another seed is another run");
        assert_eq!(digest(&outcome), pinned, "{name}");
    }
}

const PINNED: [(&str, u64); 5] = [
    ("tcp", 11_174_708_808_255_395_497),
    ("dctcp", 14_622_901_468_491_788_882),
    ("pfabric", 10_719_754_700_525_283_264),
    ("qjump-script", 10_833_806_600_132_751_147),
    ("qjump-paper", 14_421_566_068_846_187_469),
];

/// The transports of today, in Figure 9's fabric with shallow queues: losses, marks, delayed ACKs
/// and connection setup.
#[test]
fn outcomes_of_todays_transports_are_pinned() {
    let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
    let workload = Workload::of_flows(Flows::Drawn {
        arrivals: Arrivals::Poisson,
        sizes: Sizes::web_search(),
        load: 0.6,
        count: 200,
    });
    let drop_tail = Queue::DropTail(Limit::Packets(30));
    let marking = Queue::Marking(Marking { limit: 36_000, threshold: 15_000 });
    let newreno = Transport { sack: false, ..Transport::linux(Congestion::Reno) };
    // As in the study of ECN under Hadoop: large ACKs, and timeouts by RFC 6298.
    let hadoop = |congestion| Transport {
        ack_bytes: 150,
        rto_above_rtt: false,
        ..Transport::linux(congestion)
    };
    let kinds = [
        ("reno", Transport::linux(Congestion::Reno), drop_tail),
        ("newreno", newreno, drop_tail),
        ("cubic", Transport::linux(Congestion::Cubic), drop_tail),
        ("tcp-ecn", hadoop(Congestion::Ecn), marking),
        ("dctcp", hadoop(Congestion::Dctcp(Dctcp { shift: 4 })), marking),
    ];
    let digests = kinds.map(|(name, transport, queue)| {
        let scheme = Scheme { transport, queue, routing: Routing::PerFlow, ..Scheme::tcp() };
        let run = |seed| {
            Scenario { seed, ..Scenario::new(topology.clone(), scheme, workload.clone()) }.run()
        };
        let outcome = run(1).unwrap();
        assert_eq!(outcome, run(1).unwrap(), "{name}");
        let c = &outcome.counters;
        assert!(c.full.data > 0 && c.retransmitted > 0 && c.sent.syns >= 200, "{name}: {c:?}");
        assert_eq!(c.latency.packets + c.latency_again.packets, c.delivered.data, "{name}");
        digest(&outcome)
    });
    assert_eq!(digests, PINNED_TODAY);
}

const PINNED_TODAY: [u64; 5] = [
    14_082_819_025_046_350_040,
    14_702_505_913_298_383_010,
    17_565_680_249_263_432_353,
    12_196_259_421_763_693_770,
    7_895_868_036_705_680_913,
];

/// A scheme's parts that do not fit, a network or traffic that cannot be: one sentence that says
/// where.
#[test]
fn wrong_input_is_told() {
    let cable = Cable { rate: 1_000_000_000, delay: 0 };
    let tree = |a: &str, b: &str| {
        Tree::new()
            .switch("s")
            .host("h")
            .host("i")
            .cable("h", "s", cable)
            .cable(a, b, cable)
            .build()
    };
    let said = |result: qjump_sim::Result<Topology>| result.unwrap_err().to_string();
    assert_eq!(said(tree("i", "t")), "cable i--t: there is no node t");
    assert_eq!(said(tree("h", "i")), "cable h--i: joins two hosts");
    assert_eq!(said(tree("h", "s")), "cable h--s: its host has a cable already");
    assert_eq!(said(tree("s", "s")), "cable s--s: joins a switch to itself");
    assert_eq!(said(Tree::new().switch("s").host("i").build()), "host i: has no cable");
    let ring = Tree::new()
        .switch("x")
        .switch("y")
        .host("h")
        .cable("x", "y", cable)
        .cable("y", "x", cable)
        .cable("h", "x", cable);
    assert!(said(ring.build()).contains("loop"));
    let parts = Tree::new().switch("x").switch("y").host("h").cable("h", "x", cable);
    assert!(said(parts.build()).contains("must be connected"));
    let slow = Cable { rate: 0, ..cable };
    assert_eq!(
        said(Topology::leaf_spine(&LeafSpine { uplink: slow, ..LeafSpine::FIG9 })),
        "uplink: a link's rate is 0 bit/s: it must be above 0"
    );
    let wide = |racks, spines| {
        said(Topology::leaf_spine(&LeafSpine {
            racks,
            hosts_per_rack: 1,
            spines,
            ..LeafSpine::FIG9
        }))
    };
    let most = "is larger than the most, 65535 and 8388608";
    assert_eq!(
        wide(65_536, 129),
        format!("a network of 129 spines and 8454144 cables to them {most}")
    );
    assert_eq!(
        wide(2, 65_536),
        format!("a network of 65536 spines and 131072 cables to them {most}")
    );
    assert_eq!(
        wide(u32::MAX, u32::MAX),
        "a network of 4294967295 hosts is larger than the most, 16777216"
    );
    let mut drawing = tree("i", "s").unwrap();
    let quantiles = Quantiles::new(&[(0.0, 0), (100.0, US)]).unwrap();
    let mut drawn_at =
        |host| drawing.set_jitter(host, quantiles.clone()).err().map(|error| error.to_string());
    assert_eq!(drawn_at(0), None);
    assert_eq!(drawn_at(0).unwrap(), "host 0 has quantiles already");
    assert_eq!(drawn_at(2).unwrap(), "there is no host 2 among 2");
    let parse = |text: &str| Flows::parse(text).unwrap_err().to_string();
    assert_eq!(
        parse("0.1 0 1 6\n0.2 0 x 6"),
        "line 2: expected seconds, source, destination and packets (got 0.2 0 x 6)"
    );
    let topology = tree("i", "s").unwrap();
    let run = |scheme: &Scheme, flow: (u32, u32, u32)| {
        let flow = FlowSpec { start: 7, src: flow.0, dst: flow.1, packets: flow.2 };
        let workload = Workload::of_flows(Flows::List(vec![flow]));
        Simulation::new(&topology, scheme, &workload, 1).err().map(|error| error.to_string())
    };
    let tcp = Scheme::tcp();
    assert_eq!(run(&tcp, (0, 1, 6)), None);
    assert_eq!(run(&tcp, (0, 9, 6)).unwrap(), "flow at 7 ps: there is no host 9 among 2");
    assert_eq!(run(&tcp, (1, 1, 6)).unwrap(), "flow at 7 ps: host 1 sends to itself");
    assert!(run(&tcp, (0, 1, 0)).unwrap().contains("0 packets"));
    let mut wide = tcp;
    wide.transport.max_window = 5;
    assert!(run(&wide, (0, 1, 6)).unwrap().starts_with("transport: the initial window of 12"));
    let wrong = |change: fn(&mut Transport)| {
        let mut scheme = tcp;
        change(&mut scheme.transport);
        run(&scheme, (0, 1, 6)).unwrap()
    };
    assert!(wrong(|t| t.congestion = Congestion::Dctcp(Dctcp { shift: 21 }))
        .starts_with("transport: DCTCP's g is below 2^-20"));
    assert!(
        wrong(|t| t.delayed_ack = Some(0)).starts_with("transport: delayed_ack must be above 0 ps")
    );
    assert!(wrong(|t| t.delayed_ack = Some(1001 * S))
        .starts_with("transport: ACKs are delayed by more than 1000 s"));
    assert!(wrong(|t| t.dupacks = Some(0)).starts_with("transport: dupacks must be above 0"));
    assert!(wrong(|t| t.least_window = 0).starts_with("transport: a least window of 0 packets"));
    assert!(wrong(|t| t.least_window = t.max_window + 1)
        .ends_with("packets must be 1 to the largest one"));
    assert!(wrong(|t| t.handshake = Some(0))
        .starts_with("transport: the timeout of a SYN must be between"));
    assert_eq!(
        wrong(|t| t.initial_rto = Some(3 * S)),
        "transport: the first timeout must be between 0 and the largest, 2 s"
    );
    let least = wrong(|t| (t.min_rto, t.max_rto) = (300 * US, 200 * US));
    assert!(
        least.starts_with(
            "transport: the smallest timeout of 300 us must be above 0 and at most the largest, \
             200 us"
        ),
        "{least}"
    );
    assert!(wrong(|t| t.handshake = Some(3 * S)).ends_with("the largest, 2 s"));
    let late = |flows: Flows| {
        Simulation::new(&topology, &tcp, &Workload::of_flows(flows), 1)
            .err()
            .map(|error| error.to_string())
    };
    let rare = Flows::Drawn {
        arrivals: Arrivals::Poisson,
        sizes: Sizes::web_search(),
        load: 1e-9,
        count: 3_000,
    };
    let said = late(rare).unwrap();
    let far = "is so small that flows start after 4611686018427387904 ps, beyond what can be \
               simulated: raise it";
    assert_eq!(said, format!("flows.load: 0.000000001 {far}"));
    let huge = Sizes::new(&[(1, 0.0), (u32::MAX, 1.0)]).unwrap();
    let said =
        late(Flows::Drawn { arrivals: Arrivals::Poisson, sizes: huge, load: 0.5, count: 20 })
            .unwrap();
    assert!(said.ends_with("packets must be between 1 and 2^31 - 1"), "{said}");
    let never = Flows::Drawn {
        arrivals: Arrivals::Poisson,
        sizes: Sizes::web_search(),
        load: 1e-300,
        count: 2,
    };
    assert!(late(never).unwrap().ends_with(far));
    let at = |start| late(Flows::List(vec![FlowSpec { start, src: 0, dst: 1, packets: 6 }]));
    let after =
        "flow at 4611686018427387905 ps: it starts after 4611686018427387904 ps: start it earlier";
    assert_eq!((at(1 << 62), at((1 << 62) + 1).as_deref()), (None, Some(after)));
    let tight = Scheme { limiter: Limiter::PerFlow { epoch: US, budgets: [1_000; 8] }, ..tcp };
    assert!(run(&tight, (0, 1, 6)).unwrap().starts_with("limiter: level 0 has 1000 bytes"));
    let none = Scheme {
        limiter: Limiter::PerHost(PerHost { limit: Some(0), ..PerHost::new(US, [9_000; 8]) }),
        ..tcp
    };
    assert_eq!(
        run(&none, (0, 1, 6)).unwrap(),
        "limiter: its limit must be above 0 packets: use mode drop to let none wait"
    );
    let mut homa = Scheme::qjump_script();
    homa.transport.congestion = Congestion::Homa(Homa { scheduled: 6 });
    assert!(run(&homa, (0, 1, 6))
        .unwrap()
        .starts_with("limiter: Homa and NDP would retransmit dropped packets without end"));
    let short = Scheme { queue: Queue::DropTail(Limit::Bytes(1_000)), ..tcp };
    assert!(run(&short, (0, 1, 6)).unwrap().starts_with("queue: its limit of 1000 bytes"));
    assert_eq!(
        Sizes::new(&[(1, 0.0), (5, 0.5), (3, 1.0)]).unwrap_err().to_string(),
        "the point of 3 packets and share 1 must be above the one before it"
    );
    assert!(matches!(Scheme::dctcp().transport.congestion, Congestion::Dctcp(Dctcp { shift: 4 })));
}

/// The same of what is beyond what the simulator can tell, or holds no packet of some transport.
#[test]
fn what_does_not_fit_is_told() {
    let (tcp, cable) = (Scheme::tcp(), Cable { rate: 1_000_000_000, delay: 0 });
    let pair = LeafSpine { racks: 1, hosts_per_rack: 2, spines: 0, edge: cable, uplink: cable };
    let run = |scheme: &Scheme, pair: &LeafSpine, jitter| {
        let mut topology = Topology::leaf_spine(pair).unwrap();
        topology.set_jitter(0, Quantiles::new(&[(0.0, 0), (100.0, jitter)]).unwrap()).unwrap();
        Simulation::new(&topology, scheme, &Workload::of_sources(vec![]), 1)
            .err()
            .map(|error| error.to_string())
    };
    // A round trip of 35.18 s, of cables or of a host that draws.
    let far = |seconds, jitter| {
        run(&tcp, &LeafSpine { edge: Cable { delay: seconds * S, ..cable }, ..pair }, jitter)
    };
    assert_eq!((far(8, S), far(0, 17 * S)), (None, None));
    let round = "ps: its round trip must be below 35.18 s";
    assert_eq!(far(8, 2 * S).unwrap(), format!("network: a path may take 18000000000000 {round}"));
    assert_eq!(far(20, 0).unwrap(), format!("network: a path may take 40000000000000 {round}"));
    // ACKs of any transport.
    let other = |ack_bytes| [Some(Transport { ack_bytes, ..tcp.transport }), None, None];
    let tight = Scheme {
        limiter: Limiter::PerFlow { epoch: US, budgets: [2_000; 8] },
        others: other(3_000),
        ..tcp
    };
    assert_eq!(
        run(&tight, &pair, 0).unwrap(),
        "limiter: level 0 has 2000 bytes an epoch, less than a packet of 3000"
    );
    for limit in [Limit::Bytes(2_000), Limit::Time(16 * US)] {
        let short = Scheme { queue: Queue::DropTail(limit), others: other(3_000), ..tcp };
        assert!(run(&short, &pair, 0).unwrap().ends_with("packet of 3000"));
    }
    let long = Scheme { limiter: Limiter::PerHost(PerHost::new(1_001 * S, [9_000; 8])), ..tcp };
    assert_eq!(
        run(&long, &pair, 0).unwrap(),
        "limiter: its epoch of 1001000000000000 ps must be above 0 and at most 1000 s"
    );
    // Thresholds of RED that its average would not hold, by packets and by the link's rate, 1 Gb/s;
    // and a longer time that it does.
    let red = |min, max| {
        let mut scheme = tcp;
        scheme.queue = Queue::Red(Red::ns2(min, max, Limit::None));
        run(&scheme, &pair, 0)
    };
    let largest = "must be below 2^37";
    assert!(red(Limit::Packets(1), Limit::Packets(1 << 31)).unwrap().ends_with(largest));
    assert!(red(Limit::Bytes(1), Limit::Bytes(1 << 37)).unwrap().ends_with(largest));
    let time = red(Limit::Time(1), Limit::Time(8_000 << 37)).unwrap();
    assert_eq!(
        time,
        format!("queue: at 1000000000 bit/s a threshold of 137438953472 bytes {largest}")
    );
    assert_eq!(red(Limit::Time(1), Limit::Time(8_000 << 36)), None);
}

/// Those of queues that no published scheme has.
#[test]
fn queues_are_pinned() {
    let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
    let (min, max, limit) = (Limit::Bytes(15_000), Limit::Bytes(45_000), Limit::Packets(150));
    let codel =
        CoDel { limit, target: 20 * US, interval: 200 * US, protection: Protection::AckSyn };
    let pause = Pause {
        xoff: 30_000,
        xon: 15_000,
        buffer: 30_000 + Pause::headroom(2_700_000, 800, 1_500),
        per_level: false,
    };
    let mut dctcp = Scheme::dctcp();
    dctcp.transport.ect_again = false;
    let schemes = [
        Scheme {
            queue: Queue::Threshold(Threshold { limit, threshold: Limit::Packets(20) }),
            ..dctcp
        },
        Scheme { queue: Queue::Red(Red::ns2(min, max, limit)), ..dctcp },
        Scheme { queue: Queue::Red(Red::linux(min, max, limit)), ..Scheme::tcp() },
        Scheme {
            queue: Queue::CoDel(codel),
            host_queue: Some(Queue::DropTail(Limit::None)),
            ..dctcp
        },
        Scheme { queue: Queue::DropTail(Limit::None), pause: Some(pause), ..Scheme::tcp() },
    ];
    let run = |scheme, seed| {
        let flows = Flows::Drawn {
            arrivals: Arrivals::Poisson,
            sizes: Sizes::web_search(),
            load: 0.8,
            count: 200,
        };
        Scenario { seed, ..Scenario::new(topology.clone(), scheme, Workload::of_flows(flows)) }
            .run()
            .unwrap()
    };
    let outcomes = schemes.map(|scheme| run(scheme, 1));
    assert_eq!(outcomes.each_ref().map(digest), PINNED_QUEUES);
    let [_, ns2, linux, codel, pause] = outcomes.each_ref().map(|outcome| outcome.counters);
    assert!(ns2.early.data > 0 && linux.early.data > 0 && codel.marked > 0);
    // Of DCTCP's packets only those that are sent again cannot be marked.
    assert!(
        0 < codel.early.data
            && codel.early.data == codel.early.total()
            && codel.early.data <= codel.retransmitted
    );
    assert!(pause.pauses > 0 && pause.full.total() == 0);
}

const PINNED_QUEUES: [u64; 5] = [
    17_435_424_308_375_096_571,
    16_804_340_954_929_209_696,
    1_851_388_542_506_193_539,
    17_313_420_193_062_244_082,
    2_867_934_277_366_647_806,
];
