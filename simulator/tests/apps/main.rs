// SPDX-License-Identifier: GPL-2.0-or-later
//! Applications: each with usual values, and how to look at its results.

mod collectives;
mod contract;
mod exact;

use qjump_sim::apps::{
    fan_in, read_goal, App, AppResult, Arrival, Barrier, Bulk, BulkResult, Collective, Datagrams,
    Exchange, Latencies, MapReduce, MapReduceResult, Operation, Pattern, Ping, Ptp, PtpResult,
    Requests, RequestsResult, Span,
};
use qjump_sim::{
    Bytes, Gap, LeafSpine, Limit, Outcome, Ps, Queue, Routing, Scenario, Scheme, Simulation,
    Source, Topology, Transport, Workload, MS, US,
};

/// Of Figure 9's hosts: picoseconds a byte, and of a cable.
const BYTE: Ps = 800;
const CABLE: Ps = 2_700_000;
/// A full packet.
const FULL: Ps = 1_500 * BYTE;

fn fabric() -> Topology {
    Topology::leaf_spine(&LeafSpine::FIG9).unwrap()
}

fn run(scheme: Scheme, apps: Vec<App>, sources: Vec<Source>, stop: Option<Ps>) -> Outcome {
    let workload = Workload { sources, ..Workload::of_apps(apps) };
    Scenario { stop, ..Scenario::new(fabric(), scheme, workload) }.run().unwrap()
}

fn ping(count: u32) -> Ping {
    Ping {
        src: 3,
        dst: 4,
        level: 0,
        first: US,
        gap: Gap::Every(50 * US),
        bytes: 100,
        count,
        turnaround: 0,
    }
}

fn datagrams(count: u32) -> Datagrams {
    Datagrams { src: 3, dst: 4, level: 0, first: US, gap: Gap::Every(50 * US), bytes: 100, count }
}

fn bulk(src: u32, dst: u32) -> Bulk {
    Bulk { src, dst, level: 7, start: 0, until: 10 * MS, window: None, interval: MS }
}

fn requests(arrival: Arrival, count: u32) -> Requests {
    Requests {
        client: 0,
        servers: vec![1],
        level: 0,
        first: US,
        arrival,
        exchanges: vec![Exchange { request: 100, response: 1_000, weight: 1 }],
        service: Span::Fixed(5 * US),
        count,
        until: None,
    }
}

fn barrier(hosts: u32, iterations: u32) -> Barrier {
    Barrier {
        hosts: (0..hosts).collect(),
        level: 0,
        bytes: 1_000,
        first: US,
        pause: 20 * US,
        iterations,
    }
}

fn ptp(slaves: Vec<u32>, count: u32) -> Ptp {
    Ptp { master: 0, slaves, level: 0, bytes: 90, first: 10 * US, interval: MS, count }
}

fn job() -> MapReduce {
    MapReduce {
        nodes: vec![0, 1],
        level: 7,
        first: US,
        maps: 8,
        map_slots: 4,
        map_time: Span::Fixed(MS),
        map_bytes: 40 * 1_500,
        reducers: 1,
        parallel_copies: 1,
        reduce_time: Span::Fixed(3 * MS),
    }
}

fn round_trips(outcome: &Outcome, app: usize) -> &Latencies {
    let AppResult::Ping(results) = &outcome.apps[app] else { unreachable!() };
    results
}

fn bulks(outcome: &Outcome, app: usize) -> &BulkResult {
    let AppResult::Bulk(results) = &outcome.apps[app] else { unreachable!() };
    results
}

fn answers(outcome: &Outcome) -> &RequestsResult {
    let AppResult::Requests(results) = &outcome.apps[0] else { unreachable!() };
    results
}

fn clocks(outcome: &Outcome) -> &PtpResult {
    let AppResult::Ptp(results) = &outcome.apps[0] else { unreachable!() };
    results
}

fn jobs(outcome: &Outcome) -> &MapReduceResult {
    let AppResult::MapReduce(results) = &outcome.apps[0] else { unreachable!() };
    results
}
