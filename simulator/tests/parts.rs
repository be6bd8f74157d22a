// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs in parts beside runs in one, on one core and on several.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use qjump_sim::{
    Arrivals, ByKind, Bytes, Cable, CoDel, Congestion, Failure, FlowSpec, Flows, Gap, Graph,
    LeafSpine, Limit, Outcome, ParallelRun, Pie, Progress, Protection, Ps, Quantiles, Queue, Red,
    Routing, Scenario, Scheme, Sizes, Source, Topology, Transport, Tree, Watch, Workload, MS, US,
};

const FABRIC: LeafSpine = LeafSpine { racks: 4, hosts_per_rack: 6, spines: 2, ..LeafSpine::FIG9 };

/// Web search at a load at which queues are full now and then.
fn scenario(scheme: &str, parts: u32, stop: Option<Ps>) -> Scenario {
    let topology = Topology::leaf_spine(&FABRIC).unwrap();
    let scheme = Scheme::named(scheme, &topology).unwrap();
    let flows = Flows::Drawn {
        arrivals: Arrivals::Poisson,
        sizes: Sizes::web_search(),
        load: 0.7,
        count: 150,
    };
    Scenario { seed: 3, stop, parts, ..Scenario::new(topology, scheme, Workload::of_flows(flows)) }
}

fn on(cores: usize, scenario: &Scenario, piece: u64) -> Outcome {
    let Scenario { topology, scheme, workload, seed, stop, parts } = scenario;
    let mut parallel = ParallelRun::new(topology, scheme, workload, *seed, *parts).unwrap();
    while parallel.run_some(stop.unwrap_or(Ps::MAX), piece, cores) {}
    parallel.outcome()
}

const SCHEMES: [&str; 8] =
    ["tcp", "dctcp", "pfabric", "qjump-script", "qjump-paper", "swift", "bbr", "irn"];

/// However many cores there are, and wherever a run pauses, also one that stops before its end.
#[test]
fn the_number_of_cores_changes_nothing() {
    for (scheme, (parts, stop)) in
        SCHEMES.into_iter().zip([(2, None), (3, Some(4 * MS)), (4, None)].into_iter().cycle())
    {
        let scenario = scenario(scheme, parts, stop);
        let one = on(1, &scenario, u64::MAX);
        assert_eq!(on(2, &scenario, u64::MAX), one, "{scheme}");
        assert_eq!(on(9, &scenario, 10_000), one, "{scheme}");
        if let Some(stop) = stop {
            assert_eq!(one.end, stop);
            assert!(one.counters.in_flight > 0, "{scheme}");
        }
    }
}

const FAST: Cable = Cable { rate: 10_000_000_000, delay: US };
const FASTER: Cable = Cable { rate: 40_000_000_000, delay: US / 2 };

/// Connected switches with hosts, a cable of each kind or slightly other ones, so that many packets
/// come to a switch at the same time; some cables fail for a while.
#[derive(Debug)]
struct Random {
    parents: Vec<usize>,
    more: Vec<(usize, usize)>,
    hosts: Vec<usize>,
    cables: Vec<Cable>,
    failures: Vec<(usize, u64)>,
    jitter: bool,
}

impl Random {
    fn build(&self) -> Topology {
        let switch = |number: usize| format!("s{number}");
        let switches = self.parents.len() + 1;
        let mut cables = self.cables.iter().copied().cycle();
        let mut tree = (0..switches).fold(Tree::new(), |tree, number| tree.switch(&switch(number)));
        for (host, at) in self.hosts.iter().enumerate() {
            // A host at each switch first.
            let at = if host < switches { host } else { at % switches };
            let name = format!("h{host:02}");
            tree = tree.host(&name).cable(&name, &switch(at), cables.next().unwrap());
        }
        let mut trunks = BTreeSet::new();
        for (number, parent) in (1..).zip(&self.parents) {
            trunks.insert((parent % number, number));
        }
        for (one, other) in &self.more {
            let (one, other) = (one % switches, other % switches);
            if one != other {
                trunks.insert((one.min(other), one.max(other)));
            }
        }
        for (one, other) in &trunks {
            tree = tree.cable(&switch(*one), &switch(*other), cables.next().unwrap());
        }
        let trunks: Vec<_> = trunks.into_iter().collect();
        let mut failing = BTreeMap::new();
        for (trunk, down) in &self.failures {
            failing.insert(trunks[trunk % trunks.len()], *down);
        }
        let graph = failing.into_iter().fold(Graph::new(tree), |graph, ((one, other), down)| {
            let (down, up) = (down * US, Some((down + 300) * US));
            graph.failure(Failure { one: switch(one), other: switch(other), down, up })
        });
        let mut topology = graph.build().unwrap();
        if self.jitter {
            let quantiles = Quantiles::new(&[(0.0, 0), (50.0, US), (100.0, 3 * US)]).unwrap();
            for host in 0..topology.hosts() {
                topology.set_jitter(host, quantiles.clone()).unwrap();
            }
        }
        topology
    }
}

fn random() -> impl Strategy<Value = Random> {
    let cable = prop_oneof![
        4 => Just(FAST), 2 => Just(FASTER), 1 => Just(Cable { rate: 9_876_543_211, delay: 700_001 })
    ];
    let of = |most| prop::collection::vec(0usize..100, most);
    (
        of(4..7),
        prop::collection::vec((0usize..100, 0usize..100), 0..6),
        of(7..14),
        prop::collection::vec(cable, 1..9),
        prop::collection::vec((0usize..100, 0u64..600), 0..3),
        any::<bool>(),
    )
        .prop_map(|(parents, more, hosts, cables, failures, jitter)| Random {
            parents,
            more,
            hosts,
            cables,
            failures,
            jitter,
        })
}

/// The named schemes that can run in parts, and today's hosts with ports, connections to set up
/// and ACKs that wait.
fn schemes(topology: &Topology) -> Vec<Scheme> {
    let limit = Limit::Packets(60);
    let red = Queue::Red(Red::ns2(Limit::Packets(5), Limit::Packets(15), limit));
    let codel =
        CoDel { limit, target: 50 * US, interval: 500 * US, protection: Protection::Default };
    let transport =
        Transport { min_rto: MS, handshake: Some(MS), ..Transport::linux(Congestion::Cubic) };
    let tcp = Scheme::named("tcp", topology).unwrap();
    let linux = |queue| Scheme { transport, queue, ..tcp.clone() };
    let named = SCHEMES.map(|name| Scheme::named(name, topology).unwrap());
    named
        .into_iter()
        .chain([red, Queue::CoDel(codel), Queue::Pie(Pie::rfc8033(limit))].map(linux))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Also where packets come to a switch at the same time, cables fail and hosts have jitter.
    #[test]
    fn any_number_of_parts_gives_the_bits_of_one(
        network in random(),
        scheme in 0usize..100,
        routing in prop_oneof![
            Just(Routing::Spray), Just(Routing::PerFlow), Just(Routing::Adaptive),
            Just(Routing::Flowlets { gap: 5 * US }),
        ],
        flows in prop::collection::vec((0u64..40, 0u32..100, 0u32..100, 1u32..120), 1..60),
        stop in prop::option::of(200u64..3_000),
    ) {
        let topology = network.build();
        let schemes = schemes(&topology);
        let mut scheme = schemes[scheme % schemes.len()].clone();
        scheme.routing = routing;
        let hosts = topology.hosts();
        // Starts in whole steps of 20 us, so that many are at the same time.
        let flows = flows.iter().map(|&(start, src, dst, packets)| {
            let (start, src) = (start * 20 * US, src % hosts);
            let dst = (src + 1 + dst % (hosts - 1)) % hosts;
            FlowSpec { start, src, dst, packets }
        });
        let workload = Workload::of_flows(Flows::List(flows.collect()));
        let stop = Some(stop.map_or(50 * MS, |stop| stop * US));
        let scenario = Scenario { seed: 5, stop, ..Scenario::new(topology, scheme, workload) };
        let whole = scenario.run().unwrap();
        for parts in [2, 3, 5] {
            let parallel = on(2, &Scenario { parts, ..scenario.clone() }, u64::MAX);
            prop_assert!(parallel == whole, "{} parts: {:?}\n{:?}", parts, parallel.counters, whole.counters);
        }
    }
}

/// Flows of all connections are known by their numbers in every part, and every packet is counted
/// once.
#[test]
fn packets_of_all_parts_are_counted_once() {
    for scheme in ["tcp", "pfabric"] {
        for stop in [MS, 3 * MS] {
            let outcome = on(2, &scenario(scheme, 4, Some(stop)), u64::MAX);
            let c = &outcome.counters;
            let gone = [c.delivered, c.full, c.pushed_out, c.early, c.failed, c.limited];
            assert_eq!(c.sent.total(), gone.iter().map(ByKind::total).sum::<u64>() + c.in_flight);
            assert!(c.in_flight > 0 && outcome.flows.iter().any(|flow| flow.finish.is_some()));
        }
    }
}

/// Of all flows, whoever begins them, and of the time.
#[test]
fn progress_is_that_of_all_parts() {
    let mut scenario = scenario("dctcp", 3, None);
    let mut whole = scenario.begin(&Watch::default()).unwrap();
    assert_eq!(whole.progress(), Progress { now: 0, finished: 0, flows: 150, share: 0.0 });
    let mut shares = Vec::new();
    while whole.run_some(10_000).unwrap() {
        shares.push(whole.progress().share);
    }
    assert!(shares.len() > 5 && shares.is_sorted() && shares[0] > 0.0, "{shares:?}");
    let end = whole.progress();
    assert_eq!((end.finished, end.share, end.now), (150, 1.0, whole.outcome().end));
    scenario.stop = Some(100 * MS);
    let mut stopped = scenario.begin(&Watch::default()).unwrap();
    while stopped.run_some(u64::MAX).unwrap() {}
    assert_eq!(stopped.progress().now, 100 * MS);
}

#[test]
fn what_only_one_part_could_know_is_refused() {
    let refused = |change: &dyn Fn(&mut Scenario), watch: &Watch| {
        let mut scenario = scenario("dctcp", 2, None);
        change(&mut scenario);
        scenario.begin(watch).unwrap_err().to_string()
    };
    let none = &Watch::default();
    let scheme = |name: &'static str| {
        move |of: &mut Scenario| of.scheme = Scheme::named(name, &of.topology).unwrap()
    };
    let source = Source {
        src: 0,
        dst: 1,
        level: 0,
        first: 0,
        gap: Gap::Every(MS),
        bytes: Bytes::Fixed(100),
        count: 1,
    };
    assert_eq!(
        refused(&|of| of.workload.sources.push(source), none),
        "parts: a run with sources must have one part"
    );
    assert_eq!(
        refused(&scheme("homa"), none),
        "parts: a run with receivers that grant must have one part"
    );
    assert_eq!(
        refused(&scheme("aequitas"), none),
        "parts: a run with admission by hosts must have one part"
    );
    assert_eq!(refused(&scheme("dcqcn-pfc"), none), "parts: a run with pauses must have one part");
    assert!(refused(&|of| of.parts = 0, none).starts_with("parts: 0 must be 1 to 4"));
    assert!(refused(&|of| of.parts = 5, none).starts_with("parts: 5 must be 1 to 4"));
    let ports = Watch { ports: true, ..Watch::default() };
    assert_eq!(
        refused(&|_| (), &ports),
        "parts: a run in 2 parts cannot be watched: watch it in one"
    );
}

#[test]
fn a_written_scenario_says_its_parts() {
    let written = |parts: &str| {
        let text = format!(
            r#"{{"topology": {{"LeafSpine": {{"racks": 4, "hosts_per_rack": 2, "spines": 1,
            "edge": {{"rate": 10000000000, "delay": 0}},
            "uplink": {{"rate": 40000000000, "delay": 1000}}}}}},
            "scheme": {{"Named": "dctcp"}}{parts}}}"#
        );
        serde_json::from_str::<Scenario>(&text).unwrap().parts
    };
    assert_eq!((written(""), written(r#", "parts": 3"#)), (1, 3));
}
