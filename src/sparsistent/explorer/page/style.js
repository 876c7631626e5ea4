// Colours, widths and opacities. Signs are blue and orange, which colour-blind readers tell apart,
// and negative edges are dashed as well. Communities have Paul Tol's muted colours.

const THEMES = {
  light: { paper: "#ffffff", ink: "#1d2733", soft: "#6b7785", line: "#d5dae0", positive: "#2469b3", negative: "#c8551b", mark: "#111827", single: "#c3cad2" },
  dark: { paper: "#14181f", ink: "#e7ebf0", soft: "#98a4b3", line: "#333c48", positive: "#6fb0f5", negative: "#f39a5c", mark: "#ffffff", single: "#4a5563" },
};
const COMMUNITIES = ["#44aa99", "#ddcc77", "#aa4499", "#88ccee", "#999933", "#cc6677", "#7766c6", "#1f8f4d", "#a8476f"];
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const FONT_SIZE = 12;

const theme = () => THEMES[state.theme];
const HAS_SHARES = "share" in EDGES;
const STRONGEST = Math.max(0.05, ...EDGES.partial.slice(0, 1).map(Math.abs).filter(Number.isFinite));
const COMMUNITY_SIZES = [];
for (const group of DATA.nodes.community) COMMUNITY_SIZES[group] = (COMMUNITY_SIZES[group] || 0) + 1;

function edgeColor(edge, colors) {
  const partial = EDGES.partial[edge];
  if (!Number.isFinite(partial)) return colors.soft;
  return partial < 0 ? colors.negative : colors.positive;
}

const relativeStrength = (edge) => Math.min(1, Math.abs(EDGES.partial[edge] || 0) / STRONGEST);
const edgeWidth = (edge) => 0.7 + 5.3 * relativeStrength(edge);

// By the bootstrap where there is one; else weak edges step back behind strong ones, the more so the
// more edges there are for each variable.
const DENSITY = SIZES[CHOSEN] / Math.max(1, N_NODES);
const LEAST_OPACITY = Math.max(0.1, Math.min(0.3, 0.45 - 0.07 * DENSITY));
const FADING = Math.max(0.5, Math.min(1.1, DENSITY / 5));

function edgeOpacity(edge) {
  if (HAS_SHARES) return 0.12 + 0.88 * EDGES.share[edge];
  return LEAST_OPACITY + (1 - LEAST_OPACITY) * relativeStrength(edge) ** FADING;
}

function nodeColor(node, colors) {
  const group = DATA.nodes.community[node];
  return COMMUNITY_SIZES[group] > 1 && group < COMMUNITIES.length ? COMMUNITIES[group] : colors.single;
}

// The largest strength in the chosen graph, so that sizes mean the same at every position.
const MOST_STRENGTH = Math.max(1e-9, ...[...state.graph.strength].sort((a, b) => b - a).slice(0, 1));

function nodeRadius(node, graph, scale) {
  if (graph.degree[node] === 0) return 2.5 * scale;
  return scale * (3.5 + 5.5 * Math.sqrt(Math.min(1, graph.strength[node] / MOST_STRENGTH)));
}
