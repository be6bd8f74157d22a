// SPDX-License-Identifier: GPL-2.0-or-later
//! Parse lists of flows from lines of text.

use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::sim::workload::{FlowSpec, Flows};

impl Flows {
    /// Parses lines of `seconds source destination packets`; empty lines and lines that start with
    /// `#` are skipped.
    ///
    /// # Errors
    /// The number of the first line that does not consist of four such numbers.
    pub fn parse(text: &str) -> Result<Self> {
        let mut flows = Vec::new();
        for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let flow = parse_flow(line).ok_or_else(|| {
                Error::new(format!(
                    "line {number}: expected seconds, source, destination and packets (got {line})"
                ))
            })?;
            flows.push(flow);
        }
        Ok(Flows::List(flows))
    }
}

fn parse_flow(line: &str) -> Option<FlowSpec> {
    let mut fields = line.split_whitespace();
    let flow = FlowSpec {
        start: parse_seconds(fields.next()?)?,
        src: fields.next()?.parse().ok()?,
        dst: fields.next()?.parse().ok()?,
        packets: fields.next()?.parse().ok()?,
    };
    fields.next().is_none().then_some(flow)
}

/// Converts decimal seconds to picoseconds, exactly; digits below a picosecond are dropped.
/// A power of ten may follow, as in `1e-05`.
fn parse_seconds(text: &str) -> Option<Ps> {
    let (number, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || !whole.bytes().chain(part.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    // The value is 0.DIGITS times ten to the power of the point's place.
    let digits = format!("{whole}{part}");
    let zeros = digits.bytes().take_while(|&b| b == b'0').count();
    let count = |digits: usize| i64::try_from(digits).ok();
    let place = count(whole.len())? - count(zeros)? + i64::from(power.parse::<i32>().ok()?);
    let wanted = place + PLACES;
    if zeros == digits.len() || wanted < 0 {
        return Some(0);
    }
    // A clock of 64 bits has fewer digits.
    let wanted = usize::try_from(wanted).ok().filter(|&wanted| wanted <= 20)?;
    let picoseconds: String =
        digits[zeros..].chars().chain("0".repeat(wanted).chars()).take(wanted).collect();
    format!("0{picoseconds}").parse().ok()
}

/// Decimal places of a picosecond in seconds.
const PLACES: i64 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_to_the_picosecond() {
        let read = [
            ("0", 0),
            ("1", 1_000_000_000_000),
            ("0.1", 100_000_000_000),
            ("12.000000000001", 12_000_000_000_001),
            ("0.0000000000019", 1),
            ("1e-05", 10_000_000),
            ("1.5E-3", 1_500_000_000),
            ("2.000000000001e-06", 2_000_000),
            ("1.0000000000000001e+1", 10_000_000_000_000),
            ("00.5e1", 5_000_000_000_000),
            ("1e-13", 0),
            ("0e99", 0),
            ("18446744.073709551615", u64::MAX),
        ];
        for (text, picoseconds) in read {
            assert_eq!(parse_seconds(text), Some(picoseconds), "{text}");
        }
        for text in ["", ".", "1.x", "-1", "+1", "nan", "inf", "1e", "1e5.0", "1e9", "18446744.08"]
        {
            assert_eq!(parse_seconds(text), None, "{text}");
        }
    }

    #[test]
    fn lists_of_any_editor_are_read() {
        let Flows::List(flows) =
            Flows::parse("\u{feff}# seconds\r\n1e-05 3 17\u{a0}6 \r\n\r\n\t0.5  1 2 9").unwrap()
        else {
            panic!("lines are a list")
        };
        let flow = |start, src, dst, packets| FlowSpec { start, src, dst, packets };
        assert_eq!(flows, [flow(10_000_000, 3, 17, 6), flow(500_000_000_000, 1, 2, 9)]);
    }
}
