// The partial correlations as a heat map, variables ordered by community and within it by strength.

let matrixCells = null; // { nodes, place, side, left, top }

function matrixNodes() {
  const shown = shownGraph();
  const nodes = [];
  for (let node = 0; node < N_NODES; node++) if (shown.isShown(node)) nodes.push(node);
  const { strength } = chosenGraph;
  return nodes.sort((a, b) => DATA.nodes.community[a] - DATA.nodes.community[b] || strength[b] - strength[a] || a - b);
}

const chosenGraph = state.graph;

function drawMatrix() {
  if (state.tab !== "matrix") return;
  const panel = byId("matrix");
  const colors = theme();
  const nodes = matrixNodes();
  const hasNames = nodes.length <= 40;
  const edge = hasNames ? 96 : 10;
  const size = Math.max(200, panel.clientWidth - 32);
  const side = (size - edge) / Math.max(1, nodes.length);
  const ratio = window.devicePixelRatio || 1;
  const picture = make("canvas", { width: Math.round(size * ratio), height: Math.round(size * ratio), role: "img", "aria-label": "Heat map of partial correlations" });
  picture.style.width = picture.style.height = `${size}px`;
  const context = picture.getContext("2d");
  context.scale(ratio, ratio);
  context.fillStyle = state.theme === "dark" ? "#1c222b" : "#f6f7f9";
  context.fillRect(edge, edge, size - edge, size - edge);
  matrixCells = { nodes, place: new Map(nodes.map((node, k) => [node, k])), side, edge };
  paintCells(context, colors);
  if (hasNames) paintNames(context, colors);
  picture.addEventListener("click", (event) => pickCell(event, picture));
  panel.replaceChildren(
    make("p", { class: "soft" }, "Partial correlations in the graph of the slider; variables by community. Blue is positive, orange negative, and the darker the stronger. Click a cell."),
    picture, colorBar(colors));
}

function paintCells(context, colors) {
  const { nodes, place, side, edge } = matrixCells;
  const cell = Math.max(side - (side > 6 ? 1 : 0), 1);
  const put = (a, b) => context.fillRect(edge + place.get(a) * side, edge + place.get(b) * side, cell, cell);
  for (const index of state.graph.edges) {
    const i = EDGES.source[index], j = EDGES.target[index];
    if (!place.has(i) || !place.has(j)) continue;
    context.globalAlpha = 0.18 + 0.82 * relativeStrength(index);
    context.fillStyle = edgeColor(index, colors);
    put(i, j);
    put(j, i);
  }
  context.globalAlpha = 1;
  for (const node of nodes) {
    context.fillStyle = nodeColor(node, colors);
    put(node, node);
  }
  if (state.selection?.kind === "edge") {
    const a = place.get(EDGES.source[state.selection.index]), b = place.get(EDGES.target[state.selection.index]);
    context.strokeStyle = colors.mark;
    context.lineWidth = 2;
    for (const [x, y] of [[a, b], [b, a]]) context.strokeRect(edge + x * side - 1, edge + y * side - 1, Math.max(side, 5) + 1, Math.max(side, 5) + 1);
  }
}

function paintNames(context, colors) {
  const { nodes, side, edge } = matrixCells;
  context.fillStyle = colors.ink;
  context.font = `${Math.min(11, side)}px ${FONT}`;
  context.textBaseline = "middle";
  nodes.forEach((node, k) => {
    const text = shortened(NAMES[node], 16);
    context.textAlign = "right";
    context.fillText(text, edge - 5, edge + (k + 0.5) * side, edge - 8);
    context.save();
    context.translate(edge + (k + 0.5) * side, edge - 5);
    context.rotate(-Math.PI / 2);
    context.textAlign = "left";
    context.fillText(text, 0, 0, edge - 8);
    context.restore();
  });
}

function colorBar(colors) {
  const stops = [-1, -0.5, 0, 0.5, 1];
  return make("div", { class: "colorbar" }, `${MINUS}${decimal(STRONGEST, 2)}`, stops.map((value) => {
    const box = make("span");
    box.style.background = value < 0 ? colors.negative : colors.positive;
    box.style.opacity = value === 0 ? 0.05 : 0.18 + 0.82 * Math.abs(value);
    return box;
  }), decimal(STRONGEST, 2));
}

function pickCell(event, picture) {
  const box = picture.getBoundingClientRect();
  const { nodes, side, edge } = matrixCells;
  const at = (value) => nodes[Math.floor((value - edge) / side)];
  const a = at(event.clientX - box.left), b = at(event.clientY - box.top);
  if (a === undefined || b === undefined) return;
  if (a === b) { selectNode(a); return; }
  const found = neighborsIn(state.graph, a).find((index) => otherEnd(index, a) === b);
  if (found !== undefined) selectEdge(found);
}

shows(["position", "tab", "selection", "theme", "ego", "size"], drawMatrix);
