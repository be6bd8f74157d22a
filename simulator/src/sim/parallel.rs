// SPDX-License-Identifier: GPL-2.0-or-later
//! Parallel runs: a conservative parallel simulation by time windows.
//!
//! Each part has some of the switches with their hosts, and a simulation of its own. All parts run
//! for the least delay of a cable between two parts, then exchange the packets that left. Neither
//! the number of parts nor that of cores changes an outcome: events at one time are ordered by what
//! each part knows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::core::error::{Error, Result};
use crate::core::spin_barrier::SpinBarrier;
use crate::core::time::{Ps, END};
use crate::net::partition::{Crossing, Part, Partition};
use crate::net::topology::Topology;
use crate::sim::engine::Simulation;
use crate::sim::outcome::Outcome;
use crate::sim::progress::Progress;
use crate::sim::scheme::Scheme;
use crate::sim::watch::Watch;
use crate::sim::workload::Workload;

/// The longest time until whoever runs a simulation may look at signals: on a busy machine threads
/// may wait long for each other.
const PIECE: Duration = Duration::from_millis(250);
/// The length of a piece that only measures.
const TRIAL: Duration = Duration::from_millis(25);
/// One piece in so many is a trial of what was slower; at the beginning more are, since a network
/// that fills says little.
const TRIED: u32 = 16;

/// Chooses whether one thread or several run the parts: several are slower where they have no cores
/// of their own, or where a window has little work. No choice changes an outcome.
#[derive(Debug)]
struct ThreadChoice {
    /// Events a second when last measured, of one thread and of several; infinite: not yet.
    rates: [f64; 2],
    pieces: u32,
}

impl ThreadChoice {
    fn new() -> Self {
        ThreadChoice { rates: [f64::INFINITY; 2], pieces: 0 }
    }

    /// Whether several threads run the next piece, and for how long.
    fn next(&mut self) -> (bool, Duration) {
        self.pieces += 1;
        let faster = self.rates[1] >= self.rates[0];
        let trial = self.pieces % TRIED == 0 || [4, 8].contains(&self.pieces);
        let several = faster != trial;
        let measures = trial || self.rates[usize::from(several)].is_infinite();
        (several, if measures { TRIAL } else { PIECE })
    }

    fn measured(&mut self, several: bool, events: u64, took: Duration) {
        self.rates[usize::from(several)] = events as f64 / took.as_secs_f64().max(1e-9);
    }
}

/// A parallel run in progress.
#[derive(Debug)]
pub struct ParallelRun {
    parts: Vec<Simulation>,
    partition: Arc<Partition>,
    /// When cables fail or work again.
    changes: Vec<Ps>,
    threads: ThreadChoice,
}

impl ParallelRun {
    /// A run at time 0, in `parts` parts.
    ///
    /// # Errors
    /// As for [`Simulation::new`]; more parts than switches with hosts; a cable without delay
    /// between two parts; and whatever needs knowledge of all parts: sources, applications, pauses,
    /// and the schemes Homa and Aequitas.
    pub fn new(
        topology: &Topology,
        scheme: &Scheme,
        workload: &Workload,
        seed: u64,
        parts: u32,
    ) -> Result<Self> {
        let partition = Arc::new(Partition::new(topology, parts)?);
        let whole = [
            (!workload.sources.is_empty(), "sources"),
            (!workload.apps.is_empty(), "applications"),
            (scheme.pause.is_some(), "pauses"),
            (scheme.grants(), "receivers that grant"),
            (scheme.limiter.admits(), "admission by hosts"),
            (scheme.reads_telemetry(), "telemetry"),
        ];
        if let Some((_, what)) = whole.iter().find(|(has, _)| *has) {
            return Err(Error::new(format!("parts: a run with {what} must have one part")));
        }
        let its = |mine| Some(Part { partition: Arc::clone(&partition), mine });
        let part =
            |mine| Simulation::part(topology, scheme, workload, seed, &Watch::default(), its(mine));
        let parts = (0..parts as u16).map(part).collect::<Result<_>>()?;
        let changes = topology.changes.iter().map(|change| change.at).collect();
        Ok(ParallelRun { parts, partition, changes, threads: ThreadChoice::new() })
    }

    /// Runs about `most` of the events up to and including `last`, on at most `cores` cores, for
    /// about a quarter of a second; returns whether there are more. Running in pieces, on any number of
    /// cores, yields the same outcome.
    pub fn run_some(&mut self, last: Ps, most: u64, cores: usize) -> bool {
        let workers = cores.clamp(1, self.parts.len());
        if workers == 1 {
            return self.run_piece(last, most, workers, PIECE);
        }
        let (several, longest) = self.threads.next();
        let (begun, began) = (self.events(), Instant::now());
        let more = self.run_piece(last, most, if several { workers } else { 1 }, longest);
        self.threads.measured(several, self.events() - begun, began.elapsed());
        more
    }

    fn events(&self) -> u64 {
        self.parts.iter().map(Simulation::events).sum()
    }

    fn run_piece(&mut self, last: Ps, most: u64, workers: usize, longest: Duration) -> bool {
        let round = Round {
            window: self.partition.window,
            last: last.min(END),
            end: self.events().saturating_add(most),
            until: Instant::now() + longest,
            enough: AtomicBool::new(false),
            barrier: SpinBarrier::new(workers),
            boards: self.parts.iter().map(|_| Board::default()).collect(),
            mail: self.parts.iter().flat_map(|_| &self.parts).map(|_| Mutex::default()).collect(),
        };
        let mut groups: Vec<Vec<(usize, &mut Simulation)>> =
            (0..workers).map(|_| Vec::new()).collect();
        for (number, part) in self.parts.iter_mut().enumerate() {
            groups[number % workers].push((number, part));
        }
        let more = thread::scope(|scope| {
            let mut groups = groups.into_iter();
            let own = groups.next().unwrap_or_default();
            for group in groups {
                scope.spawn(|| round.work(group));
            }
            round.work(own)
        });
        if !more && last != Ps::MAX {
            for part in &mut self.parts {
                part.network.now = last;
            }
        }
        more
    }

    /// The progress of the run. `stop`: when it is to end, if set.
    pub fn progress(&self, stop: Option<Ps>) -> Progress {
        // A part only knows what is acknowledged of its own flows.
        let mut parts = self.parts.iter().map(|part| part.progress(None));
        let first = parts.next().unwrap_or_default();
        let all = parts.fold(first, |all, part| Progress {
            now: all.now.max(part.now),
            finished: all.finished + part.finished,
            flows: all.flows,
            share: all.share + part.share,
        });
        all.until(stop)
    }

    /// The outcome so far.
    pub fn outcome(&self) -> Outcome {
        let mut all = self.parts[0].outcome();
        for (number, part) in (1..).zip(self.parts[1..].iter().map(Simulation::outcome)) {
            let owns = |host: u32| self.partition.of_host[host as usize] == number;
            all.end = all.end.max(part.end);
            all.counters += part.counters;
            for (flow, its) in all.flows.iter_mut().zip(part.flows).filter(|(_, its)| owns(its.src))
            {
                *flow = its;
            }
        }
        // Each change of a cable is an event in every part.
        let changed = self.changes.iter().filter(|&&at| at <= all.end).count();
        all.counters.events -= (changed * (self.parts.len() - 1)) as u64;
        all
    }
}

/// What a part announces before each window.
#[derive(Debug, Default)]
struct Board {
    /// Time of its next event; `Ps::MAX`: none.
    next: AtomicU64,
    events: AtomicU64,
}

/// Packets on their way from one part to another.
type Mail = Mutex<Vec<Crossing>>;

/// State that threads share during a round.
struct Round {
    window: Ps,
    last: Ps,
    /// The number of events at which the round ends.
    end: u64,
    /// When the round has taken its time, and whether it has.
    until: Instant,
    enough: AtomicBool,
    barrier: SpinBarrier,
    boards: Vec<Board>,
    /// By destination part, then source part.
    mail: Vec<Mail>,
}

impl Round {
    /// Runs some of the parts, given with their numbers; returns whether there is more.
    fn work(&self, mut parts: Vec<(usize, &mut Simulation)>) -> bool {
        let _guard = self.barrier.guard();
        loop {
            for (number, part) in &parts {
                let board = &self.boards[*number];
                board.next.store(part.next().unwrap_or(Ps::MAX), Ordering::Relaxed);
                board.events.store(part.events(), Ordering::Relaxed);
            }
            if parts.first().is_some_and(|(number, _)| *number == 0) {
                self.enough.store(Instant::now() > self.until, Ordering::Relaxed);
            }
            self.barrier.wait();
            // All threads compute the same.
            let next = self
                .boards
                .iter()
                .map(|board| board.next.load(Ordering::Relaxed))
                .min()
                .unwrap_or(Ps::MAX);
            let events: u64 =
                self.boards.iter().map(|board| board.events.load(Ordering::Relaxed)).sum();
            if next > self.last {
                return false;
            }
            if events >= self.end || self.enough.load(Ordering::Relaxed) {
                return true;
            }
            let until = next.saturating_add(self.window - 1).min(self.last);
            for (number, part) in &mut parts {
                part.run_window(until);
                for to in (0..self.boards.len()).filter(|to| to != number) {
                    part.leave(to, &mut self.mail(to, *number));
                }
            }
            self.barrier.wait();
            for (number, part) in &mut parts {
                for from in (0..self.boards.len()).filter(|from| from != number) {
                    for crossing in self.mail(*number, from).drain(..) {
                        part.enter(crossing);
                    }
                }
            }
        }
    }

    fn mail(&self, to: usize, from: usize) -> MutexGuard<'_, Vec<Crossing>> {
        let mail = &self.mail[to * self.boards.len() + from];
        mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is measured first; then the faster one runs, and now and then the other is tried.
    #[test]
    fn the_faster_number_of_threads_runs() {
        let mut choice = ThreadChoice::new();
        let mut pieces = |several_rate: u64| -> Vec<(bool, Duration)> {
            let mut piece = || {
                let (several, longest) = choice.next();
                let events = if several { several_rate } else { 1_000 };
                choice.measured(several, events, Duration::from_secs(1));
                (several, longest)
            };
            (0..32).map(|_| piece()).collect()
        };
        let slower = pieces(500);
        assert_eq!(slower[..3], [(true, TRIAL), (false, TRIAL), (false, PIECE)]);
        assert_eq!(slower.iter().filter(|(several, _)| *several).count(), 5);
        // As soon as a trial finds them faster, several run.
        let faster = pieces(2_000);
        assert_eq!(faster[14..17], [(false, PIECE), (true, TRIAL), (true, PIECE)]);
        assert_eq!(faster[31], (false, TRIAL));
    }
}
