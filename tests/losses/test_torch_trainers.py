# SPDX-License-Identifier: Apache-2.0
"""Real trainers with a small policy: Lightning with its callback, and the Trainer of transformers as documented."""

import re
import warnings
from pathlib import Path

import pytest
import torch

import lagging
from lagging.errors import UsageError
from lagging.losses.torch import (
    LatencyController,
    LatencyLoss,
    expected_alignment,
    expected_delays,
    hard_alignment,
)

X, Y = torch.tensor([6, 5, 4, 6]), torch.tensor([5, 4, 3, 2])
TRAINING = (Path(__file__).parents[2] / "docs" / "training.md").read_text("utf-8")


class Policy(torch.nn.Module):
    """Probabilities of stopping, for any sentence; it is the more likely the more it has read."""

    def __init__(self):
        super().__init__()
        self.logits = torch.nn.Parameter(torch.zeros(5, 6))

    def forward(self, x, y):
        p = torch.sigmoid(self.logits).expand(len(x), 5, 6)
        delays = expected_delays(expected_alignment(p, x))
        return ((6 - delays) ** 2).mean() / 6, delays, p


@pytest.fixture
def module():
    lightning = pytest.importorskip("lightning", reason="NOT RUN: lightning is not installed")

    class Translator(lightning.LightningModule):
        def __init__(self, weight):
            super().__init__()
            self.model = Policy()
            self.objective = LatencyLoss(weight)

        def training_step(self, batch, index):
            likelihood, delays, _ = self.model(*batch)
            terms = self.objective(likelihood, delays, *batch, step=self.global_step)
            return {"loss": terms.loss, "terms": terms}

        def validation_step(self, batch, index):
            return {"latency": (self.model(*batch)[2], *batch)}

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 0.05)

    return Translator


def fit(module, callback, folder, steps=8):
    import lightning

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), batch_size=2)
    trainer = lightning.Trainer(
        callbacks=[callback], max_steps=steps, logger=False, enable_progress_bar=False, enable_model_summary=False,
        accelerator="cpu", default_root_dir=folder, log_every_n_steps=1,
    )  # fmt: skip
    trainer.fit(module, loader, loader)
    return trainer


@pytest.mark.slow
def test_lightning_logs_the_latencies_and_the_callback_moves_the_weight(module, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from lagging.losses.torch.lightning import LatencyCallback

        made = module(LatencyController(target=2.0, rate=0.01))
        trainer = fit(made, LatencyCallback(), tmp_path)
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    assert {"latency", "system", "lambda", "soft DAL", "sampled DAL", "hard DAL", "gap DAL", "hard AL"} <= set(logged)
    assert made.objective.weight.weight > 0, "slower than the target: λ grows"
    assert 0 < logged["lambda"] < made.objective.weight.weight, "the λ in force in the last step"
    hard = hard_alignment(torch.sigmoid(made.model.logits).expand(4, 5, 6).detach(), X)
    want = [lagging.dal(g[:y].tolist(), source_length=int(x)) for g, x, y in zip(hard, X, Y, strict=True)]
    assert logged["hard DAL"] == pytest.approx(sum(want) / 4, rel=1e-5)
    assert logged["gap DAL"] == pytest.approx(logged["hard DAL"] - logged["soft DAL"], rel=1e-4)
    saved = torch.load(next(tmp_path.rglob("*.ckpt")), weights_only=False)["state_dict"]
    assert saved["objective.weight.weight"] > 0


@pytest.mark.slow
def test_lightning_says_what_its_steps_must_return(module, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from lagging.losses.torch.lightning import LatencyCallback

        with pytest.raises(UsageError, match="no LatencyLoss as its attribute 'loss'"):
            fit(module(0.1), LatencyCallback(objective="loss"), tmp_path)
        made = module(0.1)
        made.training_step = lambda batch, batch_idx: made.model(*batch)[0]
        with pytest.raises(UsageError, match="training_step must return"):
            fit(made, LatencyCallback(), tmp_path)
        fixed = module(0.1)
        fit(fixed, LatencyCallback(), tmp_path)
        assert fixed.objective.weight == 0.1


@pytest.mark.slow
def test_the_trainer_of_the_documentation(tmp_path):
    """The class of the page, in the `Trainer` of transformers."""
    pytest.importorskip("accelerate", reason="NOT RUN: accelerate is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import Trainer, TrainingArguments

        (code,) = re.findall(r"```python\n(class LatencyTrainer.*?)```", TRAINING, re.DOTALL)
        names = {"Trainer": Trainer}
        exec(code, names)

        class Sentences(torch.utils.data.Dataset):
            def __len__(self):
                return len(X)

            def __getitem__(self, i):
                return {"x": X[i], "y": Y[i]}

        class Translator(Policy):
            def forward(self, x, y):
                return *super().forward(x, y)[:2], x, y

        arguments = TrainingArguments(
            output_dir=str(tmp_path), max_steps=6, per_device_train_batch_size=2, learning_rate=0.05, report_to=[],
            disable_tqdm=True, use_cpu=True, save_strategy="no", logging_steps=1, remove_unused_columns=False,
        )  # fmt: skip
        trainer = names["LatencyTrainer"](
            model=Translator(), args=arguments, train_dataset=Sentences(),
            objective=LatencyLoss(LatencyController(target=2.0, rate=0.01)),
        )  # fmt: skip
        trainer.train()
    lambdas = [entry["lambda"] for entry in trainer.state.log_history if "lambda" in entry]
    assert len(lambdas) == 6
    assert lambdas[0] == 0 < lambdas[-1] < trainer.objective.weight.weight
