// SPDX-License-Identifier: GPL-2.0-or-later
//! What came after QJump, each beside what was published of it or follows from its rules.

mod aequitas;
mod bbr;
mod bbr3;
mod dcqcn;
mod dcqcn_pfc;
mod eqds;
mod homa;
mod hpcc;
mod mixed;
mod named;
mod ndp;
mod nscc;
mod powertcp;
mod swift;

use qjump_sim::apps::{App, AppResult, Bulk};
use qjump_sim::{
    Cable, Congestion, FlowSpec, Flows, Limit, Outcome, PortResult, Ps, Queue, Scenario, Scheme,
    Simulation, Topology, Transport, Tree, Watch, Workload,
};

/// Senders on one switch and a receiver on another, host 0; the cable between the switches is the
/// bottleneck.
fn dumbbell(senders: u32, edge: Cable, trunk: Cable) -> Topology {
    let mut tree =
        Tree::new().switch("x").switch("y").host("a").cable("a", "y", edge).cable("x", "y", trunk);
    for number in 0..senders {
        let name = format!("b{number:03}");
        tree = tree.host(&name).cable(&name, "x", edge);
    }
    tree.build().unwrap()
}

/// A transport of windows without connection setup or delayed ACKs, with a window that does not
/// limit.
fn transport(congestion: Congestion) -> Transport {
    Transport {
        delayed_ack: None,
        handshake: None,
        initial_rto: None,
        max_window: 8_000,
        ..Transport::linux(congestion)
    }
}

/// Endless flows from hosts 1, 2, ... to host 0, whose deliveries are noted at this distance.
fn endless(senders: u32, until: Ps, interval: Ps) -> Workload {
    let bulk =
        |src| App::Bulk(Bulk { src, dst: 0, level: 0, start: 0, until, window: None, interval });
    Workload::of_apps((1..=senders).map(bulk).collect())
}

/// How long the last of these flows takes.
fn last_takes(topology: Topology, scheme: Scheme, flows: Vec<FlowSpec>) -> Ps {
    let workload = Workload::of_flows(Flows::List(flows));
    let outcome = Scenario::new(topology, scheme, workload).run().unwrap();
    let last = outcome.flows.last().unwrap();
    last.finish.unwrap() - last.start
}

/// Runs it; what had come out at the first time and at the second, and the ports then.
fn between(
    topology: &Topology,
    scheme: &Scheme,
    workload: &Workload,
    stops: [Ps; 2],
) -> ([Outcome; 2], Vec<PortResult>) {
    let watch = Watch { ports: true, ..Watch::default() };
    let (outcomes, simulation) = seen_between(topology, scheme, workload, &watch, stops);
    (outcomes, simulation.ports())
}

/// The same with what else is to be seen.
fn seen_between(
    topology: &Topology,
    scheme: &Scheme,
    workload: &Workload,
    watch: &Watch,
    stops: [Ps; 2],
) -> ([Outcome; 2], Simulation) {
    let mut simulation = Simulation::watched(topology, scheme, workload, 1, watch).unwrap();
    let outcomes = stops.map(|stop| {
        simulation.run_until(stop);
        simulation.outcome()
    });
    (outcomes, simulation)
}

/// Bytes that each endless flow has delivered.
fn delivered(outcome: &Outcome) -> Vec<u64> {
    let bytes = |app: &AppResult| match app {
        AppResult::Bulk(bulk) => bulk.bytes,
        _ => unreachable!("only endless flows"),
    };
    outcome.apps.iter().map(bytes).collect()
}

/// Between both outcomes: bit/s of each flow, and the mean time that data took, in ps.
fn rates([before, after]: &[Outcome; 2]) -> (Vec<f64>, f64) {
    let seconds = (after.end - before.end) as f64 / 1e12;
    let rates = delivered(before)
        .iter()
        .zip(delivered(after))
        .map(|(from, to)| (to - from) as f64 * 8.0 / seconds)
        .collect();
    let (from, to) = (before.counters.latency, after.counters.latency);
    (rates, (to.sum - from.sum) as f64 / (to.packets - from.packets) as f64)
}

fn without_limit(transport: Transport) -> Scheme {
    Scheme { transport, queue: Queue::DropTail(Limit::None), ..Scheme::tcp() }
}
