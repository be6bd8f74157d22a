// SPDX-License-Identifier: GPL-2.0-or-later
//! EQDS (Olteanu et al., NSDI 2022): receivers credit senders in turns, at the rate of their link.
//!
//! A flow takes part in its receiver's turns while it wants packets that nobody has promised, a
//! packet of credit a turn. NDP credits each packet that comes instead, in that order. A trimmed
//! packet is credited before all turns, so that it comes again first. Senders, NACKs and probes are
//! NDP's. Left out: the queues of the edge, which here are the senders' own, and congestion control
//! of the core, which switches spray over. htsim (`eqds.cpp`) credits 1 % more slowly.

use crate::host::hosts::Hosts;
use crate::net::network::Network;

impl Hosts {
    /// A packet of a flow has come, whole or trimmed, and the flow wants more.
    pub(super) fn want_credit(&mut self, net: &mut Network, slot: u32, trimmed: bool) {
        let host = self.flows[slot as usize].to;
        let of = &mut self.pulls.flows[slot as usize];
        of.arrived += 1;
        if trimmed && self.is_owed(slot) {
            self.pulls.flows[slot as usize].granted += 1;
            self.pulls.hosts[host as usize].first.push_back(slot);
        }
        self.take_part(slot, host);
        self.schedule_pull(net, host);
    }

    /// The flow that a host credits next.
    pub(super) fn next_credited(&mut self, host: u32) -> Option<u32> {
        let of = &mut self.pulls.hosts[host as usize];
        if let Some(slot) = of.first.pop_front() {
            return Some(slot);
        }
        let slot = of.queue.pop_front()?;
        if self.ahead(slot).is_some() {
            let flow = &mut self.pulls.flows[slot as usize];
            flow.granted += 1;
            flow.takes_part = false;
            self.take_part(slot, host);
        }
        Some(slot)
    }

    /// Puts a flow at the end of the turns, unless it takes part or is owed nothing.
    fn take_part(&mut self, slot: u32, host: u32) {
        if !self.pulls.flows[slot as usize].takes_part && self.is_owed(slot) {
            self.pulls.flows[slot as usize].takes_part = true;
            self.pulls.hosts[host as usize].queue.push_back(slot);
        }
    }

    /// Whether a flow wants a packet that nobody has promised, and its sender has used enough.
    fn is_owed(&self, slot: u32) -> bool {
        let (size, of) = (self.flows[slot as usize].size(), &self.pulls.flows[slot as usize]);
        let used = of.arrived.saturating_add(self.ahead(slot).unwrap_or(0));
        of.granted < size.saturating_add(of.trimmed).min(used)
    }

    /// See [`crate::host::congestion::Eqds::ahead`]; none: the flow is NDP's.
    pub(super) fn ahead(&self, slot: u32) -> Option<u32> {
        self.config.of(&self.flows[slot as usize]).congestion.ahead()
    }
}
