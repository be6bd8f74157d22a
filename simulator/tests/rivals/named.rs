// SPDX-License-Identifier: GPL-2.0-or-later
//! Named schemes whose parameters follow the topology: alone on an empty path each fills it.

use qjump_sim::{Cable, Scheme, MS, US};

use crate::{between, dumbbell, endless, rates};

/// At 1, 10 and 100 Gb/s, with 2, 15 and 100 us one way; HPCC leaves 5 % free on purpose, and BBR
/// some headroom where the buffer of 150 packets is a tenth of what the path holds.
#[test]
fn a_flow_alone_has_the_path() {
    for (name, least) in [("hpcc", 0.93), ("powertcp", 0.95), ("bbr3", 0.92)] {
        for rate in [1, 10, 100] {
            for way in [2, 15, 100] {
                let cable = Cable { rate: rate * 1_000_000_000, delay: way * US / 3 };
                let topology = dumbbell(1, cable, cable);
                let scheme = Scheme::named(name, &topology).unwrap();
                let (outcomes, _) =
                    between(&topology, &scheme, &endless(1, 40 * MS, MS), [20 * MS, 40 * MS]);
                let used = rates(&outcomes).0[0] / (rate as f64 * 1e9);
                assert!(used > least, "{name}, {rate} Gb/s, {way} us: {used} of the path");
            }
        }
    }
}
