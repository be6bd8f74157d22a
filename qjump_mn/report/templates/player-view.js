
// ---- what is shown: `state` has all of it ----

const QUEUE = 70, TRACK = 11, THICK = 7, LANE = 2.6, LONGEST = 26, NODE = 52, ROW = 46; // in the units of the layout
const LEAST_ROW = 11; // pixels, in which a name is legible
const LINK = "#868e97"; // as in the report's drawing, light or dark
const SPEEDS = [1, 2, 5].flatMap((digit) => [...Array(10).keys()].map((power) => digit * 10 ** (power - 2))).sort((one, other) => one - other); // us in a second
const CALM = matchMedia("(prefers-reduced-motion: reduce)");
const CALM_MS = 500, SAID_MS = 3000;
const state = { time: 0, playing: false, speed: 1, view: { zoom: 1, x: 0, y: 0 }, label: "", pinned: new Map(), colours: {} };
const sides = [...document.querySelectorAll(".arm")].map((part) => ({
  part, canvas: part.querySelector("canvas"), which: part.querySelector(".which"), body: part.querySelector("tbody"), arm: null, told: "",
}));
const shown = () => sides.map((side) => side.arm).filter(Boolean);
const byId = (id) => document.getElementById(id);

function micros(ticks, digits = 1) { return (ticks / MICRO).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }); }
function size(bytes) { return bytes < 1e4 ? `${bytes} B` : `${(bytes / 1e3).toFixed(bytes < 1e5 ? 1 : 0)} kB`; }

// ---- pictures ----

function readColours() {
  const look = getComputedStyle(document.documentElement), colour = (name) => look.getPropertyValue(`--${name}`).trim();
  state.colours = Object.fromEntries(["ink", "soft", "line", "back", "panel", "lost", "link"].map((name) => [name, colour(name)]));
  state.colours.levels = [...Array(8).keys()].map((level) => colour(`line${level}`));
}

// All of a network is in its picture, which fits into the window if its names are legible then.
function fit(side) {
  if (!side.arm) return;
  const ratio = window.devicePixelRatio || 1, width = side.part.clientWidth, { layout } = side.arm;
  const most = Math.max(300, innerHeight * 0.85, layout.height * LEAST_ROW / ROW);
  const height = Math.min(width * layout.height / layout.width, most);
  side.canvas.width = Math.round(width * ratio); side.canvas.height = Math.round(height * ratio);
  side.width = width; side.height = height; side.ratio = ratio;
}

// Pixels in a unit of the layout.
function scaleOf({ width, height, arm: { layout } }) { return Math.min(width / layout.width, height / layout.height) * state.view.zoom; }

// The layout's left and top in sight; what is smaller than its picture is in the middle.
function cornerOf(side) {
  const scale = scaleOf(side), { layout } = side.arm, { view } = state;
  const inside = (at, all, seen) => (seen > all ? (all - seen) / 2 : Math.min(all - seen, Math.max(0, at)));
  return { x: inside(view.x, layout.width, side.width / scale), y: inside(view.y, layout.height, side.height / scale) };
}

function draw(side) {
  const { arm, canvas } = side;
  if (!arm) return;
  const pen = canvas.getContext("2d"), scale = scaleOf(side), { colours } = state;
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.fillStyle = colours.back; pen.fillRect(0, 0, canvas.width, canvas.height);
  const all = side.ratio * scale, { x, y } = cornerOf(side);
  pen.setTransform(all, 0, 0, all, -x * all, -y * all);
  drawNetwork(pen, arm, scale);
  const perByte = QUEUE / Math.max(4 * page.mtu, ...shown().map((each) => each.most)), followed = followedIn(arm);
  if (state.time <= arm.until) for (const port of arm.ports) drawPort(pen, arm, port, { perByte, scale, followed });
  else { pen.fillStyle = colours.ink; pen.textAlign = "left"; pen.fillText(ended(arm), 8 / scale, 14 / scale); }
}

function ended(arm) { return `the recording ended at ${micros(arm.until)} µs`; }

function drawNetwork(pen, arm, scale) {
  const { colours } = state;
  pen.lineWidth = 1 / scale;
  pen.font = `${11 / Math.min(scale, 1.3)}px ${state.font ??= getComputedStyle(document.body).fontFamily}`;
  pen.textAlign = "center"; pen.textBaseline = "middle";
  for (const node of arm.layout.nodes) {
    pen.fillStyle = colours.panel; pen.strokeStyle = colours.soft;
    const half = Math.max((node.bottom - node.top) / 2, Math.min(ROW / 2 - 2, 6.5 / scale)), middle = (node.top + node.bottom) / 2; // a name fits
    pen.beginPath(); pen.roundRect(node.x, middle - half, NODE, 2 * half, node.switch ? 8 : 2); pen.fill(); pen.stroke();
    pen.fillStyle = colours.ink;
    drawName(pen, node);
  }
  pen.strokeStyle = LINK;
  for (const port of arm.ports) {
    const { from, to, y, toY, near, far, queue } = placeOf(arm, port), below = THICK / 2 + 1;
    pen.beginPath(); pen.moveTo(from, y + below);
    if (y !== toY) { pen.lineTo(near, y + below); pen.lineTo(far, toY + below); }
    pen.lineTo(to, toY + below); pen.stroke();
    if (!port.waits && !port.drops.length) continue;
    pen.fillStyle = colours.panel; pen.fillRect(queue, y - 4 * LANE, QUEUE, 8 * LANE);
    pen.beginPath(); pen.rect(queue, y - 4 * LANE, QUEUE, 8 * LANE);
    for (let lane = 1; lane < 8 && LANE * scale > 4; lane++) { pen.moveTo(queue, y + (lane - 4) * LANE); pen.lineTo(queue + QUEUE, y + (lane - 4) * LANE); }
    pen.stroke();
  }
}

// In the middle of a node; upwards where there is more room, or else condensed.
function drawName(pen, { name, x, top, bottom }) {
  const wide = pen.measureText(name).width, upwards = wide > NODE - 4 && bottom - top > wide;
  pen.save();
  pen.translate(x + NODE / 2, (top + bottom) / 2);
  if (upwards) pen.rotate(-Math.PI / 2);
  pen.fillText(name, 0, 0, upwards ? bottom - top : NODE - 2);
  pen.restore();
}

// Where a port's wire goes from and to, and the left of its queue. It is level beside the queues of both ends, and slanted between `near` and `far`.
function placeOf(arm, port) {
  const { left, right } = arm.layout.links[port.link], room = port.waits || port.drops.length ? QUEUE : 0;
  const [[start, y], [to, toY]] = port.right ? [left, right] : [right, left], back = port.right ? -1 : 1, track = back * TRACK;
  const beside = -back * (QUEUE + LANE * 3);
  return {
    from: start - back * room, to, y: y + track, toY: toY + track, near: start + beside, far: to - beside,
    queue: port.right ? start : start - QUEUE, back,
  };
}

// The height of a wire, and its slope, at `x`.
function wireAt({ y, toY, near, far }, x) {
  const share = Math.min(1, Math.max(0, (x - near) / (far - near)));
  return { y: y + (toY - y) * share, slope: share > 0 && share < 1 ? (toY - y) / (far - near) : 0 };
}

function drawPort(pen, arm, port, { perByte, scale, followed }) {
  const place = placeOf(arm, port), { rows } = arm, time = state.time;
  const before = new Float64Array(8); // bytes that wait in each level's lanes so far
  let waiting = 0, bytes = 0;
  for (const lane of port.lanes) {
    const { gone, here, flying } = inLane(arm, lane, time), waits = rows.sum[here] - rows.sum[gone];
    pen.fillStyle = state.colours.levels[lane.level];
    for (let row = flying; row < gone; row++) if (rows.arrived[row] > time) drawFlying(pen, arm, row, place, rows.packet[row] === followed, scale);
    if (gone < here) drawWaiting(pen, arm, lane, { gone, here, before: before[lane.level] }, { place, perByte, scale, followed });
    waiting += here - gone; bytes += waits; before[lane.level] += waits;
  }
  const drops = droppedBy(arm, port, time);
  if (drops.count) drawDrops(pen, arm, port, place, drops, scale);
  if (!waiting && !drops.count || 40 * scale < 34) return;
  pen.font = `${9.5 / Math.min(scale, 1.3)}px ${state.font}`;
  pen.textBaseline = "middle"; pen.textAlign = port.right ? "left" : "right"; pen.fillStyle = state.colours.soft;
  const words = `${waiting ? `${waiting}, ${size(bytes)}` : ""}${drops.count ? ` ${drops.count} dropped` : ""}`;
  pen.fillText(words.trim(), place.from - 3 * place.back, place.y + (port.right ? -8 : 9));
}

function drawFlying(pen, arm, row, place, marked, scale) {
  const { start, arrived, bytes } = arm.rows, long = Math.max(2, bytes[row] / page.mtu * LONGEST);
  const share = (state.time - start[row]) / Math.max(1, arrived[row] - start[row]), way = long / 2 * Math.sign(place.to - place.from);
  const x = place.from + way + (place.to - place.from - 2 * way) * share, { y, slope } = wireAt(place, x);
  pen.save();
  pen.translate(x, y); pen.rotate(Math.atan(slope));
  rectangle(pen, -long / 2, -THICK / 2, long, THICK, marked, scale);
  pen.restore();
}

function drawWaiting(pen, arm, lane, { gone, here, before }, { place, perByte, scale, followed }) {
  const { rows } = arm, top = place.y + (3 - lane.level) * LANE, base = rows.sum[gone] - before;
  const at = (row) => place.from + place.back * (rows.sum[row] - base) * perByte;
  const box = (first, last, marked) => {
    const long = Math.max(1.2 / scale, Math.abs(at(last) - at(first))), near = at(first);
    rectangle(pen, place.back < 0 ? near - long : near, top, long, LANE - 0.4, marked, scale);
  };
  if (page.mtu * perByte * scale < 3) box(gone, here, false); // one by one they could not be seen
  else for (let row = gone; row < here; row++) box(row, row + 1, false);
  for (let row = gone; followed >= 0 && row < here; row++) if (rows.packet[row] === followed) box(row, row + 1, true);
}

function rectangle(pen, x, y, width, height, marked, scale) {
  const gap = width * scale > 4 ? 0.8 / scale : 0;
  pen.fillRect(x, y, width - gap, height);
  if (!marked) return;
  const { colours } = state, round = 7 / scale;
  pen.strokeStyle = colours.ink; pen.lineWidth = 2 / scale;
  pen.strokeRect(x, y, width - gap, height);
  pen.beginPath(); pen.arc(x + width / 2, y + height / 2, round + height / 2, 0, 2 * Math.PI); pen.stroke();
  pen.lineWidth = 1 / scale;
}

// How many frames a port has dropped, and how many in the last half second of the player.
function droppedBy(arm, port, time) {
  const count = port.drops.findLastIndex((row) => arm.drops.came[row] <= time) + 1;
  const before = port.drops.findLastIndex((row) => arm.drops.came[row] <= time - state.speed * MICRO / 2) + 1;
  return { count, now: port.drops.slice(before, count) };
}

function drawDrops(pen, arm, port, place, { now }, scale) {
  pen.strokeStyle = state.colours.lost; pen.lineWidth = 2 / scale;
  const x = place.from + place.back * (QUEUE + 5), arms = 4;
  for (const row of now) {
    const y = place.y + (3.5 - arm.drops.level[row]) * LANE;
    pen.beginPath(); pen.moveTo(x - arms, y - arms); pen.lineTo(x + arms, y + arms); pen.moveTo(x - arms, y + arms); pen.lineTo(x + arms, y - arms); pen.stroke();
  }
  pen.lineWidth = 1 / scale;
}

// ---- words ----

function queues(arm) {
  if (state.time > arm.until) return `${arm.label}: ${ended(arm)}.`;
  const busy = [];
  for (const port of arm.ports) {
    const levels = port.lanes.map((lane) => ({ lane, ...inLane(arm, lane, state.time) })).filter((each) => each.here > each.gone);
    const frames = levels.reduce((sum, each) => sum + each.here - each.gone, 0);
    const bytes = levels.reduce((sum, each) => sum + arm.rows.sum[each.here] - arm.rows.sum[each.gone], 0);
    if (frames) busy.push({ bytes, text: `${port.from} to ${port.to} ${frames} frame${frames > 1 ? "s" : ""}, ${size(bytes)}, level ${[...new Set(levels.map((each) => each.lane.level))].join(" and ")}` });
  }
  busy.sort((one, other) => other.bytes - one.bytes);
  const more = busy.length > 3 ? `; ${busy.length - 3} more ports` : "";
  return `${arm.label}: ${busy.length ? `waiting at ${busy.slice(0, 3).map((each) => each.text).join("; ")}${more}` : "nothing waits"}.`;
}

let saidAt = 0, saying = 0;
function say(now) {
  clearTimeout(saying);
  if (state.playing && now - saidAt < SAID_MS) return;
  const speak = () => { saidAt = performance.now(); byId("said").textContent = `At ${micros(state.time)} µs: ${shown().map(queues).join(" ")}`; };
  if (state.playing) speak(); else saying = setTimeout(speak, 250); // not for every step of a slider that is dragged
}

function followedIn(arm) {
  if (!state.label) return -1;
  const pinned = state.pinned.get(arm), { came, gone } = arm.hops;
  if (pinned !== undefined && came[pinned] <= state.time && state.time <= gone[pinned]) return pinned;
  return underWay(arm, state.label, state.time);
}

function tellPacket(side) {
  const { arm } = side, packet = arm ? followedIn(arm) : -1;
  const hops = packet < 0 ? [] : [...arm.hops.list.subarray(arm.hops.begin[packet], arm.hops.begin[packet + 1])];
  const at = hops.findLastIndex((row) => arm.rows.came[row] <= state.time && state.time <= arm.rows.arrived[row]);
  const told = `${packet} ${at} ${arm?.name}`;
  if (told === side.told) return;
  side.told = told;
  const caption = side.part.querySelector("caption"), name = side.canvas.getAttribute("aria-label").split(":")[0];
  caption.textContent = packet < 0 ? `No packet to follow, ${name}` : `Packet ${arm.number[packet]}, ${name}`;
  side.part.querySelector("table").hidden = packet < 0;
  side.body.replaceChildren(...hops.map((row, hop) => line(arm, row, hop === at)), ...lostLine(arm, packet));
}

function line(arm, row, here) {
  const { rows } = arm, lane = arm.lanes.find((each) => each.first <= row && row < each.end), port = arm.ports[lane.port];
  const waits = rows.start[row] > arm.until; // until after the recording, and how long is not always known
  const waited = micros((waits ? arm.until : rows.start[row]) - rows.came[row], 2);
  const cells = [`${port.from} → ${port.to}`, lane.level, micros(rows.came[row], 2), waits ? `> ${waited}` : waited, waits ? "" : micros(rows.arrived[row] - rows.start[row], 2)];
  return tableRow(cells, here ? "here" : "");
}

function lostLine(arm, packet) {
  const row = packet < 0 ? undefined : arm.hops.lost.get(packet);
  if (row === undefined) return [];
  const port = arm.ports[arm.drops.port[row]];
  return [tableRow([`${port.from} → ${port.to}`, arm.drops.level[row], micros(arm.drops.came[row], 2), "dropped", ""], "lost")];
}

function tableRow(cells, kind) {
  const row = document.createElement("tr");
  row.className = kind;
  row.append(...cells.map((text, index) => { const cell = document.createElement("td"); cell.textContent = text; if (index > 1) cell.className = "n"; return cell; }));
  return row;
}

// ---- time and movement ----

let asked = false, last = 0, calmAt = 0;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame((now) => {
    asked = false;
    if (state.playing) advance(now);
    sides.forEach(draw);
    sides.forEach(tellPacket);
    const share = Math.round(state.time / end * 1e6);
    byId("slider").value = share;
    const text = `${micros(state.time)} µs of ${micros(end, 0)}`;
    byId("slider").setAttribute("aria-valuetext", text);
    byId("clock").textContent = `${text}; 1 s shows ${state.speed.toLocaleString("en")} µs`;
    say(now);
    if (state.playing) redraw();
  });
}

// With reduced motion, time moves twice a second.
function advance(now) {
  if (CALM.matches && now - calmAt < CALM_MS) return;
  calmAt = now;
  const passed = Math.min(CALM.matches ? CALM_MS : 100, now - last);
  last = now;
  state.time = Math.min(end, state.time + passed / 1e3 * state.speed * MICRO);
  if (state.time >= end) play(false);
}

function play(on) {
  if (on && state.time >= end) state.time = 0;
  state.playing = on;
  last = calmAt = performance.now();
  byId("play").textContent = on ? "❚❚ pause" : "▶ play";
  redraw();
}

function go(time) { state.time = Math.min(end, Math.max(0, time)); redraw(); }
function step(forwards) { play(false); go(event(shown(), state.time, forwards)); }
function faster(by) { state.speed = SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, SPEEDS.indexOf(state.speed) + by))]; redraw(); }

function toPacket(forwards) {
  const found = packetAt(shown(), state.label, state.time, forwards);
  if (!found) return;
  state.pinned.set(found.arm, found.packet);
  play(false);
  go(found.at);
}

function zoom(factor, side, x = 0.5, y = 0.5) {
  side ??= sides.find((each) => each.arm);
  const { view } = state, zoomed = Math.min(40, Math.max(1, view.zoom * factor));
  const before = scaleOf(side), corner = cornerOf(side), px = corner.x + x * side.width / before, py = corner.y + y * side.height / before;
  view.zoom = zoomed;
  const after = scaleOf(side);
  pan(px - x * side.width / after, py - y * side.height / after, side);
}

function pan(x, y, side) {
  Object.assign(state.view, { x, y });
  Object.assign(state.view, cornerOf(side));
  // One finger moves the page, unless a part of the picture is out of sight.
  for (const each of sides) each.canvas.style.touchAction = state.view.zoom > 1 ? "none" : "pan-y pinch-zoom";
  redraw();
}

const ACTIONS = {
  play: () => play(!state.playing), back: () => step(false), step: () => step(true), slower: () => faster(-1), faster: () => faster(1),
  closer: () => zoom(1.5), wider: () => zoom(1 / 1.5), all: () => { state.view.zoom = 1; pan(0, 0, sides[0]); },
  previous: () => toPacket(false), next: () => toPacket(true),
};
const KEYS = { " ": "play", ArrowLeft: "back", ArrowRight: "step", ArrowUp: "faster", ArrowDown: "slower", "+": "closer", "=": "closer", "-": "wider", 0: "all", n: "next", p: "previous" };

function onKey(pressed) {
  const kind = pressed.target.tagName, action = KEYS[pressed.key.length === 1 ? pressed.key.toLowerCase() : pressed.key];
  if (!action || pressed.ctrlKey || pressed.metaKey || pressed.altKey || kind === "SELECT") return;
  if (kind === "BUTTON" && pressed.key === " ") return;
  pressed.preventDefault();
  ACTIONS[action]();
}

function hold(side) {
  const { canvas } = side;
  canvas.addEventListener("wheel", (turned) => {
    if (!turned.ctrlKey && document.activeElement !== canvas) return;
    turned.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(1.2 ** (-turned.deltaY / 60), side, (turned.clientX - box.left) / box.width, (turned.clientY - box.top) / box.height);
  }, { passive: false });
  let held = null;
  canvas.addEventListener("pointerdown", (down) => { canvas.setPointerCapture(down.pointerId); held = { x: down.clientX, y: down.clientY, view: { ...state.view } }; });
  canvas.addEventListener("pointermove", (moved) => { if (held) pan(held.view.x - (moved.clientX - held.x) / scaleOf(side), held.view.y - (moved.clientY - held.y) / scaleOf(side), side); });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { held = null; });
}

function offerFlows() {
  const labels = [...new Set(shown().flatMap((arm) => arm.flows.filter((flow) => flow.packets.length).map((flow) => flow.label)))];
  if (!labels.includes(state.label)) state.label = labels[0] ?? "";
  byId("flow").replaceChildren(...labels.map((label) => new Option(label, label, false, label === state.label)));
  const levels = [...new Set(shown().flatMap((arm) => arm.lanes.map((lane) => lane.level)))].sort();
  byId("levels").replaceChildren(...levels.map((level) => {
    const told = document.createElement("label"), swatch = document.createElement("span");
    swatch.className = `swatch line${level}`;
    told.append(swatch, ` level ${level}`);
    return told;
  }));
}

async function choose(side) {
  const arm = await load(Number(side.which.value));
  if (arm.name !== page.arms[side.which.value]?.name) return; // of a recording that has been replaced
  side.arm = arm;
  side.told = "";
  fit(side);
  offerFlows();
  redraw();
}

// Show a recording instead of the one before.
async function showRecording(recording) {
  take(recording);
  play(false);
  const slowest = Math.min(...page.arms.flatMap((arm) => arm.ports.map((port) => port.rate)));
  state.speed = SPEEDS.find((each) => each >= page.mtu * 8e6 / slowest / 0.4) ?? SPEEDS.at(-1); // a full frame takes 0.4 s
  Object.assign(state, { time: 0, pinned: new Map() });
  sides.forEach((side, place) => {
    side.part.hidden = place >= page.arms.length;
    side.arm = null;
    side.which.replaceChildren(...page.arms.map((arm, index) => new Option(arm.label, index, false, index === place)));
  });
  await Promise.all(sides.filter((side) => !side.part.hidden).map(choose));
}

readColours();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });
sides.forEach((side) => { hold(side); side.which.addEventListener("change", () => choose(side)); });
for (const button of document.querySelectorAll("[data-do]")) button.addEventListener("click", ACTIONS[button.dataset.do]);
byId("slider").addEventListener("input", (moved) => go(moved.target.value / 1e6 * end));
byId("flow").addEventListener("change", (chosen) => { state.label = chosen.target.value; state.pinned.clear(); redraw(); });
(document.querySelector(".player") ?? document).addEventListener("keydown", onKey); // a page with more has other keys
addEventListener("resize", () => { sides.forEach(fit); redraw(); });
