"""Run the pages of docs/for as a reader would: commands, then Python, in one folder.

``python tests/pages.py`` writes the pictures of the pages, and the screenshots of reports.
"""

import doctest
import re
import runpy
import shlex
import shutil
import sys
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from sparsistent.cli import main as command_line

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "for"
PAGES = sorted(path.name for path in FOLDER.glob("*.md"))
# Pages that are shown as in a browser, and where: with the strongest edge of a variable explained,
# or with all edges beside the matrix.
SCREENSHOTS = {
    "wine/report.html": ("alcohol", FOLDER / "csv.png"),
    "digits.html": (None, ROOT / "docs" / "explorer.png"),
}
WINDOW = {"width": 1280, "height": 800}


def write_tables(folder):
    """The tables that the pages start from."""
    runpy.run_path(str(ROOT / "examples" / "tables.py"))["main"](Path(folder))


def run_page(name, folder, n_resamples=None):
    """Run the blocks of a page in a folder; fewer resamples are enough to see that they run."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    if n_resamples is not None:
        text = re.sub(r"(n[-_]resamples[= ])\d+", rf"\g<1>{n_resamples}", text)
    names = {}
    with chdir(folder):
        for language, block in re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            if language == "sh":
                for line in block.splitlines():
                    program, *arguments = shlex.split(line)
                    assert program == "sparsistent", line
                    assert command_line([*arguments, "--quiet"]) == 0, line
            else:
                run_examples(name, block, names)


def run_examples(name, block, names):
    """Check the examples of a block; names that they define stay for the next one."""
    examples = doctest.DocTestParser().get_doctest(block, names, name, name, 0)
    report = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    results = runner.run(examples, out=report.append, clear_globs=False)
    names.update(examples.globs)
    assert results.failed == 0, "".join(report)


def screenshot(page, variable, picture):
    """A picture of the explorer in chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        shown = browser.new_page(viewport=WINDOW)
        shown.goto(Path(page).resolve().as_uri())
        shown.wait_for_load_state("networkidle")
        if variable is None:
            shown.click("[data-tab=matrix]")
            shown.wait_for_selector("#matrix canvas")
        else:
            shown.click("[data-tab=edges]")
            shown.fill("#filter", variable)
            shown.locator("#rows tbody tr").first.click()
            shown.click("[data-tab=why]")
            shown.wait_for_selector("#partial")
        shown.screenshot(path=picture)
        browser.close()


def write_pictures():
    """All pictures of the pages, and the one of the README."""
    with TemporaryDirectory() as folder:
        write_tables(folder)
        for page in PAGES:
            run_page(page, folder)
        for picture in Path(folder).glob("*.png"):
            shutil.copy(picture, FOLDER)
        runpy.run_path(str(ROOT / "examples" / "digits.py"))["main"](Path(folder))
        for page, (variable, picture) in SCREENSHOTS.items():
            screenshot(Path(folder) / page, variable, picture)


if __name__ == "__main__":
    import matplotlib as mpl

    mpl.use("agg")
    sys.exit(write_pictures())
