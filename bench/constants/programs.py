"""Programs in which tuned constants have other values.

`settable` reads the value of one constant from the variable CLASSYARD_CONSTANT
("FILE:NAME=VALUE"). A constant that sets the length of an array must be known to the
compiler: the programs `first` and `second` have the first and the second of its other values.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
COMPILED = ["plain", "first", "second"]
PROGRAMS = ["settable", "model", *COMPILED]
CRATES = ["core", "datapath"]

FUNCTION = """#[allow(non_snake_case)]
{visibility}fn {name}() -> {type} {{
    static VALUE: std::sync::LazyLock<{type}> = std::sync::LazyLock::new(|| {{
        let name = "{path}:{name}=";
        let set = std::env::var("CLASSYARD_CONSTANT").ok();
        let value = set.as_deref().and_then(|set| set.strip_prefix(name));
        value.map_or({value}, |value| {parsed})
    }});
    VALUE.clone()
}}"""


class Problem(Exception):
    """A message for the person who runs the command."""


def write(path, text):
    """Writes a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    data = text if isinstance(text, bytes) else text.encode()
    part.write_bytes(data)
    part.replace(path)


def split(full):
    """Returns the file and the name of `FILE:NAME`."""
    path, _, name = full.rpartition(":")
    return path, name


def declaration(name):
    return re.compile(r"(pub(?:\([^)]*\))? )?const " + name + r": ([^=;]+|\[[^=]+\]) =\s*([^;]+);")


def declared(full):
    """Returns the declaration of a constant: visibility, type and value."""
    path, name = split(full)
    try:
        text = (PROJECT / path).read_text()
    except OSError as error:
        raise Problem(f"groups.toml: {full}: cannot read the file: {error.strerror}")
    match = declaration(name).search(text)
    if not match:
        raise Problem(f"groups.toml: {full}: the file has no constant of this name")
    return match


def parsed(type_):
    """Returns Rust code that parses `value` as `type_`."""
    number = 'parse().expect("a number")'
    if type_.startswith("["):
        parts = f"value.split(',').map(|part| part.trim().{number}).collect::<Vec<_>>()"
        return parts + '.try_into().expect("as many numbers")'
    if "Range<" in type_:
        ends = 'value.split_once("..").expect("a range")'
        return f"{{ let (from, to) = {ends}; from.{number}..to.{number} }}"
    return f"value.{number}"


def called(name, text):
    """Replaces uses of a constant by calls, outside of comments, strings and imports."""
    skipped = r"""//[^\n]*|'"'|"(?:\\[\s\S]|[^"\\])*"|\buse\s[^;{}]*(?:\{[^;]*\})?;"""
    return re.sub(
        rf"({skipped})|\b{name}\b(?!\()", lambda match: match[1] or name + "()", text
    )


class Sources:
    """The sources of the crates, in memory, with changes."""

    def __init__(self):
        self.texts = {}
        for crate in (PROJECT / "crates").iterdir():
            for file in crate.rglob("*.rs"):
                self.texts[file.relative_to(PROJECT).as_posix()] = file.read_text()

    def make_settable(self, full):
        """Makes a function of a constant, and calls of its uses."""
        path, name = split(full)
        match = declared(full)
        function = FUNCTION.format(
            visibility=match[1] or "",
            name=name,
            type=match[2],
            value=match[3],
            parsed=parsed(match[2]),
            path=path,
        )
        text = self.texts[path]
        match = declaration(name).search(text)
        before, after = text[: match.start()], text[match.end() :]
        self.texts[path] = called(name, before) + function + called(name, after)
        owners = {Path(path).stem, Path(path).parent.name} | set(
            re.findall(r"(?m)^impl(?:<[^>]*>)? (\w+)", text)
        )
        qualified = re.compile(rf"\b({'|'.join(sorted(owners))})::{name}\b")
        imported = re.compile(rf"\buse [^;]*\b{name}\b")
        crate = "/".join(Path(path).parts[:2]) + "/"
        for other, text in self.texts.items():
            if name not in text:
                continue
            is_own = other.startswith(crate) and imported.search(text)
            if other != path and not declaration(name).search(text):
                if is_own or qualified.search(text):
                    self.texts[other] = called(name, text)

    def set(self, full, value):
        """Gives a constant another value."""
        path, name = split(full)
        match = declaration(name).search(self.texts[path])
        line = f"{match[1] or ''}const {name}: {match[2]} = {value};"
        text = self.texts[path]
        self.texts[path] = text[: match.start()] + line + text[match.end() :]

    def sync(self, tree):
        """Writes the changed files, so that the compiler repeats no more than it must."""
        for path, text in self.texts.items():
            file = tree / path
            if not file.exists() or file.read_text() != text:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)


def copy(tree):
    """Copies what is no source of a crate, such as manifests and embedded data."""
    leave_out = shutil.ignore_patterns("target", ".git", "*.rs")
    shutil.copytree(PROJECT, tree, ignore=leave_out, dirs_exist_ok=True)
    for file in (PROJECT / "fuzz").rglob("*.rs"):
        shutil.copy2(file, tree / file.relative_to(PROJECT))


def sources_of(program, constants, values_of):
    sources = Sources()
    for constant in constants:
        is_compiled = constant.get("compiled", False)
        if program == "settable" and not is_compiled or program == "model" and constant["modelled"]:
            sources.make_settable(constant["name"])
        elif program in COMPILED[1:] and is_compiled:
            values = values_of(constant)
            sources.set(constant["name"], values[COMPILED.index(program) - 1])
    return sources


def cargo(program, tree, folder):
    """Builds a program in `tree`. Returns its file, or None if it does not compile."""
    command = [os.environ.get("CARGO", "cargo")]
    if program == "model":
        command += ["test", "--locked", "-p", "classyard-datapath", "--lib", "--no-run"]
        command += ["--message-format", "json-render-diagnostics"]
    else:
        command += ["build", "--release", "--locked", "-p", "classyard-cli"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "target")}
    output = subprocess.PIPE if program == "model" else None
    try:
        done = subprocess.run(command, cwd=tree, env=environment, stdout=output)
    except OSError as error:
        raise Problem(f"{command[0]}: {error.strerror}; install Rust, or set CARGO")
    if done.returncode != 0:
        return None
    if program != "model":
        return folder / "target/release/classyard"
    messages = map(json.loads, done.stdout.splitlines())
    return next(Path(m["executable"]) for m in messages if m.get("executable"))


def existing(folder):
    """Returns the programs that have been built."""
    return [program for program in PROGRAMS if (folder / "programs" / program).exists()]


def build(folder, wanted, constants, values_of):
    """Builds programs into `folder/programs`."""
    if not wanted:
        return
    tree = folder / "tree"
    copy(tree)
    for program in wanted:
        sources_of(program, constants, values_of).sync(tree)
        print(f"note: building {program}", file=sys.stderr, flush=True)
        built = cargo(program, tree, folder)
        if built is None:
            raise Problem(
                f"the program `{program}` does not compile. If a constant sets the length of an "
                "array, give it `compiled = true` in groups.toml."
            )
        write(folder / "programs" / program, built.read_bytes())
        (folder / "programs" / program).chmod(0o755)
