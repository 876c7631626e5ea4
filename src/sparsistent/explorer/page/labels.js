// Labels that overlap neither each other nor the nodes: the most important come first, each at the
// first free place of four around its node. Zooming in spreads the nodes, so more labels fit.

const CELL = 4; // pixels
const GAP = 3;
const measured = new Map();
const measuring = document.createElement("canvas").getContext("2d");

function textWidth(text) {
  if (!measured.has(text)) {
    measuring.font = `${FONT_SIZE}px ${FONT}`;
    measured.set(text, measuring.measureText(text).width);
  }
  return measured.get(text);
}

class Occupied {
  constructor(width, height) {
    this.columns = Math.ceil(width / CELL);
    this.rows = Math.ceil(height / CELL);
    this.cells = new Uint8Array(this.columns * this.rows);
  }
  range(box) {
    return [Math.floor(box.x / CELL), Math.floor(box.y / CELL), Math.floor((box.x + box.width) / CELL), Math.floor((box.y + box.height) / CELL)];
  }
  isFree(box) {
    const [left, top, right, bottom] = this.range(box);
    if (left < 0 || top < 0 || right >= this.columns || bottom >= this.rows) return false;
    for (let row = top; row <= bottom; row++) {
      for (let column = left; column <= right; column++) if (this.cells[row * this.columns + column]) return false;
    }
    return true;
  }
  take(box) {
    const [left, top, right, bottom] = this.range(box);
    // A negative end would count from the end of the array.
    if (right < 0) return;
    for (let row = Math.max(0, top); row <= Math.min(this.rows - 1, bottom); row++) {
      this.cells.fill(1, row * this.columns + Math.max(0, left), row * this.columns + Math.min(this.columns - 1, right) + 1);
    }
  }
}

// Nodes in the order of their importance, with x, y and radius; `blocked` are boxes to keep free.
function placeLabels(nodes, width, height, blocked) {
  const labels = new Occupied(width, height);
  const discs = new Occupied(width, height);
  blocked.forEach((box) => labels.take(box));
  for (const { x, y, radius } of nodes) discs.take({ x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius });
  const placed = [];
  for (const node of nodes) {
    if (node.x < -50 || node.y < -50 || node.x > width + 50 || node.y > height + 50) continue;
    const text = shortened(NAMES[node.index], node.isImportant ? 48 : 26);
    // Important labels are bold.
    const boxes = placesAround(node, textWidth(text) * (node.isImportant ? 1.1 : 1), FONT_SIZE + 2);
    const free = boxes.filter((box) => labels.isFree(box));
    const box = free.find((candidate) => discs.isFree(candidate)) || (node.isImportant ? free[0] : null) || (node.isChosen ? boxes[0] : null);
    if (!box) continue;
    labels.take(box);
    placed.push({ text, x: box.x, y: box.y + FONT_SIZE - 1, node: node.index, isImportant: node.isImportant, opacity: node.opacity });
  }
  return placed;
}

function placesAround({ x, y, radius }, width, height) {
  const gap = radius + GAP;
  return [
    { x: x + gap + 1, y: y - height / 2, width, height },
    { x: x - width / 2, y: y - gap - height, width, height },
    { x: x - width / 2, y: y + gap, width, height },
    { x: x - gap - 1 - width, y: y - height / 2, width, height },
  ];
}
