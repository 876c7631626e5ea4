"""Uses and abuses of the public interface: the right answer, or an error with a way out."""

from collections import Counter

import matplotlib.pyplot as plt
import pytest
from corpus import functions, graphs, models, parameters, results, tables, values

TOPICS = (tables, values, parameters, graphs, results, functions, models)
CASES = [case for topic in TOPICS for case in topic.CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.topic}: {case.name}")
def test_case(case):
    case.run()
    plt.close("all")


def test_names_tell_the_cases_apart():
    names = Counter((case.topic, case.name) for case in CASES)
    assert [name for name, number in names.items() if number > 1] == []
