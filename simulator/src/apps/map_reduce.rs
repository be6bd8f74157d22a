// SPDX-License-Identifier: GPL-2.0-or-later
//! A job of maps, a shuffle and reducers, as Hadoop runs it.

use serde::{Deserialize, Serialize};

use crate::apps::check::{count, hosts, level, schedule};
use crate::apps::net::{Message, Net};
use crate::apps::time::Span;
use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{In, Instant, Octets};
use crate::host::result::FlowResult;
use crate::host::sockets::Event;
use crate::net::topology::Topology;

/// Maps run in the nodes' slots, in order; each reducer fetches its share of every map that has ended, in random order and a few at a
/// time, and reduces when it has all. A fetch is one flow from the map's node to the reducer's; what asks for it is not simulated.
/// What is on the reducer's node already takes no time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapReduce {
    /// Numbers of the hosts. Reducers are on them in turn; so are the first maps, and then a node whose map has ended takes the next.
    pub nodes: Vec<u32>,
    /// Of all fetches; 0 is served first.
    pub level: u8,
    /// When the first maps begin.
    #[serde(with = "In::<Instant>")]
    pub first: Ps,
    /// How many maps.
    pub maps: u32,
    /// Maps that a node runs at a time.
    pub map_slots: u32,
    /// How long one runs.
    pub map_time: Span,
    /// Bytes on the wire of a map's output; the first reducers get a byte more if they do not divide it.
    #[serde(with = "In::<Octets>")]
    pub map_bytes: u64,
    /// How many reducers.
    pub reducers: u32,
    /// Fetches that a reducer has under way at a time.
    pub parallel_copies: u32,
    /// How long a reducer runs once it has all.
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
        let (fetches, share) = (u64::from(self.maps) * u64::from(self.reducers), self.map_bytes / u64::from(self.reducers));
        if fetches >= u64::from(MOST_FETCHES) {
            return Err(Error::new(format!("{place}: {fetches} fetches are not below 2^30")));
        }
        if share == 0 || share >= 1 << 31 {
            return Err(Error::new(format!("{place}: a share of {share} bytes for each reducer is not between 1 and 2^31 - 1")));
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

/// What has become of a job; none is what has not happened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MapReduceResult {
    /// When each map ended.
    pub mapped: Vec<Option<Ps>>,
    /// When each reducer had all.
    pub shuffled: Vec<Option<Ps>>,
    /// When each reducer ended.
    pub reduced: Vec<Option<Ps>>,
    /// Bytes that each node has fetched over the network.
    pub fetched: Vec<u64>,
    /// Bytes that were on their node already.
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
    /// Maps that have ended and are not asked for.
    available: Vec<u32>,
    copying: u32,
    have: u32,
}

#[derive(Debug)]
pub(crate) struct Job {
    spec: MapReduce,
    rng: Rng,
    /// The place of each map's node in the list, of those that have begun.
    places: Vec<u32>,
    reducers: Vec<Reducer>,
    /// The reducer of each fetch.
    fetchers: Vec<u32>,
    results: MapReduceResult,
}

/// Tokens of timers: the end of a map or of a reducer.
const NUMBER: u32 = (1 << 30) - 1;
const MAP: u32 = 0;
const REDUCE: u32 = 2 << 30;
const BEGIN: u32 = u32::MAX;
/// Fetches are fewer.
const MOST_FETCHES: u32 = 1 << 30;

impl Job {
    pub fn begin(spec: MapReduce, net: &mut Net) -> Self {
        net.wake(spec.first, BEGIN);
        let reducer = |number| Reducer { rng: net.stream(1 + number), available: Vec::new(), copying: 0, have: 0 };
        Job {
            rng: net.stream(0),
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

    pub fn act(&mut self, event: Event, net: &mut Net) {
        match event {
            Event::Timer(BEGIN) => {
                let nodes = self.spec.nodes.len() as u64;
                let slots = nodes * u64::from(self.spec.map_slots);
                for slot in 0..slots.min(self.spec.maps.into()) {
                    self.map((slot % nodes) as u32, net);
                }
            }
            Event::Timer(token) if token & !NUMBER == MAP => self.mapped(token, net),
            Event::Timer(token) => self.results.reduced[(token & NUMBER) as usize] = Some(net.now()),
            Event::Received(fetch) => self.fetched(fetch, net),
            Event::Acknowledged { token, .. } => self.results.fetches[token as usize].finish = Some(net.now()),
            Event::Arrived { .. } | Event::Dropped(_) => {}
        }
    }

    /// A node begins the next map, if there is one.
    fn map(&mut self, place: u32, net: &mut Net) {
        let number = self.places.len() as u32;
        if number < self.spec.maps {
            self.places.push(place);
            net.wake(net.now() + self.spec.map_time.draw(&mut self.rng), MAP | number);
        }
    }

    fn mapped(&mut self, number: u32, net: &mut Net) {
        self.results.mapped[number as usize] = Some(net.now());
        self.map(self.places[number as usize], net);
        for reducer in 0..self.spec.reducers {
            if self.places[number as usize] == self.place(reducer) {
                self.results.local += self.spec.share(reducer);
                self.has(reducer, net);
            } else {
                self.reducers[reducer as usize].available.push(number);
                self.copy(reducer, net);
            }
        }
    }

    /// The place of a reducer's node in the list.
    fn place(&self, reducer: u32) -> u32 {
        reducer % self.spec.nodes.len() as u32
    }

    /// A reducer fetches as much as it may.
    fn copy(&mut self, number: u32, net: &mut Net) {
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
                key: net.keys(1),
            };
            let fetch = self.fetchers.len() as u32;
            self.fetchers.push(number);
            self.results.fetches.push(FlowResult {
                start: net.now(),
                finish: None,
                packets: net.packets(message.bytes),
                src: message.from,
                dst: message.to,
                level: message.level,
                transport: 0,
                last: net.last(message.bytes),
                deadline: None,
            });
            net.send(message, fetch);
        }
    }

    fn fetched(&mut self, fetch: u32, net: &mut Net) {
        let number = self.fetchers[fetch as usize];
        let place = self.place(number);
        self.results.fetched[place as usize] += self.spec.share(number);
        self.reducers[number as usize].copying -= 1;
        self.copy(number, net);
        self.has(number, net);
    }

    /// A reducer has the share of one more map.
    fn has(&mut self, number: u32, net: &mut Net) {
        let reducer = &mut self.reducers[number as usize];
        reducer.have += 1;
        if reducer.have == self.spec.maps {
            self.results.shuffled[number as usize] = Some(net.now());
            net.wake(net.now() + self.spec.reduce_time.draw(&mut reducer.rng), REDUCE | number);
        }
    }

    pub fn results(&self) -> MapReduceResult {
        self.results.clone()
    }
}
