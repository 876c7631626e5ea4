"""Uses and abuses of the public interface: each has the right answer, or an error with a way out."""

from collections import Counter

import pytest
from corpus import graphs, parameters, tables

CASES = [*tables.CASES, *parameters.CASES, *graphs.CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.topic}: {case.name}")
def test_case(case):
    case.run()


def test_names_tell_the_cases_apart():
    twice = [k for k, n in Counter((case.topic, case.name) for case in CASES).items() if n > 1]
    assert not twice
