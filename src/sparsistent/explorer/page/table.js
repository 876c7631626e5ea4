// The edges of the graph as a table that sorts, filters and follows the selection.

const COLUMNS = [
  { key: "source", title: "Source", text: (edge) => NAMES[EDGES.source[edge]] },
  { key: "target", title: "Target", text: (edge) => NAMES[EDGES.target[edge]] },
  { key: "partial", title: "Partial", help: "Partial correlation", value: (edge) => EDGES.partial[edge], show: (number) => decimal(number) },
  { key: "probability", title: "Prob.", help: "Probability that there is an edge", value: (edge) => EDGES.probability[edge], show: (number) => decimal(number, 2) },
  { key: "q_value", title: "q", help: "q-value", value: (edge) => EDGES.q_value[edge], show: (number) => significant(number, 2) },
  { key: "share", title: "Boot", help: "Share of resamples that have the edge", value: (edge) => EDGES.share[edge], show: percent },
].filter((column) => column.text || column.key in EDGES);
// Next to a probability, the q-value would make the table too wide.
const SHOWN_COLUMNS = COLUMNS.filter((column) => column.key !== "q_value" || !("probability" in EDGES));
const BATCH = 150;

const order = { key: "partial", isRising: false };
let listed = [];
let onlyNode = null;

// Signed numbers are ordered by their size.
function sortValue(column, edge) {
  const value = column.value(edge);
  return Number.isFinite(value) ? Math.abs(value) : -Infinity;
}

function compareBy(column, direction) {
  if (column.text) return (a, b) => direction * column.text(a).localeCompare(column.text(b), undefined, { numeric: true }) || a - b;
  return (a, b) => direction * (sortValue(column, a) - sortValue(column, b)) || a - b;
}

function listEdges() {
  const wanted = byId("filter").value.trim().toLowerCase();
  const column = SHOWN_COLUMNS.find(({ key }) => key === order.key);
  const matches = (edge) => [EDGES.source[edge], EDGES.target[edge]].some((node) => NAMES[node].toLowerCase().includes(wanted));
  const isWanted = (edge) => (wanted === "" || matches(edge)) && (onlyNode === null || EDGES.source[edge] === onlyNode || EDGES.target[edge] === onlyNode);
  listed = state.graph.edges.filter(isWanted).sort(compareBy(column, order.isRising ? 1 : -1));
}

function rowOf(edge) {
  const cells = SHOWN_COLUMNS.map((column) => {
    if (column.text) return make("td", {}, nameOf(EDGES[column.key][edge]));
    const value = column.value(edge);
    return make("td", { class: column.key === "partial" ? (value < 0 ? "number negative" : "number positive") : "number" }, column.show(value));
  });
  return make("tr", { "data-edge": edge, tabindex: "-1", "aria-selected": String(isSelected("edge", edge)), onclick: () => selectEdge(edge) }, cells);
}

function headOf(column) {
  const isOrder = column.key === order.key;
  const arrow = isOrder ? (order.isRising ? " ▲" : " ▼") : "";
  return make("th", { scope: "col", class: column.text ? null : "number", "aria-sort": isOrder ? (order.isRising ? "ascending" : "descending") : "none" },
    make("button", { type: "button", title: column.help || column.title, onclick: () => sortBy(column) }, column.title + arrow));
}

function sortBy(column) {
  order.isRising = order.key === column.key ? !order.isRising : Boolean(column.text);
  order.key = column.key;
  drawTable(new Set(["order"]));
}

function drawTable(now) {
  if (state.tab !== "edges") return;
  const isAboutRows = ["position", "tab", "order", "filter"].some((name) => now.has(name));
  const node = state.selection?.kind === "node" ? state.selection.index : null;
  if (isAboutRows || node !== onlyNode) {
    onlyNode = node;
    listEdges();
    const body = make("tbody", {}, listed.slice(0, BATCH).map(rowOf));
    byId("rows").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, SHOWN_COLUMNS.map(headOf))), body));
    byId("count").textContent = listed.length === state.graph.edges.length ? plural(listed.length, "edge", "edges") : `${count(listed.length)} of ${count(state.graph.edges.length)}`;
    const only = byId("only");
    only.hidden = node === null;
    if (node !== null) only.replaceChildren("only ", nameOf(node), " ×");
  }
  followSelection();
}

function addRows(until = 0) {
  const body = byId("rows").querySelector("tbody");
  const have = body ? body.children.length : 0;
  if (body && have < listed.length) body.append(...listed.slice(have, Math.max(have + BATCH, until)).map(rowOf));
}

function followSelection() {
  const chosen = state.selection?.kind === "edge" ? state.selection.index : null;
  const place = chosen === null ? -1 : listed.indexOf(chosen);
  if (place >= byId("rows").querySelectorAll("tbody tr").length) addRows(place + 1);
  for (const row of byId("rows").querySelectorAll("tbody tr")) {
    const isChosen = Number(row.dataset.edge) === chosen;
    row.setAttribute("aria-selected", String(isChosen));
    if (isChosen) row.scrollIntoView({ block: "nearest" });
  }
}

function startTable() {
  byId("filter").addEventListener("input", () => drawTable(new Set(["filter"])));
  byId("only").addEventListener("click", () => update({ selection: null }));
  const rows = byId("rows");
  rows.addEventListener("scroll", () => { if (rows.scrollTop + rows.clientHeight > rows.scrollHeight - 200) addRows(); });
}

shows(["position", "tab", "selection", "theme"], drawTable);
