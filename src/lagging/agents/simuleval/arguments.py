# SPDX-License-Identifier: Apache-2.0
"""Convert options of `lagging run`, `-a wait_k=3`, into the namespace that a SimulEval agent is made from.

An agent adds its options to those of SimulEval, and finds all of them in one namespace. SimulEval's options for the
device have their defaults here. Its other options belong to its runner and have no value here; an agent that reads one
gets an error that says how to give it.
"""

from __future__ import annotations

import shlex
from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any, NoReturn

from lagging.errors import UsageError, did_you_mean

__all__ = ["Arguments", "MissingRunnerOption", "parse"]

RUNNER: dict[str, dict[str, Any]] = {
    "--source": {},
    "--target": {},
    "--source-segment-size": {"type": int},
    "--output": {},
    "--eval-latency-unit": {},
    "--eval-latency-spm-model": {},
    "--quality-metrics": {"nargs": "+"},
    "--latency-metrics": {"nargs": "+"},
    "--computation-aware": {"action": "store_true"},
    "--start-index": {"type": int},
    "--end-index": {"type": int},
    "--user-dir": {},
    "--agent": {},
    "--agent-class": {},
    "--log-level": {},
}
"""Options of SimulEval's runner that agents are known to read."""


class MissingRunnerOption(AttributeError):
    """An agent reads an option of SimulEval's runner that was not given."""


class Arguments(Namespace):
    """Options of an agent."""

    def __getattr__(self, name: str) -> NoReturn:
        flag = f"--{name.replace('_', '-')}"
        if flag not in RUNNER:
            raise AttributeError(f"the agent's options have no {name!r}")
        raise MissingRunnerOption(
            f"the agent asks for SimulEval's option {flag}, which it was not given: -a {flag[2:]}=…"
        )


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}")


def parse(system: Any, options: Mapping[str, str]) -> Arguments:
    """The options that an agent is made from.

    Args:
        system: its class, with `add_args`.
        options: name → text, with dashes or underscores; `true` and `false` for flags; several values separated by
            spaces.

    Raises:
        UsageError: an option is unknown, is missing, or has a wrong value.

    Example:
        >>> class Agent:
        ...     @staticmethod
        ...     def add_args(parser):
        ...         parser.add_argument("--wait-k", type=int, default=1)
        ...         parser.add_argument("--loud", action="store_true")
        >>> args = parse(Agent, {"wait_k": "3", "loud": "true"})
        >>> args.wait_k, args.loud, args.device
        (3, True, 'cpu')
    """
    parser = _Parser(prog=system.__name__, add_help=False, allow_abbrev=False, conflict_handler="resolve")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=["fp16", "fp32"])
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--tgt-lang")
    for flag, settings in RUNNER.items():
        parser.add_argument(flag, default=SUPPRESS, **settings)
    common = set(parser._option_string_actions)
    system.add_args(parser)
    actions = parser._option_string_actions
    arguments: list[str] = []
    seen: set[Action] = set()
    for name, text in options.items():
        spellings = (f"--{name}", f"--{name.replace('_', '-')}", f"--{name.replace('-', '_')}", f"-{name}")
        flag = next((spelling for spelling in spellings if spelling in actions), "")
        if not flag:
            own = [flag.lstrip("-") for flag in actions if flag not in common]
            raise UsageError(f"{system.__name__} has no option {name!r}.{did_you_mean(name, [*own, 'device'])}")
        seen.add(actions[flag])
        arguments += _command_line(flag, actions[flag], text)
    for action in parser._actions:
        if action.required and action not in seen and action.option_strings:
            raise UsageError(f"{system.__name__} needs an option: -a {action.option_strings[-1].lstrip('-')}=…")
    return parser.parse_args(arguments, Arguments())


def _command_line(flag: str, action: Action, text: str) -> list[str]:
    """An option as on SimulEval's command line."""
    if action.nargs == 0:
        no = f"--no-{flag.lstrip('-')}"
        if text.lower() not in ("true", "false"):
            raise UsageError(f"{flag.lstrip('-')} is true or false, not {text!r}")
        if text.lower() == "true":
            return [flag]
        return [no] if no in action.option_strings else []
    if action.nargs in (None, "?"):
        return [f"{flag}={text}"] if flag.startswith("--") else [flag + text]
    return [flag, *shlex.split(text)]
