// SPDX-License-Identifier: GPL-2.0-or-later
//! Go-back-N of RoCE and IRN's selective recovery in a network: goodput beside the textbooks,
//! single losses by hand, with pauses and without.

use proptest::prelude::*;
use qjump_sim::{
    Cable, Congestion, Counters, Dcqcn, Dctcp, Failure, FlowSpec, Flows, Graph, Hpcc, LeafSpine,
    Limit, Loss, Outcome, Pause, PowerTcp, Priority, Ps, Queue, Recovery, Routing, Scenario,
    Scheme, Simulation, Swift, Topology, Transport, Tree, Workload, MS, NS, S, US,
};

const GBIT: u64 = 1_000_000_000;
/// Of a packet and of its ACK at 10 Gb/s.
const SLOT: Ps = 1_200 * NS;
const ACK: Ps = 32 * NS;
/// IRN's timeouts.
const LOW: Ps = 100 * US;
const HIGH: Ps = 320 * US;

/// A queue pair at the line's rate: DCQCN, which nothing marks here.
fn transport(recovery: Recovery) -> Transport {
    let base = Transport {
        delayed_ack: None,
        handshake: None,
        initial_rto: None,
        fixed_rto: true,
        max_window: 8_000,
        recovery,
        ..Transport::linux(Congestion::Dcqcn(Dcqcn::default()))
    };
    match recovery {
        Recovery::Tcp => base,
        Recovery::GoBackN => Transport { sack: false, dupacks: None, ..base },
        Recovery::Selective => Transport { dupacks: Some(1), ..base },
    }
}

fn scheme(transport: Transport) -> Scheme {
    let queue = Queue::DropTail(Limit::None);
    Scheme { transport, queue, routing: Routing::PerFlow, ..Scheme::tcp() }
}

fn run(topology: &Topology, scheme: Scheme, flows: Vec<FlowSpec>) -> Outcome {
    let workload = Workload::of_flows(Flows::List(flows));
    Scenario::new(topology.clone(), scheme, workload).run().unwrap()
}

fn flow(packets: u32) -> Vec<FlowSpec> {
    vec![FlowSpec { start: 0, src: 0, dst: 1, packets }]
}

fn finish(outcome: &Outcome) -> Ps {
    outcome.flows[0].finish.unwrap()
}

/// Two hosts at 10 Gb/s, whose cables take this long, on two switches.
fn line(delay: Ps) -> Tree {
    let edge = Cable { rate: 10 * GBIT, delay };
    let trunk = Cable { rate: 10 * GBIT, delay: 0 };
    let tree = Tree::new().host("a").host("b").switch("x").switch("y");
    tree.cable("a", "x", edge).cable("x", "y", trunk).cable("b", "y", edge)
}

/// From when a packet begins to leave until its ACK is there.
fn trip(delay: Ps) -> Ps {
    3 * (SLOT + ACK) + 4 * delay
}

/// Packets that are sent again with each lost one: those from it to the first slot after a NAK,
/// which the packet after it causes.
fn sent_again(delay: Ps) -> u64 {
    (SLOT + trip(delay)).div_ceil(SLOT)
}

/// Of a flow of 100,000 packets over a cable that loses a share p of them, also of ACKs: the
/// goodput of go-back-N is (1 - p) / (1 - p + Wp), that of selective repeat 1 - p (Bertsekas and
/// Gallager, Data Networks, section 2.4). Both are a little less here: a packet that is lost twice,
/// and a NAK that is lost, need a timeout, of one and a half round trips.
#[test]
fn goodput_is_that_of_the_textbooks() {
    for delay in [2 * US, 10 * US, 25 * US] {
        let w = sent_again(delay) as f64;
        for (share, p) in [(1_000, 0.001), (3_000, 0.003), (10_000, 0.01)] {
            let loss = Loss { one: "x".to_owned(), other: "y".to_owned(), share };
            let topology = line(delay).loss(loss).build().unwrap();
            let goodput = |recovery| {
                let min_rto = trip(delay) * 3 / 2;
                let transport = Transport { min_rto, ..transport(recovery) };
                let outcome = run(&topology, scheme(transport), flow(100_000));
                (100_000 * SLOT) as f64 / finish(&outcome) as f64
            };
            for (recovery, expected) in
                [(Recovery::GoBackN, (1.0 - p) / (1.0 - p + w * p)), (Recovery::Selective, 1.0 - p)]
            {
                let got = goodput(recovery);
                assert!(
                    (got / expected - 1.0).abs() < 0.02,
                    "{recovery:?}, p = {p}, W = {w}: {got}, not {expected}"
                );
            }
        }
    }
}

/// A flow whose packets from `first` to `last` are lost between the switches, while the first is
/// being sent and until the last is offered; no ACK is there then that matters.
fn lose(recovery: Recovery, packets: u32, first: u64, last: u64) -> Outcome {
    let there = |number: u64| (number + 1) * SLOT + 10 * US;
    let (one, other) = ("x".to_owned(), "y".to_owned());
    let (down, up) = (there(first) + SLOT / 2, there(last) + SLOT / 2 + 1);
    let graph = Graph::new(line(10 * US)).failure(Failure { one, other, down, up: Some(up) });
    let low_rto = (recovery == Recovery::Selective).then_some(LOW);
    let transport = Transport { min_rto: HIGH, low_rto, ..transport(recovery) };
    let outcome = run(&graph.build().unwrap(), scheme(transport), flow(packets));
    assert_eq!(outcome.counters.failed.data, last - first + 1);
    outcome
}

/// Packets leave at multiples of a slot, and the ACK of one comes a trip later. The packet after
/// the lost one causes a NAK. While the sender is busy, it sends again from the next slot on;
/// go-back-N then sends everything from there on, and selective recovery needs one slot more.
#[test]
fn a_lost_packet_is_sent_again_at_once() {
    let trip = trip(10 * US);
    assert_eq!(trip, 43_696 * NS);
    // The NAK comes at 68.896 us, in slot 57 of 100.
    let ended = |recovery| lose(recovery, 100, 20, 20);
    let back = ended(Recovery::GoBackN);
    assert_eq!(finish(&back), (58 + 79) * SLOT + trip);
    assert_eq!((back.counters.retransmitted, back.counters.timeouts), (58 - 20, 0));
    let selective = ended(Recovery::Selective);
    assert_eq!(finish(&selective), 100 * SLOT + trip);
    assert_eq!((selective.counters.retransmitted, selective.counters.timeouts), (1, 0));
    // It comes at 152.896 us, when everything has left for long.
    let ended = |recovery| lose(recovery, 100, 90, 90);
    let nak = 91 * SLOT + trip;
    let back = ended(Recovery::GoBackN);
    assert_eq!((finish(&back), back.counters.retransmitted), (nak + 9 * SLOT + trip, 10));
    let selective = ended(Recovery::Selective);
    assert_eq!((finish(&selective), selective.counters.retransmitted), (nak + trip, 1));
}

/// Nothing tells of a lost end. The timer runs from the last ACK that had news; with fewer than
/// three packets under way it is `RTO_low`. IRN sends one packet again for each timeout, because
/// nothing above it has arrived; go-back-N all.
#[test]
fn a_lost_end_waits_for_the_timer() {
    let trip = trip(10 * US);
    let last_ack = |number: u64| number * SLOT + trip;
    let ended = |recovery| finish(&lose(recovery, 100, 99, 99));
    assert_eq!(ended(Recovery::GoBackN), last_ack(98) + HIGH + trip);
    assert_eq!(ended(Recovery::Selective), last_ack(98) + LOW + trip);
    let back = lose(Recovery::GoBackN, 20, 16, 19);
    assert_eq!(finish(&back), last_ack(15) + HIGH + 3 * SLOT + trip);
    let selective = lose(Recovery::Selective, 20, 16, 19);
    assert_eq!(finish(&selective), last_ack(15) + 2 * (HIGH + trip) + 2 * (LOW + trip));
    for (of, timeouts) in [(back, 1), (selective, 4)] {
        assert_eq!((of.counters.retransmitted, of.counters.timeouts), (4, timeouts));
    }
}

/// A timer that was set for the first packet, of `RTO_low`, is extended when more follow: of a flow
/// whose round trip is twice that nothing is sent again. Of one of two packets the first is.
#[test]
fn the_low_timeout_is_of_few_packets() {
    let topology = line(50 * US).build().unwrap();
    let again = |packets| {
        let low_rto = Some(LOW);
        let transport = Transport { min_rto: HIGH, low_rto, ..transport(Recovery::Selective) };
        let counters = run(&topology, scheme(transport), flow(packets)).counters;
        (counters.retransmitted, counters.timeouts)
    };
    assert_eq!([again(1_000), again(3), again(2)], [(0, 0), (0, 0), (2, 2)]);
}

/// A sender at 40 Gb/s, a receiver at 10: the switch pauses, nothing is lost, and the slower cable
/// never idles, whatever the recovery.
#[test]
fn over_pauses_all_recoveries_are_one() {
    let cable = |rate| Cable { rate, delay: US };
    let tree = Tree::new().switch("x").host("a").host("b");
    let tree = tree.cable("a", "x", cable(40 * GBIT)).cable("b", "x", cable(10 * GBIT));
    let topology = tree.build().unwrap();
    let room = Pause::headroom(US, 200, 1_500);
    let pause = Pause { xoff: 30_000, xon: 20_000, buffer: 30_000 + room, per_level: true };
    let expected = 300 * NS + 2_000 * SLOT + ACK + 8 * NS + 4 * US;
    for recovery in [Recovery::Tcp, Recovery::GoBackN, Recovery::Selective] {
        for congestion in [Congestion::Dcqcn(Dcqcn::default()), Congestion::Reno] {
            let initial_window = 8_000;
            let transport =
                Transport { congestion, min_rto: S, initial_window, ..transport(recovery) };
            let queue = Queue::Priority(Priority { limit: 1 << 30 });
            let scheme = Scheme { queue, pause: Some(pause), ..scheme(transport) };
            let outcome = run(&topology, scheme, flow(2_000));
            assert_eq!(finish(&outcome), expected, "{recovery:?}");
            let c = outcome.counters;
            assert_eq!((c.full.total(), c.retransmitted, c.timeouts), (0, 0, 0));
            assert!(c.pauses > 10);
        }
    }
}

fn incast(senders: u32, packets: u32) -> Vec<FlowSpec> {
    (16..16 + senders).map(|src| FlowSpec { start: 0, src, dst: 0, packets }).collect()
}

/// A scheme with another transport.
fn with(transport: Transport, of: &Scheme) -> Scheme {
    let mut scheme = *of;
    scheme.transport = transport;
    scheme
}

/// 40 of Figure 9's hosts to one, with the settings of `roce`: the same ends with each recovery.
#[test]
fn an_incast_over_pauses_is_the_same_with_each() {
    let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
    let roce = Scheme::named("roce", &topology).unwrap();
    let ended = |transport| {
        let outcome = run(&topology, with(transport, &roce), incast(40, 100));
        let c = outcome.counters;
        assert_eq!((c.full.total() + c.early.total(), c.retransmitted, c.timeouts), (0, 0, 0));
        assert!(c.pauses > 0 && c.marked > 0);
        outcome.flows
    };
    let back = ended(roce.transport);
    let (sack, dupacks) = (true, Some(1));
    for recovery in [Recovery::Tcp, Recovery::Selective] {
        assert_eq!(ended(Transport { recovery, sack, dupacks, ..roce.transport }), back);
    }
}

/// The same without pauses, with the settings of `irn`, where a full buffer takes 180 us. While
/// nothing is lost twice, selective recovery sends again what was lost and nothing else; go-back-N
/// also what had arrived. In a larger incast a timeout may repeat a copy that is under way.
#[test]
fn without_pauses_go_back_n_sends_much_again() {
    let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
    let irn = Scheme::named("irn", &topology).unwrap();
    let counters = |transport: Transport, senders| {
        let outcome = run(&topology, with(transport, &irn), incast(senders, 100));
        assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()));
        let c = outcome.counters;
        assert_eq!(c.early.total(), 0, "what is sent again can be marked, too");
        (c.full.data, c.retransmitted - c.full.data)
    };
    let (sack, dupacks, low_rto) = (false, None, None);
    let back = Transport { recovery: Recovery::GoBackN, sack, dupacks, low_rto, ..irn.transport };
    for senders in [16, 24] {
        let (lost, more) = counters(irn.transport, senders);
        assert!(lost >= 50 && more == 0, "{lost} lost, {more} that had arrived");
        let (lost_back, more) = counters(back, senders);
        assert!(lost_back > lost && more > 200, "{lost_back} lost, {more} that had arrived");
    }
    let (lost, more) = counters(irn.transport, 40);
    assert!(lost > 500 && 20 * more < lost, "{lost} lost, {more} that had arrived");
}

fn kept(c: &Counters) -> bool {
    let lost = c.full.total() + c.early.total() + c.failed.total();
    c.sent.total() == c.delivered.total() + lost + c.in_flight
}

fn laws() -> Vec<Congestion> {
    vec![
        Congestion::Dcqcn(Dcqcn::default()),
        Congestion::Hpcc(Hpcc::default()),
        Congestion::PowerTcp(PowerTcp { base: 30 * US, gamma: 900_000, increase: 400 }),
        Congestion::Dctcp(Dctcp { shift: 4 }),
        Congestion::Swift(Swift::default()),
        Congestion::Cubic,
        Congestion::Ecn,
        Congestion::Bbr,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// With each law, over cables that lose packets and full queues: every flow ends, and every
    /// packet is delivered, dropped for a counted reason or under way, at every stop.
    #[test]
    fn random_losses_are_made_good(
        law in 0usize..8, back in any::<bool>(), low in any::<bool>(), delayed in any::<bool>(),
        fixed_rto in any::<bool>(), share in 0u32..100_000, limit in 2u32..60, rate in 1u64..20,
        delay in 0u64..20, window in 1u32..60, dupacks in 1u32..4, seed: u64,
        flows in prop::collection::vec((0u64..200, 0u32..3, 1u32..3, 1u32..150), 1..10),
    ) {
        let congestion = laws()[law];
        let cable = Cable { rate: rate * GBIT, delay: delay * US };
        let lossy = Loss { one: "x".to_owned(), other: "y".to_owned(), share };
        let topology = Tree::new().host("a").host("b").host("c").switch("x").switch("y")
            .cable("a", "x", cable).cable("b", "y", cable).cable("c", "x", cable)
            .cable("x", "y", Cable { rate: 5 * GBIT, delay: US }).loss(lossy).build().unwrap();
        let is_int = matches!(congestion, Congestion::Hpcc(_) | Congestion::PowerTcp(_));
        let of = transport(if back { Recovery::GoBackN } else { Recovery::Selective });
        let transport = Transport {
            congestion,
            delayed_ack: (delayed && !is_int).then_some(50 * US),
            dupacks: (!back).then_some(dupacks),
            low_rto: (!back && low).then_some(LOW),
            min_rto: HIGH,
            max_rto: 10 * MS,
            fixed_rto,
            initial_window: window.min(12),
            max_window: window,
            ..of
        };
        let queue = Queue::DropTail(Limit::Packets(limit));
        let flows = flows.iter().map(|&(start, src, over, packets)| FlowSpec {
            start: start * US, src, dst: (src + over) % 3, packets,
        });
        let workload = Workload::of_flows(Flows::List(flows.collect()));
        let scheme = Scheme { queue, ..scheme(transport) };
        let mut simulation = Simulation::new(&topology, &scheme, &workload, seed).unwrap();
        for stop in [20 * US, 100 * US, 500 * US, 2 * MS, 1_000 * S] {
            simulation.run_until(stop);
            prop_assert!(kept(&simulation.outcome().counters), "at {stop} ps");
        }
        let outcome = simulation.outcome();
        prop_assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()), "{congestion:?}");
        prop_assert_eq!(outcome.counters.in_flight, 0);
    }
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let topology = line(US).build().unwrap();
    let refused = |transport| {
        let workload = Workload::of_flows(Flows::List(flow(1)));
        let scenario = Scenario::new(topology.clone(), scheme(transport), workload);
        scenario.run().unwrap_err().to_string()
    };
    let back = transport(Recovery::GoBackN);
    let selective = transport(Recovery::Selective);
    assert_eq!(
        refused(Transport { sack: true, ..back }),
        "transport: go-back-n needs sack false and dupacks left out: receivers keep nothing above \
         a gap"
    );
    assert_eq!(
        refused(Transport { dupacks: None, ..selective }),
        "transport: selective recovery needs sack, sack_after_rto and dupacks"
    );
    assert_eq!(
        refused(Transport { low_rto: Some(US), ..back }),
        "transport: low_rto needs selective recovery"
    );
    assert_eq!(
        refused(Transport { low_rto: Some(S), ..selective }),
        "transport: low_rto must be above 0 and at most min_rto"
    );
}
