// Draw the lines of a trial over time. Times are ticks of a whole number of ns; `view` is the part that is shown.
"use strict";

const LEFT = 58, RIGHT = 8, TOP = 12, BOTTOM = 20; // of a picture's frame, in CSS pixels
const CLOSEST_NS = 100; // the shortest time that is shown

const page = JSON.parse(document.getElementById("data").textContent);
const whole = { from: 0, to: Math.max(page.end, page.zero + page.window) };
const measured = { from: page.zero, to: page.zero + Math.max(1, page.window) };
const opening = { from: page.shown[0], to: page.shown[1] }; // with the readings at both ends of the measurement
let view = { ...opening };
let lanes = [];

// ---- the numbers ----

async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

function lineOf(told, kind, ticksPerUnit, numbers) {
  const words = (Kind, [start, count]) => new Kind(numbers, 4 * start, count);
  const times = (place) => { let at = 0; return words(Int32Array, place).map((later) => at += later); };
  const values = words(Float32Array, told.values);
  const lasts = told.lasts ? words(Int32Array, told.lasts) : kind === "took" ? values.map((value) => value * ticksPerUnit) : null;
  // What began so long before the left edge may still reach into the picture.
  const longest = lasts ? lasts.reduce((most, each) => Math.max(most, each), 0) : 0;
  return { name: told.name, came: told.came, at: times(told.at), values, lasts, longest, lost: times(told.lost), shown: true };
}

// The first row whose time is `time` or later.
function firstFrom(times, time) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle + 1; else high = middle;
  }
  return low;
}

// ---- words ----

function number(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e4 ? Math.round(value).toString() : Number(value.toPrecision(4)).toString();
}

function seconds(ticks) { return (ticks - page.zero) * page.tick_ns / 1e9; }

// A time since the measurement began, with so many digits that `step` seconds are seen.
function time(ticks, step) {
  const at = seconds(ticks), digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step)) + 1));
  return `${at.toFixed(digits)} s`;
}

function duration(ns) {
  return ns >= 1e9 ? `${number(ns / 1e9)} s` : ns >= 1e6 ? `${number(ns / 1e6)} ms` : ns >= 1e3 ? `${number(ns / 1e3)} us` : `${number(ns)} ns`;
}

// The steps of an axis: 1, 2 or 5 times a power of ten, about `count` of them.
function step(span, count) {
  const rough = span / count, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
}

// ---- pictures ----

// The rows of a line that are in view, from the first that reaches into it.
function inView(line) {
  return { reaching: firstFrom(line.at, view.from - line.longest), first: firstFrom(line.at, view.from), end: firstFrom(line.at, view.to + 1) };
}

function rangeOf(lane) {
  const range = { low: Infinity, high: -Infinity, count: 0, lost: 0, kept: true };
  for (const line of lane.lines.filter((each) => each.shown)) {
    const { reaching, first, end } = inView(line);
    for (let row = reaching; row < end; row++) {
      if (line.values[row] < range.low) range.low = line.values[row];
      if (line.values[row] > range.high) range.high = line.values[row];
    }
    range.count += end - first;
    range.lost += firstFrom(line.lost, view.to + 1) - firstFrom(line.lost, view.from);
    range.kept &&= line.came === line.at.length;
  }
  return range;
}

function draw(lane) {
  if (!lane.details.open) return;
  const canvas = lane.canvas, ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const look = getComputedStyle(document.documentElement), colour = (name) => look.getPropertyValue(`--${name}`).trim();
  pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;

  const range = rangeOf(lane), none = !(range.high >= range.low);
  const room = 0.06 * (Math.max(0, range.high) - Math.min(0, range.low));
  const bottom = none || range.low >= 0 ? 0 : range.low - room;
  const high = Math.max(0, range.high) + room;
  const top = none || high <= bottom ? bottom + 1 : high;
  const x = (ticks) => LEFT + (ticks - view.from) / (view.to - view.from) * (width - LEFT - RIGHT);
  const y = (value) => height - BOTTOM - (value - bottom) / (top - bottom) * (height - TOP - BOTTOM);
  lane.scale = { x, y };

  frame(pen, { x, y, width, height, bottom, top, colour, epochs: lane === lanes.find((each) => each.details.open) });
  pen.save();
  pen.beginPath(); pen.rect(LEFT, 0, width - LEFT - RIGHT, height - BOTTOM + 1); pen.clip();
  lane.lines.forEach((line, index) => { if (line.shown) drawLine(pen, lane, line, { x, y, colour: colour(`line${index % 8}`) }); });
  pen.fillStyle = colour("lost");
  for (const line of lane.lines) if (line.shown) marks(pen, line.lost, x);
  pen.restore();

  const unit = lane.unit ? ` ${lane.unit}` : "";
  const values = none ? "nothing here" : `${range.count} in view; least ${number(range.low)}, greatest ${number(range.high)}${unit}`;
  const thin = range.kept ? "" : "; of many only the least and the greatest are drawn";
  lane.told = values + (range.lost ? `; ${range.lost} never answered` : "") + thin;
  lane.said.textContent = lane.told;
}

function frame(pen, { x, y, width, height, bottom, top, colour, epochs }) {
  const floor = height - BOTTOM, right = width - RIGHT;
  const clamp = (value) => Math.min(right, Math.max(LEFT, value));
  const line = (x0, y0, x1, y1) => { pen.beginPath(); pen.moveTo(x0, y0); pen.lineTo(x1, y1); pen.stroke(); };
  pen.fillStyle = colour("outside");
  pen.fillRect(LEFT, TOP, clamp(x(measured.from)) - LEFT, floor - TOP);
  pen.fillRect(clamp(x(measured.to)), TOP, right - clamp(x(measured.to)), floor - TOP);
  pen.strokeStyle = colour("line"); pen.fillStyle = colour("soft");
  pen.textAlign = "right"; pen.textBaseline = "middle";
  const high = step(top - bottom, 4);
  for (let value = Math.ceil(bottom / high) * high; value <= top; value += high) {
    line(LEFT, y(value), right, y(value));
    pen.fillText(number(Number(value.toPrecision(6))), LEFT - 5, y(value));
  }
  pen.textAlign = "center"; pen.textBaseline = "top";
  const wide = step((view.to - view.from) * page.tick_ns / 1e9, (right - LEFT) / 85);
  for (let at = Math.ceil(seconds(view.from) / wide) * wide; at <= seconds(view.to); at += wide) {
    const ticks = page.zero + at * 1e9 / page.tick_ns, text = time(ticks, wide * 10), half = pen.measureText(text).width / 2;
    line(x(ticks), TOP, x(ticks), floor);
    if (x(ticks) - half > 0 && x(ticks) + half < width) pen.fillText(text, x(ticks), floor + 5);
  }
  const epoch = page.epoch_ns / page.tick_ns, long = x(view.from + epoch) - LEFT;
  if (page.epoch_ns && epochs && long >= 4 && long <= 400) { // how long an epoch is, where that can be seen
    pen.fillStyle = colour("ink");
    pen.fillRect(LEFT + 6, 5, long, 3);
    pen.textAlign = "left"; pen.textBaseline = "middle";
    pen.fillText(`an epoch, ${duration(page.epoch_ns)}`, LEFT + 12 + long, 7);
  }
  if (page.edge_ns === null || long < 6) return;
  const origin = page.zero + page.edge_ns / page.tick_ns; // epochs that end at the same time on every host
  pen.strokeStyle = colour("soft"); pen.setLineDash([2, 3]);
  for (let edge = origin + Math.ceil((view.from - origin) / epoch) * epoch; edge <= view.to; edge += epoch) line(x(edge), TOP, x(edge), floor);
  pen.setLineDash([]);
}

function drawLine(pen, lane, line, { x, y, colour }) {
  const { reaching, first, end } = inView(line), count = end - first, size = count < 30 ? 6 : count < 300 ? 4 : 2;
  pen.fillStyle = colour;
  if (count > 4 * pen.canvas.clientWidth) { drawDense(pen, line, first, end, x, y); return; }
  for (let row = reaching; row < end; row++) {
    const left = x(line.at[row]), place = y(line.values[row]), long = line.lasts ? x(line.at[row] + line.lasts[row]) - left : 0;
    if (long > 1) {
      pen.globalAlpha = lane.kind === "took" ? 0.4 : 1;
      pen.fillRect(left, place - 0.75, long, lane.kind === "took" ? 1.5 : 2);
      pen.globalAlpha = 1;
    }
    if (lane.kind !== "holds") pen.fillRect(left - size / 2, place - size / 2, size, size);
  }
}

// From the least to the greatest value in each column of pixels.
function drawDense(pen, line, first, end, x, y) {
  for (let row = first; row < end;) {
    const column = Math.floor(x(line.at[row]));
    let low = line.values[row], high = low;
    for (; row < end && x(line.at[row]) < column + 1; row++) { low = Math.min(low, line.values[row]); high = Math.max(high, line.values[row]); }
    pen.fillRect(column, y(high) - 0.5, 1, y(low) - y(high) + 1);
  }
}

function marks(pen, times, x) {
  let last = -2;
  for (let row = firstFrom(times, view.from); row < times.length && times[row] <= view.to; row++) {
    const place = Math.round(x(times[row]));
    if (place === last) continue;
    pen.fillRect(place - 0.5, 0, 1.5, TOP - 3);
    last = place;
  }
}

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    const shortest = (view.to - view.from) * page.tick_ns / 1e9 / 1000;
    document.getElementById("shown").textContent = `${time(view.from, shortest * 100)} to ${time(view.to, shortest * 100)}, ${duration((view.to - view.from) * page.tick_ns)}`;
    for (const link of document.querySelectorAll(".others a")) link.hash = `${seconds(view.from).toFixed(9)},${seconds(view.to).toFixed(9)}`;
    lanes.forEach(draw);
  });
}

// ---- moving ----

function show(from, to) {
  const least = CLOSEST_NS / page.tick_ns, most = (whole.to - whole.from) * 1.1;
  const span = Math.min(most, Math.max(least, to - from));
  const middle = Math.min(whole.to, Math.max(whole.from, (from + to) / 2));
  view = { from: middle - span / 2, to: middle + span / 2 };
  redraw();
}

function zoom(factor, around = (view.from + view.to) / 2) {
  const least = CLOSEST_NS / page.tick_ns;
  if (factor < 1 && (view.to - view.from) * factor < least) return;
  show(around - (around - view.from) * factor, around + (view.to - around) * factor);
}

function move(share) {
  const by = (view.to - view.from) * share;
  show(view.from + by, view.to + by);
}

const ACTIONS = {
  earlier: () => move(-0.25), later: () => move(0.25), closer: () => zoom(0.5), wider: () => zoom(2),
  measured: () => show(opening.from, opening.to), all: () => show(whole.from, whole.to),
};
const KEYS = { ArrowLeft: "earlier", ArrowRight: "later", "+": "closer", "=": "closer", "-": "wider", Home: "measured", End: "all" };

function ticksAt(canvas, clientX) {
  const box = canvas.getBoundingClientRect();
  return view.from + (clientX - box.left - LEFT) / (box.width - LEFT - RIGHT) * (view.to - view.from);
}

// What is nearest to the pointer, in words; null if nothing is near.
function nearest(lane, event) {
  const box = lane.canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
  const at = ticksAt(lane.canvas, event.clientX), far = Math.abs(ticksAt(lane.canvas, event.clientX + 15) - at);
  let best = null, least = 15;
  for (const line of lane.lines) {
    if (!line.shown) continue;
    const end = Math.min(firstFrom(line.at, at + far), firstFrom(line.at, at - far) + 4000);
    for (let row = firstFrom(line.at, at - far); row < end; row++) {
      const away = Math.hypot(lane.scale.x(line.at[row]) - px, lane.scale.y(line.values[row]) - py);
      if (away < least) { least = away; best = { line, row }; }
    }
  }
  if (!best) return null;
  const { line, row } = best, unit = lane.unit ? ` ${lane.unit}` : "";
  return `${line.name ? `${line.name}: ` : ""}${number(line.values[row])}${unit} at ${time(line.at[row], 1e-6)}`;
}

function listen(lane) {
  const { canvas } = lane, fingers = new Map();
  canvas.addEventListener("keydown", (event) => {
    if (!(event.key in KEYS) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    ACTIONS[KEYS[event.key]]();
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) return; // else nobody could scroll past it
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(Math.sign(event.deltaX || event.deltaY) * 0.1);
    else zoom(event.deltaY > 0 ? 1.25 : 0.8, ticksAt(canvas, event.clientX));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event.clientX);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) {
      lane.said.textContent = nearest(lane, event) || lane.told;
      return;
    }
    const before = [...fingers.values()];
    fingers.set(event.pointerId, event.clientX);
    const now = [...fingers.values()];
    const middle = (xs) => xs.reduce((sum, each) => sum + each, 0) / xs.length;
    const by = ticksAt(canvas, middle(before)) - ticksAt(canvas, middle(now));
    show(view.from + by, view.to + by);
    if (now.length === 2) zoom(Math.abs(before[0] - before[1]) / Math.max(1, Math.abs(now[0] - now[1])), ticksAt(canvas, middle(now)));
  });
  canvas.addEventListener("pointerleave", () => { lane.said.textContent = lane.told || ""; });
  lane.details.addEventListener("toggle", redraw);
  lane.details.querySelectorAll("input").forEach((box, index) => box.addEventListener("change", () => {
    lane.lines[index].shown = box.checked;
    redraw();
  }));
}

// ---- beginning ----

async function begin() {
  const numbers = await unpacked(document.getElementById("numbers").textContent);
  const parts = document.querySelectorAll("details.lane");
  lanes = page.lanes.map((told, index) => ({
    details: parts[index], canvas: parts[index].querySelector("canvas"), said: parts[index].querySelector(".said"),
    unit: told.unit, kind: told.kind, lines: told.lines.map((line) => lineOf(line, told.kind, told.unit_ns / page.tick_ns, numbers)),
  }));
  lanes.forEach(listen);
  for (const button of document.querySelectorAll("button[data-do]")) button.addEventListener("click", () => ACTIONS[button.dataset.do]());
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const [from, to] = location.hash.slice(1).split(",").map(Number);
  if (to > from) show(page.zero + from * 1e9 / page.tick_ns, page.zero + to * 1e9 / page.tick_ns);
  redraw();
}

begin().catch((error) => {
  const failure = document.getElementById("failure");
  failure.hidden = false;
  failure.textContent = `The lines cannot be drawn in this browser: ${error.message}. The numbers are in the files below.`;
});
