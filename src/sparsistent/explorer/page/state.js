// What the page shows now. `update` changes it, and what depends on the change is drawn in the next
// frame.

const state = {
  position: CHOSEN,
  graph: graphAt(CHOSEN),
  selection: null, // { kind: "edge" or "node", index }
  ego: null, // the variable whose network is shown alone
  hover: null,
  tab: "why",
  theme: "light",
};

const views = []; // { needs: names of what it depends on, draw }
const changed = new Set();
let isScheduled = false;

function shows(needs, drawView) {
  views.push({ needs, draw: drawView });
}

function drawViews() {
  isScheduled = false;
  const now = new Set(changed);
  changed.clear();
  for (const view of views) if (view.needs.some((name) => now.has(name))) view.draw(now);
  document.documentElement.dataset.position = state.position;
}

function update(changes) {
  for (const [name, value] of Object.entries(changes)) {
    state[name] = value;
    changed.add(name);
  }
  if (!isScheduled) {
    isScheduled = true;
    requestAnimationFrame(drawViews);
  }
}

function moveTo(position) {
  const within = Math.max(0, Math.min(POSITIONS.length - 1, position));
  if (within !== state.position) update({ position: within, graph: graphAt(within) });
}

const selectEdge = (index) => update({ selection: { kind: "edge", index } });
const selectNode = (index) => update({ selection: { kind: "node", index } });
const isSelected = (kind, index) => state.selection?.kind === kind && state.selection.index === index;

// A variable and its neighbours, from anywhere in the graph.
function showEgo(node) {
  update({ ego: node, selection: { kind: "node", index: node } });
  fitView();
}

function leaveEgo() {
  update({ ego: null });
  fitView();
}
