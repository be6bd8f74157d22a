// SPDX-License-Identifier: GPL-2.0-or-later
//! Homa beside the best that a single link can do: shortest remaining time first.

use qjump_sim::{
    Cable, Congestion, FlowSpec, Flows, Homa, LeafSpine, Limit, Limiter, PerHost, Priority, Ps,
    Queue, Rng, Scenario, Scheme, Simulation, Sizes, Threshold, Topology, Transport, Watch,
    Workload, MS, US,
};

use crate::{delivered, endless};

const CABLE: Cable = Cable { rate: 10_000_000_000, delay: 2_700_000 };
const FRAME: Ps = 1_200_000;
/// Of an empty path over a switch: a packet and what ends the message.
const EMPTY: Ps = 2 * (FRAME + 32_000) + 4 * CABLE.delay;

/// A round trip of 13.3 us holds 11 packets.
fn homa() -> Transport {
    let congestion = Congestion::Homa(Homa { scheduled: 6 });
    Transport {
        initial_window: 12,
        max_window: 1_000,
        min_rto: 10 * MS,
        ..crate::transport(congestion)
    }
}

fn scheme() -> Scheme {
    let levels = [6, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000];
    Scheme {
        transport: homa(),
        queue: Queue::Priority(Priority { limit: 1_500_000 }),
        levels,
        ..Scheme::tcp()
    }
}

fn rack(hosts: u32) -> Topology {
    Topology::leaf_spine(&LeafSpine {
        racks: 1,
        hosts_per_rack: hosts,
        spines: 0,
        edge: CABLE,
        uplink: CABLE,
    })
    .unwrap()
}

/// Messages of all hosts to host 0, at random times.
fn messages(count: u32, load: f64, hosts: u32) -> Vec<FlowSpec> {
    let mut rng = Rng::new(5, 0);
    let sizes = [1u32, 2, 4, 6, 20, 100, 400];
    let mean = f64::from(sizes.iter().sum::<u32>()) / sizes.len() as f64;
    let mut start = 0;
    let message = |_| {
        start += rng.exponential(mean * FRAME as f64 / load);
        let (src, packets) =
            (1 + rng.below(u64::from(hosts - 1)) as u32, sizes[rng.below(7) as usize]);
        FlowSpec { start, src, dst: 0, packets }
    };
    (0..count).map(message).collect()
}

/// When the last bit of each message has been sent by a link that always sends the one with the
/// least left.
fn ideal(messages: &[FlowSpec]) -> Vec<Ps> {
    let mut ends = vec![0; messages.len()];
    let mut waiting: Vec<(Ps, usize)> = Vec::new();
    let (mut now, mut next) = (0, 0);
    while next < messages.len() || !waiting.is_empty() {
        if waiting.is_empty() {
            now = now.max(messages[next].start);
        }
        while next < messages.len() && messages[next].start <= now {
            waiting.push((Ps::from(messages[next].packets) * FRAME, next));
            next += 1;
        }
        let best = (0..waiting.len()).min_by_key(|&i| waiting[i]).unwrap();
        let until = messages.get(next).map_or(Ps::MAX, |message| message.start);
        let took = waiting[best].0.min(until - now);
        now += took;
        waiting[best].0 -= took;
        if waiting[best].0 == 0 {
            ends[waiting[best].1] = now;
            waiting.swap_remove(best);
        }
    }
    ends
}

fn mean(times: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = times.collect();
    all.iter().sum::<f64>() / all.len() as f64
}

/// To the picosecond: one that needs no grant, and one whose grants come in time.
#[test]
fn a_message_alone_takes_what_the_link_does() {
    for packets in [1, 12, 13, 1_000] {
        let flows = Flows::List(vec![FlowSpec { start: 0, src: 1, dst: 0, packets }]);
        let scenario = Scenario::new(rack(2), scheme(), Workload::of_flows(flows));
        let took = scenario.run().unwrap().flows[0].finish.unwrap();
        assert_eq!(took, EMPTY + Ps::from(packets - 1) * FRAME, "{packets} packets");
    }
}

/// Load 0.8 on one host's link: no loss; messages of at most 6 packets within two packets of an
/// empty network's time at the 99th percentile; the mean of all within 10 % of the ideal.
#[test]
fn messages_to_one_host_are_served_as_by_the_shortest_first() {
    let messages = messages(20_000, 0.8, 16);
    let ideal = ideal(&messages);
    let workload = Workload::of_flows(Flows::List(messages.clone()));
    let outcome = Scenario::new(rack(16), scheme(), workload).run().unwrap();
    let c = &outcome.counters;
    assert_eq!((c.full.total(), c.pushed_out.total(), c.retransmitted), (0, 0, 0));
    let took = |i: usize| (outcome.flows[i].finish.unwrap() - messages[i].start) as f64;
    let best = |i: usize| (ideal[i] - messages[i].start + EMPTY - FRAME) as f64;
    let all = mean((0..messages.len()).map(took)) / mean((0..messages.len()).map(best));
    let beyond = |i: usize| took(i) - (EMPTY + Ps::from(messages[i].packets - 1) * FRAME) as f64;
    let mut short: Vec<f64> =
        (0..messages.len()).filter(|&i| messages[i].packets <= 6).map(beyond).collect();
    short.sort_unstable_by(f64::total_cmp);
    let p99 = short[short.len() * 99 / 100] / FRAME as f64;
    println!(
        "mean {all} of the ideal, short p99 {p99} packets beyond, median {}",
        short[short.len() / 2] / FRAME as f64
    );
    assert!((1.0..1.1).contains(&all), "{all}");
    assert!(p99 < 6.0, "{p99}");
}

/// In Figure 9's fabric at load 0.8.
#[test]
fn nothing_is_lost_in_a_fabric() {
    let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
    let flows = Flows::Drawn {
        arrivals: qjump_sim::Arrivals::Poisson,
        sizes: Sizes::web_search(),
        load: 0.8,
        count: 2_000,
    };
    let outcome = Scenario::new(topology, scheme(), Workload::of_flows(flows)).run().unwrap();
    let regions =
        qjump_sim::Regions::of(&outcome.flows, &LeafSpine::FIG9, &scheme().wire()).unwrap();
    println!("{regions:?} {:?}", outcome.counters);
    assert_eq!(
        (outcome.counters.full.total(), outcome.counters.pushed_out.total(), regions.unfinished),
        (0, 0, 0)
    );
    assert!(regions.short.p99 < 1.5, "{}", regions.short.p99);
}

/// What is lost is asked for again.
#[test]
fn losses_are_mended() {
    let flows =
        Flows::List((1..16).map(|src| FlowSpec { start: 0, src, dst: 0, packets: 300 }).collect());
    let scheme = Scheme { queue: Queue::DropTail(Limit::Packets(8)), ..scheme() };
    let outcome = Scenario::new(rack(16), scheme, Workload::of_flows(flows)).run().unwrap();
    assert!(
        outcome.counters.full.data > 50 && outcome.flows.iter().all(|flow| flow.finish.is_some())
    );
    assert!(outcome.counters.retransmitted >= outcome.counters.full.data);
}

/// An endless message ends as it is cut short, whatever was granted then: alone, beside others that
/// are lost, and before its first packet.
#[test]
fn an_endless_message_ends() {
    for (queue, senders) in
        [(scheme().queue, 1), (scheme().queue, 3), (Queue::DropTail(Limit::Packets(8)), 15)]
    {
        for until in [1, 5 * US, 10 * US, MS] {
            let scheme = Scheme { queue, ..scheme() };
            let mut simulation =
                Simulation::new(&rack(16), &scheme, &endless(senders, until, until), 1).unwrap();
            simulation.run_until(1_000_000 * MS);
            let (outcome, place) = (simulation.outcome(), format!("{senders} until {until} ps"));
            assert!(simulation.is_clean(), "{place}: {:?}", outcome.counters);
            let sent = outcome.counters.sent.data - outcome.counters.retransmitted;
            assert_eq!(delivered(&outcome).iter().sum::<u64>(), 1_500 * sent, "{place}");
        }
    }
}

/// What is told of each flow adds up to what is counted of all.
#[test]
fn each_message_knows_what_was_sent_again_and_held() {
    let flows =
        Flows::List((1..16).map(|src| FlowSpec { start: 0, src, dst: 0, packets: 300 }).collect());
    let limiter = Limiter::PerHost(PerHost::new(50 * US, [15_000; 8]));
    let scheme = Scheme { queue: Queue::DropTail(Limit::Packets(8)), limiter, ..scheme() };
    let watch = Watch { flows: true, ..Watch::default() };
    let mut simulation =
        Simulation::watched(&rack(16), &scheme, &Workload::of_flows(flows), 1, &watch).unwrap();
    simulation.run();
    let (counters, flows) = (simulation.outcome().counters, simulation.flow_counts());
    let sum = |of: fn(&qjump_sim::FlowCounts) -> u64| {
        flows.iter().map(|(_, counts)| of(counts)).sum::<u64>()
    };
    assert!(counters.retransmitted > 50);
    assert_eq!(sum(|counts| counts.retransmitted), counters.retransmitted);
    assert!(flows.iter().all(|(_, counts)| counts.held > 50 * US), "{flows:?}");
}

/// What waits in the sender's limiter is not asked for again without end: 200 packets of which one
/// leaves in 500 us.
#[test]
fn a_limiter_is_waited_for() {
    let mut scheme = scheme();
    scheme.limiter = Limiter::PerHost(PerHost::new(500 * US, [1_500; 8]));
    scheme.transport.min_rto = 200 * US;
    let flows = Flows::List(vec![FlowSpec { start: 0, src: 1, dst: 0, packets: 200 }]);
    let outcome = Scenario::new(rack(2), scheme, Workload::of_flows(flows)).run().unwrap();
    let took = outcome.flows[0].finish.unwrap();
    assert!((199 * 500 * US..2 * 199 * 500 * US).contains(&took), "{took} ps");
    assert!(outcome.counters.retransmitted < 200, "{}", outcome.counters.retransmitted);
}

/// Where what is granted waits longer than its receiver does, in a queue without a limit before a
/// link that is slower than all others, copies are not taken for news: counted as such, they made
/// receivers ask for more copies than the link sends, and 50 messages of 100 packets never came to
/// an end. The link needs 61 ms for them.
#[test]
fn copies_are_no_news() {
    let slow = Cable { rate: 1_000_000_000, ..CABLE };
    let fabric = LeafSpine { racks: 2, hosts_per_rack: 10, spines: 1, edge: CABLE, uplink: slow };
    let flows = (0..50)
        .map(|n| FlowSpec { start: 0, src: n % 10, dst: 10 + n / 5, packets: 100 })
        .collect();
    let mut scheme = Scheme {
        queue: Queue::Threshold(Threshold { limit: Limit::None, threshold: Limit::Packets(1) }),
        ..scheme()
    };
    (scheme.transport.max_window, scheme.transport.min_rto, scheme.transport.max_rto) =
        (23, 45 * US, 10 * MS);
    let workload = Workload::of_flows(Flows::List(flows));
    let scenario = Scenario {
        stop: Some(2_000 * MS),
        ..Scenario::new(Topology::leaf_spine(&fabric).unwrap(), scheme, workload)
    };
    let outcome = scenario.run().unwrap();
    println!("{:?} {:?}", outcome.flows.iter().map(|flow| flow.finish).max(), outcome.counters);
    assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()), "{:?}", outcome.counters);
}
