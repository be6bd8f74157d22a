// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulator as a WebAssembly module without imports: text goes in and out through its memory.
//!
//! A caller writes UTF-8 to where [`input`] says and calls a function, whose text is then at
//! [`output`]. Functions that return a number return 0 if they failed; their text is then the error
//! in one sentence.

use std::cell::RefCell;

use qjump_sim::{Error, Hop, Result, Run, Scenario, Scheme, Simulation, Topology, Traced, Watch};
use serde_json::json;

/// Most samples of the queues.
const SAMPLES: u32 = 500;

#[derive(Default)]
struct Module {
    input: Vec<u8>,
    output: Vec<u8>,
    run: Option<Run>,
}

thread_local! {
    static MODULE: RefCell<Module> = RefCell::default();
}

impl Module {
    /// Leaves a result or an error; returns whether it is a result.
    fn leave(&mut self, done: Result<impl Into<Vec<u8>>>) -> u32 {
        let succeeded = done.is_ok();
        self.output = done.map_or_else(|error| error.to_string().into_bytes(), Into::into);
        succeeded.into()
    }

    fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.input).map_err(|error| Error::from(error.to_string()))
    }

    /// The settings of the scheme of this name in a network.
    fn scheme(&self) -> Result<String> {
        let (name, topology): (String, Topology) = self.parse()?;
        text(&Scheme::named(&name, &topology)?)
    }

    /// Begins a run, which samples queues if it has an end.
    fn begin(&mut self) -> Result<String> {
        let scenario: Scenario = self.parse()?;
        let every_ps = scenario.stop.map(|stop| stop / u64::from(SAMPLES) + 1);
        self.run = Some(scenario.begin(&Watch { every_ps, ..Watch::default() })?);
        Ok(String::new())
    }

    /// Begins a run that traces all packets.
    fn begin_traced(&mut self) -> Result<String> {
        let scenario: Scenario = self.parse()?;
        let watch = Watch { traced: Some(Traced::All), ..Watch::default() };
        self.run = Some(scenario.begin(&watch)?);
        Ok(String::new())
    }

    /// The packets traced from a time on.
    fn trace(&self, from: f64) -> Result<Vec<u8>> {
        let hops = self.running()?.simulation().map_or(&[][..], Simulation::trace);
        let late = hops.iter().filter(|hop| hop.at as f64 >= from);
        Ok(late.flat_map(numbers).flat_map(f64::to_le_bytes).collect())
    }

    fn running(&self) -> Result<&Run> {
        self.run.as_ref().ok_or_else(|| Error::from("no run has begun".to_owned()))
    }

    /// The sampled bytes that waited at a port.
    fn queue(&self, port: usize) -> Result<String> {
        let series = self.running()?.simulation().and_then(|simulation| simulation.series());
        let series = series.ok_or_else(|| Error::from("the run has no samples".to_owned()))?;
        let ports = series.ports as usize;
        let queued: Vec<u64> = series.queued.iter().skip(port).step_by(ports).copied().collect();
        text(&json!({ "at": series.at, "queued": queued }))
    }
}

/// A traced packet as numbers: see [`trace`].
fn numbers(hop: &Hop) -> [f64; 10] {
    [
        hop.at as f64,
        hop.link.into(),
        hop.flow.into(),
        hop.seq.into(),
        hop.src.into(),
        hop.dst.into(),
        hop.bytes.into(),
        hop.kind.into(),
        hop.level.into(),
        f64::from(u8::from(hop.dropped)),
    ]
}

fn text(of: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(of).map_err(|error| Error::from(error.to_string()))
}

fn with<T>(act: impl FnOnce(&mut Module) -> T) -> T {
    MODULE.with_borrow_mut(act)
}

/// Returns where to write an input of `len` bytes.
#[no_mangle]
pub extern "C" fn input(len: usize) -> *mut u8 {
    with(|module| {
        module.input = vec![0; len];
        module.input.as_mut_ptr()
    })
}

/// Returns where the last output is.
#[no_mangle]
pub extern "C" fn output() -> *const u8 {
    with(|module| module.output.as_ptr())
}

/// Returns the length of the last output, in bytes.
#[no_mangle]
pub extern "C" fn output_len() -> usize {
    with(|module| module.output.len())
}

/// Outputs the settings of a named scheme, for a scenario. Input: its name and a topology, as a
/// list.
#[no_mangle]
pub extern "C" fn scheme() -> u32 {
    with(|module| {
        let done = module.scheme();
        module.leave(done)
    })
}

/// Begins a run. Input: a scenario, as `qjump-sim run` reads it.
#[no_mangle]
pub extern "C" fn begin() -> u32 {
    with(|module| {
        let done = module.begin();
        module.leave(done)
    })
}

/// Begins a run that traces all packets and samples nothing. Input: as for [`begin`].
#[no_mangle]
pub extern "C" fn begin_traced() -> u32 {
    with(|module| {
        let done = module.begin_traced();
        module.leave(done)
    })
}

/// Runs about `most` events; returns whether there are more.
#[no_mangle]
pub extern "C" fn advance(most: u32) -> u32 {
    // It fails for lack of memory, which only Linux reports.
    let more = |run: &mut Run| run.run_some(most.into()).unwrap_or(false);
    with(|module| module.run.as_mut().is_some_and(more).into())
}

/// Returns the share of the run that is done, as far as it is known.
#[no_mangle]
pub extern "C" fn progress() -> f64 {
    with(|module| module.run.as_ref().map_or(0.0, |run| run.progress().share))
}

/// Outputs the outcome so far, as `qjump-sim run` prints it.
#[no_mangle]
pub extern "C" fn outcome() -> u32 {
    with(|module| {
        let done = module.running().and_then(|run| text(&run.outcome()));
        module.leave(done)
    })
}

/// Outputs the samples of a port: `{"at": [ps], "queued": [bytes]}`.
#[no_mangle]
pub extern "C" fn queue(port: u32) -> u32 {
    with(|module| {
        let done = module.queue(port as usize);
        module.leave(done)
    })
}

/// Outputs the packets traced from `from` ps on, as rows of little-endian 64-bit floats: the fields
/// `at`, `link`, `flow`, `seq`, `src`, `dst`, `bytes`, `kind`, `level` and `dropped` of
/// [`qjump_sim::Hop`].
#[no_mangle]
pub extern "C" fn trace(from: f64) -> u32 {
    with(|module| {
        let done = module.trace(from);
        module.leave(done)
    })
}
