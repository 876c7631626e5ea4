// Search by name with completion: names that begin with the text, then those that contain it.

const searchBox = byId("search");
const foundList = byId("found");
const MOST_FOUND = 12;
let foundNodes = [];
let active = 0;

function findNodes(text) {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [];
  const ranked = [[], []];
  for (let node = 0; node < N_NODES; node++) {
    const place = NAMES[node].toLowerCase().indexOf(wanted);
    if (place >= 0) ranked[place === 0 ? 0 : 1].push(node);
  }
  const { strength } = state.graph;
  return ranked.flatMap((nodes) => nodes.sort((a, b) => strength[b] - strength[a] || a - b)).slice(0, MOST_FOUND);
}

function showFound() {
  const isOpen = foundNodes.length > 0 || searchBox.value.trim() !== "";
  foundList.hidden = !isOpen;
  searchBox.setAttribute("aria-expanded", String(isOpen));
  searchBox.setAttribute("aria-activedescendant", foundNodes.length ? `found-${active}` : "");
  const options = foundNodes.map((node, k) => make("li", { role: "option", id: `found-${k}`, "aria-selected": String(k === active),
    onpointerdown: (event) => { event.preventDefault(); takeFound(k); } },
  nameOf(node), make("small", {}, plural(state.graph.degree[node], "neighbour", "neighbours"))));
  foundList.replaceChildren(...(options.length ? options : [make("li", { class: "soft" }, "No variable has this in its name.")]));
}

function closeSearch() {
  foundNodes = [];
  searchBox.value = "";
  foundList.hidden = true;
  searchBox.setAttribute("aria-expanded", "false");
  searchBox.blur();
}

function takeFound(k) {
  const node = foundNodes[k];
  if (node === undefined) return;
  closeSearch();
  update({ tab: "why" });
  showEgo(node);
}

function startSearch() {
  searchBox.addEventListener("input", () => {
    foundNodes = findNodes(searchBox.value);
    active = 0;
    showFound();
  });
  searchBox.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      active = (active + (event.key === "ArrowDown" ? 1 : -1) + foundNodes.length) % Math.max(1, foundNodes.length);
      showFound();
    } else if (event.key === "Enter") takeFound(active);
    else if (event.key === "Escape") closeSearch();
    event.stopPropagation();
  });
  searchBox.addEventListener("blur", () => { foundList.hidden = true; });
}
