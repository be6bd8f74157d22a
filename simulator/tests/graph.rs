// SPDX-License-Identifier: GPL-2.0-or-later
//! Any graph: the fat-tree of Al-Fares, Loukissas and Vahdat (SIGCOMM'08), and cables that fail.

use qjump_sim::{
    Bytes, Cable, CoDel, DualPi2, Failure, FlowSpec, Flows, Gap, Graph, Limit, Pause, Priority,
    Protection, Ps, Queue, RoundRobin, Routing, Scenario, Scheme, Simulation, Source, Threshold,
    TimeAware, Topology, Tree, Wfq, Workload, MS, US,
};

const GBIT: u64 = 1_000_000_000;
const CABLE: Cable = Cable { rate: 10 * GBIT, delay: US };

fn scheme(queue: Queue, routing: Routing) -> Scheme {
    Scheme { queue, routing, ..Scheme::tcp() }
}

fn source(src: u32, dst: u32, gap: Ps, count: u64) -> Source {
    Source { src, dst, level: 0, first: 0, gap: Gap::Every(gap), bytes: Bytes::Fixed(1_500), count }
}

fn fat_tree(k: u32) -> Topology {
    Graph::new(Graph::fat_tree(k, CABLE, CABLE).unwrap()).build().unwrap()
}

#[test]
fn hosts_of_a_fat_tree_are_numbered_by_their_place() {
    for (ports, hosts, name) in [(72, 93_312, "h00000"), (74, 101_306, "h000000")] {
        let tree = Graph::fat_tree(ports, CABLE, CABLE).unwrap();
        assert_eq!((tree.hosts().len(), tree.hosts()[0].as_str()), (hosts, name));
        assert!(tree.hosts().is_sorted());
    }
}

/// Section 2.2: k^3/4 hosts. Two under one edge switch are two cables apart, in a pod four, in
/// different pods six; an idle datagram takes each with 1.2 us of its own and 1 us of cable.
#[test]
fn a_fat_tree_has_the_published_distances() {
    for k in [2, 4, 6, 8] {
        let topology = fat_tree(k);
        assert_eq!(topology.hosts(), k * k * k / 4);
        let half = k / 2;
        let cables =
            |a: u32, b: u32| match (a / half == b / half, a / (half * half) == b / (half * half)) {
                (true, _) => 2u32,
                (false, true) => 4,
                _ => 6,
            };
        for other in 1..topology.hosts() {
            let workload = Workload::of_sources(vec![source(0, other, 0, 1)]);
            let scheme = scheme(Queue::DropTail(Limit::None), Routing::Spray);
            let outcome = Scenario::new(topology.clone(), scheme, workload).run().unwrap();
            assert_eq!(
                outcome.sources[0].delay_sum,
                u128::from(cables(0, other) * 2_200_000),
                "{k} {other}"
            );
            assert_eq!(outcome.counters.hops, u64::from(cables(0, other)));
        }
    }
}

/// There are (k/2)^2 paths between pods and k/2 within one (section 2.2): packets in turn use each
/// as often, and no more. A port of a core switch that a packet passes tells which path it took.
#[test]
fn packets_take_all_shortest_paths() {
    for (k, other, paths) in [(4, 15, 4), (8, 127, 16), (4, 2, 2)] {
        let topology = fat_tree(k);
        let count = u64::from(paths) * 10;
        let workload = Workload::of_sources(vec![source(0, other, 10 * US, count)]);
        let scheme = scheme(
            Queue::Threshold(Threshold { limit: Limit::None, threshold: Limit::Bytes(1 << 30) }),
            Routing::Spray,
        );
        let mut simulation = Simulation::watching(&topology, &scheme, &workload, 1).unwrap();
        simulation.run();
        assert_eq!(simulation.outcome().counters.delivered.datagrams, count);
        // Aggregation switches that used their ports down: in a pod those of the paths, between
        // pods core switches' ports are the paths.
        let used = simulation.ports().iter().filter(|port| port.longest > 0).count() as u32;
        // Up: host, k/2 to aggregation, (k/2)^2 to core; down the same. In a pod only the first two
        // and back.
        let half = k / 2;
        assert_eq!(used, 2 + 2 * half + if paths == half { 0 } else { 2 * paths });
    }
}

/// A rearrangeably non-blocking network (section 2.1): all hosts send to one of another pod at the
/// links' rate, and nothing is lost; queues stay short, for packets are in turn.
#[test]
fn all_hosts_send_at_full_rate() {
    let topology = fat_tree(4);
    let count = 5_000;
    let hosts = topology.hosts();
    let sources =
        (0..hosts).map(|src| source(src, (src + hosts / 2) % hosts, 1_200_000, count)).collect();
    let scheme = scheme(Queue::DropTail(Limit::Packets(16)), Routing::Spray);
    let workload = Workload::of_sources(sources);
    let outcome = Scenario::new(topology, scheme, workload).run().unwrap();
    assert_eq!(outcome.counters.delivered.datagrams, count * u64::from(hosts));
    // The last was handed over at 4,999 x 1.2 us; six links, and queues of a few packets.
    assert!(
        outcome.end < (count - 1) * 1_200_000 + 6 * 2_200_000 + 16 * 1_200_000,
        "{}",
        outcome.end
    );
}

/// `a` and `b` on switches that two others join: `m` and `n`.
fn diamond(failures: &[(&str, &str, Ps, Option<Ps>)]) -> Graph {
    let tree = ["s", "m", "n", "t"]
        .iter()
        .fold(Tree::new().host("a").host("b"), |tree, name| tree.switch(name));
    let tree = tree
        .cable("a", "s", CABLE)
        .cable("s", "m", CABLE)
        .cable("s", "n", CABLE)
        .cable("m", "t", CABLE)
        .cable("n", "t", CABLE);
    failures.iter().fold(
        Graph::new(tree.cable("t", "b", CABLE)),
        |graph, &(one, other, down, up)| {
            graph.failure(Failure { one: one.to_owned(), other: other.to_owned(), down, up })
        },
    )
}

/// Packets leave every 2.4 us from 0 on, in turn by `m` and `n`; packet i is at `s` at 2.4 i + 2.2
/// us and on its cable to `m` or `n` for 2.2 us from then on, then as long on the one to `t`. At
/// 100 us the cable s--m fails until 200 us: packets 40 (at s at 98.2 us, by `m`) and no other are
/// on it. All others come, at once by `n`, and by both when it works again.
#[test]
fn what_a_failing_cable_carries_is_lost_and_nothing_else() {
    let topology = diamond(&[("m", "s", 100 * US, Some(200 * US))]).build().unwrap();
    for (queue, name) in queues() {
        let workload = Workload::of_sources(vec![source(0, 1, 2_400_000, 200)]);
        let scheme = scheme(queue, Routing::Spray);
        let mut simulation = Simulation::watching(&topology, &scheme, &workload, 1).unwrap();
        simulation.run();
        let outcome = simulation.outcome();
        assert_eq!(
            (outcome.counters.failed.datagrams, outcome.counters.delivered.datagrams),
            (1, 199),
            "{name}"
        );
        // Each that came took four links, as an idle network's packets do.
        assert_eq!(
            (outcome.sources[0].delay_max, outcome.counters.hops),
            (4 * 2_200_000, 4 * 199 + 1),
            "{name}"
        );
        assert!(simulation.is_clean(), "{name}");
    }
}

fn queues() -> [(Queue, &'static str); 9] {
    let limit = Limit::Bytes(1 << 30);
    [
        (Queue::DropTail(Limit::None), "drop tail"),
        (Queue::DropTail(Limit::Packets(100)), "counted"),
        (Queue::Threshold(Threshold { limit, threshold: limit }), "gated"),
        (Queue::Priority(Priority { limit: 1 << 30 }), "priority"),
        (Queue::RoundRobin(RoundRobin { limit: 1 << 30, quantum: 1_500 }), "round robin"),
        (
            Queue::CoDel(CoDel {
                limit,
                target: MS,
                interval: MS,
                protection: Protection::Default,
            }),
            "CoDel",
        ),
        (Queue::Wfq(Wfq { limit: 1 << 30, weights: [1; 8] }), "WFQ"),
        (Queue::TimeAware(TimeAware::new(1 << 30, 0, &[(MS, 0xff)]).unwrap()), "gates"),
        (Queue::DualPi2(DualPi2::rfc9332(1 << 30)), "DualPI2"),
    ]
}

/// A burst of 60 waits before a link of a tenth of the rate, when that fails: what was sent by then
/// arrives, all else is lost. Then it works again, and as many of a second burst arrive as of one
/// alone; in between nothing does.
#[test]
fn what_waits_for_a_failing_cable_is_lost() {
    let slow = Cable { rate: GBIT, delay: US };
    let tree = Tree::new().host("a").host("b").switch("s").switch("t");
    let tree = tree.cable("a", "s", CABLE).cable("s", "t", slow).cable("t", "b", CABLE);
    let failure =
        Failure { one: "s".to_owned(), other: "t".to_owned(), down: 100 * US, up: Some(300 * US) };
    let topology = Graph::new(tree).failure(failure).build().unwrap();
    for (queue, name) in queues() {
        let burst = |first, count| Source { first, ..source(0, 1, 0, count) };
        let workload =
            Workload::of_sources(vec![burst(0, 60), burst(200 * US, 10), burst(301 * US, 60)]);
        let mut simulation =
            Simulation::new(&topology, &scheme(queue, Routing::Spray), &workload, 1).unwrap();
        simulation.run();
        let outcome = simulation.outcome();
        // The first is at s at 2.2 us; then one every 12 us has crossed the slow cable, from 15.2
        // us on: eight until 100 us.
        let delivered: Vec<u64> = outcome.sources.iter().map(|source| source.delivered).collect();
        assert_eq!(delivered, [8, 0, 60], "{name}");
        assert_eq!(outcome.counters.failed.datagrams, 52 + 10, "{name}");
        // The second burst, as alone: 60 of 12 us after 2.2, and 1 + 2.2 us.
        assert_eq!(outcome.end, 301 * US + 2_200_000 + 60 * 12 * US + US + 2_200_000, "{name}");
        assert!(simulation.is_clean(), "{name}");
    }
}

/// A host's own cable fails, and TCP gets through all the same when it works again; with per-flow
/// paths as with packets in turn.
#[test]
fn flows_survive_failures() {
    let failures = [
        ("a", "s", 50 * US, Some(400 * US)),
        ("s", "m", MS, Some(3 * MS)),
        ("n", "t", 3 * MS, None),
        ("b", "t", 5 * MS, Some(6 * MS)),
    ];
    let topology = diamond(&failures).build().unwrap();
    for routing in [Routing::Spray, Routing::PerFlow] {
        for (queue, name) in queues() {
            let flow = |start, packets| FlowSpec { start, src: 0, dst: 1, packets };
            let workload = Workload::of_flows(Flows::List(vec![
                flow(0, 3_000),
                flow(10 * US, 5_000),
                flow(4 * MS, 100),
            ]));
            let mut simulation =
                Simulation::new(&topology, &scheme(queue, routing), &workload, 1).unwrap();
            simulation.run();
            let outcome = simulation.outcome();
            let counters = outcome.counters;
            assert!(
                outcome.flows.iter().all(|flow| flow.finish.is_some()) && simulation.is_clean(),
                "{name}"
            );
            assert!(counters.failed.data > 0, "{name}");
            let lost = counters.full.total()
                + counters.pushed_out.total()
                + counters.early.total()
                + counters.failed.total();
            assert_eq!(counters.sent.total(), counters.delivered.total() + lost, "{name}");
        }
    }
}

/// A graph that is a tree or a leaf-spine network yields what that does.
#[test]
fn a_tree_is_a_graph() {
    let nodes = ["s", "t", "u"]
        .iter()
        .fold(Tree::new(), |tree, name| tree.switch(name))
        .cable("s", "t", CABLE)
        .cable("t", "u", CABLE);
    let nodes = [("a", "s"), ("b", "s"), ("c", "t"), ("d", "u"), ("e", "u")]
        .iter()
        .fold(nodes, |tree, (host, switch)| tree.host(host).cable(host, switch, CABLE));
    let flow =
        |src: u32| FlowSpec { start: u64::from(src) * 777, src, dst: (src + 2) % 5, packets: 300 };
    let workload = Workload::of_flows(Flows::List((0..5).map(flow).collect()));
    let run = |topology: Topology| {
        let scheme = Scheme::dctcp();
        Scenario::new(topology, scheme, workload.clone()).run().unwrap()
    };
    assert_eq!(run(nodes.build().unwrap()), run(Graph::new(nodes).build().unwrap()));
}

#[test]
fn what_cannot_be_is_refused() {
    let said = |failures: &[_]| diamond(failures).build().unwrap_err().to_string();
    assert_eq!(said(&[("s", "t", 0, None)]), "failure s--t: there is no such cable");
    assert_eq!(said(&[("a", "t", 0, None)]), "failure a--t: there is no such cable");
    assert_eq!(said(&[("s", "m", 5, Some(5))]), "failure s--m: it ends before it begins");
    assert_eq!(
        said(&[("s", "m", 5, Some(9)), ("m", "s", 7, None)]),
        "failures: two of the same cable overlap"
    );
    let parts = "after all failures a graph must be connected";
    assert_eq!(said(&[("s", "m", 5, None), ("n", "t", 7, None)]), parts);
    assert_eq!(said(&[("a", "s", 5, None)]), parts);
    assert_eq!(
        Graph::new(Tree::new().switch("s")).build().unwrap_err().to_string(),
        "a graph has no host"
    );
    let apart = Tree::new()
        .switch("s")
        .switch("t")
        .host("a")
        .host("b")
        .cable("a", "s", CABLE)
        .cable("b", "t", CABLE);
    assert_eq!(Graph::new(apart).build().unwrap_err().to_string(), "a graph must be connected");
    let itself = Tree::new().switch("s").host("a").cable("a", "s", CABLE).cable("s", "s", CABLE);
    assert_eq!(
        Graph::new(itself.clone()).build().unwrap_err().to_string(),
        "cable s--s: joins a switch to itself"
    );
    assert_eq!(itself.build().unwrap_err().to_string(), "cable s--s: joins a switch to itself");
    for k in [0, 3, 130] {
        let sentence = format!(
            "a fat-tree of switches with {k} ports needs an even number of them from 2 to 128"
        );
        assert_eq!(Graph::fat_tree(k, CABLE, CABLE).unwrap_err().to_string(), sentence);
    }
    let pause = Pause { xoff: 6_000, xon: 3_000, buffer: 20_000, per_level: false };
    let scheme = Scheme { pause: Some(pause), ..Scheme::tcp() };
    let topology = diamond(&[("s", "m", 5, Some(9))]).build().unwrap();
    let workload = Workload::of_sources(Vec::new());
    let error = Scenario::new(topology, scheme, workload).run().unwrap_err();
    assert_eq!(error.to_string(), "pause: networks with failing cables cannot have pauses");
}
