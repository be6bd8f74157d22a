// SPDX-License-Identifier: GPL-2.0-or-later
//! Drop-tail queues that lock a flow out by its phase (Floyd and Jacobson, "On traffic phase effects
//! in packet-switched gateways", 1992), and what cures it: hosts with jitter, or links whose rates
//! differ as those of real oscillators do.

use qjump_sim::apps::{App, AppResult, Bulk};
use qjump_sim::{
    Cable, CoDel, Congestion, Limit, Protection, Ps, Quantiles, Queue, Scheme, Simulation,
    Topology, Transport, Tree, Workload, MS, US,
};

const RATE: u64 = 1_000_000_000;
/// A packet on a link between switches.
const FRAME: Ps = 12 * US;
const TRUNKS: u32 = 3;
const DROP_TAIL: Queue = Queue::DropTail(Limit::Packets(20));

/// A parking lot: a chain of switches, a host pair across all of it, first, and one across each of
/// its cables.
fn parking_lot(edge: u64, jitter: Option<Ps>) -> (Topology, Vec<(u32, u32)>) {
    let cable = |rate| Cable { rate, delay: 10 * US };
    let switch = |at: u32| format!("s{at}");
    let mut tree = (0..=TRUNKS).fold(Tree::new(), |tree, at| tree.switch(&switch(at)));
    let mut pairs = vec![("a".to_owned(), 0, "z".to_owned(), TRUNKS)];
    for at in 0..TRUNKS {
        tree = tree.cable(&switch(at), &switch(at + 1), cable(RATE));
        pairs.push((format!("f{at}"), at, format!("t{at}"), at + 1));
    }
    for (from, first, to, last) in &pairs {
        tree = tree.host(from).cable(from, &switch(*first), cable(edge));
        tree = tree.host(to).cable(to, &switch(*last), cable(edge));
    }
    let mut topology = tree.build().unwrap();
    for host in 0..topology.hosts() {
        let quantiles = jitter.map(|most| Quantiles::new(&[(0.0, 0), (100.0, most)]).unwrap());
        if let Some(draws) = quantiles {
            topology.set_jitter(host, draws).unwrap();
        }
    }
    let number = |name: &str| topology.host(name).unwrap();
    let pairs = pairs.iter().map(|(from, _, to, _)| (number(from), number(to))).collect();
    (topology, pairs)
}

/// Each pair's share of a link in 4 s, the long flow's first.
fn shares(
    (topology, pairs): &(Topology, Vec<(u32, u32)>),
    congestion: Congestion,
    queue: Queue,
    seed: u64,
) -> Vec<f64> {
    let until = 4_000 * MS;
    let scheme = Scheme {
        queue,
        host_queue: Some(Queue::DropTail(Limit::None)),
        transport: Transport::linux(congestion),
        ..Scheme::tcp()
    };
    let bulk = |&(src, dst): &(u32, u32)| {
        let interval = 10 * MS;
        App::Bulk(Bulk { src, dst, level: 0, start: 0, until, window: None, interval })
    };
    let workload = Workload::of_apps(pairs.iter().map(bulk).collect());
    let mut simulation = Simulation::new(topology, &scheme, &workload, seed).unwrap();
    simulation.run_until(until);
    let share = |app: &AppResult| {
        let AppResult::Bulk(bulk) = app else { unreachable!() };
        bulk.bytes as f64 * 8.0 / (until as f64 / 1e12) / RATE as f64
    };
    simulation.outcome().apps.iter().map(share).collect()
}

const LAWS: [(&str, Congestion); 2] = [("NewReno", Congestion::Reno), ("CUBIC", Congestion::Cubic)];

/// Where queues form at switches, behind faster hosts. A window in inverse proportion to the root
/// of the loss, over three times the cables, gives the long flow between a tenth and a third; it
/// has less than a hundredth. Draws of up to four packet times cure that with every seed.
#[test]
fn jitter_cures_a_lock_out() {
    for (name, law) in LAWS {
        let long = |jitter, seed| shares(&parking_lot(10 * RATE, jitter), law, DROP_TAIL, seed)[0];
        let locked = long(None, 1);
        let cured = [1, 2, 3].map(|seed| long(Some(4 * FRAME), seed));
        println!("{name}: {locked:.4}, with jitter {cured:.3?}");
        assert!(locked < 0.01, "{name}: {locked}");
        assert!(cured.iter().all(|share| (0.1..0.34).contains(share)), "{name}: {cured:?}");
        assert_ne!(cured[0].to_bits(), cured[1].to_bits(), "{name}: the seed draws");
    }
}

/// Where hosts' own links have the trunk's rate, they send at its pace whatever their ACKs do:
/// the short flow's next packet comes as the last one leaves, and nobody else finds room. That is
/// cured by a queue that drops by its delay.
#[test]
fn only_another_queue_cures_one_by_saturated_hosts() {
    for (name, law) in LAWS {
        let long = |jitter, queue| shares(&parking_lot(RATE, jitter), law, queue, 1)[0];
        let codel = Queue::CoDel(CoDel {
            limit: Limit::Packets(100),
            target: 100 * US,
            interval: 2 * MS,
            protection: Protection::Default,
        });
        let found = [(None, DROP_TAIL), (Some(4 * FRAME), DROP_TAIL), (None, codel)]
            .map(|(jitter, queue)| long(jitter, queue));
        println!(
            "{name}: {:.4}, with jitter {:.4}, with CoDel {:.3}",
            found[0], found[1], found[2]
        );
        assert!(found[0] < 0.01 && found[1] < 0.01 && found[2] > 0.1, "{name}: {found:?}");
    }
}
