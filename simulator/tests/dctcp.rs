// SPDX-License-Identifier: GPL-2.0-or-later
//! DCTCP's queue against its published model (Alizadeh et al., SIGCOMM'10, section 3.3).

use qjump_sim::{
    Cable, FlowSpec, Flows, LeafSpine, Marking, Ps, Queue, Scheme, Simulation, Topology, Watch,
    Workload, MS, US,
};

const PACKET: u64 = 1_500;
const K: u64 = 40;

/// Packets that 100 us of round trip hold, with a queue of K: all windows where marks begin.
const WINDOWS: f64 = 98.464 / 1.2 + K as f64;

/// `n` flows to one host, a packet every 1.2 us.
fn simulation(n: u32, delayed_ack: Option<Ps>, watch: &Watch) -> Simulation {
    let cable = |rate, us| Cable { rate, delay: us * US };
    let fabric = LeafSpine {
        racks: 1,
        hosts_per_rack: n + 1,
        spines: 0,
        edge: cable(10_000_000_000, 24),
        uplink: cable(10_000_000_000, 0),
    };
    let topology = Topology::leaf_spine(&fabric).unwrap();
    let flow = |src| FlowSpec { start: 7 * US * u64::from(src), src, dst: n, packets: 1_000_000 };
    let workload = Workload::of_flows(Flows::List((0..n).map(flow).collect()));
    let mut scheme = Scheme::dctcp();
    scheme.queue = Queue::Marking(Marking { limit: 1_000 * PACKET, threshold: K * PACKET });
    scheme.transport.max_window = 1_000;
    scheme.transport.delayed_ack = delayed_ack;
    Simulation::watched(&topology, &scheme, &workload, 1, watch).unwrap()
}

/// Least, mean and largest queue in packets at the receiver; share of marked packets.
fn queue(n: u32, delayed_ack: Option<Ps>) -> (f64, f64, f64, f64) {
    let mut simulation = simulation(n, delayed_ack, &Watch::default());
    let (mut least, mut sum, mut largest) = (f64::MAX, 0.0, 0.0f64);
    simulation.run_until(20 * MS);
    let before = simulation.outcome().counters;
    let samples = 60_000;
    for i in 0..samples {
        simulation.run_until(20 * MS + i * US);
        let packets = simulation.backlog_to(n) as f64 / 1_200_000.0;
        least = least.min(packets);
        largest = largest.max(packets);
        sum += packets;
    }
    let after = simulation.outcome().counters;
    assert_eq!(after.full.total(), 0);
    let marked = (after.marked - before.marked) as f64
        / (after.delivered.data - before.delivered.data) as f64;
    (least, sum / samples as f64, largest, marked)
}

/// Where flows are in step, the largest queue is K + N packets, the oscillation half of sqrt(2 N (C
/// · RTT + K)) and alpha, which is the share of marked packets, sqrt(2 N / (C · RTT + K)). Here the
/// packet being sent counts, and the first above K is not marked: up to two more. The model holds
/// for few flows with large windows.
#[test]
fn the_queue_is_as_modelled() {
    for (n, marked_error) in [(2, 0.05), (5, 0.12), (10, 0.18)] {
        let (least, mean, largest, marked) = queue(n, None);
        let flows = f64::from(n);
        let amplitude = 0.5 * (2.0 * flows * (WINDOWS)).sqrt();
        let top = K as f64 + flows;
        let place = format!(
            "{n} flows: {least:.1} {mean:.1} {largest:.1}; model {:.1} to {top:.1}",
            top - amplitude
        );
        let alpha = (2.0 * flows / (WINDOWS)).sqrt();
        println!("{place}; marked {marked:.3}, alpha of the model {alpha:.3}");
        assert!((top..=top + 2.0).contains(&largest), "largest, {place}");
        assert!((mean / (top - amplitude / 2.0) - 1.0).abs() < 0.05, "mean, {place}");
        assert!(
            (marked / alpha - 1.0).abs() < marked_error,
            "marked {marked:.3}, alpha of the model {alpha:.3}, {place}"
        );
        assert!(least > 0.0, "the link idles, {place}");
    }
}

/// With an ACK for two packets the window grows by half a packet a round trip: N / 2 above K, and
/// half of the squares of oscillation and alpha. The largest queue stays, as two packets come
/// together.
#[test]
fn delayed_acks_oscillate_less() {
    for (n, marked_error) in [(2, 0.05), (5, 0.12), (10, 0.18)] {
        let (least, mean, largest, marked) = queue(n, Some(MS));
        let flows = f64::from(n);
        let window = WINDOWS;
        let amplitude = 0.5 * (flows * window).sqrt();
        let top = K as f64 + flows / 2.0;
        let alpha = (flows / window).sqrt();
        let place = format!(
            "{n} flows: {least:.1} {mean:.1} {largest:.1}; model {:.1} to {top:.1}",
            top - amplitude
        );
        println!("delayed ACKs, {place}; marked {marked:.3}, alpha of the model {alpha:.3}");
        assert!((K as f64 + flows..=K as f64 + flows + 2.0).contains(&largest), "largest, {place}");
        assert!((mean / (top - amplitude / 2.0) - 1.0).abs() < 0.05, "mean, {place}");
        assert!(
            (marked / alpha - 1.0).abs() < marked_error,
            "marked {marked:.3}, alpha of the model {alpha:.3}, {place}"
        );
        assert!(least > 0.0, "the link idles, {place}");
    }
}

/// What a cycle of the queue is like, from one crossing of K to the next.
#[derive(Debug)]
struct Cycle {
    /// From its least to its largest queue, in packets.
    amplitude: f64,
    /// Cuts of each window.
    cuts: f64,
}

/// The mean of all cycles in 60 ms.
fn cycle(n: u32) -> Cycle {
    let (begin, samples) = (20_000, 60_000);
    let until = Some(US * (begin + samples));
    let watch = Watch { every_ps: Some(US), until, ..Watch::default() };
    let mut simulation = simulation(n, None, &watch);
    let (mut above, mut cycles, mut least, mut largest, mut sum) = (false, 0, f64::MAX, 0.0, 0.0);
    for sample in begin..begin + samples {
        simulation.run_until(US * sample);
        let packets = simulation.backlog_to(n) as f64 / 1_200_000.0;
        (least, largest) = (packets.min(least), packets.max(largest));
        if above && packets < K as f64 - 2.0 {
            (sum, cycles) = (sum + largest - least, cycles + 1);
            (above, least) = (false, packets);
        } else if !above && packets > K as f64 {
            (above, largest) = (true, packets);
        }
    }
    let mut windows = vec![0; n as usize];
    let mut cuts = 0;
    for sender in &simulation.series().unwrap().senders {
        let before = std::mem::replace(&mut windows[sender.flow as usize], sender.window);
        cuts += u32::from(u64::from(sender.sample) > begin && sender.window < before);
    }
    let cycles = f64::from(cycles);
    Cycle { amplitude: sum / cycles, cuts: f64::from(cuts) / cycles / f64::from(n) }
}

/// The model cuts each window once a cycle. Flows are not quite in step: one that cuts early still
/// finds the queue above K a round trip later, and cuts again. With this many cuts by alpha / 2,
/// windows of W* + 1 give the amplitude.
#[test]
fn more_cuts_than_modelled_make_the_amplitude() {
    for (n, once) in [(2, true), (5, false), (10, false), (20, false)] {
        let flows = f64::from(n);
        let Cycle { amplitude, cuts } = cycle(n);
        let (_, _, _, alpha) = queue(n, None);
        let expected = (WINDOWS + flows) * (1.0 - (1.0 - alpha / 2.0).powf(cuts));
        let modelled = 0.5 * (2.0 * flows * WINDOWS).sqrt();
        println!(
            "{n} flows: {amplitude:.1} packets, {cuts:.2} cuts make {expected:.1}; \
             model {modelled:.1}"
        );
        assert_eq!(once, cuts < 1.05, "{n} flows: {cuts} cuts");
        assert!((amplitude / expected - 1.0).abs() < 0.1, "{n} flows: {amplitude}, {expected}");
    }
}
