// QJump's equations 1 to 4 as qjump_mn/theory.py has them, and the bound that it makes of Eq. 1.
// Times are in ns, rates in bit/s, lengths in bytes; all are BigInt, rounded up where a bound must
// hold.
const NS_PER_S = 1000000000n;
const PREAMBLE_BYTES = 8n;
const GAP_BYTES = 12n;
const AROUND_FRAME_BYTES = PREAMBLE_BYTES + GAP_BYTES;

function ceilDiv(numerator, denominator) {
  return (numerator + denominator - 1n) / denominator;
}

function sentNs(bytes, rate) {
  return ceilDiv(bytes * 8n * NS_PER_S, rate);
}

// Eq. 1: n·P/R + ε.
function worstCaseDelayNs(hosts, packet, rate, processing) {
  return sentNs(hosts * packet, rate) + processing;
}

// Eq. 2 and 4: (2n/f)·P/R + ε. The factor is a Number.
function networkEpochNs(hosts, packet, rate, processing, factor) {
  const times = BigInt(Math.trunc(Number(rate) * factor));
  return ceilDiv(2n * hosts * packet * 8n * NS_PER_S, times) + processing;
}

// Eq. 3: P/epoch.
function hostRateBps(packet, epoch) {
  return packet * 8n * NS_PER_S / epoch;
}

// The longest delay of an urgent frame under fan-in. `full` are the bytes of frames of lower
// levels, 0 for none; links are [rate, delay].
function fanInBoundNs(hosts, streams, frame, full, links) {
  const sum = (terms) => terms.reduce((total, term) => total + term, 0n);
  const slowest = links.reduce((least, [rate]) => (rate < least ? rate : least), links[0][0]);
  const own = AROUND_FRAME_BYTES + frame, other = full ? AROUND_FRAME_BYTES + full : 0n;
  const jitter = sentNs((streams - 1n) * own + other, links[0][0]);
  const queueing = sentNs((hosts * streams - 1n) * own, slowest);
  const blocking = sum(links.slice(1).map(([rate]) => sentNs(other, rate)));
  const way = sum(links.map(([rate, delay]) => sentNs(PREAMBLE_BYTES + frame, rate) + delay));
  return queueing + 2n * jitter + blocking + way;
}
