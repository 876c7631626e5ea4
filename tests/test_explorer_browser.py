"""The explorer's page in a real browser: what is drawn, clicked, typed and saved."""

import csv
import io
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest
from requirements import require_chromium
from sklearn.datasets import load_breast_cancer

from sparsistent import GaussianGraphicalModel, GlobalGreedy, bootstrap, explore
from sparsistent.io.names import csv_name, text_of

STRANGE = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "=cmd()",
    "a,b",
    "two\nlines",
    "long " * 60,
    "שלום עולם",
    "🧬 gene",
    7,
    "7",
    "</script><script>window.hacked = 1</script>",
    "a\u2028b\ud800c",
]


@pytest.fixture(scope="module")
def browser():
    path = require_chromium()
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield running
        running.close()


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens a page from a file; at the end there was no request, dialog or console message."""
    contexts, trouble = [], []

    def open_(explorer, **options):
        file = explorer.save(tmp_path / "report.html", overwrite=True)
        context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(dialog.message))
        page.on("request", lambda request: trouble.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready=true]", state="attached")
        trouble.remove(file.as_uri())
        return page

    yield open_
    assert [message for message in trouble if not message.startswith("blob:")] == []
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def table():
    return load_breast_cancer(as_frame=True).data


@pytest.fixture(scope="module")
def fitted(table):
    """A path of forward and backward steps, on which edges come and go."""
    return GlobalGreedy(0.05, gain="coordinate", correlation="nonparanormal").fit(table)


@pytest.fixture(scope="module")
def explorer(fitted, table):
    return explore(fitted, table, title="Tumours & <b>more</b>")


def drawn(page):
    return sorted(map(tuple, page.evaluate("sparsistent.drawnEdges()")))


def move_to(page, position):
    """By the slider itself."""
    page.evaluate(
        """position => { const slider = document.getElementById("slider");
        slider.value = position; slider.dispatchEvent(new Event("input")); }""",
        position,
    )
    page.wait_for_selector(f"html[data-position='{position}']", state="attached")


def saved(page, button):
    with page.expect_download() as download:
        page.click(button)
    return download.value.suggested_filename, download.value.path().read_bytes()


@pytest.mark.parametrize("threshold", [0.05, "auto"])
def test_the_slider_draws_the_graphs_of_the_path(open_page, fitted, table, threshold):
    model = fitted
    if threshold == "auto":
        model = GlobalGreedy().fit(
            GaussianGraphicalModel.grid(5, 5, 0.2).sample(300, random_state=0)
        )
    explorer = explore(model)
    positions = explorer.summary.positions
    page = open_page(explorer)
    assert drawn(page) == sorted(map(tuple, model.edges_.tolist()))
    for position in np.linspace(0, positions.chosen, 10).round().astype(int).tolist():
        move_to(page, position)
        expected = model.at(float(positions.threshold[position])).edges_
        assert drawn(page) == sorted(map(tuple, expected.tolist()))
        assert f"{len(expected)} edge" in page.inner_text("#readout")
    move_to(page, len(positions.threshold) - 1)
    assert len(drawn(page)) > len(model.edges_)


def test_a_click_on_an_edge_says_why_it_is_there(open_page, table):
    means = table[[name for name in table if name.startswith("mean")]]
    result = bootstrap(
        GlobalGreedy(correlation="nonparanormal"), means, n_resamples=20, random_state=0
    )
    model = result.estimator
    page = open_page(result.explore(means))
    # The strongest edge of all is on top of the others.
    row = model.to_frame().iloc[0]
    names = model.feature_names_in_.tolist()
    i, j = names.index(row["source"]), names.index(row["target"])
    ends = page.evaluate(f"[sparsistent.pointOf({i}), sparsistent.pointOf({j})]")
    # Away from the middle, where a label may be.
    for share in (0.5, 0.3, 0.7, 0.4, 0.6):
        page.mouse.click(*(share * np.array(ends[0]) + (1 - share) * np.array(ends[1])))
        page.wait_for_selector("#why h2")
        if page.locator("#partial").count():
            break
        page.keyboard.press("Escape")
    assert page.inner_text("#partial") == f"{row['partial_correlation']:.3f}"
    assert page.inner_text("#probability") == f"{row['probability']:.3f}"
    assert page.inner_text("#share") == "100%"
    heading = page.inner_text("#why h2")
    assert row["source"] in heading
    assert row["target"] in heading
    assert page.locator("#why .scatter circle").count() == 500


def test_search_completes_and_shows_an_ego_network(open_page, explorer, fitted, table):
    page = open_page(explorer)
    page.keyboard.press("/")
    page.keyboard.type("texture")
    page.wait_for_selector("#found-2")
    assert page.locator("#found li").count() == 3
    page.keyboard.press("ArrowDown")
    name = page.locator("#found [aria-selected=true] bdi").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_selector("#notice:not([hidden])")
    node = table.columns.tolist().index(name)
    pairs = set(map(tuple, fitted.edges_.tolist()))
    members = {node} | {a + b - node for a, b in pairs if node in (a, b)}
    assert set(drawn(page)) == {(a, b) for a, b in pairs if a in members and b in members}
    assert page.inner_text("#degree") == str(len(members) - 1)
    share = 1 - 1 / (fitted.precision_[node, node] * fitted.covariance_[node, node])
    assert page.inner_text("#explained") == f"{share:.0%}"
    assert page.locator(".neighbors li").count() == len(members) - 1
    page.keyboard.press("Escape")
    page.wait_for_selector("#notice", state="hidden")
    assert set(drawn(page)) == pairs


def test_the_table_sorts_filters_and_selects(open_page, explorer, fitted):
    page = open_page(explorer)
    page.click("[data-tab=edges]")
    page.wait_for_selector("#rows tbody tr")
    frame = fitted.to_frame()
    rows = page.locator("#rows tbody tr")
    assert rows.count() == len(frame)
    assert rows.nth(0).inner_text().split("\t")[:2] == frame.iloc[0, :2].tolist()
    page.click("#rows th:first-child button")
    first = page.locator("#rows tbody td:first-child").all_inner_texts()
    assert first == sorted(first)
    page.fill("#filter", "radius")
    wanted = frame["source"].str.contains("radius") | frame["target"].str.contains("radius")
    assert rows.count() == wanted.sum()
    rows.nth(1).click()
    page.wait_for_selector("#rows tr[aria-selected=true]")
    page.click("[data-tab=why]")
    page.wait_for_selector("#partial")
    assert "radius" in page.inner_text("#why h2")
    page.click("[data-tab=matrix]")
    page.wait_for_selector("#matrix canvas")
    page.click("[data-tab=variables]")
    page.wait_for_selector("#variables tbody tr")
    assert page.locator("#variables tbody tr").count() == 30
    page.click("[data-tab=checks]")
    page.wait_for_selector("#checks li")
    assert "skewed" in page.inner_text("#checks")


def test_views_and_edges_are_saved(open_page, explorer, fitted):
    page = open_page(explorer)
    move_to(page, 5)
    name, png = saved(page, "#png")
    assert name == "graph.png"
    assert png.startswith(b"\x89PNG")
    assert len(png) > 5_000
    name, svg = saved(page, "#svg")
    assert name == "graph.svg"
    lines = ElementTree.fromstring(svg).iterfind(".//{*}line")
    pairs = sorted(tuple(map(int, line.get("data-edge").split("-"))) for line in lines)
    assert pairs == drawn(page)
    move_to(page, explorer.summary.positions.chosen)
    name, text = saved(page, "#csv")
    assert name == "edges.csv"
    frame, expected = pd.read_csv(io.BytesIO(text)), fitted.to_frame()
    assert frame["source"].tolist() == expected["source"].tolist()
    np.testing.assert_allclose(
        frame["partial_correlation"], expected["partial_correlation"], atol=1e-6
    )


def test_light_dark_and_paper(open_page, explorer):
    page = open_page(explorer, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    # Of a small copy, since the browser complains about reading the canvas itself.
    pixel = """(() => {
        const copy = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
        copy.drawImage(document.getElementById("graph"), 0, 0);
        return [...copy.getImageData(3, 3, 1, 1).data];
    })()"""
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    dark, dark_pixel = page.evaluate(background), page.evaluate(pixel)
    page.click("#theme")
    page.wait_for_selector("html[data-theme=light]", state="attached")
    # Asked from here: the page's security policy refuses the code that would wait in the page.
    for _ in range(200):
        if page.evaluate(pixel)[0] > 200:
            break
        page.wait_for_timeout(50)
    assert min(page.evaluate(pixel)[:3]) > 200
    assert page.evaluate(background) != dark
    assert max(dark_pixel[:3]) < 60
    page.emulate_media(media="print")
    assert not page.is_visible("#search")
    assert page.is_visible("#graph")
    assert page.pdf().startswith(b"%PDF")


def test_keys(open_page, explorer):
    page = open_page(explorer)
    chosen = explorer.summary.positions.chosen
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(f"html[data-position='{chosen - 1}']", state="attached")
    page.keyboard.press("Shift+ArrowLeft")
    page.wait_for_selector(f"html[data-position='{chosen - 11}']", state="attached")
    page.focus("#slider")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(f"html[data-position='{chosen - 10}']", state="attached")
    page.click("#back")
    page.wait_for_selector(f"html[data-position='{chosen}']", state="attached")
    page.keyboard.press("?")
    page.wait_for_selector("#guide[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("#guide", state="hidden")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"


def test_strange_names_are_inert(open_page):
    X = GaussianGraphicalModel.chain(len(STRANGE), 0.6).sample(300, random_state=0)
    table = pd.DataFrame(X, columns=pd.Index(STRANGE, dtype=object))
    page = open_page(explore(GlobalGreedy().fit(table), table, title=STRANGE[0]))
    assert page.inner_text("#title") == STRANGE[0]
    for tab in ("edges", "matrix", "variables", "checks", "why"):
        page.click(f"[data-tab={tab}]")
    page.keyboard.press("/")
    page.keyboard.type("<script>w")
    page.keyboard.press("Enter")
    page.wait_for_selector("#degree")
    assert page.inner_text("#why h2").strip() == STRANGE[0]
    page.keyboard.press("Escape")
    page.wait_for_selector("#notice", state="hidden")
    assert page.locator("script").count() == 2
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hacked") is None
    _, text = saved(page, "#csv")
    rows = list(csv.reader(io.StringIO(text.decode("utf-8"), newline="")))[1:]
    cells = {cell for row in rows for cell in row[:2]}
    assert cells == {csv_name(text_of(name)) for name in STRANGE}
    _, svg = saved(page, "#svg")
    assert ElementTree.fromstring(svg).find(".//{*}script") is None


def test_a_step_on_a_page_of_1000_variables_paints_each_edge_once(open_page):
    """3,000 edges: the page is small, and a step of the slider makes few elements anew."""
    random = np.random.default_rng(0)
    X = random.standard_normal((1_000, 1_000))
    for lag in (1, 2, 3):
        X[:, lag:] += 0.35 * X[:, :-lag]
    model = GlobalGreedy(0.012, gain="coordinate").fit(X)
    assert len(model.edges_) > 3_000
    explorer = explore(model, X)
    assert len(explorer.to_html()) < 4e6
    page = open_page(explorer)
    steps = page.evaluate(
        """async chosen => {
        const slider = document.getElementById("slider"), steps = [];
        const context = CanvasRenderingContext2D.prototype, stroke = context.stroke;
        let painted = 0, elements = 0;
        context.stroke = function (...path) { painted += 1; stroke.apply(this, path); };
        new MutationObserver((changes) => {
            for (const { addedNodes } of changes) for (const node of addedNodes)
                elements += 1 + (node.querySelectorAll ? node.querySelectorAll("*").length : 0);
        }).observe(document.documentElement, { childList: true, subtree: true });
        for (let k = 1; k <= 8; k++) {
            painted = elements = 0;
            slider.value = chosen - k;
            slider.dispatchEvent(new Event("input"));
            while (document.documentElement.dataset.position != chosen - k)
                await new Promise(resolve => setTimeout(resolve));
            for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
            steps.push([painted, elements, sparsistent.drawnEdges().length]);
        }
        return steps; }""",
        explorer.summary.positions.chosen,
    )
    # The first shows the way back, for which the canvas gets smaller and is painted again.
    for painted, elements, edges in steps[1:]:
        assert edges > 2_000
        assert painted <= edges + 1_000
        assert elements < 100


def test_a_page_of_10000_variables_says_what_is_left_out(open_page):
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 10_000))
    X[:, 1:] += X[:, :-1]
    model = GlobalGreedy(0.2, sparse_output=True).fit(X)
    explorer = explore(model, X)
    assert len(explorer.to_html()) < 12e6
    page = open_page(explorer)
    notice = page.inner_text("#notice")
    shown = re.search(r"Shown: 1,000 of 10,000 variables and ([\d,]+) of ([\d,]+) edges", notice)
    assert int(shown[2].replace(",", "")) == len(model.edges_)
    assert int(shown[1].replace(",", "")) == len(drawn(page))
    hidden = next(
        node
        for node in model.edges_[:, 0].tolist()
        if page.evaluate(f"!sparsistent.isShown({node})")
    )
    page.keyboard.press("/")
    page.keyboard.type(f"x{hidden}")
    page.keyboard.press("Enter")
    page.wait_for_selector("#degree")
    neighbors = (model.edges_ == hidden).any(axis=1).sum()
    assert page.inner_text("#degree") == str(neighbors)
    assert len(drawn(page)) >= neighbors


def test_a_notebook_shows_the_page_in_a_frame(open_page, explorer, browser):
    page = browser.new_page()
    page.set_content(f"<p>cell</p>{explorer._repr_html_()}")
    frame = page.frame_locator("iframe")
    frame.locator("html[data-ready=true]").wait_for(state="attached")
    assert frame.locator("#title").inner_text() == "Tumours & <b>more</b>"
    page.close()
