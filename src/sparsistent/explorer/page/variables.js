// Degree and strength of the variables as a dot plot, and the checks of the data.

const MOST_DOTS = 200;
const measure = { name: "strength" };

function drawVariables() {
  if (state.tab !== "variables") return;
  const colors = theme();
  const { degree, strength } = state.graph;
  const value = measure.name === "strength" ? strength : degree;
  const nodes = Array.from({ length: N_NODES }, (_, node) => node).sort((a, b) => value[b] - value[a] || strength[b] - strength[a] || a - b);
  const shown = nodes.slice(0, MOST_DOTS);
  const columns = [["Degree", degree, Math.max(1, degree[shown[0]], ...shown.map((node) => degree[node])), (x) => count(x)],
    ["Strength", strength, Math.max(1e-9, ...shown.map((node) => strength[node])), (x) => decimal(x, 2)]];
  const heads = columns.map(([title]) => make("th", { scope: "col" }, make("button", { type: "button",
    onclick: () => { measure.name = title.toLowerCase(); drawVariables(); } }, title + (measure.name === title.toLowerCase() ? " ▼" : ""))));
  const rows = shown.map((node) => make("tr", { "aria-selected": String(isSelected("node", node)), onclick: () => selectNode(node) },
    make("td", {}, nameOf(node)),
    columns.map(([, values, most, show]) => make("td", { class: "dots" }, dotOf(values[node] / most, node, colors), make("span", { class: "value" }, show(values[node]))))));
  byId("variables").replaceChildren(
    make("p", { class: "soft" }, nodes.length > MOST_DOTS ? `The first ${count(MOST_DOTS)} of ${count(nodes.length)} variables. ` : "",
      "Degree is the number of neighbours, strength the sum of absolute partial correlations."),
    make("table", { class: "dotplot" }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Variable"), heads)), make("tbody", {}, rows)));
}

function dotOf(share, node, colors) {
  return draw("svg", { width: "100%", height: 16, "aria-hidden": true },
    draw("line", { x1: 4, x2: "100%", y1: 8, y2: 8, stroke: colors.line }),
    draw("circle", { cx: `${4 + 90 * share}%`, cy: 8, r: 4.5, fill: nodeColor(node, colors), stroke: colors.ink, "stroke-width": 0.5 }));
}

function startChecks() {
  const marks = { good: "✓", note: "i", warning: "!" };
  byId("checks").replaceChildren(
    make("h2", {}, "A look at the data"),
    make("ul", { class: "checks" }, DATA.checks.map((check) => make("li", { class: check.level },
      make("span", { class: "badge", "aria-label": check.level }, marks[check.level]),
      make("div", {}, make("h3", {}, check.title), make("p", {}, make("bdi", {}, check.text)))))));
}

shows(["position", "tab", "selection", "theme"], drawVariables);
