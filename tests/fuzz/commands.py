# SPDX-License-Identifier: Apache-2.0
"""Command lines: any options on any logs; how a command ends, and what it prints."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import click

import lagging
from fuzz import hostile
from fuzz.cases import Case
from fuzz.documents import encode, sentence, word
from fuzz.formats import LOGS
from fuzz.hostile import Pairs
from fuzz.logs import METRICS, damaged
from fuzz.mutators import mutate, mutate_tree
from fuzz.oracles import Difference, agree, outcome, strict_json
from fuzz.spoken import WORD_TIMES
from fuzz.tables import COLUMNS, PUBLISHED, SEGMENTATIONS, yaml_list
from fuzz.terminal import ended, number_of, run
from fuzz.words import FIELDS
from lagging.cli import cli
from lagging.comparison.published import read_scores

COMMANDS = (
    *("score", "validate", "convert", "inspect", "compare", "curve", "report", "resegment", "simulate", "metrics"),
    "watch",
)
"""Those that end by themselves, `watch` with `--once`."""

UNTRIED = {"engine", "master", "spm_model", "debug", "no_progress"}
"""Options that start other programs, need a model, or ask for a traceback."""

NEEDS = {
    "quarantine": "on_error",
    "resample": "ci",
    "subset": "segmentation",
    "aligner": "segmentation",
    "family": "published",
    "where": "published",
    "lower": "columns",
    "word_alignment": "word_times",
    "aligned_with": "word_alignment",
}
"""Options that mean nothing without another."""

EXCLUDES = {"like": ("names", "named", "task"), "by": ("segmentation", "task"), "task": ("named", "aligner")}

PLUGINS = (
    b"import lagging\n@lagging.register('FUZZED')\ndef fuzzed(s):\n    return s.delays.lengths[:, None] * 1.0\n",
    *(b"import sys\nsys.exit(3)\n", b"raise RuntimeError('\\x1b[31mno')\n", b"def f(:\n", b"1 / 0\n", b"\xff", b""),
)
"""Files for `--plugin`: one with a metric, and others."""

FILES = (
    *("segmentation", "reference", "source", "target", "hypothesis", "published", "word_times", "word_alignment"),
    "plugin",
)
"""Options that name a file to be read."""

ENDINGS = ("jsonl", "jsonl", "csv", "tsv", "rw", "slt", "parquet", "arrow", "log", "out", "html")


# ---- making them ------------------------------------------------------------------------------------------------


class Maker:
    """A command line, and the files that it names."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.files: dict[str, bytes] = {}
        self.tree: list[Any] | None = None

    def log(self, format: str = "") -> str:
        """The name of one more log, good, degenerate, or a little damaged; mostly of the same segments as the first."""
        random = self.random
        if self.tree is None or random.random() < 0.3:
            self.document = LOGS[format or random.choice(sorted(LOGS))]
            self.tree = self.document.make(random)
        tree = deepcopy(self.tree)
        for _ in range(random.choice((0, 0, 0, 1))):
            mutate_tree(random, tree)
        number = len(self.files)
        name = f"{'abc'[number % 3]}{number}.{self.document.file.partition('.')[2]}"
        return self.named(name, self.document.write(random, tree))

    def recordings(self) -> list[str]:
        """The names of a log of whole recordings, and of what cuts it into segments, as options."""
        random = self.random
        tree = LOGS["simulstream"].make(random)
        wavs = [f"{stream}.wav" for stream in range(3) if any(dict(line).get("id") == stream for line in tree)]
        entries = [Pairs([("wav", wav), ("offset", at), ("duration", 1.5)]) for wav in wavs for at in (0, 2)]
        reference = encode("".join(sentence(random) + "\n" for _ in entries))
        log = self.named("a0.jsonl", LOGS["simulstream"].write(random, tree))
        return [
            log,
            *("--segmentation", self.named("dev.yaml", yaml_list(random, entries))),
            *("--reference", self.named("dev.de", reference)),
        ]

    def sweep(self) -> list[str]:
        """The same system at several settings, each in a folder: as folders, or as a pattern."""
        random = self.random
        form, values = random.choice(
            (("step_{}", "0.3 0.5 1.0"), ("wait-{}", "1 3 5"), ("k={}-b={}", "1 3 5"), ("{}", "a b c"))
        )
        folders = [f"runs/{form.format(value, value)}" for value in values.split()]
        document = LOGS[random.choice(("simuleval", "jsonl", "simulstream"))]
        tree = document.make(random)
        for folder in folders:
            damaged_tree = deepcopy(tree)
            for _ in range(random.choice((0, 0, 0, 1))):
                mutate_tree(random, damaged_tree)
            self.files[f"{folder}/{document.file}"] = document.write(random, damaged_tree)
        if random.random() < 0.1:
            self.files["runs/more/readme.txt"] = b"nothing\n"
        return random.choice((folders, ["runs/*"], ["new=runs/*"], ["runs/*", self.log()]))

    def named(self, name: str, content: bytes) -> str:
        """The name of one more file."""
        self.files[name] = content
        return name

    def beside(self, option: str) -> str:
        """The name of a file of the kind that an option takes."""
        random = self.random
        kinds = {"segmentation": SEGMENTATIONS, "published": PUBLISHED, "columns": COLUMNS, "word_times": WORD_TIMES}
        documents = kinds.get(option)
        if documents is not None:
            document = random.choice(documents)
            return self.named(document.file, damaged(random, document, random.choice(((0,), (0, 0, 1)))))
        if option == "plugin":
            return self.named(f"plugin{len(self.files)}.py", random.choice(PLUGINS))
        if option == "renames":
            pairs = [
                f"{random.choice(('a0', 'b1', '0.3', '3', 'x'))}: {word(random)}\n"
                for _ in range(random.choice((1, 2)))
            ]
            return self.named("names.yaml", mutate(random, encode("".join(pairs))))
        if option == "word_alignment":
            pairs = [
                " ".join(f"{random.randrange(4)}-{random.randrange(3)}" for _ in range(3)) + "\n" for _ in range(3)
            ]
            return self.named("base.align", mutate(random, encode("".join(pairs))))
        lines = "".join(sentence(random) + "\n" for _ in range(random.choice((1, 3, 5))))
        return self.named(f"{option}.txt", encode(lines))

    def text(self, option: str) -> str:
        """What is given for an option that takes any text."""
        random = self.random
        first = next(iter(self.files), "x").partition(".")[0]
        if random.random() < 0.05:
            return "".join(letter for letter in hostile.text(random) if letter.isprintable())
        if option in FILES:
            return self.beside(option)
        metric = ",".join(random.sample(METRICS, random.randint(1, 3)))
        pool: dict[str, tuple[str, ...]] = {
            "names": (metric, "BLEU", "AL,DAL", "TER,chrF", "AL(length=reference)", "AL_CA", "LagPercentile(p=90)"),
            "worst": (metric,),
            "latency": (metric, "AL"),
            "quality": (metric, "BLEU"),
            "against": ("AL,DAL", metric),
            "ranks": (metric, "AL,DAL,BLEU"),
            "metric": (random.choice(METRICS), "AL(length=reference)", "LagPercentile(p=90)"),
            "like": (
                "|".join(["AL", *(f"{key}:{values[0]}" for key, values in FIELDS.items() if random.random() < 0.3)]),
            ),
            "by": ("document", "id", "lang", "document,id", "reference"),
            "conditions": (
                f"{random.choice(METRICS)}>1",
                "AL.high<5",
                "DAL.undefined>0",
                "BLEU<1e9",
                "AL>5s",
                "AL>200 ms",
            ),
            "margins": ("BLEU=0.5", "AL=1", "AL=200ms", "DAL=1.5s"),
            "columns": (f"COMET={self.beside('columns')}", f"{first}:COMET={self.beside('columns')}"),
            "renames": (f"{first}=Ours", "0.3=Ours (0.3)", "a0=b1", self.beside("renames")),
            "at": ("1.5s", "754s", "12:34", "3", "x"),
            "figure": ("out.svg", "out.svg", "out.png", "out.x"),
            "caption": (r"A \caption{x} & 100 %", "Ü"),
            "label": ("tab:latency", "a b}"),
            "lower": ("COMET",),
            "column_map": ("delays=emission_cu", "id=document", "prediction=reference"),
            "repair": ("monotone", "clip", "first", "last", "torn", "monotone,clip"),
            "strip": ("eos", "tags", "punctuation", "eos,tags"),
            "output": tuple(f"out.{ending}" for ending in ENDINGS),
            "segment_scores": ("segments.tsv", "segments.parquet"),
            "quarantine": ("bad.tsv", "bad.parquet"),
            "moves": ("moves.tsv",),
            "ids": ("0", "1", "talk1.wav", "x"),
            "at_latency": ("2", "2500ms", "1.5s", "x"),
            "base": (first, "a0", "x"),
            "fail_if_worse": (first, "a0"),
            "family": ("system", "model", "model,k"),
            "where": ("system=*", "model=wait*", "x=y"),
            "name": (
                "wait-3",
                "antagonist-2",
                "offline",
                "wait-0",
                "segment-2",
                "prescient",
                "punctuation",
                "wait-1-catchup",
            ),
            "title": ("A <b>title</b>",),
        }
        return random.choice(pool.get(option, ("x",)))

    def value(self, option: click.Parameter) -> list[str]:
        """An option as it is written."""
        random, kind = self.random, option.type
        flag = option.opts[-1]
        if getattr(option, "is_flag", False):
            return [flag]
        if isinstance(kind, click.Choice):
            usual = {"form": "json", "on_error": "quarantine", "level": "word"}.get(option.name or "", "")
            return [flag, usual if usual and random.random() < 0.6 else str(random.choice(list(kind.choices)))]
        if isinstance(kind, click.IntRange):
            return [flag, str((kind.min or 0) + random.choice((0, 1, 2, 100)))]
        if isinstance(kind, click.types.FloatParamType):
            return [flag, random.choice(("1", "50", "99.9", "9000", "0", "nan"))]
        return [flag, self.text(option.name or "")]

    def given(self, name: str, command: click.Command) -> list[str]:
        """What a command is about: logs, a policy, metrics."""
        random = self.random
        kinds = {p.name: p.nargs for p in command.params if isinstance(p, click.Argument)}
        if "log" in kinds or "logs" in kinds:
            cuts = any(p.name == "segmentation" for p in command.params)
            if cuts and random.random() < (0.8 if name == "resegment" else 0.15):
                return self.recordings()
            if name == "watch":
                return [self.log("stream" if random.random() < 0.8 else "") for _ in range(random.choice((1, 1, 2, 3)))]
            if name == "curve" and random.random() < 0.15:
                named = [] if random.random() < 0.3 else ["--unit", random.choice(("token", "ms"))]
                return ["--published", self.beside("published"), *named]
            if "logs" in kinds and random.random() < 0.15:
                return self.sweep()
            several = random.choice((2, 2, 3) if name in ("compare", "report", "curve") else (1, 1, 2, 3))
            return [self.log() for _ in range(several if "logs" in kinds else 1)]
        return [self.text("name" if name == "simulate" else "metric")]

    def arguments(self) -> list[str]:
        """A command, its logs and its options."""
        random = self.random
        name = random.choice(COMMANDS)
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        given = [name, *self.given(name, command)]
        options = {p.name: p for p in command.params if isinstance(p, click.Option) and p.name not in UNTRIED}
        wished = [o for o in random.sample(sorted(options), min(len(options), random.randint(0, 4))) if o != "like"]
        wished += [
            "resamples",
            *(["form"] if random.random() < 0.4 else []),
            *(["like"] if random.random() < 0.03 else []),
        ]
        wished += [NEEDS[option] for option in wished if option in NEEDS and random.random() < 0.9]
        wished += [option for option, p in options.items() if p.required or option == "once"]
        unwished = {other for option in wished for other in EXCLUDES.get(option, ()) if random.random() < 0.9}
        for option in options:
            if option in wished and (option not in unwished or options[option].required):
                given += self.value(options[option])
        return given


def make_command(random: Random) -> Case:
    """A command line."""
    maker = Maker(random)
    arguments = maker.arguments()
    return Case("command", maker.files, {"arguments": arguments})


# ---- what must hold of them ---------------------------------------------------------------------------------------


def check_command(case: Case) -> None:
    """A command ends as it should, and prints what it should."""
    case.write(Path())
    arguments = case.options["arguments"]
    code, out, err = run(*arguments, stdin=case.options.get("stdin", "").encode("latin-1"))
    ended(arguments, code, out, err)
    if arguments[0] in ("score", "compare"):
        quiet = [text for text in arguments if text not in ("-q", "--quiet")]
        quieter = quiet if quiet != arguments else [*arguments, "--quiet"]
        agree("how the command ended, and with --quiet or without", code, run(*quieter)[0])
    wanted = case.options.get("code")
    if wanted is not None:
        agree(f"how the command ended, and should have: {err[-300:]}", code, wanted)
    for name in case.options.get("writes", ()):
        agree(f"whether {name} was written", Path(name).is_file(), True)


# ---- scores made again ------------------------------------------------------------------------------------------


def make_like(random: Random) -> Case:
    """A good log, and metrics."""
    format = random.choice([name for name in sorted(LOGS) if name != "text"])
    files = {LOGS[format].file: damaged(random, LOGS[format], (0,))}
    convention = random.choice(("paper", "simuleval", "omnisteval"))
    return Case("like", files, {"metrics": random.sample(METRICS, 3), "convention": convention})


def check_like(case: Case) -> None:
    """A score is made again by its signature; and is read from what was printed."""
    path = case.write(Path())
    read = outcome(lambda: lagging.read(path))
    if read.error is not None:
        return
    for name in case.options["metrics"]:
        found = outcome(lambda name=name: lagging.score(read.value, [name], convention=case.options["convention"]))
        if found.error is not None:
            continue
        (score,) = found.value
        arguments = ["score", str(path), "--like", str(score.signature), "-f", "json"]
        code, out, err = run(*arguments)
        ended(arguments, code, out, err)
        if code:
            raise Difference(f"{score.signature} cannot be made again: {err[-300:]}")
        (again,) = strict_json(out)["scores"]
        agree(f"{score.signature} and made again", repr(float(score.value)), repr(number_of(again["score"])))
        Path("scores.json").write_text(out, "utf-8")
        (published,) = read_scores(Path("scores.json"))
        agree(f"{score.signature} and read again", repr(float(score.value)), repr(published.score))
