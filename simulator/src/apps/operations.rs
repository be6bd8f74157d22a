// SPDX-License-Identifier: GPL-2.0-or-later
//! Operations that wait for each other, and the patterns that are made of them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::apps::check::message;
use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Octets};

/// An operation of a rank. It starts when those that it waits for, by their places in the list,
/// have ended: a message has ended for its sender when all of it is acknowledged, and for its
/// receiver when all of it has arrived. A rank can wait for its own operations and for messages to
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Operation {
    /// A message.
    Send {
        /// Its sender.
        rank: u32,
        /// Its receiver.
        to: u32,
        /// On the wire.
        #[serde(with = "In::<Octets>")]
        bytes: u64,
        /// What it waits for.
        after: Vec<u32>,
    },
    /// A time of computing. Those of one processor of a rank take place one after another.
    Calc {
        /// Who computes.
        rank: u32,
        /// How long.
        #[serde(with = "In::<Duration>")]
        time: Ps,
        /// Number of the rank's processor.
        cpu: u32,
        /// What it waits for.
        after: Vec<u32>,
    },
}

impl Operation {
    pub(crate) fn rank(&self) -> u32 {
        let (Operation::Send { rank, .. } | Operation::Calc { rank, .. }) = self;
        *rank
    }

    pub(crate) fn after(&self) -> &[u32] {
        let (Operation::Send { after, .. } | Operation::Calc { after, .. }) = self;
        after
    }
}

/// What ranks do. In the collectives, as in Thakur, Rabenseifner and Gropp, "Optimization of
/// Collective Communication Operations in MPICH" (2005), reducing takes no time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Pattern {
    /// All-reduce by reduce-scatter and all-gather in a ring: n - 1 steps each, of an n-th of the
    /// data.
    RingAllReduce {
        /// On the wire, of a rank's data; if ranks do not divide them, the first parts are a byte
        /// longer.
        #[serde(with = "In::<Octets>")]
        bytes: u64,
    },
    /// All-reduce by a reduction to rank 0 and a broadcast, both along a binomial tree. A rank
    /// broadcasts to one other at a time.
    TreeAllReduce {
        /// On the wire, of a rank's data.
        #[serde(with = "In::<Octets>")]
        bytes: u64,
    },
    /// All-to-all by pairwise exchange: in step k a rank sends to the k-th after it, once it has
    /// the message of step k - 1.
    AllToAll {
        /// On the wire, of a message.
        #[serde(with = "In::<Octets>")]
        bytes: u64,
    },
    /// Any operations, such as those of a file in GOAL.
    Goal {
        /// In any order.
        operations: Vec<Operation>,
    },
}

/// The most operations.
const MAX_OPERATIONS: u64 = 1 << 24;

impl Pattern {
    pub(crate) fn check(&self, ranks: u32) -> Result<()> {
        let n = u64::from(ranks);
        let operations = match self {
            Pattern::RingAllReduce { bytes } => {
                message("ring", "part for each host", bytes / n)?;
                2 * n * (n - 1)
            }
            Pattern::TreeAllReduce { bytes } => {
                message("tree", "message", *bytes)?;
                2 * (n - 1)
            }
            Pattern::AllToAll { bytes } => {
                message("all-to-all", "message", *bytes)?;
                n * (n - 1)
            }
            Pattern::Goal { operations } => operations.len() as u64,
        };
        if operations == 0 || operations > MAX_OPERATIONS {
            return Err(Error::new(format!("{operations} operations must be between 1 and 2^24")));
        }
        match self {
            Pattern::Goal { operations } => check_graph(operations, ranks),
            _ => Ok(()),
        }
    }

    /// The bytes of its largest message.
    pub(crate) fn largest(&self, ranks: u32) -> u64 {
        match self {
            Pattern::RingAllReduce { bytes } => bytes.div_ceil(ranks.max(1).into()),
            Pattern::TreeAllReduce { bytes } | Pattern::AllToAll { bytes } => *bytes,
            Pattern::Goal { operations } => {
                let bytes = operations.iter().map(|operation| match operation {
                    Operation::Send { bytes, .. } => *bytes,
                    Operation::Calc { .. } => 0,
                });
                bytes.max().unwrap_or(0)
            }
        }
    }

    pub(crate) fn operations(&self, ranks: u32) -> Vec<Operation> {
        match self {
            Pattern::RingAllReduce { bytes } => ring(ranks, *bytes),
            Pattern::TreeAllReduce { bytes } => tree(ranks, *bytes),
            Pattern::AllToAll { bytes } => all_to_all(ranks, *bytes),
            Pattern::Goal { operations } => operations.clone(),
        }
    }
}

/// In step s, rank r sends part (r - s) mod n to the next rank, once it has its own of step s - 1.
fn ring(n: u32, bytes: u64) -> Vec<Operation> {
    let part = |number: u32| {
        let n = u64::from(n);
        bytes / n + u64::from(u64::from(number) < bytes % n)
    };
    let step = |s: u32| {
        (0..n).map(move |rank| Operation::Send {
            rank,
            to: (rank + 1) % n,
            bytes: part((rank + 2 * n - s) % n),
            after: if s == 0 { Vec::new() } else { vec![(s - 1) * n + (rank + n - 1) % n] },
        })
    };
    (0..2 * (n - 1)).flat_map(step).collect()
}

/// With r's lowest bit k, rank r sends to r - k once it has the sums of r + 1, r + 2, ... r + k/2.
/// The broadcast goes back along the same edges, the longest first.
fn tree(n: u32, bytes: u64) -> Vec<Operation> {
    // Rank r's part of the reduction is operation r - 1, and its copy comes with n - 2 + r.
    let children = |rank: u32| {
        let below = if rank == 0 { n } else { 1 << rank.trailing_zeros() };
        let distances = (0..32).map(|bit| 1u32 << bit).take_while(move |&k| k < below);
        distances.map(move |k| rank + k).filter(move |&child| child < n)
    };
    let parent = |rank: u32| rank & (rank - 1);
    let sums = |rank: u32| children(rank).map(|child| child - 1).collect::<Vec<u32>>();
    let copy = |rank: u32| n - 2 + rank;
    let reduce =
        (1..n).map(|rank| Operation::Send { rank, to: parent(rank), bytes, after: sums(rank) });
    let broadcast = (1..n).map(|to| {
        let rank = parent(to);
        let mut after = if rank == 0 { sums(0) } else { vec![copy(rank)] };
        after.extend(children(rank).find(|&sibling| sibling > to).map(copy));
        Operation::Send { rank, to, bytes, after }
    });
    reduce.chain(broadcast).collect()
}

fn all_to_all(n: u32, bytes: u64) -> Vec<Operation> {
    let step = |k: u32| {
        (0..n).map(move |rank| Operation::Send {
            rank,
            to: (rank + k) % n,
            bytes,
            after: if k == 1 { Vec::new() } else { vec![(k - 2) * n + (rank + n - (k - 1)) % n] },
        })
    };
    (1..n).flat_map(step).collect()
}

fn check_graph(operations: &[Operation], ranks: u32) -> Result<()> {
    for (number, operation) in operations.iter().enumerate() {
        check_operation(number, operation, operations, ranks)
            .map_err(|error| Error::new(format!("operation {number}: {error}")))?;
    }
    match in_a_circle(operations) {
        Some(number) => {
            Err(Error::new(format!("operation {number}: it waits for itself, through others")))
        }
        None => Ok(()),
    }
}

fn check_operation(
    number: usize,
    operation: &Operation,
    operations: &[Operation],
    ranks: u32,
) -> Result<()> {
    let rank = operation.rank();
    let is_rank = |rank: u32| {
        if rank < ranks {
            return Ok(());
        }
        Err(Error::new(format!("there is no rank {rank} among {ranks}")))
    };
    is_rank(rank)?;
    if let Operation::Send { to, bytes, .. } = operation {
        is_rank(*to)?;
        if *to == rank {
            return Err(Error::new(format!("rank {rank} sends to itself")));
        }
        message(&format!("to {to}"), "message", *bytes)?;
    }
    for &other in operation.after() {
        match operations.get(other as usize) {
            None => {
                let most = operations.len();
                return Err(Error::new(format!("there is no operation {other} among {most}")));
            }
            Some(_) if other as usize == number => {
                return Err(Error::new("it waits for itself"));
            }
            Some(Operation::Send { to, .. }) if *to == rank => {}
            Some(before) if before.rank() == rank => {}
            Some(_) => {
                return Err(Error::new(format!(
                    "rank {rank} cannot wait for operation {other}, which it neither carries out \
                     nor receives"
                )));
            }
        }
    }
    Ok(())
}

/// An operation that waits for itself through others.
pub(crate) fn in_a_circle(list: &[Operation]) -> Option<usize> {
    let operations = Operations::new(list.to_vec());
    let mut waits = operations.waits.clone();
    let mut ready: Vec<u32> =
        (0..waits.len() as u32).filter(|&number| waits[number as usize] == 0).collect();
    while let Some(number) = ready.pop() {
        let both = operations.after_arrival(number).chain(operations.after_end(number));
        for &next in both.map(|at| &operations.dependents[at]) {
            waits[next as usize] -= 1;
            if waits[next as usize] == 0 {
                ready.push(next);
            }
        }
    }
    // One that only waits for a circle is not in it: go back until an operation comes twice.
    let mut seen = vec![false; list.len()];
    let mut at = waits.iter().position(|&left| left > 0)?;
    while !seen[at] {
        seen[at] = true;
        let before = list[at].after().iter().find(|&&before| waits[before as usize] > 0)?;
        at = *before as usize;
    }
    Some(at)
}

/// Operations with those that wait for each.
#[derive(Debug)]
pub(crate) struct Operations {
    pub list: Vec<Operation>,
    /// By operation: how many it waits for.
    pub waits: Vec<u32>,
    /// Those that wait: for each operation the other ranks' and then its own rank's.
    pub dependents: Vec<u32>,
    /// Two for each operation: where its part of `dependents` begins, and where its own rank's do.
    begins: Vec<u32>,
}

impl Operations {
    pub fn new(list: Vec<Operation>) -> Self {
        let place = |number: usize, before: u32| {
            2 * before as usize + usize::from(list[before as usize].rank() == list[number].rank())
        };
        let edges =
            |number: usize| list[number].after().iter().map(move |&before| (number, before));
        let mut begins = vec![0; 2 * list.len() + 1];
        for (number, before) in (0..list.len()).flat_map(edges) {
            begins[place(number, before) + 1] += 1;
        }
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        let mut next = begins.clone();
        let mut dependents = vec![0; begins[2 * list.len()] as usize];
        for (number, before) in (0..list.len()).flat_map(edges) {
            let next = &mut next[place(number, before)];
            dependents[*next as usize] = number as u32;
            *next += 1;
        }
        let waits = list.iter().map(|operation| operation.after().len() as u32).collect();
        Operations { list, waits, dependents, begins }
    }

    fn range(&self, part: usize) -> Range<usize> {
        self.begins[part] as usize..self.begins[part + 1] as usize
    }

    /// The places of those that wait for a message at its receiver.
    pub fn after_arrival(&self, number: u32) -> Range<usize> {
        self.range(2 * number as usize)
    }

    /// The places of those that wait on its own rank.
    pub fn after_end(&self, number: u32) -> Range<usize> {
        self.range(2 * number as usize + 1)
    }
}
