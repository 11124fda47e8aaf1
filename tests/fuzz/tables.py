# SPDX-License-Identifier: Apache-2.0
"""Files beside logs: segmentations, scores that other tools wrote, scores of segments."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from random import Random
from typing import Any

from fuzz.cases import Case
from fuzz.documents import Document, encode, json_lines, json_values, names, parquet, sentence, table, words
from fuzz.hostile import Pairs
from fuzz.logs import damaged
from fuzz.mutators import mutate
from fuzz.oracles import Difference, agree, outcome
from fuzz.parsers import RepeatedKey, floats, lines_of, number, once
from fuzz.parsers import objects as texts_of_objects
from lagging.comparison.published import read_scores
from lagging.longform.segmentation import Segmentation, read_segmentation
from lagging.scoring.column_files import read_column

# ---- segmentations ----------------------------------------------------------------------------------------------


def entries(random: Random) -> list[Any]:
    """Segments of recordings, one after the other."""
    made, time = [], 0.0
    for _ in range(random.randint(1, 5)):
        length = round(random.uniform(0, 9), 3)
        made.append(Pairs([("duration", length), ("offset", round(time, 3)), ("speaker_id", "s"), ("wav", "talk.wav")]))
        time += length
    return made


def one_list(random: Random, tree: list[Any]) -> bytes:
    """A JSON list, on one line or several."""
    lines = json_lines(random, tree).strip(b"\n").split(b"\n")
    return b"[" + random.choice((b", ", b",\n")).join(lines) + b"]\n"


def yaml_list(random: Random, tree: list[Any]) -> bytes:
    """A YAML list, each entry on a line."""
    return b"".join(b"- " + line + b"\n" for line in json_lines(random, tree).split(b"\n") if line)


def block_list(random: Random, tree: list[Any]) -> bytes:
    """A YAML list in block style."""
    lines = []
    for entry in tree:
        pairs = entry if isinstance(entry, Pairs) else [("wav", entry)]
        lines += [f"{' -'[not place]} {key}: {value}" for place, (key, value) in enumerate(pairs)]
    return encode("\n".join(lines) + "\n")


def numbered(random: Random) -> list[Any]:
    """Lines of OmniSTEval's text segmentation."""
    return [[f"docid={place // 2},", f"segid={place % 2}"] for place in range(random.randint(1, 5))]


def recordings(random: Random) -> list[Any]:
    """The name of a recording per segment."""
    return [[random.choice(("talk1", "talk2", "ü.wav"))] for _ in range(random.randint(1, 5))]


SEGMENTATIONS = (
    Document("dev.yaml", entries, yaml_list),
    Document("dev.yaml", entries, block_list),
    Document("dev.json", entries, one_list),
    Document("dev.jsonl", entries, json_lines),
    Document("dev.txt", numbered, words("")),
    Document("dev.docids", recordings, words("")),
)


def make_segmentation(random: Random) -> Case:
    """A segmentation, and perhaps references."""
    document = random.choice(SEGMENTATIONS)
    files = {document.file: damaged(random, document)}
    if random.random() < 0.3:
        lines = "".join(sentence(random) + "\n" for _ in range(random.randint(1, 5)))
        files[random.choice(("reference", "source"))] = mutate(random, encode(lines))
    return Case("segmentation", files)


def check_segmentation(case: Case) -> None:
    """Names and times are those of a second reading."""
    path = case.write(Path())
    texts = {name: Path(name) for name in ("reference", "source") if name in case.files}
    found = outcome(lambda: read_segmentation(path, **texts))
    if found.error is None:
        again = _segments(path)
        if again is not None:
            agree("segments, and by a second reading", _said(found.value, again), again)


def _said(made: Segmentation, again: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = zip(made.document.tolist(), made.offset.tolist(), made.duration.tolist(), strict=True)
    said = [
        {"wav": name.strip(), "offset": f"{start:.15g}", "duration": f"{length:.15g}"} for name, start, length in rows
    ]
    return [{key: row[key] for key in (again[0] if again else row)} for row in said]


def _segments(path: Path) -> list[dict[str, Any]] | None:
    """The entries of a segmentation; None for what is left to the reader under test."""
    lines = lines_of(path)
    first = next((line for line in lines if line.strip()), "").lstrip()
    try:
        if path.suffix == ".yaml" or re.match(r"-(\s|$)|---|#|%YAML", first):
            import yaml

            try:
                found = yaml.load("\n".join(lines), Loader=yaml.BaseLoader)
            except (yaml.YAMLError, RecursionError):  # in Python it is stricter than in C
                return None
        elif first.startswith("{"):
            found = [json.loads(line, object_pairs_hook=once) for line in lines if line.strip()]
        elif path.suffix == ".json" or first.startswith("["):
            found = json.loads("\n".join(lines), object_pairs_hook=once)
        else:
            told = [re.fullmatch(r"\s*docid=(.+?)\s*,\s*segid=.+", line) for line in lines]
            return [
                {"wav": (line if match is None else match[1]).strip()} for line, match in zip(lines, told, strict=True)
            ]
    except RepeatedKey as error:
        if str(error) not in ("wav", "offset", "duration"):
            return None
        raise Difference(f"an entry has the key {str(error)!r} twice, and is accepted") from None
    timed = any(set(entry) != {"wav"} for entry in found or ())
    return [_segment(entry, timed) for entry in found or ()]


def _segment(entry: dict[str, Any], timed: bool) -> dict[str, Any]:
    times = (
        {key: f"{round(number(float(entry[key])) * 1000, 6):.15g}" for key in ("offset", "duration")} if timed else {}
    )
    return {"wav": str(entry["wav"]).strip(), **times}


# ---- scores of other tools --------------------------------------------------------------------------------------

LABELS = (
    "BLEU",
    "AL",
    "LAAL",
    "AL (CA)",
    "LongYAAL (CU)",
    "DAL",
    "AP",
    "StreamLAAL",
    "chrF",
    "COMET",
    "WER",
    "AL_CA",
    "x",
)


def score(random: Random) -> Any:
    """A score as tools write it."""
    return random.choice((round(random.uniform(-9, 99), 3), random.randrange(99), 0.5, 2000.25))


def flat(random: Random) -> list[Any]:
    """A JSON object of numbers, perhaps in groups."""
    numbers = Pairs((label, score(random)) for label in random.sample(LABELS, 3))
    kind = random.randrange(4)
    if kind == 0:
        return [Pairs([("Quality", numbers), ("Latency", Pairs([("AL", 3.5), ("AP", 0.5)]))])]
    if kind == 1:
        return [Pairs([("tool", "OmniSTEval v0.1.2"), ("scores", numbers)])]
    return [numbers]


def own(random: Random) -> list[Any]:
    """What `lagging score -f json` prints."""
    keys = ("system", "metric", "score", "unit", "signature")
    some = [
        ("base", label, score(random), "token", f"{label}|n:1|v:0.2.0.dev0") for label in random.sample(LABELS[:6], 2)
    ]
    return [Pairs([("schema", 1), ("scores", [Pairs(zip(keys, row, strict=True)) for row in some])])]


def pairs(random: Random) -> list[Any]:
    """A name and a value per line."""
    return [["metric", "value"], *([label, score(random)] for label in random.sample(LABELS, 4))]


def wide(random: Random) -> list[Any]:
    """A row of names above a row of values."""
    labels = random.sample(LABELS[:8], 3)
    index = random.random() < 0.3
    return [["", *labels] if index else labels, [*([0] if index else []), *(score(random) for _ in labels)]]


def report(random: Random) -> list[Any]:
    """OmniSTEval's evaluation_report.txt."""
    lines = ["OmniSTEval v0.1.2", "=====", "Settings", "-----", "BLEU tokenizer    13a", "Scores", "-----"]
    return [*lines, *(f"{label}    {score(random)}" for label in random.sample(LABELS, 3))]


def printed_scores(random: Random) -> list[Any]:
    """What simulstream's scorers print, among other lines."""
    ideal, aware = score(random), random.choice((score(random), "None"))
    latency = f"LatencyScores(ideal_latency={ideal}, computational_aware_latency={aware})"
    return ["INFO loading", latency, f"comet score: {score(random)}"]


def speech_scores(random: Random) -> list[Any]:
    """The table of Speech-to-Speech-Latency."""
    labels = ["ca_unaware_yaal", "ca_aware_yaal", "bleu", "ending_offset", "ca_ending_offset"]
    return [labels, [score(random) for _ in labels]]


def talked(random: Random) -> list[Any]:
    """A table of scores between lines of text."""
    labels = random.sample(LABELS[:8], 2)
    return [["INFO", "loading"], ["", *labels], [0, *(score(random) for _ in labels)], ["done", "in", "3", "s"]]


SCORES = (
    Document("scores.log", printed_scores, words("")),
    Document("scores.resegmented.csv", speech_scores, table("\t")),
    Document("scores", talked, words("  ")),
    Document("scores.json", flat, json_lines),
    Document("scores.json", own, json_lines),
    Document("scores.tsv", pairs, table("\t")),
    Document("scores.tsv", wide, table("\t")),
    Document("scores", wide, words("  ")),
    Document("evaluation_report.txt", report, words("")),
)


def settings(random: Random) -> list[Any]:
    """A table of systems at several settings, as it is published."""
    labels = ["AL", "BLEU", random.choice(("DAL", "LAAL", "LAAL_ms", "COMET", "x"))]
    head = [random.choice(("system", "system", "model")), random.choice(("setting", "k")), *labels]
    return [head, *([name, k, *(score(random) for _ in labels)] for name in ("wait-k", "mma") for k in (1, 3, 5))]


PUBLISHED = (
    *SCORES,
    *(Document("published.csv", settings, table(",")), Document("published.tsv", settings, table("\t"))) * 3,
)
"""What `--published` takes."""


def make_scores(random: Random) -> Case:
    """A score file."""
    document = random.choice(SCORES)
    return Case("scores", {document.file: damaged(random, document)})


def check_scores(case: Case) -> None:
    """Scores are finite numbers or NaN; those of a flat JSON object are its own."""
    path = case.write(Path())
    found = outcome(lambda: read_scores(path))
    if found.error is not None:
        return
    for one in found.value:
        agree(f"whether {one.label} is finite", math.isinf(one.score), False)
    if path.suffix == ".json":
        record = json.loads(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
        if isinstance(record, dict) and all(isinstance(value, int | float) for value in record.values()):
            expected = {label: repr(float(value) + 0.0) for label, value in record.items()}
            # Python's reader of JSON takes -0 for 0
            agree("scores, and the JSON", {one.label: repr(one.score + 0.0) for one in found.value}, expected)


# ---- scores of segments -----------------------------------------------------------------------------------------


def bare(random: Random) -> list[Any]:
    """A number per line."""
    return [[score(random)] for _ in range(random.randint(1, 5))]


def named(random: Random) -> list[Any]:
    """A table of ids and scores, with names above or without."""
    ids = names(random, random.randint(1, 5))
    return [
        *([["id", random.choice(("score", "COMET"))]] if random.random() < 0.7 else []),
        *([i, score(random)] for i in ids),
    ]


def objects(random: Random) -> list[Any]:
    """JSON lines of ids and scores."""
    return [Pairs([("id", i), ("score", score(random))]) for i in names(random, random.randint(1, 5))]


def printed(random: Random) -> list[Any]:
    """What comet-score prints: segments of a system or two, and their means."""
    systems = random.sample(("base.txt", "out/new.txt"), random.randint(1, 2))
    values = [round(random.uniform(0, 1), 4) for _ in range(random.randint(1, 4))]
    lines: list[Any] = [
        [name, f"Segment {k}", f"score: {value:.4f}"] for k, value in enumerate(values) for name in systems
    ]
    return [*lines, *([name, f"score: {sum(values) / len(values):.4f}"] for name in systems)]


def lists(random: Random) -> list[Any]:
    """What comet-score writes as JSON."""
    records = [Pairs([("src", "a"), ("COMET", score(random))]) for _ in range(random.randint(1, 4))]
    return [random.choice((Pairs([("base.txt", records)]), records))]


def arrow_scores(random: Random) -> list[Any]:
    """A table of Arrow with ids, scores and perhaps a model."""
    ids = [str(name) for name in range(random.randint(1, 5))]
    tree: list[Any] = [["id", "string", ids], ["score", "float64", [score(random) for _ in ids]]]
    return [*tree, *([["model", "string", ["m"] * len(ids)]] if random.random() < 0.5 else [])]


COLUMNS = (
    Document("base.comet", printed, words("\t")),
    Document("base.comet", lists, json_lines),
    Document("base.parquet", arrow_scores, parquet),
    Document("base.comet", bare, words("")),
    Document("base.comet", named, table("\t")),
    Document("base.comet", named, table(",")),
    Document("base.comet", objects, json_values(0.3)),
)


def make_column(random: Random) -> Case:
    """Scores of segments."""
    document = random.choice(COLUMNS)
    return Case("column", {document.file: damaged(random, document)})


def check_column(case: Case) -> None:
    """A number per line is that number."""
    path = case.write(Path())
    found = outcome(lambda: read_column(path, "COMET", "base"))
    if found.error is not None:
        return
    if path.suffix == ".parquet":
        return
    lines = lines_of(path)
    while lines and not lines[-1].strip():
        lines.pop()
    if lines and lines[0].lstrip().startswith("["):
        return
    values = list(map(repr, found.value.values.tolist()))
    if found.value.ids is None and all(re.fullmatch(r"[-+.\deE]+|nan", line.strip(), re.ASCII) for line in lines):
        agree("scores, and the lines", values, [repr(float(line.strip())) for line in lines])
    if lines and lines[0].lstrip().startswith("{"):
        records = [json.loads(text) for text in texts_of_objects(path)]
        said = floats([record.get("score") for record in records], nulls=True)
        if all({*record} <= {"id", "score"} for record in records) and said is not None:
            agree("scores, and the JSON", values, list(map(repr, said)))
