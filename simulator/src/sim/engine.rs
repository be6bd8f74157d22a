// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulation: takes events in order and passes each to the network, the hosts or the
//! applications.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::apps::app_set::AppSet;
use crate::core::error::{Error, Result};
use crate::core::event::{ARRIVE, DEPART, HAND_OVER, INDEX, RELEASE, START, TIMER};
use crate::core::time::{Ps, END};
use crate::host::congestion::Failures;
use crate::host::hosts::Hosts;
use crate::host::limiter::Limiter;
use crate::host::remote_flows::RemoteFlows;
use crate::host::result::FlowResult;
use crate::host::traffic::{check_source, Bytes};
use crate::net::network::{Arrived, Network};
use crate::net::partition::{Crossing, Part};
use crate::net::stats::{End, PortResult};
use crate::net::topology::Topology;
use crate::sim::outcome::Outcome;
use crate::sim::progress::Progress;
use crate::sim::scheme::Scheme;
use crate::sim::series::Series;
use crate::sim::trace::{FlowCounts, Hop, Tracer};
use crate::sim::watch::Watch;
use crate::sim::workload::{room, Workload};

/// A simulation in progress: a network with its traffic.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) network: Network,
    hosts: Hosts,
    apps: AppSet,
    events: u64,
    series: Option<Series>,
    tracer: Option<Tracer>,
    /// Where laws of the user's own report failures, if there are such laws.
    failures: Option<Failures>,
}

impl Simulation {
    /// A simulation at time 0.
    ///
    /// # Errors
    /// An invalid scheme or workload.
    pub fn new(
        topology: &Topology,
        scheme: &Scheme,
        workload: &Workload,
        seed: u64,
    ) -> Result<Self> {
        Self::watched(topology, scheme, workload, seed, &Watch::default())
    }

    /// Like `new`, and records what [`Simulation::ports`] returns. The outcome is the same; it
    /// takes longer.
    ///
    /// # Errors
    /// As for [`Simulation::new`].
    pub fn watching(
        topology: &Topology,
        scheme: &Scheme,
        workload: &Workload,
        seed: u64,
    ) -> Result<Self> {
        Self::watched(topology, scheme, workload, seed, &Watch { ports: true, ..Watch::default() })
    }

    /// Like `new`, and records what `watch` asks for.
    ///
    /// # Errors
    /// As for [`Simulation::new`]; and an invalid `watch`.
    pub fn watched(
        topology: &Topology,
        scheme: &Scheme,
        workload: &Workload,
        seed: u64,
        watch: &Watch,
    ) -> Result<Self> {
        Self::part(topology, scheme, workload, seed, watch, None)
    }

    /// A simulation of one part.
    pub(crate) fn part(
        topology: &Topology,
        scheme: &Scheme,
        workload: &Workload,
        seed: u64,
        watch: &Watch,
        part: Option<Part>,
    ) -> Result<Self> {
        scheme.check()?;
        watch.check(topology)?;
        let flows = workload.flows.draw(topology, scheme.transport.data_bytes, seed)?;
        if flows.len() >= 1 << INDEX {
            return Err(Error::new(format!("flows: {} are more than 2^29 - 1", flows.len())));
        }
        let mut network =
            Network::new(topology, &scheme.link_config(), scheme.routing, seed, watch.ports)?;
        let mut sources = workload.sources.clone();
        sources.sort_unstable();
        for source in &sources {
            check_source(source, topology)?;
        }
        for app in &workload.apps {
            app.check(topology)?;
        }
        let data = scheme.transport.data_bytes;
        let mut records = room(flows.len())?;
        for (flow, wish) in flows {
            wish.check(&flow, scheme)?;
            records.push(FlowResult {
                start: flow.start,
                finish: None,
                packets: flow.packets,
                src: flow.src,
                dst: flow.dst,
                level: wish.level.unwrap_or_else(|| scheme.level(flow.packets)),
                transport: wish.transport,
                last: wish.bytes.map_or(data, |bytes| {
                    (bytes - u64::from(flow.packets - 1) * u64::from(data)) as u16
                }),
                deadline: wish.deadline,
            });
        }
        check_packets(scheme, workload, &records)?;
        let mut hosts = Hosts::new(topology, scheme.config(), records, &sources, seed);
        if let Some(part) = part {
            let parts = part.partition.parts as usize;
            hosts.remote = Some(RemoteFlows::new(part.clone(), hosts.records.len()));
            network.leaving = vec![Vec::new(); parts];
            network.part = Some(part);
        }
        hosts.begin(&mut network);
        let mut apps = AppSet::new(seed);
        for app in &workload.apps {
            apps.add(app, &mut network, &mut hosts);
        }
        let series =
            watch.every_ps.map(|every| Series::new(every, watch.until, watch.most, &network));
        let tracer = (watch.flows || watch.traced.is_some())
            .then(|| Tracer::new(watch.traced.clone(), watch.flows));
        hosts.notices = tracer.is_some().then(Vec::new);
        let failures = scheme.has_own_law().then(Failures::of_run);
        Ok(Simulation { network, hosts, apps, events: 0, series, tracer, failures })
    }

    /// Runs until no event is left, or the end of time.
    pub fn run(&mut self) {
        self.run_until(Ps::MAX);
    }

    /// Runs all events up to and including `last`.
    pub fn run_until(&mut self, last: Ps) {
        while self.run_some(last, u64::MAX) {}
    }

    /// Runs at most `most` of the events up to and including `last`; returns whether it stopped
    /// because of their number, or that of samples, each of which costs about an event a port.
    /// Running in pieces yields the same outcome.
    pub fn run_some(&mut self, last: Ps, most: u64) -> bool {
        self.collect_failures();
        let plain = self.series.is_none() && self.tracer.is_none();
        let more =
            if plain { self.run_events(last.min(END), most) } else { self.run_watched(last, most) };
        if !more && last != Ps::MAX {
            self.network.now = last;
        }
        more
    }

    /// Runs the events up to `last`, in a part that other parts may send packets to afterwards.
    pub(crate) fn run_window(&mut self, last: Ps) {
        self.collect_failures();
        self.run_events(last, u64::MAX);
    }

    fn collect_failures(&self) {
        if let Some(failures) = &self.failures {
            failures.collect();
        }
    }

    /// Time of the next event.
    pub(crate) fn next(&self) -> Option<Ps> {
        self.network.wheel.next_time()
    }

    /// When the last listed flow starts.
    pub(crate) fn last_start(&self) -> Ps {
        self.hosts.records.last().map_or(0, |flow| flow.start)
    }

    /// Number of events so far.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Moves the packets for another part to `to`.
    pub(crate) fn leave(&mut self, part: usize, to: &mut Vec<Crossing>) {
        let Network { leaving, pool, stray, .. } = &mut self.network;
        for (at, handle) in leaving[part].drain(..) {
            let packet = self.hosts.leave(pool.get(handle));
            to.push(Crossing { at, packet, failed: stray.remove(&handle) });
            pool.remove(handle);
        }
    }

    /// Adds a packet from another part.
    pub(crate) fn enter(&mut self, Crossing { at, packet, failed }: Crossing) {
        let handle = self.network.pool.add(self.hosts.enter(packet));
        if let Some(link) = failed {
            self.network.stray.insert(handle, link);
        }
        self.network.wheel.push(at, ARRIVE | handle);
    }

    /// Runs events with samples between them, or with a tracer.
    fn run_watched(&mut self, last: Ps, most: u64) -> bool {
        let (end, within) = (self.events.saturating_add(most), last.min(END));
        let mut samples = 1 + most / u64::from(self.network.links.len());
        loop {
            let next = self.next().filter(|&next| next <= within);
            let past = if last == Ps::MAX { self.network.now + 1 } else { last + 1 };
            if self.sample_before(next.unwrap_or(past), &mut samples) {
                return true;
            }
            if next.is_none() {
                return false;
            }
            if self.events >= end {
                return true;
            }
            let until = self.series.as_ref().map_or(within, |series| series.next().min(within));
            let Some(mut tracer) = self.tracer.take() else {
                self.run_events(until, end - self.events);
                continue;
            };
            if let Some(event) = self.network.peek() {
                tracer.before(event, &self.network, &self.hosts);
            }
            self.run_events(until, 1);
            tracer.after(&self.network, &mut self.hosts);
            self.tracer = Some(tracer);
        }
    }

    /// Takes at most `most` samples before `time`; returns whether more are due.
    fn sample_before(&mut self, time: Ps, most: &mut u64) -> bool {
        let Some(series) = &mut self.series else { return false };
        while series.next() < time {
            if *most == 0 {
                return true;
            }
            *most -= 1;
            series.sample(&self.network, &self.hosts);
        }
        false
    }

    // Kept in one place with all host code: 1 % of all instructions.
    #[inline(never)]
    fn run_events(&mut self, last: Ps, most: u64) -> bool {
        let Simulation { network, hosts, apps, events, .. } = self;
        for _ in 0..most {
            let Some(event) = network.pop_until(last) else {
                return false;
            };
            network.now = event.time;
            *events += 1;
            if let Some(soon) = network.prefetch() {
                hosts.prefetch(soon);
            }
            let index = event.what & ((1 << INDEX) - 1);
            match event.what & !((1 << INDEX) - 1) {
                ARRIVE if !arrive(network, hosts, index) => {}
                // Kept in one place, so that host code is inlined into this loop: 1 % of all
                // instructions.
                ARRIVE | HAND_OVER => hosts.deliver(network, index),
                DEPART => {
                    if network.depart(index) {
                        hosts.collect(network);
                    }
                }
                RELEASE => hosts.release(network, index),
                TIMER => hosts.timer(network, index),
                // Each flow that starts is an event.
                START => *events += u64::from(hosts.start_flows(network)) - 1,
                _ if index < hosts.sockets.first() => hosts.emit(network, index),
                _ => apps.act(index, network, hosts),
            }
        }
        true
    }

    /// Whether no packet, flow or timer is left.
    pub fn is_clean(&self) -> bool {
        self.network.pool.is_empty()
            && self.hosts.is_clean()
            && self.network.wheel.pending().next().is_none()
    }

    /// Statistics of every port, in the order of links: hosts' own, those to hosts, both directions
    /// of every cable between switches. Empty if ports were not watched.
    pub fn ports(&self) -> Vec<PortResult> {
        self.network.ports()
    }

    /// Both ends of every port's cable, in the order of [`Simulation::ports`]; also if ports are
    /// not watched.
    pub fn cables(&self) -> Vec<(End, End)> {
        self.network.cables()
    }

    /// Samples of queues, windows and counters so far, if requested.
    pub fn series(&self) -> Option<&Series> {
        self.series.as_ref()
    }

    /// Traced packets so far, in the order of happening.
    pub fn trace(&self) -> &[Hop] {
        self.tracer.as_ref().map_or(&[], |tracer| &tracer.hops)
    }

    /// Counts of each flow's packets so far, if requested: listed flows in order, then those of
    /// applications by path key.
    pub fn flow_counts(&self) -> Vec<(u32, FlowCounts)> {
        let Some(counts) = self.tracer.as_ref().and_then(|tracer| tracer.flows.as_ref()) else {
            return Vec::new();
        };
        let listed = self.hosts.records.len() as u32;
        let of = |flow: u32| (flow, counts.get(&flow).copied().unwrap_or_default());
        (0..listed)
            .map(of)
            .chain(counts.range(listed..).map(|(&flow, &counts)| (flow, counts)))
            .collect()
    }

    /// The progress of the run. `stop`: when it is to end, if set.
    pub fn progress(&self, stop: Option<Ps>) -> Progress {
        // Without events, progress is that of samples.
        let sampled = self.series.as_ref().and_then(|series| series.at.last().copied());
        Progress::of(self.network.now.max(sampled.unwrap_or(0)), stop, &self.hosts)
    }

    /// Sending time of everything accepted for the link to `host`; for a link with priorities, of
    /// the packet being sent.
    ///
    /// # Panics
    /// There is no such host.
    pub fn backlog_to(&self, host: u32) -> Ps {
        self.network.backlog_to(host)
    }

    /// The outcome so far.
    pub fn outcome(&self) -> Outcome {
        Outcome::of(&self.network, &self.hosts, &self.apps, self.events)
    }
}

/// Refuses packets larger than their level's budget for an epoch. Packets of random size are not
/// checked: they are dropped.
fn check_packets(scheme: &Scheme, workload: &Workload, flows: &[FlowResult]) -> Result<()> {
    let Scheme { transport, limiter, .. } = scheme;
    let full = transport.data_bytes;
    let largest = |flow: &FlowResult| (flow.level, if flow.packets > 1 { full } else { flow.last });
    let of_flows = flows.iter().map(largest).collect::<BTreeSet<(u8, u16)>>().into_iter();
    let apps = workload.apps.iter().map(|app| app.largest_packet(full));
    for (level, bytes) in of_flows.chain(apps) {
        limiter.check_packet(level, bytes.into())?;
    }
    for source in &workload.sources {
        // Per-flow buckets do not limit datagrams.
        if let (Limiter::PerHost(_), Bytes::Fixed(bytes)) = (limiter, source.bytes) {
            limiter.check_packet(source.level, bytes.into())?;
        }
    }
    Ok(())
}

/// A packet has crossed its link; returns whether a host has it now.
#[inline]
fn arrive(network: &mut Network, hosts: &mut Hosts, handle: u32) -> bool {
    match network.arrive(handle, |flow, kind| hosts.path_key(flow, kind)) {
        Arrived::At(host) => hosts.takes(network, host, handle),
        Arrived::Passed => false,
        Arrived::Lost => {
            hosts.collect(network);
            false
        }
    }
}
