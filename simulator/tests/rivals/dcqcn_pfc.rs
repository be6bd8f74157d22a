// SPDX-License-Identifier: GPL-2.0-or-later
//! DCQCN over priority flow control: pauses keep an incast from losing, rates keep it from pausing,
//! and switches mark each level by the law.

use std::collections::VecDeque;

use qjump_sim::apps::{App, Bulk};
use qjump_sim::{
    Cable, Congestion, Dcqcn, End, FlowSpec, Flows, LeafSpine, LevelRed, Pause, Priority, Ps,
    Queue, Scenario, Scheme, Simulation, Topology, Traced, Watch, Workload, MS, US,
};

use crate::{dumbbell, transport};

const SENDERS: u32 = 6;
const CABLE: Cable = Cable { rate: 40_000_000_000, delay: US };
const FRAME: Ps = 300_000;
const MARKS: LevelRed =
    LevelRed { limit: 1 << 30, min: 5_000, max: 200_000, max_p: 10_000, weights: None };

/// All send from time 0 on, at the line's rate until they hear otherwise; hosts do not mark.
fn incast(marks: LevelRed, congestion: Congestion, pauses: bool, until: Ps) -> Simulation {
    let room = Pause::headroom(CABLE.delay, 200, 1_500);
    let pause = Pause { xoff: 60_000, xon: 30_000, buffer: 60_000 + room, per_level: true };
    let scheme = Scheme {
        queue: Queue::LevelRed(marks),
        host_queue: Some(Queue::Priority(Priority { limit: 1 << 30 })),
        pause: pauses.then_some(pause),
        transport: transport(congestion),
        ..Scheme::tcp()
    };
    let bulk = |src| {
        App::Bulk(Bulk { src, dst: 0, level: 3, start: 0, until, window: None, interval: MS })
    };
    let workload = Workload::of_apps((1..=SENDERS).map(bulk).collect());
    let watch = Watch { traced: Some(Traced::All), ..Watch::default() };
    let mut simulation =
        Simulation::watched(&dumbbell(SENDERS, CABLE, CABLE), &scheme, &workload, 1, &watch)
            .unwrap();
    simulation.run_until(until);
    simulation
}

/// A buffer that holds what pauses let in overflows without them. Where marks are heeded, pauses
/// end with the first milliseconds.
#[test]
fn pauses_lose_nothing_and_rates_pause_less() {
    let dcqcn = Congestion::Dcqcn(Dcqcn::default());
    let counters = |congestion, limit, pauses| {
        incast(LevelRed { limit, ..MARKS }, congestion, pauses, 20 * MS).outcome().counters
    };
    let (room, all) =
        (u64::from(SENDERS) * (60_000 + Pause::headroom(CABLE.delay, 200, 1_500)), 1 << 30);
    let lossy = counters(dcqcn, room, false);
    let (with, alone) = (counters(dcqcn, all, true), counters(Congestion::Reno, all, true));
    for of in [&with, &alone] {
        assert_eq!((of.full.total(), of.retransmitted), (0, 0));
    }
    // Pauses alone leave the port no idle moment; what has not crossed all three links by now is
    // missing.
    assert!(alone.delivered.data + 20 > 20 * MS / FRAME, "{} packets", alone.delivered.data);
    // Of the documents.
    assert_eq!((lossy.full.data, lossy.pauses, with.pauses, alone.pauses), (1_232, 0, 88, 1_423));
    // What a switch may hold of all is enough for the port.
    assert_eq!(counters(Congestion::Reno, room, true).full.total(), 0);
}

/// Of each packet that leaves the port: what waited when it came, by when those before it began to
/// leave, and whether it was marked.
fn found(simulation: &Simulation) -> Vec<(u64, bool)> {
    let trunk = simulation
        .cables()
        .iter()
        .position(|ends| *ends == (End::Switch(0), End::Switch(1)))
        .unwrap() as u32;
    let data = || simulation.trace().iter().filter(|hop| hop.kind == 0);
    let came = data().filter(|hop| hop.link < 1 + SENDERS);
    let left = data().filter(|hop| hop.link == trunk);
    let mut waiting: VecDeque<Ps> = VecDeque::new();
    came.zip(left)
        .map(|(came, left)| {
            assert_eq!(
                (came.flow, came.seq, came.marked),
                (left.flow, left.seq, false),
                "one level is served in order"
            );
            while waiting.front().is_some_and(|&begun| begun <= came.at) {
                waiting.pop_front();
            }
            let bytes = 1_500 * waiting.len() as u64;
            waiting.push_back(left.at - CABLE.delay - FRAME);
            (bytes, left.marked)
        })
        .collect()
}

/// Marks are as many as the law asks for, packet by packet: figure 5 of the paper.
#[test]
fn marks_are_by_the_law() {
    for weights in [None, Some([8, 4, 2, 1, 1, 1, 1, 1])] {
        let simulation = incast(
            LevelRed { weights, ..MARKS },
            Congestion::Dcqcn(Dcqcn::default()),
            true,
            100 * MS,
        );
        let (mut expected, mut variance, mut marked, mut between) = (0.0, 0.0, 0, 0);
        let found = found(&simulation);
        for &(bytes, is_marked) in &found {
            if bytes <= MARKS.min || bytes >= MARKS.max {
                assert_eq!(is_marked, bytes >= MARKS.max, "{bytes} bytes");
                continue;
            }
            let p = 0.01 * (bytes - MARKS.min) as f64 / (MARKS.max - MARKS.min) as f64;
            expected += p;
            variance += p * (1.0 - p);
            marked += u32::from(is_marked);
            between += 1;
        }
        let all = found.len();
        assert!(
            2 * between > all && all > 250_000,
            "{between} of {all} packets found a queue between"
        );
        assert_eq!((marked, expected.round() as u32), (1_160, 1_118), "of the documents");
        assert!(
            (f64::from(marked) - expected).abs() < 4.0 * f64::sqrt(variance),
            "{marked} marks, not {expected} +- {}",
            variance.sqrt()
        );
    }
}

/// Data of all sizes is of one level and ACKs are of another: while all of rack 1 and more send to
/// host 0 and are paused, what host 1 sends to one of them is acknowledged as in an idle network,
/// but for frames in the way. Paused as a whole, it waits.
#[test]
fn the_scheme_pauses_data_alone() {
    assert_eq!([1, 100, 1 << 31].map(|packets| Scheme::dcqcn_pfc().level(packets)), [1, 1, 1]);
    let took = |scheme: Scheme, senders: u32| {
        let other = FlowSpec { start: 60 * US, src: 1, dst: 16, packets: 20 };
        let flows = (16..16 + senders).map(|src| FlowSpec { start: 0, src, dst: 0, packets: 120 });
        let workload = Workload::of_flows(Flows::List(flows.chain([other]).collect()));
        let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
        let outcome = Scenario::new(topology, scheme, workload).run().unwrap();
        let counters = outcome.counters;
        assert_eq!(
            (counters.full.total() + counters.early.total(), counters.retransmitted),
            (0, 0)
        );
        assert_eq!(counters.pauses > 0, senders > 0);
        outcome.flows.iter().find(|flow| flow.src == 1).unwrap().finish.unwrap() - 60 * US
    };
    let [alone, level, whole] =
        [(Scheme::dcqcn_pfc(), 0), (Scheme::dcqcn_pfc(), 128), (Scheme::dcqcn(), 128)]
            .map(|(scheme, senders)| took(scheme, senders));
    assert!(level < alone + 4 * 1_200_000, "{level} ps, {alone} alone");
    assert!(whole > 2 * level, "{whole} ps, {level} with levels");
}
