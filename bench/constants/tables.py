"""Tables of measured constants in Markdown."""

from programs import Problem, split

BEGIN = "<!-- tables of bench/constants/measure.py -->"
END = "<!-- end of the tables -->"


def short(name):
    """Returns the constant's file below `src`, and its name."""
    path, name = split(name)
    return f"`{path.split('/src/')[-1]}` `{name}`" if path else f"`{name}`"


def effects(metrics):
    """Returns the metrics that a value changes, with their ratios."""
    parts = []
    for name, metric in metrics.items():
        if metric["effect"] != "none":
            spread = "" if metric["counted"] else f" ± {metric['spread'] / 2:.2f}"
            parts.append(f"{name} {metric['ratio']:.2f}{spread}")
    spreads = [metric["spread"] for metric in metrics.values() if not metric["counted"]]
    if not parts and spreads:
        return f"none above {100 * max(0.03, *spreads):.0f} %"
    return ", ".join(parts) or "none above 0.5 %"


def finding(row):
    """Returns the conclusion from the effects of all other values.

    If no counted figure changes, times decide.
    """
    metrics = [m for metrics in row["values"].values() for m in metrics.values()]
    is_counted = any(m["counted"] and m["effect"] != "none" for m in metrics)
    found = {
        value: {m["effect"] for m in metrics.values() if m["counted"] or not is_counted}
        for value, metrics in row["values"].items()
    }
    everything = set().union(*found.values()) - {"none"}
    better = [value for value, e in found.items() if "better" in e and "worse" not in e]
    by = "" if is_counted else ", by time"
    if not everything:
        return "no effect"
    if better:
        return f"{' and '.join(better)} better{by}"
    return ("a trade-off" if "better" in everything else "kept") + by


def table_of(group, results):
    """Returns the section of a group."""
    lines = [f"### {group['title']}", ""]
    if "note" in group:
        lines += [group["note"], ""]
    lines += [f"- `classyard {command['run'].replace('{:option}', '').replace('{,option}', '')}`" for command in group["commands"]]
    lines += ["", "| constant | value | instead | ratios to the present value | finding |"]
    lines += ["|---|---|---|---|---|"]
    for row in results:
        name, value, conclusion = short(row["name"]), row["value"], finding(row)
        for other, metrics in row["values"].items():
            lines.append(f"| {name} | {value} | {other} | {effects(metrics)} | {conclusion} |")
            name, value, conclusion = "", "", ""
    return "\n".join(lines) + "\n"


def record_with(file, tables):
    """Returns the text of a record with these tables in place of its tables."""
    try:
        text = file.read_text()
    except OSError as error:
        raise Problem(f"{file}: {error.strerror}")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise Problem(f"{file}: expected the lines `{BEGIN}` and `{END}` around its tables")
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"
