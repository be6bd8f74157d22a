// Settings of the page as a scenario of the simulator: hosts at one switch. All transfers and all
// probes go to host 0.
const PS_PER_NS = 1000, PS_PER_S = 1e12;
// Bytes on the wire of a full packet of the transfers, and of the answer to a transfer.
const FULL_BYTES = 1500, ANSWER_BYTES = 100;
// Sizes of transfers in full packets, and the number of each in ten.
const TRANSFERS = [[6, 5], [133, 3], [1333, 2]];
// Levels of the simulator, whose most urgent is 0.
const URGENT = 0, LEAST_URGENT = 7;
// Transfers start during this many times a full packet's sending time.
const PACKET_TIMES = 100000;
// Probing hosts send in one of this many epochs, or fewer: in every one, they would fill half of
// the link.
const EPOCHS = 10;
const MOST_PROBES = 50000;

// By the scheme's name on the page: the simulator's scheme that it starts from.
const SCHEMES = {
  none: "tcp", qjump: "tcp", dctcp: "dctcp", pfabric: "pfabric", swift: "swift", bbr: "bbr",
  dcqcn: "dcqcn", homa: "homa",
};

// What theory says of settings; times in ns, as BigInt.
function theory(settings) {
  const { hosts, packet, rate, factor, senders, delay, load } = settings;
  const [n, P, R, f, ε] = [hosts, packet, rate, factor, 2 * delay].map(BigInt);
  const epoch = networkEpochNs(n, P, R, ε, 1), link = [R, BigInt(delay)];
  const full = load > 0 ? BigInt(FULL_BYTES) - AROUND_FRAME_BYTES : 0n;
  return {
    processing: ε, epoch, delay: worstCaseDelayNs(n, P, R, ε), rate: hostRateBps(P, epoch),
    factorEpoch: networkEpochNs(n, P, R, ε, factor),
    bound: fanInBoundNs(BigInt(senders), f, P - AROUND_FRAME_BYTES, full, [link, link]),
  };
}

// When transfers and probes end, and the time between two rounds of probes; in ps.
function times(settings) {
  const { rate, factor, senders } = settings;
  const end = PACKET_TIMES * FULL_BYTES * 8 * PS_PER_S / rate;
  const epoch = Number(theory(settings).epoch) * PS_PER_NS;
  const rounds = Math.floor(MOST_PROBES / (senders * factor));
  return { end, round: epoch * Math.max(EPOCHS, Math.ceil(end / epoch / rounds)) };
}

function withBuffer(queue, bytes) {
  const [[kind, value]] = Object.entries(queue);
  if (kind === "DropTail") return { DropTail: { Bytes: bytes } };
  return typeof value.limit === "number" ? { [kind]: { ...value, limit: bytes } } : queue;
}

// The settings of a scheme: the simulator's own, with the page's buffer and QJump's limiter.
function adapted(name, scheme, settings) {
  const bytes = settings.buffer * FULL_BYTES;
  if (name !== "qjump") return { ...scheme, queue: withBuffer(scheme.queue, bytes) };
  const budgets = [settings.factor * settings.packet, ...Array(7).fill(null)];
  const epoch = Number(theory(settings).epoch) * PS_PER_NS;
  const limiter = { epoch, budgets, mode: "delay", epochs: "rolling", limit: null };
  return { ...scheme, queue: { Priority: { limit: bytes } }, limiter: { PerHost: limiter } };
}

function transfers(settings, end) {
  const count = TRANSFERS.reduce((sum, [, weight]) => sum + weight, 0);
  const mean = TRANSFERS.reduce((sum, [size, weight]) => sum + size * weight, 0) / count;
  const clients = settings.hosts - 1;
  const share = settings.load / 100 / clients * settings.rate;
  const gap = Math.round(mean * FULL_BYTES * 8 * PS_PER_S / share);
  const exchanges = TRANSFERS.map(([size, weight]) => (
    { request: size * FULL_BYTES, response: ANSWER_BYTES, weight }));
  return Array.from({ length: settings.load > 0 ? clients : 0 }, (_, index) => ({ Requests: {
    client: index + 1, servers: [0], level: LEAST_URGENT, first: 0,
    arrival: { Open: { gap, poisson: true } }, exchanges, service: { Fixed: 0 },
    count: Math.ceil(3 * end / gap) + 10, until: end } }));
}

// Each probing host sends as many packets at once as its budget has.
function probes(settings, { end, round }) {
  const { senders, factor, packet, together } = settings;
  const count = Math.floor(0.95 * end / round) + 1;
  return Array.from({ length: senders * factor }, (_, index) => {
    const src = 1 + Math.floor(index / factor);
    const phase = together ? 0 : Math.round((src - 1) * round / senders);
    return { Datagrams: { src, dst: 0, level: URGENT, first: Math.round(end / 20) + phase,
      spacing: { gap: round, poisson: false }, bytes: packet, count } };
  });
}

// `schemeOf` returns the simulator's settings of a scheme in a topology.
function scenario(name, settings, schemeOf) {
  const cable = { rate: settings.rate, delay: settings.delay * PS_PER_NS };
  const topology = { LeafSpine: {
    racks: 1, hosts_per_rack: settings.hosts, spines: 0, edge: cable, uplink: cable } };
  const when = times(settings);
  return {
    topology, scheme: { Scheme: adapted(name, schemeOf(SCHEMES[name], topology), settings) },
    apps: [...probes(settings, when), ...transfers(settings, when.end)],
    seed: settings.seed, stop: Math.round(1.1 * when.end),
  };
}
