# SPDX-License-Identifier: Apache-2.0
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

sys.path.insert(0, str(Path(__file__).parent))  # so that tests can `import oracle`

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # and what tests start would never hear it

settings.register_profile(
    "default",
    max_examples=100,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("default"), max_examples=20)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=5000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With the quick profile, tests that name a number of examples try no more than its own."""
    if settings.get_current_profile_name() != "quick":
        return
    for item in items:
        test = getattr(item, "obj", None)
        if getattr(test, "is_hypothesis_test", False):
            named = test._hypothesis_internal_use_settings
            most = min(named.max_examples, settings().max_examples)
            test._hypothesis_internal_use_settings = settings(named, max_examples=most)


@pytest.fixture(scope="session")
def data() -> Path:
    folder = os.environ.get("LAGGING_TEST_DATA")
    if not folder:
        pytest.skip("NOT RUN: LAGGING_TEST_DATA does not name the folder with the logs of other tools")
    if not Path(folder).is_dir():
        pytest.fail(f"LAGGING_TEST_DATA names {folder!r}, which is not a folder")
    return Path(folder)
