"""Shared parts: real ones, built once."""

import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow, not wrong: no test is decided by the clock.
settings.register_profile("microcoder", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("microcoder")
# Where this was started in the background of a script, SIGINT is ignored,
# and would be by what the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
# On a busy machine Ray takes what is slow to answer for dead,
# and ends the process that it runs in for it.
for name in ("RAY_health_check_timeout_ms", "RAY_grpc_keepalive_timeout_ms"):
    os.environ.setdefault(name, "120000")
# No build of a test takes over what a build before it decided.
_DECISIONS = tempfile.TemporaryDirectory(prefix="microcoder-decisions-")
os.environ["MICROCODER_DECISIONS"] = _DECISIONS.name
# What is imported and collected lives to the end:
# to look through it again and again took a third of the collection.
gc.disable()


LONGEST = (
    "judge/test_hostile.py",
    "data/test_build.py",
    "train/test_session.py",
    "lab/test_payments.py",
    "data/test_pipeline.py",
    "view/test_viewer_browser.py",
    "judge/test_reference.py",
    "judge/test_second_tries.py",
    "judge/test_containers.py",
    "judge/test_headers.py",
    "judge/test_runtimes.py",
    "judge/serve/test_serving_faults.py",
    "judge/serve/test_serving_ray.py",
    "judge/test_judge_processes.py",
    "judge/test_waiting.py",
    "data/verify/test_verify_reproducible.py",
    "cli/test_judge.py",
    "judge/test_busy.py",
    "train/test_losses.py",
    "test_tutorials.py",
)
"""Files that begin first, so that none of them is left alone on a processor at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    if gone := [str(path) for path in places if not path.exists()]:
        raise pytest.UsageError(
            f"tests/conftest.py: LONGEST names files that are not there: {', '.join(gone)}"
        )
    items.sort(key=lambda item: places.get(item.path, len(LONGEST)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this session share;
    what is built in it guards itself with a lock.
    """
    base = tmp_path_factory.getbasetemp()
    cache = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    cache.mkdir(exist_ok=True)
    return cache


@pytest.fixture(scope="session")
def tiny_hidden_size() -> int:
    """The width of `tiny_checkpoint`."""
    return 64


@pytest.fixture(scope="session")
def tiny_checkpoint(shared_cache: Path, tiny_hidden_size: int) -> Path:
    """A Hugging Face folder of a tiny Qwen3 that answers the easiest problems now and then,
    in some ten seconds.
    """
    import torch

    from microcoder.train.recipe.recipe import WarmStartConfig
    from microcoder.train.run.checkpoints import Observer
    from microcoder.train.run.warm import build_micro_checkpoint

    torch.set_num_threads(1)
    config = WarmStartConfig(
        hidden_size=tiny_hidden_size,
        num_layers=2,
        vocab_size=320,
        num_demonstrations=4000,
        num_steps=200,
        batch_size=24,
    )
    return build_micro_checkpoint(config, Observer(), cache=shared_cache)


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[Any]:
    """A Ray cluster of two nodes with a processor each,
    whose processes can import what lies beside the tests.
    """
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    from microcoder.judge.fleet.ray import allow_slow_start

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
        allow_slow_start(os.environ)
        nodes = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "include_dashboard": False},
        )
        nodes.add_node(num_cpus=1)
        ray.init(address=nodes.address, log_to_driver=False, configure_logging=False)
        yield nodes
        ray.shutdown()
        nodes.shutdown()
