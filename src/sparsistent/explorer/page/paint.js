// A scene on a canvas, or as SVG.

const DASH = [6, 4];

function paintCanvas(context, scene, width, height) {
  context.globalAlpha = 1;
  context.fillStyle = scene.background;
  context.fillRect(0, 0, width, height);
  context.lineCap = "round";
  for (const line of scene.lines) {
    context.globalAlpha = line.opacity;
    context.strokeStyle = line.color;
    context.lineWidth = line.width;
    context.setLineDash(line.isDashed ? DASH : []);
    context.beginPath();
    context.moveTo(line.x1, line.y1);
    context.lineTo(line.x2, line.y2);
    context.stroke();
  }
  context.setLineDash([]);
  for (const disc of scene.discs) {
    context.strokeStyle = disc.ring;
    context.lineWidth = disc.ringWidth;
    context.beginPath();
    context.arc(disc.x, disc.y, disc.radius, 0, 2 * Math.PI);
    // No line shows through a faint disc.
    context.globalAlpha = 1;
    context.fillStyle = scene.background;
    context.fill();
    context.globalAlpha = disc.opacity;
    context.fillStyle = disc.color;
    context.fill();
    context.stroke();
  }
  context.lineJoin = "round";
  for (const label of scene.labels) {
    context.font = `${label.isImportant ? "600 " : ""}${FONT_SIZE}px ${FONT}`;
    context.globalAlpha = 0.85;
    context.strokeStyle = scene.background;
    context.lineWidth = 3;
    context.strokeText(label.text, label.x, label.y);
    context.globalAlpha = Math.max(label.opacity, 0.35);
    context.fillStyle = scene.ink;
    context.fillText(label.text, label.x, label.y);
  }
  context.globalAlpha = 1;
}

function paintSvg(scene, width, height) {
  const round = (number) => Number(number.toFixed(2));
  const root = draw("svg", { xmlns: SVG_SPACE, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT, "font-size": FONT_SIZE });
  root.append(draw("title", {}, DATA.title), draw("rect", { width, height, fill: scene.background }));
  for (const line of scene.lines) {
    root.append(draw("line", {
      x1: round(line.x1), y1: round(line.y1), x2: round(line.x2), y2: round(line.y2), stroke: line.color,
      "stroke-width": round(line.width), "stroke-opacity": round(line.opacity), "stroke-linecap": "round",
      "stroke-dasharray": line.isDashed ? DASH.join(" ") : null,
      "data-edge": `${EDGES.source[line.edge]}-${EDGES.target[line.edge]}`,
    }));
  }
  for (const disc of scene.discs) {
    root.append(draw("circle", {
      cx: round(disc.x), cy: round(disc.y), r: round(disc.radius), fill: disc.color, stroke: disc.ring,
      "stroke-width": disc.ringWidth, opacity: disc.opacity,
    }, draw("title", {}, NAMES[disc.index])));
  }
  for (const label of scene.labels) {
    root.append(draw("text", {
      x: round(label.x), y: round(label.y), fill: scene.ink, stroke: scene.background, "stroke-width": 3,
      "paint-order": "stroke", "stroke-linejoin": "round", "font-weight": label.isImportant ? 600 : null,
    }, label.text));
  }
  return new XMLSerializer().serializeToString(root);
}
