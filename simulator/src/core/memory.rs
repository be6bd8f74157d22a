// SPDX-License-Identifier: GPL-2.0-or-later
//! How much memory the process may still take, so that a run that needs more is refused in a
//! sentence: a failed allocation would end the process, or the system would.

use std::fs;
use std::path::Path;

use crate::core::error::{Error, Result};

/// Memory that a run leaves to the rest of the process and of the machine, in bytes.
pub(crate) const RESERVE: u64 = 128 << 20;

/// Bytes that the process may take besides [`RESERVE`], by Linux's accounts of the machine, of the
/// control group and of the address space; elsewhere as many as there are numbers.
pub(crate) fn left() -> u64 {
    let limits = [machine(), address_space(), control_group()];
    limits.into_iter().flatten().min().map_or(u64::MAX, |least| least.saturating_sub(RESERVE))
}

/// Refuses so many things of so many bytes each if they do not fit. `what` names them, and `advice`
/// says what to do.
///
/// # Errors
/// They do not fit: a sentence that begins with `place`.
pub fn check_memory(place: &str, count: u64, what: &str, each: u64, advice: &str) -> Result<()> {
    let (bytes, left) = (u128::from(count) * u128::from(each), left());
    if bytes <= left.into() {
        return Ok(());
    }
    Err(Error::new(format!(
        "{place}: {count} {what} need {}, and this machine has {} for them: {advice}",
        size(bytes),
        size(left.into())
    )))
}

/// Formats bytes with their decimal prefix, such as `970 GB`.
pub(crate) fn size(bytes: u128) -> String {
    let units = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1_000, "kB"));
    if bytes >= 10 * unit {
        format!("{} {name}", bytes / unit)
    } else {
        format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit)
    }
}

/// What the machine has without swapping.
fn machine() -> Option<u64> {
    kilobytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// What the limit of the process's address space (`ulimit -v`) leaves, if all that the process
/// holds is a list that is about to double.
fn address_space() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    // The word is `unlimited` without a limit.
    let most: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let taken = kilobytes(&status, "VmSize:")? + kilobytes(&status, "VmRSS:")?;
    Some(most.saturating_sub(taken))
}

/// What the control groups (version 2) that the process is in leave.
fn control_group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let group = root.join(own);
    group.ancestors().take_while(|folder| folder.starts_with(root)).filter_map(group_left).min()
}

fn group_left(folder: &Path) -> Option<u64> {
    let number = |name| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let (most, taken) = (number("memory.max")?, number("memory.current")?);
    // Pages of files that nobody reads are given back first.
    let counts = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let idle = counts.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let idle = idle.and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    Some(most.saturating_sub(taken.saturating_sub(idle)))
}

/// The value of a line such as `MemAvailable:  14680064 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = value.split_ascii_whitespace().next()?.parse().ok()?;
    Some(number * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_two_digits_or_more() {
        let all = [0, 999, 9_960_000, 12_000_000, 1_250_000_000, 970_000_000_000].map(size);
        assert_eq!(all, ["0.0 kB", "0.9 kB", "9.9 MB", "12 MB", "1.2 GB", "970 GB"]);
    }

    #[test]
    fn lines_of_proc_are_read() {
        let text = "MemTotal:       24576 kB\nMemAvailable:    1024 kB\n";
        assert_eq!(kilobytes(text, "MemAvailable:"), Some(1 << 20));
        assert_eq!(kilobytes(text, "VmSize:"), None);
    }

    #[test]
    fn what_fits_no_machine_is_refused_in_a_sentence() {
        assert_eq!(check_memory("flows", 3, "flows", 100, "draw fewer"), Ok(()));
        if cfg!(target_os = "linux") {
            let sentence =
                check_memory("flows", 1 << 40, "flows", 1 << 20, "draw fewer").unwrap_err();
            let sentence = sentence.to_string();
            assert!(sentence.starts_with("flows: 1099511627776 flows need 1152921 TB, and this"));
            assert!(sentence.ends_with(" for them: draw fewer"), "{sentence}");
        }
    }
}
