// The view as PNG or SVG, and the edges as CSV.

function save(content, type, name) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  // The download has begun by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function savePng() {
  const { width, height } = viewSize();
  const scale = 2;
  const picture = make("canvas", { width: width * scale, height: height * scale });
  const context = picture.getContext("2d");
  context.scale(scale, scale);
  paintCanvas(context, sceneOf(width, height), width, height);
  picture.toBlob((blob) => save(blob, "image/png", "graph.png"), "image/png");
}

function saveSvg() {
  const { width, height } = viewSize();
  save(paintSvg(sceneOf(width, height), width, height), "image/svg+xml", "graph.svg");
}

// A cell that begins like a formula would be computed by a spreadsheet: an apostrophe makes it text,
// and one more is put before one that is there, so that names can be read back.
function csvCell(value) {
  if (typeof value === "number") return Number.isFinite(value) ? String(Number(value.toPrecision(7))) : "";
  const text = /^\s*[=+\-@'\t\r\n＝＋－＠]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) || text !== value ? `"${text.replace(/"/g, '""')}"` : text;
}

function edgesAsCsv() {
  const extra = ["probability", "q_value", "share", "low", "high"].filter((name) => name in EDGES);
  const lines = [["source", "target", "partial_correlation", "weight", "sign", "correlation", ...extra]];
  for (const edge of shownGraph().edges) {
    const partial = EDGES.partial[edge];
    const sign = Number.isFinite(partial) ? (partial < 0 ? "negative" : "positive") : "";
    lines.push([DATA.names[EDGES.source[edge]], DATA.names[EDGES.target[edge]], partial, Math.abs(partial), sign, EDGES.correlation[edge], ...extra.map((name) => EDGES[name][edge])]);
  }
  return lines.map((cells) => cells.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

function startExport() {
  byId("png").addEventListener("click", savePng);
  byId("svg").addEventListener("click", saveSvg);
  byId("csv").addEventListener("click", () => save(edgesAsCsv(), "text/csv", "edges.csv"));
}
