// The path on a slider, with the number of edges, the rule's curve and where rules stand above it.

const slider = byId("slider");
const THUMB = 16; // width of the slider's thumb: its centre moves between the halves of it
const CURVE_HEIGHT = 96;
const TOP = 34; // room for the names of the marks

const positionX = (position, width) => THUMB / 2 + (width - THUMB) * position / Math.max(1, POSITIONS.length - 1);

// Where a threshold lies between the positions, on a logarithmic scale.
function positionOf(threshold) {
  const last = POSITIONS.length - 1;
  if (threshold >= POSITIONS[0]) return 0;
  if (threshold <= POSITIONS[last]) return last;
  let k = 1;
  while (POSITIONS[k] > threshold) k += 1;
  return k - 1 + Math.log(POSITIONS[k - 1] / threshold) / Math.log(POSITIONS[k - 1] / POSITIONS[k]);
}

function curvePoints(width, bottom) {
  const { threshold, criterion } = DATA.curve;
  let low = Infinity, high = -Infinity;
  const inside = [];
  for (let k = 0; k < threshold.length; k++) {
    if (threshold[k] > POSITIONS[0] * 1.0001 || threshold[k] < POSITIONS[POSITIONS.length - 1] * 0.9999) continue;
    inside.push(k);
    low = Math.min(low, criterion[k]);
    high = Math.max(high, criterion[k]);
  }
  return inside.map((k) => [positionX(positionOf(threshold[k]), width), bottom - (bottom - TOP - 4) * (criterion[k] - low) / (high - low || 1)]);
}

// Rules at about the same place share a name tag.
function groupedMarks(width) {
  const groups = [];
  for (const mark of [...DATA.marks].sort((a, b) => a.position - b.position)) {
    const x = positionX(mark.position, width);
    const last = groups[groups.length - 1];
    if (last && x - last.x < 12) last.marks.push(mark);
    else groups.push({ x, marks: [mark] });
  }
  return groups;
}

function describeMark(mark) {
  const isBeyond = mark.position === POSITIONS.length - 1 && mark.edges > 1.1 * SIZES[mark.position];
  const where = isBeyond ? ", more than on this slider" : mark.byEdges ? "; placed by its number of edges, as its threshold is of another kind" : "";
  return { name: `${shortened(mark.name, 18)}${isBeyond ? " ▸" : ""}`, text: `${mark.name}: ${plural(mark.edges, "edge", "edges")}${where}` };
}

// Tags in two rows, so that neighbours do not overlap.
function markNodes(width, bottom, colors) {
  const ends = [-Infinity, -Infinity];
  return groupedMarks(width).map(({ x, marks }) => {
    const described = marks.map(describeMark);
    const tag = described.map(({ name }) => name).join(" · ");
    const half = textWidth(tag) / 2 + 8;
    const middle = Math.max(half, Math.min(width - half, x));
    const row = middle - half > ends[0] || ends[0] <= ends[1] ? 0 : 1;
    ends[row] = middle + half;
    const isChosen = marks.some((mark) => mark.position === CHOSEN && !mark.byEdges);
    const go = () => moveTo((marks.find((mark) => mark.position === CHOSEN) || marks[0]).position);
    const title = described.map(({ text }) => text).join("\n");
    return draw("g", { class: "mark", role: "button", tabindex: "0", "aria-label": title, onclick: go, onkeydown: (event) => { if (event.key === "Enter") go(); } },
      draw("title", {}, title),
      draw("line", { x1: x, x2: x, y1: row * 15 + 15, y2: bottom, stroke: isChosen ? colors.ink : colors.soft, "stroke-dasharray": marks.every((mark) => mark.byEdges) ? "2 3" : null }),
      draw("text", { x: middle, y: row * 15 + 12, "text-anchor": "middle", fill: isChosen ? colors.ink : colors.soft,
        stroke: colors.paper, "stroke-width": 4, "paint-order": "stroke", "font-weight": isChosen ? 600 : null }, tag));
  });
}

function drawCurve() {
  if (!HAS_PATH) return;
  const colors = theme();
  const width = byId("curve").clientWidth;
  const bottom = CURVE_HEIGHT - 2;
  const most = Math.max(1, ...SIZES);
  const steps = [...SIZES].map((size, position) => `${positionX(position, width)},${bottom - (bottom - TOP) * size / most}`);
  const area = [`${positionX(0, width)},${bottom}`, ...steps, `${positionX(SIZES.length - 1, width)},${bottom}`].join(" ");
  const picture = draw("svg", { width, height: CURVE_HEIGHT, "font-size": 12 },
    draw("polygon", { points: area, fill: colors.line, opacity: 0.7 }));
  if (DATA.curve) {
    const points = curvePoints(width, bottom).map((point) => point.map((value) => value.toFixed(1)).join(",")).join(" ");
    picture.append(draw("polyline", { points, fill: "none", stroke: colors.positive, "stroke-width": 2, "stroke-linejoin": "round" }));
  }
  const hasRoom = DATA.marks.every((mark) => positionX(mark.position, width) < width - 90);
  if (hasRoom) picture.append(
    draw("text", { x: width - THUMB / 2, y: TOP - 6, "text-anchor": "end", fill: colors.soft, "font-size": 11 }, `${count(most)} edges`));
  picture.append(...markNodes(width, bottom, colors));
  const x = positionX(state.position, width);
  picture.append(
    draw("line", { x1: x, x2: x, y1: TOP, y2: bottom, stroke: colors.negative, "stroke-width": 2 }),
    draw("circle", { cx: x, cy: bottom - (bottom - TOP) * SIZES[state.position] / most, r: 4.5, fill: colors.negative, stroke: colors.paper, "stroke-width": 1.5 }));
  picture.addEventListener("click", (event) => {
    if (event.target.closest(".mark")) return;
    const at = event.clientX - picture.getBoundingClientRect().left;
    moveTo(Math.round((at - THUMB / 2) / (width - THUMB) * (POSITIONS.length - 1)));
  });
  byId("curve").replaceChildren(picture);
}

function drawReadout() {
  const edges = state.graph.edges.length;
  const connected = state.graph.degree.reduce((total, degree) => total + (degree > 0), 0);
  const parts = [
    make("b", {}, plural(edges, "edge", "edges")),
    ` · ${plural(DATA.positions.components[state.position], "component", "components")}`,
    ` · ${plural(N_NODES - connected, "variable", "variables")} without an edge`,
  ];
  if (HAS_PATH) parts.unshift("threshold ε = ", make("b", {}, significant(POSITIONS[state.position])), " · ");
  byId("readout").replaceChildren(...parts);
  byId("back").hidden = state.position === CHOSEN;
  slider.value = state.position;
  slider.setAttribute("aria-valuetext", `threshold ${significant(POSITIONS[state.position])}, ${edges} edges`);
  canvas.setAttribute("aria-label", `Graph with ${edges} edges between ${connected} variables; the tab Edges lists them`);
}

function startSlider() {
  byId("strip").classList.toggle("fixed", !HAS_PATH);
  slider.max = POSITIONS.length - 1;
  slider.addEventListener("input", () => moveTo(Number(slider.value)));
  byId("back").addEventListener("click", () => moveTo(CHOSEN));
  const key = byId("key");
  key.append(make("span", { class: "swatch area" }), "number of edges");
  if (DATA.curve) key.append(make("span", { class: "swatch curve" }), `${DATA.curve.meaning} (${shortened(DATA.curve.rule, 24)})`);
}

shows(["position", "theme", "size"], drawCurve);
shows(["position"], drawReadout);
