// SPDX-License-Identifier: GPL-2.0-or-later
//! Times that can be worked out by hand, to the picosecond.

use qjump_sim::{
    Bytes, Cable, FlowSpec, Flows, Gap, Graph, LeafSpine, Limiter, Outcome, PerHost, Ps, Routing,
    Scenario, Scheme, Simulation, Source, Topology, Tree, Workload, MS, NS, US,
};

fn fabric() -> Topology {
    Topology::leaf_spine(&LeafSpine::FIG9).unwrap()
}

fn alone(scheme: Scheme, dst: u32, packets: u32) -> Outcome {
    let flow = FlowSpec { start: 5 * US, src: 3, dst, packets };
    let workload = Workload::of_flows(Flows::List(vec![flow]));
    Scenario::new(fabric(), scheme, workload).run().unwrap()
}

fn completion(outcome: &Outcome) -> Ps {
    outcome.flows[0].finish.unwrap() - outcome.flows[0].start
}

const PUBLISHED: [&str; 5] = ["tcp", "dctcp", "pfabric", "qjump-script", "qjump-paper"];

/// A packet takes 1.2 us at 10 Gb/s and 0.3 us at 40 Gb/s, its ACK 32 and 8 ns; a rack is left and
/// entered by links of 2.7 us, a spine by links of 0.2 us. That makes 13.264 us in a rack and
/// 14.680 us across for the first packet and its ACK.
#[test]
fn uncontended_flows_take_their_closed_form() {
    for name in PUBLISHED {
        let scheme = Scheme::named(name, &fabric()).unwrap();
        let time = |dst, packets| completion(&alone(scheme, dst, packets));
        assert_eq!([time(4, 1), time(4, 6)], [13_264_000, 19_264_000], "{name}");
        assert_eq!([time(40, 1), time(40, 6)], [14_680_000, 20_680_000], "{name}");
        // In the rack the first ACK comes before the initial window of 12 has left (14.4 us): the
        // host never idles. Across it comes 0.28 us after, once.
        assert_eq!(time(4, 100), 99 * 1_200_000 + 13_264_000, "{name}");
        assert_eq!(time(40, 100), 99 * 1_200_000 + 14_680_000 + 280_000, "{name}");
    }
}

/// Racks of one host: memory is for hosts and links, not for pairs of racks.
#[test]
fn a_fabric_may_have_100000_racks() {
    let topology =
        Topology::leaf_spine(&LeafSpine { racks: 100_000, hosts_per_rack: 1, ..LeafSpine::FIG9 })
            .unwrap();
    let flow = |src, dst| FlowSpec { start: 0, src, dst, packets: 6 };
    let workload = Workload::of_flows(Flows::List(vec![
        flow(0, 65_536),
        flow(40_000, 1),
        flow(70_000, 90_000),
        flow(99_999, 2),
    ]));
    let outcome = Scenario::new(topology, Scheme::dctcp(), workload).run().unwrap();
    assert!(
        outcome.flows.iter().all(|flow| flow.finish == Some(20_680_000)),
        "{:?}",
        outcome.flows
    );
}

/// Numbers of hosts above 16 bits, with all schemes; a host whose number has the same lower bits
/// has a flow of its own.
#[test]
fn hosts_beyond_65536_are_themselves() {
    let flow = |src, dst, packets| FlowSpec { start: 0, src, dst, packets };
    let flows = vec![
        flow(70_000, 90_000, 6),
        flow(70_000 - 65_536, 90_000 - 65_536, 6),
        flow(90_001, 1, 1),
    ];
    let fabric =
        Topology::leaf_spine(&LeafSpine { racks: 2_500, hosts_per_rack: 40, ..LeafSpine::FIG9 })
            .unwrap();
    for name in ["tcp", "dctcp", "pfabric", "qjump-script", "qjump-paper", "homa", "aequitas"] {
        let scheme = Scheme::named(name, &fabric).unwrap();
        let workload = Workload::of_flows(Flows::List(flows.clone()));
        let outcome = Scenario::new(fabric.clone(), scheme, workload).run().unwrap();
        let took: Vec<_> =
            outcome.flows.iter().map(|flow| (flow.src, flow.dst, flow.finish.unwrap())).collect();
        // Across racks, as normalised: 1.2 us for each packet but the first, and 14.68 us.
        let expected =
            [(4_464, 24_464, 20_680_000), (70_000, 90_000, 20_680_000), (90_001, 1, 14_680_000)];
        assert_eq!(took, expected, "{name}");
    }
}

/// The same in a tree and in a graph, whose hosts have names: two switches with 50,000 each.
#[test]
fn named_hosts_beyond_65536_are_themselves() {
    let cable = LeafSpine::FIG9.edge;
    let tree = (0..100_000).fold(
        Tree::new().switch("s").switch("t").cable("s", "t", cable),
        |tree, host| {
            let name = format!("h{host:05}");
            tree.host(&name).cable(&name, if host < 50_000 { "s" } else { "t" }, cable)
        },
    );
    for topology in [tree.build().unwrap(), Graph::new(tree.clone()).build().unwrap()] {
        assert_eq!(topology.host("h90000"), Some(90_000));
        let flow = |src, dst| FlowSpec { start: 0, src, dst, packets: 6 };
        let workload =
            Workload::of_flows(Flows::List(vec![flow(70_000, 90_000), flow(4_464, 90_001)]));
        let outcome = Scenario::new(topology, Scheme::dctcp(), workload).run().unwrap();
        // Six packets over the first link, and the last of them, as its ACK of 40 bytes, over the
        // others; 2.7 us at each.
        let took = |links: u64| {
            6 * 1_200_000 + (links - 1) * 1_200_000 + links * 32_000 + 2 * links * 2_700_000
        };
        let finished: Vec<_> =
            outcome.flows.iter().map(|flow| (flow.src, flow.dst, flow.finish.unwrap())).collect();
        assert_eq!(finished, [(4_464, 90_001, took(3)), (70_000, 90_000, took(2))]);
    }
}

#[test]
fn a_datagram_is_stored_and_forwarded() {
    let cable = |rate, delay| Cable { rate, delay };
    let topology = Tree::new()
        .host("a")
        .host("b")
        .switch("s1")
        .switch("s2")
        .switch("s3")
        .cable("a", "s1", cable(10_000_000, 7 * NS))
        .cable("s1", "s2", cable(100_000_000, 5 * US))
        .cable("s2", "s3", cable(1_000_000_000, 0))
        .cable("s3", "b", cable(10_000_000_000, MS))
        .build()
        .unwrap();
    let (src, dst) = (topology.host("a").unwrap(), topology.host("b").unwrap());
    let ping = Source {
        src,
        dst,
        level: 0,
        first: 12_345,
        gap: Gap::Every(MS),
        bytes: Bytes::Fixed(98),
        count: 1,
    };
    let sources = vec![ping, Source { src: dst, dst: src, ..ping }];
    let workload = Workload::of_sources(sources);
    let scenario = Scenario::new(topology, Scheme::tcp(), workload);
    let outcome = scenario.run().unwrap();
    let serialisation = 98 * (800_000 + 80_000 + 8_000 + 800);
    let expected = serialisation + 7 * NS + 5 * US + MS;
    for source in &outcome.sources {
        assert_eq!((source.delivered, source.delay_sum), (1, u128::from(expected)));
    }
    assert_eq!(outcome.end, 12_345 + expected);
}

/// Rounds of 4 ms, in which the window doubles from 12 packets until it is the largest.
#[test]
fn slow_start_doubles_every_round() {
    let fabric = LeafSpine { edge: Cable { rate: 10_000_000_000, delay: MS }, ..LeafSpine::FIG9 };
    let topology = Topology::leaf_spine(&fabric).unwrap();
    let flow = FlowSpec { start: 0, src: 0, dst: 1, packets: 100_000 };
    let workload = Workload::of_flows(Flows::List(vec![flow]));
    let mut scheme = Scheme::tcp();
    scheme.transport.min_rto = 20 * MS;
    let mut simulation = Simulation::new(&topology, &scheme, &workload, 1).unwrap();
    let mut sent_until = |time| {
        simulation.run_until(time);
        simulation.outcome().counters.sent.data
    };
    let round_trip = 4 * MS + 2 * 1_232_000;
    let mut total = 0;
    for (round, window) in (0..).zip([12, 24, 48, 96, 149, 149]) {
        if round > 0 {
            assert_eq!(
                sent_until(round * round_trip - 1),
                total,
                "nothing before the first ACK of round {round}"
            );
        }
        total += window;
        assert_eq!(sent_until(round * round_trip + MS), total, "round {round}");
    }
}

/// The seventh packet exceeds the bucket of 9,000 bytes. The sixth's ACK comes after 19.264 us; the
/// timer expires 200 us later, then 400 and 800, when the bucket is full again.
#[test]
fn the_scripts_limiter_drops_and_the_timer_backs_off() {
    let mut scheme = Scheme::qjump_script();
    scheme.limiter = Limiter::PerFlow { epoch: 1_050 * US, budgets: [9_000; 8] };
    let outcome = alone(scheme, 4, 7);
    assert_eq!(completion(&outcome), 19_264_000 + 1_400 * US + 13_264_000);
    let c = outcome.counters;
    assert_eq!((c.sent.data, c.limited.data, c.timeouts, c.retransmitted), (10, 3, 3, 3));
}

/// The same with pFabric's transport: every 45 us without back-off, the fifth time with a probe,
/// which comes back after 4 · 2.732 us and tells the sender to go on.
#[test]
fn pfabric_probes_after_five_timeouts() {
    let mut scheme = Scheme::pfabric();
    scheme.limiter = Limiter::PerFlow { epoch: 250 * US, budgets: [9_000; 8] };
    let outcome = alone(scheme, 4, 7);
    assert_eq!(completion(&outcome), 19_264_000 + 5 * 45 * US + 10_928_000 + 13_264_000);
    let c = outcome.counters;
    assert_eq!((c.sent.data, c.sent.probes, c.limited.data, c.timeouts), (12, 1, 5, 5));
}

/// Six packets an epoch for each host: the seventh leaves one epoch after the first, and no timer
/// expires meanwhile.
#[test]
fn the_papers_limiter_delays() {
    let mut scheme = Scheme::qjump_script();
    scheme.limiter = Limiter::PerHost(PerHost::new(1_050 * US, [9_000; 8]));
    let outcome = alone(scheme, 4, 13);
    assert_eq!(completion(&outcome), 2 * 1_050 * US + 13_264_000);
    let c = outcome.counters;
    assert_eq!((c.sent.data, c.limited.data, c.timeouts), (13, 0, 0));
}

/// 151 packets at once for a queue of 150: the last is lost, and found by three packets above the
/// hole or by the timer only.
#[test]
fn fast_retransmit_is_an_option() {
    let time = |dupacks| {
        let mut scheme = Scheme::tcp();
        scheme.transport.max_window = 300;
        scheme.transport.dupacks = dupacks;
        let outcome = alone(scheme, 4, 2_000);
        assert!(outcome.counters.full.data > 0);
        (completion(&outcome), outcome.counters)
    };
    let (fast, by_dupacks) = time(Some(3));
    let (slow, by_timer) = time(None);
    assert_eq!(by_dupacks.timeouts, 0);
    assert!(by_timer.timeouts > 0);
    assert_eq!(by_dupacks.retransmitted, by_dupacks.full.data, "only what was lost is sent again");
    let ideal = 1_999 * 1_200_000 + 13_264_000;
    assert!(fast < ideal + ideal / 100 && fast + 50 * US < slow, "{ideal} {fast} {slow}");
}

/// 100 packets from one rack to another over four spines of 2.5 Gb/s: in turn they use all four and
/// none waits, by one path they wait for each other at the first of its links.
#[test]
fn paths_are_chosen_by_packet_or_by_flow() {
    let uplink = Cable { rate: 2_500_000_000, delay: 200 * NS };
    let topology = Topology::leaf_spine(&LeafSpine { uplink, ..LeafSpine::FIG9 }).unwrap();
    let burst = Source {
        src: 0,
        dst: 20,
        level: 0,
        first: 0,
        gap: Gap::Every(0),
        bytes: Bytes::Fixed(1_500),
        count: 100,
    };
    let last = |routing| {
        let scheme = Scheme { routing, ..Scheme::tcp() };
        let workload = Workload::of_sources(vec![burst]);
        Scenario::new(topology.clone(), scheme, workload).run().unwrap().end
    };
    let (edge, up, delays) = (1_200_000, 4_800_000, 2 * (2_700 + 200) * NS);
    assert_eq!(last(Routing::Spray), 100 * edge + 2 * up + edge + delays);
    assert_eq!(last(Routing::PerFlow), edge + 100 * up + up + edge + delays);
}
