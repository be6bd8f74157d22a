// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios as they are written: in JSON they run as those made by hand, and what is wrong is
//! told.

use qjump_sim::apps::{App, Ping};
use qjump_sim::{
    Bytes, Cable, FlowSpec, Flows, Gap, Quantiles, Scenario, Scheme, Sizes, Source, Tree, Wish,
    Workload, MS, US,
};

const WRITTEN: &str = r#"{
    "topology": {"Tree": {
        "switches": ["s"],
        "hosts": ["a", "b"],
        "cables": [["a", "s", {"rate": 10000000000, "delay": 1000000}],
                   ["b", "s", {"rate": 1000000000, "delay": 2000000}]],
        "jitter": [["b", {"points": [[0, 1000], [100, 5000]]}]]
    }},
    "scheme": {"Named": "dctcp"},
    "flows": {"Flows": [
        {"start": 0, "src": 0, "dst": 1, "packets": 400},
        {"start": 7000000, "src": 0, "dst": 1, "packets": 6, "level": 3, "bytes": 8000}
    ]},
    "sources": [
        {"src": 1, "dst": 0, "level": 1, "first": 0, "spacing": {"gap": 50000000, "poisson": true},
         "length": {"bytes": 200, "exponential": false}, "count": 90}
    ],
    "apps": [
        {"Ping": {"src": 0, "dst": 1, "level": 0, "first": 0,
                  "spacing": {"gap": 100000000, "poisson": false},
                  "bytes": 100, "count": 20, "turnaround": 3000000}}
    ],
    "seed": 5,
    "stop": 20000000000
}"#;

fn by_hand() -> Scenario {
    let cable = |rate, delay| Cable { rate, delay };
    let tree = Tree::new().switch("s").host("a").host("b");
    let tree = tree.cable("a", "s", cable(10_000_000_000, US)).cable(
        "b",
        "s",
        cable(1_000_000_000, 2 * US),
    );
    let mut topology = tree.build().unwrap();
    topology.set_jitter(1, Quantiles::new(&[(0.0, 1_000), (100.0, 5_000)]).unwrap()).unwrap();
    let scheme = Scheme::named("dctcp", &topology).unwrap();
    let flow = |start, packets| FlowSpec { start, src: 0, dst: 1, packets };
    let own = Wish { level: Some(3), bytes: Some(8_000), ..Wish::default() };
    let gap = Gap::Poisson(50 * US);
    let source =
        Source { src: 1, dst: 0, level: 1, first: 0, gap, bytes: Bytes::Fixed(200), count: 90 };
    let gap = Gap::Every(100 * US);
    let ping =
        Ping { src: 0, dst: 1, level: 0, first: 0, gap, bytes: 100, count: 20, turnaround: 3 * US };
    let workload = Workload {
        flows: Flows::Own(vec![(flow(0, 400), Wish::default()), (flow(7 * US, 6), own)]),
        sources: vec![source],
        apps: vec![App::Ping(ping)],
    };
    Scenario { seed: 5, stop: Some(20 * MS), ..Scenario::new(topology, scheme, workload) }
}

#[test]
fn what_is_written_runs_as_what_is_made_by_hand() {
    let written: Scenario = serde_json::from_str(WRITTEN).unwrap();
    let outcome = by_hand().run().unwrap();
    assert!(
        outcome.counters.delivered.datagrams > 0
            && outcome.flows.iter().all(|flow| flow.finish.is_some())
    );
    assert_eq!(written.run().unwrap(), outcome);
}

#[test]
fn a_scheme_may_be_written_in_full() {
    let scheme = serde_json::to_string(&by_hand().scheme).unwrap();
    let text = WRITTEN.replace(r#"{"Named": "dctcp"}"#, &format!(r#"{{"Scheme": {scheme}}}"#));
    let written: Scenario = serde_json::from_str(&text).unwrap();
    assert_eq!(written.scheme, by_hand().scheme);
}

#[test]
fn sizes_have_names_or_points() {
    let named: Sizes = serde_json::from_str(r#""search""#).unwrap();
    assert_eq!(named, Sizes::web_search());
    let points: Sizes =
        serde_json::from_str(r#"{"Sizes": {"points": [[1, 0.0], [10, 1.0]]}}"#).unwrap();
    assert_eq!(points, Sizes::new(&[(1, 0.0), (10, 1.0)]).unwrap());
}

#[test]
fn what_is_wrong_is_told() {
    let wrong = [
        (r#""Named": "dctcp""#, r#""Named": "dtcp""#, "scheme: there is no scheme dtcp"),
        (r#""seed""#, r#""sead""#, "unknown field `sead`"),
        (r#"["b", {"points""#, r#"["c", {"points""#, "jitter[0]: there is no host c"),
        (
            r#""stop": 20000000000"#,
            r#""stop": 9223372036854775808"#,
            "expected a whole number from 0 to 4611686018427387904",
        ),
        ("[0, 1000]", "[0]", "expected a percentage and a time"),
        (r#""rate": 1000000000,"#, r#""rate": 0,"#, "a link's rate is 0 bit/s"),
    ];
    for (right, by, sentence) in wrong {
        let text = WRITTEN.replace(right, by);
        assert_ne!(text, WRITTEN);
        let told = serde_json::from_str::<Scenario>(&text).unwrap_err().to_string();
        assert!(told.contains(sentence), "{told}");
    }
}
