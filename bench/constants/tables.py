"""Tables of measured constants in Markdown."""

import re

from programs import Problem

BEGIN = "<!-- tables of bench/constants/measure.py -->"
END = "<!-- end of the tables -->"

# Ratios of figures that vary by less than this are those of counts.
COUNTED_SPREAD = 0.005
MIN_COUNTED_EFFECT = 0.005
MIN_TIMED_EFFECT = 0.03
# If times vary by more, nothing follows from them.
MAX_NOISE = 0.1
# Times that differ by this factor are shown next to counts.
LARGE_TIMED_RATIO = 1.5


def short(name):
    """Returns the constant's file below `src`, and its name."""
    path, name = name.rsplit(":", 1)
    return f"`{path.split('/src/')[-1]}` `{name}`"


def is_counted(metric, key):
    """True if the figure is a count: its turns agree, and no part of it is a time."""
    is_time = re.search("seconds|per_second|_ns", key) and "~" not in key
    return not is_time and metric["spread"] < COUNTED_SPREAD


def threshold(metric, key):
    """Returns the smallest difference from 1 that is an effect."""
    least = MIN_COUNTED_EFFECT if is_counted(metric, key) else MIN_TIMED_EFFECT
    return max(least, metric["spread"])


def effect(metric, key):
    """Returns worse, better or none. `key` says if more or less is better."""
    if abs(metric["ratio"] - 1) <= threshold(metric, key):
        return "none"
    more_is_better = key.rpartition(":")[2].startswith("+")
    return "better" if (metric["ratio"] > 1) == more_is_better else "worse"


def is_clear(metric, key):
    """True for counted figures, and for times that differ by a large factor."""
    ratio = metric["ratio"]
    return is_counted(metric, key) or max(ratio, 1 / ratio) > LARGE_TIMED_RATIO


def percent(thresholds):
    """Returns the largest threshold in percent."""
    return f"{100 * max(thresholds):.2g} %"


def effects(metrics, keys):
    """Returns the metrics that a value changes, with their ratios.

    If some of them are clear, returns only those.
    """
    found = {name: m for name, m in metrics.items() if effect(m, keys[name]) != "none"}
    clear = {name: m for name, m in found.items() if is_clear(m, keys[name])}
    parts = []
    for name, metric in (clear or found).items():
        spread = "" if is_counted(metric, keys[name]) else f" ± {metric['spread'] / 2:.2f}"
        parts.append(f"{name} {metric['ratio']:.2f}{spread}")
    if parts:
        return ", ".join(parts)
    rows = [(is_counted(m, keys[name]), threshold(m, keys[name])) for name, m in metrics.items()]
    counts = [threshold for is_count, threshold in rows if is_count]
    times = [threshold for is_count, threshold in rows if not is_count]
    texts = [f"none above {percent(counts)}"] if counts else []
    return "; ".join(texts + ([f"times: none above {percent(times)}"] if times else []))


def finding(row, keys):
    """Returns the conclusion from the effects of all other values.

    If no figure changes clearly, all times decide.
    """
    figures = [
        (value, metric, keys[name])
        for value, metrics in row["values"].items()
        for name, metric in metrics.items()
    ]
    found = [(v, effect(m, key), is_clear(m, key)) for v, m, key in figures]
    found = [row for row in found if row[1] != "none"]
    if not found:
        noise = max(threshold(metric, key) for _, metric, key in figures)
        is_precise = any(is_counted(metric, key) for _, metric, key in figures)
        return "no effect" if is_precise or noise <= MAX_NOISE else "undecided"
    clear = [row for row in found if row[2]]
    by = "" if clear else ", by time"
    found = clear or found
    if not clear and len({value for value, _, _ in found}) == len(row["values"]) > 1:
        if len({effect for _, effect, _ in found}) == 1:
            return "undecided"
    worse = {value for value, effect, _ in found if effect == "worse"}
    better = [value for value in row["values"] if (value, "better") in {f[:2] for f in found}]
    if not better:
        return "kept" + by
    only_better = [value for value in better if value not in worse]
    return (f"{' and '.join(only_better)} better" if only_better else "a trade-off") + by


def shown(command):
    """Returns a command as a user writes it."""
    run = command["run"].replace("{:option}", "")
    if command.get("program") == "model":
        return f"cargo test -p classyard-datapath --lib -- {run} --exact --nocapture"
    return f"classyard {run}"


def rows_of(results, keys):
    """Returns the lines of a constant in a table, by its short name."""
    rows = {}
    for row in results:
        name, value, conclusion = short(row["name"]), row["value"], finding(row, keys)
        lines = rows.setdefault(name, [])
        for other, metrics in row["values"].items():
            changes = effects(metrics, keys)
            lines.append(f"| {name} | {value} | {other} | {changes} | {conclusion} |")
            name, value, conclusion = "", "", ""
    return rows


def table_of(group, results, recorded=None):
    """Returns the section of a group: its results, and the recorded lines of other constants.

    Returns None without any of them.
    """
    keys = {name: key for command in group["commands"] for name, key in command["metrics"].items()}
    rows = (recorded or {}) | rows_of(results, keys)
    names = [short(constant["name"]) for constant in group["constants"]]
    if not any(name in rows for name in names):
        return None
    lines = [f"### {group['title']}", ""]
    if "note" in group:
        lines += [group["note"], ""]
    lines += dict.fromkeys(f"- `{shown(command)}`" for command in group["commands"])
    lines += ["", "| constant | value | instead | ratios to the present value | finding |"]
    lines += ["|---|---|---|---|---|"]
    lines += [line for name in names for line in rows.get(name, [])]
    return "\n".join(lines) + "\n"


def recorded_rows(text):
    """Returns the lines of each constant in the tables of a record, by title and short name."""
    sections = {}
    title = name = None
    for line in text.partition(BEGIN)[2].partition(END)[0].splitlines():
        if line.startswith("### "):
            title, name = line[4:], None
        elif line.startswith("| ") and not line.startswith("| constant "):
            name = line.split(" | ")[0][2:] or name
            sections.setdefault(title, {}).setdefault(name, []).append(line)
        elif line.startswith("|  |") and name:
            sections[title][name].append(line)
    return sections


def record_with(file, groups):
    """Returns the text of a record with new tables.

    `groups` has each group with its results. Constants without results keep their lines.
    """
    try:
        text = file.read_text()
    except OSError as error:
        raise Problem(f"{file}: {error.strerror}")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise Problem(f"{file}: expected the lines `{BEGIN}` and `{END}` around its tables")
    recorded = recorded_rows(text)
    sections = [table_of(g, results, recorded.get(g["title"])) for g, results in groups]
    tables = "\n".join(section for section in sections if section)
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"
