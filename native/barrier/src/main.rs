// SPDX-License-Identifier: GPL-2.0-or-later
//! Measures how long a barrier among processes takes: Naiad's latency benchmark, on the crate
//! `timely` by one of Naiad's authors.

mod ending;
mod log;
mod mesh;
mod options;
mod rounds;

use std::sync::Arc;

use ending::Ending;
use log::Log;
use options::{Options, USAGE};

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
    let ending = Ending::watch(options.clone(), Arc::clone(&log));
    if let Err(sentence) = measure(&options, &log, &ending) {
        ending.failed(&sentence);
    }
    ending.finished();
}

fn measure(options: &Options, log: &Arc<Log>, ending: &Arc<Ending>) -> Result<(), String> {
    let sockets = mesh::connect(options)?;
    ending.measuring();
    rounds::run(options, sockets, Arc::clone(log), Arc::clone(ending))
}
