"""Runs one implementation of one op, with guard bytes around every output: fuelvk.verify's, for tests."""

from __future__ import annotations

from fuelvk.verify.harness import RefusedError, only, plan_of, run_guarded, run_impl

__all__ = ["RefusedError", "only", "plan_of", "run_guarded", "run_impl"]
