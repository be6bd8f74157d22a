// SPDX-License-Identifier: GPL-2.0-or-later
//! Networks where times can be worked out by hand, to the picosecond.

use super::*;

#[test]
fn a_ping_is_stored_and_forwarded_there_and_back() {
    let idle = 4 * (100 * BYTE + CABLE);
    let outcome = run(Scheme::tcp(), vec![App::Ping(ping(3))], vec![], None);
    let trips = round_trips(&outcome, 0);
    assert_eq!(
        (&trips.starts[..], &trips.times[..]),
        (&[US, 51 * US, 101 * US][..], &[Some(idle); 3][..])
    );
    assert_eq!((trips.lost, outcome.counters.sent.datagrams, outcome.end), (0, 6, 101 * US + idle));
    let slow = Ping { turnaround: 7 * US, gap: Gap::Poisson(10 * US), count: 500, ..ping(0) };
    let outcome = run(Scheme::tcp(), vec![App::Ping(slow)], vec![], None);
    let trips = round_trips(&outcome, 0);
    // Pings that come closer than they take to send, 80 ns, wait for each other: 0.8 % of gaps, at
    // each end of the way.
    let waited: Vec<Ps> = trips.times.iter().map(|time| time.unwrap() - idle - 7 * US).collect();
    assert!(waited.iter().all(|&time| time < 200_000), "{waited:?}");
    assert!((1..20).contains(&waited.iter().filter(|&&time| time > 0).count()), "{waited:?}");
}

/// A queue of two packets: of five requests at once, the host's own drops those that do not fit.
/// One more is under way at the stop.
#[test]
fn lost_pings_are_told_from_those_under_way() {
    let scheme = Scheme { queue: Queue::DropTail(Limit::Packets(2)), ..Scheme::tcp() };
    let burst = Ping { gap: Gap::Every(0), ..ping(5) };
    let late = Ping { first: 90 * US, ..ping(1) };
    let outcome = run(scheme, vec![App::Ping(burst), App::Ping(late)], vec![], Some(95 * US));
    let trips = round_trips(&outcome, 0);
    assert_eq!((trips.times.iter().flatten().count(), trips.lost), (2, 3));
    assert_eq!((round_trips(&outcome, 1).times[0], round_trips(&outcome, 1).lost), (None, 0));
    assert_eq!((outcome.counters.full.datagrams, outcome.counters.in_flight), (3, 1));
}

/// One way through one switch; of five at once, a queue of two packets drops those that do not fit.
#[test]
fn datagrams_tell_of_one_way() {
    let one_way = 2 * (100 * BYTE + CABLE);
    let outcome = run(Scheme::tcp(), vec![App::Datagrams(datagrams(3))], vec![], None);
    let AppResult::Datagrams(ways) = &outcome.apps[0] else { unreachable!() };
    assert_eq!(
        (&ways.starts[..], &ways.times[..]),
        (&[US, 51 * US, 101 * US][..], &[Some(one_way); 3][..])
    );
    assert_eq!(
        (ways.lost, outcome.counters.sent.datagrams, outcome.end),
        (0, 3, 101 * US + one_way)
    );
    let scheme = Scheme { queue: Queue::DropTail(Limit::Packets(2)), ..Scheme::tcp() };
    let burst = Datagrams { gap: Gap::Every(0), ..datagrams(5) };
    let outcome = run(scheme, vec![App::Datagrams(burst)], vec![], None);
    let AppResult::Datagrams(ways) = &outcome.apps[0] else { unreachable!() };
    assert_eq!(ways.times, [Some(one_way), Some(one_way + 100 * BYTE), None, None, None]);
    assert_eq!((ways.lost, outcome.counters.full.datagrams), (3, 3));
}

/// A client that stops makes no request from that time on; those under way are answered.
#[test]
fn requests_end_when_they_are_told_to() {
    let latency = 2 * (100 * BYTE + CABLE) + 5 * US + 2 * (1_000 * BYTE + CABLE);
    let closed = Arrival::Closed { connections: 1, think: 2 * US };
    let open = Arrival::Open(Gap::Every(latency + 2 * US));
    for (until, made) in
        [(US, 0), (US + 1, 1), (US + latency + 2 * US, 1), (US + latency + 2 * US + 1, 2), (MS, 52)]
    {
        for arrival in [closed, open] {
            let asked = Requests { until: Some(until), ..requests(arrival, 1_000) };
            let outcome = run(Scheme::tcp(), vec![App::Requests(asked)], vec![], None);
            assert_eq!(answers(&outcome).latencies.times, vec![Some(latency); made]);
        }
    }
}

/// A packet is under way for 6.6 us, and its ACK is back after 13.264 us.
#[test]
fn a_window_of_one_packet_is_a_packet_a_round_trip() {
    let one = Bulk { window: Some(1), until: MS, interval: 100 * US, ..bulk(0, 1) };
    let outcome = run(Scheme::tcp(), vec![App::Bulk(one)], vec![], None);
    let packets = |time: Ps| 1 + (time - 2 * (FULL + CABLE)) / 13_264_000;
    let expected: Vec<u64> = (1..=10).map(|i| 1_500 * packets(i * 100 * US)).collect();
    assert_eq!(bulks(&outcome, 0).delivered, expected);
    // What was sent by the end arrives after it.
    assert_eq!(bulks(&outcome, 0).bytes, 1_500 * (1 + MS / 13_264_000));
    assert_eq!(outcome.counters.sent.data, 1 + MS / 13_264_000);
}

/// Three flows into one port: it is full, and no byte is lost or counted twice.
#[test]
fn endless_flows_fill_their_port() {
    for scheme in [Scheme::tcp(), Scheme::dctcp()] {
        let flows =
            (0..3).map(|src| App::Bulk(Bulk { interval: 120 * US, ..bulk(src, 9) })).collect();
        let outcome = run(scheme, flows, vec![], None);
        let at = |i: usize| (0..3).map(|app| bulks(&outcome, app).delivered[i]).sum::<u64>();
        if scheme == Scheme::dctcp() {
            assert_eq!(outcome.counters.full.total(), 0);
            // 100 packets in each 120 us once slow start is over.
            assert!((10..82).all(|i| at(i + 1) - at(i) == 100 * 1_500));
        }
        let all: u64 = (0..3).map(|app| bulks(&outcome, app).bytes).sum();
        let c = outcome.counters;
        assert_eq!(all, 1_500 * (c.sent.data - c.retransmitted));
    }
}

/// Request, 5 us of service, response; 2 us of thinking.
#[test]
fn a_closed_loop_of_one_takes_its_closed_form() {
    let latency = 2 * (100 * BYTE + CABLE) + 5 * US + 2 * (1_000 * BYTE + CABLE);
    let arrival = Arrival::Closed { connections: 1, think: 2 * US };
    for routing in [Routing::Spray, Routing::PerFlow] {
        let outcome = run(
            Scheme { routing, ..Scheme::tcp() },
            vec![App::Requests(requests(arrival, 50))],
            vec![],
            None,
        );
        let results = answers(&outcome);
        assert_eq!(results.latencies.times, [Some(latency); 50]);
        let starts: Vec<Ps> = (0..50).map(|i| US + i * (latency + 2 * US)).collect();
        assert_eq!(results.latencies.starts, starts);
        assert_eq!((outcome.counters.sent.data, outcome.counters.sent.acks), (100, 100));
    }
    // A response of 3,500 bytes is two full packets and one of 500, which at the switch waits for
    // the second.
    let large = Requests {
        exchanges: vec![Exchange { request: 100, response: 3_500, weight: 1 }],
        ..requests(Arrival::Closed { connections: 1, think: 0 }, 9)
    };
    let outcome = run(Scheme::tcp(), vec![App::Requests(large)], vec![], None);
    let response = 3 * FULL + 500 * BYTE + 2 * CABLE;
    let first = answers(&outcome).latencies.times[0];
    assert_eq!(first, Some(2 * (100 * BYTE + CABLE) + 5 * US + response));
    // Later requests may wait for the ACK of the response's last packet, which is 40 bytes.
    let later =
        |time: &Option<Ps>| (first.unwrap()..=first.unwrap() + 40 * BYTE).contains(&time.unwrap());
    assert!(answers(&outcome).latencies.times.iter().all(later));
}

/// Poisson requests of two kinds to three servers that take 50 us on average: the mean time is the
/// network's and theirs, within five standard deviations, and so are the shares.
#[test]
fn an_open_loop_asks_whatever_becomes_of_it() {
    let count = 20_000;
    let mixed = Requests {
        servers: vec![1, 17, 33],
        exchanges: vec![
            Exchange { request: 100, response: 1_000, weight: 9 },
            Exchange { request: 1_000, response: 100, weight: 1 },
        ],
        service: Span::Exponential(50 * US),
        ..requests(Arrival::Open(Gap::Poisson(20 * US)), count)
    };
    let outcome = run(Scheme::tcp(), vec![App::Requests(mixed)], vec![], None);
    let results = answers(&outcome);
    let n = f64::from(count);
    let time = |time: &Option<Ps>| time.unwrap() as f64;
    let mean = results.latencies.times.iter().map(time).sum::<f64>() / n / 1e6;
    // In the rack 11.68 us; to another one 0.4 us of cables more each way, and 1,100 bytes twice at
    // 40 Gb/s.
    let network = 11.68 + 2.0 / 3.0 * (0.8 + 2.0 * 1_100.0 * 0.0002);
    assert!((mean - network - 50.0).abs() < 5.0 * 50.0 / n.sqrt() + 0.1, "{mean} us");
    let sets = results.kinds.iter().filter(|&&kind| kind == 1).count() as f64;
    assert!((sets - n / 10.0).abs() < 5.0 * (n * 0.09).sqrt(), "{sets}");
    let span = (results.latencies.starts[count as usize - 1] - US) as f64;
    assert!((span / (n * 20e6) - 1.0).abs() < 5.0 / n.sqrt(), "{span}");
}

#[test]
fn requests_under_way_at_the_stop_are_not_finished() {
    let open = requests(Arrival::Open(Gap::Every(2 * US)), 100);
    let outcome = run(Scheme::tcp(), vec![App::Requests(open)], vec![], Some(41 * US));
    let times = &answers(&outcome).latencies.times;
    // One every 2 us from 1 us on, each of 17.68 us: 21 have been made, 12 of them by 41 − 17.68
    // us.
    assert_eq!((times.len(), times.iter().flatten().count()), (21, 12));
}

/// In each step all send to different hosts, so nobody waits but for himself.
#[test]
fn a_barrier_on_an_idle_network_takes_its_closed_form() {
    let outcome = run(Scheme::tcp(), vec![App::Barrier(barrier(8, 20))], vec![], None);
    let AppResult::Barrier(results) = &outcome.apps[0] else { unreachable!() };
    let latency = 7 * 1_000 * BYTE + CABLE + 1_000 * BYTE + CABLE;
    assert_eq!(results.times, [Some(latency); 20]);
    let starts: Vec<Ps> = (0..20).map(|i| US + i * (latency + 20 * US)).collect();
    assert_eq!(results.starts, starts);
    assert_eq!(outcome.counters.sent.data, 20 * 8 * 7);
}

#[test]
fn offsets_are_nil_on_an_idle_network_and_half_of_a_queue() {
    let slaves = vec![1, 20, 40];
    let outcome = run(Scheme::tcp(), vec![App::Ptp(ptp(slaves, 10))], vec![], None);
    let results = clocks(&outcome);
    let rack = 2 * (90 * BYTE + CABLE);
    let across = rack + 2 * (90 * 200 + 200_000);
    assert_eq!(results.slaves[..4], [0, 1, 2, 0]);
    assert_eq!(
        results.computed[..4],
        [Some((0, rack)), Some((0, across)), Some((0, across)), Some((0, rack))]
    );
    assert_eq!(results.computed.iter().flatten().filter(|(offset, _)| *offset == 0).count(), 30);
    // Two hosts send 10 packets each to the slave at time 0: its port is full from 3.9 us on. The
    // Sync of 10 us comes to it after 2.772 us and finds the 16 that have come by then, the last of
    // which is sent at 23.1 us.
    let burst = |src| Source {
        src,
        dst: 1,
        level: 0,
        first: 0,
        gap: Gap::Every(0),
        bytes: Bytes::Fixed(1_500),
        count: 10,
    };
    let outcome =
        run(Scheme::tcp(), vec![App::Ptp(ptp(vec![1], 1))], vec![burst(2), burst(3)], None);
    let waited = 23_100_000 - (10 * US + 90 * BYTE + CABLE);
    let half = i64::try_from(waited / 2).unwrap();
    assert_eq!(clocks(&outcome).computed, [Some((half, rack + waited / 2))]);
    // The other way: 16 packets to the master make it look late.
    let burst = |src| Source { dst: 0, first: 10 * US, ..burst(src) };
    let outcome =
        run(Scheme::tcp(), vec![App::Ptp(ptp(vec![1], 1))], vec![burst(2), burst(3)], None);
    let (offset, delay) = clocks(&outcome).computed[0].unwrap();
    assert!(offset < 0 && delay == rack + offset.unsigned_abs(), "{offset} {delay}");
}

/// Four of eight maps are on the reducer's node; the others' shares of 40 packets cross one link,
/// one by one or all at a time.
#[test]
fn a_job_on_one_link_takes_its_closed_form() {
    let mapped = US + MS;
    let one_by_one = 4 * (40 * FULL + FULL + 2 * CABLE);
    let together = 4 * 40 * FULL + FULL + 2 * CABLE;
    for (parallel_copies, shuffle) in [(1, one_by_one), (4, together), (9, together)] {
        let outcome = run(
            Scheme::tcp(),
            vec![App::MapReduce(MapReduce { parallel_copies, ..job() })],
            vec![],
            None,
        );
        let results = jobs(&outcome);
        assert_eq!(results.mapped, [Some(mapped); 8]);
        assert_eq!(results.shuffled, [Some(mapped + shuffle)], "{parallel_copies}");
        assert_eq!(results.end(), Some(mapped + shuffle + 3 * MS));
        assert_eq!((&results.fetched[..], results.local), (&[4 * 60_000, 0][..], 4 * 60_000));
        assert!(results
            .fetches
            .iter()
            .all(|f| (f.packets, f.src, f.dst) == (40, 1, 0) && f.finish.is_some()));
        assert_eq!((results.fetches.len(), outcome.counters.sent.data), (4, 160));
    }
}

/// Maps wait for slots, and nobody fetches from more maps at once than he may; every byte comes to
/// its reducer.
#[test]
fn a_job_keeps_its_limits_and_its_bytes() {
    let spec = MapReduce {
        nodes: (0..12).collect(),
        maps: 30,
        map_slots: 1,
        map_time: Span::Exponential(MS),
        map_bytes: 100_003,
        reducers: 7,
        parallel_copies: 3,
        ..job()
    };
    let outcome = run(Scheme::dctcp(), vec![App::MapReduce(spec.clone())], vec![], None);
    let results = jobs(&outcome);
    assert_eq!(results.fetched.iter().sum::<u64>() + results.local, 30 * 100_003);
    let mut ends: Vec<Ps> = results.mapped.iter().flatten().copied().collect();
    ends.sort_unstable();
    assert!(ends.len() == 30 && ends[29] > 2 * ends[0]);
    for dst in 0..7 {
        let of = results.fetches.iter().filter(|f| f.dst == dst);
        let mut steps: Vec<(Ps, i32)> =
            of.flat_map(|f| [(f.start, 1), (f.finish.unwrap(), -1)]).collect();
        steps.sort_unstable();
        let mut copying = 0;
        let most = steps.iter().map(|(_, step)| {
            copying += step;
            copying
        });
        // The sender knows of a fetch's end one way later than the reducer, who has begun the next
        // by then.
        assert!((3..=6).contains(&most.max().unwrap()));
    }
    // The order is the reducer's own: another one for each, and another one with another seed.
    let order = |results: &MapReduceResult, dst| -> Vec<u32> {
        results.fetches.iter().filter(|f| f.dst == dst).map(|f| f.src).collect()
    };
    assert_ne!(order(results, 0), order(results, 1));
    let workload = Workload::of_apps(vec![App::MapReduce(spec)]);
    let other =
        Scenario { seed: 2, ..Scenario::new(fabric(), Scheme::dctcp(), workload) }.run().unwrap();
    assert_ne!(order(results, 0), order(jobs(&other), 0));
}

/// Phases are in the first epoch, each sender's own; the longest wait is that of all others'
/// datagrams.
#[test]
fn a_fan_in_meets_within_its_epoch() {
    let senders: Vec<u32> = (0..15).collect();
    let epoch = 40 * US;
    let sources = fan_in(&senders, 15, 0, 1_500, epoch, 50, 9);
    assert_eq!(sources, fan_in(&senders, 15, 0, 1_500, epoch, 50, 9));
    assert_ne!(sources, fan_in(&senders, 15, 0, 1_500, epoch, 50, 10));
    assert!(sources.iter().all(|s| s.first < epoch && s.gap == Gap::Every(epoch)));
    // Pinned; the same come out in Python.
    let phases: Vec<Ps> = sources[..3].iter().map(|s| s.first).collect();
    assert_eq!(phases, [5_531_992, 11_883_128, 38_677_489]);
    let outcome = run(Scheme::tcp(), vec![], sources, None);
    assert_eq!(outcome.counters.delivered.datagrams, 15 * 50);
    let largest = outcome.sources.iter().map(|s| s.delay_max).max().unwrap();
    let idle = 2 * (FULL + CABLE);
    assert!(largest > idle && largest <= idle + 14 * FULL, "{largest}");
}

/// Beside a flood that a short queue drops a third of: whatever is lost and sent again, no more
/// than the window is beyond what has arrived in order.
#[test]
fn a_window_holds_in_recovery_too() {
    let mut scheme = Scheme { queue: Queue::DropTail(Limit::Packets(12)), ..Scheme::tcp() };
    scheme.transport.dupacks = Some(2);
    let flood = |src| Source {
        src,
        dst: 9,
        level: 7,
        first: 0,
        gap: Gap::Poisson(3 * US),
        bytes: Bytes::Fixed(1_500),
        count: 5_000,
    };
    let small = Bulk { window: Some(8), ..bulk(2, 9) };
    let workload = Workload {
        sources: (3..6).map(flood).collect(),
        ..Workload::of_apps(vec![App::Bulk(small)])
    };
    let mut simulation = Simulation::new(&fabric(), &scheme, &workload, 1).unwrap();
    let mut widest = 0;
    for stop in 1..5_000 {
        simulation.run_until(stop * 2 * US);
        let outcome = simulation.outcome();
        let c = outcome.counters;
        widest = widest.max(c.sent.data - c.retransmitted - bulks(&outcome, 0).bytes / 1_500);
    }
    let c = simulation.outcome().counters;
    assert!(widest == 8 && c.retransmitted > c.timeouts && c.full.data > 50, "{widest} {c:?}");
}
