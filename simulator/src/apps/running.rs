// SPDX-License-Identifier: GPL-2.0-or-later
//! All applications of a simulation.

use crate::apps::app::{App, AppResult, Running};
use crate::apps::net::Net;
use crate::host::hosts::Hosts;
use crate::net::network::Network;

/// First key of applications' paths; flows of the list have their place in it, which is lower.
const KEYS: u32 = 1 << 29;

#[derive(Debug)]
pub(crate) struct Apps {
    seed: u64,
    running: Vec<Running>,
    /// Next key of a path.
    keys: u32,
}

// Cold: runs without applications shall be no slower for them.
impl Apps {
    pub fn new(seed: u64) -> Self {
        Apps { seed, running: Vec::new(), keys: KEYS }
    }

    /// Adds an application, which begins at its time.
    pub fn add(&mut self, app: &App, network: &mut Network, hosts: &mut Hosts) {
        let number = self.running.len() as u32;
        let mut net = Net { network, hosts, seed: self.seed, keys: &mut self.keys, app: number };
        self.running.push(Running::begin(app, &mut net));
    }

    /// An application's event.
    #[cold]
    pub fn act(&mut self, index: u32, network: &mut Network, hosts: &mut Hosts) {
        let (app, event) = hosts.sockets.take(index);
        let mut net = Net { network, hosts, seed: self.seed, keys: &mut self.keys, app };
        self.running[app as usize].act(event, &mut net);
    }

    /// What each has yielded so far.
    pub fn results(&self, hosts: &Hosts) -> Vec<AppResult> {
        self.running.iter().map(|app| app.results(&hosts.flows)).collect()
    }
}
