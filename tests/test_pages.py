"""The pages for users run as they are written, and the demonstration shows what it says."""

import re
import runpy

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from pages import FOLDER, PAGES, ROOT, run_page, write_tables

from sparsistent import GlobalGreedy, compare_graphs


@pytest.fixture(autouse=True)
def no_window():
    mpl.use("agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_from_the_users_file_to_their_picture(page, tmp_path):
    write_tables(tmp_path)
    run_page(page, tmp_path, n_resamples=4)
    text = (FOLDER / page).read_text(encoding="utf-8")
    # The one without Python ends with its report in a browser.
    for name in re.findall(r'savefig\("(.*?)"', text):
        assert (tmp_path / name).stat().st_size > 10_000
    (picture,) = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert (FOLDER / picture).exists()


RANKS = {"correlation": "nonparanormal"}


@pytest.mark.filterwarnings("ignore:columns have heavy tails")
@pytest.mark.parametrize(
    ("table", "options", "precision", "recall", "sentence"),
    [
        ("answers", {"correlation": "spearman", "missing": "pairwise"}, 1, 22 / 24, "all but two"),
        ("regions", {"autocorrelated": True}, 0.97, 0.92, "fewer than one in twenty is false"),
        ("regions", {}, 0.76, 0.94, "without it one in four is"),
        ("expression", RANKS, 1, 1, "all edges are found, and no others"),
        ("expression", {}, 0.45, 0.56, "a little more than half of them, and more false ones"),
        ("prices", RANKS, 0.9, 0.9, "nine of ten of its edges are found"),
        ("prices", {}, 0.93, 0.67, "it is two of three"),
        ("prices", {**RANKS, "threshold": "fwer"}, 1, 0.6, "six of ten, and no false one"),
    ],
)
def test_pages_say_how_many_edges_are_right(table, options, precision, recall, sentence):
    rows, truth = runpy.run_path(str(ROOT / "examples" / "tables.py"))[table]()
    if table == "expression":
        rows = rows.T
    elif table == "prices":
        rows = np.log(rows).diff().dropna()
    result = compare_graphs(GlobalGreedy(**options).fit(rows), truth)
    assert result.precision == pytest.approx(precision, abs=0.03)
    assert result.recall == pytest.approx(recall, abs=0.03)
    texts = [(FOLDER / page).read_text(encoding="utf-8") for page in PAGES]
    assert any(sentence in " ".join(text.split()) for text in texts)


def test_the_demonstration_shows_the_grid_of_the_image(tmp_path, capsys):
    runpy.run_path(str(ROOT / "examples" / "digits.py"))["main"](tmp_path)
    said = capsys.readouterr().out
    # As the README says.
    assert "Of all 1431 pairs, 6% are neighbours" in said
    n_edges, share = re.search(r"^ +0\.1 +(\d+) +(\d+)%$", said, re.MULTILINE).groups()
    assert 60 < int(n_edges) < 100
    assert int(share) >= 88
    assert str((tmp_path / "digits.html").resolve()) in said
    assert (tmp_path / "digits.html").stat().st_size > 50_000
    assert (tmp_path / "digits.png").exists()


def test_links_lead_somewhere():
    pages = [ROOT / "README.md", *(FOLDER / page for page in PAGES)]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for link, anchor in re.findall(r"\]\(([^)#:]*)(#[^)]*)?\)", text):
            target = page.parent / link if link else page
            assert target.exists(), (page.name, link)
            if anchor:
                headings = re.findall(r"^#+ (.*)", target.read_text(encoding="utf-8"), re.MULTILINE)
                slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
                assert anchor[1:] in slugs, (page.name, anchor)


def test_pages_are_in_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page for page in PAGES if f"(docs/for/{page})" not in text] == []
