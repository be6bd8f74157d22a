// SPDX-License-Identifier: GPL-2.0-or-later
//! What ports, series, traces and counts of flows say of a cable that fails, and what queues know
//! when it works again.

use qjump_sim::{
    Bytes, Cable, CoDel, DualPi2, Failure, FlowSpec, Flows, Gap, Graph, LevelRed, Limit, Marking,
    PFabric, Pie, Priority, Protection, Ps, Queue, Red, RoundRobin, Routing, Scheme, Simulation,
    Source, Threshold, TimeAware, Topology, Traced, Tree, Watch, Wfq, Workload, MS, US,
};

const GBIT: u64 = 1_000_000_000;
const FAST: Cable = Cable { rate: 10 * GBIT, delay: US };

/// All kinds, too long for what comes here.
fn queues() -> Vec<Queue> {
    let (limit, bytes) = (Limit::Bytes(1 << 30), 1 << 30);
    let red =
        LevelRed { limit: bytes, min: bytes, max: 2 * bytes, max_p: 1_000_000, weights: None };
    vec![
        Queue::DropTail(Limit::None),
        Queue::DropTail(limit),
        Queue::DropTail(Limit::Packets(1_000)),
        Queue::Marking(Marking { limit: bytes, threshold: 3_000 }),
        Queue::Threshold(Threshold { limit, threshold: Limit::Bytes(3_000) }),
        Queue::Red(Red::ns2(limit, limit, limit)),
        Queue::CoDel(CoDel {
            limit,
            target: MS,
            interval: 100 * MS,
            protection: Protection::Default,
        }),
        Queue::Priority(Priority { limit: bytes }),
        Queue::PFabric(PFabric { limit: bytes }),
        Queue::RoundRobin(RoundRobin { limit: bytes, quantum: 1_500 }),
        Queue::Wfq(Wfq { limit: bytes, weights: [1; 8] }),
        Queue::LevelRed(red),
        Queue::LevelRed(LevelRed { weights: Some([1; 8]), ..red }),
        Queue::TimeAware(TimeAware::new(bytes, 0, &[(MS, 0xff)]).unwrap()),
        Queue::Pie(Pie::rfc8033(limit)),
        Queue::DualPi2(DualPi2::rfc9332(bytes)),
    ]
}

fn scheme(queue: Queue) -> Scheme {
    Scheme { queue, ..Scheme::tcp() }
}

/// `a` and `b` on two switches, whose cable of this rate fails.
fn line(rate: u64, down: Ps, up: Ps) -> Topology {
    let tree = Tree::new().host("a").host("b").switch("s").switch("t");
    let tree =
        tree.cable("a", "s", FAST).cable("s", "t", Cable { rate, ..FAST }).cable("t", "b", FAST);
    let failure = Failure { one: "s".to_owned(), other: "t".to_owned(), down, up: Some(up) };
    Graph::new(tree).failure(failure).build().unwrap()
}

/// The number of the slow link.
const SLOW: usize = 4;

fn burst(first: Ps, level: u8, count: u64) -> Source {
    Source { src: 0, dst: 1, level, first, gap: Gap::Every(0), bytes: Bytes::Fixed(1_500), count }
}

/// Bursts of 60 before a link that fails at 100 us until 300 us: at 1 Gb/s it has sent eight and
/// 0.15 packets by then, at 10 Mb/s 122 bytes of the first, whose time is not over when the link
/// works again.
#[test]
fn series_tell_what_a_failing_link_has() {
    for (rate, before, delivered) in [(GBIT, 12_225, 68), (GBIT / 100, 122, 60)] {
        let topology = line(rate, 100 * US, 300 * US);
        for queue in queues() {
            let workload = Workload::of_sources(vec![burst(0, 0, 60), burst(301 * US, 0, 60)]);
            let watch = Watch { ports: true, every_ps: Some(7 * US), ..Watch::default() };
            let mut simulation =
                Simulation::watched(&topology, &scheme(queue), &workload, 1, &watch).unwrap();
            simulation.run();
            assert_eq!(simulation.outcome().counters.delivered.datagrams, delivered, "{queue:?}");
            let series = simulation.series().unwrap();
            let column = |values: &[u64]| {
                values[SLOW..].iter().step_by(series.ports as usize).copied().collect::<Vec<u64>>()
            };
            let (sent, queued) = (column(&series.sent), column(&series.queued));
            let most = rate / 8 * 7 / 1_000_000 + 1_500;
            assert!(
                sent.windows(2).all(|two| two[0] <= two[1] && two[1] - two[0] <= most),
                "{queue:?}: {sent:?}"
            );
            for ((at, sent), queued) in series.at.iter().zip(&sent).zip(&queued) {
                let came = |first: Ps| {
                    at.saturating_sub(first + US).min(60 * 1_200_000) / 1_200_000 * 1_500
                };
                let lost = *at >= 100 * US;
                let there = if lost { before + came(301 * US) } else { came(0) };
                assert_eq!(sent + queued, there, "{queue:?}: {at}");
                assert!(!lost || *at >= 302 * US || *queued == 0, "{queue:?}: {at}");
            }
        }
    }
}

/// Little's law has the waits that were: of the first burst until the link fails, of the second
/// all.
#[test]
fn nothing_waits_for_a_link_that_has_failed() {
    let topology = line(GBIT, 100 * US, 300 * US);
    let came = |n: u64| 2_200_000 + n * 1_200_000;
    let first: u64 = (0..60).map(|n| (2_200_000 + n * 12 * US).min(100 * US) - came(n)).sum();
    let second: u64 = (0..60).map(|n| n * 10_800_000).sum();
    for queue in queues() {
        let workload = Workload::of_sources(vec![burst(0, 0, 60), burst(301 * US, 0, 60)]);
        let mut simulation = Simulation::watching(&topology, &scheme(queue), &workload, 1).unwrap();
        simulation.run();
        assert_eq!(
            simulation.ports()[SLOW].waiting,
            u128::from(1_500 * (first + second)),
            "{queue:?}"
        );
    }
}

/// Four hosts on a triangle, two flows from `s` to `t`.
fn triangle(failures: &[(&str, &str, Ps, Ps)]) -> Topology {
    let cable = Cable { rate: 10 * GBIT, delay: 2 * US };
    let tree = ["s", "t", "u"].iter().fold(Tree::new(), |tree, name| tree.switch(name));
    let tree = ["a", "b", "c", "d"].iter().fold(tree, |tree, name| tree.host(name));
    let joined =
        [("a", "s"), ("b", "s"), ("c", "t"), ("d", "t"), ("s", "t"), ("s", "u"), ("u", "t")];
    let tree = joined.iter().fold(tree, |tree, (one, other)| tree.cable(one, other, cable));
    let failed = |graph: Graph, &(one, other, down, up): &(&str, &str, Ps, Ps)| {
        graph.failure(Failure { one: one.to_owned(), other: other.to_owned(), down, up: Some(up) })
    };
    failures.iter().fold(Graph::new(tree), failed).build().unwrap()
}

fn watched(topology: &Topology, queue: Queue, traced: Traced) -> Simulation {
    let flow = |src| FlowSpec { start: 0, src, dst: src + 2, packets: 400 };
    let workload = Workload::of_flows(Flows::List(vec![flow(0), flow(1)]));
    let watch = Watch {
        ports: true,
        flows: true,
        every_ps: Some(10 * US),
        traced: Some(traced),
        ..Watch::default()
    };
    let scheme = Scheme { routing: Routing::Spray, ..scheme(queue) };
    let mut simulation = Simulation::watched(topology, &scheme, &workload, 1, &watch).unwrap();
    simulation.run();
    simulation
}

/// On the failed cable, before it, and where no way leads on for a while.
#[test]
fn each_lost_packet_is_told_once_at_a_link_that_there_is() {
    for failures in [
        vec![("s", "t", 200 * US, 500 * US)],
        vec![("s", "t", 200 * US, 500 * US), ("s", "u", 300 * US, 450 * US)],
    ] {
        let topology = triangle(&failures);
        for queue in queues() {
            let simulation = watched(&topology, queue, Traced::All);
            let c = simulation.outcome().counters;
            assert!(c.failed.data > 0 && c.failed.acks > 0, "{queue:?}");
            let of = |of: fn(&qjump_sim::FlowCounts) -> u64| {
                simulation.flow_counts().iter().map(|f| of(&f.1)).sum::<u64>()
            };
            let lost = c.full.data + c.pushed_out.data + c.early.data + c.failed.data;
            assert_eq!(
                (of(|f| f.delivered), of(|f| f.dropped)),
                (c.delivered.data, lost),
                "{queue:?}"
            );
            let (dropped, came): (Vec<qjump_sim::Hop>, Vec<_>) =
                simulation.trace().iter().partition(|hop| hop.dropped);
            assert_eq!(came.len() as u64, c.hops, "{queue:?}");
            let lost = c.full.total() + c.pushed_out.total() + c.early.total() + c.failed.total();
            assert_eq!(dropped.len() as u64, lost, "{queue:?}");
            let ports = simulation.ports().len() as u32;
            assert!(simulation.trace().iter().all(|hop| hop.link < ports), "{queue:?}");
        }
    }
}

/// What is on the failed cable of a host that is traced belongs to its packets.
#[test]
fn a_trace_of_a_host_has_all_that_its_failed_cable_lost() {
    let topology = triangle(&[("c", "t", 100 * US, 400 * US)]);
    for queue in queues() {
        let simulation = watched(&topology, queue, Traced::Hosts(vec![2]));
        let failed = simulation.outcome().counters.failed;
        let dropped: Vec<u32> =
            simulation.trace().iter().filter(|hop| hop.dropped).map(|hop| hop.link).collect();
        assert_eq!(dropped.len() as u64, failed.total(), "{queue:?}");
        // Both ways: to the host, whose number is 2 of 4, and from it.
        assert!(failed.acks > 0 && [2, 6].iter().all(|link| dropped.contains(link)), "{queue:?}");
    }
}

/// Of 1.25 MB of level 3 a link of 10 Mb/s loses all that it has not sent. When it works again, two
/// levels of the same weight that both wait share it at once.
#[test]
fn what_was_lost_is_not_served_any_more() {
    let topology = line(GBIT / 100, 10 * MS, 11 * MS);
    let wfq = Wfq { limit: 1 << 30, weights: [1; 8] };
    let red = LevelRed {
        limit: 1 << 30,
        min: 1 << 30,
        max: 1 << 31,
        max_p: 1,
        weights: Some(wfq.weights),
    };
    for queue in [Queue::Wfq(wfq), Queue::LevelRed(red)] {
        let workload = Workload::of_sources(vec![
            burst(0, 3, 833),
            burst(12 * MS, 3, 100),
            burst(12 * MS, 4, 100),
        ]);
        let scheme = Scheme { host_queue: Some(Queue::DropTail(Limit::None)), ..scheme(queue) };
        let mut simulation = Simulation::new(&topology, &scheme, &workload, 1).unwrap();
        simulation.run_until(12 * MS + 50 * 1_200 * US);
        let delivered: Vec<u64> =
            simulation.outcome().sources.iter().skip(1).map(|source| source.delivered).collect();
        assert!(
            delivered.iter().all(|count| (23..=26).contains(count)),
            "{queue:?}: {delivered:?}"
        );
    }
}
