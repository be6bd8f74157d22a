// SPDX-License-Identifier: GPL-2.0-or-later
//! Series, counts of flows, traces and progress: against each other, against counters, and against
//! what is known.

use std::collections::BTreeMap;

use qjump_sim::{
    Arrivals, Cable, FlowSpec, Flows, LeafSpine, LevelRed, Limit, Limiter, Mode, Outcome, PerHost,
    Priority, Ps, Quantiles, Queue, Scenario, Scheme, Simulation, Sizes, TimeAware, Topology,
    Traced, Watch, Wfq, Workload, MS, NS, S, SERIES_BANDS, US,
};

const NAMES: [&str; 5] = ["tcp", "dctcp", "pfabric", "qjump-script", "qjump-paper"];

fn fabric() -> Topology {
    Topology::leaf_spine(&LeafSpine::FIG9).unwrap()
}

fn search() -> Workload {
    Workload::of_flows(Flows::Drawn {
        arrivals: Arrivals::Published,
        sizes: Sizes::web_search(),
        load: 0.8,
        count: 120,
    })
}

fn run(name: &str, workload: &Workload, watch: &Watch) -> Simulation {
    let scheme = Scheme::named(name, &fabric()).unwrap();
    run_scheme(&scheme, workload, watch)
}

fn run_scheme(scheme: &Scheme, workload: &Workload, watch: &Watch) -> Simulation {
    let mut simulation = Simulation::watched(&fabric(), scheme, workload, 1, watch).unwrap();
    simulation.run();
    simulation
}

fn everything() -> Watch {
    Watch {
        ports: true,
        flows: true,
        every_ps: Some(10 * US),
        until: None,
        most: None,
        traced: Some(Traced::All),
    }
}

fn everything_but_samples() -> Watch {
    Watch { every_ps: None, ..everything() }
}

fn plain(name: &str) -> Outcome {
    run(name, &search(), &Watch::default()).outcome()
}

#[test]
fn a_watched_run_has_the_same_outcome() {
    for name in NAMES {
        let expected = plain(name);
        assert_eq!(run(name, &search(), &everything()).outcome(), expected, "{name}");
        let sampled = Watch { every_ps: Some(777 * NS), most: Some(64), ..Watch::default() };
        assert_eq!(run(name, &search(), &sampled).outcome(), expected, "{name}");
    }
}

/// So is one that stops on the way.
#[test]
fn a_watched_run_may_stop() {
    let mut simulation = Simulation::watched(
        &fabric(),
        &Scheme::named("dctcp", &fabric()).unwrap(),
        &search(),
        1,
        &everything(),
    )
    .unwrap();
    for stop in [0, 100 * US, 200 * US] {
        simulation.run_until(stop);
    }
    simulation.run();
    assert_eq!(simulation.outcome(), plain("dctcp"));
}

#[test]
fn all_parts_count_the_same() {
    for name in NAMES {
        let simulation = run(name, &search(), &everything());
        let c = simulation.outcome().counters;
        let flows = simulation.flow_counts();
        let sum = |of: fn(&qjump_sim::FlowCounts) -> u64| {
            flows.iter().map(|(_, counts)| of(counts)).sum::<u64>()
        };
        assert_eq!(flows.len(), 120);
        assert_eq!(sum(|f| f.delivered), c.delivered.data, "{name}");
        assert_eq!(sum(|f| f.marked), c.marked, "{name}");
        assert_eq!(sum(|f| f.retransmitted), c.retransmitted, "{name}");
        assert_eq!(sum(|f| f.timeouts), c.timeouts, "{name}");
        let dropped = c.full.data + c.pushed_out.data + c.early.data + c.limited.data;
        assert_eq!(sum(|f| f.dropped), dropped, "{name}");
        assert!(
            name == "dctcp" || name == "qjump-paper" || dropped > 0,
            "{name}: nothing is dropped"
        );
        assert_eq!(sum(|f| f.held) > 0, name == "qjump-paper", "{name}");
        let (came, lost): (Vec<qjump_sim::Hop>, Vec<_>) =
            simulation.trace().iter().partition(|hop| !hop.dropped);
        assert_eq!(came.len() as u64, c.hops, "{name}");
        let dropped = c.full.total() + c.pushed_out.total() + c.early.total();
        assert_eq!(lost.len() as u64, dropped + c.limited.total(), "{name}");
        // What a limiter drops has come to its host's own port, which has not dropped it.
        let series = simulation.series().unwrap();
        assert_eq!(series.totals.last().unwrap()[0], dropped, "{name}");
        assert_eq!(
            series.dropped.chunks(series.ports as usize).last().unwrap().iter().sum::<u64>(),
            dropped,
            "{name}"
        );
        assert_eq!(
            simulation.ports().iter().map(|port| port.early + port.full).sum::<u64>(),
            dropped,
            "{name}"
        );
        assert!(simulation.trace().windows(2).all(|two| two[0].at <= two[1].at), "{name}");
    }
}

/// A window of six packets waits in its host's link for nobody but itself: 0 to 5 packets of 1.2
/// us.
#[test]
fn waits_are_exact() {
    let flow = FlowSpec { start: 0, src: 0, dst: 17, packets: 6 };
    let simulation = run("dctcp", &Workload::of_flows(Flows::List(vec![flow])), &everything());
    let [(0, counts)] = simulation.flow_counts()[..] else { panic!("one flow") };
    assert_eq!((counts.waited, counts.waited_most), (15 * 1_200 * NS, 5 * 1_200 * NS));
    let of: Vec<Ps> = simulation
        .trace()
        .iter()
        .filter(|hop| hop.kind == 0 && hop.seq == 5)
        .map(|hop| hop.at)
        .collect();
    assert_eq!(of, [9_900 * NS, 10_400 * NS, 10_900 * NS, 14_800 * NS]);
}

/// Also those that are longer than a time stamp lasts: 400 packets at once at 100 kbit/s, where
/// each takes 0.12 s.
#[test]
fn long_waits_are_exact() {
    let cable = Cable { rate: 100_000, delay: 0 };
    let pair = LeafSpine { racks: 1, hosts_per_rack: 2, spines: 0, edge: cable, uplink: cable };
    let mut scheme = Scheme { queue: Queue::DropTail(Limit::None), ..Scheme::tcp() };
    (scheme.transport.initial_window, scheme.transport.max_window) = (400, 400);
    (scheme.transport.min_rto, scheme.transport.max_rto) = (1_000 * S, 1_000 * S);
    let flow = FlowSpec { start: 0, src: 0, dst: 1, packets: 400 };
    let (topology, workload) =
        (Topology::leaf_spine(&pair).unwrap(), Workload::of_flows(Flows::List(vec![flow])));
    let mut simulation =
        Simulation::watched(&topology, &scheme, &workload, 1, &everything_but_samples()).unwrap();
    simulation.run();
    let [(0, counts)] = simulation.flow_counts()[..] else { panic!("one flow") };
    assert_eq!((counts.waited, counts.waited_most), (399 * 200 * 120 * MS, 399 * 120 * MS));
    assert_eq!(simulation.outcome().counters.latency.max, 401 * 120 * MS);
}

#[test]
fn series_are_what_ports_and_traces_say() {
    for name in ["dctcp", "pfabric", "qjump-script"] {
        let simulation = run(name, &search(), &everything());
        let series = simulation.series().unwrap();
        let ports = series.ports as usize;
        let last = series.at.len() - 1;
        assert!(series.at.iter().zip(0..).all(|(&at, n)| at == n * 10 * US));
        let end = simulation.outcome().end;
        assert!((end..end + 10 * US).contains(&(series.at[last] + 10 * US)), "{name}");
        let mut sent: BTreeMap<(usize, u32), u64> = BTreeMap::new();
        let delay = |link: u32| if link < 288 { 2_700 * NS } else { 200 * NS };
        for hop in simulation.trace().iter().filter(|hop| !hop.dropped) {
            let left = (hop.at - delay(hop.link)).div_ceil(10 * US) as usize;
            *sent.entry((left, hop.link)).or_default() += u64::from(hop.bytes);
        }
        for (link, port) in simulation.ports().iter().enumerate() {
            let column = |values: &[u64]| {
                values[link..].iter().step_by(ports).copied().collect::<Vec<u64>>()
            };
            assert!(column(&series.queued).into_iter().max().unwrap() <= port.longest, "{name}");
            assert!(*column(&series.marked).last().unwrap() <= port.marked);
            // What had left by an instant, but for a part of the packet that was being sent then.
            let mut all = 0;
            for (sample, at) in column(&series.sent).into_iter().enumerate() {
                all += sent.get(&(sample, link as u32)).copied().unwrap_or_default();
                assert!(
                    (all..all + 1_500).contains(&at),
                    "{name}, link {link}, sample {sample}: {at} sent, {all} traced"
                );
            }
        }
        let bands: u64 = series.levels.iter().sum();
        let expected = if name == "qjump-script" { series.queued.len() * SERIES_BANDS } else { 0 };
        assert_eq!((bands > 0, series.levels.len()), (expected > 0, expected), "{name}");
        let ends: Vec<_> = simulation.ports().iter().map(|port| (port.from, port.to)).collect();
        assert_eq!(simulation.cables(), ends);
        for (queued, levels) in series.queued.iter().zip(series.levels.chunks(SERIES_BANDS)) {
            let waiting: u64 = levels.iter().sum();
            assert!(waiting <= *queued && (waiting == 0 || *queued <= waiting + 1_500));
        }
        let most = series.senders.iter().map(|sender| sender.window).max().unwrap();
        assert!((12..=152).contains(&most), "{name}: {most}");
    }
}

#[test]
fn every_queue_with_levels_tells_of_each() {
    let script = Scheme::named("qjump-script", &fabric()).unwrap();
    let (limit, weights) = (225_000, [8, 7, 6, 5, 4, 3, 2, 1]);
    let red = LevelRed { limit, min: 5_000, max: 200_000, max_p: 10_000, weights: None };
    for queue in [
        Queue::Priority(Priority { limit }),
        Queue::Wfq(Wfq { limit, weights }),
        Queue::LevelRed(red),
        Queue::LevelRed(LevelRed { weights: Some(weights), ..red }),
        Queue::TimeAware(TimeAware::new(limit, 0, &[(100 * US, 0xff)]).unwrap()),
    ] {
        let simulation = run_scheme(&Scheme { queue, ..script }, &search(), &everything());
        let series = simulation.series().unwrap();
        let mut most = [0; SERIES_BANDS];
        assert_eq!(series.levels.len(), series.queued.len() * SERIES_BANDS);
        for (queued, levels) in series.queued.iter().zip(series.levels.chunks(SERIES_BANDS)) {
            let waiting: u64 = levels.iter().sum();
            assert!(
                waiting <= *queued && (waiting == 0 || *queued <= waiting + 1_500),
                "{queue:?}"
            );
            for (most, &bytes) in most.iter_mut().zip(levels) {
                *most = bytes.max(*most);
            }
        }
        // Flows of every level wait, and none above its limit.
        assert!(most[1..].iter().all(|bytes| (1..=limit).contains(bytes)), "{queue:?}: {most:?}");
    }
}

#[test]
fn a_long_series_is_thinned() {
    let whole =
        run("dctcp", &search(), &Watch { every_ps: Some(US), ports: true, ..Watch::default() });
    let until = run(
        "dctcp",
        &search(),
        &Watch { every_ps: Some(US), until: Some(1_500 * US), ..Watch::default() },
    );
    assert_eq!(until.series().unwrap().at, (0..=1_500).map(|n| n * US).collect::<Vec<Ps>>());
    assert_eq!(until.series().unwrap().queued, whole.series().unwrap().queued[..1_501 * 360]);
    for most in [2, 7, 64] {
        let thin = run(
            "dctcp",
            &search(),
            &Watch { every_ps: Some(US), most: Some(most), ports: true, ..Watch::default() },
        );
        let (whole, thin) = (whole.series().unwrap(), thin.series().unwrap());
        assert!(
            thin.at.len() <= most as usize && thin.at.len() as u32 >= most / 2,
            "{} of {most}",
            thin.at.len()
        );
        let ports = whole.ports as usize;
        for (sample, at) in thin.at.iter().enumerate() {
            let same = (at / US) as usize;
            assert_eq!(
                thin.queued[sample * ports..][..ports],
                whole.queued[same * ports..][..ports]
            );
            assert_eq!(thin.sent[sample * ports..][..ports], whole.sent[same * ports..][..ports]);
            assert_eq!(thin.totals[sample], whole.totals[same]);
            let of = |series: &qjump_sim::Series, sample: usize| {
                let senders =
                    series.senders.iter().filter(|sender| sender.sample as usize == sample);
                senders
                    .map(|sender| (sender.flow, sender.window, sender.acknowledged))
                    .collect::<Vec<_>>()
            };
            assert_eq!(of(thin, sample), of(whole, same));
        }
    }
}

#[test]
fn a_trace_may_be_of_some_hosts() {
    let all = run("dctcp", &search(), &everything());
    let largest = *all.outcome().flows.iter().max_by_key(|flow| flow.packets).unwrap();
    let (src, dst) = (largest.src, largest.dst);
    let some = run(
        "dctcp",
        &search(),
        &Watch { traced: Some(Traced::Hosts(vec![src, dst])), ..Watch::default() },
    );
    let expected =
        all.trace().iter().filter(|hop| [src, dst, 144 + src, 144 + dst].contains(&hop.link));
    assert!(expected.clone().count() >= 4 * largest.packets as usize, "{largest:?}");
    assert!(some.trace().iter().eq(expected));
}

/// A limiter of either kind drops before a packet comes to its host's port.
#[test]
fn what_limiters_drop_is_in_the_trace() {
    let epoch = 10 * US;
    let per_host = PerHost { mode: Mode::Drop, ..PerHost::new(epoch, [3_000; 8]) };
    for limiter in [Limiter::PerFlow { epoch, budgets: [3_000; 8] }, Limiter::PerHost(per_host)] {
        let flow = FlowSpec { start: 0, src: 3, dst: 17, packets: 60 };
        let scheme = Scheme { limiter, ..Scheme::tcp() };
        let simulation =
            run_scheme(&scheme, &Workload::of_flows(Flows::List(vec![flow])), &everything());
        let limited = simulation.outcome().counters.limited.data;
        let lost: Vec<_> = simulation.trace().iter().filter(|hop| hop.dropped).collect();
        assert!(limited > 10 && lost.len() as u64 == limited, "{limiter:?}: {limited}");
        assert!(
            lost.iter().all(|hop| (hop.link, hop.src, hop.dst, hop.bytes) == (3, 3, 17, 1_500)),
            "{limiter:?}"
        );
        assert_eq!(simulation.flow_counts()[0].1.dropped, limited, "{limiter:?}");
    }
}

/// A host that takes 50 to 60 us for what comes in has none of the packets that arrive in the first
/// 40 us; it has waited for none of them longer than without.
#[test]
fn packets_that_a_host_takes_in_are_not_delivered_yet() {
    let cable = Cable { rate: 10_000_000_000, delay: US };
    let rack = LeafSpine { racks: 1, hosts_per_rack: 9, spines: 0, edge: cable, uplink: cable };
    let plain = Topology::leaf_spine(&rack).unwrap();
    let mut slow = plain.clone();
    slow.set_jitter(8, Quantiles::new(&[(0.0, 50 * US), (100.0, 60 * US)]).unwrap()).unwrap();
    let flow = FlowSpec { start: 0, src: 0, dst: 8, packets: 10 };
    let workload = Workload::of_flows(Flows::List(vec![flow]));
    let watch = Watch { flows: true, ..Watch::default() };
    let scheme = Scheme { queue: Queue::DropTail(Limit::None), ..Scheme::tcp() };
    let of = |topology: &Topology| {
        let mut simulation = Simulation::watched(topology, &scheme, &workload, 1, &watch).unwrap();
        simulation.run_until(40 * US);
        let early =
            (simulation.flow_counts()[0].1.delivered, simulation.outcome().counters.delivered.data);
        simulation.run();
        (early, simulation.flow_counts()[0].1)
    };
    let (early, counts) = of(&slow);
    assert_eq!((early, counts.delivered), ((0, 0), 10));
    let (early, without) = of(&plain);
    assert_eq!(early, (10, 10));
    assert_eq!(counts.waited_most, without.waited_most);
}

/// Nothing happens for a second, of which there are ten thousand samples: a run in pieces stops
/// there too, and comes to the same.
#[test]
fn samples_of_idle_times_are_taken_in_pieces() {
    let flow = |start| FlowSpec { start, src: 0, dst: 1, packets: 6 };
    let workload = Workload::of_flows(Flows::List(vec![flow(0), flow(S)]));
    let watch = Watch { every_ps: Some(100 * US), ..Watch::default() };
    let whole = run("tcp", &workload, &watch);
    let mut simulation =
        Simulation::watched(&fabric(), &Scheme::tcp(), &workload, 1, &watch).unwrap();
    let (mut pieces, mut before, mut now) = (0, 0, 0);
    while simulation.run_some(Ps::MAX, 36_000) {
        let taken = simulation.series().unwrap().at.len();
        assert!(taken - before <= 36_000 / 360 + 1);
        (pieces, before) = (pieces + 1, taken);
        let progress = simulation.progress(None);
        assert!(progress.now > now, "{progress:?}");
        now = progress.now;
    }
    assert!(pieces >= 10_000 / 101, "{pieces}");
    assert_eq!((simulation.series(), simulation.outcome()), (whole.series(), whole.outcome()));
}

#[test]
fn progress_grows_to_one() {
    let topology = fabric();
    let scheme = Scheme::named("tcp", &topology).unwrap();
    let mut simulation = Simulation::new(&topology, &scheme, &search(), 1).unwrap();
    let mut shares = vec![simulation.progress(None).share];
    while simulation.run_some(Ps::MAX, 50_000) {
        shares.push(simulation.progress(None).share);
    }
    assert!(shares.len() > 10 && shares.windows(2).all(|two| two[0] <= two[1]), "{shares:?}");
    let done = simulation.progress(None);
    assert_eq!((done.finished, done.flows, shares[0], done.share), (120, 120, 0.0, 1.0));
    // Packets are work: half of them take about half of the events.
    let middle = shares[shares.len() / 2];
    assert!((0.3..0.7).contains(&middle), "{middle}");
    assert!((simulation.progress(Some(2 * done.now)).share - 1.0).abs() < 1e-12);
}

#[test]
fn what_cannot_be_watched_is_told() {
    let wrong = |watch: Watch| {
        let topology = fabric();
        Simulation::watched(&topology, &Scheme::tcp(), &search(), 1, &watch)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    let none = Watch::default;
    assert!(wrong(Watch { every_ps: Some(0), ..none() }).starts_with("watch.every_ps: "));
    assert!(wrong(Watch { most: Some(1), ..none() }).starts_with("watch.most: "));
    let told = wrong(Watch { traced: Some(Traced::Hosts(vec![3, 144])), ..none() });
    assert_eq!(told, "watch.trace: there is no host 144, there are 144");
}

/// A sample of 360 ports has at least 2,920 bytes.
#[test]
#[cfg(target_os = "linux")]
fn samples_that_fit_no_machine_are_refused_before_the_run() {
    let scenario = Scenario {
        stop: Some(3_000 * S),
        ..Scenario::new(fabric(), Scheme::tcp(), Workload::of_flows(Flows::List(Vec::new())))
    };
    let begun = |watch| scenario.begin(&watch).map(|_| ()).map_err(|error| error.to_string());
    let sentence = begun(Watch { every_ps: Some(1), ..Watch::default() }).unwrap_err();
    assert!(
        sentence.starts_with(
            "watch.every_ps: 3000000000000001 samples until 3000 s would take 8760000 TB, and this"
        ),
        "{sentence}"
    );
    let step = sentence.split("set every_ps to ").nth(1).and_then(|words| words.split(' ').next());
    let step: Ps = step.and_then(|word| word.parse().ok()).expect("a step");
    // The machine may have less memory by now.
    assert_eq!(begun(Watch { every_ps: Some(2 * step), ..Watch::default() }), Ok(()));
    assert!(begun(Watch { every_ps: Some(step / 2), ..Watch::default() }).is_err());
    assert_eq!(begun(Watch { every_ps: Some(1), most: Some(100), ..Watch::default() }), Ok(()));
}
