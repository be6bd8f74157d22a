// SPDX-License-Identifier: GPL-2.0-or-later
//! How the process ends: after its last barrier, by a signal, or because something failed. Whoever comes first writes the log.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::log::Log;
use crate::options::Options;

pub struct Ending {
    options: Options,
    log: Arc<Log>,
    /// The first signal, while barriers are measured: the other processes are told, and all end after the same barrier.
    asked: AtomicBool,
    measuring: AtomicBool,
    begun: Mutex<()>,
}

impl Ending {
    /// Takes over SIGTERM, SIGINT and what threads say when they panic. To be called before any other thread is started.
    pub fn watch(options: Options, log: Arc<Log>) -> Arc<Ending> {
        let ending = Arc::new(Ending {
            options,
            log,
            asked: AtomicBool::new(false),
            measuring: AtomicBool::new(false),
            begun: Mutex::new(()),
        });
        let set = blocked_signals();
        let signalled = Arc::clone(&ending);
        thread::spawn(move || loop {
            let mut signal = 0;
            // SAFETY: both point to values of this thread, and the set was filled by sigemptyset.
            unsafe { libc::sigwait(&set, &mut signal) };
            if signalled.asked.swap(true, Ordering::Relaxed)
                || !signalled.measuring.load(Ordering::Relaxed)
            {
                signalled.end(true, None);
            }
        });
        let broken = Arc::clone(&ending);
        // timely's threads panic when a connection is lost, which would leave the others waiting for ever.
        std::panic::set_hook(Box::new(move |panic| {
            let payload = panic.payload();
            let text = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or(payload.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("a thread ended without a word");
            match text.strip_prefix("timely communication error: ") {
                Some(cause) => broken.failed(&format!(
                    "a process is gone after {} barriers ({cause}): look why it ended",
                    broken.log.count()
                )),
                None => broken.failed(&format!("{text}: this is a fault in the program")),
            }
        }));
        ending
    }

    /// From here on a first signal is passed on, instead of ending this process at once.
    pub fn measuring(&self) {
        self.measuring.store(true, Ordering::Relaxed);
    }

    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    pub fn finished(&self) -> ! {
        self.end((self.log.count() as u64) < self.options.iterations, None)
    }

    /// To a process that was asked to end, a lost connection is no failure.
    pub fn failed(&self, sentence: &str) -> ! {
        self.end(true, (!self.asked()).then_some(sentence))
    }

    fn end(&self, early: bool, sentence: Option<&str>) -> ! {
        let Ok(_begun) = self.begun.try_lock() else {
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
    // SAFETY: sigset_t is plain data that sigemptyset fills; the mask is changed before other threads exist, which inherit it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGINT);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    }
}
