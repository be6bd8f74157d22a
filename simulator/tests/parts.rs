// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs in parts beside runs in one, on one core and on several.

use qjump_sim::{
    Arrivals, ByKind, Bytes, Cable, CoDel, Congestion, Flows, Gap, Graph, LeafSpine, Limit,
    Outcome, ParallelRun, Progress, Protection, Ps, Queue, Scenario, Scheme, Sizes, Source,
    Topology, Transport, Tree, Watch, Workload, MS, US,
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

const SCHEMES: [&str; 7] =
    ["tcp", "dctcp", "pfabric", "qjump-script", "qjump-paper", "swift", "bbr"];

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

/// A network whose cables have rates of which no two have a common multiple in the time of a run.
fn without_ties() -> Topology {
    let primes = [
        9_999_999_967,
        9_876_543_211,
        9_700_000_031,
        9_600_000_011,
        9_500_000_009,
        9_400_000_013,
        9_300_000_019,
    ];
    let mut rates = primes.into_iter();
    let mut tree = ["s0", "s1", "s2"].into_iter().fold(Tree::new(), Tree::switch);
    for (host, switch) in [("h0", "s0"), ("h1", "s0"), ("h2", "s1"), ("h3", "s2")] {
        tree = tree.host(host).cable(
            host,
            switch,
            Cable { rate: rates.next().unwrap(), delay: 1_000_003 },
        );
    }
    for (a, b) in [("s0", "s1"), ("s1", "s2"), ("s0", "s2")] {
        tree = tree.cable(a, b, Cable { rate: rates.next().unwrap(), delay: 700_001 });
    }
    Graph::new(tree).build().unwrap()
}

/// Where no two packets come to a switch or host at the same time there is one order: then a run in
/// parts is the run in one, to the last picosecond and packet.
#[test]
fn without_ties_parts_change_nothing() {
    let topology = without_ties();
    // With ports, connections to set up and ACKs that wait.
    let codel = CoDel {
        limit: Limit::Packets(60),
        target: 50 * US,
        interval: 500 * US,
        protection: Protection::Default,
    };
    let linux =
        Transport { min_rto: MS, handshake: Some(MS), ..Transport::linux(Congestion::Cubic) };
    let of_linux = Scheme {
        transport: linux,
        queue: Queue::CoDel(codel),
        ..Scheme::named("tcp", &topology).unwrap()
    };
    let schemes = SCHEMES.map(|name| Scheme::named(name, &topology).unwrap());
    for (scheme, parts) in schemes.into_iter().chain([of_linux]).zip([2, 3].into_iter().cycle()) {
        let flows = Flows::Drawn {
            arrivals: Arrivals::Poisson,
            sizes: Sizes::web_search(),
            load: 0.6,
            count: 100,
        };
        let workload = Workload::of_flows(flows);
        let mut scenario =
            Scenario { seed: 5, ..Scenario::new(topology.clone(), scheme, workload) };
        let whole = scenario.run().unwrap();
        scenario.parts = parts;
        let mut parallel = on(2, &scenario, u64::MAX);
        // Each part has events of its own at which its flows start.
        parallel.counters.events = whole.counters.events;
        assert!(parallel == whole, "{scheme:?}");
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
