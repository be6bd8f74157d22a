// SPDX-License-Identifier: GPL-2.0-or-later
//! The log of when each barrier began and ended: kept in memory and written at the end.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::options::Options;

struct Row {
    start_ns: AtomicU64,
    end_ns: AtomicU64,
}

/// Filled by the worker and read by the thread that ends the process; rows below `count` are
/// complete.
pub struct Log {
    rows: Vec<Row>,
    count: AtomicUsize,
    late: AtomicU64,
    first_due_ns: AtomicU64,
}

impl Log {
    pub fn new(rows: u64) -> Log {
        // Not 0, so that every page is written now: page faults must not occur while barriers are
        // measured.
        let untouched = || Row {
            start_ns: AtomicU64::new(u64::MAX),
            end_ns: AtomicU64::new(u64::MAX),
        };
        Log {
            rows: std::iter::repeat_with(untouched)
                .take(rows as usize)
                .collect(),
            count: AtomicUsize::new(0),
            late: AtomicU64::new(0),
            first_due_ns: AtomicU64::new(0),
        }
    }

    pub fn begin(&self, first_due_ns: u64) {
        self.first_due_ns.store(first_due_ns, Ordering::Relaxed);
    }

    /// Adds a barrier; `late`: it began after its time because the one before had not ended. There
    /// is room for all iterations.
    pub fn add(&self, start_ns: u64, end_ns: u64, late: bool) {
        let count = self.count.load(Ordering::Relaxed);
        self.rows[count].start_ns.store(start_ns, Ordering::Relaxed);
        self.rows[count].end_ns.store(end_ns, Ordering::Relaxed);
        self.late.fetch_add(u64::from(late), Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Release);
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub fn write(&self, options: &Options, early: bool) -> io::Result<()> {
        match &options.output {
            Some(path) => self.write_to(&mut File::create(path)?, options, early),
            None => self.write_to(&mut io::stdout().lock(), options, early),
        }
    }

    fn write_to(&self, file: &mut dyn Write, options: &Options, early: bool) -> io::Result<()> {
        let mut out = BufWriter::new(file);
        let count = self.count();
        writeln!(
            out,
            "# barrier 1 process={} processes={} iterations={} interval_ns={} hosts={}",
            options.process,
            options.hosts.len(),
            options.iterations,
            options.interval_ns,
            options.hosts.join(",")
        )?;
        writeln!(out, "# columns start_ns end_ns")?;
        for row in &self.rows[..count] {
            writeln!(
                out,
                "{} {}",
                row.start_ns.load(Ordering::Relaxed),
                row.end_ns.load(Ordering::Relaxed)
            )?;
        }
        let (late, first) = (
            self.late.load(Ordering::Relaxed),
            self.first_due_ns.load(Ordering::Relaxed),
        );
        writeln!(
            out,
            "# end rows={count} early={} late={late} first_due_ns={first}",
            u8::from(early)
        )?;
        out.flush()
    }
}
