// SPDX-License-Identifier: GPL-2.0-or-later
//! Adaptive routing: the least loaded of equal links, for each packet or each flowlet.

use std::collections::HashMap;

use crate::core::time::Ps;

/// What switches remember.
#[derive(Debug)]
pub(crate) struct Adaptive {
    /// The longest pause within a flowlet; none: each packet is on its own.
    gap: Option<Ps>,
    /// By switch: where the search begins, so that equal links take turns.
    turns: Vec<u32>,
    /// By switch and path key: when the last packet came, and its link.
    flowlets: HashMap<(u32, u64), (Ps, u32)>,
}

impl Adaptive {
    pub fn new(gap: Option<Ps>, switches: u32) -> Self {
        Adaptive { gap, turns: vec![0; switches as usize], flowlets: HashMap::new() }
    }

    /// One of several links: the least loaded, or that of the flowlet.
    // Not inlined, for networks with other routing.
    #[inline(never)]
    pub fn pick(
        &mut self,
        (now, switch): (Ps, u32),
        links: &[u32],
        flow: impl FnOnce() -> u64,
        load: impl Fn(u32) -> Ps,
    ) -> u32 {
        let Some(gap) = self.gap else { return self.least(switch, links, load) };
        let key = (switch, flow());
        let link = match self.flowlets.get(&key) {
            Some((at, link)) if now - at <= gap && links.contains(link) => *link,
            _ => self.least(switch, links, load),
        };
        self.flowlets.insert(key, (now, link));
        link
    }

    fn least(&mut self, switch: u32, links: &[u32], load: impl Fn(u32) -> Ps) -> u32 {
        let turn = &mut self.turns[switch as usize];
        let first = *turn as usize % links.len();
        *turn = first as u32 + 1;
        let (before, after) = links.split_at(first);
        let in_turn = after.iter().chain(before).copied();
        in_turn.min_by_key(|&link| load(link)).unwrap_or(links[0])
    }
}
