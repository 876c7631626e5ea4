// The tabs of the panel. They are drawn first, since what is hidden has no size.

function drawTabs() {
  for (const tab of document.querySelectorAll("#tabs button")) {
    const isOpen = tab.dataset.tab === state.tab;
    tab.setAttribute("aria-selected", String(isOpen));
    byId(tab.dataset.tab).hidden = !isOpen;
  }
}

function startTabs() {
  const tabs = [...document.querySelectorAll("#tabs button")];
  for (const tab of tabs) {
    tab.addEventListener("click", () => update({ tab: tab.dataset.tab }));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step === undefined) return;
      const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
      next.focus();
      update({ tab: next.dataset.tab });
    });
  }
}

shows(["tab"], drawTabs);
