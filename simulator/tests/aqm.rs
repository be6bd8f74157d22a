// SPDX-License-Identifier: GPL-2.0-or-later
//! Active queue management in networks, and what is known of each port.

use qjump_sim::{
    Bytes, Cable, CoDel, Congestion, Dctcp, End, Failure, FlowSpec, Flows, Gap, Graph, LeafSpine,
    Limit, PFabric, Pause, PortResult, Priority, Profile, Protection, Ps, Queue, Reading, Red,
    Scheme, Simulation, Source, Threshold, Topology, Transport, Tree, Workload, MS, US,
};

const GBIT: u64 = 1_000_000_000;

/// Two hosts, `a` (0) at this rate and `b` (1) at 10 Gb/s, without delay.
fn pair(rate: u64) -> Topology {
    let cable = |rate| Cable { rate, delay: 0 };
    let tree = Tree::new().switch("s").host("a").host("b").cable("a", "s", cable(rate)).cable(
        "b",
        "s",
        cable(10 * GBIT),
    );
    tree.build().unwrap()
}

fn watch(topology: &Topology, scheme: &Scheme, workload: &Workload, stop: Ps) -> Simulation {
    let mut simulation = Simulation::watching(topology, scheme, workload, 1).unwrap();
    simulation.run_until(stop);
    simulation
}

fn port(simulation: &Simulation, from: End, to: End) -> PortResult {
    *simulation.ports().iter().find(|port| port.from == from && port.to == to).unwrap()
}

fn datagrams(gap: Gap, count: u64) -> Workload {
    Workload::of_sources(vec![Source {
        src: 0,
        dst: 1,
        level: 0,
        first: 0,
        gap,
        bytes: Bytes::Fixed(1_500),
        count,
    }])
}

fn codel(target: Ps, interval: Ps) -> Queue {
    Queue::CoDel(CoDel { limit: Limit::None, target, interval, protection: Protection::Default })
}

/// Five packets at once: they wait 0 to 4 times 1.2 us. Then one alone.
#[test]
fn ports_tell_their_queues() {
    let never = Pause { xoff: 1 << 40, xon: 0, buffer: 1 << 40, per_level: false };
    let schemes = [
        (Queue::DropTail(Limit::None), None),
        (Queue::DropTail(Limit::Packets(9)), None),
        (Queue::Priority(Priority { limit: 1 << 40 }), None),
        (Queue::PFabric(PFabric { limit: 1 << 40 }), None),
        (codel(MS, MS), None),
        (Queue::DropTail(Limit::None), Some(never)),
        (Queue::Priority(Priority { limit: 1 << 40 }), Some(never)),
    ];
    for (queue, pause) in schemes {
        let scheme = Scheme { queue, pause, ..Scheme::tcp() };
        let ports = |count| {
            let simulation = watch(&pair(10 * GBIT), &scheme, &datagrams(Gap::Every(0), count), MS);
            let switch = port(&simulation, End::Switch(0), End::Host(1));
            (port(&simulation, End::Host(0), End::Switch(0)), switch)
        };
        let (sender, switch) = ports(5);
        assert_eq!((sender.longest, sender.waiting), (7_500, 1_500 * 10 * 1_200_000), "{scheme:?}");
        assert_eq!((switch.longest, switch.waiting), (1_500, 0), "{scheme:?}");
        assert_eq!(ports(1).0.longest, 1_500, "{scheme:?}");
        assert_eq!((sender.full, sender.early, sender.marked, sender.paused), (0, 0, 0, 0));
    }
}

/// What still waits at the end of a run, or when a link fails, has waited until then.
#[test]
fn waiting_ends_with_the_run() {
    let never = Pause { xoff: 1 << 40, xon: 0, buffer: 1 << 40, per_level: false };
    let queues = [
        (Queue::DropTail(Limit::None), None),
        (Queue::DropTail(Limit::Packets(9)), None),
        (Queue::Priority(Priority { limit: 1 << 40 }), None),
        (codel(MS, MS), None),
        (Queue::DropTail(Limit::None), Some(never)),
    ];
    // The k-th of five packets begins after k times 1.2 us; of 3 us.
    let until = |end: Ps| (0..5).map(|k| end.min(k * 1_200_000)).sum::<Ps>();
    assert_eq!(until(3 * US), 9_600_000);
    for (queue, pause) in queues {
        let scheme = Scheme { queue, pause, ..Scheme::tcp() };
        for end in [0, 1, US, 1_200_000, 3 * US, 4_799_999, MS] {
            let simulation = watch(&pair(10 * GBIT), &scheme, &datagrams(Gap::Every(0), 5), end);
            let sender = port(&simulation, End::Host(0), End::Switch(0));
            assert_eq!(
                (sender.longest, sender.waiting),
                (7_500, 1_500 * u128::from(until(end))),
                "{scheme:?} until {end}"
            );
        }
        if pause.is_none() {
            let cable = Cable { rate: 10 * GBIT, delay: 0 };
            let tree = Tree::new()
                .switch("s")
                .host("a")
                .host("b")
                .cable("a", "s", cable)
                .cable("b", "s", cable);
            let failure = Failure {
                one: "a".to_owned(),
                other: "s".to_owned(),
                down: 3 * US,
                up: Some(4 * US),
            };
            let topology = Graph::new(tree).failure(failure).build().unwrap();
            let simulation = watch(&topology, &scheme, &datagrams(Gap::Every(0), 5), MS);
            let sender = port(&simulation, End::Host(0), End::Switch(0));
            assert_eq!((sender.longest, sender.waiting), (7_500, 1_500 * 9_600_000), "{scheme:?}");
        }
    }
}

/// Mean number of packets that wait: load² / (2 (1 − load)) for M/D/1.
#[test]
fn waiting_is_the_mean_queue() {
    for queue in [
        Queue::DropTail(Limit::None),
        Queue::Priority(Priority { limit: 1 << 40 }),
        codel(1_000 * MS, 1_000 * MS),
    ] {
        let scheme = Scheme { queue, ..Scheme::tcp() };
        let simulation =
            watch(&pair(10 * GBIT), &scheme, &datagrams(Gap::Poisson(2 * US), 2_000_000), Ps::MAX);
        let sender = port(&simulation, End::Host(0), End::Switch(0));
        let mean = sender.waiting as f64 / simulation.outcome().end as f64 / 1_500.0;
        assert!((mean / 0.45 - 1.0).abs() < 0.01, "{mean}, {queue:?}");
    }
}

#[test]
fn hosts_may_have_other_queues() {
    let flow = FlowSpec { start: 0, src: 0, dst: 1, packets: 12 };
    let workload = Workload::of_flows(Flows::List(vec![flow]));
    let full = |queue, host_queue| {
        let scheme = Scheme {
            queue: Queue::DropTail(queue),
            host_queue: Some(Queue::DropTail(host_queue)),
            ..Scheme::tcp()
        };
        let simulation = watch(&pair(100 * GBIT), &scheme, &workload, 100 * US);
        let ends = [(End::Host(0), End::Switch(0)), (End::Switch(0), End::Host(1))];
        ends.map(|(from, to)| port(&simulation, from, to).full)
    };
    assert_eq!(full(Limit::None, Limit::Packets(4)), [8, 0]);
    // Ten packets come while one is sent; one more has room at 1.2 us, for which the twelfth is
    // right in time.
    assert_eq!(full(Limit::Packets(4), Limit::None), [0, 7]);
}

#[test]
fn links_between_switches_may_have_other_queues() {
    let flow = FlowSpec { start: 0, src: 0, dst: 1, packets: 12 };
    let workload = Workload::of_flows(Flows::List(vec![flow]));
    let cable = |rate| Cable { rate, delay: 0 };
    let ends =
        Tree::new().switch("s").switch("t").host("a").host("b").cable("a", "s", cable(100 * GBIT));
    let topology =
        ends.cable("b", "t", cable(100 * GBIT)).cable("s", "t", cable(10 * GBIT)).build().unwrap();
    let full = |queue, trunk_queue| {
        let scheme = Scheme {
            queue: Queue::DropTail(queue),
            host_queue: Some(Queue::DropTail(Limit::None)),
            trunk_queue: Some(Queue::DropTail(trunk_queue)),
            ..Scheme::tcp()
        };
        let simulation = watch(&topology, &scheme, &workload, 20 * US);
        let ends = [(End::Switch(0), End::Switch(1)), (End::Switch(1), End::Host(1))];
        ends.map(|(from, to)| port(&simulation, from, to).full)
    };
    // A packet comes every 0.12 us and takes 1.2 us to send: four are held while one and the tenth
    // of another are sent.
    assert_eq!(full(Limit::None, Limit::Packets(4)), [7, 0]);
    assert_eq!(full(Limit::Packets(1), Limit::None), [0, 0]);
}

/// An overload of 2 to 1: the k-th packet to leave has waited 0.6 k us. The 100th waits for the
/// target of 60 us, so the first is dropped at 720.6 us, and the next ones at the first departure,
/// one in 1.2 us, that is interval / sqrt(n) later.
#[test]
fn codel_drops_by_its_law() {
    let scheme = Scheme {
        queue: codel(60 * US, 600 * US),
        host_queue: Some(Queue::DropTail(Limit::None)),
        ..Scheme::tcp()
    };
    let workload = datagrams(Gap::Every(600_000), 1_000_000);
    let mut simulation = Simulation::new(&pair(20 * GBIT), &scheme, &workload, 1).unwrap();
    let mut due = 720.6e6f64;
    for n in 1..200 {
        let departure = ((due - 0.6e6) / 1.2e6 - 1e-9).ceil() as Ps * 1_200_000 + 600_000;
        simulation.run_until(departure - 1);
        assert_eq!(simulation.outcome().counters.early.datagrams, n - 1, "before {departure}");
        simulation.run_until(departure);
        assert_eq!(simulation.outcome().counters.early.datagrams, n, "at {departure}");
        due += 600e6 / (n as f64).sqrt();
    }
}

/// The modes of protection with flows in both directions, so that ACKs meet data in queues that act
/// from 3 kB on.
#[test]
fn only_the_unprotected_are_dropped_early() {
    let fabric = LeafSpine { racks: 1, hosts_per_rack: 3, spines: 0, ..LeafSpine::FIG9 };
    let topology = Topology::leaf_spine(&fabric).unwrap();
    let flow =
        |src: u32| FlowSpec { start: u64::from(src) * US, src, dst: (src + 1) % 3, packets: 3_000 };
    let workload = Workload::of_flows(Flows::List((0..3).map(flow).collect()));
    let red = Red::linux(Limit::Bytes(3_000), Limit::Bytes(30_000), Limit::None);
    let red = Red { profile: Profile { max_p: 1_000_000, ..red.profile }, weight: 0, ..red };
    let controlled = CoDel {
        limit: Limit::None,
        target: 5 * US,
        interval: 50 * US,
        protection: Protection::Default,
    };
    let run = |base: Scheme, protection, is_red| {
        let queue = if is_red {
            Queue::Red(Red { protection, ..red })
        } else {
            Queue::CoDel(CoDel { protection, ..controlled })
        };
        let simulation = watch(&topology, &Scheme { queue, ..base }, &workload, Ps::MAX);
        let c = simulation.outcome().counters;
        let marks: u64 = simulation.ports().iter().map(|port| port.marked).sum();
        assert!(simulation.outcome().flows.iter().all(|flow| flow.finish.is_some()));
        assert!(marks >= c.marked, "a packet may be marked twice, and is delivered once");
        assert_eq!(c.early.total(), c.early.data + c.early.acks);
        assert_eq!(c.full.total(), 0);
        (c.early.data, c.early.acks, marks)
    };
    for is_red in [true, false] {
        let [default, ece, acks, none] =
            [Protection::Default, Protection::EceBit, Protection::AckSyn, Protection::NoDrop].map(
                |protection| {
                    let (data, acks, marks) = run(Scheme::dctcp(), protection, is_red);
                    assert_eq!(data, 0, "ECN-capable data is marked: {protection:?}");
                    assert!(marks > 0);
                    acks
                },
            );
        assert!(default > 0 && ece > 0 && ece < default, "{default} {ece}");
        assert_eq!((acks, none), (0, 0));
        let (data, acks, marks) = run(Scheme::tcp(), Protection::Default, is_red);
        assert!(data > 0 && acks > 0 && marks == 0, "{data} {acks} {marks}");
        let (data, acks, marks) = run(Scheme::tcp(), Protection::AckSyn, is_red);
        assert!(data > 0 && acks == 0 && marks == 0, "{data} {acks} {marks}");
        assert_eq!(run(Scheme::tcp(), Protection::NoDrop, is_red), (0, 0, 0));
    }
}

/// DCTCP's largest queue is K + N (Alizadeh et al., SIGCOMM'10, section 3.3), and the packet being
/// sent counts.
#[test]
fn plain_marking_keeps_the_modelled_queue() {
    let threshold = 40;
    for n in [2, 5, 10] {
        let edge = Cable { rate: 10 * GBIT, delay: 24 * US };
        let fabric = LeafSpine { racks: 1, hosts_per_rack: n + 1, spines: 0, edge, uplink: edge };
        let topology = Topology::leaf_spine(&fabric).unwrap();
        let flow =
            |src| FlowSpec { start: 7 * US * u64::from(src), src, dst: n, packets: 1_000_000 };
        let workload = Workload::of_flows(Flows::List((0..n).map(flow).collect()));
        for mark in [
            Limit::Bytes(threshold * 1_500),
            Limit::Packets(threshold as u32),
            Limit::Time(threshold * 1_200_000),
        ] {
            let mut scheme = Scheme::dctcp();
            scheme.queue = Queue::Threshold(Threshold { limit: Limit::None, threshold: mark });
            scheme.transport.max_window = 1_000;
            let mut simulation = Simulation::new(&topology, &scheme, &workload, 1).unwrap();
            simulation.run_until(20 * MS);
            let mut largest = 0.0f64;
            for step in 0..20_000 {
                simulation.run_until(20 * MS + step * US);
                largest = largest.max(simulation.backlog_to(n) as f64 / 1_200_000.0);
            }
            let top = threshold as f64 + f64::from(n);
            println!("{n} flows, {mark:?}: {largest:.1} packets");
            assert!(
                (top - 1.0..=top + 1.0).contains(&largest),
                "{n} flows, {mark:?}: {largest} packets"
            );
        }
    }
}

/// What does not fit: one sentence that says where.
#[test]
fn wrong_settings_are_told() {
    let said = |scheme: Scheme| {
        let made = Simulation::new(&pair(10 * GBIT), &scheme, &Workload::of_sources(Vec::new()), 1);
        made.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let with = |queue| said(Scheme { queue, ..Scheme::tcp() });
    let red = Red::ns2(Limit::Bytes(6_000), Limit::Bytes(18_000), Limit::Packets(200));
    assert_eq!(with(Queue::Red(red)), "");
    let profile =
        |min, max| with(Queue::Red(Red { profile: Profile { min, max, ..red.profile }, ..red }));
    assert_eq!(
        profile(Limit::Bytes(7), Limit::Packets(9)),
        "queue: min and max must both be in bytes, in packets or in time"
    );
    assert_eq!(
        profile(Limit::Bytes(7), Limit::Bytes(6)),
        "queue: the thresholds 7 and 6 must increase"
    );
    assert_eq!(
        profile(Limit::Bytes(7), Limit::Bytes(1 << 37)),
        "queue: a threshold of 137438953472 bytes must be below 2^37"
    );
    let never = Profile { max_p: 0, ..red.profile };
    let other = Queue::Red(Red { not_ect: Some(never), ..red });
    assert_eq!(with(other), "queue: not_ect: max_p: 0 millionths must be above 0 and at most 1");
    assert_eq!(
        with(Queue::Red(Red { weight: 17, ..red })),
        "queue: a weight of 2^-17 is less than 2^-16, the least"
    );
    assert_eq!(
        with(Queue::Red(Red { mean_packet: 0, ..red })),
        "queue: the mean packet must be above 0 bytes"
    );
    assert_eq!(
        with(Queue::Red(Red { mark_p: Some(1_000_001), ..red })),
        "queue: mark_p: 1000001 millionths exceed 1"
    );
    let reading = Reading::Linux;
    let short = Queue::Red(Red { limit: Limit::Bytes(9), reading, ..red });
    assert_eq!(
        said(Scheme { host_queue: Some(short), ..Scheme::tcp() }),
        "host_queue: its limit of 9 bytes is less than a packet of 1500"
    );
    assert_eq!(with(codel(MS, 0)), "queue: an interval of 0 ps must be above 0 and at most 1000 s");
    let brief = Queue::DropTail(Limit::Time(US));
    assert_eq!(
        with(brief),
        "queue: at 10000000000 bit/s its limit of 1250 bytes is less than a packet of 1500"
    );
    let paused = |xoff, xon, buffer| {
        said(Scheme { pause: Some(Pause { xoff, xon, buffer, per_level: false }), ..Scheme::tcp() })
    };
    assert_eq!(
        paused(9, 9, 9_000),
        "pause: xoff 9, xon 9 and buffer 9000 bytes: xoff must be above xon and at most the buffer"
    );
    assert_eq!(
        paused(9, 3, 1_499),
        "pause: its buffer of 1499 bytes is less than a packet of 1500"
    );
}

/// ECN-capable ACKs and SYNs are marked where others would be dropped, and nobody heeds that: all
/// is as if they were spared.
#[test]
fn bare_packets_may_be_ecn_capable() {
    let fabric = LeafSpine { racks: 1, hosts_per_rack: 3, spines: 0, ..LeafSpine::FIG9 };
    let topology = Topology::leaf_spine(&fabric).unwrap();
    let flow = |n: u32| FlowSpec {
        start: u64::from(n) * 50 * US,
        src: n % 3,
        dst: (n + 1) % 3,
        packets: 200,
    };
    let workload = Workload::of_flows(Flows::List((0..60).map(flow).collect()));
    let red = Red::linux(Limit::Bytes(3_000), Limit::Bytes(30_000), Limit::None);
    let red = Red { profile: Profile { max_p: 1_000_000, ..red.profile }, weight: 0, ..red };
    let run = |congestion, protection, (ect_acks, ect_syn)| {
        let transport =
            Transport { ect_acks, ect_syn, min_rto: MS, ..Transport::linux(congestion) };
        let queue = Queue::Red(Red { protection, ..red });
        let simulation =
            watch(&topology, &Scheme { queue, transport, ..Scheme::tcp() }, &workload, Ps::MAX);
        let marks: u64 = simulation.ports().iter().map(|port| port.marked).sum();
        (simulation.outcome(), marks)
    };
    for congestion in [Congestion::Ecn, Congestion::Dctcp(Dctcp { shift: 4 })] {
        let (spared, few) = run(congestion, Protection::AckSyn, (false, false));
        let (marked, many) = run(congestion, Protection::Default, (true, true));
        assert_eq!(spared, marked);
        assert!(many > few, "{many} {few}");
        let early = |ect| run(congestion, Protection::Default, ect).0.counters.early;
        let dropped = |ect| (early(ect).acks > 0, early(ect).syns + early(ect).syn_acks > 0);
        assert_eq!(dropped((false, false)), (true, true), "{congestion:?}");
        assert_eq!(dropped((true, false)), (false, true), "{congestion:?}");
        assert_eq!(dropped((false, true)), (true, false), "{congestion:?}");
    }
    // Without congestion control by marks nothing is ECN-capable.
    let c = run(Congestion::Reno, Protection::Default, (true, true)).0.counters;
    assert!(c.early.acks > 0 && c.early.data > 0, "{c:?}");
}
