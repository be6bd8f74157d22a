// SPDX-License-Identifier: GPL-2.0-or-later
//! MapReduce: maps, a shuffle and reducers, as Hadoop runs them.

use serde::{Deserialize, Serialize};

use crate::apps::check::{count, hosts, level, schedule};
use crate::apps::context::{Context, Message};
use crate::apps::time::Span;
use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{In, Instant, Octets};
use crate::host::result::FlowResult;
use crate::host::sockets::Event;
use crate::net::topology::Topology;

/// Maps run in the nodes' slots, in order. Each reducer fetches its share of every finished map, in
/// random order and a few at a time, and reduces once it has all. A fetch is one flow from the
/// map's node to the reducer's; the request for it is not simulated. Output on the reducer's own
/// node takes no time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapReduce {
    /// Numbers of the hosts. Reducers are placed on them in turn, and so are the first maps; later
    /// maps go to whichever node finished one.
    pub nodes: Vec<u32>,
    /// Level of all fetches; 0 is served first.
    pub level: u8,
    /// Start of the first maps.
    #[serde(with = "In::<Instant>")]
    pub first: Ps,
    /// Number of maps.
    pub maps: u32,
    /// Maps that a node runs at a time.
    pub map_slots: u32,
    /// Duration of a map.
    pub map_time: Span,
    /// Bytes of a map's output on the wire; if reducers do not divide it, the first ones get a byte
    /// more.
    #[serde(with = "In::<Octets>")]
    pub map_bytes: u64,
    /// Number of reducers.
    pub reducers: u32,
    /// Fetches that a reducer runs at a time.
    pub parallel_copies: u32,
    /// Duration of a reducer after the shuffle.
    pub reduce_time: Span,
}

impl MapReduce {
    pub(crate) fn check(&self, topology: &Topology) -> Result<()> {
        let place = "MapReduce";
        hosts(place, &self.nodes, 1, topology)?;
        level(place, self.level)?;
        let counts = [
            ("maps", self.maps),
            ("slots for maps", self.map_slots),
            ("reducers", self.reducers),
            ("parallel copies", self.parallel_copies),
        ];
        for (what, number) in counts {
            count(place, what, number)?;
        }
        let (fetches, share) = (
            u64::from(self.maps) * u64::from(self.reducers),
            self.map_bytes / u64::from(self.reducers),
        );
        if fetches >= u64::from(MAX_FETCHES) {
            return Err(Error::new(format!("{place}: {fetches} fetches must be below 2^30")));
        }
        if share == 0 || share >= 1 << 31 {
            return Err(Error::new(format!(
                "{place}: a share of {share} bytes for each reducer must be between 1 and 2^31 - 1"
            )));
        }
        schedule(place, self.first, self.map_time.mean(), self.maps.into())?;
        schedule(place, self.first, self.reduce_time.mean(), 1)
    }

    /// Bytes that a reducer gets from each map.
    fn share(&self, reducer: u32) -> u64 {
        let reducers = u64::from(self.reducers);
        self.map_bytes / reducers + u64::from(u64::from(reducer) < self.map_bytes % reducers)
    }
}

/// The result of a job; none: it has not happened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MapReduceResult {
    /// When each map ended.
    pub mapped: Vec<Option<Ps>>,
    /// When each reducer had all its input.
    pub shuffled: Vec<Option<Ps>>,
    /// When each reducer ended.
    pub reduced: Vec<Option<Ps>>,
    /// Bytes that each node has fetched over the network.
    pub fetched: Vec<u64>,
    /// Bytes that were on the reducer's node already.
    pub local: u64,
    /// All fetches over the network, in the order of their start.
    pub fetches: Vec<FlowResult>,
}

impl MapReduceResult {
    /// When the last reducer ended.
    pub fn end(&self) -> Option<Ps> {
        self.reduced.iter().copied().collect::<Option<Vec<Ps>>>()?.into_iter().max()
    }
}

#[derive(Debug)]
struct Reducer {
    rng: Rng,
    /// Finished maps that are not fetched yet.
    available: Vec<u32>,
    copying: u32,
    have: u32,
}

#[derive(Debug)]
pub(crate) struct MapReduceRun {
    spec: MapReduce,
    rng: Rng,
    /// By started map: the place of its node in the list.
    places: Vec<u32>,
    reducers: Vec<Reducer>,
    /// By fetch: its reducer.
    fetchers: Vec<u32>,
    results: MapReduceResult,
}

/// Tokens of timers: the end of a map or a reducer.
const NUMBER: u32 = (1 << 30) - 1;
const MAP: u32 = 0;
const REDUCE: u32 = 2 << 30;
const BEGIN: u32 = u32::MAX;
/// The most fetches.
const MAX_FETCHES: u32 = 1 << 30;

impl MapReduceRun {
    pub fn begin(spec: MapReduce, ctx: &mut Context) -> Self {
        ctx.wake(spec.first, BEGIN);
        let reducer = |number| Reducer {
            rng: ctx.stream(1 + number),
            available: Vec::new(),
            copying: 0,
            have: 0,
        };
        MapReduceRun {
            rng: ctx.stream(0),
            places: Vec::new(),
            reducers: (0..spec.reducers).map(reducer).collect(),
            fetchers: Vec::new(),
            results: MapReduceResult {
                mapped: vec![None; spec.maps as usize],
                shuffled: vec![None; spec.reducers as usize],
                reduced: vec![None; spec.reducers as usize],
                fetched: vec![0; spec.nodes.len()],
                ..MapReduceResult::default()
            },
            spec,
        }
    }

    pub fn act(&mut self, event: Event, ctx: &mut Context) {
        match event {
            Event::Timer(BEGIN) => {
                let nodes = self.spec.nodes.len() as u64;
                let slots = nodes * u64::from(self.spec.map_slots);
                for slot in 0..slots.min(self.spec.maps.into()) {
                    self.map((slot % nodes) as u32, ctx);
                }
            }
            Event::Timer(token) if token & !NUMBER == MAP => self.mapped(token, ctx),
            Event::Timer(token) => {
                self.results.reduced[(token & NUMBER) as usize] = Some(ctx.now())
            }
            Event::Received(fetch) => self.fetched(fetch, ctx),
            Event::Acknowledged { token, .. } => {
                self.results.fetches[token as usize].finish = Some(ctx.now())
            }
            Event::Arrived { .. } | Event::Dropped(_) => {}
        }
    }

    /// A node starts the next map, if any.
    fn map(&mut self, place: u32, ctx: &mut Context) {
        let number = self.places.len() as u32;
        if number < self.spec.maps {
            self.places.push(place);
            ctx.wake(ctx.now() + self.spec.map_time.draw(&mut self.rng), MAP | number);
        }
    }

    fn mapped(&mut self, number: u32, ctx: &mut Context) {
        self.results.mapped[number as usize] = Some(ctx.now());
        self.map(self.places[number as usize], ctx);
        for reducer in 0..self.spec.reducers {
            if self.places[number as usize] == self.place(reducer) {
                self.results.local += self.spec.share(reducer);
                self.has(reducer, ctx);
            } else {
                self.reducers[reducer as usize].available.push(number);
                self.copy(reducer, ctx);
            }
        }
    }

    /// The place of a reducer's node in the list.
    fn place(&self, reducer: u32) -> u32 {
        reducer % self.spec.nodes.len() as u32
    }

    /// A reducer starts as many fetches as it may.
    fn copy(&mut self, number: u32, ctx: &mut Context) {
        let place = self.place(number);
        let reducer = &mut self.reducers[number as usize];
        while reducer.copying < self.spec.parallel_copies && !reducer.available.is_empty() {
            let drawn = reducer.rng.below(reducer.available.len() as u64) as usize;
            let map = reducer.available.swap_remove(drawn);
            reducer.copying += 1;
            let message = Message {
                from: self.spec.nodes[self.places[map as usize] as usize],
                to: self.spec.nodes[place as usize],
                level: self.spec.level,
                bytes: self.spec.share(number),
                key: ctx.keys(1),
            };
            let fetch = self.fetchers.len() as u32;
            self.fetchers.push(number);
            self.results.fetches.push(FlowResult {
                start: ctx.now(),
                finish: None,
                packets: ctx.packets(message.bytes),
                src: message.from,
                dst: message.to,
                level: message.level,
                transport: 0,
                last: ctx.last(message.bytes),
                deadline: None,
            });
            ctx.send(message, fetch);
        }
    }

    fn fetched(&mut self, fetch: u32, ctx: &mut Context) {
        let number = self.fetchers[fetch as usize];
        let place = self.place(number);
        self.results.fetched[place as usize] += self.spec.share(number);
        self.reducers[number as usize].copying -= 1;
        self.copy(number, ctx);
        self.has(number, ctx);
    }

    /// A reducer has the output of one more map.
    fn has(&mut self, number: u32, ctx: &mut Context) {
        let reducer = &mut self.reducers[number as usize];
        reducer.have += 1;
        if reducer.have == self.spec.maps {
            self.results.shuffled[number as usize] = Some(ctx.now());
            ctx.wake(ctx.now() + self.spec.reduce_time.draw(&mut reducer.rng), REDUCE | number);
        }
    }

    pub fn results(&self) -> MapReduceResult {
        self.results.clone()
    }
}
