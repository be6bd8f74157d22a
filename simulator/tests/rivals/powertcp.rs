// SPDX-License-Identifier: GPL-2.0-or-later
//! PowerTCP: its equilibrium, as its paper derives it.

use qjump_sim::{Cable, Congestion, PowerTcp, Ps, Routing, Scheme, MS, US};

use crate::{between, dumbbell, endless, rates, transport, without_limit};

/// The trunk is the only port whose power is near 1.
const EDGE: Cable = Cable { rate: 400_000_000_000, delay: 2 * US };
const TRUNK: Cable = Cable { rate: 100_000_000_000, delay: 2 * US };
/// Of an empty path over three cables: data of 1,500 bytes one way and an ACK of 40 the other.
const EMPTY: f64 = 6.0 * 2e6 + 1.5 * (120e3 + 3.2e3);
/// Tau: exactly that.
const BASE: Ps = 12_184_800;
/// The packets that it holds.
const HELD: f64 = EMPTY / 120e3;
const INCREASE: u32 = 1_500;

fn scheme() -> Scheme {
    let of = PowerTcp { base: BASE, gamma: 900_000, increase: INCREASE };
    let mut transport = transport(Congestion::PowerTcp(of));
    transport.initial_window = HELD.ceil() as u32;
    Scheme { routing: Routing::PerFlow, ..without_limit(transport) }
}

/// The only equilibrium (appendix A): all windows are b tau + beta hat and the queue is beta hat,
/// the sum of all flows' beta; each flow has its share.
#[test]
fn the_queue_is_what_all_flows_add() {
    for flows in [2, 8, 32] {
        let (outcomes, _) = between(
            &dumbbell(flows, EDGE, TRUNK),
            &scheme(),
            &endless(flows, 20 * MS, MS),
            [10 * MS, 20 * MS],
        );
        let (rates, latency) = rates(&outcomes);
        let used = rates.iter().sum::<f64>() / 1e11;
        assert!(used > 0.99, "{flows} flows use {used} of the link");
        let waiting = (latency - (EMPTY - 6e6 - 4.8e3)) / 120e3;
        let expected = f64::from(flows * INCREASE) / 1_500.0;
        assert!((waiting - expected).abs() < 0.15 * expected + 1.0, "{waiting}, not {expected}");
        let fair = rates.iter().sum::<f64>() / f64::from(flows);
        assert!(rates.iter().all(|rate| (rate / fair - 1.0).abs() < 0.1), "{rates:?}");
        assert_eq!(outcomes[1].counters.retransmitted, 0);
    }
}
