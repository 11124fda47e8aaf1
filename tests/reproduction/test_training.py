# SPDX-License-Identifier: Apache-2.0
import json
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from lab.data import PAD, batches, read_multi30k, verb_final
from lab.experiments import Plan, read_plan
from lab.training import Training

LAB = Path(__file__).parents[2] / "lab"


def weights(training: Training) -> dict[str, torch.Tensor]:
    return training.model.state_dict()


class PowerCutError(Exception):
    pass


def test_a_training_that_was_broken_off_ends_with_the_same_model(plan, corpus, pieces, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        folder.mkdir()
        Training(plan, "base", corpus, pieces, folder).run()
    once = Training(plan, "milk", corpus, pieces, whole)
    once.run()

    def cut(epoch) -> None:
        raise PowerCutError

    with pytest.raises(PowerCutError):
        Training(plan, "milk", corpus, pieces, parts).run(cut)
    torch.rand(3)  # chance goes on elsewhere
    again = Training(plan, "milk", corpus, pieces, parts)
    assert len(again.history) == 1
    again.run()
    assert json.dumps(again.history) == json.dumps(once.history)
    assert all(torch.equal(value, weights(again)[name]) for name, value in weights(once).items())
    left = Training(plan, "milk", corpus, pieces, parts).run(cut)
    assert json.dumps(left) == json.dumps(once.history), "nothing is left to do"
    assert {path.name for path in parts.iterdir()} == {"base.pt", "milk.pt"}


def test_nothing_starts_from_a_model_that_is_not_ready(plan, corpus, pieces, tmp_path):
    def cut(epoch) -> None:
        raise PowerCutError

    with pytest.raises(PowerCutError):
        Training(plan, "base", corpus, pieces, tmp_path).run(cut)
    with pytest.raises(SystemExit, match="is not yet what the plan calls base: train it first"):
        Training(plan, "milk", corpus, pieces, tmp_path)


def test_training_is_the_same_twice_and_another_with_another_seed(plan, corpus, pieces, tmp_path):
    made = []
    for i, seed in enumerate((1, 1, 2)):
        (tmp_path / str(i)).mkdir()
        other = Plan(plan.scale, {"base": replace(plan.experiments["base"], seed=seed, epochs=1)})
        training = Training(other, "base", corpus, pieces, tmp_path / str(i))
        training.run()
        made.append(weights(training)["embedding.weight"])
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])


def test_a_checkpoint_of_another_configuration_is_refused(plan, corpus, pieces, tmp_path):
    Training(plan, "base", corpus, pieces, tmp_path).run()
    other = Plan(plan.scale, {"base": replace(plan.experiments["base"], rate=1e-4)})
    with pytest.raises(SystemExit, match="was trained by another configuration: remove it"):
        Training(other, "base", corpus, pieces, tmp_path)
    wider = Plan(replace(plan.scale, noise=9.0), plan.experiments)
    with pytest.raises(SystemExit, match="another configuration"):
        Training(wider, "base", corpus, pieces, tmp_path)


def test_progress_tells_loss_latency_weight_and_what_comes_out(plan, corpus, pieces, tmp_path):
    Training(plan, "base", corpus, pieces, tmp_path).run()
    told = []
    history = Training(plan, "milk", corpus, pieces, tmp_path).run(told.append)
    assert told == history
    assert [epoch["epoch"] for epoch in history] == [1, 2]
    names = {"epoch", "loss", "latency", "val_loss", "val_latency", "weight", "DAL", "BLEU"}
    assert all(set(epoch) == names for epoch in history)
    assert history[0]["weight"] != 0.1, "the controller moved λ"


def test_every_pair_is_in_one_batch_and_batches_have_about_so_many_tokens(corpus, pieces):
    pairs = [(s[: 1 + i % len(s)], t) for i, (s, t) in enumerate(pieces.pairs(corpus.parts["train"]))]
    for chance in (None, random.Random(1)):
        found = list(batches(pairs, 300, chance))
        assert all(max(side.numel() for side in batch) <= 1.3 * 300 for batch in found)
        assert len(found) <= 1.3 * sum(len(target) for _, target in pairs) / 300
        seen = [
            (tuple(s[s != PAD].tolist()), tuple(t[t != PAD].tolist()))
            for source, target in found
            for s, t in zip(source, target, strict=True)
        ]
        assert sorted(seen) == sorted((tuple(s), tuple(t)) for s, t in pairs)


def test_the_language_whose_verbs_come_last(corpus):
    assert corpus == verb_final(400)
    for source, target in corpus.parts["train"][:50]:
        words, made = source.split(), target.split()
        assert len(words) % 5 == 0
        for at in range(0, len(words), 5):
            subject, thing, adverb, place, verb = words[at : at + 5]
            assert made[at : at + 5] == [w.upper() for w in (subject, verb, thing, adverb, place)]
            assert verb[0] == "v"


def test_multi30k_that_is_not_all_there_is_named(tmp_path):
    with pytest.raises(SystemExit, match=r"lacks train\.de\.gz, .*test_2018_flickr\.en\.gz\n  fix: lab/README\.md"):
        read_multi30k(tmp_path)


@pytest.mark.data
def test_multi30k_is_read_in_lower_case(data):
    corpus = read_multi30k(data / "multi30k")
    assert {part: len(pairs) for part, pairs in corpus.parts.items()} == {
        "train": 29000, "val": 1014, "test_2016_flickr": 1000, "test_2017_flickr": 1000, "test_2017_mscoco": 461,
        "test_2018_flickr": 1071,
    }  # fmt: skip
    assert list(corpus.tests) == [part for part in corpus.parts if part.startswith("test")]
    assert all(text == text.lower() for pair in corpus.parts["val"] for text in pair)


@pytest.mark.parametrize("name", ["experiments", "smoke"])
def test_plans_are_read_and_every_setting_has_a_model(name):
    plan = read_plan(LAB / name)
    assert len(plan.settings) == sum(len(one.settings) for one in plan.experiments.values())
    assert all(setting.model in plan.experiments for setting in plan.settings.values())
    last = list(plan.experiments)[-1]
    recipe = plan.recipe(last)
    assert recipe[0] == {k: v for k, v in asdict(plan.scale).items() if k not in ("seeds", "model", "reverse")}
    assert [one["name"] for one in recipe[1:]] == ["wait-k", last]


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ('start = "b"', "it starts from b, which no experiment before it trains"),
        ('path = "milkk"', "there is no path 'milkk'; there are offline, wait-k, milk"),
        ('latency = "ap"', "there is no latency 'ap'; there are dal, al"),
        ("target = 3.0", "a target needs `control` above 0, or λ never moves"),
        ('run = [{ policy = "wait_k", label = "k" }]', "there is no policy 'wait_k'; there are offline, wait-k"),
        ('run = [{ policy = "milk", label = "1" }, { policy = "milk", label = "2" }]', "there are two settings a"),
        ('[[train]]\nname = "a"', "there is another experiment of that name"),
    ],
)
def test_an_experiment_that_cannot_be_meant_is_refused(tmp_path, said, fault):
    (tmp_path / "scale.toml").write_text((LAB / "smoke" / "scale.toml").read_text("utf-8"), "utf-8")
    file = tmp_path / "any-name.toml"
    file.write_text(f'family = "f"\n[[train]]\nname = "a"\n{said}\n', "utf-8")
    with pytest.raises(SystemExit) as refused:
        read_plan(tmp_path)
    assert f"{file}: a: {fault}" in str(refused.value)
