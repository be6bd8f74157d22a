// SPDX-License-Identifier: GPL-2.0-or-later
//! PIE and `DualPI2` at work: where a controller has come to rest, its delay is the target, for
//! else it would change on, and what it drops or marks is what the traffic makes it.

use qjump_sim::{
    Bytes, Cable, Congestion, Dctcp, DualPi2, FlowSpec, Flows, Gap, Limit, PiController, Pie, Ps,
    Queue, Scenario, Scheme, Simulation, Source, Topology, Transport, Tree, Workload, MS, S, US,
};

const GBIT: u64 = 1_000_000_000;

/// `a` at 10 Gb/s, `b` at 100 Mb/s; 10 us each way.
fn pair() -> Topology {
    let cable = |rate| Cable { rate, delay: 5 * US };
    let tree = Tree::new().switch("s").host("a").host("b").cable("a", "s", cable(10 * GBIT)).cable(
        "b",
        "s",
        cable(GBIT / 10),
    );
    tree.build().unwrap()
}

fn scheme(queue: Queue) -> Scheme {
    Scheme { queue, host_queue: Some(Queue::DropTail(Limit::None)), ..Scheme::tcp() }
}

/// Datagrams at 1.25 times the link's rate: a fifth has to go, and the others wait for the target.
/// Returns the share that goes and the mean delay, of the last 20 of 30 s.
fn overloaded(queue: Queue) -> (f64, f64) {
    let gap = 96 * US;
    let source = Source {
        src: 0,
        dst: 1,
        level: 0,
        first: 0,
        gap: Gap::Poisson(gap),
        bytes: Bytes::Fixed(1_500),
        count: 40 * S / gap,
    };
    let workload = Workload::of_sources(vec![source]);
    let mut simulation = Simulation::new(&pair(), &scheme(queue), &workload, 1).unwrap();
    let mut at = |time: Ps| {
        simulation.run_until(time);
        let outcome = simulation.outcome();
        let delivered = outcome.sources[0];
        (
            outcome.counters.early.datagrams,
            outcome.counters.sent.datagrams,
            delivered.delivered,
            delivered.delay_sum,
        )
    };
    let (begin, end) = (at(10 * S), at(30 * S));
    let share = (end.0 - begin.0) as f64 / (end.1 - begin.1) as f64;
    // Sent at once by `a`, 10 us of cables, and 120 us for itself.
    let own = 1_200_000.0 + 10e6 + 120e6;
    (share, (end.3 - begin.3) as f64 / (end.2 - begin.2) as f64 - own)
}

#[test]
fn pie_keeps_its_target() {
    for target in [15 * MS, 30 * MS] {
        let mut pie = Pie::rfc8033(Limit::None);
        pie.control.target = target;
        let (share, delay) = overloaded(Queue::Pie(pie));
        assert!((share / 0.2 - 1.0).abs() < 0.02, "{share}");
        // What it keeps counts the packet being sent, 120 us, half of which is to go on average.
        assert!((delay / target as f64 - 1.0).abs() < 0.03, "{delay}");
    }
}

#[test]
fn dualpi2_keeps_its_target_in_the_classic_queue() {
    let (share, delay) = overloaded(Queue::DualPi2(DualPi2::rfc9332(1 << 40)));
    assert!((share / 0.2 - 1.0).abs() < 0.02, "{share}");
    assert!((delay / (15 * MS) as f64 - 1.0).abs() < 0.03, "{delay}");
}

/// In the steady state of a flow alone that is not limited by its window, Reno's drops are p'^2 and
/// DCTCP's marks twice p': both are in the middle of a wide range, and each keeps its own delay:
/// the classic target, or less than 1.2 ms of the ramp.
#[test]
fn each_flow_has_the_delay_of_its_queue() {
    let run = |congestion| {
        let mut scheme = scheme(Queue::DualPi2(DualPi2::rfc9332(1 << 40)));
        scheme.transport = Transport { max_window: 4_000, ..Transport::linux(congestion) };
        let workload = Workload::of_flows(Flows::List(vec![FlowSpec {
            start: 0,
            src: 0,
            dst: 1,
            packets: 160_000,
        }]));
        let mut simulation = Simulation::new(&pair(), &scheme, &workload, 1).unwrap();
        simulation.run_until(4 * S);
        let begin = simulation.outcome().counters;
        simulation.run_until(16 * S);
        let end = simulation.outcome().counters;
        let (packets, sum) =
            (end.latency.packets - begin.latency.packets, end.latency.sum - begin.latency.sum);
        let delivered = end.delivered.data - begin.delivered.data;
        (
            sum as f64 / packets as f64,
            delivered as f64 / (12.0 * 1e8 / 12_000.0),
            end.marked - begin.marked,
        )
    };
    let (classic, classic_rate, _) = run(Congestion::Ecn);
    let (scalable, scalable_rate, marks) = run(Congestion::Dctcp(Dctcp { shift: 4 }));
    assert!((5e9..20e9).contains(&classic), "{classic}");
    assert!((0.3e9..1.35e9).contains(&scalable) && marks > 1_000, "{scalable} {marks}");
    assert!(classic_rate > 0.98 && scalable_rate > 0.98, "{classic_rate} {scalable_rate}");
}

#[test]
fn what_cannot_be_is_refused() {
    let said = |queue| {
        let workload = Workload::of_flows(Flows::List(Vec::new()));
        let scenario = Scenario::new(pair(), scheme(queue), workload);
        scenario.run().unwrap_err().to_string()
    };
    let pie = Pie::rfc8033(Limit::None);
    let dual = DualPi2::rfc9332(15_000);
    let control = PiController { update: 0, ..pie.control };
    assert_eq!(
        said(Queue::Pie(Pie { control, ..pie })),
        "queue: updates every 0 ps are not 1 us to 1000 s apart"
    );
    let control = PiController { target: 0, ..pie.control };
    assert_eq!(
        said(Queue::Pie(Pie { control, ..pie })),
        "queue: a target of 0 ps must be above 0 and at most 1000 s"
    );
    assert_eq!(
        said(Queue::Pie(Pie { mark_p: 1_000_001, ..pie })),
        "queue: mark_p: 1000001 millionths exceed 1"
    );
    assert_eq!(
        said(Queue::DualPi2(DualPi2 { coupling: 0, ..dual })),
        "queue: a coupling of 0 must be between 1 and 16"
    );
    assert_eq!(
        said(Queue::DualPi2(DualPi2 { classic_share: 100, ..dual })),
        "queue: a classic share of 100 % must be between 1 and 99"
    );
    assert_eq!(
        said(Queue::DualPi2(DualPi2 { limit: 1_499, ..dual })),
        "queue: its limit of 1499 bytes is less than a packet of 1500"
    );
    let gains = PiController { alpha: 0, ..dual.control };
    assert_eq!(
        said(Queue::DualPi2(DualPi2 { control: gains, ..dual })),
        "queue: gains of 0 and 3200 thousandths must be above 0 and at most 2^50"
    );
}
