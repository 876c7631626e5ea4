// The graph on its canvas: zoom, pan, pick, tooltip and legend.

const canvas = byId("graph");
const view = byId("view");
const tip = byId("tip");
let lastScene = null;
let drag = null;

const viewSize = () => ({ width: view.clientWidth, height: view.clientHeight });

// Labels keep clear of what floats over the canvas.
function floating() {
  const frame = view.getBoundingClientRect();
  return ["legend", "tools", "notice"].map(byId).filter((element) => !element.hidden).map((element) => {
    const box = element.getBoundingClientRect();
    return { x: box.left - frame.left, y: box.top - frame.top, width: box.width, height: box.height };
  });
}

function drawGraph() {
  const { width, height } = viewSize();
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  lastScene = sceneOf(width, height, floating());
  paintCanvas(context, lastScene, width, height);
}

// Show all variables that have an edge, or the ego network.
function fitView() {
  const { width, height } = viewSize();
  const shown = shownGraph();
  let nodes = [...new Set(shown.edges.flatMap((edge) => [EDGES.source[edge], EDGES.target[edge]]))];
  if (state.ego !== null && nodes.length === 0) nodes = [state.ego];
  if (nodes.length === 0) nodes = Array.from({ length: N_NODES }, (_, node) => node).filter(shown.isShown);
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (const node of nodes) {
    const x = DATA.nodes.x[node], y = DATA.nodes.y[node];
    box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y);
    box[2] = Math.max(box[2], x); box[3] = Math.max(box[3], y);
  }
  const margin = { left: 60, right: 110, top: 56, bottom: 64 };
  const room = [Math.max(50, width - margin.left - margin.right), Math.max(50, height - margin.top - margin.bottom)];
  const scale = Math.min(room[0] / Math.max(box[2] - box[0], 1), room[1] / Math.max(box[3] - box[1], 1), 180);
  camera.scale = scale;
  camera.x = margin.left + room[0] / 2 - scale * (box[0] + box[2]) / 2;
  camera.y = margin.top + room[1] / 2 - scale * (box[1] + box[3]) / 2;
  update({ camera: null });
}

function zoomBy(factor, x = viewSize().width / 2, y = viewSize().height / 2) {
  const scale = Math.max(0.5, Math.min(2000, camera.scale * factor));
  camera.x = x - (x - camera.x) * scale / camera.scale;
  camera.y = y - (y - camera.y) * scale / camera.scale;
  camera.scale = scale;
  update({ camera: null });
}

function distanceToLine(line, x, y) {
  const dx = line.x2 - line.x1, dy = line.y2 - line.y1;
  const along = Math.max(0, Math.min(1, ((x - line.x1) * dx + (y - line.y1) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - line.x1 - along * dx, y - line.y1 - along * dy) - line.width / 2;
}

function pick(x, y) {
  if (lastScene === null) return null;
  let best = null;
  let distance = 5;
  for (const disc of lastScene.discs) {
    const away = Math.hypot(x - disc.x, y - disc.y) - disc.radius;
    if (away < distance) { distance = away; best = { node: disc.index }; }
  }
  for (const label of lastScene.labels) {
    const isInside = x >= label.x && x <= label.x + textWidth(label.text) && y >= label.y - FONT_SIZE && y <= label.y + 3;
    if (isInside && best === null) best = { node: label.node };
  }
  if (best !== null) return best;
  distance = 5;
  for (const line of lastScene.lines) {
    const away = distanceToLine(line, x, y);
    // Of lines that cross, the upper one, which is drawn later.
    if (away < distance && away <= Math.max(distance, 0)) { distance = Math.max(away, 0.01); best = { edge: line.edge }; }
  }
  return best;
}

function showTip(target, x, y) {
  tip.hidden = target === null;
  if (target === null) return;
  if ("node" in target) {
    const { degree, strength } = state.graph;
    tip.replaceChildren(
      make("strong", {}, make("bdi", {}, shortened(NAMES[target.node], 300))),
      make("span", {}, `${plural(degree[target.node], "neighbour", "neighbours")} · strength ${decimal(strength[target.node], 2)} · R² ${decimal(DATA.nodes.rSquared[target.node], 2)}`),
    );
  } else {
    const edge = target.edge;
    tip.replaceChildren(
      make("strong", {}, make("bdi", {}, shortened(NAMES[EDGES.source[edge]], 80)), " — ", make("bdi", {}, shortened(NAMES[EDGES.target[edge]], 80))),
      make("span", {}, `partial correlation ${decimal(EDGES.partial[edge])}`),
    );
  }
  const { width, height } = viewSize();
  tip.style.left = `${Math.max(4, Math.min(x + 14, width - tip.offsetWidth - 8))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > height ? y - tip.offsetHeight - 10 : y + 18}px`;
}

const local = (event) => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
const isSame = (a, b) => a?.node === b?.node && a?.edge === b?.edge;

canvas.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  canvas.setPointerCapture(event.pointerId);
  drag = { x: event.clientX, y: event.clientY, hasMoved: false };
});
canvas.addEventListener("pointermove", (event) => {
  if (drag === null) {
    const [x, y] = local(event);
    const target = pick(x, y);
    canvas.style.cursor = target === null ? "grab" : "pointer";
    showTip(target, x, y);
    if (!isSame(target, state.hover)) update({ hover: target });
    return;
  }
  const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
  if (!drag.hasMoved && Math.hypot(dx, dy) < 4) return;
  drag = { x: event.clientX, y: event.clientY, hasMoved: true };
  camera.x += dx;
  camera.y += dy;
  showTip(null);
  update({ camera: null });
});
canvas.addEventListener("pointerup", (event) => {
  const isClick = drag !== null && !drag.hasMoved;
  drag = null;
  if (!isClick) return;
  showTip(null);
  const target = pick(...local(event));
  if (target === null) update({ selection: null });
  else {
    if ("node" in target) selectNode(target.node);
    else selectEdge(target.edge);
    update({ tab: "why" });
  }
});
canvas.addEventListener("pointercancel", () => { drag = null; });
canvas.addEventListener("pointerleave", () => {
  showTip(null);
  if (state.hover !== null) update({ hover: null });
});
canvas.addEventListener("dblclick", (event) => {
  const target = pick(...local(event));
  if (target !== null && "node" in target) showEgo(target.node);
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const step = event.deltaMode === 1 ? 16 * event.deltaY : event.deltaY;
  zoomBy(Math.exp(-Math.max(-200, Math.min(200, step)) / 400), ...local(event));
}, { passive: false });

function drawNotice() {
  const notice = byId("notice");
  const shown = shownGraph();
  const total = state.graph.edges.length;
  notice.hidden = true;
  if (state.ego !== null) {
    notice.hidden = false;
    notice.replaceChildren("Only ", nameOf(state.ego), " and its neighbours ",
      make("button", { type: "button", class: "link", onclick: leaveEgo }, "Show all"));
  } else if (DATA.overview || shown.edges.length < total) {
    notice.hidden = false;
    const nodes = DATA.overview ? DATA.overview.length : N_NODES;
    notice.replaceChildren(`Shown: ${count(nodes)} of ${count(N_NODES)} variables and ${count(shown.edges.length)} of ${count(total)} edges, `
      + "strong edges of the largest components. Search for any other variable to see its network.");
  }
}

function drawLegend() {
  const colors = theme();
  const sample = (partial, width, dash) => draw("svg", { width: 30, height: 12, "aria-hidden": true },
    draw("line", { x1: 2, y1: 6, x2: 28, y2: 6, stroke: partial < 0 ? colors.negative : colors.positive, "stroke-width": width, "stroke-dasharray": dash, "stroke-linecap": "round" }));
  const entry = (picture, text) => make("span", { class: "entry" }, picture, text);
  const groups = COMMUNITY_SIZES.filter((size) => size > 1).length;
  const dots = draw("svg", { width: 12 * Math.min(groups, 5) + 4, height: 12, "aria-hidden": true },
    ...COMMUNITIES.slice(0, Math.min(groups, 5)).map((color, k) => draw("circle", { cx: 7 + 12 * k, cy: 6, r: 5, fill: color })));
  const width = edgeWidth(0) > 1 ? 5 : 3;
  const entries = [
    entry(sample(1, 3), "positive"), entry(sample(-1, 3, "6 4"), "negative"),
    entry(sample(1, width), `wide: strong (up to ${decimal(STRONGEST, 2)})`),
    HAS_SHARES ? entry(null, "faint: in few resamples") : null,
    groups > 1 ? entry(dots, plural(groups, "community", "communities")) : null,
    entry(null, "large: high strength"),
  ];
  byId("legend").replaceChildren(...entries.filter(Boolean));
}

shows(["position", "selection", "ego", "hover", "camera", "theme", "size"], drawGraph);
shows(["position", "ego"], drawNotice);
shows(["theme"], drawLegend);
