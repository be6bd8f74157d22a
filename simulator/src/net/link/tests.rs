// SPDX-License-Identifier: GPL-2.0-or-later
//! Limits and marks of links.

use super::*;
use crate::core::time::US;
use crate::net::topology::LeafSpine;
use crate::packet::Packet;

fn packet(pool: &mut Pool, kind: Kind, bytes: u16) -> u32 {
    pool.add(Packet { kind, ect: true, ..Packet::datagram(0, 1, 0, bytes) })
}

fn links(queue: Queue) -> Links {
    Links::new(&Topology::leaf_spine(&LeafSpine::FIG9).unwrap(), &LinkConfig::all(queue), 1, false)
        .unwrap()
}

#[test]
fn the_first_packet_above_the_threshold_is_not_marked() {
    let mut links = links(Queue::Marking(Marking { limit: 15_000, threshold: 3_000 }));
    let mut pool = Pool::default();
    let mut offer = |now, kind| {
        let handle = packet(&mut pool, kind, 1500);
        links.offer(now, 0, handle, &mut pool);
        pool.get(handle).marked
    };
    // Queues found: 0, 1, 2 packets (not above), 3 (the first above), then marks, but for ACKs.
    let found: Vec<bool> = (0..5).map(|_| offer(0, Kind::Data)).collect();
    assert_eq!(found, [false, false, false, false, true]);
    assert!(!offer(0, Kind::Ack));
    assert!(offer(0, Kind::Data));
    // Seven packets; after six have left the queue was short, and the first above is not marked
    // again.
    assert!(!offer(7_200_000, Kind::Data));
    let found: Vec<bool> = (0..3).map(|_| offer(7_200_000, Kind::Data)).collect();
    assert_eq!(found, [false, false, true]);
}

/// Also where the link is watched, whose queue is another.
#[test]
fn only_what_is_ecn_capable_is_marked() {
    for watched in [false, true] {
        let queue = Queue::Marking(Marking { limit: 15_000, threshold: 3_000 });
        let topology = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
        let mut links = Links::new(&topology, &LinkConfig::all(queue), 1, watched).unwrap();
        let mut pool = Pool::default();
        let mut offer = |ect| {
            let handle =
                pool.add(Packet { kind: Kind::Data, ect, ..Packet::datagram(0, 1, 0, 1_500) });
            links.offer(0, 0, handle, &mut pool);
            pool.get(handle).marked
        };
        let found = [false; 6].map(&mut offer);
        assert_eq!(found, [false; 6]);
        assert!(offer(true), "what is not counts for the queue");
    }
}

#[test]
fn limits_hold_in_bytes_and_in_packets() {
    let fill = |limit, bytes| {
        let (mut links, mut pool) = (links(Queue::DropTail(limit)), Pool::default());
        let mut offer = |now| {
            let handle = packet(&mut pool, Kind::Data, bytes);
            links.offer(now, 0, handle, &mut pool) != Offered::Dropped
        };
        let first = (0..100).filter(|_| offer(0)).count();
        // After 1 us, 1,250 bytes have been sent.
        (first, (0..100).filter(|_| offer(US)).count())
    };
    assert_eq!(fill(Limit::Bytes(10_000), 500), (20, 2));
    assert_eq!(fill(Limit::Packets(20), 500), (20, 2));
    assert_eq!(fill(Limit::Packets(20), 50), (20, 20));
    assert_eq!(fill(Limit::None, 500), (100, 100));
}
