// SPDX-License-Identifier: GPL-2.0-or-later
//! Numbers to and from numpy, as the bytes of int64 arrays: so the module needs no numpy of a certain version.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use qjump_sim::{FlowResult, FlowSpec, Ps};

const WIDTH: usize = size_of::<i64>();

/// The numbers of an int64 array without negative ones.
pub fn numbers(array: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let bytes = array.call_method0("tobytes")?;
    let words = bytes.cast::<PyBytes>()?.as_bytes().chunks_exact(WIDTH);
    Ok(words.map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect())
}

/// The bytes of an int64 array.
pub fn bytes(py: Python<'_>, numbers: impl ExactSizeIterator<Item = i64>) -> PyResult<Bound<'_, PyBytes>> {
    PyBytes::new_with(py, numbers.len() * WIDTH, |bytes| {
        for (word, number) in bytes.chunks_exact_mut(WIDTH).zip(numbers) {
            word.copy_from_slice(&number.to_ne_bytes());
        }
        Ok(())
    })
}

/// A time in int64, which holds 106 days; later is the last of them.
pub fn time(at: Ps) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

/// Start, source, destination and packets.
pub type Asked<'py> = [Bound<'py, PyBytes>; 4];

pub fn asked<'py>(py: Python<'py>, flows: &[FlowSpec]) -> PyResult<Asked<'py>> {
    Ok([
        bytes(py, flows.iter().map(|flow| time(flow.start)))?,
        bytes(py, flows.iter().map(|flow| i64::from(flow.src)))?,
        bytes(py, flows.iter().map(|flow| i64::from(flow.dst)))?,
        bytes(py, flows.iter().map(|flow| i64::from(flow.packets)))?,
    ])
}

/// Start, finish, source, destination and packets; a flow that has not finished has -1.
pub type Ended<'py> = [Bound<'py, PyBytes>; 5];

pub fn ended<'py>(py: Python<'py>, flows: &[FlowResult]) -> PyResult<Ended<'py>> {
    Ok([
        bytes(py, flows.iter().map(|flow| time(flow.start)))?,
        bytes(py, flows.iter().map(|flow| flow.finish.map_or(-1, time)))?,
        bytes(py, flows.iter().map(|flow| i64::from(flow.src)))?,
        bytes(py, flows.iter().map(|flow| i64::from(flow.dst)))?,
        bytes(py, flows.iter().map(|flow| i64::from(flow.packets)))?,
    ])
}

/// Level, transport and deadline; a flow that has none has -1.
pub fn own<'py>(py: Python<'py>, flows: &[FlowResult]) -> PyResult<[Bound<'py, PyBytes>; 3]> {
    Ok([
        bytes(py, flows.iter().map(|flow| i64::from(flow.level)))?,
        bytes(py, flows.iter().map(|flow| i64::from(flow.transport)))?,
        bytes(py, flows.iter().map(|flow| flow.deadline.map_or(-1, time)))?,
    ])
}

/// The flows of an `Outcome` of Python.
pub fn results(outcome: &Bound<'_, PyAny>) -> PyResult<Vec<FlowResult>> {
    let column = |field: &str| numbers(&outcome.getattr(field)?);
    let (starts, finishes, packets) = (column("start")?, column("finish")?, column("packets")?);
    let (srcs, dsts) = (column("src")?, column("dst")?);
    let rows = starts.into_iter().zip(finishes).zip(packets).zip(srcs).zip(dsts);
    let flow = |((((start, finish), packets), src), dst)| FlowResult {
        start,
        finish: i64::try_from(finish).is_ok().then_some(finish),
        packets: packets as u32,
        src: src as u32,
        dst: dst as u32,
        level: 0,
        transport: 0,
        last: 0,
        deadline: None,
    };
    Ok(rows.map(flow).collect())
}
