// SPDX-License-Identifier: GPL-2.0-or-later
//! What the program does where its output ends.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

/// A file with a scenario of so many flows.
fn scenario(flows: u32) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{flows}-flows-{:?}.json", thread::current().id()));
    let cable = |rate: u64| format!(r#"{{"rate": {rate}, "delay": 1000000}}"#);
    let (edge, uplink) = (cable(10_000_000_000), cable(40_000_000_000));
    let fabric = format!(
        r#""racks": 1, "hosts_per_rack": 4, "spines": 0, "edge": {edge}, "uplink": {uplink}"#
    );
    let flows = format!(r#"{{"Poisson": {{"sizes": "search", "load": 0.6, "count": {flows}}}}}"#);
    let text = format!(
        r#"{{"topology": {{"LeafSpine": {{{fabric}}}}}, "scheme": {{"Named": "dctcp"}},
             "flows": {flows}}}"#
    );
    fs::write(&path, text).unwrap();
    path
}

fn program(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qjump-sim"));
    command.args(words);
    command
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

#[test]
fn a_full_disk_is_told_in_a_sentence() {
    let file = scenario(5);
    for words in [&["run", file.to_str().unwrap()][..], &["--help"]] {
        let done = program(words).stdout(full()).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(
            said, "qjump-sim: standard output: No space left on device (os error 28)\n",
            "{words:?}"
        );
    }
}

#[test]
fn a_reader_that_has_gone_ends_the_program() {
    let file = scenario(5);
    for words in [&["run", file.to_str().unwrap()][..], &["--help"]] {
        let mut child =
            program(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let done = child.wait_with_output().unwrap();
        assert_eq!((done.status.code(), done.stderr.len()), (Some(0), 0), "{words:?}");
    }
}

/// Of 100 million flows the list alone has some gigabytes.
#[test]
fn too_little_memory_for_flows_is_told() {
    let limited = "ulimit -v 1500000; exec \"$0\" run \"$1\"";
    let file = scenario(100_000_000);
    let done = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_qjump-sim"), file.to_str().unwrap()])
        .output()
        .unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.starts_with("qjump-sim: workload: 100000000 flows need 18 GB, and "), "{said}");
    assert!(said.ends_with(" for them: take fewer\n") && done.status.code() == Some(2), "{said}");
}

/// Nobody can be told that nobody can be told.
#[test]
fn nowhere_to_complain_is_no_crash() {
    assert_eq!(program(&["nothing"]).stderr(full()).status().unwrap().code(), Some(2));
}
