# SPDX-License-Identifier: Apache-2.0
"""Damage to trees (what a file says), to lines, and to bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from fuzz import hostile
from fuzz.hostile import Pairs, Raw

# ---- trees ----------------------------------------------------------------------------------------------------------

Place = tuple[Any, Any]
"""A list or object, and where in it something stands."""


def places(tree: Any) -> Iterator[Place]:
    """Every place of a tree but its root; a tree is lists, `Pairs`, and whatever they hold."""
    for at, entry in enumerate(tree):
        yield tree, at
        inner = entry[1] if isinstance(tree, Pairs) else entry
        if isinstance(inner, list):
            yield from places(inner)


def mutate_tree(random: Random, tree: Any) -> None:
    """Damage one place of a tree, in place."""
    found = list(places(tree))
    if found:
        parent, at = random.choice(found)
        random.choice(KEY_DAMAGE if isinstance(parent, Pairs) and random.random() < 0.4 else DAMAGE)(random, parent, at)


def _get(parent: Any, at: int) -> Any:
    return parent[at][1] if isinstance(parent, Pairs) else parent[at]


def _set(parent: Any, at: int, value: Any) -> None:
    parent[at] = (parent[at][0], value) if isinstance(parent, Pairs) else value


def _replace(random: Random, parent: Any, at: int) -> None:
    old = _get(parent, at)
    if isinstance(old, str) and not isinstance(old, Raw) and random.random() < 0.7:
        _set(parent, at, hostile.text(random))
    elif isinstance(old, int | float) and random.random() < 0.7:
        _set(parent, at, hostile.number(random))
    else:
        _set(parent, at, hostile.value(random))


def _drop(random: Random, parent: Any, at: int) -> None:
    del parent[at]


def _duplicate(random: Random, parent: Any, at: int) -> None:
    parent.insert(random.randrange(len(parent) + 1), parent[at])


def _swap(random: Random, parent: Any, at: int) -> None:
    other = random.randrange(len(parent))
    parent[at], parent[other] = parent[other], parent[at]


def _retype(random: Random, parent: Any, at: int) -> None:
    """The same value as another type."""
    old = _get(parent, at)
    kinds: list[Callable[[], Any]] = [lambda: [old], lambda: str(old)[:200], lambda: None, lambda: Pairs([("a", old)])]
    if isinstance(old, int | float):
        kinds += [lambda: Raw(f"{old}.0"), lambda: -old, lambda: f" {old} ", lambda: bool(old)]
    if isinstance(old, list) and old and not isinstance(old, Pairs):
        kinds += [
            lambda: old[0],
            lambda: old[:-1],
            lambda: old[::-1],
            lambda: old * 2,
            lambda: [],
            lambda: [*old, None],
        ]
    if isinstance(old, str):
        kinds += [lambda: old + hostile.text(random), lambda: old.upper(), lambda: old.split(), lambda: f" {old}\t"]
    _set(parent, at, random.choice(kinds)())


def _copy_value(random: Random, parent: Any, at: int) -> None:
    """Two places with one value: ids that are used twice, and the like."""
    _set(parent, at, _get(parent, random.randrange(len(parent))))


DAMAGE = (_replace, _replace, _retype, _retype, _drop, _duplicate, _swap, _copy_value)


def _rename(random: Random, parent: Any, at: int) -> None:
    key = random.choice((random.choice(hostile.KEYS), hostile.text(random), str(parent[at][0]).upper()))
    parent[at] = (key, parent[at][1])


def _again(random: Random, parent: Any, at: int) -> None:
    """A key that occurs twice, with the same value or another."""
    parent.append((parent[at][0], random.choice((parent[at][1], hostile.value(random)))))


def _add(random: Random, parent: Any, at: int) -> None:
    parent.insert(at, (random.choice(hostile.KEYS), hostile.value(random)))


KEY_DAMAGE = (_rename, _again, _add, _drop, _swap)


# ---- lines ----------------------------------------------------------------------------------------------------------


def mutate_lines(random: Random, data: bytes) -> bytes:
    """Lines swapped, repeated, left out, blank, ended otherwise; the last cut off."""
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    kind = random.randrange(9)
    if kind == 0:
        lines.insert(at, random.choice((b"", b"  ", b"\t", b"\xc2\xa0", b"\x0c")))
    elif kind == 1:
        lines.insert(random.randrange(len(lines) + 1), lines[at])
    elif kind == 2:
        del lines[at]
    elif kind == 3:
        other = random.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 4:
        return data.replace(b"\n", random.choice((b"\r\n", b"\r", b"\n\n", b"\xe2\x80\xa8", b"\x0b")))
    elif kind == 5:
        return data.rstrip(b"\n")[: -random.randrange(1, 20)]
    elif kind == 6:
        lines[at] = lines[at] + lines[random.randrange(len(lines))]
    elif kind == 7:
        return b"\xef\xbb\xbf" * random.choice((1, 2)) + data
    else:
        run = hostile.long_run(random).encode()
        cut = random.randrange(len(lines[at]) + 1)
        lines[at] = lines[at][:cut] + run + lines[at][cut:]
    return b"\n".join(lines)


# ---- bytes ----------------------------------------------------------------------------------------------------------


def mutate_bytes(random: Random, data: bytes) -> bytes:
    """Bytes flipped, left out, repeated, spliced, cut off."""
    if not data:
        return random.choice(hostile.BYTES)
    start = random.randrange(len(data))
    stop = min(len(data), start + random.choice((1, 1, 2, 4, 16, 64)))
    kind = random.randrange(6)
    if kind == 0:
        return data[:start] + bytes([data[start] ^ (1 << random.randrange(8))]) + data[start + 1 :]
    if kind == 1:
        return data[:start] + data[stop:]
    if kind == 2:
        return data[:stop] + data[start:stop] * random.choice((1, 2, 50)) + data[stop:]
    if kind == 3:
        other = random.randrange(len(data))
        return data[:other] + data[start:stop] + data[other:]
    if kind == 4:
        return data[:start]
    return data[:start] + random.choice(hostile.BYTES) + data[start:]


def mutate(random: Random, data: bytes) -> bytes:
    """Damage to lines or bytes, or none."""
    for _ in range(random.choice((0, 0, 0, 1, 1, 2))):
        data = random.choice((mutate_lines, mutate_bytes))(random, data)
    return data
