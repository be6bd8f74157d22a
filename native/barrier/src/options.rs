// SPDX-License-Identifier: GPL-2.0-or-later
//! Parses the command line.

use std::path::PathBuf;

pub const USAGE: &str = "\
usage: barrier --hosts ADDRESS:PORT,... --process N --iterations N [--interval NS] [--output FILE]

  --hosts LIST      where each process listens, in their order, 2 to 64
  --process N       which of them this is, from 0
  --iterations N    how many barriers
  --interval NS     begin one every NS nanoseconds; 0, the default: as soon as the last has ended
  --output FILE     where the log goes, standard output by default
  --help            this text
";

const MAX_PROCESSES: usize = 64;
const MAX_ITERATIONS: u64 = 10_000_000; // 160 MB of log
const MAX_NS: u64 = 3_600_000_000_000;

#[derive(Clone, Debug)]
pub struct Options {
    pub hosts: Vec<String>,
    pub process: usize,
    pub iterations: u64,
    pub interval_ns: u64,
    pub output: Option<PathBuf>,
}

/// Returns the options, None for --help, or an error as a sentence.
pub fn parse(arguments: &[String]) -> Result<Option<Options>, String> {
    let mut parser = getopts::Options::new();
    parser.optopt("", "hosts", "", "");
    parser.optopt("", "process", "", "");
    parser.optopt("", "iterations", "", "");
    parser.optopt("", "interval", "", "");
    parser.optopt("", "output", "", "");
    parser.optflag("", "help", "");
    let given = parser
        .parse(arguments)
        .map_err(|error| format!("{error}: see barrier --help"))?;
    if given.opt_present("help") {
        return Ok(None);
    }
    if let Some(word) = given.free.first() {
        return Err(format!("{word} is not an option: see barrier --help"));
    }
    let needed = |name: &str| {
        given
            .opt_str(name)
            .ok_or_else(|| format!("--{name} is required: see barrier --help"))
    };
    let hosts: Vec<String> = needed("hosts")?.split(',').map(str::to_owned).collect();
    if !(2..=MAX_PROCESSES).contains(&hosts.len()) {
        return Err(format!(
            "--hosts names {} processes: give 2 to {MAX_PROCESSES}",
            hosts.len()
        ));
    }
    for host in &hosts {
        if host
            .parse::<std::net::SocketAddr>()
            .map_or(true, |address| address.port() == 0)
        {
            return Err(format!(
                "--hosts contains {host:?}: give each process as ADDRESS:PORT, such as 10.0.0.1:2101"
            ));
        }
    }
    Ok(Some(Options {
        process: number("process", &needed("process")?, 0, hosts.len() as u64 - 1)? as usize,
        iterations: number("iterations", &needed("iterations")?, 1, MAX_ITERATIONS)?,
        interval_ns: given
            .opt_str("interval")
            .map_or(Ok(0), |text| number("interval", &text, 0, MAX_NS))?,
        output: given.opt_str("output").map(PathBuf::from),
        hosts,
    }))
}

fn number(name: &str, text: &str, min: u64, max: u64) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(value)
            if (min..=max).contains(&value) && text.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            Ok(value)
        }
        _ => Err(format!(
            "--{name} must be a whole number from {min} to {max} (got {text:?})"
        )),
    }
}
