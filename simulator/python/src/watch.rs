// SPDX-License-Identifier: GPL-2.0-or-later
//! Convert `Watch` from Python, and series, flow counts and traces to Python, as columns.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use qjump_sim::{End, FlowCounts, Hop, Progress, Simulation, Traced, Watch};

use crate::columns::{bytes, time};
use crate::located::Located;

type Columns<'py> = Vec<Bound<'py, PyBytes>>;

/// Decodes a `Watch`; None watches nothing.
pub fn watch(object: &Bound<'_, PyAny>) -> PyResult<Watch> {
    let Some(value) = Located::new(object, "watch").given() else {
        return Ok(Watch::default());
    };
    if value.class()? != "Watch" {
        return Err(value.is_not("a Watch"));
    }
    let traced = |value: Located| match value.class()?.as_str() {
        "str" if value.text()? == "all" => Ok(Traced::All),
        "str" => Err(value.is_not("'all' or numbers of hosts")),
        _ => Ok(Traced::Hosts(value.items()?.iter().map(Located::whole).collect::<PyResult<_>>()?)),
    };
    Ok(Watch {
        ports: value.get("ports")?.flag()?,
        flows: value.get("flows")?.flag()?,
        every_ps: value.get("every_ps")?.given().map(|every| every.duration()).transpose()?,
        until: value.get("until")?.given().map(|until| until.time()).transpose()?,
        most: value.get("most")?.given().map(|most| most.whole()).transpose()?,
        traced: value.get("trace")?.given().map(traced).transpose()?,
    })
}

/// Series, flow counts and trace of a run, each None if not requested.
pub type Seen<'py> =
    (Option<(Vec<Cable>, Columns<'py>)>, Option<Columns<'py>>, Option<Columns<'py>>);

/// Both ends of a port's cable.
type Cable = ((&'static str, u32), (&'static str, u32));

/// An end as in Python.
pub fn end(of: End) -> (&'static str, u32) {
    match of {
        End::Host(number) => ("host", number),
        End::Switch(number) => ("switch", number),
    }
}

pub fn seen<'py>(
    py: Python<'py>,
    simulation: &Simulation,
    watch: &Watch,
    counts: &[(u32, FlowCounts)],
) -> PyResult<Seen<'py>> {
    let flows = watch.flows.then(|| flows(py, counts)).transpose()?;
    let trace = watch.traced.is_some().then(|| hops(py, simulation.trace())).transpose()?;
    Ok((series(py, simulation)?, flows, trace))
}

fn series<'py>(
    py: Python<'py>,
    simulation: &Simulation,
) -> PyResult<Option<(Vec<Cable>, Columns<'py>)>> {
    let Some(series) = simulation.series() else { return Ok(None) };
    let large = |column: &[u64]| bytes(py, column.iter().map(|&number| time(number)));
    let senders = |of: fn(&qjump_sim::Sender) -> u32| {
        bytes(py, series.senders.iter().map(|sender| i64::from(of(sender))))
    };
    let mut columns = vec![large(&series.at)?, large(&series.queued)?, large(&series.levels)?];
    columns.extend([large(&series.sent)?, large(&series.marked)?, large(&series.dropped)?]);
    columns.push(large(series.totals.as_flattened())?);
    columns.extend([
        senders(|s| s.sample)?,
        senders(|s| s.flow)?,
        senders(|s| s.window)?,
        senders(|s| s.acknowledged)?,
    ]);
    let cables = simulation.cables().into_iter().map(|(from, to)| (end(from), end(to)));
    Ok(Some((cables.collect(), columns)))
}

fn flows<'py>(py: Python<'py>, counts: &[(u32, FlowCounts)]) -> PyResult<Columns<'py>> {
    let column =
        |of: fn(&FlowCounts) -> u64| bytes(py, counts.iter().map(|(_, counts)| time(of(counts))));
    Ok(vec![
        bytes(py, counts.iter().map(|(flow, _)| i64::from(*flow)))?,
        column(|counts| counts.delivered)?,
        column(|counts| counts.marked)?,
        column(|counts| counts.retransmitted)?,
        column(|counts| counts.dropped)?,
        column(|counts| counts.timeouts)?,
        column(|counts| counts.waited)?,
        column(|counts| counts.waited_most)?,
        column(|counts| counts.held)?,
    ])
}

fn hops<'py>(py: Python<'py>, hops: &[Hop]) -> PyResult<Columns<'py>> {
    let column = |of: fn(&Hop) -> i64| bytes(py, hops.iter().map(of));
    Ok(vec![
        column(|hop| time(hop.at))?,
        column(|hop| hop.link.into())?,
        column(|hop| hop.flow.into())?,
        column(|hop| hop.seq.into())?,
        column(|hop| hop.src.into())?,
        column(|hop| hop.dst.into())?,
        column(|hop| hop.bytes.into())?,
        column(|hop| hop.kind.into())?,
        column(|hop| hop.level.into())?,
        column(|hop| hop.marked.into())?,
        column(|hop| hop.ect.into())?,
        column(|hop| hop.again.into())?,
        column(|hop| hop.reduced.into())?,
        column(|hop| hop.dropped.into())?,
    ])
}

/// Reports progress to Python: simulated ps, finished flows, flows, share.
pub fn report(to: &Bound<'_, PyAny>, progress: Progress) -> PyResult<()> {
    let Progress { now, finished, flows, share } = progress;
    to.call1((time(now), finished, flows, share)).map(drop)
}
