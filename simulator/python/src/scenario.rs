// SPDX-License-Identifier: GPL-2.0-or-later
//! From the dataclasses of `qjump_sim` to the simulator's scenario.

use pyo3::prelude::*;
use qjump_sim::{FlowSpec, Flows, Scenario, Scheme, Topology, Wish, Workload};

use crate::columns::{self, column, own, HOLDS};
use crate::part::Part;
use crate::reading::read;

/// Of starts and deadlines, and of bytes, as Python's side has it.
const LATEST: i64 = 1 << 62;

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
    let (seed, parts) = (whole.get("seed")?.whole()?, whole.get("parts")?.whole()?);
    Ok(Scenario { topology, scheme, workload, seed, stop, parts })
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
    let starts = column(part, "start", 0..=LATEST)?;
    let (srcs, dsts) = (column(part, "src", 0..=HOLDS)?, column(part, "dst", 0..=HOLDS)?);
    let packets = column(part, "packets", 0..=HOLDS)?;
    let wishes = wishes(part)?;
    columns::are_as_long(part, &[starts.len(), srcs.len(), dsts.len(), packets.len(), wishes.len()])?;
    let rows = starts.into_iter().zip(srcs).zip(dsts).zip(packets);
    let flow = |(((start, src), dst), packets)| FlowSpec { start, src, dst, packets };
    Ok(Flows::Own(rows.map(flow).zip(wishes).collect()))
}

/// What flows have of their own.
fn wishes(part: &Part) -> PyResult<Vec<Wish>> {
    let (levels, transports) = (own(part, "level", 7)?, column(part, "transport", 0..=3)?);
    let (deadlines, bytes) = (own(part, "deadline", LATEST)?, own(part, "bytes", LATEST)?);
    columns::are_as_long(part, &[levels.len(), transports.len(), deadlines.len(), bytes.len()])?;
    let rows = levels.into_iter().zip(transports).zip(deadlines).zip(bytes);
    let wish = |(((level, transport), deadline), bytes)| Wish { level, transport, deadline, bytes };
    Ok(rows.map(wish).collect())
}
