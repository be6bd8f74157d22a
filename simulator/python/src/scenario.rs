// SPDX-License-Identifier: GPL-2.0-or-later
//! Convert the dataclasses of `qjump_sim` to a scenario.

use pyo3::prelude::*;
use qjump_sim::{FlowSpec, Flows, Scenario, Scheme, Topology, Wish, Workload};

use crate::columns::{self, column, own, HOLDS};
use crate::decode::decode;
use crate::located::Located;

/// The largest start, deadline and bytes, as in the Python package.
const LATEST: i64 = 1 << 62;

pub fn scenario(object: &Bound<'_, PyAny>) -> PyResult<Scenario> {
    let whole = Located::new(object, "");
    let topology = decode(&whole.get("topology")?)?;
    let scheme = scheme(&whole.get("scheme")?, &topology)?;
    let workload = Workload {
        flows: flows(&whole.get("flows")?)?,
        sources: decode(&whole.get("sources")?)?,
        apps: decode(&whole.get("apps")?)?,
    };
    let stop = whole.get("stop")?.given().map(|stop| stop.time()).transpose()?;
    let (seed, parts) = (whole.get("seed")?.whole()?, whole.get("parts")?.whole()?);
    Ok(Scenario { topology, scheme, workload, seed, stop, parts })
}

fn scheme(value: &Located, topology: &Topology) -> PyResult<Scheme> {
    match value.class()?.as_str() {
        "str" => Scheme::named(&value.text()?, topology).map_err(|e| value.refused(&e)),
        "Scheme" => decode(value),
        _ => Err(value.is_not("a Scheme or the name of one")),
    }
}

/// Decodes flows; a list comes as columns.
fn flows(value: &Located) -> PyResult<Flows> {
    if value.class()? != "Flows" {
        return decode(value);
    }
    let starts = column(value, "start", 0..=LATEST)?;
    let (srcs, dsts) = (column(value, "src", 0..=HOLDS)?, column(value, "dst", 0..=HOLDS)?);
    let packets = column(value, "packets", 0..=HOLDS)?;
    let wishes = wishes(value)?;
    columns::are_as_long(
        value,
        &[starts.len(), srcs.len(), dsts.len(), packets.len(), wishes.len()],
    )?;
    let rows = starts.into_iter().zip(srcs).zip(dsts).zip(packets);
    let flow = |(((start, src), dst), packets)| FlowSpec { start, src, dst, packets };
    Ok(Flows::Own(rows.map(flow).zip(wishes).collect()))
}

/// Decodes the flows' own settings.
fn wishes(value: &Located) -> PyResult<Vec<Wish>> {
    let (levels, transports) = (own(value, "level", 7)?, column(value, "transport", 0..=3)?);
    let (deadlines, bytes) = (own(value, "deadline", LATEST)?, own(value, "bytes", LATEST)?);
    columns::are_as_long(value, &[levels.len(), transports.len(), deadlines.len(), bytes.len()])?;
    let rows = levels.into_iter().zip(transports).zip(deadlines).zip(bytes);
    let wish = |(((level, transport), deadline), bytes)| Wish { level, transport, deadline, bytes };
    Ok(rows.map(wish).collect())
}
