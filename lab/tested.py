# SPDX-License-Identifier: Apache-2.0
"""What the test of lab/PLAN.md found, as tables of Markdown and as figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes

import lagging
from lab import truth
from lab.claim import (
    FEWEST_SEEDS,
    RESAMPLES,
    Estimate,
    Family,
    Trial,
    complete_seeds,
    decide,
    local_slopes,
    trial,
    trials,
)
from lab.data import CLAUSES, clause_pairs
from lab.experiments import Plan, read_plan
from lab.results import Kept, read_kept
from lab.tables import table
from lagging import plots
from lagging.data.ragged import Floats
from lagging.data.run import Run
from lagging.stats.resamples import SEED

__all__ = ["Found", "draw", "made", "summary"]

HERE = Path(__file__).parent
PLANS = {
    "de-en": "Multi30k, German to English",
    "en-de": "Multi30k, English to German",
    "verb-final": "verb-final corpus",
}
PILOT = "pilot, German to English"
ANYWHERE = (-np.inf, np.inf)
PILOT_FAMILIES = ("wait-k with catch-up", "wait-if-worse", "wait-if-diff", "MILk by target", "MILk trained on AL")
POLICIES = ("local-agreement", "hold", "alignatt", "ralcp")
NUMBERS = ("none", "one", "two", "three", "four", "five")


@dataclass(frozen=True)
class Found:
    """All that was kept, as it is tested.

    Attributes:
        kept: the folder of results; results of plans are in folders of their names.
    """

    kept: Path = HERE / "results"

    @cached_property
    def plans(self) -> dict[str, Plan]:
        """What the plan asks for, without its dense settings."""
        return {name: read_plan(HERE / "plans" / name).until(1) for name in PLANS}

    @cached_property
    def by_plan(self) -> dict[str, dict[str, Trial]]:
        """Of each plan that has complete seeds, its trials, by test set."""
        made = {name: trials(plan, self.kept / name) for name, plan in self.plans.items()}
        return {name: by_test for name, by_test in made.items() if by_test}

    @cached_property
    def in_words(self) -> dict[str, dict[str, Trial]]:
        """The same in words."""
        return {name: trials(self.plans[name], self.kept / name, in_words=True) for name in self.by_plan}

    @cached_property
    def dense(self) -> dict[str, dict[str, Trial]]:
        """The same with the dense settings, where all seeds have them."""
        plans = {name: read_plan(HERE / "plans" / name).until(2) for name in self.by_plan}
        return {
            name: trials(plan, self.kept / name)
            for name, plan in plans.items()
            if len(plan.experiments) > len(self.plans[name].experiments)
            and complete_seeds(plan, self.kept / name) == complete_seeds(self.plans[name], self.kept / name)
        }

    @cached_property
    def pilot(self) -> dict[str, Trial]:
        """The pilot, by test set."""
        first = read_kept(self.kept)
        tests = next(one.trained.tests for one in first if one.setting.family == "wait-k")
        return {test: trial(read_kept(self.kept, test), test, "wait-k", "MILk") for test in tests}

    @cached_property
    def all_trials(self) -> list[tuple[str, Trial]]:
        """Of the pilot and of all plans."""
        pilot = [(f"{PILOT}, {_short(test)}", one) for test, one in self.pilot.items()]
        return pilot + [
            (f"{PLANS[name]}, {_short(test)}" if len(by_test) > 1 else PLANS[name], one)
            for name, by_test in self.by_plan.items()
            for test, one in by_test.items()
        ]

    def members(self, name: str) -> list[Kept]:
        """What was kept of the complete seeds of a plan, of the first test set."""
        seeds = complete_seeds(self.plans[name], self.kept / name)
        return [one for one in read_kept(self.kept / name) if one.trained.experiment["seed"] in seeds]

    @cached_property
    def offline(self) -> dict[str, Trial]:
        """Policies over the Marian model against wait-k over it."""
        kept = read_kept(self.kept / "marian")
        return {name: trial(kept, name, "wait-k", name, bounds=ANYWHERE, least=0.0) for name in POLICIES}

    @cached_property
    def other_families(self) -> dict[str, Trial]:
        """The other families of the pilot against its wait-k."""
        kept = read_kept(self.kept)
        return {name: trial(kept, name, "wait-k", name, bounds=ANYWHERE, least=0.0) for name in PILOT_FAMILIES}

    @cached_property
    def judged(self) -> dict[str, truth.Judged]:
        """What metrics and truth say of rules and of trained systems."""
        made = {"rules, verb-final": truth.judge("verb-final"), "rules, Multi30k": truth.judge("Multi30k")}
        if "verb-final" in self.by_plan:
            made["trained, verb-final"] = truth.judge_trained(self.members("verb-final"))
        return made


def _short(test: str) -> str:
    return test.removeprefix("test_").replace("_", " ")


def made(found: Found) -> dict[str, str]:
    """All tables, by name."""
    return {
        "verdict": verdict(found),
        "gap": gaps(found),
        "gap by AL": gaps_by_al(found),
        "gap, policies": gaps_of(found.offline),
        "gap, others": gaps_of(found.other_families),
        "slopes, tested": slopes(found),
        "slopes, local": local(found),
        "sampled": sampled(found),
        "truth": agreement(found.judged),
        "truth, failures": failures(found.judged),
        "gap, signatures": signatures(found),
        "truth, signatures": _truth_signatures(),
    }


def _shown(one: Estimate, digits: int = 2) -> str:
    value = f"{one.value:+.{digits}f}"
    return "–" if np.isnan(one.value) else f"{value} [{one.low:.{digits}f}, {one.high:.{digits}f}]"


def _by_seeds(one: Estimate, digits: int = 2) -> str:
    return "–" if np.isnan(one.t_low) else f"[{one.t_low:.{digits}f}, {one.t_high:.{digits}f}]"


def summary(plan: Plan, folder: Path) -> str:
    """Of any plan: each setting over its seeds, and the gap of each other family to the first one.

    Only complete seeds count.

    Raises:
        SystemExit: none is complete.
    """
    seeds = complete_seeds(plan, folder)
    if not seeds:
        raise SystemExit(f"{folder}: no seed of the plan is complete: train first")
    kept = {one.setting.name: one for one in read_kept(folder)}
    members = [kept[name] for name, one in plan.settings.items() if plan.experiments[one.model].seed in seeds]
    by_label: dict[tuple[str, str], list[Kept]] = {}
    for one in members:
        by_label.setdefault((one.setting.family, one.setting.label), []).append(one)
    rows = []
    for (family, label), of in by_label.items():
        scored = Family.of(of)
        means = [scored.means[:, 0], scored.means[:, 1], scored.bleu]
        rows.append(
            [family, label, str(len(of)), *(_spread(values, n) for values, n in zip(means, (2, 2, 1), strict=True))]
        )
    shown = table(["family", "setting", "seeds", "AL", "DAL", "BLEU"], rows)
    first, *others = dict.fromkeys(family for family, _ in by_label)
    several = [name for name in (first, *others) if sum(family == name for family, _ in by_label) > 1]
    if first not in several or len(several) < 2:
        return shown
    test = next(iter(members[0].trained.tests))
    of_others = {name: trial(members, test, first, name) for name in several[1:]}
    gap_rows = [
        [name, str(len(one.base)), f"{one.covered[0]:.2f} to {one.covered[1]:.2f}", _shown(one.gap), _by_seeds(one.gap)]
        for name, one in of_others.items()
    ]
    heads = ["family", "seeds", "AL", f"gap to {first} at the same AL [95 %]", "[95 %, seeds alone]"]
    return f"{shown}\n{table(heads, gap_rows)}"


def _spread(values: Floats, digits: int) -> str:
    """`1.41 (1.38 to 1.45)`: the mean of the seeds, the lowest and the highest."""
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ({np.min(values):.{digits}f} to {np.max(values):.{digits}f})"


def verdict(found: Found) -> str:
    """What the declared rule says, in sentences."""
    said = []
    for name in ("de-en", "en-de", "verb-final"):
        plan, by_test = found.plans[name], found.by_plan.get(name, {})
        wanted, there = len(plan.scale.seeds), len(complete_seeds(plan, found.kept / name))
        gaps = [one.gap for one in by_test.values()]
        known = {
            "supported": "the claim is supported",
            "refuted": "the claim is refuted",
            "not decided": "the claim is not decided",
        }
        decision = decide(by_test)
        count = f"{NUMBERS[there]} of the {NUMBERS[wanted]} declared seeds {'is' if there == 1 else 'are'} complete"
        if decision in known:
            ranges = _between([one.value for one in gaps])
            said.append(f"**{PLANS[name]}: {known[decision]}** ({count}): at the same AL, MILk has {ranges} more DAL.")
        elif there:
            ranges = _between([one.value for one in gaps])
            said.append(f"**{PLANS[name]}: no decision** ({count}, and the rule needs three): so far {ranges}.")
        else:
            said.append(f"**{PLANS[name]}: no decision, since {count}.**")
    pilot = [one.gap for one in found.pilot.values()]
    said.append(
        f"In the pilot, with one training of each system, the gap is {_between([one.value for one in pilot])}, and the "
        f"lowest end of its intervals over sentences is {min(one.low for one in pilot):.2f}."
    )
    return "".join(f"- {line}\n" for line in said)


def _between(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return f"{low} tokens" if low == high else f"{low} to {high} tokens"


def gaps(found: Found) -> str:
    """The primary quantity, on each test set."""
    words, dense = (
        {(name, test): one.gap for name, by_test in of.items() for test, one in by_test.items()}
        for of in (found.in_words, found.dense)
    )
    keys = [(name, test) for name, by_test in found.by_plan.items() for test in by_test]
    rows = []
    for place, (name, one) in enumerate(found.all_trials):
        key = keys[place - len(found.pilot)] if place >= len(found.pilot) else None
        covered = f"{one.covered[0]:.2f} to {one.covered[1]:.2f}"
        more = [_shown(of[key]) if key in of else "–" for of in (dense, words)]
        rows.append([name, str(len(one.base)), covered, _shown(one.gap), _by_seeds(one.gap), *more])
    heads = ["corpus, test set", "seeds", "AL", "gap [95 %]", "[95 %, seeds alone]"]
    return table([*heads, "with dense settings", "in words"], rows)


def gaps_by_al(found: Found) -> str:
    """The gap at each AL."""
    rows = []
    for name, one in found.all_trials:
        values = [np.mean(one.gaps_at(float(al))) for al in range(1, 9)]
        rows.append([name, *("–" if np.isnan(value) else f"{value:+.2f}" for value in values)])
    return table(["corpus, test set", *(f"AL {al}" for al in range(1, 9))], rows)


def gaps_of(by_family: Mapping[str, Trial]) -> str:
    """The gap of several families of one training to wait-k, over the AL that both have."""
    rows = [
        [name, f"{one.covered[0]:.2f} to {one.covered[1]:.2f}", _shown(one.gap)]
        if one.covered[0] < one.covered[1]
        else [name, "–", "–"]
        for name, one in by_family.items()
    ]
    return table(["family", "AL", "gap to wait-k [95 %, sentences]"], rows)


def slopes(found: Found) -> str:
    """Slopes, and by how much MILk's is steeper, with and without the choice of settings."""
    rows = []
    for name, one in found.all_trials:
        steeper = one.slope("difference"), one.slope("difference", over_settings=True)
        every = one.slope("difference", all_settings=True)
        fixed, adaptive = one.slope("base").value, one.slope("other").value
        shown = [_shown(steeper[0]), f"[{steeper[1].low:.2f}, {steeper[1].high:.2f}]", str(steeper[1].dropped)]
        rows.append([name, str(len(one.base)), f"{fixed:.2f}", f"{adaptive:.2f}", *shown, _shown(every)])
    heads = ["corpus, test set", "seeds", "wait-k", "MILk", "difference [95 %]", "[95 %, settings too]"]
    return table([*heads, "left out", "difference, all settings [95 %]"], rows)


def local(found: Found) -> str:
    """The slope between neighbouring settings of MILk."""
    rows: list[list[str]] = []
    sets = [(PILOT + ", 2016 flickr", next(iter(found.pilot.values())))]
    sets += [(PLANS[name], next(iter(by_test.values()))) for name, by_test in found.by_plan.items()]
    for name, one in sets:
        orders = {family.labels for family in one.other.values()}
        if len(orders) > 1:  # the order of λ differs between seeds: each seed by itself
            for seed, family in one.other.items():
                rows += _local_rows(f"{name}, seed {seed}", [family])
        else:
            rows += _local_rows(name, list(one.other.values()))
    return table(["corpus", "from", "to", "AL in the middle", "slope (lowest to highest seed)"], rows)


def _local_rows(name: str, families: Sequence[Family]) -> Iterable[list[str]]:
    labels = families[0].labels
    every = np.array([local_slopes(family) for family in families])
    for i in range(len(labels) - 1):
        middle, steep = every[:, i, 0].mean(), every[:, i, 1]
        spread = f" ({steep.min():.2f} to {steep.max():.2f})" if len(families) > 1 else ""
        yield [name, labels[i], labels[i + 1], f"{middle:.1f}", f"{steep.mean():.2f}{spread}"]


def sampled(found: Found) -> str:
    """DAL of expected delays, expected DAL, and DAL of hard decisions of MILk, on references; means of the seeds."""
    rows = []
    for name in found.by_plan:
        by_label: dict[str, list[Mapping[str, float]]] = {}
        for one in found.members(name):
            if one.setting.family == "MILk":
                by_label.setdefault(one.setting.label, []).append(one.trained.expected)
        for label, seeds in sorted(by_label.items(), key=lambda item: -float(item[0].removeprefix("λ="))):
            soft, drawn, hard = (np.mean([of[k] for of in seeds]) for k in ("DAL", "sampled DAL", "hard DAL"))
            share = f"{(drawn - soft) / (hard - soft):.0%}" if abs(hard - soft) > 0.05 else "–"
            values = [f"{soft:.2f}", f"{drawn:.2f}", f"{hard:.2f}", f"{(drawn - soft) / drawn:.1%}", share]
            rows.append([PLANS[name], label, str(len(seeds)), *values])
    heads = [
        "corpus",
        "λ",
        "seeds",
        "DAL(E[g])",
        "E[DAL(g)]",
        "DAL, hard",
        "bound too low by",
        "share of hard − expected",
    ]
    return table(heads, rows)


def agreement(judged: Mapping[str, truth.Judged]) -> str:
    """The share of pairs on which each metric agrees with the truth."""
    rows = []
    for name, one in judged.items():
        mixed = one.mixed()
        for cost in truth.COSTS:
            shares = [(one.agreement(m, cost), one.agreement(m, cost, mixed)) for m in truth.LATENCIES]
            best = max(share for share, _ in shares)
            shown = [
                f"**{share:.2f}** / {other:.2f}" if share == best else f"{share:.2f} / {other:.2f}"
                for share, other in shares
            ]
            rows.append([name, f"{cost:g}", *shown])
    return table(["systems", "c", *truth.LATENCIES], rows)


def failures(judged: Mapping[str, truth.Judged], cost: float = 1.0) -> str:
    """Of each metric, how many pairs it puts the other way round, and the pair that differs most in truth."""
    rows = []
    for name, one in judged.items():
        true = dict(zip((system for system, _ in one.systems), one.values[:, truth.COSTS.index(cost)], strict=True))
        adaptive = dict(one.systems)
        for metric in truth.LATENCIES:
            pairs = list(one.wrong(metric, cost))
            if not pairs:
                rows.append([name, metric, "0", "–", "–"])
                continue
            early, late = max(pairs, key=lambda pair: true[pair[1]] - true[pair[0]])
            mixed = [pair for pair in pairs if adaptive[pair[0]] != adaptive[pair[1]]]
            favoured = sum(adaptive[pair[1]] for pair in mixed)
            worst = f"{late} ({true[late]:.1f}) before {early} ({true[early]:.1f})"
            rows.append([name, metric, f"{len(pairs)} of {len(one.pairs)}", f"{favoured} of {len(mixed)}", worst])
    heads = [
        "systems",
        "metric",
        "wrong way round",
        "of the mixed pairs, for the adaptive one",
        "worst, with the true lags",
    ]
    return table(heads, rows)


def signatures(found: Found) -> str:
    """How the gaps were made."""
    run = read_kept(found.kept)[0].run
    lines = [str(score.signature) for score in lagging.score(run, ["AL", "DAL", "AP"])]
    lines += [
        f"gaps: polylines of DAL over AL, mean over AL 1 to 8; 95 %, percentiles, {RESAMPLES} resamples, "
        f"seed {SEED} (sentences) and {SEED + 1} (training seeds, from {FEWEST_SEEDS} on)"
    ]
    return "\n".join(["```", *lines, "```", ""])


def _truth_signatures() -> str:
    """How the metrics of the rules on Multi30k were made; on other corpora n is another."""
    lines = truth.signatures(truth.multi30k(), truth.systems()[0])
    lines.append(f"pairs: 95 %, percentiles, {truth.RESAMPLES} resamples, seed {SEED}")
    return "\n".join(["```", *lines, "```", ""])


def draw(found: Found, folder: Path) -> None:
    """All figures, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    plots.save(_gap_figure(found), folder / "gap.svg")
    plots.save(_policies_figure(found), folder / "gap-policies.svg")
    plots.save(_truth_figure(found), folder / "truth.svg")
    if "verb-final" in found.by_plan:
        plots.save(_verb_final_figure(found), folder / "verb-final.svg")
    pyplot.close("all")


def _axes(right: str, up: str, width: float = 7.2) -> Axes:
    _, ax = pyplot.subplots(figsize=(width, 3.6), layout="constrained")
    ax.set_xlabel(right)
    ax.set_ylabel(up)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _gap_figure(found: Found) -> Axes:
    """The gap over AL: the mean of the seeds, and each seed."""
    ax = _axes("AL (source tokens)", "DAL of MILk − DAL of wait-k", 9.5)
    at = np.arange(1.0, 8.01, 0.25)
    for name, one in found.all_trials:
        estimates = [one.gap_at(float(al)) for al in at]
        (line,) = ax.plot(at, [e.value for e in estimates], label=f"{name} (seeds: {len(one.base)})")
        low, high = ([getattr(e, end) for e in estimates] for end in ("low", "high"))
        ax.fill_between(at, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    ax.axhline(0, color="0.6", linewidth=0.8)
    ax.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def _policies_figure(found: Found) -> Axes:
    """The gaps of policies over one offline model, and of the other families of the pilot."""
    ax = _axes("gap to wait-k at the same AL (tokens)", "")
    rows = [(f"{name} (Marian model)", one) for name, one in found.offline.items()]
    rows += [(f"{name} (pilot)", one) for name, one in found.other_families.items()]
    for place, (_, one) in enumerate(reversed(rows)):
        if np.isnan((gap := one.gap).value):
            continue
        sides = [[gap.value - gap.low], [gap.high - gap.value]]
        ax.errorbar([gap.value], [place], xerr=sides, marker="o", color="C0", capsize=3)
    ax.set_yticks(range(len(rows)), [name for name, _ in reversed(rows)])
    ax.axvline(0, color="0.6", linewidth=0.8)
    return ax


def _truth_figure(found: Found) -> Axes:
    """Pairwise accuracy over the time that a listener needs for a word."""
    judged = found.judged
    _, axes = pyplot.subplots(
        1, len(judged), figsize=(3.4 * len(judged) + 1.6, 3.4), sharey=True, squeeze=False, layout="constrained"
    )
    for ax, (name, one) in zip(axes[0], judged.items(), strict=True):
        for number, metric in enumerate(truth.LATENCIES):
            shares = [one.agreement(metric, cost) for cost in truth.COSTS]
            ax.plot(truth.COSTS, shares, marker="osv^D<>X"[number], label=metric, markersize=4, linewidth=1.2)
        ax.set_title(name, fontsize=10)
        ax.set_xlabel("time for a target word, c (source words)")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("pairs in the true order")
    axes[0][-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    first: Axes = axes[0][0]
    return first


def _verb_final_figure(found: Found) -> Axes:
    """DAL over AL of each seed, and the best policy."""
    (one,) = found.by_plan["verb-final"].values()
    ax = _axes("AL (source words)", "DAL (source words)")
    for name, families, colour in (("wait-k", one.base, "C0"), ("MILk", one.other, "C1")):
        for number, family in enumerate(families.values()):
            x, y = family.means[:, 0], family.means[:, 1]
            label = f"{name} (training seeds: {len(families)})" if number == 0 else None
            ax.plot(x, y, marker=".", color=colour, linewidth=0.8, label=label)
    best = _best_policy()
    scores = lagging.score(best, ["AL", "DAL"])
    ax.plot(
        [scores["AL"].value],
        [scores["DAL"].value],
        marker="*",
        markersize=12,
        color="C2",
        linestyle="none",
        label="best policy: each word as soon as its source is read",
    )
    ax.legend(frameon=False, fontsize=8)
    return ax


def _best_policy() -> Run:
    """Each word of the references as soon as its source word, and those of the words before it, have been read."""
    pairs = clause_pairs(CLAUSES)["test"]
    delays = [np.maximum.accumulate(np.array(places, dtype=np.float64)).tolist() for *_, places in pairs]
    return Run.from_delays(delays, source_length=[len(source) for source, *_ in pairs], level="word", name="best")
