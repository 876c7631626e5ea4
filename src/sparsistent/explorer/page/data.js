// The summary of the fit, as it stands in the page, and the graphs on its path.

const ARRAYS = { i1: Int8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };

function decoded(key, value) {
  if (value === null || typeof value !== "object" || !("base64" in value)) return value;
  const bytes = Uint8Array.from(atob(value.base64), (letter) => letter.charCodeAt(0));
  return new ARRAYS[value.dtype](bytes.buffer);
}

const DATA = JSON.parse(document.getElementById("data").textContent, decoded);
const EDGES = DATA.edges;
const N_NODES = DATA.names.length;
const N_EDGES = EDGES.source.length;
const POSITIONS = DATA.positions.threshold;
const CHOSEN = DATA.positions.chosen;
const HAS_PATH = POSITIONS.length > 1;
const IN_OVERVIEW = new Uint8Array(N_NODES).fill(DATA.overview ? 0 : 1);
if (DATA.overview) for (const node of DATA.overview) IN_OVERVIEW[node] = 1;

function isPresent(edge, position) {
  for (let k = EDGES.start[edge]; k < EDGES.start[edge + 1]; k++) {
    if (EDGES.first[k] <= position && position <= EDGES.last[k]) return true;
  }
  return false;
}

// A path is not nested, so every edge is looked at. They come strongest first.
function edgesAt(position) {
  const found = [];
  for (let edge = 0; edge < N_EDGES; edge++) if (isPresent(edge, position)) found.push(edge);
  return found;
}

// Degree, strength (the sum of absolute partial correlations) and edges of each variable.
function graphAt(position) {
  const edges = edgesAt(position);
  const degree = new Int32Array(N_NODES);
  const strength = new Float64Array(N_NODES);
  for (const edge of edges) {
    const weight = Math.abs(EDGES.partial[edge]) || 0;
    for (const node of [EDGES.source[edge], EDGES.target[edge]]) {
      degree[node] += 1;
      strength[node] += weight;
    }
  }
  return { position, edges, degree, strength };
}

const SIZES = new Int32Array(POSITIONS.length);
for (let k = 0; k < EDGES.first.length; k++) {
  for (let position = EDGES.first[k]; position <= EDGES.last[k]; position++) SIZES[position] += 1;
}

function neighborsIn(graph, node) {
  return graph.edges.filter((edge) => EDGES.source[edge] === node || EDGES.target[edge] === node);
}

function otherEnd(edge, node) {
  return EDGES.source[edge] === node ? EDGES.target[edge] : EDGES.source[edge];
}

// Residuals of a pair given all other variables, from those of each variable given all others.
function residualsOf(edge) {
  const { rows, unit, values } = DATA.residuals;
  const i = EDGES.source[edge], j = EDGES.target[edge];
  // The residuals are those of the chosen graph.
  const rho = isPresent(edge, CHOSEN) ? EDGES.partial[edge] || 0 : 0;
  const scale = unit / Math.sqrt(1 - rho * rho);
  const points = [];
  for (let row = 0; row < rows; row++) {
    const u = values[i * rows + row], v = values[j * rows + row];
    points.push([(u + rho * v) * scale, (v + rho * u) * scale]);
  }
  return points;
}
