// SPDX-License-Identifier: GPL-2.0-or-later
//! Applications from the dataclasses of `qjump_sim.apps`, and what they yield as columns.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use qjump_sim::apps::{
    App, AppResult, Arrival, Barrier, Bulk, Datagrams, Exchange, Latencies, MapReduce, Ping, Ptp, Requests, Span,
};
use qjump_sim::{Gap, Ps};

use crate::columns::{bytes, ended, time};
use crate::part::Part;

pub fn apps(part: &Part) -> PyResult<Vec<App>> {
    part.items()?.iter().map(app).collect()
}

fn app(part: &Part) -> PyResult<App> {
    let class = part.class()?;
    let level = || part.get("level")?.whole();
    let first = || part.get("first")?.time();
    Ok(match class.as_str() {
        "Ping" => App::Ping(Ping {
            src: part.get("src")?.whole()?,
            dst: part.get("dst")?.whole()?,
            level: level()?,
            first: first()?,
            gap: gap(part)?,
            bytes: part.get("bytes")?.bytes()?,
            count: part.get("count")?.whole()?,
            turnaround: part.get("turnaround")?.duration()?,
        }),
        "Datagrams" => App::Datagrams(Datagrams {
            src: part.get("src")?.whole()?,
            dst: part.get("dst")?.whole()?,
            level: level()?,
            first: first()?,
            gap: gap(part)?,
            bytes: part.get("bytes")?.bytes()?,
            count: part.get("count")?.whole()?,
        }),
        "Bulk" => App::Bulk(Bulk {
            src: part.get("src")?.whole()?,
            dst: part.get("dst")?.whole()?,
            level: level()?,
            start: part.get("start")?.time()?,
            until: part.get("until")?.time()?,
            window: part.get("window")?.given().map(|window| window.whole()).transpose()?,
            interval: part.get("interval")?.duration()?,
        }),
        "Requests" => App::Requests(Requests {
            client: part.get("client")?.whole()?,
            servers: numbers(&part.get("servers")?)?,
            level: level()?,
            first: first()?,
            arrival: arrival(&part.get("arrival")?)?,
            exchanges: part.get("exchanges")?.items()?.iter().map(exchange).collect::<PyResult<_>>()?,
            service: span(&part.get("service")?)?,
            count: part.get("count")?.whole()?,
            until: part.get("until")?.given().map(|until| until.time()).transpose()?,
        }),
        "Barrier" => App::Barrier(Barrier {
            hosts: numbers(&part.get("hosts")?)?,
            level: level()?,
            bytes: part.get("bytes")?.bytes()?,
            first: first()?,
            pause: part.get("pause")?.duration()?,
            iterations: part.get("iterations")?.whole()?,
        }),
        "Ptp" => App::Ptp(Ptp {
            master: part.get("master")?.whole()?,
            slaves: numbers(&part.get("slaves")?)?,
            level: level()?,
            bytes: part.get("bytes")?.bytes()?,
            first: first()?,
            interval: part.get("interval")?.duration()?,
            count: part.get("count")?.whole()?,
        }),
        "MapReduce" => App::MapReduce(MapReduce {
            nodes: numbers(&part.get("nodes")?)?,
            level: level()?,
            first: first()?,
            maps: part.get("maps")?.whole()?,
            map_slots: part.get("map_slots")?.whole()?,
            map_time: span(&part.get("map_time")?)?,
            map_bytes: part.get("map_bytes")?.bytes()?,
            reducers: part.get("reducers")?.whole()?,
            parallel_copies: part.get("parallel_copies")?.whole()?,
            reduce_time: span(&part.get("reduce_time")?)?,
        }),
        _ => return Err(part.is_not("a Ping, Datagrams, Bulk, Requests, Barrier, Ptp or MapReduce")),
    })
}

fn gap(part: &Part) -> PyResult<Gap> {
    let gap = part.get("gap")?.duration()?;
    Ok(if part.get("poisson")?.flag()? { Gap::Poisson(gap) } else { Gap::Every(gap) })
}

fn arrival(part: &Part) -> PyResult<Arrival> {
    match part.class()?.as_str() {
        "Open" => Ok(Arrival::Open(gap(part)?)),
        "Closed" => Ok(Arrival::Closed { connections: part.get("connections")?.whole()?, think: part.get("think")?.duration()? }),
        _ => Err(part.is_not("an Open or Closed")),
    }
}

fn exchange(part: &Part) -> PyResult<Exchange> {
    if part.class()? != "Exchange" {
        return Err(part.is_not("an Exchange"));
    }
    let bytes = |field| part.get(field)?.bytes();
    Ok(Exchange { request: bytes("request")?, response: bytes("response")?, weight: part.get("weight")?.whole()? })
}

fn span(part: &Part) -> PyResult<Span> {
    match part.class()?.as_str() {
        "Exponential" => Ok(Span::Exponential(part.get("mean")?.duration()?)),
        _ => Ok(Span::Fixed(part.duration()?)),
    }
}

pub fn numbers(part: &Part) -> PyResult<Vec<u32>> {
    part.items()?.iter().map(Part::whole).collect()
}

/// Columns and single numbers of an application, in the order of its result's fields in Python.
pub type Result<'py> = (Vec<Bound<'py, PyBytes>>, Vec<u64>);

pub fn results<'py>(py: Python<'py>, results: &[AppResult]) -> PyResult<Vec<Result<'py>>> {
    results.iter().map(|result| columns(py, result)).collect()
}

fn columns<'py>(py: Python<'py>, result: &AppResult) -> PyResult<Result<'py>> {
    let column = |times: &[Ps]| bytes(py, times.iter().map(|&at| time(at)));
    // What has not happened is -1.
    let maybe = |times: &[Option<Ps>]| bytes(py, times.iter().map(|at| at.map_or(-1, time)));
    let small = |numbers: &[u32]| bytes(py, numbers.iter().map(|&number| i64::from(number)));
    let latencies = |of: &Latencies| -> PyResult<_> { Ok(vec![column(&of.starts)?, maybe(&of.times)?]) };
    Ok(match result {
        AppResult::Ping(of) | AppResult::Datagrams(of) | AppResult::Barrier(of) => (latencies(of)?, vec![of.lost]),
        AppResult::Bulk(of) => (vec![column(&of.delivered)?], vec![of.bytes]),
        AppResult::Requests(of) => {
            let mut columns = latencies(&of.latencies)?;
            columns.push(small(&of.kinds)?);
            (columns, Vec::new())
        }
        AppResult::Ptp(of) => {
            let offsets = bytes(py, of.computed.iter().map(|computed| computed.map_or(0, |(offset, _)| offset)))?;
            let delays: Vec<Option<Ps>> = of.computed.iter().map(|computed| computed.map(|(_, delay)| delay)).collect();
            (vec![column(&of.starts)?, small(&of.slaves)?, offsets, maybe(&delays)?], vec![of.lost])
        }
        AppResult::MapReduce(of) => {
            let mut columns = vec![maybe(&of.mapped)?, maybe(&of.shuffled)?, maybe(&of.reduced)?, column(&of.fetched)?];
            columns.extend(ended(py, &of.fetches)?);
            (columns, vec![of.local])
        }
    })
}
