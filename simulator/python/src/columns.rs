// SPDX-License-Identifier: GPL-2.0-or-later
//! Numbers to and from numpy, as the bytes of int64 arrays, so that no particular numpy version is
//! needed.

use std::ops::RangeInclusive;

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use qjump_sim::{FlowResult, FlowSpec, Ps, Wire};

use crate::located::Located;

const WIDTH: usize = size_of::<i64>();
/// The largest host or packet number.
pub const HOLDS: i64 = u32::MAX as i64;

/// The numbers of an object's int64 array, all within the range.
pub fn column<T: TryFrom<i64>>(
    of: &Located,
    field: &str,
    within: RangeInclusive<i64>,
) -> PyResult<Vec<T>> {
    let value = of.get(field)?;
    let array = value.object();
    if !is_column(array).unwrap_or(false) {
        return Err(value.is_not("an array of int64, shape (n,)"));
    }
    let bytes = array.call_method0("tobytes")?;
    let words = bytes.cast::<PyBytes>()?.as_bytes().chunks_exact(WIDTH);
    let number = |(i, word): (usize, &[u8])| {
        let number = i64::from_ne_bytes(word.try_into().unwrap_or_default());
        let held = within.contains(&number).then(|| T::try_from(number).ok()).flatten();
        let (least, most) = (within.start(), within.end());
        held.ok_or_else(|| {
            value.error_at(i, &format!("{number} is not a whole number from {least} to {most}"))
        })
    };
    gather(array.py(), words.enumerate().map(number))
}

/// Optional numbers of an object's int64 array; -1 means none.
pub fn own<T: TryFrom<i64>>(of: &Located, field: &str, most: i64) -> PyResult<Vec<Option<T>>> {
    let numbers = column::<i64>(of, field, -1..=most)?;
    gather(of.object().py(), numbers.into_iter().map(|number| Ok(T::try_from(number).ok())))
}

/// Checks that an object's columns have one length.
pub fn are_as_long(of: &Located, lengths: &[usize]) -> PyResult<()> {
    if lengths.iter().all(|length| *length == lengths[0]) {
        return Ok(());
    }
    Err(of.error("its columns are not of one length"))
}

fn is_column(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(array.getattr("ndim")?.eq(1)? && array.getattr("dtype")?.eq("int64")?)
}

/// The bytes of an int64 array.
pub fn bytes(
    py: Python<'_>,
    numbers: impl ExactSizeIterator<Item = i64>,
) -> PyResult<Bound<'_, PyBytes>> {
    let count = numbers.len();
    let column = PyBytes::new_with(py, count * WIDTH, |bytes| {
        for (i, (word, number)) in bytes.chunks_exact_mut(WIDTH).zip(numbers).enumerate() {
            look(py, i)?;
            word.copy_from_slice(&number.to_ne_bytes());
        }
        Ok(())
    });
    let lacks_memory = |error: &PyErr| error.is_instance_of::<PyMemoryError>(py);
    column.map_err(|error| if lacks_memory(&error) { no_memory(count) } else { error })
}

/// Items between looks for signals: some milliseconds.
const LOOK: usize = 1 << 18;

fn look(py: Python<'_>, number: usize) -> PyResult<()> {
    if number % LOOK == 0 {
        py.check_signals()?;
    }
    Ok(())
}

fn no_memory(count: usize) -> PyErr {
    PyMemoryError::new_err(format!("no memory for a column of {count} numbers: take fewer flows"))
}

/// Collects items, and looks for signals meanwhile.
pub fn gather<T>(py: Python<'_>, items: impl Iterator<Item = PyResult<T>>) -> PyResult<Vec<T>> {
    let mut list = Vec::new();
    let count = items.size_hint().0;
    list.try_reserve_exact(count).map_err(|_| no_memory(count))?;
    for (number, item) in items.enumerate() {
        look(py, number)?;
        list.push(item?);
    }
    Ok(list)
}

/// A time as int64, which holds 106 days; later times become the last of them.
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

/// Level, transport, deadline and bytes; -1: no deadline.
pub fn wished<'py>(
    py: Python<'py>,
    flows: &[FlowResult],
    full: u16,
) -> PyResult<[Bound<'py, PyBytes>; 4]> {
    let before_last = |flow: &FlowResult| (i64::from(flow.packets) - 1) * i64::from(full);
    Ok([
        bytes(py, flows.iter().map(|flow| i64::from(flow.level)))?,
        bytes(py, flows.iter().map(|flow| i64::from(flow.transport)))?,
        bytes(py, flows.iter().map(|flow| flow.deadline.map_or(-1, time)))?,
        bytes(py, flows.iter().map(|flow| before_last(flow) + i64::from(flow.last)))?,
    ])
}

/// The flows of a Python `Outcome`, and the bytes of its packets.
pub fn results(outcome: &Located) -> PyResult<(Vec<FlowResult>, Wire)> {
    let told = outcome
        .get("ack_bytes")?
        .items()?
        .iter()
        .map(Located::whole)
        .collect::<PyResult<Vec<u16>>>()?;
    let mut wire = Wire { data: outcome.get("data_bytes")?.whole()?, acks: [0; 4] };
    wire.acks.iter_mut().zip(&told).for_each(|(ack, told)| *ack = *told);
    let last_transport = i64::try_from(told.len().min(wire.acks.len())).unwrap_or(0) - 1;
    let (starts, finishes) =
        (column(outcome, "start", 0..=i64::MAX)?, own(outcome, "finish", i64::MAX)?);
    let (srcs, dsts) = (column(outcome, "src", 0..=HOLDS)?, column(outcome, "dst", 0..=HOLDS)?);
    let packets: Vec<u32> = column(outcome, "packets", 1..=HOLDS)?;
    let (transports, bytes) = (
        column(outcome, "transport", 0..=last_transport)?,
        column(outcome, "bytes", 0..=i64::MAX)?,
    );
    are_as_long(
        outcome,
        &[
            starts.len(),
            finishes.len(),
            packets.len(),
            srcs.len(),
            dsts.len(),
            transports.len(),
            bytes.len(),
        ],
    )?;
    let rows = starts
        .into_iter()
        .zip(finishes)
        .zip(srcs)
        .zip(dsts)
        .zip(packets)
        .zip(transports)
        .zip(bytes);
    let flow = |((((((start, finish), src), dst), packets), transport), bytes): (_, u64)| {
        let last = bytes
            .checked_sub(u64::from(packets - 1) * u64::from(wire.data))
            .and_then(|last| u16::try_from(last).ok());
        match last.filter(|last| (1..=wire.data).contains(last)) {
            Some(last) => Ok(FlowResult {
                start,
                finish,
                packets,
                src,
                dst,
                level: 0,
                transport,
                last,
                deadline: None,
            }),
            None => Err(outcome.error(&format!(
                "{bytes} bytes are not {packets} packets of at most {}",
                wire.data
            ))),
        }
    };
    Ok((gather(outcome.object().py(), rows.map(flow))?, wire))
}
