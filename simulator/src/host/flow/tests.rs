// SPDX-License-Identifier: GPL-2.0-or-later
//! A sender alone: windows and packets after single ACKs.

use super::*;
use crate::core::time::US;
use crate::host::congestion::{Congestion, Dctcp};

fn flow(t: &Transport) -> Flow {
    flow_of(t, 1_000)
}

fn flow_of(t: &Transport, packets: u32) -> Flow {
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
    Flow::new(t, task, Path::new(t, 10_000_000_000))
}

/// Sends what the window allows; the numbers, and which of them tells of a reduced window.
fn send(flow: &mut Flow, t: &Transport) -> (Vec<u32>, Vec<u32>) {
    let (mut sent, mut told) = (Vec::new(), Vec::new());
    while let Some(number) = flow.next(t, 0) {
        if !flow.was_sent(number) && flow.take_reduced() {
            told.push(number);
        }
        flow.sent(number);
        sent.push(number);
    }
    (sent, told)
}

fn ack(flow: &mut Flow, t: &Transport, cumulative: u32, echo: u32, marked: bool) {
    flow.on_packet(t, 0, Ack { cumulative, echo: Some(echo), marked, round_trip: 100 * US });
}

/// RFC 3168, section 6.1.2: all ACKs of a window are marked and it is halved once; the first new
/// packet says so, and marks of those after it halve the window again.
#[test]
fn marks_halve_the_window_once() {
    let t = Transport { delayed_ack: None, ..Transport::linux(Congestion::Ecn) };
    let mut flow = flow(&t);
    assert_eq!(send(&mut flow, &t), ((0..10).collect(), vec![]));
    let mut sent = Vec::new();
    for number in 0..10 {
        ack(&mut flow, &t, number + 1, number, true);
        assert_eq!(flow.path.control.window(), 5);
        sent.push(send(&mut flow, &t));
    }
    // Five packets have to leave before there is room; the first after that tells of the cut.
    assert!(sent[..5].iter().all(|(sent, told)| sent.is_empty() && told.is_empty()));
    assert_eq!(sent[5], (vec![10], vec![10]));
    assert!(sent[6..].iter().all(|(sent, told)| sent.len() == 1 && told.is_empty()));
    ack(&mut flow, &t, 11, 10, true);
    assert_eq!(flow.path.control.window(), 2);
    ack(&mut flow, &t, 12, 11, true);
    assert_eq!(flow.path.control.window(), 2);
}

/// Where marks say nothing, they do not keep the window from growing either.
#[test]
fn marks_without_ecn_say_nothing() {
    for congestion in [Congestion::Reno, Congestion::Cubic] {
        let t = Transport { delayed_ack: None, ..Transport::linux(congestion) };
        let mut flow = flow(&t);
        send(&mut flow, &t);
        ack(&mut flow, &t, 1, 0, true);
        assert_eq!(flow.path.control.window(), 11);
    }
}

/// Of nine packets six are acknowledged with a mark, in ACKs of two and of one: packets count and
/// not ACKs.
#[test]
fn dctcp_counts_packets() {
    let t = Transport::linux(Congestion::Dctcp(Dctcp { shift: 4 }));
    let mut flow = flow(&t);
    send(&mut flow, &t);
    // The first ACK ends an observation of nothing. The next ends with packet 9, the tenth.
    ack(&mut flow, &t, 1, 0, false);
    let mut cumulative = 1;
    let mut counted = |packets, marked| {
        cumulative += packets;
        ack(&mut flow, &t, cumulative, cumulative - 1, marked);
        (flow.acked, flow.marked)
    };
    assert_eq!([counted(2, true), counted(1, true), counted(2, false)], [(2, 2), (3, 3), (5, 3)]);
    assert_eq!([counted(2, true), counted(1, true), counted(1, false)], [(7, 5), (8, 6), (0, 0)]);
    assert_eq!(flow.path.control.alpha(), (1 << 20) * 6 / 9 / 16);
}

/// RFC 6582: three repeated ACKs, the first packet at once, new ones as the repeated ACKs tell that
/// packets leave; a partial ACK sends the next hole, the full one ends it with half the window.
#[test]
fn newreno_sends_a_hole_for_each_partial_ack() {
    let t = Transport {
        delayed_ack: None,
        sack: false,
        initial_window: 20,
        ..Transport::linux(Congestion::Reno)
    };
    let mut flow = flow(&t);
    send(&mut flow, &t);
    // Packets 0 and 10 are lost: 18 ACKs repeat. The third finds the loss with 17 under way, the
    // window is 10.
    let mut sent = Vec::new();
    for number in (1..20).filter(|&n| n != 10) {
        ack(&mut flow, &t, 0, number, false);
        sent.push(send(&mut flow, &t).0);
    }
    assert_eq!(flow.path.control.window(), 10);
    assert!(sent[..2].iter().all(Vec::is_empty));
    assert_eq!(sent[2], [0]);
    // RFC 6582: usable are ssthresh + repeated ACKs - 20 under way: from the eleventh on.
    assert!(sent[3..10].iter().all(Vec::is_empty), "{sent:?}");
    let new: Vec<u32> = sent[10..].concat();
    assert_eq!(new, (20..28).collect::<Vec<u32>>());
    // The first packet has come: 10 of 28 acknowledged. Deflated by 10 and inflated by 1, the
    // window lets one new packet go.
    ack(&mut flow, &t, 10, 0, false);
    assert_eq!(send(&mut flow, &t).0, [10, 28]);
    ack(&mut flow, &t, 10, 20, false);
    assert_eq!(send(&mut flow, &t).0, [29]);
    ack(&mut flow, &t, 28, 10, false);
    assert_eq!(
        (flow.path.control.window(), flow.phase),
        (3, Phase::Open),
        "two packets under way and one more"
    );
    assert_eq!(send(&mut flow, &t).0, [30]);
}

/// RFC 6675, step 4.3: the first hole does not wait until half the window has left.
#[test]
fn the_first_hole_is_sent_at_once() {
    for sack in [true, false] {
        let t = Transport {
            delayed_ack: None,
            sack,
            initial_window: 100,
            ..Transport::linux(Congestion::Reno)
        };
        let mut flow = flow(&t);
        send(&mut flow, &t);
        let sent: Vec<Vec<u32>> = (1..=3)
            .map(|number| {
                ack(&mut flow, &t, 0, number, false);
                send(&mut flow, &t).0
            })
            .collect();
        assert_eq!(sent, [vec![], vec![], vec![0]]);
        assert_eq!(flow.path.control.window(), 50);
    }
}

/// RFC 6675: each of 20 lost packets out of 40, every other one, is found lost when three above it
/// have arrived, and sent when less than the window is under way: never more than two for an ACK.
#[test]
fn many_holes_do_not_make_a_burst() {
    let t =
        Transport { delayed_ack: None, initial_window: 40, ..Transport::linux(Congestion::Reno) };
    let mut flow = flow(&t);
    send(&mut flow, &t);
    let mut sent = Vec::new();
    for number in (1..40).step_by(2) {
        ack(&mut flow, &t, 0, number, false);
        let now = send(&mut flow, &t).0;
        assert!(now.len() <= 2, "{now:?}");
        sent.extend(now);
    }
    // The third ACK finds the first loss; each later one a packet that has arrived and one that is
    // lost. Under way are 37 - 1 + 1 at first, then two less with each: after nine more there is
    // room for one, and from then on for two with each.
    assert_eq!(flow.path.control.window(), 20);
    assert_eq!(sent, (0..36).step_by(2).collect::<Vec<u32>>());
}

/// RFC 6675, section 4, `NextSeg` 3: of twelve packets the first and the tenth are lost. Only two
/// above the tenth arrive, so that it does not count as lost; as there is nothing new, it is sent
/// again when less than the window of six is under way, once.
#[test]
fn a_hole_near_the_end_is_sent_again_when_nothing_is_new() {
    let t =
        Transport { delayed_ack: None, initial_window: 12, ..Transport::linux(Congestion::Reno) };
    let sent_for = |packets| {
        let mut flow = flow_of(&t, packets);
        send(&mut flow, &t);
        [1, 2, 3, 4, 5, 6, 7, 8, 10, 11].map(|number| {
            ack(&mut flow, &t, 0, number, false);
            send(&mut flow, &t).0
        })
    };
    // Under way are 9 with the third ACK, 5 with the seventh: nothing is missing below what has
    // arrived before the ninth.
    let (first, expected): (Vec<u32>, [&[u32]; 4]) = (vec![0], [&[], &[], &[9], &[]]);
    let sent = sent_for(12);
    assert_eq!(
        (&sent[2], sent[..6].concat(), &sent[6..]),
        (&first, vec![0], &expected.map(Vec::from)[..])
    );
    // As long as there is something new, that goes first: one more for each packet that has left.
    assert_eq!(sent_for(16)[6..], [[12], [13], [14], [15]]);
}

/// Nor is a packet above all that have arrived sent again.
#[test]
fn the_last_packet_waits_for_the_timer() {
    let t =
        Transport { delayed_ack: None, initial_window: 12, ..Transport::linux(Congestion::Reno) };
    let mut flow = flow_of(&t, 12);
    send(&mut flow, &t);
    let sent: Vec<u32> = (1..11)
        .flat_map(|number| {
            ack(&mut flow, &t, 0, number, false);
            send(&mut flow, &t).0
        })
        .collect();
    assert_eq!(sent, [0]);
}
