"""Runs, attempts and studies made by hand, whose names, sources and messages are hostile."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from passnet.bench.environment import Environment
from passnet.bench.in_nets import InNet, PassesInNets, keep_in_nets
from passnet.bench.run_record import RUN_FILE, TRIALS_FILE, BenchRunInfo
from passnet.core.records.serialise import SCHEMA_VERSION, LineWriter, write_json
from passnet.judge.candidate import Candidate
from passnet.judge.desk.candidates import parse_candidate
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.suite.suite import Suite, make_suite
from passnet.judge.task import TaskGraph
from passnet.judge.timing.estimate import low_mean, self_ratio, speedup
from passnet.judge.trial import Trial
from passnet.judge.verdict.findings import Finding
from passnet.pages.figures.study_page import StudyFigure, StudyPage, write_study_page
from passnet.pages.tables.tables import Table
from tests.agent.attempts import MACHINE
from tests.judge.folders import GOOD, small_graph, write_passes

HOSTILE = (
    "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
    "</script>]]>{{7*7}}\u202eevil\u2066\x1b[2K\x07\"'&amp;"
)
"""What would run, break out, or steer, if it were taken for more than text."""


HOSTILE_TASK = "task " + "".join(a for a in HOSTILE if a.isprintable() and a != "/")
"""As hostile as the name of a task can be."""


def hostile_suite(num_graphs: int = 4, name: str = "hostile") -> Suite:
    """A suite with two tasks, one of them and its graphs with a hostile name."""
    graphs = []
    for task in ("add_relu", HOSTILE_TASK):
        for number in range(num_graphs):
            dtype = ("float32", "bfloat16")[number % 2]
            graph = small_graph((8, 8 * (number + 1)), dtype).graph
            graphs.append(TaskGraph(task, f"{task}-{number}", graph))
    return make_suite(name, graphs)


def trial(graph: TaskGraph, candidate: str, factor: float, seed: int = 0) -> Trial:
    """A trial whose numbers follow from its raw times, `factor` times as fast as the reference."""
    random = np.random.default_rng(seed)
    reference = 0.2 * (1 + 0.01 * random.random((8, 2)))
    times = reference / factor * (1 + 0.01 * random.random((8, 2)))
    found = speedup(reference, times, 0)
    return Trial(
        graph.task,
        graph.name,
        candidate,
        "ok",
        smallest_t=-6,
        speedup=found.value,
        speedup_low=found.low,
        speedup_high=found.high,
        reference_ms=float(low_mean(reference.reshape(-1))),
        candidate_ms=float(low_mean(times.reshape(-1))),
        self_ratio=self_ratio(reference),
        reference_rounds_ms=tuple(map(tuple, reference.tolist())),  # type: ignore[arg-type]
        candidate_rounds_ms=tuple(map(tuple, times.tolist())),  # type: ignore[arg-type]
        relative_error=1e-7,
        eager_error=2e-7,
    )


def write_run(
    out: Path,
    suite: Suite,
    passes: Path | None = None,
    factors: dict[str, float] | None = None,
    machine: Environment = MACHINE,
    with_failures: bool = True,
) -> Path:
    """A run folder of eager torch, a candidate of a hostile name, and maybe passes."""
    factors = factors or {"eager": 1.0, f"null {HOSTILE}": 0.8}
    candidates = [
        Candidate(name, "eager" if name == "eager" else "null", call="direct") for name in factors
    ]
    hashes = {}
    if passes is not None:
        entry = parse_candidate(str(passes), suite.tasks)
        candidates.append(replace(entry.template, name="mine"))
        hashes["mine"] = str(entry.code_hash)
        out.mkdir(parents=True)
        place = InNet(HOSTILE, HOSTILE, "ok", 3, 1.2, 0.1, 1.02, 1.03, 1.01, 1.05, 0.99, HOSTILE)
        lost = InNet("add_relu", "net", "timeout", 0, error="too slow")
        keep_in_nets(PassesInNets(hashes["mine"], (place, lost)), out)
        factors = {**factors, "mine": 1.5}
    settings = RunSettings(JudgeSettings(), sandbox="bubblewrap")
    info = BenchRunInfo(
        SCHEMA_VERSION, suite.name, suite.content_hash, tuple(candidates), hashes, settings, machine
    )
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / RUN_FILE, info)
    with LineWriter(out / TRIALS_FILE) as writer:
        for number, (name, factor) in enumerate(factors.items()):
            for index, graph in enumerate(suite.graphs):
                made = trial(graph, name, factor * (1 + 0.1 * index), number * 100 + index)
                if with_failures and name == "mine" and index == 0:
                    evidence = Finding("reject", "constant_output", HOSTILE, f"{HOSTILE}.py:1")
                    made = Trial(
                        graph.task, graph.name, name, "cheat", error=HOSTILE, findings=(evidence,)
                    )
                elif with_failures and name == "mine" and index == 1:
                    made = Trial(graph.task, graph.name, name, "runtime_error", error=HOSTILE)
                writer.write(made)
    return out


def write_hostile_passes(folder: Path) -> Path:
    """A pass folder for all tasks, with a hostile comment."""
    text = HOSTILE.replace("\x07", "").replace("\x1b", "")
    return write_passes(folder, f"{GOOD}\n# {text}\n")


def write_hostile_study(folder: Path) -> Path:
    """A study with a picture that has a script, and hostile texts."""
    folder.mkdir()
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40" onload="window.hacked=1">'
        "<script>window.hacked=1; parent.hacked=1</script><rect width='90' height='40'/></svg>"
    )
    (folder / "shares.svg").write_text(svg, encoding="utf-8")
    table = Table(HOSTILE, ("name", "share %"), [(HOSTILE, "43.1"), ("b", "9.5"), ("c", "–")])
    figures = (StudyFigure("shares.svg", HOSTILE),)
    write_study_page(folder, StudyPage(f"Study {HOSTILE}", HOSTILE, (HOSTILE,), (table,), figures))
    return folder
