// The page: settings in, pictures and numbers out. A worker runs the simulator.
const DEFAULTS = {
  scheme: "qjump", hosts: 12, packet: 1500, rate: 10000000000, factor: 1, senders: 11, load: 60,
  buffer: 150, delay: 1000, seed: 1, together: true,
};
const PERCENTILES = [
  [0.5, "median"], [0.9, "90 %"], [0.99, "99 %"], [0.999, "99.9 %"], [1, "longest"],
];
const SMALL_BUFFER = " But the buffer is smaller than what they send at once: some may be lost.";
const SETTLED_MS = 120, WITHOUT = "none";
const part = (id) => document.getElementById(id);

// ---- settings ----

// A value that its control allows; the default for what is not a number.
function allowed(key, value) {
  const control = part(key), number = Number(value);
  if (control.type === "checkbox") return [true, "true"].includes(value);
  if (control.tagName === "SELECT") {
    const known = [...control.options].find((option) => option.value === String(value));
    return known ? (typeof DEFAULTS[key] === "number" ? number : known.value) : DEFAULTS[key];
  }
  if (value === "" || !Number.isFinite(number)) return DEFAULTS[key];
  const low = Number(control.min), step = Number(control.step);
  const clamped = Math.min(Number(control.max), Math.max(low, number));
  return low + Math.round((clamped - low) / step) * step;
}

function fromLink() {
  const given = new URLSearchParams(location.hash.slice(1));
  const pairs = Object.keys(DEFAULTS).map((key) => [key, given.get(key) ?? DEFAULTS[key]]);
  return Object.fromEntries(pairs.map(([key, value]) => [key, allowed(key, value)]));
}

function fromControls() {
  const value = (key) => (part(key).type === "checkbox" ? part(key).checked : part(key).value);
  return Object.fromEntries(Object.keys(DEFAULTS).map((key) => [key, allowed(key, value(key))]));
}

// Show settings in the controls and the link. Not all hosts can send: one receives.
function show(settings) {
  settings.senders = Math.min(settings.senders, settings.hosts - 1);
  part("senders").max = settings.hosts - 1;
  for (const [key, value] of Object.entries(settings)) {
    const control = part(key);
    if (control.type === "checkbox") control.checked = value; else control.value = value;
    const exact = control.parentElement.querySelector("input[type=number]:not([id])");
    if (!exact) continue;
    [exact.min, exact.max, exact.step] = [control.min, control.max, control.step];
    if (exact !== document.activeElement) exact.value = value;
  }
  history.replaceState(null, "", `#${new URLSearchParams(settings)}`);
}

// ---- words ----

const count = (value) => value.toLocaleString("en");

// A number with the first unit that it is not less than, on one line.
function withUnit(value, units) {
  const [unit, size] = units.find(([, least]) => value >= least) ?? units.at(-1);
  return `${digits(value / size, 4)}\u00a0${unit}`;
}

const duration = (ns) => withUnit(ns, [["ms", 1e6], ["µs", 1e3], ["ns", 1]]);
const speed = (bps) => withUnit(bps, [["Gb/s", 1e9], ["Mb/s", 1e6], ["kb/s", 1e3]]);
const bytes = (value) => `${count(value)}\u00a0B`;

// The latency in ps that a share of all packets does not exceed; Infinity if it was lost.
function percentile({ latencies, lost }, share) {
  const rank = Math.ceil(share * (latencies.length + lost) - 1e-9);
  return rank <= latencies.length ? latencies[Math.max(0, rank - 1)] : Infinity;
}

function shownTime(ps) {
  return ps === undefined ? "none yet" : ps === Infinity ? "lost" : duration(ps / PS_PER_NS);
}

const schemeName = (name) => part("scheme").querySelector(`[value=${name}]`).textContent;
const median = (sorted) => sorted[Math.ceil(sorted.length / 2) - 1];

// ---- equations ----

function fill(table, rows) {
  const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent);
  table.tBodies[0].replaceChildren(...rows.map((cells) => {
    const row = document.createElement("tr");
    cells.forEach((text, index) => {
      const cell = document.createElement(index ? "td" : "th");
      if (!index) cell.scope = "row";
      cell.textContent = text;
      cell.dataset.label = index ? heads[index] : "";
      cell.className = table.tHead.rows[0].cells[index].className.replace("name", "");
      row.append(cell);
    });
    return row;
  }));
}

function showEquations(settings) {
  const { hosts: n, packet: P, rate: R, factor: f, senders } = settings, told = theory(settings);
  const [ε, time] = [duration(Number(told.processing)), (ns) => duration(Number(ns))];
  const share = `${bytes(P)} / ${speed(R)}`;
  const epochs = `(2 × ${n} / ${f}) × ${share} + ${ε} = ${time(told.factorEpoch)}`;
  fill(part("equations"), [
    ["Eq. 1: n·P/R + ε", `${n} × ${share} + ${ε} = ${time(told.delay)}`,
      "the longest delay if each of n hosts sends one packet, and nothing else is sent"],
    ["Eq. 2: 2n·P/R + ε", `2 × ${n} × ${share} + ${ε} = ${time(told.epoch)}`,
      "the network epoch, in which each host sends one packet; hosts need no common clock"],
    ["Eq. 3: P / epoch", `${bytes(P)} / ${time(told.epoch)} = ${speed(Number(told.rate))}`,
      "what a host may send at factor 1"],
    ["Eq. 4: (2n/f)·P/R + ε", epochs,
      `the epoch at factor f: ${f} × ${bytes(P)} in an epoch of Eq. 2, guaranteed for n/f hosts`],
    ["exact bound", time(told.bound),
      `for ${senders} × ${f} packets at once, with frames of other traffic in between`],
  ]);
  part("guarantee").textContent = guarantee(settings);
}

function guarantee({ hosts, factor, senders, packet, buffer }) {
  const most = `n/f = ${Math.floor(hosts / factor)}`;
  if (senders * factor > hosts) {
    return `No guarantee: factor ${factor} has one while ${most} hosts send to one receiver, and `
      + `here ${senders} do. Their packets may take longer than Eq. 1 says, and be lost.`;
  }
  const small = senders * factor * packet > buffer * FULL_BYTES;
  const verb = senders === 1 ? "does" : "do", warning = small ? SMALL_BUFFER : "";
  return `Factor ${factor} has a guarantee while ${most} hosts send to one receiver; here `
    + `${senders} ${verb}.${warning}`;
}

// ---- results ----

let shownState = null;

function showTable(runs) {
  const both = runs.length === 1 ? [runs[0], runs[0]] : runs;
  fill(part("percentiles"), [
    ...PERCENTILES.map(([share, name]) => (
      [name, ...both.map((run) => shownTime(percentile(run, share)))])),
    ["urgent packets", ...both.map((run) => count(run.latencies.length + run.lost))],
    ["lost", ...both.map((run) => count(run.lost))],
    ["transfers that ended", ...both.map((run) => count(run.transfers.length))],
    ["their median time", ...both.map((run) => shownTime(median(run.transfers)))],
  ]);
}

// What became of the urgent packets, in a sentence.
function sentence(run, name) {
  const { latencies, lost } = run, total = latencies.length + lost;
  const fate = lost ? `${count(lost)} of ${count(total)} are lost` : "none is lost";
  const scheme = name === WITHOUT ? "Without a scheme" : `With ${schemeName(name)}`;
  const [median, longest] = [percentile(run, 0.5), latencies.at(-1)].map(shownTime);
  return `${scheme} the median is ${median}, the longest ${longest}, and ${fate}.`;
}

function ofBound({ latencies, lost }, settings) {
  const bound = Number(theory(settings).bound) * 1000;
  if (settings.scheme !== "qjump" || lost || !latencies.length) return "";
  const side = latencies.at(-1) <= bound ? "within" : "beyond";
  return ` That is ${side} the exact bound of ${shownTime(bound)}.`;
}

function showRuns({ runs, share, done }, settings) {
  shownState = { runs, settings };
  part("progress").value = share;
  const { scheme } = settings;
  for (const name of document.querySelectorAll(".name")) {
    name.textContent = scheme === WITHOUT ? "the same" : `with ${schemeName(scheme)}`;
  }
  drawLatencies(runs, settings); drawQueues(runs); showTable(runs);
  const text = runs.map((run, index) => sentence(run, index ? scheme : WITHOUT)).join(" ");
  part("cdf").ariaLabel = `Latency of the urgent packets, in numbers below. ${text}`;
  const most = runs.map(({ queue }) => bytes(Math.max(0, ...queue.queued))).join(", and with it ");
  part("queue").ariaLabel = `Queue before the receiver. The longest without a scheme: ${most}`;
  if (done) part("shown").textContent = text + ofBound(runs.at(-1), settings);
}

// ---- the player ----

function showFrames(frames, { packet }) {
  const labelOf = (name) => (name === WITHOUT ? "without a scheme" : `with ${schemeName(name)}`);
  const arms = frames.map(({ told }) => ({ ...told, label: labelOf(told.name) }));
  const numbers = (place) => frames[place].numbers;
  return player.showRecording({ tick_ns: 1, mtu: Math.max(FULL_BYTES, packet), arms, numbers });
}

// ---- the worker ----

const packed = Uint8Array.from(atob(part("module").textContent), (letter) => letter.charCodeAt(0));
const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const compiled = new Response(unpacked).arrayBuffer().then((module) => WebAssembly.compile(module));
const script = new Blob([part("worker").textContent], { type: "text/javascript" });
const source = URL.createObjectURL(script);
let worker = null, waiting = 0;

function fail(error) {
  part("failure").hidden = false;
  part("failure").textContent = `The simulator could not run: ${error}`;
  part("shown").textContent = part("clock").textContent = "";
}

async function start(settings) {
  worker?.terminate();
  const own = worker = new Worker(source);
  part("shown").textContent = part("clock").textContent = "…"; part("failure").hidden = true; part("progress").value = 0;
  own.onmessage = ({ data }) => {
    if (data.error) fail(data.error);
    else if (data.frames) showFrames(data.frames, settings).catch((error) => fail(error.message));
    else showRuns(data, settings);
  };
  own.onerror = (event) => fail(event.message);
  const arms = settings.scheme === WITHOUT ? [WITHOUT] : [WITHOUT, settings.scheme];
  const module = await compiled;
  if (own === worker) own.postMessage({ module, settings, arms });
}

// For tests and other scripts: run a scenario, as text, in a worker of its own.
async function simulate(text) {
  const own = new Worker(source), module = await compiled;
  const answer = await new Promise((resolve) => {
    own.onmessage = ({ data }) => resolve(data);
    own.postMessage({ module, text });
  });
  own.terminate();
  return answer;
}

function change(settings) {
  show(settings); showEquations(settings);
  clearTimeout(waiting);
  part("shown").textContent = part("clock").textContent = "…";
  waiting = setTimeout(() => start(settings).catch((error) => fail(error.message)), SETTLED_MS);
}

part("settings").addEventListener("input", ({ target }) => {
  const [control] = target.parentElement.querySelectorAll("[id]");
  if (target !== control && target.value !== "") control.value = target.value;
  const settings = fromControls(), every = part("senders").value === part("senders").max;
  if (control === part("hosts") && every) settings.senders = settings.hosts - 1;
  change(settings);
});
part("settings").addEventListener("submit", (event) => event.preventDefault());
part("reset").addEventListener("click", () => change({ ...DEFAULTS }));
addEventListener("hashchange", () => change(fromLink()));
addEventListener("resize", () => {
  if (!shownState) return;
  drawLatencies(shownState.runs, shownState.settings);
  drawQueues(shownState.runs);
});
change(fromLink());
