# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import lagging
import oracle
from lagging import policies
from lagging.metrics import kernels


@dataclass(frozen=True)
class System:
    """One half of a table; what the table does not print is None."""

    policy: str
    x: int
    actions: str
    g: tuple[int, ...]
    ideal: tuple[float, ...] | None = None
    tau: int | None = None
    lag: tuple[float, ...] | None = None  # as printed: up to τ, or to the end
    al: float | None = None
    al_y: float | None = None
    effective: tuple[float, ...] | None = None
    effective_lag: tuple[float, ...] | None = None
    dal: float | None = None


TABLES = {
    1: (
        System("wait-1", 4, "RWRWRWRW", (1, 2, 3, 4), tau=4, lag=(1, 1, 1, 1), al=1, al_y=1),
        System("wait-3", 4, "RRRWRWWW", (3, 4, 4, 4), tau=2, lag=(3, 3, 2, 1), al=3, al_y=2.25),
    ),
    2: (
        System("wait-4", 5, "RRRRWRWWWW", (4, 5, 5, 5, 5), lag=(4, 4), al=4),
        System("antagonist-4", 5, "RRRRWWWWRW", (4, 4, 4, 4, 5), lag=(4, 3, 2, 1, 1), al=2.2),
    ),
    3: (
        System(
            "wait-1",
            4,
            "RWRWRWRW",
            (1, 2, 3, 4),
            ideal=(0, 1, 2, 3),
            effective=(1, 2, 3, 4),
            effective_lag=(1, 1, 1, 1),
            dal=1,
        ),
        System(
            "wait-3",
            4,
            "RRRWRWWW",
            (3, 4, 4, 4),
            ideal=(0, 1, 2, 3),
            effective=(3, 4, 5, 6),
            effective_lag=(3, 3, 3, 3),
            dal=3,
        ),
    ),
    4: (
        System(
            "wait-4",
            5,
            "RRRRWRWWWW",
            (4, 5, 5, 5, 5),
            effective=(4, 5, 6, 7, 8),
            effective_lag=(4, 4, 4, 4, 4),
            dal=4,
        ),
        System(
            "antagonist-4",
            5,
            "RRRRWWWWRW",
            (4, 4, 4, 4, 5),
            effective=(4, 5, 6, 7, 8),
            effective_lag=(4, 4, 4, 4, 4),
            dal=4,
        ),
    ),
    5: (
        System(
            "wait-1",
            3,
            "RWRWRWWWW",
            (1, 2, 3, 3, 3, 3),
            ideal=(0, 0.5, 1, 1.5, 2, 2.5),
            lag=(1, 1.5, 2),
            al=1.5,
            effective=(1, 2, 3, 3.5, 4, 4.5),
            effective_lag=(1, 1.5, 2, 2, 2, 2),
            dal=1.75,
        ),
        System(
            "wait-1-catchup",
            3,
            "RWWRWWRWW",
            (1, 1, 2, 2, 3, 3),
            ideal=(0, 0.5, 1, 1.5, 2, 2.5),
            lag=(1, 0.5, 1, 0.5, 1),
            al=0.8,
            effective=(1, 1.5, 2, 2.5, 3, 3.5),
            effective_lag=(1, 1, 1, 1, 1, 1),
            dal=1,
        ),
    ),
    6: (
        System(
            "wait-1",
            6,
            "RWRWRWRRR",
            (1, 2, 3),
            ideal=(0, 2, 4),
            lag=(1, 0, -1),
            al=0,
            effective=(1, 3, 5),
            effective_lag=(1, 1, 1),
            dal=1,
        ),
    ),
}
EVERY = [system for table in TABLES.values() for system in table]
RUN = lagging.Run.from_delays([s.g for s in EVERY], source_length=[s.x for s in EVERY])


def near(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12)


def check_policies(systems):
    for s in systems:
        policy = policies.policy(s.policy)
        assert policy.delays(s.x, len(s.g)).tolist() == list(s.g)
        assert policy.run(source_lengths=[s.x], target_lengths=[len(s.g)]).delays.tolist() == [list(s.g)]
    assert policies.wait_k(1, catchup="paper").name == "wait-1-catchup"


def check_oracle(systems):
    for s in systems:
        d = oracle.write_cost(s.g, s.x)
        if s.ideal is not None:
            assert [t * d for t in range(len(s.g))] == [Fraction(v) for v in s.ideal]
        if s.tau is not None:
            assert oracle.tau(s.g, s.x) == s.tau
        if s.lag is not None:
            assert oracle.lags(s.g, s.x)[: len(s.lag)] == [Fraction(v) for v in s.lag]
        if s.al is not None:
            assert oracle.al(s.g, s.x) == Fraction(str(s.al))
        if s.al_y is not None:
            assert oracle.al_y(s.g, s.x) == Fraction(s.al_y)
        if s.effective is not None:
            assert oracle.effective_delays(s.g, d) == [Fraction(v) for v in s.effective]
            assert oracle.effective_lags(s.g, s.x) == [Fraction(v) for v in s.effective_lag]
            assert oracle.dal(s.g, s.x) == Fraction(s.dal)


def check_sentences(systems):
    for s in systems:
        given = {"source_length": s.x}
        if s.ideal is not None:
            assert (s.g - lagging.lags(s.g, **given)).tolist() == near(list(s.ideal))
        if s.lag is not None:
            assert lagging.lags(s.g, **given)[: len(s.lag)].tolist() == near(list(s.lag))
        if s.al is not None:
            assert lagging.al(s.g, **given) == near(s.al)
        if s.al_y is not None:
            assert lagging.al_y(s.g, **given) == near(s.al_y)
        if s.effective is not None:
            assert lagging.effective_delays(s.g, **given).tolist() == near(list(s.effective))
            assert lagging.lags(s.g, effective=True, **given).tolist() == near(list(s.effective_lag))
            assert lagging.dal(s.g, **given) == near(s.dal)


def check_kernels(systems):
    g, x, y = RUN.delays, RUN.source_length, RUN.delays.lengths.astype(float)
    tau = g.by_row(kernels.cutoff, x)
    lag = g.by_token(kernels.lags, x, y)
    effective = lag.by_token(kernels.effective_delays, x / y)
    scores = lagging.score(RUN, ["AL", "AL_y", "DAL"])
    for s in systems:
        row = EVERY.index(s)
        assert g[row].tolist() == list(s.g)
        if s.ideal is not None:
            assert (g[row] - lag[row]).tolist() == near(list(s.ideal))
        if s.tau is not None:
            assert tau[row] == s.tau
        if s.lag is not None:
            assert lag[row][: len(s.lag)].tolist() == near(list(s.lag))
            assert len(s.lag) in (tau[row], len(s.g))  # the tables print lags up to τ, or all of them
        if s.al is not None:
            assert scores["AL"].segments[row] == near(s.al)
        if s.al_y is not None:
            assert scores["AL_y"].segments[row] == near(s.al_y)
        if s.effective is not None:
            assert effective[row].tolist() == near(list(s.effective))
            lags = effective[row] - np.arange(len(s.g)) * s.x / len(s.g)
            assert lags.tolist() == near(list(s.effective_lag))
            assert scores["DAL"].segments[row] == near(s.dal)


def check_command_line(systems, folder):
    logs = []
    for number, s in enumerate(systems):
        ours, actions = folder / f"ours{number}.jsonl", folder / f"actions{number}.rw"
        ours.write_text(json.dumps({"id": 0, "delays": s.g, "source_length": s.x, "unit": "token"}) + "\n")
        actions.write_text(s.actions + "\n")
        logs += [str(ours), str(actions)]
    command = [sys.executable, "-m", "lagging", "score", *logs, "-m", "AL,DAL,AL_y", "-f", "json"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = {(one["system"], one["metric"]): one for one in json.loads(done.stdout)["scores"]}
    assert len(found) == 3 * len(logs)
    for number, s in enumerate(systems):
        printed = {"AL": s.al, "DAL": s.dal, "AL_y": s.al_y}
        exact = {"AL": oracle.al(s.g, s.x), "DAL": oracle.dal(s.g, s.x), "AL_y": oracle.al_y(s.g, s.x)}
        for system in (f"ours{number}", f"actions{number}"):
            for name, value in printed.items():
                one = found[system, name]
                assert one["score"] == near(float(exact[name]) if value is None else value)
                assert (one["unit"], one["n"], one["undefined"]) == ("token", 1, 0)


def check_table(number, folder):
    systems = TABLES[number]
    check_oracle(systems)
    check_policies(systems)
    check_sentences(systems)
    check_kernels(systems)
    check_command_line(systems, folder)


def test_table1(tmp_path):
    check_table(1, tmp_path)


def test_table2(tmp_path):
    check_table(2, tmp_path)


def test_table3(tmp_path):
    check_table(3, tmp_path)


def test_table4(tmp_path):
    check_table(4, tmp_path)


def test_table5(tmp_path):
    check_table(5, tmp_path)


def test_table6(tmp_path):
    check_table(6, tmp_path)


def test_every_table_is_scored_as_one_run():
    scores = lagging.score(RUN, ["AL", "DAL"])
    for name, exact in (("AL", oracle.al), ("DAL", oracle.dal)):
        values = [exact(s.g, s.x) for s in EVERY]
        assert scores[name].segments.tolist() == near([float(v) for v in values])
        assert scores[name].value == near(float(sum(values) / len(values)))


# ---- what the text says -----------------------------------------------------------------------------------------


def test_average_proportion_of_wait_1_depends_on_length():
    def ap(n):
        return lagging.ap(policies.wait_k(1).delays(n, n), source_length=n)

    assert ap(2) == 0.75
    values = [ap(n) for n in range(1, 200)]
    assert values == sorted(values, reverse=True)
    assert values == near([(n + 1) / (2 * n) for n in range(1, 200)])
    assert ap(100_000) == pytest.approx(0.5, abs=1e-5)
    assert ap(100_000) > 0.5


def test_wait_k_is_min_of_t_plus_k_minus_1_and_source_length():
    for k in range(1, 7):
        expected = [min(t + k - 1, 5) for t in range(1, 9)]
        assert policies.wait_k(k).delays(5, 8).tolist() == expected


def test_standard_translation_reads_everything_first():
    g = policies.offline().delays(7, 4)
    assert g.tolist() == [7, 7, 7, 7]
    assert lagging.ap(g, source_length=7) == 1
    assert lagging.al(g, source_length=7) == 7
    assert lagging.dal(g, source_length=7) == 7


def test_consecutive_wait_is_position_wise():
    assert lagging.waits([4, 4, 4, 4, 5]).tolist() == [4, 0, 0, 0, 1]
    assert lagging.waits([1, 2, 3, 3]).tolist() == [1, 1, 1, 0]


def test_delaying_the_last_read_brings_al_from_4_to_2_2(tmp_path):
    log = tmp_path / "two.rw"
    log.write_text(f"{'R' * 4}W{'R'}{'W' * 4}\n{'R' * 4}{'W' * 4}RW\n")  # as the two systems of section 3.2 are told
    run = lagging.read(log)
    honest, antagonist = run.delays
    assert (honest - antagonist).tolist() == [0, 1, 1, 1, 0]
    scores = lagging.score(run, ["AL", "DAL"])
    assert scores["AL"].segments.tolist() == near([4, 2.2])
    assert scores["DAL"].segments.tolist() == near([4, 4])
    given = {"source_length": 5}
    assert np.array_equal(
        lagging.effective_delays(honest, **given), lagging.effective_delays(antagonist, **given)
    )  # "both systems receive identical g' values"


def test_wait_3_without_cut_off_gets_less_than_3():
    assert lagging.al_y([3, 4, 4, 4], source_length=4) == 2.25
    assert lagging.al([3, 4, 4, 4], source_length=4) == 3


def test_the_prescient_translator_is_the_ideal():
    for x, y in ((5, 5), (3, 6), (6, 3), (7, 4)):
        g = policies.prescient().delays(x, y)
        effective = lagging.effective_delays(g, source_length=x)
        assert effective.tolist() == near([t * x / y for t in range(y)])
        assert lagging.dal(g, source_length=x) == 0
        assert effective[-1] + x / y == near(x)  # it finishes speaking with the source speaker


def test_catching_up_is_rewarded_without_free_writes():
    without, caught_up = (1, 2, 3, 3, 3, 3), (1, 1, 2, 2, 3, 3)
    assert lagging.al(caught_up, source_length=3) == near(0.8)  # below k = 1: free writes
    assert lagging.dal(caught_up, source_length=3) == 1
    assert lagging.dal(without, source_length=3) == 1.75


def test_only_al_rewards_outpacing_the_ideal():
    assert lagging.al([1, 2, 3], source_length=6) == 0
    assert lagging.dal([1, 2, 3], source_length=6) == 1
    # with |x| = |y|, the same reads at the pace of the ideal
    assert lagging.al([1, 2, 3], source_length=3) == lagging.dal([1, 2, 3], source_length=3) == 1


def test_a_fixed_write_cost_instead_of_the_recommended_one():
    g = [1, 2, 3]
    assert lagging.effective_delays(g, source_length=6, write_cost=1).tolist() == [1, 2, 3]
    assert lagging.dal(g, source_length=6, write_cost=1) == 1
    assert lagging.effective_delays(g, source_length=6, write_cost=0.5).tolist() == [1, 2, 3]
    assert lagging.dal(g, source_length=6, write_cost=0.5) == 1.5
    assert lagging.score(lagging.Run.from_delays([g], source_length=[6]), ["DAL(write_cost=0.5)"])[
        "DAL(write_cost=0.5)"
    ].value == near(1.5)


def test_al_can_be_negative_and_dal_cannot():
    g = [1, 1, 1, 1]
    assert lagging.al(g, source_length=8) == -2
    assert lagging.dal(g, source_length=8) == 1


def test_it_is_the_effective_delay_that_is_bounded_by_the_budget():
    # the summary (4.3) says the lag; with g = 0 the lag is 0, below (t−1)d
    assert lagging.lags([0, 0, 0], source_length=3, effective=True).tolist() == [0, 0, 0]
    assert lagging.effective_delays([0, 0, 0], source_length=3).tolist() == [0, 1, 2]
