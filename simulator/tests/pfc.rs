// SPDX-License-Identifier: GPL-2.0-or-later
//! Priority flow control (802.1Qbb): the times of 802.3x, but of one level; the others go on.

use qjump_sim::{
    Bytes, Cable, End, Gap, LeafSpine, Limit, Pause, Priority, Ps, Queue, Scenario, Scheme,
    Simulation, Source, Topology, Tree, Wfq, Workload, MS, US,
};

const GBIT: u64 = 1_000_000_000;
const LOSSLESS: Queue = Queue::Priority(Priority { limit: u64::MAX });

fn scheme(queue: Queue, pause: Pause) -> Scheme {
    Scheme { queue, pause: Some(pause), ..Scheme::tcp() }
}

fn datagrams(src: u32, dst: u32, level: u8, first: Ps, count: u64) -> Source {
    Source { src, dst, level, first, gap: Gap::Every(0), bytes: Bytes::Fixed(1_500), count }
}

/// As in `pause.rs`, at level 3: packets reach the switch from 2.2 us on, 1.2 us apart; the third,
/// at 4.6 us, reaches xoff, and the frame comes at 5.6512 us, while the fifth is being sent. A
/// packet of level 5 for another host is behind them in the sender's queue: at 6.0 us, when the
/// fifth has gone, it goes in the sixth's place.
#[test]
fn one_level_stops_to_the_picosecond() {
    let cable = |rate| Cable { rate, delay: US };
    let tree = Tree::new().switch("s").host("a").host("b").host("c");
    let tree = tree.cable("a", "s", cable(10 * GBIT)).cable("b", "s", cable(GBIT)).cable(
        "c",
        "s",
        cable(10 * GBIT),
    );
    let topology = tree.build().unwrap();
    let run = |per_level| {
        let workload =
            Workload::of_sources(vec![datagrams(0, 1, 3, 0, 6), datagrams(0, 2, 5, 1, 1)]);
        let pause = Pause { xoff: 4_500, xon: 1_500, buffer: 7_500, per_level };
        let mut simulation =
            Simulation::watching(&topology, &scheme(LOSSLESS, pause), &workload, 1).unwrap();
        simulation.run();
        let outcome = simulation.outcome();
        assert_eq!(outcome.counters.delivered.datagrams, 7);
        let sender = *simulation.ports().iter().find(|port| port.from == End::Host(0)).unwrap();
        ((sender.paused, outcome.end), outcome.counters.pauses, outcome.sources[1].delay_sum)
    };
    let (times, pauses, other) = run(true);
    // Level 3 goes on at 51.2512 us, as in 802.3x.
    assert_eq!((times, pauses), ((51_251_200 - 5_651_200, 75_200_000), 1));
    // From 6.0 us on: sent at 7.2, at the switch at 8.2, sent at 9.4, there at 10.4; it left the
    // limiter at 1 ps.
    assert_eq!(other, 10_400_000 - 1);
    // Paused as a whole, it waits with them: the sixth is sent until 52.4512 us, then it.
    let (_, _, other) = run(false);
    assert_eq!(other, 51_251_200 + 1_200_000 + 1_200_000 + 1_000_000 + 1_200_000 + 1_000_000 - 1);
}

/// The worst case: a packet of the other direction goes on its way 1 ps before xoff is reached by
/// all but a byte of a packet, and the sender begins a packet 0.999 bytes' time before the pause
/// frame comes. The headroom, of a link or of each level, is exact to the byte.
#[test]
fn the_headroom_is_exact() {
    // 1,437 bytes' time for a crossing there and back.
    let delay = 1_437 * 800 / 2;
    let cable = |rate, delay| Cable { rate, delay };
    let topology = Tree::new()
        .switch("s")
        .host("a")
        .host("b")
        .host("c")
        .cable("a", "s", cable(10 * GBIT, delay))
        .cable("b", "s", cable(GBIT / 1_000, 0))
        .cable("c", "s", cable(10 * GBIT, delay))
        .build()
        .unwrap();
    let before = 5;
    let xoff = before * 1_500 + 1;
    let headroom = Pause::headroom(delay, 800, 1_500);
    assert_eq!(headroom, 3 * 1_500 + 64 + 1_437 - 2);
    let fifo = Queue::DropTail(Limit::None);
    for (queue, per_level, level) in
        [(fifo, false, 0), (LOSSLESS, true, 0), (LOSSLESS, true, 4), (LOSSLESS, true, 7)]
    {
        let lost = |buffer| {
            let reverse = datagrams(2, 0, 0, before * 1_200_000 - 1, 1);
            let workload = Workload::of_sources(vec![datagrams(0, 1, level, 0, 20), reverse]);
            let scheme = scheme(queue, Pause { xoff, xon: 0, buffer, per_level });
            let scenario = Scenario::new(topology.clone(), scheme, workload);
            let counters = scenario.run().unwrap().counters;
            assert_eq!(counters.delivered.datagrams + counters.full.datagrams, 21);
            counters.full.datagrams
        };
        assert_eq!(lost(xoff + headroom), 0, "{queue:?} {level}");
        assert!(lost(xoff + headroom - 1) > 0, "{queue:?} {level}");
    }
}

/// Two senders behind one switch, two receivers behind another; one receiver is slow. A packet to
/// the other waits as long as the cable between the switches is paused, though its way is free, and
/// in queues with priorities too; one of another level than the flood's passes pauses of levels.
#[test]
fn who_is_behind_waits_too_unless_at_another_level() {
    let cable = |rate| Cable { rate, delay: US };
    let topology = Tree::new()
        .switch("s")
        .switch("t")
        .host("a")
        .host("b")
        .host("slow")
        .host("z")
        .cable("s", "t", cable(10 * GBIT))
        .cable("a", "s", cable(10 * GBIT))
        .cable("b", "s", cable(10 * GBIT))
        .cable("slow", "t", cable(GBIT / 100))
        .cable("z", "t", cable(10 * GBIT))
        .build()
        .unwrap();
    let number = |name| topology.host(name).unwrap();
    let delay = |queue, pauses: Option<bool>, level| {
        let flood = datagrams(number("a"), number("slow"), 7, 0, 30);
        let victim = datagrams(number("b"), number("z"), level, 100 * US, 1);
        let buffer = 9_000 + Pause::headroom(US, 800, 1_500);
        let pause = pauses.map(|per_level| Pause { xoff: 9_000, xon: 6_000, buffer, per_level });
        let workload = Workload::of_sources(vec![flood, victim]);
        let scheme = Scheme { queue, pause, ..Scheme::tcp() };
        let outcome = Scenario::new(topology.clone(), scheme, workload).run().unwrap();
        assert_eq!(outcome.counters.delivered.datagrams, 31);
        outcome.sources[1].delay_sum
    };
    // Three links of 1.2 us and 1 us each; or the slow receiver takes 1.2 ms for a packet, and the
    // switch has to send two or more before anything comes again.
    let idle = |delay: u128| delay == 6_600_000;
    let long = |delay: u128| delay > u128::from(MS);
    let fifo = Queue::DropTail(Limit::None);
    assert!(idle(delay(fifo, None, 0)) && long(delay(fifo, Some(false), 0)));
    assert!(idle(delay(LOSSLESS, None, 0)) && long(delay(LOSSLESS, Some(false), 0)));
    assert!(idle(delay(LOSSLESS, Some(true), 2)) && long(delay(LOSSLESS, Some(true), 7)));
    assert!(long(delay(LOSSLESS, Some(false), 2)));
}

/// All levels of an incast, on random phases: nothing is lost with the headroom, and all ends.
#[test]
fn no_level_loses() {
    let topology = Topology::leaf_spine(&LeafSpine {
        racks: 3,
        hosts_per_rack: 4,
        spines: 2,
        ..LeafSpine::FIG9
    })
    .unwrap();
    let cables = [(2_700_000, 800), (200_000, 200)];
    let room = cables
        .map(|(delay, per_byte)| Pause::headroom(delay, per_byte, 1_500))
        .into_iter()
        .max()
        .unwrap();
    let pause = Pause { xoff: 6_000, xon: 3_000, buffer: 6_000 + room, per_level: true };
    let sources = (1..12).flat_map(|src| {
        (0..8).map(move |level| Source {
            bytes: Bytes::Fixed(200 + 160 * u16::from(level)),
            ..datagrams(src, 0, level, u64::from(src) * 777, 60)
        })
    });
    for queue in [LOSSLESS, Queue::Wfq(Wfq { limit: 1 << 40, weights: [8, 7, 6, 5, 4, 3, 2, 1] })] {
        let workload = Workload::of_sources(sources.clone().collect());
        let mut simulation =
            Simulation::new(&topology, &scheme(queue, pause), &workload, 1).unwrap();
        simulation.run();
        let counters = simulation.outcome().counters;
        assert_eq!((counters.delivered.datagrams, counters.full.datagrams), (11 * 8 * 60, 0));
        assert!(counters.pauses > 8 && simulation.is_clean(), "{}", counters.pauses);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let pause = Pause { xoff: 6_000, xon: 3_000, buffer: 20_000, per_level: true };
    let said = |queue, pause| {
        let workload = Workload::of_sources(Vec::new());
        let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
        Scenario::new(topology, scheme(queue, pause), workload).run().unwrap_err().to_string()
    };
    assert_eq!(
        said(Queue::DropTail(Limit::None), pause),
        "queue: a pause of levels needs a queue that serves by level"
    );
    let pie = Queue::Pie(qjump_sim::Pie::rfc8033(Limit::None));
    let whole = Pause { per_level: false, ..pause };
    assert_eq!(said(pie, whole), "queue: PIE knows the delay only of a link that is never paused");
}
