// SPDX-License-Identifier: GPL-2.0-or-later
//! A barrier for threads that meet some hundred thousand times a second: they spin instead of
//! sleeping. Where threads have no core of their own this takes long; `ThreadChoice` then takes one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Spins before a thread yields its core: some microseconds, longer than other threads need while
/// they have a core.
const LOOKS: u32 = 1 << 7;

/// A barrier for a fixed number of threads.
#[derive(Debug)]
pub(crate) struct SpinBarrier {
    threads: usize,
    waiting: AtomicUsize,
    /// How often all threads have met.
    rounds: AtomicUsize,
    /// A thread has panicked and will never come.
    broken: AtomicBool,
}

impl SpinBarrier {
    pub fn new(threads: usize) -> Self {
        SpinBarrier {
            threads,
            waiting: AtomicUsize::new(0),
            rounds: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits for all threads. Whatever a thread wrote before, all can read afterwards.
    ///
    /// # Panics
    /// Another thread has panicked.
    pub fn wait(&self) {
        let round = self.rounds.load(Ordering::Acquire);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.waiting.store(0, Ordering::Relaxed);
            self.rounds.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut looks = 0;
        while self.rounds.load(Ordering::Acquire) == round {
            assert!(!self.broken.load(Ordering::Relaxed), "another thread has panicked");
            looks += 1;
            if looks % LOOKS == 0 {
                thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }

    /// Held by each thread that others wait for: if it panics, so do they, instead of waiting for
    /// ever.
    pub fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

pub(crate) struct Guard<'a>(&'a SpinBarrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
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
        let (barrier, come) = (SpinBarrier::new(5), AtomicUsize::new(0));
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
        let barrier = SpinBarrier::new(2);
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
