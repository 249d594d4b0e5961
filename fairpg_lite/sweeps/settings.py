"""Settings and results as JSON holds them: what makes two runs the same run."""

import dataclasses
import json
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np
from torch import Tensor


def as_json(where: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` as a JSON file gives them back, sorted by name and with every digit.

    Args:
        where: What they are of, for the error.
        values: Numbers, strings, None, and lists and dictionaries of them; also NumPy's numbers,
            tensors, datasets (known by their fingerprint), named functions and classes, and
            dataclasses.

    Returns:
        Numbers, strings, None, and lists and dictionaries of them.

    >>> as_json("result", {"ndcg": np.float64(0.5), "at": (1, 2)})
    {'at': [1, 2], 'ndcg': 0.5}
    """
    stored = {}
    for name in sorted(values, key=str):
        try:
            text = json.dumps(values[name], allow_nan=False, default=_described, sort_keys=True)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{where}[{name!r}] cannot be stored ({error}); give finite numbers, strings, "
                "lists and dictionaries, or None (a function: one with a name of its own)."
            ) from error
        stored[str(name)] = json.loads(text)
    return stored


def settings_of(value: Any) -> dict[str, Any]:
    """The class and the fields of a dataclass, without those of ``field(compare=False)``.

    A field that is newer than stored results has ``metadata={"stored": "if changed"}``: at its
    default it is left out, so that those results still count.
    """
    settings = {"class": type(value).__name__}
    for field in dataclasses.fields(value):
        setting = getattr(value, field.name)
        is_newer = field.metadata.get("stored") == "if changed"
        if not field.compare or (is_newer and setting == field.default):
            continue
        settings[field.name] = setting
    return settings


def first_difference(stored: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """The first setting that differs, in words; an empty string if none does."""
    for name in {**asked, **stored}:
        there = stored.get(name, "absent")
        here = asked.get(name, "absent")
        if there == here:
            continue
        if isinstance(there, dict) and isinstance(here, dict):
            return f"{name}.{first_difference(there, here)}"
        return f"{name} is {there!r} there and {here!r} here"
    return ""


def _described(value: Any) -> Any:
    """What stands in a file for a value that JSON has no word for."""
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "fingerprint"):  # a dataset
        return {"class": type(value).__name__, "fingerprint": value.fingerprint()}
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, FunctionType | type) and "<" not in value.__qualname__:
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return settings_of(value)
    raise TypeError(f"a {type(value).__name__}")
