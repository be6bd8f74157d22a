// The frames of a part of a run, from the trace of its packets, as the player takes them: see
// qjump_mn/report/player/packing.py. Times are ps, in the recording ns.
const FIELDS = ["at", "link", "flow", "seq", "src", "dst", "bytes", "kind", "level", "dropped"];
const DATA = 0, ACK = 1, SYN = 4, DATAGRAM = 3, SYN_ACK = 5;
// The part has as many sending times of a full packet, of which this share is before a round of
// urgent packets. There is room for so many frames.
const PART_PACKETS = 7500, LEAD = 0.02, MOST_FRAMES = 50000;
// The trace is read from so many times before the part as a full buffer needs to be sent.
const BUFFERS_BEFORE = 10;
// Queues that serve some frames of a port before others.
const URGENT_FIRST = ["Priority", "PFabric"];
// Hosts to one side of the switch, and the lengths of links to one side and to both.
const MOST_ROWS = 18, NODE = 52, LINK = 380, SHORTER_LINK = 300, ROW = 46, MARGIN = 12;

const fullTime = ({ rate }) => FULL_BYTES * 8 * PS_PER_S / rate;
const drainTime = (settings) => settings.buffer * fullTime(settings);

// Begin and end of the part: from the last round of urgent packets before the longest queue on.
function partOf(settings, queue) {
  const { end, round } = times(settings), length = PART_PACKETS * fullTime(settings);
  const longest = queue.at[queue.queued.indexOf(Math.max(...queue.queued))] ?? 0;
  const first = Math.round(end / 20);
  const began = first + Math.max(0, Math.floor((longest - first) / round)) * round;
  const from = Math.min(Math.max(0, began - LEAD * length), end - length);
  return { from: Math.round(from / PS_PER_NS) * PS_PER_NS, to: from + length };
}

// The rows of a trace as objects in the order of their starts and drops. Each is of a packet, and
// came to its port at `came`. What still waits at the trace's end starts then.
function followed(numbers, settings, ended) {
  const { rate, hosts } = settings, perByte = Math.round(8 * PS_PER_S / rate);
  const rows = Array.from({ length: numbers.length / FIELDS.length }, (_, index) => {
    const row = Object.fromEntries(FIELDS.map((name, field) => (
      [name, numbers[index * FIELDS.length + field]])));
    const crossing = settings.delay * PS_PER_NS + row.bytes * perByte;
    row.start = row.dropped ? row.at : row.at - crossing;
    return row;
  }).sort((one, other) => one.start - other.start);
  const waiting = new Map(), datagrams = new Map();
  for (const row of rows) {
    const { flow, kind, seq, src, dst, bytes, link, start } = row;
    const key = [flow, kind, seq, src, dst, bytes].join();
    if (!waiting.has(key)) waiting.set(key, []);
    const came = waiting.get(key), isHere = (one) => one.at <= start;
    const from = link < hosts ? undefined : row.dropped ? came.findLast(isHere) : came.find(isHere);
    if (from) came.splice(came.indexOf(from), 1);
    row.came = from && !row.dropped ? from.at : start;
    row.packet = from ? from.packet : { row, number: numberOf(row, datagrams) };
    if (link < hosts && !row.dropped) came.push(row);
  }
  const unsent = [...waiting.values()].flat();
  return [...rows, ...unsent.map((row) => (
    { ...row, link: hosts + row.dst, came: row.at, start: ended, at: ended }))];
}

function numberOf({ kind, flow, src, seq }, datagrams) {
  if (kind !== DATAGRAM) return seq;
  const key = `${flow} ${src}`, number = (datagrams.get(key) ?? 0) + 1;
  datagrams.set(key, number);
  return number;
}

function flowLabel({ kind, src, dst }) {
  const data = src === 0 ? "answers" : "transfers";
  const kinds = { [DATA]: data, [DATAGRAM]: "urgent", [SYN]: "handshake", [SYN_ACK]: "handshake" };
  const what = kinds[kind] ?? (kind === ACK ? "acknowledgements" : "control");
  return `${what}: h${src} → h${dst}`;
}

// Urgent packets first, by sender.
const flowRank = ({ kind, src, dst }) => (kind === DATAGRAM ? 0 : 1 + kind) * 1e6 + src * 1e3 + dst;

// The switch, and hosts to its right; if they are many, half of them to its left.
const columnsOf = (hosts) => (hosts > MOST_ROWS ? 2 : 1);
const isLeft = (host, hosts) => columnsOf(hosts) > 1 && host >= Math.ceil(hosts / 2);

function starLayout(hosts) {
  const columns = columnsOf(hosts), rows = Math.ceil(hosts / columns);
  const link = columns > 1 ? SHORTER_LINK : LINK, height = 2 * MARGIN + ROW * rows;
  const x = MARGIN + (columns > 1 ? NODE + link : 0), top = MARGIN;
  const nodes = [{ name: "switch", x, top, bottom: height - MARGIN, switch: true }], links = [];
  for (let host = 0; host < hosts; host++) {
    const name = `h${host}`, y = MARGIN + ROW * (host % rows + 0.5), left = isLeft(host, hosts);
    const at = left ? MARGIN : x + NODE + link;
    nodes.push({ name, x: at, top: y - 11, bottom: y + 11, switch: false });
    const begin = left ? MARGIN + NODE : x + NODE;
    links.push({ above: "switch", below: name, left: [begin, y], right: [begin + link, y] });
  }
  return { width: x + NODE + link + NODE + MARGIN, height, nodes, links };
}

// Of the lanes of a port and level, in none of which a frame overtakes another: that of a row.
function laneFor(lanes, row) {
  const lane = lanes.find((rows) => rows.at(-1).start <= row.start);
  if (lane) lane.push(row); else lanes.push([row]);
}

function lanesOf(sent) {
  const groups = new Map();
  for (const row of sent.sort((one, other) => one.came - other.came)) {
    const group = row.port * 8 + row.lane;
    if (!groups.has(group)) groups.set(group, []);
    laneFor(groups.get(group), row);
  }
  return [...groups.entries()].sort(([one], [other]) => one - other).flatMap(([, lanes]) => lanes);
}

// Numbers of 32 bits in one buffer; each list is told as its place and its length.
class Numbers {
  lists = [];
  length = 0;

  add(values) {
    const place = [this.length, values.length];
    this.lists.push(Int32Array.from(values));
    this.length += values.length;
    return place;
  }

  // Times, each as the difference from the one before.
  addTimes(values) {
    return this.add(values.map((value, index) => value - (index ? values[index - 1] : 0)));
  }

  buffer() {
    const all = new Int32Array(this.length);
    let at = 0;
    for (const list of this.lists) { all.set(list, at); at += list.length; }
    return all.buffer;
  }
}

// The recording of an arm: what the player is told of it, and its numbers.
function recorded({ name, queueKind }, trace, ended, settings, { from, to }) {
  const rows = followed(trace, settings, ended), { hosts, rate } = settings;
  const ns = (at) => Math.floor(at / PS_PER_NS) - from / PS_PER_NS;
  const inside = rows.filter((row) => row.at >= from && row.came < to);
  const complete = inside[MOST_FRAMES]?.start ?? to;
  const some = inside.filter((row) => row.came < complete);
  const packets = [...new Set(some.map((row) => row.packet))];
  packets.forEach((packet, place) => { packet.place = place; });
  for (const row of some) {
    row.port = row.link < hosts ? 2 * row.link + 1 : 2 * (row.link - hosts);
    row.lane = URGENT_FIRST.includes(queueKind) ? LEAST_URGENT - row.level : 0;
  }
  const lanes = lanesOf(some.filter((row) => !row.dropped)), sent = lanes.flat();
  const drops = some.filter((row) => row.dropped), numbers = new Numbers();
  const firsts = [...new Map(packets.map(({ row }) => [flowLabel(row), row])).values()];
  const flows = firsts.sort((one, other) => flowRank(one) - flowRank(other)).map(flowLabel);
  let first = 0;
  const told = {
    name, until: ns(complete), layout: starLayout(hosts), flows,
    ports: Array.from({ length: 2 * hosts }, (_, port) => {
      const ends = ["switch", `h${port >> 1}`], isSwitch = port % 2 === 0;
      const [source, destination] = isSwitch ? ends : ends.reverse();
      const right = isSwitch !== isLeft(port >> 1, hosts);
      return { from: source, to: destination, link: port >> 1, right, rate };
    }),
    lanes: lanes.map((each) => {
      first += each.length;
      return [each[0].port, each[0].lane, first - each.length, each.length];
    }),
    rows: {
      came: numbers.addTimes(sent.map((row) => ns(row.came))),
      waited: numbers.add(sent.map((row) => ns(row.start) - ns(row.came))),
      crossed: numbers.add(sent.map((row) => ns(row.at) - ns(row.start))),
      bytes: numbers.add(sent.map((row) => row.bytes)),
      packet: numbers.add(sent.map((row) => row.packet.place)),
    },
    drops: {
      came: numbers.addTimes(drops.map((row) => ns(row.at))),
      port: numbers.add(drops.map((row) => row.port)),
      level: numbers.add(drops.map((row) => row.lane)),
      packet: numbers.add(drops.map((row) => row.packet.place)),
    },
    flow: numbers.add(packets.map(({ row }) => flows.indexOf(flowLabel(row)))),
    number: numbers.add(packets.map(({ number }) => number)),
  };
  return { told, numbers: numbers.buffer() };
}
