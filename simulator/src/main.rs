// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line: run a scenario from a file, and benchmarks of speed on flow lists, large
//! networks and a MapReduce job.

mod display;

use std::io::{stderr, stdout, ErrorKind, Write};
use std::process::{exit, ExitCode};
use std::time::Instant;
use std::{env, fs};

use qjump_sim::apps::{App, AppResult, MapReduce, Span};
use qjump_sim::{
    Arrivals, Cable, Error, Flows, Graph, LeafSpine, Outcome, Ps, Result, Routing, Scenario,
    Scheme, Sizes, Topology, Watch, Workload, MS, US,
};

use crate::display::ProgressDisplay;

const USAGE: &str = "\
usage: qjump-sim run FILE
       qjump-sim bench-flows FILE [--scheme NAME]
       qjump-sim bench-scale [--scheme NAME]
       qjump-sim bench-fat-tree [--scheme NAME] [--ports COUNT] [--microseconds COUNT]
       qjump-sim bench-terasort [--scheme NAME]

run          runs a scenario written in JSON and prints its outcome as JSON; times in ps
bench-flows  runs a list of flows (lines of: seconds source destination packets) on Figure 9's
             fabric and prints packet-hops per CPU second
bench-scale  prints nanoseconds of CPU per packet-hop for the first milliseconds at half load of
             144, 1,008 and 10,000 hosts
bench-fat-tree
             prints the same, and memory, of a three-tier fat-tree at load 0.6: 74 ports are
             101,306 hosts
bench-terasort
             sorts 6.4 GB on 160 hosts at 1 Gb/s: 100 maps, 159 reducers with 5 fetches each at a
             time

How far a run has come, and how long it will still take, goes to standard error.

schemes: tcp, dctcp (default), pfabric, qjump-script, qjump-paper, swift, bbr, dcqcn, dcqcn-pfc,
         homa, aequitas, ndp, roce, irn, eqds, nscc, hpcc, powertcp, bbr3";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let done = match words.first().map(String::as_str) {
        Some("run") => run_written(&words[1..]),
        Some("bench-flows") => bench(&words[1..]),
        Some("bench-scale") => bench_scale(&words[1..]),
        Some("bench-fat-tree") => bench_fat_tree(&words[1..]),
        Some("bench-terasort") => bench_terasort(&words[1..]),
        Some("--help" | "-h") => print_line(USAGE),
        _ => {
            print_error(USAGE);
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!("qjump-sim: {error}"));
            ExitCode::from(2)
        }
    }
}

/// Writes to standard output. If the reader has closed it, the program ends.
fn print_line(text: &str) -> Result<()> {
    let mut to = stdout();
    match writeln!(to, "{text}").and_then(|()| to.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit(0),
        written => written.map_err(|error| failure(format!("standard output: {error}"))),
    }
}

/// Writes to standard error and ignores failures: there is nowhere to report them.
fn print_error(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}

/// The arguments after the command: `file`, if it takes one, and options.
#[derive(Default)]
struct Options {
    file: Option<String>,
    values: Vec<(String, String)>,
}

impl Options {
    fn parse(words: &[String], known: &[&str], takes_file: bool) -> Result<Self> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.strip_prefix("--") {
                Some(name) if known.contains(&name) => match words.next() {
                    Some(value) => options.values.push((name.to_owned(), value.clone())),
                    None => return Err(failure(format!("{word}: needs a value"))),
                },
                None if takes_file && options.file.is_none() => options.file = Some(word.clone()),
                None => return Err(failure(format!("{word}: unexpected argument"))),
                Some(_) => return Err(failure(format!("{word}: unknown option"))),
            }
        }
        Ok(options)
    }

    fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        let given = self.values.iter().rev().find(|(known, _)| known == name);
        given.map_or(default, |(_, value)| value)
    }

    fn number<T: std::str::FromStr>(&self, name: &str, default: &str) -> Result<T> {
        let text = self.text(name, default);
        text.parse().map_err(|_| failure(format!("--{name}: {text} is not a valid number")))
    }
}

fn failure(text: String) -> Error {
    Error::from(text)
}

fn run_written(words: &[String]) -> Result<()> {
    let options = Options::parse(words, &[], true)?;
    let Some(file) = &options.file else {
        return Err(failure("run: needs the file of a scenario".to_owned()));
    };
    let wrong = |error: String| failure(format!("{file}: {error}"));
    let text = fs::read_to_string(file).map_err(|e| wrong(e.to_string()))?;
    let scenario: Scenario = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    let (outcome, _, _) = run(&scenario)?;
    print_line(&serde_json::to_string(&outcome).map_err(|e| wrong(e.to_string()))?)
}

fn bench(words: &[String]) -> Result<()> {
    let options = Options::parse(words, &["scheme"], true)?;
    let Some(file) = &options.file else {
        return Err(failure("bench-flows: needs a file of flows".to_owned()));
    };
    let text = fs::read_to_string(file).map_err(|e| failure(format!("{file}: {e}")))?;
    let flows = Flows::parse(&text).map_err(|e| failure(format!("{file}: {e}")))?;
    let (outcome, cpu, wall) = run_flows(&options, &LeafSpine::FIG9, flows, 1, None)?;
    let c = &outcome.counters;
    let finished = outcome.flows.iter().filter(|flow| flow.finish.is_some()).count();
    print_line(&format!(
        "scheme={} finished={finished}/{} end={:.6}s hops={} events={} dropped={} pushed_out={} \
         limited={} marked={} retransmitted={} timeouts={} cpu={cpu:.3}s wall={wall:.3}s \
         Mhops/cpu_s={:.2} max_rss_MB={}",
        options.text("scheme", "dctcp"),
        outcome.flows.len(),
        outcome.end as f64 / 1e12,
        c.hops,
        c.events,
        c.full.total(),
        c.pushed_out.total(),
        c.limited.total(),
        c.marked,
        c.retransmitted,
        c.timeouts,
        c.hops as f64 / cpu / 1e6,
        max_rss_mb().map_or("unknown".to_owned(), |mb| mb.to_string()),
    ))
}

fn bench_scale(words: &[String]) -> Result<()> {
    let options = Options::parse(words, &["scheme"], false)?;
    for (racks, hosts_per_rack, spines, milliseconds) in
        [(9, 16, 4, 60), (42, 24, 6, 10), (250, 40, 10, 3)]
    {
        let fabric = LeafSpine { racks, hosts_per_rack, spines, ..LeafSpine::FIG9 };
        let hosts = racks * hosts_per_rack;
        let count = hosts * milliseconds / 2;
        let flows = Flows::Drawn {
            arrivals: Arrivals::Poisson,
            sizes: Sizes::web_search(),
            load: 0.5,
            count,
        };
        let (outcome, cpu, _) =
            run_flows(&options, &fabric, flows, 1, Some(Ps::from(milliseconds) * MS))?;
        let hops = outcome.counters.hops;
        print_line(&format!(
            "hosts={hosts} hops={hops} in_flight={} cpu={cpu:.3}s ns/hop={:.1} max_rss_MB={}",
            outcome.counters.in_flight,
            cpu * 1e9 / hops as f64,
            max_rss_mb().map_or("unknown".to_owned(), |mb| mb.to_string()),
        ))?;
    }
    Ok(())
}

fn bench_fat_tree(words: &[String]) -> Result<()> {
    let options = Options::parse(words, &["scheme", "ports", "microseconds"], false)?;
    let (ports, microseconds): (u32, u32) =
        (options.number("ports", "74")?, options.number("microseconds", "500")?);
    let (edge, trunk) = (
        LeafSpine::FIG9.edge,
        Cable { delay: LeafSpine::FIG9.uplink.delay, ..LeafSpine::FIG9.edge },
    );
    let topology = Graph::new(Graph::fat_tree(ports, edge, trunk)?).build()?;
    let hosts = topology.hosts();
    // A host starts a flow every 2.3 ms.
    let count = (u64::from(hosts) * u64::from(microseconds) / 2_000) as u32;
    let flows =
        Flows::Drawn { arrivals: Arrivals::Poisson, sizes: Sizes::web_search(), load: 0.6, count };
    let scheme = Scheme::named(options.text("scheme", "dctcp"), &topology)?;
    let stop = Ps::from(microseconds) * US;
    let scenario =
        Scenario { stop: Some(stop), ..Scenario::new(topology, scheme, Workload::of_flows(flows)) };
    let (outcome, cpu, _) = run(&scenario)?;
    let begun = outcome.flows.iter().filter(|flow| flow.start <= stop).count();
    let finished = outcome.flows.iter().filter(|flow| flow.finish.is_some()).count();
    let hops = outcome.counters.hops;
    print_line(&format!(
        "hosts={hosts} flows={begun} finished={finished} hops={hops} dropped={} in_flight={} \
         cpu={cpu:.3}s ns/hop={:.1} max_rss_MB={}",
        outcome.counters.full.total() + outcome.counters.pushed_out.total(),
        outcome.counters.in_flight,
        cpu * 1e9 / hops as f64,
        max_rss_mb().map_or("unknown".to_owned(), |mb| mb.to_string()),
    ))
}

fn bench_terasort(words: &[String]) -> Result<()> {
    let options = Options::parse(words, &["scheme"], false)?;
    let fabric = LeafSpine {
        racks: 4,
        hosts_per_rack: 40,
        spines: 2,
        edge: Cable { rate: 1_000_000_000, delay: 5 * US },
        uplink: Cable { rate: 10_000_000_000, delay: US },
    };
    let job = MapReduce {
        nodes: (0..160).collect(),
        level: 7,
        first: 0,
        maps: 100,
        map_slots: 1,
        map_time: Span::Fixed(0),
        map_bytes: 159 * 402_000,
        reducers: 159,
        parallel_copies: 5,
        reduce_time: Span::Fixed(0),
    };
    let topology = Topology::leaf_spine(&fabric)?;
    let mut scheme = Scheme::named(options.text("scheme", "dctcp"), &topology)?;
    scheme.routing = Routing::PerFlow;
    scheme.transport.dupacks = Some(3);
    let workload = Workload::of_apps(vec![App::MapReduce(job)]);
    let (outcome, cpu, _) = run(&Scenario::new(topology, scheme, workload))?;
    let AppResult::MapReduce(results) = &outcome.apps[0] else {
        unreachable!("the application is a job")
    };
    let c = &outcome.counters;
    print_line(&format!(
        "runtime={:.3}s fetches={} hops={} dropped={} timeouts={} cpu={cpu:.3}s \
         Mhops/cpu_s={:.2} max_rss_MB={}",
        results.end().map_or(f64::NAN, |end| end as f64 / 1e12),
        results.fetches.len(),
        c.hops,
        c.full.total() + c.pushed_out.total(),
        c.timeouts,
        c.hops as f64 / cpu / 1e6,
        max_rss_mb().map_or("unknown".to_owned(), |mb| mb.to_string()),
    ))
}

fn run_flows(
    options: &Options,
    fabric: &LeafSpine,
    flows: Flows,
    seed: u64,
    stop: Option<Ps>,
) -> Result<(Outcome, f64, f64)> {
    let topology = Topology::leaf_spine(fabric)?;
    let scheme = Scheme::named(options.text("scheme", "dctcp"), &topology)?;
    run(&Scenario { seed, stop, ..Scenario::new(topology, scheme, Workload::of_flows(flows)) })
}

/// Events between two looks at the clock: some hundredths of a second.
const CHUNK: u64 = 1 << 20;

/// Runs a scenario and shows progress; returns the outcome, CPU seconds and wall seconds.
fn run(scenario: &Scenario) -> Result<(Outcome, f64, f64)> {
    let (began, wall) = (cpu_seconds(), Instant::now());
    let mut run = scenario.begin(&Watch::default())?;
    let mut display = ProgressDisplay::new();
    while run.run_some(CHUNK)? {
        display.look(|| run.progress());
    }
    drop(display);
    let outcome = run.outcome();
    let wall = wall.elapsed().as_secs_f64();
    // Without Linux's accounting, assume that the core was ours alone.
    let cpu = began.zip(cpu_seconds()).map_or(wall, |(from, to)| to - from);
    Ok((outcome, cpu, wall))
}

/// CPU time of this thread from the scheduler, in ns: process accounting has ticks of 10 ms.
fn cpu_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

fn max_rss_mb() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kilobytes / 1024)
}
