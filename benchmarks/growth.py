"""How the time after the correlations grows with the number of edges, on grids.

If a step costs the same however large the graph is, the exponent is 1.
"""

import math

from benchmarks.table import Row


def exponent(edges: list[int], seconds: list[float]) -> float:
    """Slope of log seconds against log edges, by least squares."""
    x, y = ([math.log(value) for value in values] for values in (edges, seconds))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return covariance / sum((a - mean_x) ** 2 for a in x)


def growth_lines(rows: list[Row]) -> str:
    """A line for each solver: its exponent and the points, or what went wrong."""
    lines = []
    for solver in dict.fromkeys(row["solver"] for row in rows):
        own = [row for row in rows if row["solver"] == solver]
        good = [row for row in own if row["status"] == "ok"]
        problems = [f"p = {row['p']}: {row['status']}" for row in own if row["status"] != "ok"]
        points = [f"{int(row['edges']):,} edges {row['seconds_best']} s" for row in good]
        if len(good) > 1:
            slope = exponent(
                [int(row["edges"]) for row in good], [float(row["seconds_best"]) for row in good]
            )
            points.insert(0, f"exponent {slope:.2f}")
        lines.append(f"- {solver}: {'; '.join(points + problems)}\n")
    return "".join(lines)
