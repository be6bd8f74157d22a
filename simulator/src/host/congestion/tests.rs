// SPDX-License-Identifier: GPL-2.0-or-later
//! Windows after single ACKs, marks and timeouts.

use super::dctcp::ALPHA;
use super::*;
use crate::core::time::{MS, US};

/// Those of the published scripts, at 10 Gb/s.
const PUBLISHED: Windows = Windows { initial: 12, most: 149, least: 1 };
const LINE: u64 = 10_000_000_000;

fn control(congestion: Congestion) -> Control {
    Control::new(congestion, PUBLISHED, LINE)
}

#[test]
fn the_window_opens_by_one_for_each_ack_then_for_each_window() {
    let mut control = control(Congestion::Reno);
    control.on_timeout(0);
    // ssthresh is 6: five ACKs of slow start; then the window's square grows by 2 with each: 6.5
    // ACKs to 7, 14 to 8, 22.5 to 9.
    let mut acks = 0;
    let mut needed = |control: &mut Control, window| {
        while control.window() < window {
            control.on_ack(0, 1, 0);
            acks += 1;
        }
        std::mem::take(&mut acks)
    };
    let counts: Vec<u32> = (2..=9).map(|window| needed(&mut control, window)).collect();
    assert_eq!(counts, [1, 1, 1, 1, 1, 7, 7, 9]);
    (0..100_000).for_each(|_| control.on_ack(0, 1, 0));
    assert_eq!(control.window(), PUBLISHED.most);
}

#[test]
fn alpha_follows_the_marks_and_cuts_by_half_of_it() {
    let mut control = control(Congestion::Dctcp(Dctcp { shift: 4 }));
    control.on_mark(0);
    assert_eq!(
        (control.window(), control.window.ssthresh / ONE),
        (12, 12),
        "alpha begins at 0: only slow start ends"
    );
    control.on_window(5, 10);
    assert_eq!(control.alpha(), ALPHA / 32);
    (0..500).for_each(|_| control.on_window(10, 10));
    assert!(control.alpha() > ALPHA - 16 && control.alpha() <= ALPHA);
    control.on_mark(0);
    assert_eq!(control.window(), 6);
    control.window.bounds.least = 4;
    control.on_mark(0);
    assert_eq!(control.window(), 4);
    control.window.bounds.least = 1;
    control.on_mark(0);
    assert_eq!(control.window(), 2);
    control.window.bounds.least = 4;
    control.on_mark(0);
    assert_eq!(control.window(), 2, "a mark opens no window");
}

/// RFC 3168: half the window, at least two packets where slow start ends, and no more than there
/// was.
#[test]
fn a_mark_halves_the_window_of_ecn_and_no_other() {
    for (congestion, left) in
        [(Congestion::Ecn, 6), (Congestion::Reno, 12), (Congestion::Cubic, 12)]
    {
        let mut control = control(congestion);
        control.on_mark(0);
        control.on_window(10, 10);
        assert_eq!(control.window(), left, "{congestion:?}");
    }
}

#[test]
fn long_idleness_restarts_the_window() {
    let mut control = control(Congestion::Reno);
    control.on_timeout(0);
    control.on_idle(MS, 200 * US, false);
    assert_eq!(control.window(), 1);
    control.on_idle(2 * MS, MS, true);
    assert_eq!(control.window(), 12);
}
