// SPDX-License-Identifier: GPL-2.0-or-later
//! `qjump_sim._native`: the functions behind the Python package `qjump_sim`, whose dataclasses are
//! the scenarios and results.

mod apps;
mod columns;
mod decode;
mod encode;
mod field_units;
mod interrupt;
mod law;
mod located;
mod scenario;
mod watch;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use pyo3::BoundObject;
use qjump_sim::apps::{fan_in, Operation};
use qjump_sim::{
    ps_per_byte, ByKind, Cable, Congestion, Counters, FlowCounts, Flows, Graph, Latency, LeafSpine,
    Outcome, Pause, PortResult, Ps, Queue, Region, Regions, Run, Scenario, Scheme, Simulation,
    Topology, Transport, Watch,
};

use crate::columns::Asked;
use crate::decode::decode;
use crate::encode::encode;
use crate::interrupt::{interruptible, quietly, Worker};
use crate::law::Calling;
use crate::located::{value_error, Located};
use crate::scenario::Draft;

/// Events between looks at whether the run is to stop: 10 to 20 ms of a core.
const CHUNK: u64 = 1 << 18;

/// Interval of progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Switches, hosts and cables of a network whose nodes have names.
type Named<'py> = (Vec<String>, Vec<String>, Bound<'py, PyList>);

/// The result of `run`: columns of flows, bytes of packets and of each transport's ACKs, counters,
/// sources, end, applications, ports, and whatever else was watched.
type Ran<'py> = (
    Vec<Bound<'py, PyBytes>>,
    (u16, Vec<u16>),
    Bound<'py, PyDict>,
    Vec<(u64, u64, u128, Ps)>,
    i64,
    Vec<apps::Result<'py>>,
    Vec<Bound<'py, PyAny>>,
    watch::Seen<'py>,
);

/// Runs a scenario without the interpreter's lock; stops early when a signal handler raises.
/// `progress`, if not None, is called now and then.
#[pyfunction]
fn run<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, PyAny>,
    watch: &Bound<'py, PyAny>,
    progress: &Bound<'py, PyAny>,
) -> PyResult<Ran<'py>> {
    let draft = scenario::draft(scenario)?;
    let watch = watch::watch(watch)?;
    let calling = Calling::default();
    let work = {
        let (watch, calling) = (watch.clone(), calling.clone());
        move |worker: &Worker<_>| simulate(draft, &watch, worker, &calling)
    };
    let listener = |now| if progress.is_none() { Ok(()) } else { watch::report(progress, now) };
    let ended = interruptible(py, work, listener).inspect_err(|_| calling.interrupt(py))?;
    let ended = ended.map_err(|stopped| match stopped {
        Stopped::Refused(error) => value_error(&error),
        Stopped::Raised(error) => error,
    })?;
    let Ended { run, outcome, ports, counts, sizes: (full, acks) } = ended;
    let sources =
        outcome.sources.iter().map(|s| (s.delivered, s.bytes, s.delay_sum, s.delay_max)).collect();
    let apps = apps::results(py, &outcome.apps)?;
    let ports = ports.iter().map(|of| port(py, of)).collect::<PyResult<_>>()?;
    let counters = counters(py, &outcome.counters)?;
    let flows = columns::ended(py, &outcome.flows)?
        .into_iter()
        .chain(columns::wished(py, &outcome.flows, full)?)
        .collect();
    let seen = run
        .simulation()
        .map(|simulation| watch::seen(py, simulation, &watch, &counts))
        .transpose()?
        .unwrap_or_default();
    Ok((flows, (full, acks), counters, sources, columns::time(outcome.end), apps, ports, seen))
}

/// What remains of a run that has ended.
struct Ended {
    run: Run,
    outcome: Outcome,
    ports: Vec<PortResult>,
    counts: Vec<(u32, FlowCounts)>,
    /// Bytes of a full packet, and of each transport's ACKs.
    sizes: (u16, Vec<u16>),
}

/// Why a run has no outcome.
enum Stopped {
    Refused(qjump_sim::Error),
    /// By a law in Python.
    Raised(PyErr),
}

impl From<qjump_sim::Error> for Stopped {
    fn from(error: qjump_sim::Error) -> Self {
        law::raised(&error.to_string()).map_or(Stopped::Refused(error), Stopped::Raised)
    }
}

/// Runs a scenario to its end, or until nobody waits for it.
fn simulate(
    draft: Draft,
    watch: &Watch,
    worker: &Worker<Result<Ended, Stopped>>,
    calling: &Calling,
) -> Result<Ended, Stopped> {
    let scenario = draft.build()?;
    if law::is_python(&scenario.scheme) {
        calling.during(|| work(&scenario, watch, worker)).map_err(Stopped::Raised)?
    } else {
        work(&scenario, watch, worker)
    }
}

fn work(
    scenario: &Scenario,
    watch: &Watch,
    worker: &Worker<Result<Ended, Stopped>>,
) -> Result<Ended, Stopped> {
    let mut run = scenario.begin(watch)?;
    let mut told = Instant::now();
    while run.run_some(CHUNK)? && !worker.is_stopped() {
        if told.elapsed() >= PROGRESS_INTERVAL {
            worker.report(run.progress());
            told = Instant::now();
        }
    }
    let Scheme { transport, others, .. } = &scenario.scheme;
    let transports = [transport].into_iter().chain(others.iter().flatten());
    let acks = transports.map(|transport| transport.ack_bytes).collect();
    Ok(Ended {
        outcome: run.outcome(),
        ports: run.simulation().map_or_else(Vec::new, Simulation::ports),
        counts: run.simulation().map_or_else(Vec::new, Simulation::flow_counts),
        sizes: (transport.data_bytes, acks),
        run,
    })
}

fn port<'py>(py: Python<'py>, of: &PortResult) -> PyResult<Bound<'py, PyAny>> {
    py.check_signals()?;
    let counts = (of.longest, of.waiting, of.marked, of.early, of.full, of.paused);
    let (longest, waiting, marked, early, full, paused) = counts;
    make(
        py,
        "Port",
        (watch::end(of.from), watch::end(of.to), longest, waiting, marked, early, full, paused),
    )
}

fn counters<'py>(py: Python<'py>, of: &Counters) -> PyResult<Bound<'py, PyDict>> {
    let counters = PyDict::new(py);
    let kinds = [
        ("sent", of.sent),
        ("delivered", of.delivered),
        ("full", of.full),
        ("pushed_out", of.pushed_out),
        ("early", of.early),
        ("failed", of.failed),
        ("limited", of.limited),
    ];
    for (name, ByKind { data, acks, probes, datagrams, syns, syn_acks }) in kinds {
        counters
            .set_item(name, make(py, "ByKind", (data, acks, probes, datagrams, syns, syn_acks))?)?;
    }
    for (name, Latency { packets, sum, max }) in
        [("latency", of.latency), ("latency_again", of.latency_again)]
    {
        counters.set_item(name, make(py, "Latency", (packets, sum, max))?)?;
    }
    let counts = [
        ("in_flight", of.in_flight),
        ("pauses", of.pauses),
        ("hops", of.hops),
        ("events", of.events),
        ("marked", of.marked),
        ("retransmitted", of.retransmitted),
        ("timeouts", of.timeouts),
    ];
    for (name, count) in counts {
        counters.set_item(name, count)?;
    }
    Ok(counters)
}

/// Makes an object of a class of `qjump_sim`.
fn make<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl IntoPyObject<'py, Target = PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = fields.into_pyobject(py).map_err(Into::into)?.into_bound();
    py.import("qjump_sim")?.getattr(class)?.call1(fields)
}

/// Figure 9's fabric.
#[pyfunction]
fn fig9(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    encode(py, &LeafSpine::FIG9)
}

/// Number of each host of a tree or graph by its name.
#[pyfunction]
fn host_numbers<'py>(py: Python<'py>, tree: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let part = Located::new(tree, "topology");
    let topology = network(py, &part)?;
    let numbers = PyDict::new(py);
    for name in part.get("hosts")?.items()? {
        py.check_signals()?;
        numbers.set_item(name.object(), topology.host(&name.text()?))?;
    }
    Ok(numbers)
}

/// Decodes and builds a network.
fn network(py: Python<'_>, written: &Located) -> PyResult<Topology> {
    let written = decode(written)?;
    quietly(py, || scenario::build(written))?.map_err(|e| value_error(&e))
}

/// Switches, hosts and cables of a fat-tree.
#[pyfunction]
fn fat_tree<'py>(
    k: &Bound<'py, PyAny>,
    edge: &Bound<'py, PyAny>,
    trunk: &Bound<'py, PyAny>,
) -> PyResult<Named<'py>> {
    let cable = |of, place| decode(&Located::new(of, place));
    let ports = Located::new(k, "k");
    let (count, short, long) = (ports.whole()?, cable(edge, "edge")?, cable(trunk, "trunk")?);
    let tree = quietly(k.py(), move || Graph::fat_tree(count, short, long))?
        .map_err(|e| ports.refused(&e))?;
    // Only hosts have such names.
    let by = |other: &str| if other.starts_with('h') { edge } else { trunk };
    let cables = PyList::empty(k.py());
    for (one, other, _) in tree.cables() {
        k.py().check_signals()?;
        cables.append((one, other, by(other)))?;
    }
    Ok((tree.switches().to_vec(), tree.hosts().to_vec(), cables))
}

/// The scheme with this name, for a network.
#[pyfunction]
fn scheme<'py>(
    py: Python<'py>,
    name: &str,
    topology: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let topology = network(py, &Located::new(topology, "topology"))?;
    encode(py, &Scheme::named(name, &topology).map_err(|e| value_error(&e))?)
}

/// The queues by their names in scheme files: the names of their classes.
#[pyfunction]
fn queues() -> Vec<(&'static str, &'static str)> {
    Queue::NAMES.to_vec()
}

/// The laws of congestion control, likewise.
#[pyfunction]
fn laws() -> Vec<(&'static str, &'static str)> {
    Congestion::NAMES.to_vec()
}

/// The units of settings by class and field; fields without a unit are left out.
#[pyfunction]
fn units() -> field_units::Units {
    let units = RefCell::default();
    field_units::note::<Queue>(&units);
    field_units::note::<Congestion>(&units);
    field_units::note::<Transport>(&units);
    units.into_inner()
}

/// A scheme as JSON, as `qjump-sim run` reads it.
#[pyfunction]
fn scheme_to_json(scheme: &Bound<'_, PyAny>) -> PyResult<String> {
    let scheme: Scheme = decode(&Located::new(scheme, "scheme"))?;
    serde_json::to_string(&scheme).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// A scheme from JSON.
#[pyfunction]
fn scheme_from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let scheme: Scheme =
        serde_json::from_str(text).map_err(|e| PyValueError::new_err(format!("scheme: {e}")))?;
    encode(py, &scheme)
}

/// TCP as in Linux, with this law of congestion control.
#[pyfunction]
fn linux<'py>(py: Python<'py>, congestion: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    encode(py, &Transport::linux(decode(&Located::new(congestion, "congestion"))?))
}

/// `Pause.headroom`.
#[pyfunction]
fn headroom(cable: &Bound<'_, PyAny>, packet: &Bound<'_, PyAny>) -> PyResult<u64> {
    let place = Located::new(cable, "cable");
    let cable: Cable = decode(&place)?;
    let per_byte = ps_per_byte(cable.rate).map_err(|e| place.refused(&e))?;
    Ok(Pause::headroom(cable.delay, per_byte, Located::new(packet, "packet").bytes()?))
}

/// The columns of a list of flows, from lines of seconds, source, destination and packets.
#[pyfunction]
fn read_flows<'py>(py: Python<'py>, text: &str) -> PyResult<Asked<'py>> {
    let text = text.to_owned();
    match quietly(py, move || Flows::parse(&text))?.map_err(|e| value_error(&e))? {
        Flows::List(flows) => columns::asked(py, &flows),
        Flows::Own(_) | Flows::Drawn { .. } => unreachable!("lines are a list"),
    }
}

/// Of each operation of a GOAL file: rank, receiver of a message, its bytes or the computing time,
/// processor, and what it waits for.
type Carried = (u32, Option<u32>, u64, u32, Vec<u32>);

/// The operations of a GOAL file.
#[pyfunction]
fn read_goal(place: &str, text: &str) -> PyResult<Vec<Carried>> {
    let (_, operations) = qjump_sim::apps::read_goal(place, text).map_err(|e| value_error(&e))?;
    let carried = |operation| match operation {
        Operation::Send { rank, to, bytes, after } => (rank, Some(to), bytes, 0, after),
        Operation::Calc { rank, time, cpu, after } => (rank, None, time, cpu, after),
    };
    Ok(operations.into_iter().map(carried).collect())
}

/// The phases of a fan-in's sources.
#[pyfunction]
fn phases(senders: u32, epoch: &Bound<'_, PyAny>, seed: &Bound<'_, PyAny>) -> PyResult<Vec<Ps>> {
    let (epoch, seed) =
        (Located::new(epoch, "epoch").duration()?, Located::new(seed, "seed").whole()?);
    if epoch == 0 {
        return Err(PyValueError::new_err("fan-in: its epoch must be above 0"));
    }
    let senders: Vec<u32> = (0..senders).collect();
    Ok(fan_in(&senders, 0, 0, 1, epoch, 1, seed).iter().map(|source| source.first).collect())
}

/// Slowdowns of an outcome's flows by size.
#[pyfunction]
fn regions<'py>(
    py: Python<'py>,
    outcome: &Bound<'py, PyAny>,
    fabric: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let fabric = decode(&Located::new(fabric, "fabric"))?;
    let (flows, wire) = columns::results(&Located::new(outcome, "outcome"))?;
    let Regions { short, medium, long, all, unfinished } =
        quietly(py, move || Regions::of(&flows, &fabric, &wire))?.map_err(|e| value_error(&e))?;
    let region = |Region { flows, mean, p99 }| make(py, "Region", (flows, mean, p99));
    make(py, "Regions", (region(short)?, region(medium)?, region(long)?, region(all)?, unfinished))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(fig9, module)?)?;
    module.add_function(wrap_pyfunction!(host_numbers, module)?)?;
    module.add_function(wrap_pyfunction!(fat_tree, module)?)?;
    module.add_function(wrap_pyfunction!(queues, module)?)?;
    module.add_function(wrap_pyfunction!(laws, module)?)?;
    module.add_function(wrap_pyfunction!(units, module)?)?;
    module.add_function(wrap_pyfunction!(scheme, module)?)?;
    module.add_function(wrap_pyfunction!(scheme_to_json, module)?)?;
    module.add_function(wrap_pyfunction!(scheme_from_json, module)?)?;
    module.add_function(wrap_pyfunction!(linux, module)?)?;
    module.add_function(wrap_pyfunction!(headroom, module)?)?;
    module.add_function(wrap_pyfunction!(read_flows, module)?)?;
    module.add_function(wrap_pyfunction!(read_goal, module)?)?;
    module.add_function(wrap_pyfunction!(phases, module)?)?;
    module.add_function(wrap_pyfunction!(regions, module)?)
}
