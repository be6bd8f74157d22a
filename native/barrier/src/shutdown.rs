// SPDX-License-Identifier: GPL-2.0-or-later
//! The end of the process: after the last barrier, by a signal or by a failure. The first of these
//! writes the log.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::log::Log;
use crate::options::Options;

pub struct Shutdown {
    options: Options,
    log: Arc<Log>,
    /// Set by the first signal: the worker then tells the other processes, and all end after the
    /// same barrier.
    stop_requested: AtomicBool,
    measuring: AtomicBool,
    ending_lock: Mutex<()>,
}

impl Shutdown {
    /// Handles SIGTERM, SIGINT and panics of threads. Call it before starting any other thread, so
    /// that all inherit the signal mask.
    pub fn watch(options: Options, log: Arc<Log>) -> Arc<Shutdown> {
        let shutdown = Arc::new(Shutdown {
            options,
            log,
            stop_requested: AtomicBool::new(false),
            measuring: AtomicBool::new(false),
            ending_lock: Mutex::new(()),
        });
        let set = blocked_signals();
        let signalled = Arc::clone(&shutdown);
        thread::spawn(move || loop {
            let mut signal = 0;
            // SAFETY: both pointers are to values of this thread, and the set is initialised.
            unsafe { libc::sigwait(&set, &mut signal) };
            if signalled.stop_requested.swap(true, Ordering::Relaxed)
                || !signalled.measuring.load(Ordering::Relaxed)
            {
                signalled.end(true, None);
            }
        });
        let broken = Arc::clone(&shutdown);
        // timely's threads panic when a connection is lost; without this hook the others would wait
        // for ever.
        std::panic::set_hook(Box::new(move |panic| {
            let payload = panic.payload();
            let text = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or(payload.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("a thread panicked without a message");
            match text.strip_prefix("timely communication error: ") {
                Some(cause) => broken.failed(&format!(
                    "a process is gone after {} barriers ({cause}): check why it ended",
                    broken.log.count()
                )),
                None => broken.failed(&format!("{text}: this is a bug in barrier")),
            }
        }));
        shutdown
    }

    /// From now on the first signal ends all processes together, instead of this one at once.
    pub fn measuring(&self) {
        self.measuring.store(true, Ordering::Relaxed);
    }

    pub fn stop_requested(&self) -> bool {
        self.stop_requested.load(Ordering::Relaxed)
    }

    pub fn finished(&self) -> ! {
        self.end((self.log.count() as u64) < self.options.iterations, None)
    }

    /// Reports a failure, unless a signal has asked this process to end: then a lost connection is
    /// expected.
    pub fn failed(&self, sentence: &str) -> ! {
        self.end(true, (!self.stop_requested()).then_some(sentence))
    }

    fn end(&self, early: bool, sentence: Option<&str>) -> ! {
        let Ok(_lock) = self.ending_lock.try_lock() else {
            loop {
                thread::park(); // another thread is ending the process
            }
        };
        let mut status = 0;
        if let Some(sentence) = sentence {
            eprintln!("barrier: {sentence}");
            status = 1;
        }
        if let Err(error) = self.log.write(&self.options, early) {
            let place = self
                .options
                .output
                .as_ref()
                .map_or("standard output".to_owned(), |path| {
                    path.display().to_string()
                });
            eprintln!("barrier: the log cannot be written to {place} ({error}): choose another place with --output");
            status = 1;
        }
        std::process::exit(status)
    }
}

fn blocked_signals() -> libc::sigset_t {
    // SAFETY: sigset_t is plain data, initialised by sigemptyset; the pointers are to this frame.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGINT);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    }
}
