// SPDX-License-Identifier: GPL-2.0-or-later
//! NSCC: flows that share a link are equal, and queue as long as its rules balance.

use qjump_sim::{Cable, Congestion, Nscc, Scheme, MS, US};

use crate::{between, dumbbell, endless, rates};

/// What a base round trip at 100 Gb/s and 12 us holds, in bytes.
const REFERENCE: f64 = 150_000.0;

/// All packets are marked, for the target is beyond the marking thresholds. Then a base round trip
/// adds eta to each window, 0.15 packets times what the path holds of the reference; and takes 0.8
/// of the relative excess over the target. They balance where N · eta = 0.8 · W · excess, with the
/// windows' sum W: at a delay of target / (1 - excess). Each flow sends whole packets, so that
/// up to N packets of W wait for their rest; and the delay is shorter by as much. For the same
/// reason flows are equal but for a packet of their windows.
#[test]
fn flows_are_equal_and_queue_as_long_as_the_target() {
    for (gigabits, flows) in [(10, 2), (10, 4), (100, 2), (100, 8), (100, 16)] {
        let cable = Cable { rate: gigabits * 1_000_000_000, delay: 2 * US };
        let topology = dumbbell(flows, cable, cable);
        let scheme = Scheme::named("nscc", &topology).unwrap();
        let Congestion::Nscc(Nscc { base, target }) = scheme.transport.congestion else {
            unreachable!()
        };
        let (outcomes, _) =
            between(&topology, &scheme, &endless(flows, 120 * MS, MS), [60 * MS, 120 * MS]);
        let (rates, way) = rates(&outcomes);
        let (count, whole) = (f64::from(flows), cable.rate as f64);
        let frame = 12_000.0 * 1e12 / whole;
        let eta = 0.15 * base as f64 * whole / 8e12 / REFERENCE;
        let windows = (base + target) as f64 / frame;
        let most = target as f64 / (1.0 - count * eta / (0.8 * windows));
        let least = most - count * frame;
        let queue = way - 3.0 * (frame + cable.delay as f64);
        let what = format!("{gigabits} Gb/s, {flows} flows");
        println!("{what}: {:.3} us, {:.3} to {:.3}", queue / 1e6, least / 1e6, most / 1e6);
        assert!(queue > 0.99 * least && queue < 1.01 * most, "{what}: {queue}");
        assert!(rates.iter().sum::<f64>() > 0.999 * whole, "{what}: {rates:?}");
        // A packet of the windows' mean.
        let uneven = |rate: &f64| (rate * count / whole - 1.0).abs();
        let worst = rates.iter().map(uneven).fold(0.0, f64::max);
        println!("{what}: {worst:.4} of {:.4}", count / windows);
        assert!(worst < count / windows, "{what}: {rates:?}");
    }
}
