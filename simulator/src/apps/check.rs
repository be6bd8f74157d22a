// SPDX-License-Identifier: GPL-2.0-or-later
//! Checks of application settings; each error begins with the application's place.

use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{Instant, Unit};
use crate::host::traffic::check_ends;
use crate::net::topology::Topology;

/// Counts fit a token, and the index of an event.
const MAX: u32 = 1 << 29;

fn refuse(wrong: bool, sentence: impl FnOnce() -> String) -> Result<()> {
    if wrong {
        return Err(Error::new(sentence()));
    }
    Ok(())
}

pub(crate) fn pair(place: &str, one: u32, other: u32, topology: &Topology) -> Result<()> {
    check_ends(place, one, other, topology)
}

/// At least `fewest` hosts, none of them twice.
pub(crate) fn hosts(place: &str, hosts: &[u32], fewest: usize, topology: &Topology) -> Result<()> {
    let most = topology.hosts();
    refuse(hosts.len() < fewest, || {
        format!("{place}: it has {} hosts, and needs {fewest}", hosts.len())
    })?;
    let mut sorted = hosts.to_vec();
    sorted.sort_unstable();
    let wrong = sorted.iter().find(|&&host| host >= most);
    refuse(wrong.is_some(), || {
        format!("{place}: there is no host {} among {most}", wrong.unwrap_or(&0))
    })?;
    let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
    refuse(twice.is_some(), || {
        format!("{place}: host {} is in it twice", twice.map_or(0, |pair| pair[0]))
    })
}

pub(crate) fn level(place: &str, level: u8) -> Result<()> {
    refuse(level > 7, || format!("{place}: its level {level} must be 0 to 7"))
}

pub(crate) fn count(place: &str, what: &str, count: u32) -> Result<()> {
    refuse(count == 0 || count >= MAX, || {
        format!("{place}: {count} {what} must be between 1 and 2^29 - 1")
    })
}

pub(crate) fn positive(place: &str, what: &str, number: u64) -> Result<()> {
    refuse(number == 0, || format!("{place}: the {what} are 0"))
}

/// Bytes on the wire of a message, which is less than 2^31 packets.
pub(crate) fn message(place: &str, what: &str, bytes: u64) -> Result<()> {
    refuse(bytes == 0 || bytes >= 1 << 31, || {
        format!("{place}: {bytes} bytes of its {what} must be between 1 and 2^31 - 1")
    })
}

/// The last of `count` times with this distance lies on the clock.
pub(crate) fn schedule(place: &str, first: Ps, gap: Ps, count: u64) -> Result<()> {
    let last = u128::from(first) + u128::from(gap) * u128::from(count);
    let latest = Instant::MAX;
    refuse(last > latest.into(), || {
        format!("{place}: from {first} ps on, {count} times {gap} ps end after {latest} ps")
    })
}
