// SPDX-License-Identifier: GPL-2.0-or-later
//! The barriers. Each is one epoch of a dataflow, whose only operator sees an epoch end when every
//! process has ended it.
//!
//! A process ends an epoch by advancing its input, which timely's progress protocol announces to
//! all others. It has passed the barrier when all others have announced the same. Nothing is
//! computed, and apart from two messages at the start and the end no data is sent: like Naiad's
//! benchmark, this measures coordination only.

use std::cell::{Cell, RefCell};
use std::net::TcpStream;
use std::ops::DerefMut;
use std::rc::Rc;
use std::sync::Arc;

use timely::communication::allocator::zero_copy::bytes_slab::BytesRefill;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{GenericBuilder, Process};
use timely::communication::Allocate;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::InputHandle;
use timely::worker::Worker;
use timely::WorkerConfig;

use crate::log::Log;
use crate::options::Options;
use crate::shutdown::Shutdown;

/// A message: the receiving process, and either when the first barrier is due or LAST, for the last
/// barrier.
type Message = (u64, u64);
const LAST: u64 = u64::MAX;

/// Runs all barriers over connected sockets; returns when all processes have ended their dataflow.
pub fn run(
    options: &Options,
    sockets: Vec<Option<TcpStream>>,
    log: Arc<Log>,
    shutdown: Arc<Shutdown>,
) -> Result<(), String> {
    let refill = BytesRefill {
        logic: Arc::new(|size| Box::new(vec![0u8; size]) as Box<dyn DerefMut<Target = [u8]>>),
        limit: None,
    };
    let built = initialize_networking_from_sockets::<_, Process>(
        sockets,
        options.process,
        1,
        refill,
        Arc::new(|_| None),
    );
    let (builders, threads) = built.map_err(|error| {
        format!("timely cannot start its threads ({error}): give it more memory or processes")
    })?;
    let builders = builders.into_iter().map(GenericBuilder::ZeroCopy).collect();
    let (iterations, interval_ns) = (options.iterations, options.interval_ns);
    let guards = timely::execute::execute_from(
        builders,
        Box::new(threads),
        WorkerConfig::default(),
        move |worker| {
            measure(worker, iterations, interval_ns, &log, &shutdown);
        },
    )?;
    drop(guards); // waits for the worker, and until all data has been sent and received
    Ok(())
}

struct Barrier<'a, A: Allocate> {
    worker: &'a mut Worker<A>,
    input: InputHandle<u64, Message>,
    passed: Rc<Cell<u64>>,
    /// Messages received, with their epochs: other processes may be one barrier ahead.
    received: Rc<RefCell<Vec<(u64, u64)>>>,
}

impl<'a, A: Allocate> Barrier<'a, A> {
    fn new(worker: &'a mut Worker<A>) -> Self {
        let (passed, received) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let (seen, arrived) = (Rc::clone(&passed), Rc::clone(&received));
        let mut input = InputHandle::new();
        worker.dataflow::<u64, _, _>(|scope| {
            input.to_stream(scope).sink(
                Exchange::new(|message: &Message| message.0),
                "Barrier",
                move |(messages, frontier)| {
                    messages.for_each(|time, data| {
                        data.drain(..)
                            .for_each(|(_, what)| arrived.borrow_mut().push((*time.time(), what)))
                    });
                    seen.set(frontier.frontier().first().copied().unwrap_or(u64::MAX));
                },
            );
        });
        Barrier {
            worker,
            input,
            passed,
            received,
        }
    }

    /// Sends a message to all processes, with the next barrier.
    fn send(&mut self, what: u64) {
        for process in 0..self.worker.peers() as u64 {
            self.input.send((process, what));
        }
    }

    /// Waits until every process has reached this barrier; returns a message that was sent with it,
    /// if any.
    fn pass(&mut self) -> Option<u64> {
        let next = self.input.time() + 1;
        self.input.advance_to(next);
        while self.passed.get() < next {
            self.worker.step_or_park(None);
        }
        let mut received = self.received.borrow_mut();
        let now = received
            .iter()
            .filter(|(epoch, _)| *epoch < next)
            .map(|(_, what)| *what)
            .max();
        received.retain(|(epoch, _)| *epoch >= next);
        now
    }
}

fn measure<A: Allocate>(
    worker: &mut Worker<A>,
    iterations: u64,
    interval_ns: u64,
    log: &Log,
    shutdown: &Shutdown,
) {
    let first = worker.index() == 0;
    let mut barrier = Barrier::new(worker);
    barrier.pass(); // wait for all processes to start
    if first {
        barrier.send(now_ns() + interval_ns);
    }
    // All processes run on one kernel, and so share this clock.
    let first_due_ns = barrier.pass().unwrap_or_default();
    log.begin(first_due_ns);
    for iteration in 0..iterations {
        let due_ns = first_due_ns + iteration * interval_ns;
        let late = now_ns() > due_ns;
        if !late {
            sleep_until(due_ns);
        }
        if shutdown.stop_requested() {
            barrier.send(LAST);
        }
        let start_ns = now_ns();
        let received = barrier.pass();
        let end_ns = now_ns();
        if received == Some(LAST) {
            break; // not logged: this barrier also carried data
        }
        log.add(start_ns, end_ns, late && interval_ns > 0);
    }
}

fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to this frame.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn sleep_until(due_ns: u64) {
    let due = libc::timespec {
        tv_sec: (due_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (due_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: as above. No signal interrupts it: another thread waits for them.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &due,
            std::ptr::null_mut(),
        )
    };
}
