// The panel that says why an edge is there, or what a variable hangs on.

function figures(rows) {
  return make("dl", { class: "figures" }, rows.filter(Boolean).map(([term, value, note]) => [
    make("dt", {}, term), make("dd", {}, value, note ? make("small", {}, note) : null)]));
}

function whenPresent(edge) {
  const parts = [];
  for (let k = EDGES.start[edge]; k < EDGES.start[edge + 1]; k++) {
    const below = EDGES.first[k] === 0 ? null : POSITIONS[EDGES.first[k] - 1];
    const isLast = EDGES.last[k] === POSITIONS.length - 1;
    const from = below === null ? "at every ε shown" : `for ε below ${significant(below)}`;
    parts.push(from + (isLast ? "" : ` and from ${significant(POSITIONS[EDGES.last[k]])} on`));
  }
  return parts.join("; ");
}

function scatter(edge) {
  const points = residualsOf(edge);
  if (points.length === 0) return make("p", { class: "soft" }, "No scatter plot: the page was made without the table, or too few rows are complete.");
  const size = 250, low = 34, colors = theme();
  const extent = Math.max(2.5, ...points.flat().map(Math.abs)) * 1.05;
  const place = (value) => low + (size - low - 6) * (value + extent) / (2 * extent);
  const x = (value) => place(value), y = (value) => size - place(value) ;
  const rho = points.reduce((sum, [u, v]) => sum + u * v, 0) / Math.sqrt(points.reduce((s, [u]) => s + u * u, 0) * points.reduce((s, [, v]) => s + v * v, 0) || 1);
  const axis = (text, transform) => draw("text", { transform, "text-anchor": "middle", fill: colors.soft, "font-size": 11 }, shortened(text, 34));
  const picture = draw("svg", { class: "scatter", width: size, height: size, role: "img", "aria-label": "Scatter plot of the two residuals" },
    draw("rect", { x: low, y: 6, width: size - low - 6, height: size - low - 6, fill: "none", stroke: colors.line }),
    draw("line", { x1: x(0), x2: x(0), y1: 6, y2: size - low, stroke: colors.line }),
    draw("line", { x1: low, x2: size - 6, y1: y(0), y2: y(0), stroke: colors.line }),
    ...points.map(([u, v]) => draw("circle", { cx: x(u).toFixed(1), cy: y(v).toFixed(1), r: 2, fill: edgeColor(edge, colors), opacity: 0.45 })),
    draw("line", { x1: x(-extent), y1: y(-extent * rho), x2: x(extent), y2: y(extent * rho), stroke: colors.ink, "stroke-width": 1.5 }),
    axis(NAMES[EDGES.source[edge]], `translate(${(size + low) / 2} ${size - 12})`),
    axis(NAMES[EDGES.target[edge]], `translate(16 ${(size - low) / 2}) rotate(-90)`));
  return make("figure", {}, picture, make("figcaption", {}, `What is left of both once all other variables are accounted for, in standard deviations: ${plural(points.length, "row", "rows")}, correlation ${decimal(rho, 2)}.`));
}

function edgePanel(edge) {
  const [i, j] = [EDGES.source[edge], EDGES.target[edge]];
  const known = (name) => name in EDGES && Number.isFinite(EDGES[name][edge]);
  const inChosen = isPresent(edge, CHOSEN);
  const partial = EDGES.partial[edge];
  const sign = !Number.isFinite(partial) ? "no estimate" : partial < 0 ? "negative" : "positive";
  const cost = EDGES.cost[edge];
  const costNote = DATA.samples ? `the log-likelihood falls by about ${significant(cost * DATA.samples / 2)}` : "";
  return [
    make("h2", { class: "pair" },
      make("button", { class: "link", type: "button", onclick: () => selectNode(i) }, nameOf(i)), make("span", { class: sign }, " — "),
      make("button", { class: "link", type: "button", onclick: () => selectNode(j) }, nameOf(j))),
    isPresent(edge, state.position) ? null : make("p", { class: "soft" }, "Not in the graph at this position of the slider."),
    figures([
      ["Partial correlation", make("b", { class: sign, id: "partial" }, decimal(partial)), inChosen ? sign : `${sign}; from a denser graph`],
      ["Marginal correlation", make("span", { id: "marginal" }, decimal(EDGES.correlation[edge])), "ignoring all other variables"],
      known("probability") && ["Probability", make("span", { id: "probability" }, decimal(EDGES.probability[edge])), "that there is an edge"],
      known("q_value") && ["q-value", make("span", { id: "q-value" }, significant(EDGES.q_value[edge])), "false edges among those as likely"],
      known("share") && ["Bootstrap", make("span", { id: "share" }, percent(EDGES.share[edge])), "of resamples have it"],
      known("low") && ["Percentiles", `${decimal(EDGES.low[edge], 2)} to ${decimal(EDGES.high[edge], 2)}`, "of the partial correlation over resamples"],
      HAS_PATH && [EDGES.entered[edge] === Infinity ? "Included" : "Came at gain", EDGES.entered[edge] === Infinity ? "from the start" : significant(EDGES.entered[edge]), "the threshold below which it is in the graph"],
      Number.isFinite(cost) && ["Cost of removal", make("span", { id: "cost" }, significant(cost)), costNote],
      HAS_PATH && ["Present", whenPresent(edge)],
    ]),
    scatter(edge),
  ];
}

function neighborList(node) {
  const edges = neighborsIn(state.graph, node);
  if (edges.length === 0) return make("p", { class: "soft" }, "No neighbours at this position of the slider.");
  const widest = Math.max(...edges.map((edge) => Math.abs(EDGES.partial[edge]) || 0), 1e-9);
  return make("ul", { class: "neighbors" }, edges.slice(0, 200).map((edge) => {
    const other = otherEnd(edge, node), partial = EDGES.partial[edge];
    const bar = make("span", { class: `bar ${partial < 0 ? "negative" : "positive"}` });
    bar.style.width = `${100 * Math.abs(partial || 0) / widest}%`;
    return make("li", {}, make("button", { type: "button", onclick: () => selectEdge(edge) },
      nameOf(other), make("span", { class: "track" }, bar), make("span", { class: "value" }, decimal(partial))));
  }));
}

function nodePanel(node) {
  const { degree, strength } = state.graph;
  const group = DATA.nodes.community[node];
  const size = COMMUNITY_SIZES[group];
  const explained = DATA.nodes.rSquared[node];
  const meter = make("span", { class: "meter" }, make("span"));
  meter.firstChild.style.width = percent(explained);
  const swatch = make("span", { class: "dot" });
  swatch.style.background = nodeColor(node, theme());
  return [
    make("h2", {}, swatch, nameOf(node)),
    figures([
      ["Neighbours", make("b", { id: "degree" }, count(degree[node])), "degree"],
      ["Strength", make("span", { id: "strength" }, decimal(strength[node], 2)), "sum of absolute partial correlations"],
      ["Explained", make("span", { id: "explained" }, percent(explained)), "of its variance by its neighbours in the chosen graph (R²)"],
      size > 1 && ["Community", `${group + 1}`, plural(size, "variable", "variables")],
    ]),
    meter,
    make("p", {}, state.ego === node
      ? make("button", { type: "button", class: "primary", id: "leave", onclick: leaveEgo }, "Show all variables")
      : make("button", { type: "button", class: "primary", id: "ego", onclick: () => showEgo(node) }, "Show its network alone")),
    make("h3", {}, "Neighbours"), neighborList(node),
  ];
}

function startPanel() {
  const others = DATA.marks.slice(1);
  return [
    make("h2", {}, "Why is an edge there?"),
    make("p", {}, "Click an edge for the evidence, or a variable for its neighbours. Two variables are joined where they are still correlated once all others are accounted for."),
    HAS_PATH ? make("p", {}, "Move the slider: to the left only the strongest evidence is left, to the right weaker edges come in. The layout stays still.") : null,
    make("dl", { class: "facts" }, DATA.facts.map(([term, value]) => [make("dt", {}, term), make("dd", {}, make("bdi", {}, value))])),
    others.length ? make("h3", {}, "Other rules on these data") : null,
    others.length ? make("ul", { class: "rules" }, others.map((mark) => make("li", {},
      make("button", { type: "button", class: "link", onclick: () => moveTo(mark.position) }, mark.name), ` ${plural(mark.edges, "edge", "edges")}`))) : null,
  ];
}

function drawWhy() {
  if (state.tab !== "why") return;
  const { selection } = state;
  const content = selection === null ? startPanel() : selection.kind === "edge" ? edgePanel(selection.index) : nodePanel(selection.index);
  byId("why").replaceChildren(...content.filter(Boolean));
}

shows(["selection", "position", "theme", "tab", "ego"], drawWhy);
