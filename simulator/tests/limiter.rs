// SPDX-License-Identifier: GPL-2.0-or-later
//! QJump's limiter at hosts, in every mode and with every kind of epochs, to the picosecond.

use qjump_sim::apps::{App, AppResult, Ping};
use qjump_sim::{
    Bytes, Epochs, FlowSpec, Flows, Gap, LeafSpine, Limiter, Mode, Outcome, PerHost, Priority, Ps,
    Queue, Scenario, Scheme, Simulation, Source, Topology, Transport, Workload, US,
};

const ALL: [Epochs; 3] = [Epochs::FirstPacket, Epochs::Rolling, Epochs::Aligned];
/// A packet of 1,500 bytes between two hosts of a rack: two links of 10 Gb/s and 2.7 us.
const ONE_WAY: Ps = 2 * (1_200_000 + 2_700_000);

fn fabric() -> Topology {
    Topology::leaf_spine(&LeafSpine::FIG9).unwrap()
}

/// Figure 9's TCP, so many bytes of every level in an epoch.
fn scheme(epoch: Ps, budget: u64, mode: Mode, epochs: Epochs, limit: Option<u32>) -> Scheme {
    let limiter =
        Limiter::PerHost(PerHost { mode, epochs, limit, ..PerHost::new(epoch, [budget; 8]) });
    Scheme { limiter, ..Scheme::tcp() }
}

fn run(scheme: Scheme, workload: Workload) -> Outcome {
    Scenario::new(fabric(), scheme, workload).run().unwrap()
}

/// Four pings an epoch of 100 us, whose budget lets one pass; round trips without loss, by number.
fn pings(mode: Mode, epochs: Epochs, limit: Option<u32>) -> (Vec<Option<Ps>>, Outcome) {
    let ping = Ping {
        src: 3,
        dst: 4,
        level: 0,
        first: 0,
        gap: Gap::Every(25 * US),
        bytes: 1_500,
        count: 40,
        turnaround: 0,
    };
    let outcome =
        run(scheme(100 * US, 1_500, mode, epochs, limit), Workload::of_apps(vec![App::Ping(ping)]));
    let AppResult::Ping(results) = &outcome.apps[0] else {
        unreachable!("the application is a ping")
    };
    (results.times.clone(), outcome)
}

/// A queue of three is full when it has its fourth epoch of pings: from then on one an epoch finds
/// room, and waits three epochs.
#[test]
fn excess_pings_wait_as_many_epochs_as_the_queue_holds() {
    for epochs in ALL {
        let (latencies, outcome) = pings(Mode::Delay, epochs, Some(3));
        for (number, latency) in (0..).zip(latencies) {
            let waits = match number {
                0..4 => Some(75 * US * number),
                _ if number % 4 == 0 => Some(300 * US),
                _ => None,
            };
            assert_eq!(latency, waits.map(|wait| wait + 2 * ONE_WAY), "{epochs:?}: ping {number}");
        }
        assert_eq!(
            (outcome.counters.limited.datagrams, outcome.counters.limited.total()),
            (27, 27),
            "{epochs:?}"
        );
        let (latencies, outcome) = pings(Mode::Delay, epochs, None);
        let waited = (0..40).map(|number| Some(75 * US * number + 2 * ONE_WAY));
        assert!(
            latencies.into_iter().eq(waited) && outcome.counters.limited.total() == 0,
            "{epochs:?}"
        );
    }
}

#[test]
fn excess_pings_are_dropped() {
    for epochs in ALL {
        let (latencies, outcome) = pings(Mode::Drop, epochs, None);
        let expected = (0..40).map(|number| (number % 4 == 0).then_some(2 * ONE_WAY));
        assert!(latencies.into_iter().eq(expected), "{epochs:?}");
        let c = outcome.counters;
        assert_eq!(
            (c.limited.datagrams, c.sent.datagrams, c.delivered.datagrams),
            (30, 50, 20),
            "{epochs:?}"
        );
    }
}

/// Datagrams of half a budget every 40 us from 70 us on, with epochs of 100 us: when each is
/// delivered.
#[test]
fn datagrams_leave_at_their_epochs() {
    let source = Source {
        src: 3,
        dst: 4,
        level: 0,
        first: 70 * US,
        gap: Gap::Every(10 * US),
        bytes: Bytes::Fixed(1_500),
        count: 5,
    };
    let delivered_at = |mode, epochs| {
        let scheme = scheme(100 * US, 3_000, mode, epochs, None);
        let mut simulation =
            Simulation::new(&fabric(), &scheme, &Workload::of_sources(vec![source]), 1).unwrap();
        let mut counts = Vec::new();
        // Just before, and at, every time at which one may be delivered.
        for at in (70 * US..=400 * US).step_by(10 * US as usize) {
            for wire in [0, 1_200_000] {
                simulation.run_until(at + wire + ONE_WAY - 1);
                let before = simulation.outcome().sources[0].delivered;
                simulation.run_until(at + wire + ONE_WAY);
                let now = simulation.outcome().sources[0].delivered;
                counts.extend((before..now).map(|_| (at + wire) / 100_000));
            }
        }
        assert_eq!(simulation.outcome().counters.limited.datagrams, 5 - counts.len() as u64);
        counts
    };
    // In 100 ns; of two that leave at once the second is delivered 1.2 us later.
    assert_eq!(delivered_at(Mode::Delay, Epochs::FirstPacket), [700, 800, 1_700, 1_712, 2_700]);
    assert_eq!(delivered_at(Mode::Delay, Epochs::Rolling), [700, 800, 1_700, 1_800, 2_700]);
    assert_eq!(delivered_at(Mode::Delay, Epochs::Aligned), [700, 800, 1_000, 1_012, 2_000]);
    assert_eq!(delivered_at(Mode::Drop, Epochs::FirstPacket), [700, 800]);
    assert_eq!(delivered_at(Mode::Drop, Epochs::Rolling), [700, 800]);
    assert_eq!(delivered_at(Mode::Drop, Epochs::Aligned), [700, 800, 1_000, 1_100]);
}

/// Seven packets at 495 us, of which an epoch of 500 us takes six. The sixth's ACK comes after
/// 19.264 us, and the timer expires 200 us later, then 400 us.
#[test]
fn a_flow_sees_a_loss_or_waits() {
    let completion = |mode, epochs, limit, dupacks| {
        let mut scheme = scheme(500 * US, 9_000, mode, epochs, limit);
        scheme.transport.dupacks = dupacks;
        let flow = FlowSpec { start: 495 * US, src: 3, dst: 4, packets: 7 };
        let outcome = run(scheme, Workload::of_flows(Flows::List(vec![flow])));
        let c = outcome.counters;
        let finish = outcome.flows[0].finish.unwrap();
        (finish - 495 * US, [c.limited.data, c.limited.total(), c.timeouts, c.retransmitted])
    };
    let last = ONE_WAY + 4 * 1_366_000;
    assert_eq!(last, 13_264_000);
    // The epoch of the clock is over after 5 us; the one that began with the flow when the timer
    // expires for the second time.
    let (first, second) = (19_264_000 + 200 * US + last, 19_264_000 + 600 * US + last);
    assert_eq!(completion(Mode::Drop, Epochs::Aligned, None, None), (first, [1, 1, 1, 1]));
    assert_eq!(completion(Mode::Drop, Epochs::FirstPacket, None, None), (second, [2, 2, 2, 2]));
    assert_eq!(completion(Mode::Drop, Epochs::Rolling, None, None), (second, [2, 2, 2, 2]));
    // What waits is not lost, and no timer expires meanwhile.
    assert_eq!(completion(Mode::Delay, Epochs::FirstPacket, None, None), (500 * US + last, [0; 4]));
    assert_eq!(completion(Mode::Delay, Epochs::Rolling, Some(1), None), (500 * US + last, [0; 4]));
    // The seventh leaves the limiter before the six are on the wire.
    assert_eq!(
        completion(Mode::Delay, Epochs::Aligned, None, None),
        (6 * 1_200_000 + last, [0; 4])
    );
}

/// A limiter that drops a SYN: it is asked for again 200 us, then 400 us later.
#[test]
fn a_dropped_syn_is_sent_again() {
    // The first flow's SYN and packet leave nothing in the first 300 us for the second's.
    let mut scheme = scheme(300 * US, 1_540, Mode::Drop, Epochs::Aligned, None);
    scheme.transport = Transport { handshake: Some(200 * US), connections: 0, ..scheme.transport };
    let flow = |start, dst| FlowSpec { start, src: 3, dst, packets: 1 };
    let outcome = run(scheme, Workload::of_flows(Flows::List(vec![flow(0, 4), flow(13 * US, 5)])));
    let c = outcome.counters;
    assert_eq!((c.sent.syns, c.limited.syns, c.limited.total(), c.timeouts), (4, 2, 2, 2));
    let (setup, data) = (4 * 2_732_000, 13_264_000);
    assert_eq!(
        [0, 1].map(|i| outcome.flows[i].finish),
        [Some(setup + data), Some(613 * US + setup + data)]
    );
}

/// The paper's own P: urgent datagrams of 256 bytes, budgets of as many and epochs of 2nP/R, 0.41
/// us a host, while all others send full packets at the last level, which wait for nothing. All 15
/// hosts of a rack send to the sixteenth; none of the urgent waits longer than nP/R and a full
/// packet at each of two ports (the paper's section 3.1).
#[test]
fn an_urgent_level_has_less_than_a_full_packet() {
    let (hosts, bytes) = (16, 256);
    let epoch = 2 * hosts * u64::from(bytes) * 800;
    let mut budgets = [u64::MAX; 8];
    budgets[0] = bytes.into();
    let limiter = Limiter::PerHost(PerHost::new(epoch, budgets));
    let scheme =
        Scheme { limiter, queue: Queue::Priority(Priority { limit: 1 << 20 }), ..Scheme::tcp() };
    let source = |src, level, gap, bytes, count| Source {
        src,
        dst: 15,
        level,
        first: 0,
        gap: Gap::Every(gap),
        bytes: Bytes::Fixed(bytes),
        count,
    };
    let urgent = (0..15).map(|src| source(src, 0, epoch, bytes, 2_000));
    let bulk = (0..15).map(|src| source(src, 7, 1_200_000, 1_500, 10_000));
    let workload = Workload::of_sources(urgent.chain(bulk).collect());
    let outcome = run(scheme, workload.clone());
    let urgent = || {
        outcome
            .sources
            .iter()
            .filter(|source| source.delivered > 0 && source.bytes / source.delivered == 256)
    };
    assert_eq!(urgent().map(|source| source.delivered).sum::<u64>(), 15 * 2_000);
    let longest = urgent().map(|source| source.delay_max).max().unwrap();
    let own = 2 * (256 * 800 + 2_700_000);
    assert!(longest <= own + epoch / 2 + 2 * 1_200_000, "{longest}");
    assert!(longest > own + epoch / 2, "the bound is not approached: {longest}");
    assert_eq!(outcome.counters.limited.total(), 0);
    // Urgent ones take 47 % of it.
    assert!(outcome.counters.delivered.datagrams > 30_000 + 5_000, "the link is not full");
}

/// What is larger than its level's budget can never be sent, and is told before anything begins.
#[test]
fn packets_beyond_a_budget_are_refused() {
    let scheme = |mode| scheme(US, 256, mode, Epochs::FirstPacket, None);
    let said = |workload| {
        let scenario = Scenario::new(fabric(), scheme(Mode::Delay), workload);
        scenario.run().unwrap_err().to_string()
    };
    let sentence = |level, bytes| {
        format!("limiter: level {level} has 256 bytes an epoch, less than a packet of {bytes}")
    };
    let ping = Ping {
        src: 3,
        dst: 4,
        level: 6,
        first: 0,
        gap: Gap::Every(25 * US),
        bytes: 257,
        count: 1,
        turnaround: 0,
    };
    assert_eq!(said(Workload::of_apps(vec![App::Ping(ping.clone())])), sentence(6, 257));
    let source = Source {
        src: 0,
        dst: 1,
        level: 2,
        first: 0,
        gap: Gap::Every(US),
        bytes: Bytes::Fixed(1_500),
        count: 1,
    };
    assert_eq!(said(Workload::of_sources(vec![source])), sentence(2, 1_500));
    let flow = FlowSpec { start: 0, src: 0, dst: 1, packets: 1 };
    assert_eq!(said(Workload::of_flows(Flows::List(vec![flow]))), sentence(0, 1_500));
    // Sizes that are drawn: the larger ones are dropped, whether others wait or not.
    let drawn = Source {
        bytes: Bytes::Exponential(200),
        count: 1_000,
        gap: Gap::Every(100 * US),
        ..source
    };
    for mode in [Mode::Delay, Mode::Drop] {
        let outcome = run(scheme(mode), Workload::of_sources(vec![drawn]));
        // exp(-256/200) of them.
        assert!(
            outcome.counters.limited.datagrams.abs_diff(278) < 40,
            "{}",
            outcome.counters.limited.datagrams
        );
        assert_eq!(
            outcome.counters.limited.datagrams + outcome.counters.delivered.datagrams,
            1_000
        );
    }
}
