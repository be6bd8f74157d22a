// SPDX-License-Identifier: GPL-2.0-or-later
//! Measures how long a barrier among processes takes: Naiad's latency benchmark, on the crate
//! `timely` by one of Naiad's authors.

mod log;
mod mesh;
mod options;
mod rounds;
mod shutdown;

use std::sync::Arc;

use log::Log;
use options::{Options, USAGE};
use shutdown::Shutdown;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = match options::parse(&arguments) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{USAGE}");
            return;
        }
        Err(sentence) => {
            eprintln!("barrier: {sentence}");
            std::process::exit(2);
        }
    };
    let log = Arc::new(Log::new(options.iterations));
    let shutdown = Shutdown::watch(options.clone(), Arc::clone(&log));
    if let Err(sentence) = measure(&options, &log, &shutdown) {
        shutdown.failed(&sentence);
    }
    shutdown.finished();
}

fn measure(options: &Options, log: &Arc<Log>, shutdown: &Arc<Shutdown>) -> Result<(), String> {
    let sockets = mesh::connect(options)?;
    shutdown.measuring();
    rounds::run(options, sockets, Arc::clone(log), Arc::clone(shutdown))
}
