"""A pytest plug-in: tests that run once for every claim of some kernels.

``@pytest.mark.fuelvk_claims(suite=..., ops=[...], device=None, level="smoke", dtype=None, claims=None)`` on a test that
takes the fixture ``fuelvk_claim``: it gets the Record of each claim tried. Without ``suite`` the kernels are fuelvk's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fuelvk.evidence import Record

MARK = "fuelvk_claims"
FIXTURE = "fuelvk_claim"


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    words = "once for every claim of these kernels, whose record the test finds in"
    config.addinivalue_line("markers", f"{MARK}(suite, ops, device, level, dtype, claims): {words} {FIXTURE}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes a marked test one test per claim. The claims of an implementation are tried when the first is asked for."""
    mark = metafunc.definition.get_closest_marker(MARK)
    if mark is None or FIXTURE not in metafunc.fixturenames:
        return
    from fuelvk.optimizer.trust import claims_of
    from fuelvk.runtime.devices import device
    from fuelvk.verify.calls import Level
    from fuelvk.verify.runner import Run, chosen_claims, chosen_ops
    from fuelvk.verify.suite import default_suite

    chosen: dict[str, Any] = dict(mark.kwargs)
    suite = chosen.get("suite") or default_suite()
    job = Run(
        device=device(chosen.get("device")),
        suite=suite,
        ops=chosen_ops(chosen.get("ops", ()), suite),
        claims=chosen_claims(chosen.get("claims")),
        level=Level(chosen.get("level", "smoke")),
    )
    rows, names = [], []
    for op, backend, impl in job.rows():
        if chosen.get("dtype") is not None and chosen["dtype"] not in {d.key for d in impl.dtypes}:
            continue
        tried = _Tried(job, (op, backend, impl))
        for claim in claims_of(impl.precision):
            if claim in job.claims:
                rows.append((tried, claim))
                names.append(
                    f"{op.name}-{impl.name}-{'_'.join(dict.fromkeys(d.key for d in impl.dtypes))}-{claim}"
                )
    metafunc.parametrize(FIXTURE, rows, ids=names, indirect=True)


class _Tried:
    """The claims of one implementation, tried together on first use."""

    def __init__(self, job: Any, row: Any) -> None:
        self._job, self._row = job, row
        self._records: dict[str, Record] | None = None

    def record(self, claim: str) -> Record | None:
        if self._records is None:
            self._records = {o.record.claim: o.record for o in self._job.one(self._row)}
        return self._records.get(claim)


@pytest.fixture
def fuelvk_claim(request: pytest.FixtureRequest) -> Record:
    """The record of one claim; a test whose device cannot run the implementation is skipped."""
    tried, claim = request.param
    found: Record | None = tried.record(claim)
    if found is None:
        pytest.skip("the device takes no call of this implementation")
    return found
