// SPDX-License-Identifier: GPL-2.0-or-later
//! DCQCN: flows share a link alike, without a loss, where its marks balance what it raises.

use qjump_sim::{Cable, Congestion, Dcqcn, Limit, Profile, Protection, Queue, Reading, Red, Scheme, MS, US};

use crate::{between, dumbbell, endless, rates, transport};

const CABLE: Cable = Cable { rate: 40_000_000_000, delay: US };
/// The paper's (figure 14): 5 and 200 kB, a probability of 1 %.
const MARKS: Red = Red {
    limit: Limit::None,
    profile: Profile { min: Limit::Bytes(5_000), max: Limit::Bytes(200_000), max_p: 10_000 },
    not_ect: None,
    gentle: false,
    weight: 0,
    in_packets: false,
    mean_packet: 1_500,
    reading: Reading::Ns2,
    mark_p: None,
    protection: Protection::Default,
};

/// Where marks balance what is raised: the fixed point of the fluid model (Zhu et al., 2016, ECN or Delay, equation 14), as a share of packets.
/// Time in seconds, data in packets; the rate is raised by `R_AI` a timer or counter.
fn balance(flows: f64) -> f64 {
    let (of, packet) = (Dcqcn::default(), 12_000.0);
    let (link, timer) = (CABLE.rate as f64 / packet, of.timer as f64 / 1e12);
    let raises = 1.0 / (of.counter as f64 / 1_500.0) + flows / (timer * link);
    let alpha_timer = of.alpha_timer as f64 / 1e12;
    (of.increase as f64 / packet * flows * flows / (alpha_timer * link * link) * raises * raises).cbrt()
}

/// The link is full, flows get the same within 5 %, nothing is lost, and the share of marks is within 20 % of the balance of few
/// flows; that of ten lies beyond what RED marks before it marks all.
#[test]
fn flows_share_a_link_alike() {
    for flows in [2, 4, 10] {
        let of = transport(Congestion::Dcqcn(Dcqcn::default()));
        let scheme = Scheme { transport: of, queue: Queue::Red(MARKS), ..Scheme::tcp() };
        let workload = endless(flows, 400 * MS, 10 * MS);
        let (outcomes, _) = between(&dumbbell(flows, CABLE, CABLE), &scheme, &workload, [100 * MS, 400 * MS]);
        let (rates, _) = rates(&outcomes);
        let total: f64 = rates.iter().sum();
        assert!(total > 0.97 * 40e9, "{flows} flows: {total} bit/s");
        let fair = total / f64::from(flows);
        assert!(rates.iter().all(|rate| (rate / fair - 1.0).abs() < 0.05), "{flows} flows: {rates:?}");
        let [before, after] = outcomes.each_ref().map(|outcome| outcome.counters);
        assert_eq!((after.retransmitted, after.full.total()), (0, 0));
        let marked = (after.marked - before.marked) as f64 / (after.delivered.data - before.delivered.data) as f64;
        let expected = balance(flows.into());
        if expected < 0.01 {
            assert!((marked / expected - 1.0).abs() < 0.2, "{flows} flows: {marked} of packets marked, not {expected}");
        } else {
            assert!(marked > expected, "{flows} flows: {marked} of packets marked, though the balance is {expected}");
        }
    }
}
