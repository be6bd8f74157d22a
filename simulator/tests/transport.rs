// SPDX-License-Identifier: GPL-2.0-or-later
//! Connection setup, delayed ACKs, loss recovery and latencies, to the picosecond, in a rack of
//! Figure 9: a packet takes 1.2 us and 2.7 us on each of two links, an ACK or SYN of 40 bytes 32 ns
//! and 2.7 us.

use qjump_sim::{
    Bytes, Cable, Congestion, Dctcp, FlowSpec, Flows, Gap, LeafSpine, Limit, Limiter, Marking,
    Outcome, PerHost, Ps, Queue, Scenario, Scheme, Simulation, Source, Threshold, Topology,
    Transport, Tree, Workload, MS, NS, S, US,
};

/// A packet there and its ACK back; a SYN there and its SYN-ACK back.
const ROUND_TRIP: Ps = 2 * (1_200 + 2_700) * NS + 2 * (32 + 2_700) * NS;
const SETUP: Ps = 4 * (32 + 2_700) * NS;

fn fabric() -> Topology {
    Topology::leaf_spine(&LeafSpine::FIG9).unwrap()
}

/// Reno as it is today, but without what a test does not look at.
fn plain() -> Transport {
    Transport { delayed_ack: None, handshake: None, ..Transport::linux(Congestion::Reno) }
}

fn scheme(transport: Transport) -> Scheme {
    Scheme { transport, ..Scheme::tcp() }
}

fn run(scheme: Scheme, flows: &[FlowSpec], sources: &[Source]) -> Outcome {
    let workload = Workload {
        flows: Flows::List(flows.to_vec()),
        sources: sources.to_vec(),
        apps: Vec::new(),
    };
    Scenario::new(fabric(), scheme, workload).run().unwrap()
}

fn flow(dst: u32, packets: u32) -> FlowSpec {
    FlowSpec { start: 5 * US, src: 0, dst, packets }
}

fn alone(transport: Transport, packets: u32) -> Outcome {
    run(scheme(transport), &[flow(1, packets)], &[])
}

fn completion(outcome: &Outcome) -> Ps {
    outcome.flows[0].finish.unwrap() - outcome.flows[0].start
}

/// So many datagrams at once, which come to the end of their host's link together.
fn burst(src: u32, first: Ps, bytes: u16, count: u64) -> Source {
    Source { src, dst: 1, level: 0, first, gap: Gap::Every(0), bytes: Bytes::Fixed(bytes), count }
}

#[test]
fn a_handshake_takes_one_round_trip() {
    for congestion in [
        Congestion::Reno,
        Congestion::Ecn,
        Congestion::Cubic,
        Congestion::Dctcp(Dctcp { shift: 4 }),
    ] {
        let with = Transport::linux(congestion);
        let without = Transport { handshake: None, ..with };
        for packets in [1, 2, 6] {
            let ideal = u64::from(packets - 1) * 1_200 * NS + ROUND_TRIP;
            assert_eq!(completion(&alone(without, packets)), ideal, "{congestion:?}");
            assert_eq!(completion(&alone(with, packets)), SETUP + ideal, "{congestion:?}");
        }
        let c = alone(with, 6).counters;
        assert_eq!(
            (c.sent.syns, c.sent.syn_acks, c.sent.data, c.sent.acks),
            (1, 1, 6, 3),
            "{congestion:?}"
        );
        assert_eq!((c.sent, c.hops, c.timeouts), (c.delivered, 22, 0));
        // To another rack a SYN crosses two more links of 8 ns and 0.2 us each way.
        let across = |transport| completion(&run(scheme(transport), &[flow(40, 6)], &[]));
        assert_eq!(across(with) - across(without), SETUP + 4 * (8 + 200) * NS);
    }
    // ACKs of 150 bytes at 1 Gb/s, as in the study of ECN under Hadoop: 1.2 us on a link, data 12
    // us.
    let edge = Cable { rate: 1_000_000_000, delay: 0 };
    let topology = Topology::leaf_spine(&LeafSpine { edge, ..LeafSpine::FIG9 }).unwrap();
    let workload = Workload::of_flows(Flows::List(vec![flow(1, 2)]));
    let scheme = scheme(Transport { ack_bytes: 150, ..Transport::linux(Congestion::Ecn) });
    let outcome = Scenario::new(topology, scheme, workload).run().unwrap();
    assert_eq!(completion(&outcome), (4 * 1_200 + 3 * 12_000 + 2 * 1_200) * NS);
}

#[test]
fn connections_that_are_kept_need_none() {
    let later = FlowSpec { start: MS, ..flow(1, 6) };
    let time = |connections| {
        let outcome = run(
            scheme(Transport { connections, ..Transport::linux(Congestion::Reno) }),
            &[flow(1, 6), later],
            &[],
        );
        (outcome.flows[1].finish.unwrap() - MS, outcome.counters.sent.syns)
    };
    assert_eq!(time(0), (SETUP + 6 * US + ROUND_TRIP, 2));
    assert_eq!(time(1), (6 * US + ROUND_TRIP, 1));
}

/// Two bursts fill the host's queue when the SYN comes, and when it comes again a second later: the
/// third comes 2 s after that. The window is one packet then (RFC 5681, section 3.1), whose ACK is
/// delayed, and the rest goes with the second.
#[test]
fn a_lost_syn_costs_its_timeout() {
    let syn_at = 5 * US;
    let bursts = [burst(0, syn_at - US, 1_500, 10), burst(0, syn_at + S - US, 1_500, 10)];
    let transport = Transport::linux(Congestion::Reno);
    let time = |transport: Transport, packets, losses: usize| {
        let scheme = Scheme { queue: Queue::DropTail(Limit::Packets(10)), ..scheme(transport) };
        let outcome = run(scheme, &[flow(1, packets)], &bursts[..losses]);
        let c = outcome.counters;
        assert_eq!(
            (c.full.syns, c.timeouts, c.sent.syns),
            (losses as u64, losses as u64, 1 + losses as u64)
        );
        completion(&outcome)
    };
    assert_eq!(time(transport, 1, 1), S + SETUP + ROUND_TRIP);
    assert_eq!(time(transport, 1, 2), 3 * S + SETUP + ROUND_TRIP);
    assert_eq!(
        time(Transport { handshake: Some(3 * S), ..transport }, 1, 1),
        3 * S + SETUP + ROUND_TRIP
    );
    assert_eq!(time(transport, 3, 1), S + SETUP + 40 * MS + ROUND_TRIP + 1_200 * NS + ROUND_TRIP);
    let each = Transport { delayed_ack: None, ..transport };
    assert_eq!(time(each, 3, 1), S + SETUP + ROUND_TRIP + 1_200 * NS + ROUND_TRIP);
}

/// Rounds of 4 ms. An ACK opens the window by a packet: all of them double it, one for two packets
/// has it grow by half. A packet that is pending at the end of a round is acknowledged with the
/// first of the next.
#[test]
fn slow_start_grows_by_acks() {
    let fabric = LeafSpine { edge: Cable { rate: 10_000_000_000, delay: MS }, ..LeafSpine::FIG9 };
    let topology = Topology::leaf_spine(&fabric).unwrap();
    let workload = Workload::of_flows(Flows::List(vec![FlowSpec {
        start: 0,
        src: 0,
        dst: 1,
        packets: 100_000,
    }]));
    let rounds = |delayed_ack| {
        let transport = Transport { delayed_ack, ..plain() };
        let mut simulation = Simulation::new(&topology, &scheme(transport), &workload, 1).unwrap();
        let mut sent_until = |time| {
            simulation.run_until(time);
            simulation.outcome().counters.sent.data
        };
        let mut before = 0;
        let round = |n: u64| {
            let sent = sent_until(n * (4 * MS + 2 * 1_232 * NS) + MS) - before;
            before += sent;
            sent
        };
        (0..6).map(round).collect::<Vec<u64>>()
    };
    assert_eq!(rounds(None), [10, 20, 40, 80, 160, 320]);
    // Windows of 10, 15, 22, 33, 49 and 73, of which 0, 1, 0, 1 and 1 are pending.
    assert_eq!(rounds(Some(40 * MS)), [10, 15, 21, 33, 48, 72]);
}

/// The fourth of 16 packets is lost at a switch whose queue nine datagrams have filled, and alone.
/// How it is found: a packet before all others has moved the departures, so that there is no room
/// at 7.5 us; at 7.8 us there is. The packets after it leave until 25.8 us; the ACKs of the three
/// before it have let six more go.
fn one_loss(transport: Transport, more: &[Source]) -> Outcome {
    let scheme = Scheme { queue: Queue::DropTail(Limit::Packets(10)), ..scheme(transport) };
    let start = 5 * US;
    let mut sources = vec![burst(15, start + 300 * NS, 750, 1)];
    sources.extend((2..11).map(|src| burst(src, start + 3_500 * NS, 1_500, 1)));
    sources.extend(more);
    run(scheme, &[flow(1, 16)], &sources)
}

#[test]
fn a_loss_is_repaired_one_round_trip_after_it_is_found() {
    for sack in [true, false] {
        let outcome = one_loss(Transport { sack, ..plain() }, &[]);
        let c = outcome.counters;
        assert_eq!(
            (c.full.data, c.full.datagrams, c.retransmitted, c.timeouts),
            (1, 0, 1, 0),
            "sack: {sack}"
        );
        // Packet 6 leaves the switch after 22.2 us, is there 2.7 us later, and its ACK 5.464 us
        // after that.
        assert_eq!(completion(&outcome), 30_364 * NS + ROUND_TRIP, "sack: {sack}");
        assert_eq!(c.latency_again.sum, u128::from(2 * 3_900 * NS), "sack: {sack}");
        // Found by the timer only, which the third ACK has set at 15.964 us.
        let slow =
            one_loss(Transport { sack, dupacks: None, rto_above_rtt: false, ..plain() }, &[]);
        assert_eq!(completion(&slow), 15_964 * NS + 200 * MS + ROUND_TRIP, "sack: {sack}");
        assert_eq!((slow.counters.timeouts, slow.counters.retransmitted), (1, 1), "sack: {sack}");
    }
}

/// The sixth is lost as well, to one more datagram. `NewReno` hears of it from the ACK of the
/// fourth, a round trip after that was sent at 31.564 us. With selective acknowledgements the
/// sender knows both holes at once, and fills the second as soon as less than half of the 13
/// packets is under way.
#[test]
fn two_losses_cost_newreno_two_round_trips() {
    let time = |sack| {
        let outcome =
            one_loss(Transport { sack, ..plain() }, &[burst(12, 5 * US + 5_600 * NS, 1_500, 1)]);
        let c = outcome.counters;
        assert_eq!(
            (c.full.data, c.full.datagrams, c.retransmitted, c.timeouts),
            (2, 0, 2, 0),
            "sack: {sack}"
        );
        completion(&outcome)
    };
    assert_eq!(time(false), 31_564 * NS + 2 * ROUND_TRIP);
    assert_eq!(time(true), 36_364 * NS + ROUND_TRIP);
}

/// Where packets of a flow stay in order, no more is sent again than was lost, whatever the queue:
/// in the burst of slow start, which loses up to a queue of packets, and in what follows.
#[test]
fn only_what_is_lost_is_sent_again() {
    for congestion in [Congestion::Reno, Congestion::Cubic] {
        for (sack, packets) in
            [(true, 30), (true, 60), (true, 150), (false, 30), (false, 60), (false, 150)]
        {
            let transport = Transport { sack, ..Transport::linux(congestion) };
            let queue = Queue::DropTail(Limit::Packets(packets));
            let outcome = run(Scheme { queue, ..scheme(transport) }, &[flow(1, 30_000)], &[]);
            let c = outcome.counters;
            assert!(c.full.data > 20, "{congestion:?}, sack: {sack}, {packets}");
            assert_eq!(
                (c.retransmitted, c.timeouts),
                (c.full.data, 0),
                "{congestion:?}, sack: {sack}, {packets}"
            );
            // Not longer than without a loss by more than three packets' time; without selective
            // acknowledgements 1.2 %.
            let longer = completion(&outcome) - (SETUP + 29_999 * 1_200 * NS + ROUND_TRIP);
            let allowed = if sack { 3 } else { 350 };
            assert!(
                longer < allowed * 1_200 * NS,
                "{congestion:?}, sack: {sack}, {packets}: {longer} ps"
            );
        }
    }
}

/// Six packets at once: each waits 1.2 us longer for its host's link.
#[test]
fn latencies_are_exact() {
    let c = alone(plain(), 6).counters;
    assert_eq!((c.latency.packets, c.latency_again.packets), (6, 0));
    assert_eq!(c.latency.sum, u128::from((6 * 7_800 + 15 * 1_200) * NS));
    assert_eq!(c.latency.max, (7_800 + 5 * 1_200) * NS);
    // What a limiter holds back counts from its release.
    let limiter = Limiter::PerHost(PerHost::new(MS, [1_500; 8]));
    let c = run(Scheme { limiter, ..scheme(plain()) }, &[flow(1, 6)], &[]).counters;
    assert_eq!((c.latency.sum, c.latency.max), (u128::from(6 * 7_800 * NS), 7_800 * NS));
}

/// A limiter holds a SYN back as it does data; its timer begins when it leaves.
#[test]
fn a_syn_passes_its_hosts_limiter() {
    let limiter = Limiter::PerHost(PerHost::new(3 * S, [1_500; 8]));
    let outcome = run(
        Scheme { limiter, ..scheme(Transport::linux(Congestion::Reno)) },
        &[flow(1, 1), flow(2, 1)],
        &[],
    );
    // SYN 0, SYN 1 in the first epoch; data of the first in the second, of the second in the third.
    assert_eq!(outcome.counters.timeouts, 0);
    assert_eq!(
        outcome.flows.iter().map(|flow| flow.finish.unwrap()).collect::<Vec<Ps>>(),
        [5 * US + 3 * S + ROUND_TRIP, 5 * US + 6 * S + ROUND_TRIP]
    );
}

/// A flow that is alone: the window grows by one a round trip until the queue is longer than K =
/// 120 packets and is halved (RFC 3168). Then half of C · RTT + K + 2 packets is under way, and
/// what C · RTT does not hold waits. A round trip passes before the cut is heard of, in which all
/// packets are marked: one window of W in 3/8 W^2 packets (Mathis et al. 1997), 8/3W of all.
#[test]
fn marks_halve_a_steady_window() {
    const K: u64 = 120;
    let cable = |gb: u64| Cable { rate: gb * 1_000_000_000, delay: 24 * US };
    let topology = Tree::new()
        .switch("s")
        .host("a")
        .host("b")
        .cable("a", "s", cable(40))
        .cable("b", "s", cable(10))
        .build()
        .unwrap();
    let workload = Workload::of_flows(Flows::List(vec![FlowSpec {
        start: 0,
        src: 0,
        dst: 1,
        packets: 1_000_000,
    }]));
    let transport = Transport { delayed_ack: None, ..Transport::linux(Congestion::Ecn) };
    let queue = Queue::Marking(Marking { limit: 1_500_000, threshold: K * 1_500 });
    let mut simulation =
        Simulation::new(&topology, &Scheme { queue, ..scheme(transport) }, &workload, 1).unwrap();
    simulation.run_until(50 * MS);
    let before = simulation.outcome().counters;
    let (mut least, mut largest) = (f64::MAX, 0.0f64);
    for at in (50 * MS..1_000 * MS).step_by(10 * US as usize) {
        simulation.run_until(at);
        let packets = simulation.backlog_to(1) as f64 / 1.2e6;
        (least, largest) = (least.min(packets), largest.max(packets));
    }
    let after = simulation.outcome().counters;
    assert_eq!((after.full.total(), after.retransmitted), (0, 0));
    let marked = (after.marked - before.marked) as f64
        / (after.delivered.data - before.delivered.data) as f64;
    let in_flight = f64::from(300 + 1_200 + 32 + 8 + 4 * 24_000) / 1_200.0;
    let window = in_flight + K as f64 + 2.0;
    let place = format!(
        "queue {least:.1} to {largest:.1}, model {:.1} to {K}; marked {marked:.4}, model {:.4}",
        window / 2.0 - in_flight,
        8.0 / 3.0 / window
    );
    println!("{place}");
    assert!((K as f64 + 1.0..K as f64 + 3.0).contains(&largest), "{place}");
    assert!((least - (window / 2.0 - in_flight)).abs() < 2.0, "{place}");
    assert!((marked * window * 3.0 / 8.0 - 1.0).abs() < 0.05, "{place}");
}

/// Four flows and a queue of 100 packets, more than the network holds besides: the link never
/// idles.
#[test]
fn four_flows_fill_a_link() {
    let topology = fabric();
    for congestion in [
        Congestion::Reno,
        Congestion::Ecn,
        Congestion::Cubic,
        Congestion::Dctcp(Dctcp { shift: 4 }),
    ] {
        let flows = (0..4).map(|src| FlowSpec { start: 0, src, dst: 15, packets: 10_000_000 });
        let workload = Workload::of_flows(Flows::List(flows.collect()));
        let transport = Transport { min_rto: 10 * MS, ..Transport::linux(congestion) };
        let marks = matches!(congestion, Congestion::Ecn | Congestion::Dctcp { .. });
        let queue = if marks {
            Queue::Marking(Marking { limit: 300_000, threshold: 60_000 })
        } else {
            Queue::DropTail(Limit::Packets(100))
        };
        let mut simulation =
            Simulation::new(&topology, &Scheme { queue, ..scheme(transport) }, &workload, 1)
                .unwrap();
        simulation.run_until(20 * MS);
        let before = simulation.outcome().counters;
        simulation.run_until(320 * MS);
        let after = simulation.outcome().counters;
        assert_eq!(
            after.delivered.data - before.delivered.data,
            300 * MS / (1_200 * NS),
            "{congestion:?}"
        );
        assert_eq!((after.full.data > 0, after.marked > 0), (!marks, marks), "{congestion:?}");
    }
}

/// The first window overflows the host's queue; whatever is ECN-capable is marked.
#[test]
fn data_sent_again_is_marked_where_it_is_ecn_capable() {
    let marks = |ect_again| {
        let transport = Transport { ect_again, ..Transport::linux(Congestion::Ecn) };
        let queue =
            Queue::Threshold(Threshold { limit: Limit::Packets(5), threshold: Limit::Bytes(0) });
        let outcome = run(Scheme { queue, ..scheme(transport) }, &[flow(1, 60)], &[]);
        let c = outcome.counters;
        assert!(c.retransmitted > 0 && c.full.data > 0 && c.early.data == 0, "{c:?}");
        (c.marked, c.delivered.data, c.retransmitted)
    };
    let (marked, delivered, again) = marks(false);
    assert_eq!(marked, delivered - again, "RFC 3168: not ECN-capable");
    let (marked, delivered, _) = marks(true);
    assert_eq!(marked, delivered, "ns-2");
}

/// Everything is marked: DCTCP's window falls to the least. The ACK of a window of one packet is
/// delayed.
#[test]
fn windows_of_one_packet_wait_for_delayed_acks() {
    let time = |least_window| {
        let transport =
            Transport { least_window, ..Transport::linux(Congestion::Dctcp(Dctcp { shift: 0 })) };
        let queue =
            Queue::Threshold(Threshold { limit: Limit::Packets(100), threshold: Limit::Bytes(0) });
        let outcome = run(Scheme { queue, ..scheme(transport) }, &[flow(1, 100)], &[]);
        assert_eq!((outcome.counters.timeouts, outcome.counters.marked), (0, 100));
        completion(&outcome)
    };
    assert!(time(1) > 80 * 40 * MS, "{}", time(1));
    assert!(time(2) < 40 * MS, "{}", time(2));
}

/// The fourth and sixth of 16 are lost, and the timer finds it. The first is sent again; its ACK
/// tells of five packets and opens a window of two, which are the sixth and the next that is not
/// known to have arrived: none, or the seventh where a timeout has made the sender forget.
#[test]
fn selective_acknowledgements_may_be_forgotten_after_a_timeout() {
    let again = |sack_after_rto| {
        let transport = Transport { sack_after_rto, dupacks: None, ..plain() };
        let c = one_loss(transport, &[burst(12, 5 * US + 5_600 * NS, 1_500, 1)]).counters;
        assert_eq!((c.full.data, c.timeouts), (2, 1));
        c.retransmitted
    };
    assert_eq!((again(true), again(false)), (2, 3));
}
