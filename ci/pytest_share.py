"""A pytest plugin that keeps a share of the parametrised cases, always the same ones for one configuration.

FUELVK_TEST_SHARE is the share (0 to 1), FUELVK_TEST_CONFIG the configuration's name: each keeps others.
Tests without parameters always run, and of each parametrised test at least one case does.
"""

from __future__ import annotations

import hashlib
import os

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    share = float(os.environ.get("FUELVK_TEST_SHARE", "1"))
    if share >= 1:
        return
    ranks = {item.nodeid: _rank(item.nodeid) for item in items}
    first: dict[str, str] = {}
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test not in first or ranks[item.nodeid] < ranks[first[test]]:
            first[test] = item.nodeid
    firsts = set(first.values())
    kept = [i for i in items if ranks[i.nodeid] < share or i.nodeid in firsts or "[" not in i.nodeid]
    chosen = set(map(id, kept))
    config.hook.pytest_deselected(items=[i for i in items if id(i) not in chosen])
    items[:] = kept


def _rank(nodeid: str) -> float:
    text = os.environ.get("FUELVK_TEST_CONFIG", "") + nodeid
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") / 2**64
