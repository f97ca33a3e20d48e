#!/usr/bin/env python3
"""Measures tuned constants: every figure with another value, divided by the figure with the
present value.

The first run builds five programs into FOLDER (15 to 30 minutes); `programs.py` describes
them. Then the commands of `groups.toml` run with the present value and with each other value,
in turns. The figures of each constant are stored in FOLDER/results, so an interrupted run
continues where it ended.

Counted figures, such as bytes or tables read, are the same in each run. Times are CPU times of
one thread; for them, and for counts that depend on times, the median of the ratios over the
turns counts. An effect is a ratio that differs from 1 by more than 0.5 % (if turns differ by
less) or 3 % (others), and by more than the uncertainty of the median.
"""

import argparse
import json
import math
import os
import re
import resource
import shlex
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import programs
from programs import Problem, write
from tables import record_with, table_of

TURNS = 3
# The exit code of a program of tests of which one failed.
TEST_FAILED = 101
GROUPS = Path(__file__).with_name("groups.toml")


def load():
    """Returns the settings of `groups.toml`."""
    try:
        settings = tomllib.loads(GROUPS.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise Problem(f"{GROUPS}: {error}")
    for group in settings["group"]:
        for command in group["commands"]:
            title = command["title"] + ": " if "title" in command else ""
            metrics = settings["metrics"][command["metrics"]]
            command["metrics"] = {title + name: key for name, key in metrics.items()}
        is_modelled = any(command.get("program") == "model" for command in group["commands"])
        for constant in group["constants"]:
            constant["modelled"] = is_modelled
    return settings


def present(constant):
    """Returns the present value of a constant or an option."""
    if "option" in constant:
        return str(constant["value"])
    return programs.declared(constant["name"])[3].replace("_", "")


def values_of(constant):
    """Returns the other values: those listed, or half and twice the present value."""
    if "values" in constant:
        return [str(value) for value in constant["values"]]
    value = present(constant)
    if "." in value:
        return [f"{float(value) / 2:g}", f"{float(value) * 2:g}"]
    match = re.fullmatch(r"(\d+) << (\d+)", value)
    number = int(match[1]) << int(match[2]) if match else int(value)
    return [str(max(number // 2, 1)), str(number * 2)]


def program_of(folder, command, constant, value):
    """Returns the program that has a value, or the present value, and the variables to set."""
    if constant.get("compiled"):
        number = 0 if value is None else values_of(constant).index(value) + 1
        return folder / "programs" / programs.COMPILED[number], {}
    settable = folder / "programs" / command.get("program", "settable")
    if value is None or "option" in constant:
        return settable, {}
    return settable, {"CLASSYARD_CONSTANT": f"{constant['name']}={value}"}


def figure(row, key):
    """Returns a figure of a row of a report, such as `a.b / (c + d)`, or None.

    For an estimate, `~a | b`, returns the estimate and the measured figure.
    """

    def read(match):
        value = row
        for part in match[0].split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return "None" if value is None else f"({value!r})"

    def value_of(expression):
        expression = re.sub(r"[a-z_]\w*(?:\.[a-z_]\w*)*", read, expression)
        if "None" in expression:
            return None
        try:
            return eval(expression, {"__builtins__": {}})
        except ZeroDivisionError:
            return None

    if not key.startswith("~"):
        return value_of(key.lstrip("+"))
    estimate, measured = (value_of(part) for part in key.lstrip("~").split("|"))
    return (estimate, measured) if estimate and measured else None


def rows_of(report, path):
    """Returns the rows of a report below a key."""
    for part in filter(None, path.split(".")):
        report = report[part]
    return report if isinstance(report, list) else [report]


def model_rows(output):
    """Returns the rows that a test prints: a line of titles, then lines of figures."""
    lines = [line.split(";") for line in output.splitlines() if ";" in line]
    titles = [title.rpartition(" ")[2] for title in lines[0]]
    figures = [line for line in lines[1:] if len(line) == len(titles)]
    return [dict(zip(titles, [name, *map(float, rest)])) for name, *rest in figures]


def run(folder, command, constant, value):
    """Returns the figures of a run: for each metric, one for each row of the report."""
    program, variables = program_of(folder, command, constant, value)
    is_option = "option" in constant and value is not None
    option = f"{constant['option']}={value}" if is_option else ""
    line = command["run"].replace("{:option}", option and ":" + option)
    is_model = command.get("program") == "model"
    form = "--exact --nocapture" if is_model else "--format json -q"
    arguments = shlex.split(line) + command.get("format", form).split()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [program, *arguments],
        cwd=folder / "inputs",
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    # The bounds of a model's test are for the present values.
    if done.returncode != 0 and not (is_model and done.returncode == TEST_FAILED):
        set_to = f" with {constant['name']}={value}" if value else ""
        raise Problem(f"classyard {line}{set_to}: exit code {done.returncode}: {done.stderr}")
    if "report" in command:
        lines = (folder / "inputs" / command["report"]).read_text().splitlines()
        report = [json.loads(line) for line in lines]
        report = {row["point"]: row for row in report if "point" in row}
    elif is_model:
        report = model_rows(done.stdout)
    else:
        report = json.loads(done.stdout)
    figures = {}
    used = {"cpu_seconds": resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before}
    for name, key in command["metrics"].items():
        path, _, key = key.rpartition(":")
        rows = rows_of(report, path)
        where = command.get("where", {})
        kept = [row for row in rows if all(row.get(k, v) == v for k, v in where.items())]
        figures[name] = [figure(row | {"command": used}, key) for row in kept]
    return figures


def mean(numbers):
    """Returns the geometric mean."""
    return math.exp(statistics.fmean(math.log(number) for number in numbers))


def error(estimates, measured, is_relative):
    """Returns the mean error of estimates, as a logarithm of their ratios to measurements.

    If it is relative, a common factor of all ratios is no error.
    """
    logs = [math.log(a / b) for a, b in zip(estimates, measured)]
    common = statistics.median(logs) if is_relative else 0
    return statistics.fmean(abs(log - common) for log in logs)


def ratio(key, other, now):
    """Returns the mean ratio of the rows, or the ratio of the errors of estimates.

    Both errors are those against the measurements with the present value.
    """
    key = key.rpartition(":")[2]
    pairs = [(a, b) for a, b in zip(other, now) if a is not None and b is not None]
    if key.startswith("~"):
        measured = [b[1] for _, b in pairs]
        sides = ([a[0] for a, _ in pairs], [b[0] for _, b in pairs])
        errors = [error(side, measured, key.startswith("~~")) for side in sides]
        return errors[0] / errors[1] if errors[1] else None
    pairs = [(a, b) for a, b in pairs if a > 0 and b > 0]
    return mean([a / b for a, b in pairs]) if pairs else None


def is_same(key, figures, again):
    """True if counted figures, or estimates, are the same in two runs."""
    if key.rpartition(":")[2].startswith("~"):
        figures, again = [[f and f[0] for f in side] for side in (figures, again)]
    return figures == again


class Command:
    """A command of a group. Its counted figures with the present value are kept."""

    def __init__(self, folder, command):
        self.folder, self.command = folder, command
        self.turns = command.get("turns", TURNS)
        # By program.
        self.now = {}

    def present(self, constant):
        if self.turns > 1:
            return run(self.folder, self.command, constant, None)
        program, _ = program_of(self.folder, self.command, constant, None)
        if program not in self.now:
            now = run(self.folder, self.command, constant, None)
            again = run(self.folder, self.command, constant, None)
            metrics = self.command["metrics"]
            differ = [n for n in again if not is_same(metrics[n], again[n], now[n])]
            if differ:
                raise Problem(f"classyard {self.command['run']}: not the same twice: {differ}")
            self.now[program] = now
        return self.now[program]

    def ratios(self, constant, values, turns):
        """Returns for each value and metric the ratios of the turns.

        A turn compares with the present value before and after it.
        """
        metrics = self.command["metrics"]
        ratios = {value: {name: [] for name in metrics} for value in values}
        before = self.present(constant)
        for _ in range(turns if self.turns > 1 else 1):
            others = {v: run(self.folder, self.command, constant, v) for v in values}
            after = self.present(constant)
            for value, other in others.items():
                for name, key in metrics.items():
                    sides = [ratio(key, other[name], now[name]) for now in (before, after)]
                    if None not in sides:
                        ratios[value][name].append(mean(sides))
            before = after
        return ratios


def summary(ratios):
    """Returns the median of the ratios of the turns, and its uncertainty.

    The uncertainty is the length of the interval that holds the true median with a
    probability of 95 %. Up to five turns, it is the range of all ratios.
    """
    ratios, count = sorted(ratios), len(ratios)
    left_out = max(0, math.floor((count + 1) / 2 - 0.98 * math.sqrt(count)) - 1)
    spread = ratios[count - 1 - left_out] - ratios[left_out]
    return {"ratio": statistics.median(ratios), "spread": spread}


def measure(folder, commands, constant, turns):
    """Returns the results of a constant: for each other value, the metrics."""
    values = values_of(constant)
    columns = {value: {} for value in values}
    for command in commands:
        for value, metrics in command.ratios(constant, values, turns).items():
            for name, ratios in metrics.items():
                if ratios:
                    columns[value][name] = summary(ratios)
    return {"name": constant["name"], "value": present(constant), "values": columns}


def stored(folder, group):
    """Returns the results of a group that are stored, by the constant's name."""
    file = folder / "results" / (group["name"] + ".json")
    try:
        return json.loads(file.read_text()) if file.exists() else {}
    except (OSError, json.JSONDecodeError) as error:
        raise Problem(f"{file}: {error}; remove the file to measure the group again")


def results_of(folder, group, options):
    """Measures a group, and returns its results in the order of `groups.toml`."""
    results = {} if options.again or options.quick else stored(folder, group)
    commands = {c["name"]: Command(folder, c) for c in group["commands"]}
    constants = group["constants"][:1] if options.quick else group["constants"]
    for constant in constants:
        name = constant["name"]
        if options.constants and name.rpartition(":")[2] not in options.constants.split(","):
            continue
        if name in results and results[name]["value"] == present(constant):
            continue
        those = [commands[c] for c in constant.get("commands", commands)]
        needed = [
            program_of(folder, used.command, constant, value)[0]
            for used in those
            for value in [None, *values_of(constant)]
        ]
        if not all(program.exists() for program in needed):
            print(f"warning: {name}: not measured: a program is missing", file=sys.stderr)
            continue
        print(f"note: {group['name']}: {name}", file=sys.stderr, flush=True)
        results[name] = measure(folder, those, constant, 1 if options.quick else constant.get("turns", TURNS))
        if not options.quick:
            write(folder / "results" / (group["name"] + ".json"), json.dumps(results, indent=1))
    return [results[c["name"]] for c in constants if c["name"] in results]


def make_inputs(folder, inputs):
    """Makes the files that commands need, in the order of `groups.toml`."""
    (folder / "inputs").mkdir(parents=True, exist_ok=True)
    for file, command in inputs.items():
        if (folder / "inputs" / file).exists():
            continue
        print(f"note: making {file}", file=sys.stderr, flush=True)
        made = subprocess.run(
            ["sh", "-ec", command],
            cwd=folder / "inputs",
            env={**os.environ, "CLASSYARD": str(folder / "programs/settable")},
            stdout=subprocess.PIPE,
        )
        if made.returncode != 0:
            (folder / "inputs" / file).unlink(missing_ok=True)
            raise Problem(f"groups.toml: inputs: {file}: its command failed")
        if made.stdout:
            write(folder / "inputs" / file, made.stdout)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="for programs and results")
    parser.add_argument("--groups", metavar="NAMES", help="measure these groups only")
    parser.add_argument(
        "--constants", metavar="NAMES", help="measure these constants of the groups only"
    )
    parser.add_argument("--list", action="store_true", help="list the groups and their constants")
    parser.add_argument("--rebuild", action="store_true", help="build the programs again")
    parser.add_argument("--again", action="store_true", help="replace stored results")
    parser.add_argument(
        "--quick", action="store_true", help="one turn of one constant a group; stores nothing"
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        type=Path,
        help="write the tables into this record, and keep its lines of other constants",
    )
    return parser.parse_args()


def chosen(settings, names):
    """Returns the groups with these names, or all."""
    groups = {group["name"]: group for group in settings["group"]}
    for name in names or []:
        if name not in groups:
            raise Problem(f"--groups: there is no group `{name}`; --list has the names")
    return [groups[name] for name in names or groups]


def main():
    options = arguments()
    settings = load()
    groups = chosen(settings, options.groups and options.groups.split(","))
    if options.list:
        for group in groups:
            print(group["name"], *(f"    {c['name']}" for c in group["constants"]), sep="\n")
        return
    folder = options.folder.resolve()
    if programs.PROJECT in [folder, *folder.parents]:
        raise Problem(f"{options.folder}: choose a folder outside of the project")
    everything = {c["name"]: c for group in settings["group"] for c in group["constants"]}
    built = [c for c in everything.values() if "option" not in c]
    present_programs = [] if options.rebuild else programs.existing(folder)
    wanted = [program for program in programs.PROGRAMS if program not in present_programs]
    programs.build(folder, wanted, built, values_of)
    make_inputs(folder, settings["inputs"])
    for group in groups:
        section = table_of(group, results_of(folder, group, options))
        if section:
            print(section, flush=True)
    if options.record and not options.quick:
        measured = []
        for group in settings["group"]:
            results = stored(folder, group)
            rows = [results[c["name"]] for c in group["constants"] if c["name"] in results]
            measured.append((group, rows))
        write(options.record, record_with(options.record, measured))


if __name__ == "__main__":
    try:
        main()
    except Problem as problem:
        raise SystemExit(f"error: {problem}")
    except BrokenPipeError:
        raise SystemExit(141)
    except KeyboardInterrupt:
        raise SystemExit(130)
