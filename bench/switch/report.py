"""Rows of the report, and the goals that they meet or miss."""

import dataclasses
import statistics

TITLES = {"c": "classyard", "o": "Open vSwitch", "w": "bare wire"}


@dataclasses.dataclass
class Goal:
    """A bound of classyard's median: `factor` times another row's median, or `factor` itself."""

    compare: str
    factor: float
    other: str | None = None

    def holds(self, row, rows):
        ours = row.median("c")
        bound = self.bound(row, rows)
        if ours is None or bound is None:
            return None
        return ours >= bound if self.compare == "at least" else ours <= bound

    def bound(self, row, rows):
        if self.other is None:
            return self.factor
        if self.other in TITLES:
            base = row.median(self.other)
        else:
            base = next((each.median("c") for each in rows if each.name == self.other), None)
        return None if base is None else self.factor * base

    def text(self, unit):
        if self.other is None:
            return f"{self.compare} {number(self.factor)} {unit}".rstrip()
        return f"{self.compare} {number(self.factor)} × {TITLES.get(self.other, self.other)}"


@dataclasses.dataclass
class Row:
    """A measured quantity. `values` has a list of rounds for each contender's letter."""

    measure: str
    name: str
    unit: str
    values: dict
    goals: list = dataclasses.field(default_factory=list)
    note: str = ""

    def median(self, letter):
        values = [value for value in self.values.get(letter, []) if value is not None]
        return statistics.median(values) if values else None

    def cell(self, letter):
        values = [value for value in self.values.get(letter, []) if value is not None]
        if not values:
            return "–"
        middle = number(statistics.median(values))
        if len(values) == 1 or min(values) == max(values):
            return middle
        return f"{middle} ({number(min(values))} to {number(max(values))})"

    def ratio(self, letter):
        ours, other = self.median("c"), self.median(letter)
        return "–" if not ours or not other else f"{ours / other:.3g}"


def number(value):
    """Three digits, or all digits of whole numbers of four digits and more."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def verdicts(row, rows):
    """The goals of a row with their results, as text."""
    if not row.goals:
        return "–", "–"
    results = [goal.holds(row, rows) for goal in row.goals]
    words = {True: "yes", False: "no", None: "not measured"}
    return ("; ".join(goal.text(row.unit) for goal in row.goals),
            "; ".join(words[result] for result in results))


HEADING = ("measure", "quantity", "unit", "classyard", "Open vSwitch", "bare wire",
           "classyard / Open vSwitch", "classyard / wire", "goal", "met")


def table(rows):
    """A Markdown table of all rows."""
    lines = [HEADING]
    for row in rows:
        lines.append((row.measure, row.name, row.unit, *(row.cell(letter) for letter in TITLES),
                      row.ratio("o"), row.ratio("w"), *verdicts(row, rows)))
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADING))]
    lines.insert(1, tuple("-" * width for width in widths))
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines]
    notes = [f"{row.name}: {row.note}" for row in rows if row.note]
    return "\n".join(text + ([""] + notes if notes else []))


def as_json(rows):
    """The rows with the values of all rounds."""
    return [
        {
            "measure": row.measure,
            "quantity": row.name,
            "unit": row.unit,
            **{TITLES[letter].replace(" ", "_").lower(): {"median": row.median(letter), "rounds": values}
               for letter, values in row.values.items()},
            "goals": [{"goal": goal.text(row.unit), "met": goal.holds(row, rows)} for goal in row.goals],
            "note": row.note,
        }
        for row in rows
    ]
