"""The benchmark command's arithmetic: medians, best peers, bars."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import benchmarks.__main__ as command
from benchmarks import report, setup_peers
from benchmarks.figures import FIGURES, Bar, Figure
from benchmarks.record import environment


def row(samples: report.Samples, name: str, subject: str = "fuelvk") -> report.Row:
    made = [r for r in report.rows(samples, [name]) if r.figure.subject == subject]
    assert len(made) == 1
    return made[0]


def test_median_range_and_bar_against_the_best_peer() -> None:
    samples = {
        "fuelvk": {"rt_up_us": [60.0, 50.0, 70.0]},
        "numpy": {"rt_up_us": [1.0]},
        "computeml": {"rt_up_us": [50.0, 52.0, 54.0]},
        "torchvulkan": {"rt_up_us": [90.0]},
    }
    found = row(samples, "rt_up_us")
    assert (found.value, found.low, found.high) == (60, 50, 70)
    assert found.bar == 78
    assert found.met is True
    assert found.ratio() == pytest.approx(52 / 60)


def test_higher_is_better_and_numpy_is_no_peer() -> None:
    samples = {
        "fuelvk": {"mm1024_gflops": [20.0]},
        "numpy": {"mm1024_gflops": [200.0]},
        "torchvulkan": {"mm1024_gflops": [6.0, 5.0, 7.0]},
        "ggml-vulkan": {"mm1024_gflops": ["ValueError: no"]},
    }
    found = row(samples, "mm1024_gflops")
    assert found.bar == 24
    assert found.met is False
    assert found.others == {"numpy": 200, "torchvulkan": 6}


def test_without_peers_a_relative_bar_says_nothing() -> None:
    found = row({"fuelvk": {"attention_ms": [5.0]}}, "attention_ms")
    assert found.bar is None
    assert found.met is None
    assert found.ratio() is None


def test_settings_have_rows_of_their_own() -> None:
    samples = {"fuelvk": {"replay1000_ms": [15.0]}, "fuelvk-threads0": {"replay1000_ms": [0.9]}}
    assert row(samples, "replay1000_ms").met is None
    assert row(samples, "replay1000_ms", "fuelvk-threads0").met is True


def test_figures_nobody_has_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    made = report.rows({"fuelvk": {"import_ms": [20.0]}, "computeml": {}}, [])
    assert [r.figure.name for r in made] == ["import_ms"]
    report.show(made, ["fuelvk", "computeml"])
    assert "met" in capsys.readouterr().out


@pytest.mark.parametrize(("own", "met"), [(9.0, True), (12.0, False)])
def test_row_ops_have_a_bar_of_numpys_time_beside_that_of_the_peers(own: float, met: bool) -> None:
    samples = {
        "fuelvk": {"softmax_ms": [own]},
        "numpy": {"softmax_ms": [10.0]},
        "computeml": {"softmax_ms": [50.0]},
    }
    peers, numpy = (r for r in report.rows(samples, ["softmax_ms"]))
    assert (peers.bar, numpy.bar) == (10.0, 10.0)
    assert numpy.met is met
    assert report.as_dict(numpy)["bar_words"] == "1 x NumPy"
    (alone,) = [
        r for r in report.rows({"fuelvk": {"softmax_ms": [own]}}, ["softmax_ms"]) if "NumPy" in r.figure.title
    ]
    assert alone.bar is alone.met is None


def test_bars_in_words() -> None:
    assert Bar(60).words() == "60"
    assert Bar(times_best_peer=1.5).words() == "1.5 x best"
    assert Bar(times_numpy=1).words() == "1 x NumPy"
    assert len({(f.title, f.unit, f.subject) for f in FIGURES}) == len(FIGURES)
    assert Figure("x", "ms", "x").lower


def test_peers_have_probes() -> None:
    for peer in setup_peers.PEERS:
        assert (setup_peers.SCRIPTS / peer.script).is_file()


def test_a_run_keeps_what_a_dying_probe_printed() -> None:
    script = "import sys; print('{\"rt_us\": 5.0}'); print('boom', file=sys.stderr); sys.exit(3)"
    found = command.run(command.Subject("x", (sys.executable, "-c", script)), [], quick=False)
    assert found == {"rt_us": 5.0, "ended": "exit status 3: boom"}


def test_a_whole_run_writes_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def subjects(*, peers: bool) -> list[command.Subject]:
        probe = 'print(\'{"version": "1", "device": "d", "import_ms": 7.0}\')'
        return [command.Subject("fuelvk", (sys.executable, "-c", probe))]

    monkeypatch.setattr(command, "subjects", subjects)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    readme = tmp_path / "README.md"
    readme.write_text("above\n<!-- figures: begin -->\nold\n<!-- figures: end -->\nbelow\n")
    target = tmp_path / "run.json"
    assert command.main(["--quick", "--no-peers", "--readme", "--json", str(target)]) == 0
    text = readme.read_text()
    assert text.startswith("above\n<!-- figures: begin -->\nd; ")
    assert "| import, over NumPy's own | ms | 7 | 60: met |\n<!-- figures: end -->\nbelow\n" in text
    document = json.loads(target.read_text())
    assert document["samples"]["fuelvk"]["import_ms"] == [7.0]
    assert document["figures"][0]["met"] is True
    assert document["environment"].keys() == environment().keys()
    assert "import, over" in capsys.readouterr().out


def test_unknown_figures_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(["speed"])
    assert caught.value.code == 2
    assert "there are import_ms" in capsys.readouterr().err
