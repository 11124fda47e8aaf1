# SPDX-License-Identifier: Apache-2.0
"""A search for two commands that give different numbers under one signature.

Small logs, in which whatever can be read, counted, cut or left out in two ways is, are scored by many commands. Of one
log, with one text for its references, a signature must have one value.
"""

import contextlib
import io
import itertools
import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lagging.cli import main
from lagging.metrics.registry import registered
from lagging.scoring.signature import Signature

Value = tuple[float | None, float | None, float | None]

# ---- commands ---------------------------------------------------------------------------------------------------


def lagging(*words: str) -> dict[str, Any] | None:
    """What a command gives, as JSON; None if it refuses."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()), pytest.raises(SystemExit) as end:
        main([*words, "-f", "json", "-q", "--no-progress"])
    return json.loads(out.getvalue()) if not end.value.code else None


def rounded(value: float | None) -> float | None:
    """The ends of intervals of several systems at once are the same but for the last bits."""
    return None if value is None else float(f"{value:.10g}")


class Search:
    """What each signature was seen with."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], dict[Value, str]] = {}
        self.commands = self.refused = 0

    def run(self, data: Callable[[str], str], *words: str) -> None:
        """Score by a command; `data` is what the system of that name was scored on."""
        self.commands += 1
        found = lagging(*words)
        if found is None:
            self.refused += 1
            return
        table = Path("quarantine.tsv")  # what was set aside is named there, and no part of the data
        aside = table.read_text("utf-8") if "quarantine" in words else ""
        table.unlink(missing_ok=True)
        for one in found["scores"]:
            about = data(one["system"]) + json.dumps(one.get("group", {}), sort_keys=True) + aside
            value = rounded(one["score"]), rounded(one["low"]), rounded(one["high"])
            self.take(about, one["signature"], value, words)

    def take(self, about: str, signature: str, value: Value, words: Iterable[str]) -> None:
        """Keep a value; without its interval, too."""
        plain = str(Signature.parse(signature).without_interval())
        for key, numbers in ((signature, value), (plain, (value[0], None, None))):
            self.seen.setdefault((about, key), {}).setdefault(numbers, " ".join(words))

    @property
    def clashes(self) -> list[str]:
        """Signatures with two values, and the commands that gave them."""
        return [
            "\n  ".join(
                [signature, *(f"{value[0]}  {value[1]} {value[2]}  {words}" for value, words in values.items())]
            )
            for (_, signature), values in sorted(self.seen.items())
            if len(values) > 1
        ]


# ---- logs -------------------------------------------------------------------------------------------------------

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "house",
    "sees",
    "runs",
    "to",
    "of",
    "big",
    "small",
    "old",
    "and",
    "then",
    "goes",
    "away",
]
SIGNS = "我你他的是不好天大小人来去看说今明很多少"
RANDOM = random.Random(7)


def write(path: str, rows: Iterable[dict[str, Any]]) -> None:
    Path(path).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def write_lines(path: str, texts: Iterable[str]) -> None:
    Path(path).write_text("".join(f"{text}\n" for text in texts), "utf-8")


def sentence(least: int = 4, most: int = 9) -> str:
    return " ".join(RANDOM.choices(WORDS, k=RANDOM.randint(least, most)))


def noisy(text: str, glue: str = " ") -> str:
    """A text with some words changed, lost or said twice."""
    out: list[str] = []
    for word in text.split(" ") if glue else text:
        out += RANDOM.choices([[word], [], [word, word], [RANDOM.choice(WORDS if glue else SIGNS)]], [7, 1, 1, 2])[0]
    return glue.join(out)


def rising(n: int, last: float) -> list[float]:
    return sorted(round(RANDOM.uniform(0, last), 1) for _ in range(n))


def row(index: int, text: str, reference: str | None, unit: str, **more: Any) -> dict[str, Any]:
    """A sentence with a delay per word."""
    n, x = len(text.split()), RANDOM.randint(4, 9)
    if unit == "token":
        times = {"delays": [float(min(x, 1 + t)) for t in range(n)], "source_length": x}
    else:
        delays = rising(n, 900.0 * x)
        if n > 2:
            delays[-2:] = [900.0 * x - 0.5] * 2  # within the tolerance of one millisecond
        times = {
            "delays": delays,
            "source_length": 900 * x,
            "elapsed": [d + 90 * (t + 1) for t, d in enumerate(delays)],
        }
    return {
        "index": index,
        "prediction": text,
        "reference": reference,
        "unit": unit,
        "lang": "de" if index % 3 else "fr",
        **times,
        **more,
    }


def sentences(unit: str) -> list[dict[str, Any]]:
    """Sentences with end marks, tags, punctuation, empty hypotheses, and references that are odd, empty or missing."""
    rows = []
    for index in range(12):
        reference: str | None = sentence()
        text = noisy(reference or "")
        if index % 4 == 1:
            text += " </s>"
        if index % 4 == 2:
            text, reference = f"{text} , [noise] !", f"{reference} !"
        if index == 5:
            reference = f"{reference}  so  it is "
        rows.append(row(index, "" if index == 3 else text, {7: None, 8: ""}.get(index, reference), unit))
    return rows


def make_short() -> None:
    for unit in ("token", "ms"):
        write(f"{unit}.jsonl", sentences(unit))
    whole = [row(i, noisy(text), text, "ms") for i, text in enumerate(sentence() for _ in range(12))]
    for one in whole[:3]:
        one["prediction"] += " , ."
        one["reference"] += " ."
        one["delays"] += [one["delays"][-1]] * 2
        one["elapsed"] += [one["elapsed"][-1]] * 2
    write("whole.jsonl", whole)
    write_lines("whole.ref", [one["reference"] for one in whole])
    for name, speed in (("even", 0.2), ("fast", 0.1)):
        words = [(i, k, word) for i, one in enumerate(whole) for k, word in enumerate(one["reference"].split())]
        write_lines(f"{name}.ctm", [f"{i} 1 {speed * k:.1f} {speed:.1f} {word}" for i, k, word in words])
    for name, late in (("first", 0), ("last", 1)):
        write_lines(f"{name}.align", [f"0-{late} 1-1" for _ in whole])
    bare = [{k: v for k, v in one.items() if k != "prediction"} for one in whole]
    write("bare.jsonl", reversed(bare))
    write_lines("bare.hyp", [one["prediction"] for one in whole])
    chars = []
    for index in range(8):
        reference = (
            "".join(RANDOM.choices(SIGNS, k=8)) + (" " if index % 2 else "") + "".join(RANDOM.choices(SIGNS, k=3))
        )
        text = noisy(reference, "") + ("</s>" if index == 2 else "")
        spaced = index % 2 == 0  # white space may have a delay of its own
        n = len(text.replace("</s>", "$").replace(" ", "") if spaced else text.replace("</s>", "$"))
        chars.append(
            {
                "index": index,
                "prediction": text,
                "reference": reference,
                "delays": rising(n, 5000),
                "source_length": 5000,
                "unit": "ms",
            }
        )
    write("chars.jsonl", chars)
    # by words or by characters, other rows are faulty; and some are faulty either way
    mixed = [row(i, noisy(text), text, "token") for i, text in enumerate(sentence() for _ in range(10))]
    for one in mixed[::2]:
        n = len(one["prediction"].replace(" ", ""))
        one["delays"] = [float(min(one["source_length"], 1 + t)) for t in range(n)]
    write("mixed.jsonl", mixed)
    faulty = [row(i, noisy(text), text, "ms") for i, text in enumerate(sentence() for _ in range(9))]
    faulty[1]["delays"][1:3] = [2000.0, 500.0]
    faulty[4]["delays"][0] = -300.0
    faulty[6]["elapsed"][2] = 1.0
    write("faulty.jsonl", faulty)
    twice = [row(i, noisy(text), text, "ms") for i, text in enumerate(sentence() for _ in range(6))]
    write(
        "twice.jsonl",
        [*twice, row(2, noisy(sentence()), sentence(), "ms"), row(4, noisy(sentence()), sentence(), "ms")],
    )
    own = [row(i, noisy(text), text, "ms", reference_length=6) for i, text in enumerate(sentence() for _ in range(6))]
    for one in own:
        one["delays"].append(one["delays"][-1])
        one["elapsed"].append(one["elapsed"][-1])
    write("own.jsonl", own)
    guessed = [
        {k: v for k, v in row(i, noisy(text), text, "token").items() if k != "unit"}
        for i, text in enumerate(sentence() for _ in range(6))
    ]
    write("guessed.jsonl", guessed)
    write_lines("plain.txt", [one["prediction"] for one in whole])


def make_systems() -> None:
    """Systems that lack other segments, or have no value in others, in equal numbers."""
    references = [sentence() for _ in range(10)]
    for name, without, empty in (
        ("a", (), (9,)),
        ("b", (1,), (2,)),
        ("c", (3,), (4,)),
        ("d", (9,), ()),
        ("e", (), (1, 2)),
        ("f", (), (3, 4)),
    ):
        rows = [row(i, noisy(text), text, "ms", document=f"d{i % 3}") for i, text in enumerate(references)]
        for i in empty:
            rows[i] = row(i, "", references[i], "ms", document=f"d{i % 3}")
        write(f"sys-{name}.jsonl", [one for one in rows if one["index"] not in without])


def make_talks() -> None:
    """Two talks whose hypotheses get stuck, so that every way to cut them cuts elsewhere."""
    entries, lines, talks, tokens = [], [], [], []
    for talk in ("x", "y"):
        written, begin = [], 0.0
        for number in range(12):
            reference = sentence(5, 8)
            length = round(0.4 * len(reference.split()), 2)
            entries.append((f"{talk}.wav", round(begin, 2), length, reference))
            begin += length + 0.3
            written.append(noisy(reference) + " ." * (number % 3 == 0) + " the the the" * (number == 5))
        text = " ".join(written)
        n = len(text.split())
        delays = [1200.0 + 1000 * begin * t / n for t in range(n)]
        common = {"index": len(talks), "prediction": text, "source": f"{talk}.wav"}
        talks.append(
            {
                **common,
                "delays": delays,
                "elapsed": [d + 40 * t for t, d in enumerate(delays)],
                "source_length": 1000 * begin,
                "unit": "ms",
            }
        )
        words = sum(len(e[3].split()) for e in entries if e[0] == f"{talk}.wav")
        tokens.append(
            {
                **common,
                "delays": [float(min(words, 3 + t)) for t in range(n)],
                "source_length": words,
                "unit": "token",
                "document": f"{talk}.wav",
            }
        )
        lines.append(n)
    write("talks.jsonl", talks)
    write("talks-token.jsonl", tokens)
    write("talks-char.jsonl", [{**t, **_by_character(t)} for t in talks])
    Path("talks.yaml").write_text(
        "".join(f"- {{duration: {x}, offset: {o}, wav: {w}}}\n" for w, o, x, _ in entries), "utf-8"
    )
    write_lines("talks.ids", [w for w, *_ in entries])
    write_lines("talks.ref", [text for *_, text in entries])
    write_lines("talks.src", [text for *_, text in entries])
    write_lines("talks.txt", [t["prediction"] for t in talks])


def _by_character(talk: dict[str, Any]) -> dict[str, Any]:
    n = len("".join(talk["prediction"].split()))
    delays = [1200.0 + (talk["source_length"]) * t / n for t in range(n)]
    return {"delays": delays, "elapsed": [d + 9 * t for t, d in enumerate(delays)]}


def make_stream() -> None:
    """The same talks as chunks with sub-words, of which words and characters can be made."""
    talks = [json.loads(line) for line in Path("talks.jsonl").read_text("utf-8").splitlines()]
    lines = []
    for number, talk in enumerate(talks):
        lines.append({"id": number, "metadata": {"wav_name": talk["source"]}})
        words = talk["prediction"].split()
        for at in range(0, len(words), 3):
            tokens = [
                piece for word in words[at : at + 3] for piece in (f"▁{word[:2]}", *([word[2:]] if word[2:] else []))
            ]
            lines.append(
                {
                    "id": number,
                    "total_audio_processed": round((1000 + talk["delays"][at]) / 1000, 3),
                    "computation_time": 0.2 + 0.1 * (at % 4),
                    "generated_tokens": tokens,
                    "deleted_tokens": [],
                }
            )
    write("stream.jsonl", lines)


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Search]:
    """All commands, run once."""
    RANDOM.seed(7)
    with contextlib.chdir(tmp_path_factory.mktemp("logs")):
        for make in (make_short, make_systems, make_talks, make_stream):
            make()
        found = Search()
        for about, words in (*short(), *others(), *cuts(), *comparisons()):
            found.run(about if callable(about) else lambda _, about=about: about, *words)
        yield found


# ---- what is asked for ------------------------------------------------------------------------------------------

LATENCY = "AP,AL,LAAL,DAL,YAAL,AL(length=reference),DAL(write_cost=1),LagPercentile,MaxLag,HiddenLag,SWF,EFSW,DSPTV"
TIMES = "AL(clock=elapsed),LAAL(clock=queue),DAL(clock=omnisteval),StartOffset,EndOffset(clock=elapsed)"
MEANS = "AL(mean=token),LAAL(empty=source),AP(mean=token,length=reference),CW,Segments,NumChunks"
QUALITY = "BLEU,chrF,TER,BLEU(tok=char),WER,CER,WER(norm=lower-nopunct)"
LONG = "LongYAAL,StreamLAAL,StreamLAAL(version=1),StreamDAL,LagDrift,LAAL,AL(length=reference)"
SPOKEN = "WordLag,WordLag(of=start),WordLag(clock=elapsed),WordLagPercentile(p=50),WordsMatched,MAAL,EVS"
WORD_CHANGES = (
    (),
    ("--strip", "punctuation"),
    *(
        ("--word-alignment", f"{name}.align", "--aligned-with", target)
        for name in ("first", "last")
        for target in ("hypothesis", "reference")
    ),
)
CONVENTIONS = ("paper", "simuleval", "omnisteval")
Command = tuple[str | Callable[[str], str], tuple[str, ...]]


def short() -> Iterator[Command]:
    """Sentences, by all conventions, with and without what changes a log while it is read."""
    logs = ("token", "ms", "chars", "own", "guessed")
    changes = (
        *((), ("--strip", "eos"), ("--strip", "punctuation,tags"), ("--repair", "monotone,clip")),
        *(("--unit", "ms"), ("--unit", "token"), ("--level", "token")),
    )
    for log, named, change in itertools.product(logs, CONVENTIONS, changes):
        for metrics in (LATENCY, TIMES, MEANS, QUALITY):
            yield log, ("score", f"{log}.jsonl", "--convention", named, "-m", metrics, *change)
    for named, change in itertools.product(CONVENTIONS, changes):
        metrics = "LBLEU,LBLEU(final=weighted),BLEU"
        yield "token", ("score", "token.jsonl", "--convention", named, "-m", metrics, *change)
    for log, m in itertools.product(("ms", "chars"), registered()):
        yield log, ("score", f"{log}.jsonl", "-m", m.name)
        yield log, ("score", f"{log}.jsonl", "-m", f"{m.name},BLEU")


ASIDE = ("--on-error", "quarantine")
FIXES = (
    ASIDE,
    ("--repair", "monotone", *ASIDE),
    *(
        ("--repair", names)
        for names in ("clip", "first", "last", "monotone,clip", "clip,monotone", "clip,monotone,last")
    ),
)


def others() -> Iterator[Command]:
    """References and hypotheses from files, groups, intervals, repairs, rows set aside, formats."""
    both = f"{LATENCY},{QUALITY}"
    files = ("--reference", "whole.ref", "-m", both)
    for change in ((), ("--strip", "punctuation"), *(("--convention", named) for named in CONVENTIONS), ("--ci",)):
        yield "whole", ("score", "whole.jsonl", "-m", both, *change)
        yield "whole", ("score", "whole.jsonl", *files, *change)
        for more in ((), ("--strip", "eos")):
            yield "bare", ("score", "bare.jsonl", "--hypothesis", "bare.hyp", *files, *change, *more)
    groups = ("--by", "lang")
    for log, change in itertools.product(("token", "ms", "whole"), ((), ("--ci",), groups, (*groups, "--ci"))):
        yield log, ("score", f"{log}.jsonl", "-m", "AP,AL,LAAL,DAL,BLEU,chrF,AL(mean=token)", *change)
        yield log, ("score", f"{log}.jsonl", "-m", "LAAL", *change)
    for level, log in itertools.product((None, "word", "char", "token"), ("mixed", "faulty", "twice")):
        for fix in FIXES:
            for metrics in ("AL,LAAL,DAL,BLEU,chrF", "AL(clock=elapsed),DAL(clock=omnisteval)"):
                yield log, ("score", f"{log}.jsonl", "-m", metrics, *fix, *(("--level", level) if level else ()))
    for log, form, named in itertools.product(("token", "ms", "chars"), ("simuleval", "jsonl"), CONVENTIONS):
        yield log, ("score", f"{log}.jsonl", "--format-in", form, "--convention", named, "-m", both)
    for name, change in itertools.product(("even", "fast"), WORD_CHANGES):
        yield "whole", ("score", "whole.jsonl", "--word-times", f"{name}.ctm", "-m", SPOKEN, *change)
        yield "whole", ("score", "whole.jsonl", "--word-times", f"{name}.ctm", "-m", "WordLag,MAAL", *groups, *change)
    for level in ((), ("--level", "word"), ("--level", "char")):
        yield "plain", ("score", "plain.txt", "--format-in", "text", "--reference", "whole.ref", "-m", QUALITY, *level)


ALIGNERS = (
    (),
    *(("--aligner", name) for name in ("timed", "soft", "mwer", "omnisteval", "mweralign", "mwersegmenter")),
)


def cuts() -> Iterator[Command]:
    """Talks, cut in every way there is."""
    none = ("--segmentation", "talks.ids")
    times = (("--segmentation", "talks.yaml"), none, (*none, "--source", "talks.src"))
    levels = ((), ("--level", "word"), ("--level", "char"))
    reference = ("--reference", "talks.ref")
    for log, by, aligner in itertools.product(("talks", "talks-token", "talks-char"), times, ALIGNERS):
        if (by == times[0]) != (log == "talks-token") or by == none:  # others measure in another unit
            for metrics in (QUALITY,) if by == none else (LONG, QUALITY):
                yield log, ("score", f"{log}.jsonl", *by, *reference, "-m", metrics, *aligner)
    for aligner, by, level in itertools.product(ALIGNERS, times[:2], levels):
        yield "text", ("score", "talks.txt", "--format-in", "text", *by, *reference, "-m", QUALITY, *aligner, *level)
        for metrics in (QUALITY,) if by == none else (LONG, QUALITY):
            yield "stream", ("score", "stream.jsonl", *by, *reference, "-m", metrics, *aligner, *level)
    changes = (
        *(("--strip", "punctuation"), ("--convention", "simuleval"), ("--convention", "omnisteval")),
        *(("--ci",), ("--ci", "--resample", "segment"), ("--regime", "iwslt25"), ("--regime", "iwslt26")),
    )
    for log, change in itertools.product(("talks", "stream"), changes):
        metrics = f"LongYAAL,LAAL,AL(length=reference),{QUALITY}"
        yield log, ("score", f"{log}.jsonl", *times[0], *reference, "-m", f"{metrics},DAL(clock=queue)", *change)


def comparisons() -> Iterator[Command]:
    """Systems, beside ever other ones, and alone."""
    names = "abcdef"
    metrics = ("-m", "AL,LAAL,DAL,BLEU,LagPercentile")
    for name in names:
        for change in ((), ("--ci",), ("--ci", "--resample", "document")):
            yield f"sys-{name}", ("score", f"sys-{name}.jsonl", *metrics, *change)
    for some in itertools.chain.from_iterable(itertools.combinations(names, k) for k in (2, 3)):
        logs = tuple(f"sys-{name}.jsonl" for name in some)
        yield str, ("compare", *logs, *metrics, "--resamples", "100")
        if len(some) == 2:
            yield str, ("curve", *logs, "--resamples", "100")
    for change in ((), ("--resample", "document")):  # as many resamples as of one alone
        yield str, ("compare", "sys-a.jsonl", "sys-d.jsonl", *metrics, *change)


# ---- what must hold ---------------------------------------------------------------------------------------------


def test_no_signature_has_two_values(search):
    assert not search.clashes, f"{len(search.clashes)}\n" + "\n".join(search.clashes[:20])


def test_the_search_is_wide(search):
    assert search.commands - search.refused > 800
    assert len(search.seen) > 2000


SETTLED = ("-m", "--convention", "--strip", "--level", "--repair", "--aligner")
"""What a signature says itself; but a log that says its own unit is believed, unless --unit overrules it."""
UNLIKE = ("--regime", "--by", "--on-error")
"""Other results than that of one log."""


def repeated(words: list[str], signature: str) -> list[str]:
    """A command, with a signature instead of what that says."""
    pairs = itertools.pairwise(["", *words])
    kept = [word for before, word in pairs if word not in SETTLED and before not in SETTLED]
    return [*kept, "--like", signature]


def test_a_signature_gives_its_value_again(search):
    rows = [
        (signature, value[0], words.split(" "))
        for (_, signature), values in sorted(search.seen.items())
        for value, words in values.items()
        if value[1:] == (None, None) and words.startswith("score") and not any(word in words for word in UNLIKE)
    ]
    wrong = []
    for signature, value, words in rows[::20]:
        command = repeated([word for word in words if word != "--ci"], signature)
        found = lagging(*command)
        if found is None and value is None and "|n:0|" in signature:
            continue  # alone, a metric that cannot be computed is refused
        again = None if found is None else found["scores"][0]
        if again is None or again["signature"] != signature or rounded(again["score"]) != value:
            wrong.append(f"{signature} {value}: {again}\n  {' '.join(words)}\n  {' '.join(command)}")
    assert len(rows) > 1000
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:10])


def test_what_a_comparison_left_out_is_signed_and_not_repeated_as_if_it_were_all(search):
    left = [one for _, one in search.seen if "|common:" in one]
    assert len(left) > 50
    for signature in left[:3]:
        out = io.StringIO()
        with contextlib.redirect_stderr(out), pytest.raises(SystemExit) as end:
            main(["score", "sys-a.jsonl", "--like", signature])
        assert end.value.code == 2
        assert "only the systems that were compared tell which" in out.getvalue()
        assert "lagging compare" in out.getvalue()
