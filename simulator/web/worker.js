// Runs the simulator apart from the page, which ends a run by ending this worker.
const SHOWN_MS = 150, EVENTS = 1 << 16;

class Simulator {
  constructor(module) {
    this.exports = new WebAssembly.Instance(module, {}).exports;
  }

  // Calls a function of the module with a text; returns the bytes that it leaves.
  bytes(name, input) {
    const { memory, [name]: act, input: reserve, output, output_len: length } = this.exports;
    if (typeof input === "string") {
      const bytes = new TextEncoder().encode(input);
      const place = reserve(bytes.length);
      new Uint8Array(memory.buffer, place, bytes.length).set(bytes);
    }
    const succeeded = typeof input === "number" ? act(input) : act();
    const left = new Uint8Array(memory.buffer, output(), length());
    if (!succeeded) throw new Error(new TextDecoder().decode(left));
    return left;
  }

  call(name, input) {
    return new TextDecoder().decode(this.bytes(name, input));
  }

  schemeOf(name, topology) {
    return JSON.parse(this.call("scheme", JSON.stringify([name, topology])));
  }
}

// Latencies of probes in ps, sorted; how many were lost; and how long transfers took.
function summary(outcome, gaps) {
  const latencies = [], transfers = [];
  let lost = 0, unfinished = 0;
  for (const { Datagrams: probes, Requests: requests } of outcome.apps) {
    if (probes) {
      lost += probes.lost;
      for (const time of probes.times) if (time !== null) latencies.push(time - gaps);
    } else {
      const times = requests.latencies.times;
      for (const time of times) if (time !== null) transfers.push(time); else unfinished++;
    }
  }
  const sorted = (values) => Float64Array.from(values).sort();
  return { latencies: sorted(latencies), lost, transfers: sorted(transfers), unfinished };
}

// The frames of a part of each run: they run again up to its end, with a trace.
function recordings(runs, settings, queue) {
  const part = partOf(settings, queue);
  return runs.map(({ simulator, text, name }) => {
    const scenario = JSON.parse(text), [queueKind] = Object.keys(scenario.scheme.Scheme.queue);
    const stop = Math.min(scenario.stop, Math.round(part.to + drainTime(settings)));
    simulator.call("begin_traced", JSON.stringify({ ...scenario, stop }));
    while (simulator.exports.advance(EVENTS));
    const before = part.from - BUFFERS_BEFORE * drainTime(settings);
    const trace = new Float64Array(simulator.bytes("trace", before).slice().buffer);
    return recorded({ name, queueKind }, trace, stop, settings, part);
  });
}

// Runs all arms side by side, and shows them on the way.
function race(module, settings, arms) {
  const gaps = Math.floor(8 * Number(GAP_BYTES) * PS_PER_S / settings.rate) * 2;
  const runs = arms.map((name) => {
    const simulator = new Simulator(module);
    const made = scenario(name, settings, (...of) => simulator.schemeOf(...of));
    const text = JSON.stringify(made);
    simulator.call("begin", text);
    return { simulator, name, text, more: true };
  });
  const shown = ({ simulator, text, more }) => ({
    ...summary(JSON.parse(simulator.call("outcome")), gaps), scenario: text, more,
    queue: JSON.parse(simulator.call("queue", settings.hosts)),
  });
  const share = () => runs.reduce((sum, { simulator }) => (
    sum + simulator.exports.progress()), 0) / runs.length;
  let last = performance.now();
  while (runs.some((run) => run.more)) {
    for (const run of runs) run.more &&= Boolean(run.simulator.exports.advance(EVENTS));
    if (performance.now() - last < SHOWN_MS) continue;
    postMessage({ share: share(), runs: runs.map(shown) });
    last = performance.now();
  }
  const ended = runs.map(shown);
  postMessage({ done: true, share: 1, runs: ended });
  const frames = recordings(runs, settings, ended[0].queue);
  postMessage({ frames }, frames.map(({ numbers }) => numbers));
}

// Runs a scenario as text to its end; returns the outcome as text.
function simulated(module, text) {
  const simulator = new Simulator(module), began = performance.now();
  simulator.call("begin", text);
  while (simulator.exports.advance(EVENTS));
  const milliseconds = performance.now() - began;
  return { outcome: simulator.call("outcome"), milliseconds };
}

onmessage = ({ data: { module, settings, arms, text } }) => {
  try {
    if (text === undefined) race(module, settings, arms);
    else postMessage(simulated(module, text));
  } catch (error) {
    postMessage({ error: error.message });
  }
};
