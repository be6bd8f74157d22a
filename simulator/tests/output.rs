// SPDX-License-Identifier: GPL-2.0-or-later
//! What the program does where its output ends.

use std::fs::File;
use std::process::{Command, Stdio};

const POINT: [&str; 3] = ["fig9", "--flows", "5"];

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
    for words in [&POINT[..], &["--help"]] {
        let done = program(words).stdout(full()).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(said, "qjump-sim: standard output: No space left on device (os error 28)\n", "{words:?}");
    }
}

#[test]
fn a_reader_that_has_gone_ends_the_program() {
    for words in [&POINT[..], &["--help"]] {
        let mut child = program(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let done = child.wait_with_output().unwrap();
        assert_eq!((done.status.code(), done.stderr.len()), (Some(0), 0), "{words:?}");
    }
}

/// Of 100 million flows the list alone has some gigabytes.
#[test]
fn too_little_memory_for_flows_is_told() {
    let limited = "ulimit -v 1500000; exec \"$0\" fig9 --flows 100000000";
    let done = Command::new("sh").args(["-c", limited, env!("CARGO_BIN_EXE_qjump-sim")]).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.starts_with("qjump-sim: workload: 100000000 flows need more than "), "{said}");
    assert!(said.ends_with(" MB, which there are not\n") && done.status.code() == Some(2), "{said}");
}

/// Nobody can be told that nobody can be told.
#[test]
fn nowhere_to_complain_is_no_crash() {
    assert_eq!(program(&["nothing"]).stderr(full()).status().unwrap().code(), Some(2));
}
