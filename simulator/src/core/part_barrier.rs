// SPDX-License-Identifier: GPL-2.0-or-later
//! A barrier for threads that meet some hundred thousand times a second: they spin for some
//! microseconds before they sleep, so that on a busy machine nobody waits for a thread that has no
//! core while it holds one itself.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// Spins before a thread sleeps: some microseconds, longer than other threads need while they have
/// a core.
const LOOKS: u32 = 1 << 7;

/// A barrier for a fixed number of threads.
#[derive(Debug)]
pub(crate) struct PartBarrier {
    threads: usize,
    waiting: AtomicUsize,
    /// How often all threads have met.
    rounds: AtomicUsize,
    /// Threads that sleep or are about to; the lock is held to count and to wake them.
    asleep: AtomicUsize,
    lock: Mutex<()>,
    wakes: Condvar,
    /// A thread has panicked and will never come.
    broken: AtomicBool,
}

impl PartBarrier {
    pub fn new(threads: usize) -> Self {
        PartBarrier {
            threads,
            waiting: AtomicUsize::new(0),
            rounds: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            lock: Mutex::new(()),
            wakes: Condvar::new(),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits for all threads. Whatever a thread wrote before, all can read afterwards.
    ///
    /// # Panics
    /// Another thread has panicked.
    pub fn wait(&self) {
        let round = self.rounds.load(Ordering::SeqCst);
        if self.waiting.fetch_add(1, Ordering::SeqCst) + 1 == self.threads {
            self.waiting.store(0, Ordering::SeqCst);
            self.rounds.store(round.wrapping_add(1), Ordering::SeqCst);
            self.wake();
            return;
        }
        for _ in 0..LOOKS {
            if self.over(round) {
                return;
            }
            std::hint::spin_loop();
        }
        self.sleep(round);
    }

    /// Whether all threads have met in this round.
    fn over(&self, round: usize) -> bool {
        assert!(!self.broken.load(Ordering::Relaxed), "another thread has panicked");
        self.rounds.load(Ordering::SeqCst) != round
    }

    #[cold]
    fn sleep(&self, round: usize) {
        let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Counted before the last look, so that the last thread to come either is seen or wakes.
        self.asleep.fetch_add(1, Ordering::SeqCst);
        while !self.over(round) {
            held = self.wakes.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }

    fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) > 0 {
            let _held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.wakes.notify_all();
        }
    }

    /// Held by each thread that others wait for: if it panics, so do they, instead of waiting for
    /// ever.
    pub fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

pub(crate) struct Guard<'a>(&'a PartBarrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, Ordering::SeqCst);
            self.0.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{catch_unwind, AssertUnwindSafe};

    /// More threads than there are cores.
    #[test]
    fn nobody_goes_on_before_all_have_come() {
        let (barrier, come) = (PartBarrier::new(5), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    for round in 1..=2_000 {
                        come.fetch_add(1, Ordering::Relaxed);
                        barrier.wait();
                        assert_eq!(come.load(Ordering::Relaxed), 5 * round);
                        barrier.wait();
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_waits_for_one_that_has_panicked() {
        let barrier = PartBarrier::new(2);
        let ended = thread::scope(|scope| {
            scope.spawn(|| {
                let _guard = barrier.guard();
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    let _guard = barrier.guard();
                    panic!("on purpose");
                }));
            });
            catch_unwind(AssertUnwindSafe(|| barrier.wait()))
        });
        assert!(ended.is_err());
    }
}
