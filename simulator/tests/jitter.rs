// SPDX-License-Identifier: GPL-2.0-or-later
//! Hosts that draw how long they take for what comes in: what is drawn, and in what order packets
//! are handed over.

use qjump_sim::apps::{App, AppResult, Bulk, Datagrams, Ping, Ptp};
use qjump_sim::{
    Congestion, Gap, LeafSpine, Limit, Outcome, Ps, Quantiles, Queue, Scenario, Scheme, Topology,
    Transport, Workload, MS, US,
};

/// What hosts 1 and 2 of Figure 9 draw.
const POINTS: [(f64, Ps); 4] =
    [(0.0, 25 * US), (50.0, 85 * US), (99.0, 100 * US), (100.0, 126 * US)];
/// Without it a datagram of 100 bytes takes so long through one switch.
const ONE_WAY: Ps = 2 * (80_000 + 2_700_000);

fn fabric(drawing: &[(u32, &[(f64, Ps)])]) -> Topology {
    let mut topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
    for &(host, points) in drawing {
        topology.set_jitter(host, Quantiles::new(points).unwrap()).unwrap();
    }
    topology
}

fn run(topology: Topology, apps: Vec<App>, seed: u64) -> Outcome {
    let transport = Transport::linux(Congestion::Reno);
    let scheme = Scheme { queue: Queue::DropTail(Limit::None), transport, ..Scheme::tcp() };
    Scenario { seed, ..Scenario::new(topology, scheme, Workload::of_apps(apps)) }.run().unwrap()
}

fn datagrams(src: u32, dst: u32, gap: Ps, count: u32) -> Datagrams {
    Datagrams { src, dst, level: 0, first: 0, gap: Gap::Every(gap), bytes: 100, count }
}

/// When each of an application's datagrams was sent and arrived; or its request, and the answer.
fn ways(outcome: &Outcome, app: usize) -> Vec<(Ps, Ps)> {
    let (AppResult::Datagrams(ways) | AppResult::Ping(ways)) = &outcome.apps[app] else {
        unreachable!()
    };
    ways.starts
        .iter()
        .zip(&ways.times)
        .map(|(&start, time)| (start, start + time.unwrap()))
        .collect()
}

fn times(outcome: &Outcome, app: usize) -> Vec<Ps> {
    ways(outcome, app).iter().map(|(start, end)| end - start).collect()
}

/// The largest of this share of the draws, on straight lines between the points.
fn known(share: f64) -> f64 {
    let above = POINTS.iter().position(|point| share <= point.0 / 100.0).unwrap().max(1);
    let [(below, least), (above, most)] = [POINTS[above - 1], POINTS[above]];
    least as f64 + (share * 100.0 - below) / (above - below) * (most - least) as f64
}

/// Idle, one after the other. The share of 20,000 draws below a time differs from its own by more
/// than 0.02 with a probability of 2 exp(-16) (Dvoretzky, Kiefer, Wolfowitz), 2e-7.
#[test]
fn idle_datagrams_take_what_is_drawn_beyond_the_wire() {
    let outcome =
        run(fabric(&[(1, &POINTS)]), vec![App::Datagrams(datagrams(0, 1, 200 * US, 20_000))], 1);
    let mut drawn: Vec<Ps> = times(&outcome, 0).iter().map(|time| time - ONE_WAY).collect();
    drawn.sort_unstable();
    assert!(drawn[0] >= 25 * US && drawn[19_999] <= 126 * US);
    for share in (3..98).map(|percent| f64::from(percent) / 100.0) {
        let cut = drawn[(share * 2e4) as usize] as f64;
        assert!((known(share - 0.02)..=known(share + 0.02)).contains(&cut), "{share}: {cut}");
    }
}

/// A host that always draws the same is as far away again; a round trip has what both of its ends
/// draw.
#[test]
fn what_is_drawn_is_added_to_the_picosecond() {
    let always = |time| [(0.0, time), (100.0, time)];
    let topology = fabric(&[(0, &always(7 * US)), (1, &always(30 * US))]);
    let ping = Ping {
        src: 0,
        dst: 1,
        level: 0,
        first: 0,
        gap: Gap::Every(MS),
        bytes: 100,
        count: 5,
        turnaround: 0,
    };
    let clocks = Ptp {
        master: 0,
        slaves: vec![1],
        level: 0,
        bytes: 100,
        first: 300 * US,
        interval: MS,
        count: 5,
    };
    let apps = vec![App::Ping(ping), App::Datagrams(datagrams(0, 1, MS, 5)), App::Ptp(clocks)];
    let outcome = run(topology, apps, 1);
    assert_eq!(times(&outcome, 0), [2 * ONE_WAY + 37 * US; 5]);
    // A ping of the same time is before it on both links, and on its way into the host.
    assert_eq!(times(&outcome, 1), [ONE_WAY + 80_000 + 30 * US; 5]);
    let AppResult::Ptp(offsets) = &outcome.apps[2] else { unreachable!() };
    assert_eq!(offsets.computed, [Some((11_500_000, ONE_WAY + 37 * US / 2)); 5]);
    assert_eq!((outcome.counters.hops, outcome.counters.in_flight), (2 * (10 + 5 + 20), 0));
}

/// Datagrams of one pair of hosts are one flow, whatever sends them; those of another pair overtake
/// them.
#[test]
fn datagrams_of_a_pair_stay_in_order_and_overtake_others() {
    let apps = vec![
        App::Datagrams(datagrams(0, 1, 2 * US, 1_000)),
        App::Datagrams(Datagrams { first: US, ..datagrams(0, 1, 2 * US, 1_000) }),
        App::Datagrams(Datagrams { first: US, ..datagrams(2, 1, 2 * US, 1_000) }),
    ];
    let outcome = run(fabric(&[(1, &POINTS)]), apps, 1);
    let in_order = |one: usize, other: usize| {
        let mut both = [ways(&outcome, one), ways(&outcome, other)].concat();
        both.sort_unstable();
        both.windows(2).all(|pair| pair[0].1 <= pair[1].1)
    };
    assert!(in_order(0, 1));
    assert!(!in_order(0, 2));
}

/// Where TCP's packets do not overtake each other nothing is sent again, though one may take a
/// hundred times as long as it is sent.
#[test]
fn tcp_sees_no_packet_overtake_another() {
    let points = [(0.0, 0), (100.0, 150 * US)];
    let bulk = Bulk {
        src: 0,
        dst: 1,
        level: 0,
        start: 0,
        until: 20 * MS,
        window: Some(100),
        interval: MS,
    };
    let hosts = [(0, &points[..]), (1, &points[..])];
    let outcome =
        run(fabric(&hosts), vec![App::Bulk(bulk.clone()), App::Bulk(Bulk { src: 2, ..bulk })], 1);
    let counters = &outcome.counters;
    assert!(counters.delivered.data > 5_000);
    assert_eq!((counters.retransmitted, counters.timeouts), (0, 0));
}

/// Each host has random numbers of its own: what one draws does not depend on whether another does,
/// and where nothing arrives that draws, all is as without.
#[test]
fn what_others_draw_changes_nothing() {
    let apps = vec![
        App::Datagrams(datagrams(0, 1, 3 * US, 500)),
        App::Datagrams(datagrams(3, 2, 3 * US, 500)),
    ];
    let outcome = |drawing: &[u32], seed| {
        let drawing: Vec<_> = drawing.iter().map(|&host| (host, &POINTS[..])).collect();
        run(fabric(&drawing), apps.clone(), seed)
    };
    let (none, first, both) = (outcome(&[], 1), outcome(&[1], 1), outcome(&[1, 2], 1));
    assert_eq!(outcome(&[0, 3, 143], 1), none);
    assert_eq!(times(&none, 0), [ONE_WAY; 500]);
    assert_eq!((&first.apps[1], &first.apps[0]), (&none.apps[1], &both.apps[0]));
    assert_ne!(times(&both, 0), times(&both, 1), "two hosts draw the same");
    assert_ne!(outcome(&[1], 2).apps[0], first.apps[0], "another seed draws the same");
}
