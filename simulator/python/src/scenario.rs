// SPDX-License-Identifier: GPL-2.0-or-later
//! From the dataclasses of `qjump_sim` to the simulator's scenario.

use pyo3::prelude::*;
use qjump_sim::{FlowSpec, Flows, Scenario, Scheme, Topology, Wish, Workload};

use crate::columns;
use crate::part::Part;
use crate::reading::read;

pub fn scenario(object: &Bound<'_, PyAny>) -> PyResult<Scenario> {
    let whole = Part::new(object, "");
    let topology = read(&whole.get("topology")?)?;
    let scheme = scheme(&whole.get("scheme")?, &topology)?;
    let workload = Workload {
        flows: flows(&whole.get("flows")?)?,
        sources: read(&whole.get("sources")?)?,
        apps: read(&whole.get("apps")?)?,
    };
    let stop = whole.get("stop")?.given().map(|stop| stop.time()).transpose()?;
    Ok(Scenario { topology, scheme, workload, seed: whole.get("seed")?.whole()?, stop })
}

fn scheme(part: &Part, topology: &Topology) -> PyResult<Scheme> {
    match part.class()?.as_str() {
        "str" => Scheme::named(&part.text()?, topology).map_err(|e| part.refused(&e)),
        "Scheme" => read(part),
        _ => Err(part.is_not("a Scheme or the name of one")),
    }
}

/// A list comes as columns.
fn flows(part: &Part) -> PyResult<Flows> {
    if part.class()? != "Flows" {
        return read(part);
    }
    let column = |field| columns::numbers(part.get(field)?.object());
    let (starts, srcs, dsts, sizes) = (column("start")?, column("src")?, column("dst")?, column("packets")?);
    let rows = starts.into_iter().zip(srcs).zip(dsts).zip(sizes);
    // Python's side has refused what does not fit.
    let flow = |(((start, src), dst), packets)| FlowSpec { start, src: src as u32, dst: dst as u32, packets: packets as u32 };
    Ok(Flows::Own(rows.map(flow).zip(wishes(part)?).collect()))
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
