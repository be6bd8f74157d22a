// SPDX-License-Identifier: GPL-2.0-or-later
//! What is to be known of a run beside its outcome.

use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::net::topology::Topology;
use crate::sim::diary::Traced;

/// What is to be known of a run beside its outcome, which is the same with any of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watch {
    /// What [`crate::Simulation::ports`] tells.
    pub ports: bool,
    /// What [`crate::Simulation::flow_counts`] tells.
    pub flows: bool,
    /// What [`crate::Simulation::series`] tells, so often from 0 on.
    pub every: Option<Ps>,
    /// The last of its instants; none: the end.
    pub until: Option<Ps>,
    /// Instants of the series at most: of more, every second is forgotten, and the time between two doubled.
    pub most: Option<u32>,
    /// What [`crate::Simulation::trace`] tells.
    pub traced: Option<Traced>,
}

impl Watch {
    pub(crate) fn check(&self, topology: &Topology) -> Result<()> {
        if self.every == Some(0) {
            return Err(Error::new("watch.every: samples 0 ps apart would never end"));
        }
        if self.most.is_some_and(|most| most < 2) {
            return Err(Error::new("watch.most: a series has two instants at least"));
        }
        if let Some(Traced::Hosts(hosts)) = &self.traced {
            if let Some(host) = hosts.iter().find(|&&host| host >= topology.hosts()) {
                let count = topology.hosts();
                return Err(Error::new(format!("watch.trace: there is no host {host}, there are {count}")));
            }
        }
        Ok(())
    }
}
