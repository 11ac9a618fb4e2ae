"""A script's options from its dataclass of settings: one option per field, with the field's type and default.

In: the dataclass and the words after the script's name. Out: the dataclass filled in, or the usage line and exit code
2, as `argparse` has it.
"""

from __future__ import annotations

import argparse
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

Settings = TypeVar("Settings")


def arguments(settings: type[Settings], argv: Sequence[str], description: str | None = None) -> Settings:
    """Read a command line into a dataclass: the field `batch_size` is the option `--batch-size`.

    Args:
        settings: A dataclass in which every field has a default: text, a number, or False, which becomes a flag.
        argv: The words after the script's name.
        description: What the script is for, for `--help`.

    Returns:
        The settings; fields that are not on the line have their defaults.

    Raises:
        TypeError: A field has no default, or one that no option can have.
        SystemExit: The line cannot be read (code 2), or it asks for help (code 0).
    """
    if not is_dataclass(settings):
        raise TypeError(f"session.arguments: expected a dataclass, got {settings!r}")
    parser = argparse.ArgumentParser(description=description)
    for field in fields(settings):
        option, default = f"--{field.name.replace('_', '-')}", field.default
        if default is False:
            parser.add_argument(option, action="store_true", help="default: off")
        elif type(default) in (int, float, str):
            parser.add_argument(option, type=type(default), default=default, help="default: %(default)s")
        else:
            found = "none" if default is MISSING else repr(default)
            raise TypeError(
                f"session.arguments: expected field {field.name!r} of {settings.__name__} to have a default that is "
                f"text, a number or False, got {found}; give it one"
            )
    return settings(**vars(parser.parse_args(list(argv))))
