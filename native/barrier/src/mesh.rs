// SPDX-License-Identifier: GPL-2.0-or-later
//! Connects every two processes. timely can do so itself, but it retries only once a second and
//! prints to stdout.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use crate::options::Options;

const PATIENCE: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_millis(50);
const HELLO_BYTES: usize = 40;

/// Returns a socket to every other process, and None at the index of this one. Each process
/// listens, connects to those with smaller numbers and accepts connections from those with larger
/// ones. Errors are sentences for the user.
pub fn connect(options: &Options) -> Result<Vec<Option<TcpStream>>, String> {
    let until = Instant::now() + PATIENCE;
    let mine = &options.hosts[options.process];
    let listener = TcpListener::bind(mine).map_err(|error| {
        format!("cannot listen on {mine} ({error}): is that address this host's and the port free?")
    })?;
    let mut sockets: Vec<Option<TcpStream>> = options.hosts.iter().map(|_| None).collect();
    for (index, host) in options.hosts.iter().enumerate().take(options.process) {
        let stream = reach(host, until).map_err(|error| {
            format!("process {index} at {host} cannot be reached ({error}): start it")
        })?;
        sockets[index] = Some(expect_peer(stream, options, index)?);
    }
    while sockets
        .iter()
        .skip(options.process + 1)
        .any(Option::is_none)
    {
        let stream = accept(&listener, until).map_err(|error| {
            format!("not every process has connected ({error}): start them all")
        })?;
        let (stream, index) = accept_peer(stream, options)?;
        if sockets[index].replace(stream).is_some() {
            return Err(format!(
                "process {index} has connected twice: give each its own --process"
            ));
        }
    }
    Ok(sockets)
}

fn reach(host: &str, until: Instant) -> io::Result<TcpStream> {
    loop {
        match TcpStream::connect(host) {
            Err(_) if Instant::now() < until => thread::sleep(RETRY),
            result => return result,
        }
    }
}

fn accept(listener: &TcpListener, until: Instant) -> io::Result<TcpStream> {
    let left = until.saturating_duration_since(Instant::now()).as_millis() as libc::c_int;
    let mut wait = libc::pollfd {
        fd: listener.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: the pointer is to one pollfd in this frame.
    match unsafe { libc::poll(&mut wait, 1, left) } {
        0 => Err(io::ErrorKind::TimedOut.into()),
        1 => listener.accept().map(|(stream, _)| stream),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The first message in each direction, to detect processes that were started with different
/// parameters.
fn hello(options: &Options) -> [u8; HELLO_BYTES] {
    let fields = [
        *b"barrier1",
        number(options.hosts.len()),
        number(options.process),
        options.iterations.to_be_bytes(),
        options.interval_ns.to_be_bytes(),
    ];
    let mut bytes = [0; HELLO_BYTES];
    bytes.copy_from_slice(&fields.concat());
    bytes
}

fn number(value: usize) -> [u8; 8] {
    (value as u64).to_be_bytes()
}

fn exchange_hello(mut stream: TcpStream, options: &Options) -> Result<(TcpStream, usize), String> {
    let mut theirs = [0; HELLO_BYTES];
    let done = stream
        .set_nodelay(true)
        .and_then(|()| stream.write_all(&hello(options)))
        .and_then(|()| stream.read_exact(&mut theirs));
    done.map_err(|error| format!("a process left while connecting ({error}): check why it ended"))?;
    let index = u64::from_be_bytes(theirs[16..24].try_into().unwrap_or_default()) as usize;
    let mut ours = hello(options);
    ours[16..24].copy_from_slice(&theirs[16..24]);
    if ours != theirs || index >= options.hosts.len() {
        return Err(format!("process {index} was started with other parameters: give all the same --hosts, --iterations and --interval"));
    }
    Ok((stream, index))
}

fn expect_peer(stream: TcpStream, options: &Options, expected: usize) -> Result<TcpStream, String> {
    match exchange_hello(stream, options)? {
        (stream, index) if index == expected => Ok(stream),
        (_, index) => Err(format!("process {index} answers at {}, the address of process {expected}: give each its own --process", options.hosts[expected])),
    }
}

fn accept_peer(stream: TcpStream, options: &Options) -> Result<(TcpStream, usize), String> {
    match exchange_hello(stream, options)? {
        (stream, index) if index > options.process => Ok((stream, index)),
        (_, index) => Err(format!(
            "process {index} has connected to process {}: give each its own --process",
            options.process
        )),
    }
}
