// SPDX-License-Identifier: GPL-2.0-or-later
//! RACK-TLP of a sender alone, beside the RFC's examples.

use crate::core::time::{Ps, MS};
use crate::host::congestion::Congestion;
use crate::host::flow::{Ack, Flow, Task};
use crate::host::path::Path;
use crate::host::transport::Transport;

/// A round trip.
const TRIP: Ps = 10 * MS;

struct Sender {
    flow: Flow,
    t: Transport,
    now: Ps,
}

impl Sender {
    fn new(packets: u32, window: u32) -> Self {
        let t = Transport {
            delayed_ack: None,
            rack_tlp: true,
            initial_window: window,
            ..Transport::linux(Congestion::Reno)
        };
        let task = Task {
            key: 0,
            last: 1500,
            cap: u16::MAX,
            record: 0,
            from: 0,
            to: 1,
            packets,
            level: 0,
            transport: 0,
            deadline: Ps::MAX,
            start: 0,
        };
        let mut path = Path::new(&t, 10_000_000_000);
        (0..100).for_each(|_| path.round_trip(TRIP));
        Sender { flow: Flow::new(&t, task, path), t, now: 0 }
    }

    fn send(&mut self) -> Vec<u32> {
        let mut sent = Vec::new();
        while let Some(number) = self.flow.next(&self.t, self.now) {
            self.flow.sent(number);
            sent.push(number);
        }
        sent
    }

    /// An ACK at this time for a packet that left at that time; what is sent then.
    fn ack(&mut self, now: Ps, cumulative: u32, echo: u32, left: Ps) -> Vec<u32> {
        self.now = now;
        let round_trip = now - left;
        let ack = Ack { cumulative, echo: Some(echo), marked: false, round_trip };
        self.flow.on_packet(&self.t, now, ack);
        self.send()
    }

    /// The timer expires when it is due, and not for a timeout; what is sent then.
    fn expire(&mut self) -> Vec<u32> {
        self.now = self.flow.deadline();
        assert!(self.flow.on_rack_timer(&self.t, self.now), "a timeout");
        self.send()
    }
}

/// RFC 8985, section 3.4: of four packets the last three are lost, and the retransmission of one of
/// them: a probe after two round trips, then everything within a round trip each, without a
/// timeout.
#[test]
fn the_rfcs_example_of_fast_recovery() {
    let mut sender = Sender::new(4, 10);
    assert_eq!(sender.send(), [0, 1, 2, 3]);
    assert!(sender.ack(TRIP, 1, 0, 0).is_empty());
    assert_eq!(sender.expire(), [3], "the probe is the last packet");
    let probed = sender.now;
    assert_eq!(probed, TRIP + 2 * TRIP);
    assert_eq!(sender.ack(probed + TRIP, 1, 3, probed), [1, 2], "both are lost");
    // The retransmission of 1 is lost, that of 2 arrives. Both left at once: 1 before 2.
    assert_eq!(sender.ack(probed + 2 * TRIP, 1, 2, probed + TRIP), [1]);
    assert!(sender.ack(probed + 3 * TRIP, 4, 1, probed + 2 * TRIP).is_empty());
    assert!(sender.flow.finished());
}

/// A probe is new data if there is some, beyond the window (section 7.3).
#[test]
fn a_probe_is_new_data_if_there_is_some() {
    let mut sender = Sender::new(20, 4);
    assert_eq!(sender.send(), [0, 1, 2, 3]);
    assert_eq!(sender.expire(), [4]);
    assert_eq!(sender.now, 2 * TRIP);
    // One probe at a time: then the timeout is due.
    let timeout = sender.flow.path.rto(&sender.t);
    assert_eq!(sender.flow.deadline(), 2 * TRIP + timeout);
}

/// The timeout counts from when the first unacknowledged packet last left (Linux's `tcp_rearm_rto`),
/// and not from the last news.
#[test]
fn a_timeout_counts_from_the_retransmission() {
    let mut sender = Sender::new(1_000, 20);
    sender.send();
    assert!(sender.ack(TRIP, 0, 1, 0).is_empty());
    assert!(sender.ack(TRIP + MS, 0, 2, 0).is_empty());
    assert_eq!(sender.ack(TRIP + 2 * MS, 0, 3, 0), [0]);
    let timeout = TRIP + 2 * MS + sender.flow.path.rto(&sender.t);
    assert_eq!(sender.flow.deadline(), timeout);
    sender.ack(TRIP + 5 * MS, 0, 4, 0);
    assert_eq!(sender.flow.deadline(), timeout);
}

/// With one packet under way the probe waits for a delayed ACK (section 7.2).
#[test]
fn a_probe_for_one_packet_waits_for_its_delayed_ack() {
    let mut sender = Sender::new(1, 4);
    sender.t.delayed_ack = Some(40 * MS);
    sender.send();
    assert_eq!(sender.flow.deadline(), 2 * TRIP + 40 * MS);
}

/// Section 6.2, steps 4 and 5: once packets have come out of order, a hole waits for a quarter of
/// the least round trip, whatever number of packets arrives above it; then it is lost.
#[test]
fn reordered_packets_wait_for_the_window() {
    let mut sender = Sender::new(1_000, 20);
    assert_eq!(sender.send().len(), 20);
    // 0 comes after 1: with one packet above it, it is not lost yet.
    assert!(sender.ack(TRIP, 0, 1, 0).is_empty());
    assert_eq!(sender.ack(TRIP + MS, 2, 0, 0), [20, 21, 22]);
    // 2 is late: ten packets above it do not make it lost.
    for number in 3..13 {
        let sent = sender.ack(TRIP + 2 * MS, 2, number, 0);
        assert!(!sent.contains(&2), "{sent:?}");
    }
    // The last packet that arrived took 12 ms, and the window is 10 / 4.
    assert_eq!(sender.flow.deadline(), 12 * MS + TRIP / 4);
    assert_eq!(sender.expire()[0], 2);
}

/// Without reordering three packets above a hole are enough, as with duplicate ACKs.
#[test]
fn three_packets_above_a_hole_are_enough_where_nothing_is_reordered() {
    let mut sender = Sender::new(1_000, 20);
    sender.send();
    assert!(sender.ack(TRIP, 0, 1, 0).is_empty());
    assert!(sender.ack(TRIP, 0, 2, 0).is_empty());
    assert_eq!(sender.ack(TRIP, 0, 3, 0), [0]);
    assert_eq!(sender.flow.path.control.window(), 10);
}
