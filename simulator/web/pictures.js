// Pictures: two lines on axes, of the arm without a scheme (1) and of that with one (0), as SVG.
const LEFT = 52, RIGHT = 12, TOP = 10, BOTTOM = 40;
const MOST_POINTS = 400, PS_PER_US = 1e6, PS_PER_MS = 1e9;

const digits = (value, most = 3) => (
  Number(value.toPrecision(most)).toLocaleString("en", { maximumSignificantDigits: most }));

function svg(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// The size of a picture, and functions from values to its pixels.
function axes(picture, [low, high], top, logarithmic) {
  const { width, height } = picture.getBoundingClientRect();
  const along = logarithmic ? Math.log : Number;
  const scale = (width - LEFT - RIGHT) / (along(high) - along(low) || 1);
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return {
    width, height, x: (value) => LEFT + (along(value) - along(low)) * scale,
    y: (value) => height - BOTTOM - value / top * (height - BOTTOM - TOP),
  };
}

const across = ({ width, y }, value) => (
  { x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) });
const upright = ({ height, x }, value) => (
  { x1: x(value), x2: x(value), y1: TOP, y2: height - BOTTOM });

// Grid and words; ticks are [value, text].
function frame(place, ticks, levels, label) {
  const { width, height, x, y } = place, parts = [], grid = { class: "grid" };
  for (const [value, text] of levels) {
    parts.push(svg("line", { ...grid, ...across(place, value) }));
    parts.push(svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, text));
  }
  const below = { y: height - BOTTOM + 16, "text-anchor": "middle" };
  for (const [value, text] of ticks) {
    parts.push(svg("line", { ...grid, ...upright(place, value) }));
    if (x(value) < width - 14) parts.push(svg("text", { x: x(value), ...below }, text));
  }
  const middle = (LEFT + width) / 2;
  return [...parts, svg("text", { ...below, x: middle, y: height - 6 }, label)];
}

function line(points, { x, y }, index) {
  const pixels = points.map(([at, value]) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`);
  return svg("path", { class: `line${index}`, d: pixels.length ? `M${pixels.join("L")}` : "" });
}

// 1, 2 and 5 times powers of ten, or only the powers if these are many.
function logTicks(low, high, most) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    for (const digit of [1, 2, 5]) ticks.push({ digit, tick: Number(`${digit}e${power}`) });
  }
  const inside = ticks.filter(({ tick }) => tick >= low && tick <= high);
  const some = inside.length > most ? inside.filter(({ digit }) => digit === 1) : inside;
  return some.map(({ tick }) => [tick, digits(tick)]);
}

// At most seven steps from 0, of 1, 2 or 5 times a power of ten.
function evenTicks(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [power / 5, power / 2, power, 2 * power].find((each) => most / each < 7);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
}

// The share of all packets by their latency in us.
function shares({ latencies, lost }) {
  const total = latencies.length + lost, points = [];
  const stride = Math.max(1, Math.ceil(latencies.length / MOST_POINTS));
  for (let rank = 0; rank < latencies.length; rank += stride) {
    points.push([latencies[rank] / PS_PER_US, rank / total]);
  }
  if (latencies.length) points.push([latencies.at(-1) / PS_PER_US, latencies.length / total]);
  return points;
}

function drawLatencies(runs, settings) {
  const picture = document.getElementById("cdf"), { delay, bound } = theory(settings);
  const rules = settings.scheme === "qjump" ? [["rule", delay], ["rule exact", bound]] : [];
  document.getElementById("limits").hidden = !rules.length;
  const lines = runs.map(shares), limits = rules.map(([name, ns]) => [name, Number(ns) / 1000]);
  const all = [...lines.flat(), ...limits.map(([, at]) => [at])].map(([at]) => at);
  if (!all.length) return;
  const range = [0.8 * Math.min(...all), 1.25 * Math.max(...all)];
  const place = axes(picture, range, 1, true);
  const levels = [0, 0.25, 0.5, 0.75, 1].map((share) => [share, `${100 * share} %`]);
  picture.replaceChildren(
    ...frame(place, logTicks(...range, place.width / 60), levels, "latency, µs"),
    ...limits.map(([name, at]) => svg("line", { class: name, ...upright(place, at) })),
    ...lines.map((points, index) => line(points, place, runs.length - 1 - index)));
}

function drawQueues(runs) {
  const picture = document.getElementById("queue");
  const most = Math.max(FULL_BYTES, ...runs.flatMap(({ queue }) => queue.queued));
  const end = Math.max(1, ...runs.flatMap(({ queue }) => queue.at)) / PS_PER_MS;
  const place = axes(picture, [0, end], most);
  const levels = evenTicks(most).map((tick) => [tick, `${digits(tick / 1000)} kB`]);
  const ticks = evenTicks(end).map((tick) => [tick, digits(tick)]);
  const points = ({ queue }) => queue.at.map((at, row) => [at / PS_PER_MS, queue.queued[row]]);
  picture.replaceChildren(...frame(place, ticks, levels, "time, ms"),
    ...runs.map((run, index) => line(points(run), place, runs.length - 1 - index)));
}
