// SPDX-License-Identifier: GPL-2.0-or-later
//! Where threads wait for each other, some hundred thousand times a second: they look again and again instead of being woken.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Looks before a thread lets others have its core: some microseconds, longer than others take that have one.
const LOOKS: u32 = 1 << 7;

/// For so many threads.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    threads: usize,
    waiting: AtomicUsize,
    /// How often all have come.
    rounds: AtomicUsize,
    /// One will never come.
    broken: AtomicBool,
}

impl Rendezvous {
    pub fn new(threads: usize) -> Self {
        Rendezvous { threads, waiting: AtomicUsize::new(0), rounds: AtomicUsize::new(0), broken: AtomicBool::new(false) }
    }

    /// Waits for all. What one has written before, all can read after.
    ///
    /// # Panics
    /// A thread that should have come has panicked.
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

    /// Kept by each thread that others wait for: a panic of it is theirs too, for they would wait for ever.
    pub fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

pub(crate) struct Guard<'a>(&'a Rendezvous);

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
        let (rendezvous, come) = (Rendezvous::new(5), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    for round in 1..=2_000 {
                        come.fetch_add(1, Ordering::Relaxed);
                        rendezvous.wait();
                        assert_eq!(come.load(Ordering::Relaxed), 5 * round);
                        rendezvous.wait();
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_waits_for_one_that_has_panicked() {
        let rendezvous = Rendezvous::new(2);
        let ended = thread::scope(|scope| {
            scope.spawn(|| {
                let _guard = rendezvous.guard();
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    let _guard = rendezvous.guard();
                    panic!("on purpose");
                }));
            });
            catch_unwind(AssertUnwindSafe(|| rendezvous.wait()))
        });
        assert!(ended.is_err());
    }
}
