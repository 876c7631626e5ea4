// Elements, and numbers and names as text. Names are only ever text nodes, never markup.

const byId = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const SVG_SPACE = "http://www.w3.org/2000/svg";
const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG_SPACE, tag), attributes, children);

const MINUS = "\u2212";
const count = (number) => number.toLocaleString("en-US");
const plural = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;

function decimal(number, digits = 3) {
  if (!Number.isFinite(number)) return "–";
  return number.toFixed(digits).replace("-", MINUS);
}

function significant(number, digits = 3) {
  if (number === Infinity) return "∞";
  if (!Number.isFinite(number)) return "–";
  const text = number !== 0 && (Math.abs(number) < 1e-4 || Math.abs(number) >= 1e6)
    ? number.toExponential(digits - 1) : String(Number(number.toPrecision(digits)));
  return text.replace(/-/g, MINUS);
}

const percent = (number) => (Number.isFinite(number) ? `${Math.round(100 * number)}%` : "–");

// One line without control characters, which are drawn as boxes.
function oneLine(name) {
  const text = name.replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, " ").trim();
  return text === "" ? "(empty name)" : text;
}

const NAMES = DATA.names.map(oneLine);

function shortened(text, most) {
  const letters = Array.from(text);
  return letters.length <= most ? text : letters.slice(0, most - 1).join("") + "…";
}

// A name, cut by the style sheet where it is too long, with the whole of it as a tooltip.
function nameOf(node, attributes = {}) {
  return make("bdi", { class: "name", title: DATA.names[node], ...attributes }, shortened(NAMES[node], 60));
}
