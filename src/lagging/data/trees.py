# SPDX-License-Identifier: Apache-2.0
"""JSON and YAML of other tools: the depth is limited, and no key may occur twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["DEEPEST", "TreeError", "Yaml", "json_decoder", "read_json", "read_yaml"]

DEEPEST = 100
"""How deep lists and objects may be nested. Files that are read here have a few levels."""

TOO_DEEP = f"nested too deeply (more than {DEEPEST} lists or objects in one another)"
STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?+', re.DOTALL)
BRACKET = re.compile(r"[\[\]{}]")


class TreeError(ValueError):
    """A text that cannot be read, and the line where that is found; None if it is all one line."""

    def __init__(self, text: str, line: int | None = None) -> None:
        super().__init__(text)
        self.line = line


# ---- JSON -----------------------------------------------------------------------------------------------------------


def read_json(text: str, repeated: list[str] | None = None, parse_int: Callable[[str], Any] | None = None) -> Any:
    """The value of a JSON text.

    Args:
        text: the text.
        repeated: takes the keys that an object has twice; without it, they are an error.
        parse_int: as in `json.loads`.

    Raises:
        ValueError: it is not JSON, or too deep, or an object has a key twice.

    Example:
        >>> read_json('{"delays": [1], "delays": [2]}')
        Traceback (most recent call last):
        lagging.data.trees.TreeError: the key "delays" twice in one object
    """
    if _is_deep(text):
        raise TreeError(TOO_DEEP)
    twice: list[str] = [] if repeated is None else repeated
    value = json_decoder(twice, parse_int).decode(text)
    if twice and repeated is None:
        raise TreeError(f"the key {json.dumps(twice[0], ensure_ascii=False)} twice in one object")
    return value


def json_decoder(repeated: list[str], parse_int: Callable[[str], Any] | None = None) -> json.JSONDecoder:
    """A decoder of texts that are not too deep; the keys that an object has twice are added to `repeated`."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            repeated.extend(key for key, count in counts.items() if count > 1)
        return record

    return json.JSONDecoder(object_pairs_hook=once, parse_int=parse_int)


def _is_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    depth = 0
    for bracket in BRACKET.findall(STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST:
            return True
    return False


# ---- YAML -----------------------------------------------------------------------------------------------------------


@dataclass
class Yaml:
    """The content of a YAML document.

    Attributes:
        value: lists, dictionaries and texts; scalars stay as they are written. None for nothing.
        line: where it begins.
        lines: where each entry begins, if it is a list.
        repeated: keys that a mapping has twice, each with its line, and the entry of the list that it is in.
    """

    value: Any = None
    line: int = 1
    lines: list[int] = field(default_factory=list)
    repeated: list[tuple[int, int, str]] = field(default_factory=list)


def read_yaml(text: str) -> Yaml:
    """The content of a YAML text with one document, built without recursion.

    Raises:
        TreeError: it is not YAML, or too deep, or more than one document.

    Example:
        >>> read_yaml("- {wav: 007, offset: 1.50}").value
        [{'wav': '007', 'offset': '1.50'}]
    """
    import yaml

    document = Yaml()
    try:
        _Builder(document).build(yaml.parse(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader)))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or getattr(error, "reason", error)
        raise TreeError(f"not valid YAML: {reason}", None if mark is None else mark.line + 1) from None
    return document


_NO_KEY = object()


class _Builder:
    """Builds a document from the events of a parser."""

    def __init__(self, document: Yaml) -> None:
        self.document = document
        self.documents = 0
        self.open: list[Any] = []  # lists, and pairs of a dictionary and the key whose value comes next
        self.anchors: dict[str, Any] = {}

    def build(self, events: Any) -> None:
        import yaml

        for event in events:
            line = event.start_mark.line + 1
            if isinstance(event, yaml.DocumentStartEvent):
                self.documents += 1
                if self.documents > 1:
                    raise TreeError("more than one document", line)
            elif isinstance(event, yaml.ScalarEvent):
                self._name(event.anchor, event.value)
                self._put(event.value, line)
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in self.anchors:
                    raise TreeError(f"not valid YAML: nothing is called {event.anchor}", line)
                self._put(self.anchors[event.anchor], line)
            elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
                if len(self.open) >= DEEPEST:
                    raise TreeError(TOO_DEEP, line)
                is_list = isinstance(event, yaml.SequenceStartEvent)
                self.open.append(([], event.anchor, line) if is_list else ({}, event.anchor, line, _NO_KEY))
            elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
                value, anchor, begin, *_ = self.open.pop()
                self._name(anchor, value)
                self._put(value, begin)

    def _name(self, anchor: str | None, value: Any) -> None:
        """Record a complete value under its anchor."""
        if anchor is not None:
            self.anchors[anchor] = value

    def _put(self, value: Any, line: int) -> None:
        """Add a value to the list or mapping that is open."""
        if not self.open:
            self.document.value, self.document.line = value, line
            return
        into, anchor, begin, *key = self.open[-1]
        if not key:
            into.append(value)
            if len(self.open) == 1:
                self.document.lines.append(line)
        elif key[0] is _NO_KEY:
            if not isinstance(value, str):
                raise TreeError("a key that is a list or a mapping", line)
            if value in into:
                self.document.repeated.append((line, len(self.document.lines), value))
            self.open[-1] = (into, anchor, begin, value)
        else:
            into[key[0]] = value
            self.open[-1] = (into, anchor, begin, _NO_KEY)
