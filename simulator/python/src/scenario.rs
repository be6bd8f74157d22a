// SPDX-License-Identifier: GPL-2.0-or-later
//! Convert the dataclasses of `qjump_sim` to a scenario.

use pyo3::prelude::*;
use qjump_sim::{
    Error, FlowSpec, Flows, Ps, Result, Scenario, Scheme, Topology, Wish, Workload, WrittenTopology,
};

use crate::columns::{self, column, gather, own, HOLDS};
use crate::decode::decode;
use crate::located::Located;

/// The largest start, deadline and bytes, as in the Python package.
const LATEST: i64 = 1 << 62;

/// A scenario whose network is not built yet, which may take long.
pub struct Draft {
    topology: WrittenTopology,
    scheme: Chosen,
    workload: Workload,
    seed: u64,
    stop: Option<Ps>,
    parts: u32,
}

enum Chosen {
    Named(String),
    Given(Box<Scheme>),
}

impl Draft {
    /// Builds the network and the scheme. Errors begin with their place.
    pub fn build(self) -> Result<Scenario> {
        let Draft { topology, scheme, workload, seed, stop, parts } = self;
        let topology = build(topology)?;
        let scheme = match scheme {
            Chosen::Given(scheme) => *scheme,
            Chosen::Named(name) => {
                Scheme::named(&name, &topology).map_err(|e| Error::from(format!("scheme: {e}")))?
            }
        };
        Ok(Scenario { topology, scheme, workload, seed, stop, parts })
    }
}

/// Builds a network. Errors begin with `topology`.
pub fn build(topology: WrittenTopology) -> Result<Topology> {
    topology.build().map_err(|e| Error::from(format!("topology: {e}")))
}

pub fn draft(object: &Bound<'_, PyAny>) -> PyResult<Draft> {
    let whole = Located::new(object, "");
    Ok(Draft {
        topology: decode(&whole.get("topology")?)?,
        scheme: scheme(&whole.get("scheme")?)?,
        workload: Workload {
            flows: flows(&whole.get("flows")?)?,
            sources: decode(&whole.get("sources")?)?,
            apps: decode(&whole.get("apps")?)?,
        },
        seed: whole.get("seed")?.whole()?,
        stop: whole.get("stop")?.given().map(|stop| stop.time()).transpose()?,
        parts: whole.get("parts")?.whole()?,
    })
}

fn scheme(value: &Located) -> PyResult<Chosen> {
    match value.class()?.as_str() {
        "str" => Ok(Chosen::Named(value.text()?)),
        "Scheme" => decode(value).map(|scheme| Chosen::Given(Box::new(scheme))),
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
    let all = gather(value.object().py(), rows.map(flow).zip(wishes).map(Ok))?;
    Ok(Flows::Own(all))
}

/// Decodes the flows' own settings.
fn wishes(value: &Located) -> PyResult<Vec<Wish>> {
    let (levels, transports) = (own(value, "level", 7)?, column(value, "transport", 0..=3)?);
    let (deadlines, bytes) = (own(value, "deadline", LATEST)?, own(value, "bytes", LATEST)?);
    columns::are_as_long(value, &[levels.len(), transports.len(), deadlines.len(), bytes.len()])?;
    let rows = levels.into_iter().zip(transports).zip(deadlines).zip(bytes);
    let wish = |(((level, transport), deadline), bytes)| Wish { level, transport, deadline, bytes };
    gather(value.object().py(), rows.map(wish).map(Ok))
}
