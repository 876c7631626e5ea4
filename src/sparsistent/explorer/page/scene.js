// What is drawn where, in pixels, for the screen and for files alike.

const camera = { scale: 1, x: 0, y: 0 }; // pixels = scale · layout + (x, y)

// The length of an edge of the chosen graph: the median.
const TYPICAL_LENGTH = (() => {
  const lengths = edgesAt(CHOSEN).map((edge) => Math.hypot(
    DATA.nodes.x[EDGES.source[edge]] - DATA.nodes.x[EDGES.target[edge]],
    DATA.nodes.y[EDGES.source[edge]] - DATA.nodes.y[EDGES.target[edge]])).sort((a, b) => a - b);
  return lengths[Math.floor(lengths.length / 2)] || 1;
})();

// The variables and edges that are shown: those of the overview, or of one ego network.
function shownGraph() {
  const { graph, ego } = state;
  if (ego === null) {
    const all = graph.edges.filter((edge) => IN_OVERVIEW[EDGES.source[edge]] && IN_OVERVIEW[EDGES.target[edge]]);
    return { edges: all.slice(0, DATA.maxEdges), isShown: (node) => IN_OVERVIEW[node] === 1 };
  }
  const members = new Set([ego]);
  for (const edge of neighborsIn(graph, ego)) members.add(otherEnd(edge, ego));
  const edges = graph.edges.filter((edge) => members.has(EDGES.source[edge]) && members.has(EDGES.target[edge]));
  return { edges, isShown: (node) => members.has(node) };
}

// What stands out: the selection with its surroundings, or nothing in particular.
function emphasis() {
  const { selection, graph } = state;
  if (selection === null) return null;
  if (selection.kind === "edge") {
    const nodes = new Set([EDGES.source[selection.index], EDGES.target[selection.index]]);
    return { nodes, edges: new Set([selection.index]) };
  }
  const edges = neighborsIn(graph, selection.index);
  return { nodes: new Set([selection.index, ...edges.map((edge) => otherEnd(edge, selection.index))]), edges: new Set(edges) };
}

function sceneOf(width, height, blocked = []) {
  const shown = shownGraph();
  const strong = emphasis();
  const colors = theme();
  const faint = state.ego === null ? 0.07 : 0.25;
  const px = (node) => camera.scale * DATA.nodes.x[node] + camera.x;
  const py = (node) => camera.scale * DATA.nodes.y[node] + camera.y;
  const nodeScale = Math.max(0.4, Math.min(1.15, camera.scale * TYPICAL_LENGTH / 55));
  const lines = shown.edges.map((edge) => {
    const isStrong = !strong || strong.edges.has(edge);
    return {
      edge,
      x1: px(EDGES.source[edge]), y1: py(EDGES.source[edge]),
      x2: px(EDGES.target[edge]), y2: py(EDGES.target[edge]),
      color: edgeColor(edge, colors),
      width: edgeWidth(edge) * Math.min(1, nodeScale + 0.15) + (strong && isStrong ? 1 : 0),
      isDashed: EDGES.partial[edge] < 0,
      opacity: isStrong ? Math.max(edgeOpacity(edge), strong ? 0.6 : 0) : faint,
    };
  });
  // Weak ones first, so that strong ones lie on top.
  lines.reverse();
  return { lines, ...discsAndLabels(shown, strong, colors, nodeScale, px, py, width, height, blocked) };
}

function discsAndLabels(shown, strong, colors, nodeScale, px, py, width, height, blocked) {
  const { graph, ego } = state;
  const discs = [];
  for (let node = 0; node < N_NODES; node++) {
    if (!shown.isShown(node)) continue;
    const isStrong = !strong || strong.nodes.has(node);
    const isChosen = isSelected("node", node) || ego === node;
    discs.push({
      index: node, x: px(node), y: py(node),
      radius: nodeRadius(node, graph, nodeScale) + (isChosen ? 2 : 0),
      color: nodeColor(node, colors),
      ring: isChosen ? colors.mark : colors.paper,
      ringWidth: isChosen ? 2.5 : 1.2,
      opacity: isStrong ? 1 : 0.25,
      isChosen,
      isImportant: Boolean(strong && isStrong && (strong.nodes.size <= 25 || isChosen)) || state.hover?.node === node,
      rank: (isChosen ? 3e6 : 0) + (strong && isStrong ? 1e6 : 0) + graph.strength[node] + (state.hover?.node === node ? 2e6 : 0),
    });
  }
  const ranked = [...discs].sort((a, b) => b.rank - a.rank || a.index - b.index);
  const named = ranked.filter((disc) => graph.degree[disc.index] > 0 || disc.isImportant || ranked.length <= 60);
  return { discs, labels: placeLabels(named, width, height, blocked), background: colors.paper, ink: colors.ink };
}
