// The frames of each arm in memory, and what is where at a time. Times are ticks of a whole number of ns since the recording began.
"use strict";

let page = { arms: [] }, MICRO = 1, end = 1; // what is shown; ticks in a microsecond; the last time
let loaded = new Map(); // arms by their place, unpacked once they are shown

// Take a recording, as packing.py describes it; `page.numbers(place)` has the numbers of an arm.
function take(recording) {
  page = recording;
  MICRO = 1e3 / page.tick_ns;
  end = Math.max(1, ...page.arms.map((arm) => arm.until));
  loaded = new Map();
}

// The first index from `low` to `high` whose number is `value` or more.
function firstFrom(numbers, value, low = 0, high = numbers.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

async function load(place) {
  if (loaded.has(place)) return loaded.get(place);
  const told = page.arms[place], arms = loaded;
  const numbers = await page.numbers(place);
  const words = ([start, count]) => new Int32Array(numbers, 4 * start, count);
  const times = (each) => { let at = 0; return words(each).map((later) => at += later); };
  const rows = { came: times(told.rows.came), bytes: words(told.rows.bytes), packet: words(told.rows.packet) };
  const waited = words(told.rows.waited), crossed = words(told.rows.crossed);
  rows.start = rows.came.map((at, row) => at + waited[row]);
  rows.arrived = rows.start.map((at, row) => at + crossed[row]);
  rows.sum = new Float64Array(rows.came.length + 1); // bytes of all rows before
  for (let row = 0; row < rows.bytes.length; row++) rows.sum[row + 1] = rows.sum[row] + rows.bytes[row];
  const [, packets] = told.number;
  const arm = {
    ...told, rows, flow: words(told.flow), number: new Uint32Array(numbers, 4 * told.number[0], packets),
    ports: told.ports.map((port) => ({ ...port, lanes: [], drops: [], most: new Float64Array(8), waits: false })),
    drops: { came: times(told.drops.came), port: words(told.drops.port), level: words(told.drops.level), packet: words(told.drops.packet) },
  };
  arm.lanes = told.lanes.map(([port, level, first, count]) => laneOf(arm, port, level, first, first + count, crossed));
  for (let row = 0; row < arm.drops.came.length; row++) arm.ports[arm.drops.port[row]].drops.push(row);
  arm.most = Math.max(1, ...arm.ports.map((port) => Math.max(...port.most)));
  arm.hops = hopsOf(arm, packets);
  arm.flows = told.flows.map((label) => ({ label, packets: [] }));
  const order = [...arm.flow.keys()].filter((packet) => arm.hops.count[packet]).sort((one, other) => arm.hops.came[one] - arm.hops.came[other]);
  for (const packet of order) arm.flows[arm.flow[packet]].packets.push(packet);
  arms.set(place, arm);
  return arm;
}

// Rows of one level of a port, in which no frame overtakes another: arrivals and starts ascend.
function laneOf(arm, port, level, first, end, crossed) {
  const lane = { port, level, first, end, longest: 0 }, { rows } = arm, { most: others } = arm.ports[port];
  let most = 0, waits = false;
  for (let row = first, gone = first; row < end; row++) {
    lane.longest = Math.max(lane.longest, crossed[row]);
    while (gone < row && rows.start[gone] <= rows.came[row]) gone++;
    if (rows.start[row] > rows.came[row]) { waits = true; most = Math.max(most, rows.sum[row + 1] - rows.sum[gone]); }
  }
  arm.ports[port].lanes.push(lane);
  others[level] += most;
  arm.ports[port].waits ||= waits;
  return lane;
}

// The rows of each packet in the order of time, one packet after another.
function hopsOf(arm, packets) {
  const count = new Int32Array(packets), begin = new Int32Array(packets + 1), { rows } = arm;
  for (const packet of rows.packet) count[packet]++;
  for (let packet = 0; packet < packets; packet++) begin[packet + 1] = begin[packet] + count[packet];
  const at = begin.slice(), list = new Int32Array(rows.packet.length);
  for (let row = 0; row < list.length; row++) list[at[rows.packet[row]]++] = row;
  const came = new Int32Array(packets), gone = new Int32Array(packets);
  for (let packet = 0; packet < packets; packet++) {
    const part = list.subarray(begin[packet], begin[packet + 1]);
    if (part.length > 1) part.sort((one, other) => rows.came[one] - rows.came[other]);
    if (part.length) { came[packet] = rows.came[part[0]]; gone[packet] = rows.arrived[part[part.length - 1]]; }
  }
  const lost = new Map(); // rows of drops by packet
  arm.drops.packet.forEach((packet, row) => lost.set(packet, row));
  return { count, begin, list, came, gone, lost };
}

// The rows that wait at `time` are from `gone` up to `here`; those on the wire are before `gone`.
function inLane(arm, lane, time) {
  const { came, start } = arm.rows;
  time = Math.floor(time);
  const gone = firstFrom(start, time + 1, lane.first, lane.end);
  return { gone, here: firstFrom(came, time + 1, gone, lane.end), flying: firstFrom(start, time - lane.longest, lane.first, gone) };
}

// The event that is next after `time`, or last before it.
function event(arms, time, forwards) {
  let best = forwards ? Infinity : -Infinity;
  time = forwards ? Math.floor(time) : Math.ceil(time);
  const take = (at) => { if (forwards ? at > time && at < best : at < time && at > best) best = at; };
  for (const arm of arms) {
    const { came, start, arrived } = arm.rows;
    for (const lane of arm.lanes) {
      for (const times of [came, start]) {
        const row = firstFrom(times, forwards ? time + 1 : time, lane.first, lane.end) - (forwards ? 0 : 1);
        if (row >= lane.first && row < lane.end) take(times[row]);
      }
      const from = firstFrom(start, (forwards ? time : time - lane.longest) - lane.longest, lane.first, lane.end);
      const to = firstFrom(start, time + 1, from, lane.end);
      for (let row = from; row < to; row++) take(arrived[row]);
    }
    const row = firstFrom(arm.drops.came, forwards ? time + 1 : time) - (forwards ? 0 : 1);
    if (row >= 0 && row < arm.drops.came.length) take(arm.drops.came[row]);
  }
  return Number.isFinite(best) ? Math.min(end, Math.max(0, best)) : time;
}

// The packet of a flow that is under way at `time`, or else began last; -1 if none.
function underWay(arm, label, time) {
  const flow = arm.flows.find((each) => each.label === label);
  if (!flow) return -1;
  let low = 0, high = flow.packets.length;
  while (low < high) { const middle = (low + high) >> 1; if (arm.hops.came[flow.packets[middle]] <= time) low = middle + 1; else high = middle; }
  return low ? flow.packets[low - 1] : -1;
}

// When the next packet of a flow begins, or the last one before.
function packetAt(arms, label, time, forwards) {
  let best = null;
  for (const arm of arms) {
    for (const packet of arm.flows.find((each) => each.label === label)?.packets ?? []) {
      const at = arm.hops.came[packet];
      if (at < 0 || !(forwards ? at > time : at < time)) continue;
      if (best === null || (forwards ? at < best.at : at > best.at)) best = { at, arm, packet };
    }
  }
  return best;
}
