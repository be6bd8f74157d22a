// SPDX-License-Identifier: GPL-2.0-or-later
//! The running applications of a simulation.

use crate::apps::app::{App, AppResult, Running};
use crate::apps::context::Context;
use crate::host::hosts::Hosts;
use crate::net::network::Network;

/// The first path key of applications; keys of listed flows are their places in the list, which are
/// lower.
const KEYS: u32 = 1 << 29;

#[derive(Debug)]
pub(crate) struct AppSet {
    seed: u64,
    running: Vec<Running>,
    /// The next unused path key.
    keys: u32,
}

// Cold: runs without applications must not be slower for them.
impl AppSet {
    pub fn new(seed: u64) -> Self {
        AppSet { seed, running: Vec::new(), keys: KEYS }
    }

    /// Adds an application, which starts at its time.
    pub fn add(&mut self, app: &App, network: &mut Network, hosts: &mut Hosts) {
        let number = self.running.len() as u32;
        let mut ctx =
            Context { network, hosts, seed: self.seed, keys: &mut self.keys, app: number };
        self.running.push(Running::begin(app, &mut ctx));
    }

    /// Passes an event to its application.
    #[cold]
    pub fn act(&mut self, index: u32, network: &mut Network, hosts: &mut Hosts) {
        let (app, event) = hosts.sockets.take(index);
        let mut ctx = Context { network, hosts, seed: self.seed, keys: &mut self.keys, app };
        self.running[app as usize].act(event, &mut ctx);
    }

    /// The results so far.
    pub fn results(&self, hosts: &Hosts) -> Vec<AppResult> {
        self.running.iter().map(|app| app.results(&hosts.flows)).collect()
    }
}
