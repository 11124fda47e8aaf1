# SPDX-License-Identifier: Apache-2.0
"""Latency in a training by Lightning: a callback that adjusts λ, and logs it with the latencies."""

from __future__ import annotations

from typing import Any

from lagging.errors import optional

optional("lightning", "lightning")

import lightning  # noqa: E402
from lightning.pytorch.callbacks import Callback  # noqa: E402
from torch import Tensor  # noqa: E402

from lagging.errors import UsageError  # noqa: E402
from lagging.losses.torch.metric import LatencyMetric  # noqa: E402
from lagging.losses.torch.objective import LatencyController, LatencyLoss, LossTerms  # noqa: E402

__all__ = ["LatencyCallback"]


class LatencyCallback(Callback):  # type: ignore[misc]
    """Adjust λ after every step, and log λ and the latencies of training and validation.

    The module has the objective as an attribute, so that λ is in its checkpoint. Its steps return a dictionary:
    `training_step` has the `LossTerms` under "terms" and `terms.loss` under "loss", and `validation_step`, if there is
    one, what `LatencyMetric.update` takes under "latency". Logged are, after each step, "latency", "system" (that of
    the slowest head) and "lambda"; after each validation "soft DAL", "sampled DAL", "hard DAL", "gap DAL", and the same
    of AL and AP, over all processes.

    Args:
        objective: the name of the attribute of the module that is the `LatencyLoss`.
        metric: the metric of validation; `LatencyMetric()` if not given. `LatencyMetric(heads=True)` for several heads.

    Raises:
        UsageError: the module has no such objective, or a step returns no terms.

    Example:
        For `lightning.Trainer(callbacks=[callback])`, and a module whose objective is `self.criterion`:

        >>> callback = LatencyCallback(objective="criterion")
        >>> callback.metric
        LatencyMetric()
    """

    def __init__(self, objective: str = "objective", metric: LatencyMetric | None = None) -> None:
        self.objective, self.metric = objective, LatencyMetric() if metric is None else metric

    def _loss(self, module: lightning.LightningModule) -> LatencyLoss:
        loss = getattr(module, self.objective, None)
        if not isinstance(loss, LatencyLoss):
            raise UsageError(f"the module has no LatencyLoss as its attribute {self.objective!r}")
        return loss

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Adjust λ, and log the terms."""
        terms = outputs.get("terms") if isinstance(outputs, dict) else None
        if not isinstance(terms, LossTerms):
            raise UsageError(
                'training_step must return {"loss": terms.loss, "terms": terms}, with terms of LatencyLoss'
            )
        objective = self._loss(pl_module)
        pl_module.log_dict({"latency": terms.latency.detach(), "system": terms.system, "lambda": terms.weight.detach()})
        if isinstance(objective.weight, LatencyController):
            objective.update(terms)

    def on_validation_epoch_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Forget the last validation."""
        self.metric.to(pl_module.device).reset()

    def on_validation_batch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Add a batch."""
        if isinstance(outputs, dict) and "latency" in outputs:
            self.metric.update(*outputs["latency"])

    def on_validation_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Log the latencies of all sentences."""
        if self.metric.update_called:
            values: dict[str, Tensor] = self.metric.compute()
            pl_module.log_dict({name: value.float() for name, value in values.items()})
