// SPDX-License-Identifier: GPL-2.0-or-later
//! Application results as columns.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use qjump_sim::apps::{AppResult, Latencies};
use qjump_sim::Ps;

use crate::columns::{bytes, ended, time};

/// Columns and single numbers of an application, in the order of its result's fields in Python.
pub type Result<'py> = (Vec<Bound<'py, PyBytes>>, Vec<u64>);

pub fn results<'py>(py: Python<'py>, results: &[AppResult]) -> PyResult<Vec<Result<'py>>> {
    results.iter().map(|result| columns(py, result)).collect()
}

fn columns<'py>(py: Python<'py>, result: &AppResult) -> PyResult<Result<'py>> {
    let column = |times: &[Ps]| bytes(py, times.iter().map(|&at| time(at)));
    // -1: it has not happened.
    let maybe = |times: &[Option<Ps>]| bytes(py, times.iter().map(|at| at.map_or(-1, time)));
    let small = |numbers: &[u32]| bytes(py, numbers.iter().map(|&number| i64::from(number)));
    let latencies =
        |of: &Latencies| -> PyResult<_> { Ok(vec![column(&of.starts)?, maybe(&of.times)?]) };
    Ok(match result {
        AppResult::Ping(of)
        | AppResult::Datagrams(of)
        | AppResult::Barrier(of)
        | AppResult::Collective(of) => (latencies(of)?, vec![of.lost]),
        AppResult::Bulk(of) => (vec![column(&of.delivered)?], vec![of.bytes]),
        AppResult::Requests(of) => {
            let mut columns = latencies(&of.latencies)?;
            columns.push(small(&of.kinds)?);
            (columns, Vec::new())
        }
        AppResult::Ptp(of) => {
            let offsets = bytes(
                py,
                of.computed.iter().map(|computed| computed.map_or(0, |(offset, _)| offset)),
            )?;
            let delays: Vec<Option<Ps>> =
                of.computed.iter().map(|computed| computed.map(|(_, delay)| delay)).collect();
            (vec![column(&of.starts)?, small(&of.slaves)?, offsets, maybe(&delays)?], vec![of.lost])
        }
        AppResult::MapReduce(of) => {
            let mut columns = vec![
                maybe(&of.mapped)?,
                maybe(&of.shuffled)?,
                maybe(&of.reduced)?,
                column(&of.fetched)?,
            ];
            columns.extend(ended(py, &of.fetches)?);
            (columns, vec![of.local])
        }
    })
}
