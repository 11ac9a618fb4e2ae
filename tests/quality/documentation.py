"""Runs the documentation: every Python block is executed, every command is looked up.

Python blocks run, those of one page in one namespace. In ``console`` blocks each ``$`` line is held against what
there is: make targets, subcommands of voda and their options, modules, files. JSON and YAML blocks must parse.
``docs/contracts.md`` shows fragments of interfaces: its Python is compiled only.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import click
import yaml
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser
from sybil.sybil import SybilCollection
from sybil.typing import Parser

from voda_flows.cli.verbs import VERBS

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "docs/guides/*.md",
    "docs/adr/*.md",
    "workloads/README.md",
    "tests/cluster/README.md",
)
FRAGMENTS = "docs/contracts.md"
OTHERS = {"git", "cd", "export", "kubectl", "argo", "sudo", "brew", "xcode-select", "mkdir"}


def _make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def _options(verb: str) -> set[str]:
    command: click.Command = importlib.import_module(f"voda_flows.cli.{verb}").command
    named = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return named | {"-h", "--help"}


def _missing_files(words: Iterable[str]) -> list[str]:
    paths = [word for word in words if word.startswith(("templates/", "workloads/", "docs/"))]
    return [f"file {path}" for path in paths if not (ROOT / path).exists()]


def _missing_of_voda(words: list[str]) -> list[str]:
    verb, *rest = words or ["--help"]
    if verb.startswith("-"):
        return []
    if verb not in VERBS:
        return [f"subcommand {verb}"]
    used = {word.split("=")[0] for word in rest if word.startswith("-")}
    return [f"option {option} of voda {verb}" for option in sorted(used - _options(verb))]


def missing(command: str) -> list[str]:
    """What a command line names that does not exist; empty when it could be typed as it is.

    Args:
        command: One line as a reader would type it, comment allowed.
    """
    words = shlex.split(command, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    if not words or words[0] in OTHERS:
        return []
    program, rest = words[0].removeprefix(".venv/bin/"), words[1:]
    if program == "make":
        targets = [word for word in rest if "=" not in word and not word.startswith("-")]
        return [f"make target {target}" for target in targets if target not in _make_targets()]
    if program == "voda":
        return _missing_of_voda(rest) + _missing_files(rest)
    if program == "python" and rest[:1] == ["-m"]:
        return [] if find_spec(rest[1]) else [f"module {rest[1]}"]
    return _missing_files([program, *rest]) if program == "python" else [f"program {program}"]


def check_console(example: Example) -> str | None:
    """Sybil's evaluator of ``console`` blocks: a text is a fault."""
    lines = [line.removeprefix("$ ") for line in example.parsed.splitlines() if line.startswith("$ ")]
    faults = [f"`{line}`: there is no {fault}" for line in lines for fault in missing(line)]
    if not lines:
        faults = ["a console block has a command in at least one line, after `$ `"]
    return "\n".join(faults) or None


def check_json(example: Example) -> None:
    """A JSON block parses."""
    json.loads(example.parsed)


def check_yaml(example: Example) -> None:
    """A YAML block parses."""
    list(yaml.safe_load_all(example.parsed))


def check_syntax(example: Example) -> None:
    """A fragment compiles."""
    compile(example.parsed, example.path, "exec")


def documentation() -> SybilCollection:
    """The pages as tests."""
    common: list[Parser] = [
        CodeBlockParser("console", check_console),
        CodeBlockParser("json", check_json),
        CodeBlockParser("yaml", check_yaml),
        SkipParser(),
    ]
    pages = Sybil(parsers=[*common, PythonCodeBlockParser()], path=str(ROOT), patterns=PAGES, excludes=[FRAGMENTS])
    contracts = Sybil(parsers=[*common, CodeBlockParser("python", check_syntax)], path=str(ROOT), patterns=[FRAGMENTS])
    return pages + contracts
