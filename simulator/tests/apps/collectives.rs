// SPDX-License-Identifier: GPL-2.0-or-later
//! Collectives against the cost formulas of Thakur, Rabenseifner and Gropp (2005), and files in
//! GOAL.

use super::*;

/// An ACK on a host's link.
const ACK: Ps = 40 * BYTE;

fn collective(hosts: Vec<u32>, pattern: Pattern, iterations: u32) -> Collective {
    Collective { hosts, pattern, level: 0, first: US, pause: 20 * US, iterations, until: None }
}

fn times(outcome: &Outcome, app: usize) -> Vec<Ps> {
    let AppResult::Collective(results) = &outcome.apps[app] else { unreachable!() };
    results.times.iter().map(|time| time.unwrap()).collect()
}

fn alone(hosts: Vec<u32>, pattern: Pattern, iterations: u32) -> Vec<Ps> {
    let app = App::Collective(collective(hosts, pattern, iterations));
    times(&run(Scheme::tcp(), vec![app], vec![], None), 0)
}

fn goal(text: &str) -> Pattern {
    Pattern::Goal { operations: read_goal("a.goal", text).unwrap().1 }
}

/// Messages of one packet under one switch: a step is alpha + bytes * beta exactly, and each but
/// the first waits for the ACK of the one before it.
#[test]
fn steps_of_one_packet_take_their_closed_form() {
    let step = |bytes: Ps| 2 * (bytes * BYTE + CABLE);
    for n in [2, 3, 5, 8, 16] {
        let hosts: Vec<u32> = (0..n as u32).collect();
        let steps = 2 * (n - 1);
        let ring = Pattern::RingAllReduce { bytes: n * 1_000 };
        let expected = steps * step(1_000) + (steps - 1) * ACK;
        assert_eq!(alone(hosts.clone(), ring, 3), [expected; 3], "ring of {n}");
        let all = Pattern::AllToAll { bytes: 1_000 };
        let expected = (n - 1) * step(1_000) + (n - 2) * ACK;
        assert_eq!(alone(hosts, all, 3), [expected; 3], "all to all of {n}");
    }
}

/// Windows, queues and timeouts of a whole message. With smaller windows ACKs come in bursts behind data
/// that waits at their host, as Zhang, Shenker and Clark found (SIGCOMM'91), and links idle.
fn steady() -> Scheme {
    let tcp = Scheme::tcp();
    let transport =
        Transport { initial_window: 1_000, max_window: 1_000, min_rto: 100 * MS, ..tcp.transport };
    Scheme { transport, queue: Queue::DropTail(Limit::Packets(3_000)), ..tcp }
}

/// Parts of 1 MB, in one rack and from rack to rack with spraying: 2 (n - 1) (alpha + part * beta)
/// within the ACKs' share of the reverse direction, 40 of 1,500 bytes.
#[test]
fn large_rings_cost_what_is_published() {
    for distance in [1, 16] {
        let n: u64 = 8;
        let hosts = (0..8).map(|rank| rank * distance).collect();
        let steps = 2 * (n - 1);
        let alpha = 2 * CABLE + if distance == 1 { FULL } else { FULL + 2 * (FULL / 4) + 400_000 };
        let published = steps * (alpha + 1_000_000 * BYTE);
        let ring =
            App::Collective(collective(hosts, Pattern::RingAllReduce { bytes: n * 1_000_000 }, 2));
        for took in times(&run(steady(), vec![ring], vec![], None), 0) {
            let ratio = took as f64 / published as f64;
            assert!((1.0..1.03).contains(&ratio), "{distance}: {ratio}");
        }
    }
}

/// 2 lg n (alpha + bytes * beta); a broadcasting rank also waits for its ACKs.
#[test]
fn trees_cost_what_is_published() {
    for (n, levels) in [(2, 1), (4, 2), (8, 3), (16, 4)] {
        let alpha = 2 * CABLE + FULL;
        let published = 2 * levels * (alpha + 1_000_000 * BYTE);
        let slack = levels * (2 * CABLE + 2 * ACK);
        let tree = Pattern::TreeAllReduce { bytes: 1_000_000 };
        let took = alone((0..n).collect(), tree, 1)[0];
        assert!(took as f64 <= published as f64 * 1.03 + slack as f64, "{n}: {took}");
        assert!(took >= published, "{n}: {took} of {published}");
    }
}

/// Any number of ranks: each gets every other's data once and sends on what it has, so a ring
/// carries 2 (n - 1) n messages, a tree 2 (n - 1).
#[test]
fn every_number_of_ranks_is_reduced() {
    for n in 2..=16_u64 {
        let count = |pattern: Pattern| {
            let app = App::Collective(collective((0..n as u32).collect(), pattern, 1));
            run(Scheme::tcp(), vec![app], vec![], None).counters.delivered.data
        };
        assert_eq!(count(Pattern::RingAllReduce { bytes: 1_000 * n + 1 }), 2 * n * (n - 1));
        assert_eq!(count(Pattern::TreeAllReduce { bytes: 1_000 }), 2 * (n - 1));
        assert_eq!(count(Pattern::AllToAll { bytes: 1_000 }), n * (n - 1));
    }
}

/// Two rings through the same links share them: neither is faster than alone, and together they
/// take at most as long as one after the other.
#[test]
fn competing_jobs_share_the_links() {
    let ring = || collective((0..8).collect(), Pattern::RingAllReduce { bytes: 8_000_000 }, 2);
    let single = times(&run(Scheme::dctcp(), vec![App::Collective(ring())], vec![], None), 0);
    let apps = vec![App::Collective(ring()), App::Collective(ring())];
    let outcome = run(Scheme::dctcp(), apps, vec![], None);
    for app in 0..2 {
        for took in times(&outcome, app) {
            let ratio = took as f64 / single[0] as f64;
            assert!((1.7..2.1).contains(&ratio), "{ratio}");
        }
    }
}

/// 100 ns of computing, a message of 1,000 bytes, and 50 ns at its receiver; two times on one
/// processor take place one after another, on two together.
#[test]
fn a_goal_file_takes_its_closed_form() {
    let text = |cpu: u32| {
        format!(
            "num_ranks 2\n\nrank 0 {{ // the sender\nl1: calc 100 cpu 0\nl2: send 1000b to 1 tag \
             7 cpu 0 nic 0\nl2 requires l1\n}}\nrank 1 {{\nr: recv 1000b from 0 tag 7\nc: calc 50 \
             # after it\nd: calc 50 cpu {cpu}\nc requires r\nd irequires c\n}}\n"
        )
    };
    let message = 2 * (1_000 * BYTE + CABLE);
    for (cpu, computing) in [(0, 150_000 + 50_000), (1, 150_000)] {
        let took = alone(vec![3, 4], goal(&text(cpu)), 2);
        assert_eq!(took, [message + computing; 2], "cpu {cpu}");
    }
}

/// The sender waits for the ACK of its first message; its receiver does not.
#[test]
fn a_message_ends_later_for_its_sender() {
    let text = "num_ranks 2\nrank 0 {\na: send 1000b to 1\nb: send 1000b to 1\nb requires a\n}\n\
                rank 1 {\na: recv 1000b from 0\nb: recv 1000b from 0\n}\n";
    let message = 2 * (1_000 * BYTE + CABLE);
    assert_eq!(alone(vec![3, 4], goal(text), 1), [2 * message + 2 * (ACK + CABLE)]);
}

#[test]
fn a_wrong_goal_file_is_refused_with_its_line() {
    let ranks = |body: &str| format!("num_ranks 2\nrank 0 {{\n{body}\n}}\n");
    let cases = [
        (String::new(), "a.goal:1: there is no num_ranks"),
        ("rank 0 {".to_owned(), "a.goal:1: num_ranks must come first"),
        ("num_ranks two".to_owned(), "a.goal:1: num_ranks must be a whole number (got two)"),
        ("num_ranks 2\nl1: calc 5".to_owned(), "a.goal:2: \"l1: calc 5\" is neither \"num_ranks"),
        (ranks("l1: jump 5"), "a.goal:3: \"jump 5\" is neither \"send 8b to 1 tag 0\""),
        (ranks("l1: send 8 to 1"), "a.goal:3: a size must be a number of bytes, as 8b (got 8)"),
        (ranks("l1: send 8b to 2"), "a.goal:3: there is no rank 2 among 2"),
        (ranks("l1: send 8b to 0"), "a.goal:3: rank 0 sends to itself"),
        (ranks("l1: send 8b to 1 tag"), "a.goal:3: \"tag\" must be pairs of tag, cpu or nic"),
        (ranks("l1: send 8b to 1 nic 1"), "a.goal:3: a host has one link: nic must be 0 (got 1)"),
        (ranks("l1: calc 1\nl1: calc 2"), "a.goal:4: rank 0 has the label l1 twice"),
        (ranks("l1: calc 1\nl1 requires l2"), "a.goal:4: there is no label l2 above"),
        (ranks("l1: send 8b to 1"), "a.goal:3: nobody receives this message"),
        (
            ranks("l1: recv 8b from 1 tag 3"),
            "a.goal:3: there is no message from 1 to 0 with tag 3 left to receive",
        ),
        (
            ranks("l1: calc 1\nl2: calc 2\nl1 requires l2\nl2 requires l1"),
            "a.goal:3: it waits for itself, through others",
        ),
        ("num_ranks 2\nrank 0 {\nl1: calc 1".to_owned(), "a.goal:3: rank 0 needs a closing brace"),
    ];
    for (text, sentence) in cases {
        let told = read_goal("a.goal", &text).unwrap_err().to_string();
        assert!(told.starts_with(sentence), "{told}");
    }
}

#[test]
fn a_wrong_collective_is_refused() {
    let send = |rank, to, after| Operation::Send { rank, to, bytes: 100, after };
    let cases = [
        (vec![], "0 operations must be between 1 and 2^24"),
        (vec![send(0, 5, vec![])], "operation 0: there is no rank 5 among 3"),
        (vec![send(0, 1, vec![4])], "operation 0: there is no operation 4 among 1"),
        (
            vec![send(0, 1, vec![]), send(2, 0, vec![0])],
            "operation 1: rank 2 cannot wait for operation 0, which it neither carries out nor",
        ),
        (
            vec![send(0, 1, vec![1]), send(1, 0, vec![0])],
            "operation 0: it waits for itself, through others",
        ),
    ];
    for (operations, sentence) in cases {
        let app = collective(vec![0, 1, 2], Pattern::Goal { operations }, 1);
        let workload = Workload::of_apps(vec![App::Collective(app)]);
        let refused = Simulation::new(&fabric(), &Scheme::tcp(), &workload, 1);
        let told = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told.starts_with(&format!("collective of 0 and others: {sentence}")), "{told}");
    }
}
