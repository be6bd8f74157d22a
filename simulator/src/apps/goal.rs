// SPDX-License-Identifier: GPL-2.0-or-later
//! GOAL: text files of operations, as `LogGOPSim` and ATLAHS read them (Hoefler, Siebert and
//! Lumsdaine, "Group Operation Assembly Language", ICPP'09).
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! l1: calc 100 cpu 0
//! l2: send 10b to 1 tag 0
//! l2 requires l1
//! }
//! rank 1 {
//! l1: recv 10b from 0 tag 0
//! }
//! ```
//!
//! A receive is matched with the first message of its sender, receiver and tag, in the order of the
//! file. `requires` waits for an operation's end, `irequires` for its start. Computing times are
//! ns. What follows `//` or `#` is a comment. Network interfaces (`nic`) must be 0.

use std::collections::{HashMap, VecDeque};

use crate::apps::operations::{in_a_circle, Operation};
use crate::core::error::{Error, Result};
use crate::core::time::NS;

/// The operations of a GOAL file, and its number of ranks. A receive becomes a computing time of 0.
///
/// # Errors
/// What is wrong, with the line, after `place`: `"a.goal:7: ..."`.
pub fn read_goal(place: &str, text: &str) -> Result<(u32, Vec<Operation>)> {
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(text.lines()) {
        reader.line = number;
        reader.read(line).map_err(|error| Error::new(format!("{place}:{number}: {error}")))?;
    }
    let at = |(line, error): (usize, String)| Error::new(format!("{place}:{line}: {error}"));
    reader.finish().map_err(at)
}

/// An operation's line, dependencies and what they wait for.
struct Entry {
    line: usize,
    operation: Operation,
    /// The operation that another starts with, if one `irequires` it.
    start: Option<u32>,
}

#[derive(Default)]
struct Reader {
    line: usize,
    ranks: Option<u32>,
    /// The rank whose braces are open.
    rank: Option<u32>,
    labels: HashMap<String, u32>,
    begun: HashMap<u32, usize>,
    entries: Vec<Entry>,
    /// By sender, receiver and tag, with their bytes.
    sends: HashMap<(u32, u32, u32), VecDeque<(u32, u64)>>,
    receives: Vec<(u32, (u32, u32, u32), u64)>,
}

impl Reader {
    fn read(&mut self, line: &str) -> Result<()> {
        let line = line.trim_start_matches('\u{feff}');
        let end = [line.find("//"), line.find('#')].into_iter().flatten().min();
        let line = line[..end.unwrap_or(line.len())].trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), self.rank) {
            ([], _) => Ok(()),
            (["num_ranks", count], None) => self.count(count),
            (["rank", number, "{"], None) => self.open(number),
            (["}"], Some(_)) => {
                self.rank = None;
                self.labels.clear();
                Ok(())
            }
            ([label, "requires", other], Some(_)) => self.depend(label, other, false),
            ([label, "irequires", other], Some(_)) => self.depend(label, other, true),
            ([label, rest @ ..], Some(rank)) if label.ends_with(':') => {
                self.operation(rank, label.trim_end_matches(':'), rest)
            }
            (_, None) => {
                Err(Error::new(format!("\"{line}\" is neither \"num_ranks N\" nor \"rank N {{\"")))
            }
            (_, Some(_)) => Err(Error::new(format!(
                "\"{line}\" is neither an operation (\"l1: send 8b to 1 tag 0\", \"l1: recv 8b \
                 from 0 tag 0\", \"l1: calc 100\"), nor \"l2 requires l1\", nor \"}}\""
            ))),
        }
    }

    fn count(&mut self, count: &str) -> Result<()> {
        if self.ranks.is_some() {
            return Err(Error::new("num_ranks is there twice"));
        }
        self.ranks = Some(number("num_ranks", count)?);
        Ok(())
    }

    fn open(&mut self, word: &str) -> Result<()> {
        let rank = self.known(word)?;
        if let Some(line) = self.begun.insert(rank, self.line) {
            return Err(Error::new(format!("rank {rank} is in line {line} already")));
        }
        self.rank = Some(rank);
        Ok(())
    }

    /// A rank that there is.
    fn known(&self, word: &str) -> Result<u32> {
        let ranks = self.ranks.ok_or_else(|| Error::new("num_ranks must come first"))?;
        let rank: u32 = number("the rank", word)?;
        if rank >= ranks {
            return Err(Error::new(format!("there is no rank {rank} among {ranks}")));
        }
        Ok(rank)
    }

    fn label(&self, label: &str) -> Result<u32> {
        let place = self.labels.get(label);
        place.copied().ok_or_else(|| Error::new(format!("there is no label {label} above")))
    }

    fn push(&mut self, operation: Operation) -> u32 {
        self.entries.push(Entry { line: self.line, operation, start: None });
        self.entries.len() as u32 - 1
    }

    fn operation(&mut self, rank: u32, label: &str, words: &[&str]) -> Result<()> {
        if self.labels.contains_key(label) {
            return Err(Error::new(format!("rank {rank} has the label {label} twice")));
        }
        let place = self.operation_of(rank, words)?;
        self.labels.insert(label.to_owned(), place);
        Ok(())
    }

    fn operation_of(&mut self, rank: u32, words: &[&str]) -> Result<u32> {
        Ok(match words {
            ["calc", time, options @ ..] => {
                let ns: u64 = number("the time in ns", time)?;
                let time = ns.checked_mul(NS).filter(|&ps| ps <= MAX_TIME);
                let time = time.ok_or_else(|| Error::new(format!("{ns} ns are above 1000 s")))?;
                let (_, cpu) = settings(options)?;
                self.push(Operation::Calc { rank, time, cpu, after: Vec::new() })
            }
            ["send", size, "to", other, options @ ..] => {
                let (to, bytes) = (self.partner(rank, other)?, size_of(size)?);
                let (tag, _) = settings(options)?;
                // The transport sends at least one packet.
                let send = Operation::Send { rank, to, bytes: bytes.max(1), after: Vec::new() };
                let place = self.push(send);
                self.sends.entry((rank, to, tag)).or_default().push_back((place, bytes));
                place
            }
            ["recv", size, "from", other, options @ ..] => {
                let (from, bytes) = (self.partner(rank, other)?, size_of(size)?);
                let (tag, _) = settings(options)?;
                let place = self.push(Operation::Calc { rank, time: 0, cpu: 0, after: Vec::new() });
                self.receives.push((place, (from, rank, tag), bytes));
                place
            }
            _ => {
                return Err(Error::new(format!(
                    "\"{}\" is neither \"send 8b to 1 tag 0\", nor \"recv 8b from 0 tag 0\", nor \
                     \"calc 100\"",
                    words.join(" ")
                )))
            }
        })
    }

    fn partner(&self, rank: u32, word: &str) -> Result<u32> {
        let other = self.known(word)?;
        if other == rank {
            return Err(Error::new(format!("rank {rank} sends to itself")));
        }
        Ok(other)
    }

    fn depend(&mut self, label: &str, other: &str, on_start: bool) -> Result<()> {
        let (place, mut before) = (self.label(label)?, self.label(other)?);
        if place == before {
            return Err(Error::new(format!("{label} waits for itself")));
        }
        if on_start {
            before = self.start_of(before);
        }
        // What waits for an operation's start already waits in that start.
        let waiting = self.entries[place as usize].start.unwrap_or(place);
        after(&mut self.entries[waiting as usize].operation).push(before);
        Ok(())
    }

    /// The operation that an operation starts with: a computing time of 0, which waits for what the
    /// operation waited for.
    fn start_of(&mut self, place: u32) -> u32 {
        if let Some(start) = self.entries[place as usize].start {
            return start;
        }
        let rank = self.entries[place as usize].operation.rank();
        let moved = std::mem::take(after(&mut self.entries[place as usize].operation));
        let start = self.push(Operation::Calc { rank, time: 0, cpu: 0, after: moved });
        let entry = &mut self.entries[place as usize];
        entry.start = Some(start);
        after(&mut entry.operation).push(start);
        start
    }

    fn finish(mut self) -> std::result::Result<(u32, Vec<Operation>), (usize, String)> {
        let last = self.line.max(1);
        if let Some(rank) = self.rank {
            return Err((last, format!("rank {rank} needs a closing brace")));
        }
        let ranks = self.ranks.ok_or((last, "there is no num_ranks".to_owned()))?;
        for (place, key, bytes) in std::mem::take(&mut self.receives) {
            let line = self.entries[place as usize].line;
            let (from, to, tag) = key;
            let first = self.sends.get_mut(&key).and_then(VecDeque::pop_front);
            let what = format!("message from {from} to {to} with tag {tag}");
            let (origin, size) =
                first.ok_or((line, format!("there is no {what} left to receive")))?;
            if size > bytes {
                return Err((line, format!("the {what} has {size} bytes, not {bytes}")));
            }
            after(&mut self.entries[place as usize].operation).push(origin);
        }
        let unread = self.sends.values().filter_map(VecDeque::front).map(|&(place, _)| place);
        if let Some(place) = unread.min() {
            return Err((self.entries[place as usize].line, "nobody receives this message".into()));
        }
        let (lines, operations): (Vec<usize>, Vec<Operation>) =
            self.entries.into_iter().map(|entry| (entry.line, entry.operation)).unzip();
        match in_a_circle(&operations) {
            Some(number) => Err((lines[number], "it waits for itself, through others".into())),
            None => Ok((ranks, operations)),
        }
    }
}

/// The longest computing time, in ps.
const MAX_TIME: u64 = 1_000_000_000_000_000;

fn after(operation: &mut Operation) -> &mut Vec<u32> {
    let (Operation::Send { after, .. } | Operation::Calc { after, .. }) = operation;
    after
}

fn number<N: std::str::FromStr>(what: &str, word: &str) -> Result<N> {
    word.parse().map_err(|_| Error::new(format!("{what} must be a whole number (got {word})")))
}

/// Bytes, such as `8b`.
fn size_of(word: &str) -> Result<u64> {
    let digits = word.strip_suffix('b');
    let bytes = digits.and_then(|digits| digits.parse::<u64>().ok());
    let bytes = bytes.ok_or_else(|| {
        Error::new(format!("a size must be a number of bytes, as 8b (got {word})"))
    })?;
    if bytes >= 1 << 31 {
        return Err(Error::new(format!("a size must be less than 2^31 bytes (got {word})")));
    }
    Ok(bytes)
}

/// Tag and processor.
fn settings(words: &[&str]) -> Result<(u32, u32)> {
    let (mut tag, mut cpu) = (0, 0);
    for pair in words.chunks(2) {
        match *pair {
            ["tag", value] => tag = number("the tag", value)?,
            ["cpu", value] => cpu = number("the cpu", value)?,
            ["nic", "0"] => {}
            ["nic", value] => {
                return Err(Error::new(format!("a host has one link: nic must be 0 (got {value})")))
            }
            _ => {
                let words = words.join(" ");
                return Err(Error::new(format!(
                    "\"{words}\" must be pairs of tag, cpu or nic and a number"
                )));
            }
        }
    }
    Ok((tag, cpu))
}
