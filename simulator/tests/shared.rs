// SPDX-License-Identifier: GPL-2.0-or-later
//! Shared buffers against Choudhury and Hahne's steady state (1998): of `n` overloaded queues each
//! holds alpha * bytes / (1 + n * alpha), and bytes / (1 + n * alpha) stay free.

use qjump_sim::{
    Arrivals, Bytes, Cable, End, Flows, Gap, LeafSpine, Limit, Outcome, PortResult, Ps, Queue,
    Scenario, Scheme, SharedBuffer, Simulation, Sizes, Source, Topology, Tree, Wfq, Workload, MS,
    US,
};

const GBIT: u64 = 1_000_000_000;
/// A full packet at 1 Gb/s.
const FULL: Ps = 12 * US;
const BYTES: u64 = 300_000;

/// One switch; two senders for each of `ports` receivers, which come first.
fn star(ports: u32) -> Topology {
    let cable = Cable { rate: GBIT, delay: 0 };
    let names: Vec<String> = (0..3 * ports).map(|host| format!("h{host:03}")).collect();
    let tree = names
        .iter()
        .fold(Tree::new().switch("s"), |tree, name| tree.host(name).cable(name, "s", cable));
    tree.build().unwrap()
}

fn scheme(queue: Queue, alpha: u32, per_level: bool) -> Scheme {
    let shared_buffer = Some(SharedBuffer { bytes: BYTES, alpha, per_level });
    Scheme { queue, host_queue: Some(Queue::DropTail(Limit::None)), shared_buffer, ..Scheme::tcp() }
}

fn source(src: u32, dst: u32, first: Ps, level: u8) -> Source {
    Source {
        src,
        dst,
        level,
        first,
        gap: Gap::Every(FULL),
        bytes: Bytes::Fixed(1_500),
        count: 100_000,
    }
}

/// Two senders at the rate of the link for each of `ports` receivers, from `first` on.
fn overload(ports: u32, first: impl Fn(u32) -> Ps) -> Vec<Source> {
    let of =
        |port: u32| [0, 1].map(|sender| source(ports + 2 * port + sender, port, first(port), 0));
    (0..ports).flat_map(of).collect()
}

fn port(simulation: &Simulation, host: u32) -> PortResult {
    let ports = simulation.ports();
    *ports.iter().find(|port| port.to == End::Host(host)).unwrap()
}

/// Mean bytes that wait for each receiver's link, from 20 to 30 ms.
fn waiting(topology: &Topology, scheme: &Scheme, sources: Vec<Source>, ports: u32) -> Vec<f64> {
    let workload = Workload::of_sources(sources);
    let mut simulation = Simulation::watching(topology, scheme, &workload, 1).unwrap();
    let mut at = |time| {
        simulation.run_until(time);
        (0..ports).map(|host| port(&simulation, host).waiting).collect::<Vec<_>>()
    };
    let (before, after) = (at(20 * MS), at(30 * MS));
    let mean = |(before, after): (&u128, &u128)| (after - before) as f64 / (10 * MS) as f64;
    before.iter().zip(&after).map(mean).collect()
}

fn share(n: u32, alpha: u32) -> f64 {
    let alpha = f64::from(alpha) / 1_000.0;
    BYTES as f64 * alpha / (1.0 + f64::from(n) * alpha)
}

/// However late a port is overloaded: the others give way. The packet being sent does not wait, a
/// queue may exceed the threshold by a packet, and each packet moves the threshold by alpha packets.
#[test]
fn overloaded_ports_hold_their_share() {
    for (n, alpha) in [(1, 500), (1, 1_000), (2, 1_000), (4, 1_000), (4, 250), (8, 2_000)] {
        for late in [FULL, 3 * MS] {
            let sources = overload(n, |port| u64::from(port) * late / 8);
            let queue = Queue::DropTail(Limit::None);
            for held in waiting(&star(n), &scheme(queue, alpha, false), sources, n) {
                let off = held - share(n, alpha);
                let most = (2.0 + f64::from(alpha) / 1_000.0) * 1_500.0;
                assert!(off.abs() <= most, "{n} ports, {alpha}, {late}: {off} bytes off");
            }
        }
    }
}

/// Levels 0 and 1 of one port, at equal weights: by level each holds the share of two queues, by
/// port both hold together that of one.
#[test]
fn levels_have_thresholds_of_their_own_if_asked() {
    let senders = [(2, 0), (3, 0), (4, 1), (5, 1)];
    let sources = || senders.map(|(src, level)| source(src, 0, 0, level)).to_vec();
    let queue = Queue::Wfq(Wfq { limit: 1 << 30, weights: [1; 8] });
    for (per_level, expected) in [(true, 2.0 * share(2, 1_000)), (false, share(1, 1_000))] {
        let held = waiting(&star(2), &scheme(queue, 1_000, per_level), sources(), 1)[0];
        assert!((held - expected).abs() <= 4.0 * 1_500.0, "{per_level}: {held} {expected}");
    }
}

/// A burst to an idle port beside three overloaded ones: with alpha 1 a quarter of the buffer is
/// free, 50 packets. Of 40 at once from two hosts, 20 wait, and none is lost; in queues with an
/// equal limit of a quarter each, there would be room for as many.
#[test]
fn an_idle_port_finds_room() {
    let mut sources = overload(3, |_| 0);
    sources.truncate(6);
    let burst =
        |src| Source { first: 20 * MS, gap: Gap::Every(0), count: 20, ..source(src, 9, 0, 0) };
    sources.extend([10, 11].map(burst));
    let workload = Workload::of_sources(sources);
    let scheme = scheme(Queue::DropTail(Limit::None), 1_000, false);
    let outcome: Outcome =
        Scenario { stop: Some(30 * MS), ..Scenario::new(star(4), scheme, workload) }.run().unwrap();
    let delivered: Vec<u64> = outcome.sources.iter().map(|source| source.delivered).collect();
    assert_eq!(delivered[6..], [20, 20]);
    assert!(outcome.counters.full.datagrams > 3_000);
}

fn drawn(topology: &Topology, plain: Scheme, bytes: u64) -> Outcome {
    let shared_buffer = Some(SharedBuffer { bytes, alpha: 1_000_000, per_level: false });
    let flows = Flows::Drawn {
        arrivals: Arrivals::Poisson,
        sizes: Sizes::web_search(),
        load: 0.6,
        count: 200,
    };
    let scheme = Scheme { shared_buffer, ..plain };
    let workload = Workload::of_flows(flows);
    Scenario::new(topology.clone(), scheme, workload).run().unwrap()
}

/// Every packet is accounted for, with evictions, early drops and retransmissions, and all flows
/// end.
#[test]
fn every_packet_is_accounted_for() {
    let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
    for name in ["tcp", "dctcp", "pfabric", "qjump-paper"] {
        let plain = Scheme::named(name, &topology).unwrap();
        let (large, small) = (drawn(&topology, plain, 1 << 40), drawn(&topology, plain, 150_000));
        let dropped = |of: &Outcome| of.counters.full.total() + of.counters.pushed_out.total();
        // pFabric's own queues are shorter.
        assert!(name == "pfabric" || dropped(&small) > dropped(&large), "{name}");
        for outcome in [large, small] {
            assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()), "{name}");
            let c = outcome.counters;
            let lost = c.full.total() + c.pushed_out.total() + c.early.total() + c.limited.total();
            assert_eq!(c.sent.total(), c.delivered.total() + lost + c.in_flight, "{name}");
        }
    }
}

#[test]
fn a_wrong_buffer_is_refused() {
    let told = |shared: SharedBuffer| {
        let scheme = Scheme { shared_buffer: Some(shared), ..Scheme::tcp() };
        let workload = Workload::of_sources(overload(1, |_| 0));
        let refused = Simulation::new(&star(1), &scheme, &workload, 1).err();
        refused.map(|error| error.to_string()).unwrap_or_default()
    };
    let shared = SharedBuffer { bytes: BYTES, alpha: 1_000, per_level: false };
    assert_eq!(
        told(SharedBuffer { bytes: 1_499, ..shared }),
        "shared_buffer: its 1499 bytes must hold a packet of 1500, and be at most 2^40"
    );
    assert_eq!(
        told(SharedBuffer { alpha: 0, ..shared }),
        "shared_buffer: alpha is 0 thousandths, and must be 1 to 1,000,000"
    );
}
