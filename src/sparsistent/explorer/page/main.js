// Theme, help and keyboard; then the first picture.

const KEYS = [["← →", "slider by one step"], ["⇧ ← →", "by ten"], ["/", "find a variable"], ["Esc", "leave the selection, then the network"], ["+ − 0", "zoom in, out, show all"], ["d", "light or dark"], ["?", "this help"]];

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  update({ theme: name });
}

function startGuide() {
  const guide = byId("guide");
  guide.replaceChildren(
    make("h2", {}, "How to read this page"),
    make("p", {}, "Each point is a variable. A line joins two variables whose partial correlation is not zero: they depend on each other even if all others are known. Blue lines are positive, orange dashed ones negative; wide lines are strong" + (HAS_SHARES ? ", and faint ones occur in few bootstrap resamples." : ".")),
    HAS_PATH ? make("p", {}, "An edge is in the graph where the evidence for it exceeds the threshold ε. The slider goes through the graphs of all thresholds; edges may come and go. The grey area is the number of edges, the blue curve what the rule compared, the orange line where you are. A rule that is dotted was placed by its number of edges.") : null,
    make("p", {}, "Numbers of an edge are those of the chosen graph. For edges outside of it they come from a denser graph of the path, so they do not change as the slider moves. R² and the residuals are those of the chosen graph."),
    make("p", {}, "Colours of variables are communities: groups with more and stronger edges inside than between them. Strong edges are short; components stand apart; variables without an edge stand below."),
    make("dl", { class: "keys" }, KEYS.map(([key, meaning]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, meaning)])),
    make("p", { class: "soft" }, "Made by sparsistent. This file needs no network and sends nothing."),
    make("button", { type: "button", class: "primary", onclick: () => guide.close() }, "Close"));
  byId("help").addEventListener("click", () => guide.showModal());
}

function leave() {
  if (state.selection !== null && state.ego === null) update({ selection: null });
  else if (state.ego !== null) { update({ selection: null }); leaveEgo(); }
}

const SHORTCUTS = {
  "/": () => searchBox.focus(),
  "?": () => byId("guide").showModal(),
  "+": () => zoomBy(1.3),
  "=": () => zoomBy(1.3),
  "-": () => zoomBy(1 / 1.3),
  0: fitView,
  d: () => setTheme(state.theme === "dark" ? "light" : "dark"),
  Escape: leave,
};

function onKey(event) {
  const isTyping = event.target.matches?.("input[type=text]");
  if (event.ctrlKey || event.metaKey || event.altKey || byId("guide").open) return;
  if (isTyping) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const direction = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
  if (direction !== undefined && !event.target.closest?.("[role=tablist]")) moveTo(state.position + direction * (event.shiftKey ? 10 : 1));
  else if (event.key in SHORTCUTS) SHORTCUTS[event.key]();
  else return;
  event.preventDefault();
}

function start() {
  byId("title").textContent = oneLine(DATA.title);
  byId("subtitle").textContent = DATA.facts.slice(0, 4).map(([term, value]) => (/^[\d,]+$/.test(value) ? `${value} ${term.toLowerCase()}` : value)).join(" · ");
  [startTabs, startSlider, startTable, startChecks, startSearch, startExport, startGuide].forEach((begin) => begin());
  byId("theme").addEventListener("click", SHORTCUTS.d);
  byId("zoom-in").addEventListener("click", () => zoomBy(1.3));
  byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.3));
  byId("fit").addEventListener("click", fitView);
  document.addEventListener("keydown", onKey);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  setTheme(dark.matches ? "dark" : "light");
  let printed = null;
  window.addEventListener("beforeprint", () => { printed = state.theme; setTheme("light"); drawViews(); });
  window.addEventListener("afterprint", () => setTheme(printed));
  let isFirst = true;
  new ResizeObserver(() => {
    if (isFirst) fitView();
    isFirst = false;
    update({ size: null });
  }).observe(view);
  update({ position: CHOSEN, tab: "why", size: null });
  drawLegend();
  fitView();
  requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.ready = "true"; }));
}

// For tests, and for those who open the console.
window.sparsistent = {
  moveTo,
  drawnEdges: () => lastScene.lines.map(({ edge }) => [EDGES.source[edge], EDGES.target[edge]]),
  isShown: (node) => shownGraph().isShown(node),
  pointOf: (node) => { const { left, top } = canvas.getBoundingClientRect(); return [left + camera.scale * DATA.nodes.x[node] + camera.x, top + camera.scale * DATA.nodes.y[node] + camera.y]; },
};

start();
