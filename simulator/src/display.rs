// SPDX-License-Identifier: GPL-2.0-or-later
//! Show progress on standard error: one changing line in a terminal, otherwise a line every ten
//! seconds.

use std::io::{stderr, IsTerminal, Write};
use std::time::{Duration, Instant};

use qjump_sim::{Progress, MS};

/// Interval in a terminal, and time before the first line.
const CHANGES: Duration = Duration::from_millis(500);
/// Interval of lines that stay.
const LINES: Duration = Duration::from_secs(10);

pub struct ProgressDisplay {
    began: Instant,
    next: Instant,
    terminal: bool,
    changed: bool,
}

impl ProgressDisplay {
    pub fn new() -> Self {
        let (began, terminal) = (Instant::now(), stderr().is_terminal());
        ProgressDisplay {
            began,
            next: began + if terminal { CHANGES } else { LINES },
            terminal,
            changed: false,
        }
    }

    /// Shows progress, if it is due.
    pub fn look(&mut self, progress: impl FnOnce() -> Progress) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        let line = line(&progress(), (now - self.began).as_secs_f64());
        // An unreadable standard error must not end the run.
        let _ = if self.terminal {
            write!(stderr(), "\r\x1b[K{line}")
        } else {
            writeln!(stderr(), "{line}")
        };
        self.changed = self.terminal;
        self.next = now + if self.terminal { CHANGES } else { LINES };
    }
}

impl Drop for ProgressDisplay {
    /// Clears the line in a terminal.
    fn drop(&mut self) {
        if self.changed {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

fn line(progress: &Progress, elapsed: f64) -> String {
    let Progress { now, finished, flows, share } = *progress;
    let (percent, left) = if share > 0.0 {
        (
            format!("{:.0} %, ", 100.0 * share),
            format!(", {:.0} s left", elapsed * (1.0 - share) / share),
        )
    } else {
        (String::new(), String::new())
    };
    let flows =
        if flows > 0 { format!(", {finished} of {flows} flows finished") } else { String::new() };
    format!("{percent}{:.3} ms simulated{flows}; {elapsed:.0} s{left}", now as f64 / MS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_what_is_left() {
        let of = |finished, flows, share| {
            line(&Progress { now: 34_500 * MS / 1_000, finished, flows, share }, 30.0)
        };
        assert_eq!(
            of(2, 10, 0.25),
            "25 %, 34.500 ms simulated, 2 of 10 flows finished; 30 s, 90 s left"
        );
        assert_eq!(of(0, 0, 0.0), "34.500 ms simulated; 30 s", "nobody knows how long");
    }
}
