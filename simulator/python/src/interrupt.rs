// SPDX-License-Identifier: GPL-2.0-or-later
//! Do long work in a thread of its own, so that a signal whose handler raises ends it at once.
//!
//! The caller does not wait for interrupted work. Its thread ends at the next look at the request
//! to stop, and nobody reads its result.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use pyo3::prelude::*;
use qjump_sim::{stop_if, Progress};

/// Interval between looks for signals.
const LOOK: Duration = Duration::from_millis(20);

/// What work reports: progress, and its result once.
enum Report<T> {
    Progress(Progress),
    Done(T),
}

/// The side of the work.
pub struct Worker<T> {
    reports: Sender<Report<T>>,
    stop: Arc<AtomicBool>,
}

impl<T> Worker<T> {
    /// Whether nobody waits for the result.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Reports progress.
    pub fn report(&self, progress: Progress) {
        // Nobody listens after an interrupt.
        let _ = self.reports.send(Report::Progress(progress));
    }
}

/// Does work without the interpreter's lock and returns its result. `listener` gets its progress.
/// An exception from a signal's handler or from the listener stops the work and is returned.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Worker<T>) -> T + Send + 'static,
    listener: impl Fn(Progress) -> PyResult<()>,
) -> PyResult<T> {
    let (reports, mut inbox) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let worker = Worker { reports, stop: Arc::clone(&stop) };
    let thread = Builder::new().name("qjump-sim".to_owned()).spawn(move || {
        stop_if(Arc::clone(&worker.stop));
        let result = work(&worker);
        let _ = worker.reports.send(Report::Done(result));
    })?;
    loop {
        let (report, back) = py.detach(move || (inbox.recv_timeout(LOOK), inbox));
        inbox = back;
        let heard = match report {
            Ok(Report::Done(result)) => return py.check_signals().map(|()| result),
            Ok(Report::Progress(progress)) => listener(progress),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => pass_on_panic(thread),
        };
        if let Err(raised) = heard.and_then(|()| py.check_signals()) {
            stop.store(true, Ordering::Relaxed);
            return Err(raised);
        }
    }
}

/// Passes on the panic of work that ended without a result; it becomes a `PanicException`.
fn pass_on_panic(thread: JoinHandle<()>) -> ! {
    match thread.join() {
        Err(panic) => resume_unwind(panic),
        Ok(()) => unreachable!("work that ends has a result"),
    }
}

/// Like [`interruptible`], without progress.
pub fn quietly<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    interruptible(py, |_| work(), |_| Ok(()))
}
