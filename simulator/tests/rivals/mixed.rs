// SPDX-License-Identifier: GPL-2.0-or-later
//! Flows of one run with transports, levels, deadlines and bytes of their own.

use qjump_sim::{
    Cable, Congestion, FlowResult, FlowSpec, Flows, Homa, LeafSpine, Outcome, PFabric, Priority,
    Ps, Queue, Rank, Routing, Scheme, Simulation, Topology, Transport, Wish, Workload, US,
};

const CABLE: Cable = Cable { rate: 10_000_000_000, delay: US };
const FRAME: Ps = 1_200_000;
/// From the last bit of data to the last ACK at the sender.
const BACK: Ps = 2 * (32_000 + US);

fn run(scheme: Scheme, flows: Vec<(FlowSpec, Wish)>) -> qjump_sim::Result<Outcome> {
    let rack = LeafSpine { racks: 1, hosts_per_rack: 8, spines: 0, edge: CABLE, uplink: CABLE };
    let topology = Topology::leaf_spine(&rack).unwrap();
    let mut simulation =
        Simulation::new(&topology, &scheme, &Workload::of_flows(Flows::Own(flows)), 1)?;
    simulation.run();
    assert!(simulation.is_clean());
    Ok(simulation.outcome())
}

fn flow(src: u32, packets: u32) -> FlowSpec {
    FlowSpec { start: 0, src, dst: 0, packets }
}

fn took(outcome: &Outcome) -> Vec<Ps> {
    outcome.flows.iter().map(|flow| flow.finish.unwrap()).collect()
}

/// A flow that wishes nothing is one of the list; 100 bytes take what 100 bytes take.
#[test]
fn bytes_are_exact() {
    let whole = took(&run(Scheme::tcp(), vec![(flow(1, 3), Wish::default())]).unwrap());
    let part = took(
        &run(Scheme::tcp(), vec![(flow(1, 3), Wish { bytes: Some(3_100), ..Wish::default() })])
            .unwrap(),
    );
    assert_eq!(whole, [4 * FRAME + 2 * US + BACK]);
    // The last packet follows the second into each link at once, and 100 bytes take 80 ns.
    assert_eq!(part, [3 * FRAME + 80_000 + 2 * US + BACK]);
}

/// Two flows of ten packets meet at a switch: the one with the more urgent level is not held up but
/// by a packet.
#[test]
fn levels_are_the_flows_own() {
    let scheme = Scheme { queue: Queue::Priority(Priority { limit: 225_000 }), ..Scheme::tcp() };
    let with = |level| Wish { level: Some(level), ..Wish::default() };
    let outcome = run(scheme, vec![(flow(1, 10), with(5)), (flow(2, 10), with(1))]).unwrap();
    let alone = 11 * FRAME + 2 * US + BACK;
    let took = took(&outcome);
    assert_eq!(outcome.flows.iter().map(|flow| flow.level).collect::<Vec<_>>(), [5, 1]);
    assert!(took[1] <= alone + FRAME && took[0] == alone + 10 * FRAME, "{took:?}, alone {alone}");
}

/// By deadline, whatever is left: the second of two equal flows goes first when it is due first.
#[test]
fn the_earlier_deadline_goes_first() {
    let mut scheme = Scheme { queue: Queue::PFabric(PFabric { limit: 225_000 }), ..Scheme::tcp() };
    scheme.transport.rank = Rank::Deadline;
    let due = |us: u64| Wish { deadline: Some(us * US), ..Wish::default() };
    let outcome = run(
        scheme,
        vec![(flow(1, 5), due(900)), (flow(2, 10), due(17)), (flow(3, 10), Wish::default())],
    )
    .unwrap();
    let alone = 11 * FRAME + 2 * US + BACK;
    let took = took(&outcome);
    assert!(took[1] <= alone + FRAME, "{took:?}, alone {alone}");
    assert!(took[0] < took[2]);
    assert_eq!(
        outcome.flows.iter().map(|flow| flow.met(outcome.end)).collect::<Vec<_>>(),
        [Some(true), Some(false), None]
    );
    let stopped = |end, deadline| {
        FlowResult { finish: None, deadline: Some(deadline), ..outcome.flows[0] }.met(end)
    };
    assert_eq!([stopped(US, US), stopped(US, US + 1)], [Some(false), None]);
}

/// TCP, Swift and Homa in one network: each flow between hosts of its own ends as if it were alone.
#[test]
fn transports_do_not_see_each_other() {
    let plain = Scheme { routing: Routing::PerFlow, ..Scheme::tcp() };
    let others = [
        Transport { connections: 0, ..plain.transport },
        Transport { congestion: Congestion::Homa(Homa { scheduled: 6 }), ..plain.transport },
        Transport { congestion: Congestion::Swift(qjump_sim::Swift::default()), ..plain.transport },
    ];
    let mixed = Scheme { others: others.map(Some), ..plain };
    let wish = |transport| Wish { transport, ..Wish::default() };
    let pairs = [(0, 1), (2, 3), (4, 5), (6, 7)];
    let flows = |own: &dyn Fn(u8) -> u8| {
        let of = |(number, (src, dst)): (u8, (u32, u32))| {
            (FlowSpec { start: 0, src, dst, packets: 200 }, wish(own(number)))
        };
        (0..).zip(pairs).map(of).collect::<Vec<_>>()
    };
    let together = run(mixed, flows(&|number| number)).unwrap();
    assert_eq!(together.flows.iter().map(|flow| flow.transport).collect::<Vec<_>>(), [0, 1, 2, 3]);
    for number in 0..4u8 {
        let transport = [plain.transport, others[0], others[1], others[2]][usize::from(number)];
        let alone =
            run(Scheme { transport, ..plain }, vec![flows(&|_| 0)[usize::from(number)]]).unwrap();
        assert_eq!(
            together.flows[usize::from(number)].finish,
            alone.flows[0].finish,
            "transport {number}"
        );
    }
}

#[test]
fn what_cannot_be_wished_is_told() {
    let said = |wish| run(Scheme::tcp(), vec![(flow(1, 2), wish)]).unwrap_err().to_string();
    assert_eq!(
        said(Wish { level: Some(8), ..Wish::default() }),
        "flow at 0 ps: its level 8 must be 0 to 7"
    );
    assert_eq!(
        said(Wish { transport: 1, ..Wish::default() }),
        "flow at 0 ps: there is no transport 1 in the scheme"
    );
    assert_eq!(
        said(Wish { transport: 4, ..Wish::default() }),
        "flow at 0 ps: there is no transport 4 in the scheme"
    );
    assert_eq!(
        said(Wish { bytes: Some(1_500), ..Wish::default() }),
        "flow at 0 ps: 1500 bytes are not 2 packets of at most 1500"
    );
    assert_eq!(
        said(Wish { bytes: Some(3_001), ..Wish::default() }),
        "flow at 0 ps: 3001 bytes are not 2 packets of at most 1500"
    );
}
