// SPDX-License-Identifier: GPL-2.0-or-later
//! How far a run has come, on standard error: in a terminal on a line that changes, else a line now and then.

use std::io::{stderr, IsTerminal, Write};
use std::time::{Duration, Instant};

use qjump_sim::{Progress, MS};

/// Between two in a terminal, and before the first.
const CHANGES: Duration = Duration::from_millis(500);
/// Between two that stay.
const LINES: Duration = Duration::from_secs(10);

pub struct Shown {
    began: Instant,
    next: Instant,
    terminal: bool,
    changed: bool,
}

impl Shown {
    pub fn new() -> Self {
        let (began, terminal) = (Instant::now(), stderr().is_terminal());
        Shown { began, next: began + if terminal { CHANGES } else { LINES }, terminal, changed: false }
    }

    /// Shows how far it has come, if it is time to.
    pub fn look(&mut self, progress: impl FnOnce() -> Progress) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        let line = line(&progress(), (now - self.began).as_secs_f64());
        // Nobody may read it: that ends no run.
        let _ = if self.terminal { write!(stderr(), "\r\x1b[K{line}") } else { writeln!(stderr(), "{line}") };
        self.changed = self.terminal;
        self.next = now + if self.terminal { CHANGES } else { LINES };
    }
}

impl Drop for Shown {
    /// What stands in a terminal goes away.
    fn drop(&mut self) {
        if self.changed {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

fn line(progress: &Progress, elapsed: f64) -> String {
    let Progress { now, finished, flows, share } = *progress;
    let (percent, left) = if share > 0.0 {
        (format!("{:.0} %, ", 100.0 * share), format!(", {:.0} s left", elapsed * (1.0 - share) / share))
    } else {
        (String::new(), String::new())
    };
    let flows = if flows > 0 { format!(", {finished} of {flows} flows finished") } else { String::new() };
    format!("{percent}{:.3} ms simulated{flows}; {elapsed:.0} s{left}", now as f64 / MS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_what_is_left() {
        let of = |finished, flows, share| line(&Progress { now: 34_500 * MS / 1_000, finished, flows, share }, 30.0);
        assert_eq!(of(2, 10, 0.25), "25 %, 34.500 ms simulated, 2 of 10 flows finished; 30 s, 90 s left");
        assert_eq!(of(0, 0, 0.0), "34.500 ms simulated; 30 s", "nobody knows how long");
    }
}
