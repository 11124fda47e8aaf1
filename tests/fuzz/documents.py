# SPDX-License-Identifier: Apache-2.0
"""Valid files of every format: a tree of what a file says, and how a tree is written as bytes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from fuzz import hostile
from fuzz.hostile import Pairs, Raw

PLAIN = ("a", "good", "day", "to", "you", "Guten", "Tag", "auch", "heute", "7", "3.5", "Haus,", "(x)", "-")
STRANGE = tuple(t for t in hostile.TEXTS if len(t.split()) == 1 and len(t) < 40 and not "\ud800" <= t[0] <= "\udfff")
CHARACTERS = "我用日本語きょう都"


# ---- trees as bytes ---------------------------------------------------------------------------------------------


def dump(value: Any, escaped: bool = True) -> str:
    """A tree as JSON."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, Pairs):
        return (
            "{" + ", ".join(f"{json.dumps(str(k), ensure_ascii=escaped)}: {dump(v, escaped)}" for k, v in value) + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(dump(entry, escaped) for entry in value) + "]"
    return json.dumps(value, ensure_ascii=escaped)


def encode(text: str) -> bytes:
    """A text as bytes, surrogates as what some programs make of them."""
    return text.encode("utf-8", "surrogatepass")


def cell(value: Any) -> str:
    """What a tree has, as a cell or word of a line."""
    return value if isinstance(value, str) else dump(value)


def json_lines(random: Random, tree: list[Any]) -> bytes:
    """A line of JSON for each entry."""
    escaped = random.random() < 0.5
    return encode("".join(dump(entry, escaped) + "\n" for entry in tree))


def json_values(arrays: float) -> Callable[[Random, list[Any]], bytes]:
    """Objects, each on a line; or, as often as is said, in an array, or over several lines."""

    def write(random: Random, tree: list[Any]) -> bytes:
        if random.random() >= arrays:
            return json_lines(random, tree)
        texts = [dump(entry, random.random() < 0.5) for entry in tree]
        if random.random() < 0.5:
            texts = [_over_lines(entry) for entry in tree]
        first, between, last = random.choice((("[", ", ", "]"), ("[\n", ",\n", "\n]\n"), ("", "\n", "\n")))
        return encode(first + between.join(texts) + last)

    return write


def _over_lines(entry: Any) -> str:
    """An object with a line for each key."""
    if not isinstance(entry, Pairs) or not entry:
        return dump(entry)
    return "{\n" + ",\n".join(f" {json.dumps(str(key))}: {dump(value)}" for key, value in entry) + "\n}"


def table(separator: str) -> Callable[[Random, list[Any]], bytes]:
    """Rows of cells."""

    def write(random: Random, tree: list[Any]) -> bytes:
        file = io.StringIO(newline="")
        quoting = random.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
        rows = csv.writer(
            file, delimiter=separator, quoting=quoting, lineterminator=random.choice(("\n", "\n", "\r\n"))
        )
        for row in tree:
            rows.writerow([cell(entry) for entry in row] if isinstance(row, list) else [cell(row)])
        return encode(file.getvalue())

    return write


def words(between: str) -> Callable[[Random, list[Any]], bytes]:
    """Lines of words."""

    def write(random: Random, tree: list[Any]) -> bytes:
        lines = (between.join(map(cell, line)) if isinstance(line, list) else cell(line) for line in tree)
        return encode("".join(line + "\n" for line in lines))

    return write


# ---- what sentences have ----------------------------------------------------------------------------------------


def word(random: Random) -> str:
    """A word; now and then a strange one."""
    return random.choice(STRANGE if random.random() < 0.06 else PLAIN)


def sentence(random: Random, count: int | None = None) -> str:
    """So many words."""
    return " ".join(word(random) for _ in range(random.randrange(6) if count is None else count))


def rising(random: Random, count: int, most: float, whole: bool) -> list[Any]:
    """Times that do not decrease."""
    made = sorted(random.randint(0, int(most)) if whole else round(random.uniform(0, most), 3) for _ in range(count))
    return [min(time, most) for time in made]


def names(random: Random, count: int) -> list[Any]:
    """Ids, no two alike, and mostly none at all or numbers in order."""
    kind = random.randrange(6)
    if kind < 3:
        return list(range(count))
    if kind == 3:
        return [f"talk{row}.wav" for row in range(count)]
    if kind == 4:
        return [f"{random.choice(STRANGE)}{row}" for row in range(count)]
    return random.sample((*hostile.TEXTS, -5, 2**70, 10**30), count)


@dataclass
class Sentence:
    """What a log may say of a sentence."""

    id: Any
    words: list[str]
    delays: list[Any]
    elapsed: list[Any]
    length: Any
    reference: str
    source: str
    document: str


def sentences(random: Random, speech: bool, most: int = 7) -> list[Sentence]:
    """Some sentences, with times in source tokens or milliseconds; now and then degenerate ones."""
    count = random.choice((1, 2, 3, 4, 5, most))
    some = []
    empty, no_source = random.choice((0, 0, 0.2, 1)), random.choice((0, 0, 0, 0.2, 1))
    for name in names(random, count):
        tokens = [] if random.random() < empty else [word(random) for _ in range(random.randrange(1, 6))]
        length = 0 if random.random() < no_source else random.randint(1, 9) * (437.5 if speech else 1)
        delays = rising(random, len(tokens), length, not speech)
        elapsed = [round(time + 100.25 * place, 3) for place, time in enumerate(delays, 1)]
        source = f"talk/{name}.wav" if speech else sentence(random, int(length))
        document = random.choice(("one", "two", "three"))
        some.append(Sentence(name, tokens, delays, elapsed, length, sentence(random), source, document))
    return some


def dropped(random: Random, lines: list[Pairs], *optional: str) -> list[Any]:
    """Objects without some of the keys that they need not have: all of them, or now and then some."""
    gone, some = {key for key in optional if random.random() < 0.15}, random.choice((0, 0, 0, 0.2))
    optional = tuple(key for key in optional if key not in gone)
    return [
        Pairs(pair for pair in line if pair[0] not in gone and not (pair[0] in optional and random.random() < some))
        for line in lines
    ]


# ---- logs as trees ----------------------------------------------------------------------------------------------


def simuleval(random: Random) -> list[Any]:
    """SimulEval's instances.log: text, speech, or speech out."""
    speech = random.random() < 0.5
    out = speech and random.random() < 0.3
    lines = []
    for s in sentences(random, speech):
        line: list[tuple[str, Any]] = [
            ("index", s.id),
            ("prediction", f"{s.id}.wav" if out else " ".join(s.words)),
            ("delays", s.delays),
            ("elapsed", s.elapsed if speech else [0] * len(s.delays)),
            ("prediction_length", len(s.words)),
            ("reference", s.reference),
            ("source", [s.source, "samplerate: 16000 Hz"] if speech else s.source),
            ("source_length", s.length),
        ]
        if out:
            line += [("durations", [250.0] * len(s.words)), ("intervals", [[time, 250.0] for time in s.delays])]
        lines.append(Pairs(line))
    return dropped(random, lines, "reference", "source")


def jsonl(random: Random) -> list[Any]:
    """JSON lines with any of our columns."""
    speech = random.random() < 0.5
    said = [("unit", "ms" if speech else "token")] if random.random() < 0.8 else []
    said += [("level", "word")] if random.random() < 0.5 else []
    columns = random.sample(("elapsed", "reference", "source", "document", "steps", "erased", "offset", "due", "id"), 5)
    lines = []
    for s in sentences(random, speech):
        steps = sorted(random.randrange(3) for _ in s.words)
        more: list[tuple[str, Any]] = [
            ("id", s.id),
            ("reference", s.reference),
            ("source", s.source),
            ("document", s.document),
            ("elapsed", s.elapsed),
            ("steps", steps),
            ("erased", random.randrange(3)),
            ("offset", random.randrange(9000)),
            ("due", rising(random, 2, 900, False)),
        ]
        more = [(key, value) for key, value in more if key in columns]
        if "steps" in columns:
            more += [("arrivals", [100, 200, 300]), ("compute", [1, 2.5, 0])]
        if "due" in columns:
            more += [("shown", [random.choice((None, 5.5)), 1])]
        line = [("delays", s.delays), ("source_length", s.length), ("prediction", " ".join(s.words)), *more, *said]
        lines.append(Pairs(line))
    return lines


def omnisteval(random: Random) -> list[Any]:
    """OmniSTEval's instances.resegmented.jsonl."""
    lines = []
    for place, s in enumerate(sentences(random, True)):
        line: list[tuple[str, Any]] = [
            ("index", place),
            ("docid", 0),
            ("segid", place),
            ("prediction", " ".join(s.words)),
            ("reference", s.reference),
            ("source_length", s.length),
            ("emission_cu", [time - 50 for time in s.delays]),
            ("emission_ca", s.elapsed),
            ("time_to_recording_end", 90000.5 - place),
        ]
        lines.append(Pairs(line))
    return dropped(random, lines, "emission_ca", "time_to_recording_end")


def s2s(random: Random) -> list[Any]:
    """Segments of Speech-to-Speech-Latency, some of which nothing was aligned with."""
    lines, units = [], random.random() < 0.3
    for place, s in enumerate(sentences(random, True)):
        aligned = random.random() < 0.8
        line: list[tuple[str, Any]] = [
            ("index", place),
            ("doc_id", "talk.wav"),
            ("seg_id", place + 1),
            ("reference", s.reference),
            ("source_length", s.length if aligned else None),
            ("prediction", " ".join(s.words) if aligned else ""),
        ]
        if aligned:
            line += [("delays", [time - 50 for time in s.delays]), ("elapsed", s.elapsed), ("recording_end", 90000.5)]
            line += [("raw_units", s.words)] if units else []
        lines.append(Pairs(line))
    return lines


def trajectory(random: Random) -> list[Any]:
    """Chunks of source and target in turn."""
    lines = []
    for _ in range(random.randint(1, 4)):
        size = random.randint(1, 4)
        read, written = (
            [" ".join(word(random) for _ in range(random.randrange(3))) for _ in range(size)] for _ in range(2)
        )
        lines.append(Pairs([("src_trajectory", read), ("target_trajectory", written), ("reference", "a b")]))
    return lines


def simulstream(random: Random) -> list[Any]:
    """simulstream's metrics.jsonl: streams that write and delete."""
    lines: list[Any] = [Pairs([("model_loading_time", 2.5)])]
    mark = random.choice(("▁", " "))
    for stream in range(random.randint(1, 3)):
        lines.append(Pairs([("id", stream), ("metadata", Pairs([("wav_name", f"/data/{stream}.wav")]))]))
        stands: list[str] = []
        for step in range(1, random.randint(2, 5)):
            gone = stands[len(stands) - random.randrange(min(len(stands), 2) + 1) :] if random.random() < 0.5 else []
            new = [random.choice((mark, "")) + word(random) for _ in range(random.randrange(3))]
            stands = stands[: len(stands) - len(gone)] + new
            line = [("id", stream), ("total_audio_processed", step * 1.25), ("computation_time", 0.125)]
            lines.append(Pairs([*line, ("generated_tokens", new), ("deleted_tokens", gone)]))
    return lines


def sltev(random: Random) -> list[Any]:
    """SLTev's .slt: updates, and a last one."""
    lines, time = [], 0
    for _ in range(random.randint(1, 4)):
        start, shown = time, time
        tokens = [word(random) for _ in range(random.randrange(5))]
        for step in range(random.randrange(4)):
            shown += random.choice((100, 0, 250, -50))
            text = [random.choice((token, word(random))) for token in tokens[: step + 1]]
            lines.append(["P", shown, start, start + 100 * step, *text])
        time += random.randint(0, 900)
        lines.append(["C", time + 100, start, time, *tokens])
    return lines


def rw(random: Random) -> list[Any]:
    """READ/WRITE strings."""
    return [[random.choice("RRRWWrw") for _ in range(random.randrange(9))] for _ in range(random.randint(1, 5))]


def fairseq(random: Random) -> list[Any]:
    """Delay- and RW- lines of programs derived from fairseq; ours, and others'."""
    lines: list[Any] = []
    own, marked, kind = random.random() < 0.4, random.random() < 0.5, random.choice(("Delay", "RW", "both"))
    for number, s in enumerate(sentences(random, False)):
        delays = [*s.delays, *(s.delays[-1:] if marked and not own else [])]
        lines.append([f"S-{number}", s.source])
        lines.append([f"T-{number}", s.reference])
        lines.append([f"H-{number}", "-0.5", " ".join(s.words)])
        if kind != "RW" or own:
            lines.append([f"Delay-{number}", "nan", random.choice((delays, " ".join(map(str, delays))))])
        if kind != "Delay" and not own:
            waits = [b - a for a, b in zip([0, *delays], delays, strict=False)]
            actions = "".join("R" * int(wait) + "W" for wait in waits) + "R" * int(s.length - sum(waits))
            lines.append([f"RW-{number}", random.choice((actions, " ".join(actions)))])
        if own:
            lines.append([f"L-{number}", f"source_length:{s.length}", "unit:token", "level:word"])
    return lines


def text(random: Random) -> list[Any]:
    """A prediction per line."""
    return [sentence(random) for _ in range(random.randint(1, 5))]


HEADERS = {
    "id": ("id", "index", "segment"),
    "prediction": ("prediction", "hyp"),
    "source_length": ("source_length", "src len"),
}


def rows(random: Random) -> list[Any]:
    """A table: names, then rows of cells."""
    speech = random.random() < 0.5
    some = sentences(random, speech)
    lists = random.choice((dump, lambda times: " ".join(map(str, times)), lambda times: ";".join(map(str, times))))
    columns: dict[str, list[Any]] = {
        "id": [s.id for s in some],
        "delays": [lists(s.delays) if s.delays else "[]" for s in some],
        "source_length": [s.length for s in some],
        "prediction": [" ".join(s.words) for s in some],
        "reference": [random.choice((s.reference, s.reference, r"\N")) for s in some],
        "document": [s.document for s in some],
        "unit": ["ms" if speech else "token"] * len(some),
        "level": ["word"] * len(some),
    }
    for column in ("id", "reference", "document", "unit", "level"):
        if random.random() < 0.3:
            del columns[column]
    if speech and random.random() < 0.3:
        columns["elapsed"] = [lists(s.elapsed) if s.elapsed else "[]" for s in some]
    header: list[Any] = [random.choice(HEADERS.get(column, (column,))) for column in columns]
    return [header, *map(list, zip(*columns.values(), strict=True))]


# ---- columns of Arrow -------------------------------------------------------------------------------------------


def columns(random: Random) -> list[Any]:
    """A table of Arrow: of each column a name, a type and values; the metadata last."""
    speech = random.random() < 0.5
    some = sentences(random, speech)
    whole = random.choice(("int32", "int64", "float64", "uint8" if not speech else "float32"))
    tree: list[Any] = [
        ["delays", f"list<{whole if not speech else 'float64'}>", [s.delays for s in some]],
        ["source_length", "float64", [s.length for s in some]],
        [
            "prediction",
            random.choice(("string", "string", "large_string", "dictionary")),
            [" ".join(s.words) for s in some],
        ],
        ["document", random.choice(("string", "dictionary")), [s.document for s in some]],
        ["reference", "string", [random.choice((s.reference, s.reference, None)) for s in some]],
    ]
    if random.random() < 0.7:
        ids = [s.id for s in some]
        small = all(isinstance(name, int) and abs(name) < 2**63 for name in ids)
        tree.append(["id", "int64" if small else "string", ids if small else list(map(str, ids))])
    if speech and random.random() < 0.5:
        tree.append(["elapsed", "list<float64>", [s.elapsed for s in some]])
    said = Pairs([("unit", "ms" if speech else "token"), ("level", "word"), ("name", "base"), ("repaired", Pairs())])
    tree.append(["metadata", random.choice(("lagging", "lagging", "other")), said])
    return tree


TYPES = ("string", "float64", "int64", "bool", "list<float64>", "list<string>", "list<int32>", "binary", "large_string")
MORE_TYPES = (
    "dictionary",
    "float16",
    "decimal",
    "timestamp",
    "struct",
    "null",
    "list<list<float64>>",
    "fixed<float64>",
    "uint64",
)


def arrow_type(name: str) -> Any:
    """A type by its name; text for a name that there is not."""
    import pyarrow as pa

    if name.startswith(("list<", "fixed<")):
        inner = arrow_type(name.partition("<")[2][:-1])
        return pa.list_(inner) if name.startswith("list<") else pa.list_(inner, 2)
    named = {
        "dictionary": pa.dictionary(pa.int32(), pa.string()),
        "decimal": pa.decimal128(20, 3),
        "timestamp": pa.timestamp("ms"),
        "struct": pa.struct([("a", pa.float64())]),
    }
    return named[name] if name in named else getattr(pa, name if name != "bool" else "bool_")()


def plain(value: Any) -> Any:
    """A tree as Python has it; what JSON cannot hold is what Python makes of it."""
    if isinstance(value, Pairs):
        return {str(key): plain(inner) for key, inner in value}
    if isinstance(value, Raw):
        try:
            return float(value)
        except ValueError:
            return str(value)
    return [plain(entry) for entry in value] if isinstance(value, list) else value


def arrow_table(tree: list[Any]) -> Any:
    """The table of a tree; a column whose values do not fit its type gets one that they fit, or none."""
    import pyarrow as pa

    arrays, names, metadata = [], [], {}
    for entry in tree:
        if not (isinstance(entry, list) and len(entry) == 3):
            continue
        name, kind, values = entry
        if name == "metadata":
            metadata = {str(kind).encode("utf-8", "replace"): encode(dump(values))}
            continue
        values = plain(values) if isinstance(values, list) else [plain(values)]
        kinds = [
            kind if kind in (*TYPES, *MORE_TYPES) or str(kind).startswith(("list<u", "list<i", "list<f")) else "string"
        ]
        for one in (*kinds, "float64", "list<float64>", "string"):
            try:
                made = pa.array(list(map(str, values)) if one == "string" else values, arrow_type(one))
            except (pa.ArrowException, ValueError, TypeError, OverflowError, UnicodeEncodeError, AttributeError):
                continue
            arrays.append(made)
            names.append(str(name).encode("utf-8", "replace").decode())
            break
    length = min(map(len, arrays), default=0)
    schema = pa.schema(
        [(name, array.type) for name, array in zip(names, arrays, strict=True)], metadata=metadata or None
    )
    return pa.Table.from_arrays([array[:length] for array in arrays], schema=schema)


def parquet(random: Random, tree: list[Any]) -> bytes:
    """A Parquet file, of one row group or several."""
    import pyarrow.parquet as pq

    found, file = arrow_table(tree), io.BytesIO()
    try:
        pq.write_table(found, file, row_group_size=random.choice((1, 2, 1000)))
    except (ValueError, NotImplementedError, OSError):  # a type, or a name, that Parquet does not have
        return b"PAR1"
    return file.getvalue()


def arrow(random: Random, tree: list[Any]) -> bytes:
    """A file of Arrow's own format."""
    import pyarrow as pa

    found, file = arrow_table(tree), io.BytesIO()
    with pa.ipc.new_file(file, found.schema) as writer:
        writer.write_table(found, max_chunksize=random.choice((1, 2, 1000)))
    return file.getvalue()


# ---- files ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Document:
    """A format: the name of a file in it, a valid tree, and how a tree is written."""

    file: str
    make: Callable[[Random], list[Any]]
    write: Callable[[Random, list[Any]], bytes]
