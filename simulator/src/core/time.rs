// SPDX-License-Identifier: GPL-2.0-or-later
//! Time in whole picoseconds: a byte at 10 Gb/s takes 800 ps, and nothing is rounded. A `u64` holds
//! 213 days.

use crate::core::error::{Error, Result};

/// Picoseconds since the simulation began, or between two events.
pub type Ps = u64;

/// One nanosecond.
pub const NS: Ps = 1_000;
/// One microsecond.
pub const US: Ps = 1_000_000;
/// One millisecond.
pub const MS: Ps = 1_000_000_000;
/// One second.
pub const S: Ps = 1_000_000_000_000;

/// The end of time: 107 days, in ps the largest int64. A flow whose packets never arrive sends its
/// last packet then; timers set by hosts still fit the clock.
pub const END: Ps = (1 << 63) - 1;

/// Formats a time in the largest unit that makes it a whole number.
pub(crate) fn human(time: Ps) -> String {
    let whole = |unit: Ps| time > 0 && time % unit == 0;
    let (unit, name) = [(S, "s"), (MS, "ms"), (US, "us"), (NS, "ns")]
        .into_iter()
        .find(|&(unit, _)| whole(unit))
        .unwrap_or((1, "ps"));
    format!("{} {name}", time / unit)
}

/// Picoseconds per byte at `rate` bit/s.
///
/// # Errors
/// A rate of 0 or below 2 kbit/s, or one whose byte is more than 0.1 % off a whole number of
/// picoseconds, as with some rates above 16 Gb/s.
pub fn ps_per_byte(rate: u64) -> Result<u32> {
    const BYTE: u64 = 8 * S;
    if rate == 0 {
        return Err(Error::new("a link's rate is 0 bit/s: it must be above 0"));
    }
    let ps = (BYTE + rate / 2) / rate;
    let carried = u128::from(ps) * u128::from(rate);
    if carried.abs_diff(u128::from(BYTE)) > u128::from(BYTE) / 1_000 {
        return Err(Error::new(format!(
            "a rate of {rate} bit/s does not give whole picoseconds a byte within 0.1 %"
        )));
    }
    u32::try_from(ps).map_err(|_| {
        Error::new(format!("a rate of {rate} bit/s is below 2 kbit/s, the slowest link"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_whole_units() {
        let all = [0, 7, 3 * NS, 300 * US, 1_500 * US, 2 * MS, 120 * S].map(human);
        assert_eq!(all, ["0 ps", "7 ps", "3 ns", "300 us", "1500 us", "2 ms", "120 s"]);
    }

    #[test]
    fn usual_rates_are_exact() {
        let whole = [
            (10_000_000, 800_000),
            (1_000_000_000, 8_000),
            (10_000_000_000, 800),
            (25_000_000_000, 320),
            (40_000_000_000, 200),
            (100_000_000_000, 80),
            (400_000_000_000, 20),
        ];
        for (rate, ps) in whole {
            assert_eq!(ps_per_byte(rate), Ok(ps));
        }
    }

    #[test]
    fn impossible_rates_are_told() {
        assert!(ps_per_byte(0).unwrap_err().to_string().contains("0 bit/s"));
        let odd = ps_per_byte(300_000_000_000).unwrap_err().to_string();
        assert!(odd.contains("300000000000 bit/s"), "{odd}");
        assert!(ps_per_byte(1_000).is_err());
        // 15 Mb/s is 533,333.3 ps a byte: 0.6 ppm off.
        assert_eq!(ps_per_byte(15_000_000), Ok(533_333));
    }
}
