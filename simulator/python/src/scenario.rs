// SPDX-License-Identifier: GPL-2.0-or-later
//! From the dataclasses of `qjump_sim` to the simulator's scenario.

use pyo3::prelude::*;
use qjump_sim::units::{Instant, Unit};
use qjump_sim::{
    Arrivals, Bytes, Cable, Failure, FlowSpec, Flows, Gap, Graph, LeafSpine, Quantiles, Scenario, Scheme, Sizes, Source,
    Topology, Tree, Wish, Workload,
};

use crate::apps::apps;
use crate::columns;
use crate::part::{told, Part};
use crate::reading::read;

pub fn scenario(object: &Bound<'_, PyAny>) -> PyResult<Scenario> {
    let whole = Part::new(object, "");
    let topology = topology(&whole.get("topology")?)?;
    let scheme = scheme(&whole.get("scheme")?, &topology)?;
    let workload = Workload {
        flows: flows(&whole.get("flows")?)?,
        sources: sources(&whole.get("sources")?)?,
        apps: apps(&whole.get("apps")?)?,
    };
    let stop = whole.get("stop")?.given().map(|stop| stop.time()).transpose()?;
    Ok(Scenario { topology, scheme, workload, seed: whole.get("seed")?.whole()?, stop })
}

pub fn topology(part: &Part) -> PyResult<Topology> {
    match part.class()?.as_str() {
        "LeafSpine" => {
            let topology = Topology::leaf_spine(&leaf_spine(part)?).map_err(|e| part.refused(&e))?;
            with_jitter(topology, part, |host, _| host.whole())
        }
        "Tree" | "Graph" => named(part),
        _ => Err(part.is_not("a LeafSpine, a Tree or a Graph")),
    }
}

pub fn leaf_spine(part: &Part) -> PyResult<LeafSpine> {
    if part.class()? != "LeafSpine" {
        return Err(part.is_not("a LeafSpine"));
    }
    Ok(LeafSpine {
        racks: part.get("racks")?.whole()?,
        hosts_per_rack: part.get("hosts_per_rack")?.whole()?,
        spines: part.get("spines")?.whole()?,
        edge: cable(&part.get("edge")?)?,
        uplink: cable(&part.get("uplink")?)?,
    })
}

/// A network whose nodes have names.
pub fn named(part: &Part) -> PyResult<Topology> {
    let nodes = nodes(part)?;
    let topology = if part.class()? == "Graph" {
        part.get("failures")?
            .items()?
            .iter()
            .try_fold(Graph::new(nodes), |graph, of| failure(of).map(|of| graph.failure(of)))?
            .build()
    } else {
        nodes.build()
    };
    with_jitter(topology.map_err(|e| part.refused(&e))?, part, |host, topology| {
        let name = host.text()?;
        topology.host(&name).ok_or_else(|| host.wrong(&format!("there is no host {name}")))
    })
}

fn failure(part: &Part) -> PyResult<Failure> {
    if part.class()? != "Failure" {
        return Err(part.is_not("a Failure"));
    }
    Ok(Failure {
        one: part.get("one")?.text()?,
        other: part.get("other")?.text()?,
        down: part.get("down")?.time()?,
        up: part.get("up")?.given().map(|up| up.time()).transpose()?,
    })
}

fn nodes(part: &Part) -> PyResult<Tree> {
    let mut tree = Tree::new();
    for name in part.get("switches")?.items()? {
        tree = tree.switch(&name.text()?);
    }
    for name in part.get("hosts")?.items()? {
        tree = tree.host(&name.text()?);
    }
    for joined in part.get("cables")?.items()? {
        let [one, other, by] = &joined.items()?[..] else {
            return Err(joined.is_not("two names and a Cable"));
        };
        tree = tree.cable(&one.text()?, &other.text()?, cable(by)?);
    }
    Ok(tree)
}

/// With what hosts draw; `number` reads whom a topology means by a host.
fn with_jitter(mut topology: Topology, part: &Part, number: impl Fn(&Part, &Topology) -> PyResult<u32>) -> PyResult<Topology> {
    for drawing in part.get("jitter")?.items()? {
        let [host, by] = &drawing.items()?[..] else {
            return Err(drawing.is_not("a host and its Quantiles"));
        };
        let host = number(host, &topology)?;
        topology.set_jitter(host, quantiles(by)?).map_err(|e| drawing.refused(&e))?;
    }
    Ok(topology)
}

fn quantiles(part: &Part) -> PyResult<Quantiles> {
    if part.class()? != "Quantiles" {
        return Err(part.is_not("a Quantiles"));
    }
    let point = |point: &Part| match &point.items()?[..] {
        [percent, time] => Ok((percent.real()?, time.duration()?)),
        _ => Err(point.is_not("a percentage and a time")),
    };
    let points = part.get("points")?.items()?.iter().map(point).collect::<PyResult<Vec<_>>>()?;
    Quantiles::new(&points).map_err(|e| part.refused(&e))
}

pub fn cable(part: &Part) -> PyResult<Cable> {
    if part.class()? != "Cable" {
        return Err(part.is_not("a Cable"));
    }
    Ok(Cable { rate: part.get("rate")?.whole()?, delay: part.get("delay")?.duration()? })
}

fn scheme(part: &Part, topology: &Topology) -> PyResult<Scheme> {
    match part.class()?.as_str() {
        "str" => Scheme::named(&part.text()?, topology).map_err(|e| part.refused(&e)),
        "Scheme" => read(part),
        _ => Err(part.is_not("a Scheme or the name of one")),
    }
}

fn flows(part: &Part) -> PyResult<Flows> {
    match part.class()?.as_str() {
        "Poisson" => drawn(part, Arrivals::Poisson),
        "Published" => drawn(part, Arrivals::Published),
        "Flows" => {
            let column = |field| columns::numbers(part.get(field)?.object());
            let (starts, srcs, dsts, sizes) = (column("start")?, column("src")?, column("dst")?, column("packets")?);
            let rows = starts.into_iter().zip(srcs).zip(dsts).zip(sizes);
            // Python's side has refused what does not fit.
            let flow =
                |(((start, src), dst), packets)| FlowSpec { start, src: src as u32, dst: dst as u32, packets: packets as u32 };
            Ok(Flows::Own(rows.map(flow).zip(wishes(part)?).collect()))
        }
        _ => Err(part.is_not("a Poisson, Published or Flows")),
    }
}

/// What flows have of their own; -1 is nothing.
fn wishes(part: &Part) -> PyResult<Vec<Wish>> {
    let column = |field| columns::numbers(part.get(field)?.object());
    let (levels, transports) = (column("level")?, column("transport")?);
    let rows = levels.into_iter().zip(transports).zip(column("deadline")?).zip(column("bytes")?);
    let given = |number: u64| i64::try_from(number).is_ok().then_some(number);
    let wish = |(((level, transport), deadline), bytes)| Wish {
        level: given(level).map(|level| level as u8),
        transport: transport as u8,
        deadline: given(deadline),
        bytes: given(bytes),
    };
    Ok(rows.map(wish).collect())
}

fn drawn(part: &Part, arrivals: Arrivals) -> PyResult<Flows> {
    let (sizes, load, count) = (sizes(&part.get("sizes")?)?, part.get("load")?.real()?, part.get("count")?.whole()?);
    Ok(Flows::Drawn { arrivals, sizes, load, count })
}

fn sizes(part: &Part) -> PyResult<Sizes> {
    match part.class()?.as_str() {
        "str" => Sizes::named(&part.text()?).map_err(|e| part.refused(&e)),
        "Sizes" => {
            let point = |point: &Part| match &point.items()?[..] {
                [packets, share] => Ok((packets.whole()?, share.real()?)),
                _ => Err(point.is_not("a size and a share")),
            };
            let points = part.get("points")?.items()?.iter().map(point).collect::<PyResult<Vec<_>>>()?;
            Sizes::new(&points).map_err(|e| told(&e))
        }
        _ => Err(part.is_not("a Sizes or the name of one")),
    }
}

fn sources(part: &Part) -> PyResult<Vec<Source>> {
    part.items()?.iter().map(source).collect()
}

fn source(part: &Part) -> PyResult<Source> {
    if part.class()? != "Source" {
        return Err(part.is_not("a Source"));
    }
    let (gap, bytes) = (part.get("gap")?.duration()?, part.get("bytes")?.bytes()?);
    let (first, count) = (part.get("first")?.time()?, part.get("count")?.whole()?);
    let latest = Instant::MOST;
    if u128::from(first) + u128::from(gap) * u128::from(count) > u128::from(latest) {
        return Err(part.wrong(&format!("{count} datagrams with {gap} ps between two would come after {latest} ps")));
    }
    Ok(Source {
        src: part.get("src")?.whole()?,
        dst: part.get("dst")?.whole()?,
        level: part.get("level")?.whole()?,
        first,
        gap: if part.get("poisson")?.flag()? { Gap::Poisson(gap) } else { Gap::Every(gap) },
        bytes: if part.get("exponential")?.flag()? { Bytes::Exponential(bytes) } else { Bytes::Fixed(bytes) },
        count,
    })
}
