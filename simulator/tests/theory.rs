// SPDX-License-Identifier: GPL-2.0-or-later
//! Queueing theory's mean waits, over millions of packets. A host's own link is the queue; the link
//! after it is so much faster that nobody waits there, and what it takes is known.

use qjump_sim::{
    Bytes, Cable, Gap, Limit, Outcome, Priority, Ps, Queue, Scenario, Scheme, Source, Topology,
    Tree, Workload, S,
};

const SLOW: u64 = 8_000;
const FAST: u64 = 80;

fn network() -> Topology {
    let cable = |per_byte| Cable { rate: 8 * S / per_byte, delay: 0 };
    let tree = Tree::new().switch("s").host("a").host("b").cable("a", "s", cable(SLOW)).cable(
        "b",
        "s",
        cable(FAST),
    );
    tree.build().unwrap()
}

fn poisson(level: u8, gap: Ps, bytes: Bytes, count: u64) -> Source {
    Source { src: 0, dst: 1, level, first: 0, gap: Gap::Poisson(gap), bytes, count }
}

fn run(queue: Queue, sources: Vec<Source>, stop: Option<Ps>) -> Outcome {
    let scheme = Scheme { queue, ..Scheme::tcp() };
    let workload = Workload::of_sources(sources);
    Scenario { stop, ..Scenario::new(network(), scheme, workload) }.run().unwrap()
}

/// Mean wait in ps of a source's packets.
fn wait(outcome: &Outcome, source: usize) -> f64 {
    let result = &outcome.sources[source];
    let moving = u128::from(result.bytes) * u128::from(SLOW + FAST);
    (result.delay_sum - moving) as f64 / result.delivered as f64
}

/// Relative error of a single queue's mean wait against `factor` · E[S] · load / (1 − load): the
/// Pollaczek-Khinchine formula with E[S²] = 2 · factor · E[S]².
fn single_queue_error(bytes: Bytes, mean: u64, factor: f64, load: f64, count: u64) -> f64 {
    let service = (mean * SLOW) as f64;
    let source = poisson(0, (service / load) as Ps, bytes, count);
    let outcome = run(Queue::DropTail(Limit::None), vec![source], None);
    assert_eq!(outcome.sources[0].delivered, count);
    wait(&outcome, 0) / (factor * service * load / (1.0 - load)) - 1.0
}

/// The number of packets is chosen so that one percent is three standard deviations or more at the
/// highest load.
#[test]
fn md1_waits_as_computed() {
    for (load, count) in [(0.3, 2_000_000), (0.6, 2_000_000), (0.9, 20_000_000)] {
        let error = single_queue_error(Bytes::Fixed(1_500), 1_500, 0.5, load, count);
        println!("M/D/1 at {load}: {:+.2} %", 100.0 * error);
        assert!(error.abs() < 0.01, "M/D/1 at {load}: {:+.2} %", 100.0 * error);
    }
}

#[test]
fn mm1_waits_as_computed() {
    for (load, count) in [(0.3, 4_000_000), (0.6, 4_000_000), (0.9, 40_000_000)] {
        let error = single_queue_error(Bytes::Exponential(4_000), 4_000, 1.0, load, count);
        println!("M/M/1 at {load}: {:+.2} %", 100.0 * error);
        assert!(error.abs() < 0.01, "M/M/1 at {load}: {:+.2} %", 100.0 * error);
    }
}

/// Cobham (1954): level k waits W0 / ((1 − s(k−1)) (1 − s(k))), where s(k) is the load of levels 0
/// to k and W0 half the sum of arrival rate times mean square of service.
#[test]
fn priorities_wait_as_computed() {
    let levels = [
        (0.2, Bytes::Fixed(300), 1.0),
        (0.2, Bytes::Exponential(3_000), 2.0),
        (0.3, Bytes::Fixed(1_500), 1.0),
        (0.1, Bytes::Exponential(1_000), 2.0),
    ];
    let mean = |bytes| match bytes {
        Bytes::Fixed(mean) | Bytes::Exponential(mean) => f64::from(mean) * SLOW as f64,
    };
    let duration = 150 * S;
    let sources = (0..).zip(levels).map(|(level, (load, bytes, _))| {
        let gap = (mean(bytes) / load) as Ps;
        poisson(2 * level, gap, bytes, duration / gap)
    });
    let sources: Vec<Source> = sources.collect();
    let outcome = run(Queue::Priority(Priority { limit: u64::MAX }), sources.clone(), None);
    let residual: f64 =
        levels.iter().map(|&(load, bytes, square)| load * mean(bytes) * square / 2.0).sum();
    let mut sorted = sources.clone();
    sorted.sort_unstable();
    let mut above = 0.0;
    for (source, (load, ..)) in sources.iter().zip(levels) {
        let place = sorted.iter().position(|s| s == source).unwrap();
        let expected = residual / ((1.0 - above) * (1.0 - above - load));
        above += load;
        let error = wait(&outcome, place) / expected - 1.0;
        println!("level {}: {:+.2} %", source.level, 100.0 * error);
        assert!(error.abs() < 0.02, "level {}: {:+.2} %", source.level, 100.0 * error);
    }
}
