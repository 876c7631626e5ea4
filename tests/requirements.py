"""What some tests need beyond Python: skipped without it, except where everything is required."""

import os
import shutil
import subprocess

import pytest


def require_r(*packages):
    """Skip, or fail where SPARSISTENT_REQUIRE_ALL is set, unless R has these packages."""
    missing = "R" if shutil.which("Rscript") is None else _missing_packages(packages)
    if missing:
        _do_without(missing)


def require_chromium():
    """The path of the browser; skip, or fail where SPARSISTENT_REQUIRE_ALL is set, without it."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        _do_without("chromium")
    return found


def _do_without(missing):
    if os.environ.get("SPARSISTENT_REQUIRE_ALL"):
        pytest.fail(f"{missing} is not installed, and SPARSISTENT_REQUIRE_ALL is set")
    pytest.skip(f"{missing} is not installed")


def _missing_packages(packages):
    checks = "; ".join(f"library({package})" for package in packages)
    run = subprocess.run(["Rscript", "-e", checks], capture_output=True, check=False)
    return "" if run.returncode == 0 else f"one of the R packages {', '.join(packages)}"
