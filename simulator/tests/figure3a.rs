// SPDX-License-Identifier: GPL-2.0-or-later
//! Figure 3a on the paper's testbed of 12 hosts, at 10 Gb/s: what bulk traffic does to a ping, and
//! what is left of it with QJump's levels: at most one full frame a busy port.

use qjump_sim::apps::{App, AppResult, Bulk, Latencies, Ping};
use qjump_sim::{
    Budgets, Bytes, Cable, Gap, Limit, Limiter, Outcome, PerHost, Priority, Ps, Queue, Scenario,
    Scheme, Source, Topology, Tree, Workload, MS, NS, US,
};

const BYTE: Ps = 800;
const DELAY: Ps = 500 * NS;
const FULL: Ps = 1_500 * BYTE;
const SMALL: u16 = 128;
const BUFFER: u64 = 100 * 1_500;

/// One switch above three, with six, three and three hosts (its Figure 4).
fn testbed() -> Topology {
    let cable = Cable { rate: 10_000_000_000, delay: DELAY };
    let mut tree = Tree::new().switch("s0");
    for (switch, hosts) in [("s1", 1..7), ("s2", 7..10), ("s3", 10..13)] {
        tree = tree.switch(switch).cable(switch, "s0", cable);
        for host in hosts {
            let name = format!("h{host}");
            tree = tree.host(&name).cable(&name, switch, cable);
        }
    }
    tree.build().unwrap()
}

/// By the names of the hosts.
fn pairs(of: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let topology = testbed();
    let number = |host: u32| topology.host(&format!("h{host}")).unwrap();
    of.iter().map(|&(src, dst)| (number(src), number(dst))).collect()
}

fn ping(src: u32, dst: u32, first: Ps, gap: Gap, count: u32) -> App {
    App::Ping(Ping { src, dst, level: 0, first, gap, bytes: SMALL, count, turnaround: 0 })
}

/// Pings that nobody can foresee, after the bulk's slow start.
fn probe() -> App {
    let [(src, dst)] = pairs(&[(8, 10)])[..] else { unreachable!() };
    ping(src, dst, MS, Gap::Poisson(10 * US), 10_000)
}

/// The bulk of Figure 3a, three flows over the trunk that the ping takes.
fn bulk() -> Vec<App> {
    let flow = |(src, dst)| {
        App::Bulk(Bulk {
            src,
            dst,
            level: 7,
            start: 0,
            until: 110 * MS,
            window: None,
            interval: MS,
        })
    };
    pairs(&[(7, 10), (9, 11), (1, 12)]).into_iter().map(flow).collect()
}

/// As much as the links carry, both ways.
fn flood() -> Vec<Source> {
    let both = [(7, 10), (9, 11), (1, 12), (10, 7), (11, 9), (12, 1)];
    let source = |(src, dst)| Source {
        src,
        dst,
        level: 7,
        first: 0,
        gap: Gap::Every(FULL),
        bytes: Bytes::Fixed(1_500),
        count: 110 * MS / FULL,
    };
    pairs(&both).into_iter().map(source).collect()
}

fn run(queue: Queue, limiter: Limiter, apps: Vec<App>, sources: Vec<Source>) -> Outcome {
    let scheme = Scheme { queue, limiter, ..Scheme::tcp() };
    let workload = Workload { sources, ..Workload::of_apps(apps) };
    Scenario::new(testbed(), scheme, workload).run().unwrap()
}

fn first(outcome: &Outcome) -> &Latencies {
    let AppResult::Ping(results) = &outcome.apps[0] else { unreachable!() };
    results
}

/// Sorted excess over the time in an idle network, four links each way.
fn excess(results: &Latencies) -> Vec<Ps> {
    let idle = 8 * (Ps::from(SMALL) * BYTE + DELAY);
    let mut excess: Vec<Ps> = results.times.iter().flatten().map(|time| time - idle).collect();
    excess.sort_unstable();
    excess
}

const FIFO: Queue = Queue::DropTail(Limit::Bytes(BUFFER));
const LEVELS: Queue = Queue::Priority(Priority { limit: BUFFER });

#[test]
fn an_idle_testbed_takes_the_closed_form() {
    let outcome = run(FIFO, Limiter::None, vec![probe()], vec![]);
    let excess = excess(first(&outcome));
    // Of two pings in less than they take to send, the second waits.
    assert!(
        excess.len() == 10_000 && excess[9_800] == 0 && excess[9_999] < 3 * Ps::from(SMALL) * BYTE
    );
}

/// Six ports on the ping's way have a queue; none is longer than its buffer.
#[test]
fn without_levels_the_ping_waits_for_the_queues() {
    let outcome = run(FIFO, Limiter::None, vec![probe()], flood());
    let excess = excess(first(&outcome));
    let lost = first(&outcome).lost;
    assert_eq!(excess.len() as u64 + lost, 10_000);
    println!(
        "flood: median {:.1} us, longest {:.1} us, lost {lost}",
        excess[excess.len() / 2] as f64 / 1e6,
        last(&excess)
    );
    assert!(excess[excess.len() / 2] > 10 * FULL);
    assert!(excess[excess.len() - 1] <= 6 * BUFFER * BYTE);
}

fn last(excess: &[Ps]) -> f64 {
    excess[excess.len() - 1] as f64 / 1e6
}

/// Three busy ports there and three back, a full frame in transmission at each: 7.2 us, whatever
/// the queues. Other pings are as urgent: they can be waited for too, which is left out by making
/// them come one at a time.
#[test]
fn with_levels_it_waits_for_a_frame_a_busy_port() {
    let [(src, dst)] = pairs(&[(8, 10)])[..] else { unreachable!() };
    // 13.337 us and a packet's time have no common measure worth mentioning: the pings come at
    // every phase of the frames.
    let regular = ping(src, dst, MS, Gap::Every(13_337_003), 7_000);
    let outcome = run(LEVELS, Limiter::None, vec![regular.clone()], flood());
    let flooded = excess(first(&outcome));
    println!(
        "levels, flood: median {:.2} us, longest {:.2} us",
        flooded[3_500] as f64 / 1e6,
        last(&flooded)
    );
    assert_eq!((flooded.len(), first(&outcome).lost), (7_000, 0));
    assert!(flooded[6_999] <= 6 * FULL && flooded[6_999] > 4 * FULL && flooded[3_500] > FULL);

    // The same beside TCP: three ports have data; back there are ACKs, which go before all levels,
    // one for each of the three flows' packets, 32 ns each.
    let beside =
        |queue| run(queue, Limiter::None, [vec![regular.clone()], bulk()].concat(), vec![]);
    let (levels, fifo) = (beside(LEVELS), beside(FIFO));
    let (with, without) = (excess(first(&levels)), excess(first(&fifo)));
    println!(
        "TCP, levels: median {:.2} us, longest {:.2} us",
        with[3_500] as f64 / 1e6,
        last(&with)
    );
    println!(
        "TCP, no levels: median {:.1} us, longest {:.1} us",
        without[without.len() / 2] as f64 / 1e6,
        last(&without)
    );
    assert_eq!((with.len(), first(&levels).lost), (7_000, 0));
    assert!(with[6_999] <= 3 * (FULL + 3 * 40 * BYTE));
    assert!(without[without.len() / 2] > 10 * with[3_500]);
    // Goodput of the three together is that of the trunk, with levels and without, within 2 %.
    let goodput = |outcome: &Outcome| {
        let bytes = outcome.apps[1..].iter().map(|app| {
            let AppResult::Bulk(results) = app else { unreachable!() };
            results.delivered[99] - results.delivered[9]
        });
        bytes.sum::<u64>() as f64 * BYTE as f64 / (90 * MS) as f64
    };
    println!("goodput: {:.4} with levels, {:.4} without", goodput(&levels), goodput(&fifo));
    assert!(goodput(&levels) > 0.98 * goodput(&fifo));
}

/// All hosts but one ping it at level 0, one packet of P = 1,550 bytes an epoch of 2nP/R, while
/// everybody floods somebody: whatever the phases, no limiter, queue or loss is met that equation 2
/// does not pay for.
#[test]
fn eleven_pings_at_once_keep_the_guarantee() {
    const N: u32 = 12;
    let epoch = qjump_sim::network_epoch(N, 1_550, BYTE as u32);
    let mut budgets: Budgets = [u64::MAX; 8];
    budgets[0] = 1_550;
    let limiter = Limiter::PerHost(PerHost::new(epoch, budgets));
    let topology = testbed();
    let number = |host: u32| topology.host(&format!("h{host}")).unwrap();
    let mut rng = qjump_sim::Rng::new(5, 0);
    let dst = number(10);
    let flood = (1..=N).map(|host| Source {
        src: number(host),
        dst: number(host % N + 1),
        level: 7,
        first: rng.below(FULL),
        gap: Gap::Every(FULL),
        bytes: Bytes::Fixed(1_500),
        count: 22 * MS / FULL,
    });
    let flood: Vec<Source> = flood.collect();
    let mut worst = 0;
    for spread in [1, epoch / 100, epoch / 10, epoch] {
        let pings: Vec<App> = (1..=N)
            .filter(|&host| host != 10)
            .map(|host| ping(number(host), dst, MS + rng.below(spread), Gap::Every(epoch), 600))
            .collect();
        let outcome = run(LEVELS, limiter, pings, flood.clone());
        let own = Ps::from(SMALL) * BYTE;
        for app in &outcome.apps {
            let AppResult::Ping(results) = app else { unreachable!() };
            assert_eq!((results.times.iter().flatten().count(), results.lost), (600, 0));
            worst = worst.max(results.times.iter().flatten().copied().max().unwrap());
        }
        // There: a frame at each of four ports and all the others' requests once. Back: a frame at
        // each port and the ten other answers at the first; and both are stored and forwarded.
        let there = 4 * FULL + 10 * own + 4 * (own + DELAY);
        let back = 4 * FULL + 10 * own + 4 * (own + DELAY);
        assert!(worst <= there + back, "{worst} {}", there + back);
    }
    println!(
        "eleven to one: longest {:.2} us, an epoch is {:.2} us",
        worst as f64 / 1e6,
        epoch as f64 / 1e6
    );
    assert!(worst > 4 * FULL, "{worst}");
}
