// SPDX-License-Identifier: GPL-2.0-or-later
//! DCQCN: flows share a link alike, without a loss, where its marks balance what it raises.

use std::collections::HashMap;

use qjump_sim::{
    Cable, Congestion, Dcqcn, FlowSpec, Hop, Limit, Profile, Protection, Ps, Queue, Reading, Red,
    Scheme, Simulation, Traced, Transport, Watch, MS, US,
};

use crate::{between, dumbbell, endless, last_takes, rates, seen_between, transport};

const CABLE: Cable = Cable { rate: 40_000_000_000, delay: US };
/// The paper's (figure 14): 5 and 200 kB, a probability of 1 %.
const MARKS: Red = Red {
    limit: Limit::None,
    profile: Profile { min: Limit::Bytes(5_000), max: Limit::Bytes(200_000), max_p: 10_000 },
    not_ect: None,
    gentle: false,
    weight: 0,
    in_packets: false,
    mean_packet: 1_500,
    reading: Reading::Each,
    mark_p: None,
    protection: Protection::Default,
};

/// Where marks balance what is raised: the fixed point of the fluid model (Zhu et al., 2016, ECN or
/// Delay, equation 14), as a share of packets. Time in seconds, data in packets; the rate is raised
/// by `R_AI` a timer or counter.
fn balance(flows: f64) -> f64 {
    let (of, packet) = (Dcqcn::default(), 12_000.0);
    let (link, timer) = (CABLE.rate as f64 / packet, of.timer as f64 / 1e12);
    let raises = 1.0 / (of.counter as f64 / 1_500.0) + flows / (timer * link);
    let alpha_timer = of.alpha_timer as f64 / 1e12;
    (of.increase as f64 / packet * flows * flows / (alpha_timer * link * link) * raises * raises)
        .cbrt()
}

/// Reports of a flow that its sender heeds: the first mark, and the next that comes 50 us after it
/// or later.
fn reports(simulation: &Simulation, [from, to]: [Ps; 2]) -> usize {
    let mut last = HashMap::new();
    let marks = simulation
        .trace()
        .iter()
        .filter(|hop| hop.kind == 0 && hop.marked && hop.at >= from && hop.at < to);
    let heeded = |hop: &&Hop| {
        let new = last.get(&hop.flow).is_none_or(|last| hop.at - last >= 50 * US);
        if new {
            last.insert(hop.flow, hop.at);
        }
        new
    };
    marks.filter(heeded).count()
}

/// The link is full, flows get the same within 5 %, nothing is lost, and reports are within 20 % as
/// many as marks at the balance of few flows; that of ten lies beyond what RED marks before it
/// marks all.
#[test]
fn flows_share_a_link_alike() {
    for flows in [2, 4, 10] {
        let of = transport(Congestion::Dcqcn(Dcqcn::default()));
        let scheme = Scheme { transport: of, queue: Queue::Red(MARKS), ..Scheme::tcp() };
        let watch = Watch { traced: Some(Traced::Hosts(vec![0])), ..Watch::default() };
        let topology = dumbbell(flows, CABLE, CABLE);
        let workload = endless(flows, 400 * MS, 10 * MS);
        let (outcomes, simulation) =
            seen_between(&topology, &scheme, &workload, &watch, [100 * MS, 400 * MS]);
        let (rates, _) = rates(&outcomes);
        let total: f64 = rates.iter().sum();
        assert!(total > 0.96 * 40e9, "{flows} flows: {total} bit/s");
        let fair = total / f64::from(flows);
        assert!(
            rates.iter().all(|rate| (rate / fair - 1.0).abs() < 0.05),
            "{flows} flows: {rates:?}"
        );
        let [before, after] = outcomes.each_ref().map(|outcome| outcome.counters);
        assert_eq!((after.retransmitted, after.full.total()), (0, 0));
        let packets = (after.delivered.data - before.delivered.data) as f64;
        let reported = reports(&simulation, [100 * MS, 400 * MS]) as f64 / packets;
        let marked = (after.marked - before.marked) as f64 / packets;
        let expected = balance(flows.into());
        if expected < 0.01 {
            assert!(
                (reported / expected - 1.0).abs() < 0.2,
                "{flows} flows: {reported} of packets reported, not {expected}"
            );
        } else {
            assert!(
                marked > expected,
                "{flows} flows: {marked} of packets marked, though the balance is {expected}"
            );
        }
    }
}

/// Marks are heard where ACKs wait for a second packet: the queue is no longer than twice that with
/// an ACK for each.
#[test]
fn marks_are_heard_through_delayed_acks() {
    let longest = |delayed_ack| {
        let transport = Transport { delayed_ack, ..transport(Congestion::Dcqcn(Dcqcn::default())) };
        let scheme = Scheme { transport, queue: Queue::Red(MARKS), ..Scheme::tcp() };
        let (outcomes, ports) = between(
            &dumbbell(4, CABLE, CABLE),
            &scheme,
            &endless(4, 100 * MS, 10 * MS),
            [50 * MS, 100 * MS],
        );
        assert!(rates(&outcomes).0.iter().sum::<f64>() > 0.97 * 40e9);
        ports.iter().map(|port| port.longest).max().unwrap()
    };
    let [each, delayed] = [None, Some(40 * MS)].map(longest);
    assert!(delayed < 2 * each, "{delayed} bytes, {each} with an ACK for each packet");
}

/// Nobody waits for the first ACK: 200 packets take 199 times as long as a packet's sending more
/// than one.
#[test]
fn a_flow_begins_with_the_lines_rate() {
    let fast = Cable { rate: 100_000_000_000, delay: 5 * US };
    let took = |packets| {
        let transport =
            Transport { initial_window: 10, ..transport(Congestion::Dcqcn(Dcqcn::default())) };
        let scheme = Scheme { transport, ..Scheme::tcp() };
        last_takes(
            dumbbell(1, fast, fast),
            scheme,
            vec![FlowSpec { start: 0, src: 1, dst: 0, packets }],
        )
    };
    assert_eq!(took(200) - took(1), 199 * 120_000);
}
