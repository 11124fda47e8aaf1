# SPDX-License-Identifier: Apache-2.0
"""The lab's Marian model, in small; and what docs/hf.md says is what lab/results/marian has."""

import os
import re
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
pytest.importorskip("transformers", reason="NOT RUN: transformers is not installed")

import torch

from lab import marian, policies
from lab.data import verb_final
from lab.experiments import read_plan
from lab.results import read_results
from lagging.agents import Settings, run
from lagging.agents.hf import from_name

ROOT = Path(__file__).parents[2]


def test_a_trained_model_is_saved_as_a_folder_that_an_agent_loads(tmp_path):
    corpus, recipe = verb_final(150), {**marian.VERB_FINAL, "watched": 5}
    model, pieces = marian.train(corpus, recipe, tmp_path)
    again, _ = marian.train(corpus, recipe, tmp_path)  # from its checkpoint: nothing is left to do
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    with pytest.raises(SystemExit, match="another recipe"):
        marian.train(corpus, recipe | {"seed": 2}, tmp_path)
    marian.save(model, pieces, tmp_path / "model")
    sources = [source for source, _ in corpus.parts["test"][:3]]
    agent = from_name(str(tmp_path / "model"), {"policy": "offline", "max_tokens": "100"})
    made = run(agent, sources, settings=Settings(joined_by="none", batch=3))
    assert made.prediction.tolist() == [text.strip() for text in marian.translate(model, pieces, sources)]


def _unversioned(text):
    return re.sub(r"\|v:[^|\s]+", "", text)


def test_every_table_of_the_page_is_made_from_what_was_kept():
    text = _unversioned(policies.PAGE.read_text("utf-8"))
    for name, table in policies.made().items():
        block = _unversioned(f"<!-- lab: {name} -->\n\n{table}\n<!-- end of table -->")
        assert block in text, f"python -m lab.policies --draw makes {name} again"


def test_every_figure_of_the_page_is_there_and_no_other():
    shown = set(re.findall(r"\(images/marian/([^)]+)\)", policies.PAGE.read_text("utf-8")))
    assert shown == {path.name for path in policies.IMAGES.iterdir()}


def test_every_setting_was_run():
    kept = {one.setting.name for one in read_results(policies.KEPT)}
    assert kept == {f"{name}-{value:g}" for name, (_, values) in policies.GRIDS.items() for value in values} | {
        "offline-64"
    }


def test_offline_it_is_within_a_point_of_our_own_model_of_its_size():
    plan, recipe = read_plan(ROOT / "lab" / "plans" / "marian-size"), marian.MULTI30K
    for name in ("pieces", "width", "layers", "heads", "inner", "dropout", "tokens", "smoothing", "warm_up"):
        assert getattr(plan.scale, name) == recipe[name], name
    assert plan.experiments["offline"].epochs == recipe["epochs"]
    (own,) = read_results(policies.KEPT.with_name("marian-size"))
    (theirs,) = [one for one in read_results(policies.KEPT) if one.setting.family == "offline"]
    bleu = own.scores["BLEU"]
    same_sentences = bleu.metric.corpus(bleu.statistics[: policies.FIRST])
    assert abs(theirs.scores["BLEU"].value - same_sentences) < 1
    text = policies.PAGE.read_text("utf-8")
    assert f"has a BLEU of {theirs.scores['BLEU'].value:.1f}." in text
    assert f"has {same_sentences:.1f} on the same test sentences" in text


def test_no_text_is_kept():
    for path in policies.KEPT.glob("*.npz"):
        assert path.stat().st_size < 100_000
