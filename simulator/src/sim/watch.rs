// SPDX-License-Identifier: GPL-2.0-or-later
//! What to record of a run besides its outcome.

use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::net::topology::Topology;
use crate::sim::trace::Traced;

/// What to record of a run besides its outcome, which is the same with any of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watch {
    /// Record [`crate::Simulation::ports`].
    pub ports: bool,
    /// Record [`crate::Simulation::flow_counts`].
    pub flows: bool,
    /// Record [`crate::Simulation::series`], with this interval from 0 on.
    pub every_ps: Option<Ps>,
    /// Time of the last sample; none: the end.
    pub until: Option<Ps>,
    /// Most samples of the series: beyond it every second one is dropped and the interval doubled.
    pub most: Option<u32>,
    /// Record [`crate::Simulation::trace`].
    pub traced: Option<Traced>,
}

impl Watch {
    pub(crate) fn check(&self, topology: &Topology) -> Result<()> {
        if self.every_ps == Some(0) {
            return Err(Error::new("watch.every_ps: it must be above 0 ps"));
        }
        if self.most.is_some_and(|most| most < 2) {
            return Err(Error::new("watch.most: a series needs at least two samples"));
        }
        if let Some(Traced::Hosts(hosts)) = &self.traced {
            if let Some(host) = hosts.iter().find(|&&host| host >= topology.hosts()) {
                let count = topology.hosts();
                return Err(Error::new(format!(
                    "watch.trace: there is no host {host}, there are {count}"
                )));
            }
        }
        Ok(())
    }
}
