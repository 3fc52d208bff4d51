"""Runs of an author from the command line: a scripted llm, what goes wrong, and going on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Attempt
from passnet.agent.attempts.session import Session
from passnet.agent.run import run_agent
from passnet.agent.settings import AgentSettings, LlmSettings
from passnet.core.jobs.executors import run_ray
from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import decode, read_lines
from passnet.errors import InputError
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.suite.suite import load_suite
from tests.bench.runs import command, write_small_suite
from tests.judge.folders import GOOD, PATTERN

pytest.importorskip("inspect_ai", reason="an llm as author needs the extra agent")
from passnet.agent.authors.inspect_registry import passbench

pytestmark = pytest.mark.xdist_group("agent-run")

LIST = "sorted_output_pass_rule_names.json"


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def script(path: Path, *turns: list[dict[str, Any]]) -> str:
    """A script of an llm with these calls in each turn; it is named as `--llm` has it."""
    lines = []
    for number, calls in enumerate(turns):
        lines.append(f"[[turn]]\ntext = {json.dumps(f'turn {number}')}")
        for entry in calls:
            lines.append(f"[[turn.call]]\ntool = {json.dumps(entry['tool'])}")
            arguments = entry["arguments"]
            if isinstance(arguments, str):
                lines.append(f"arguments = {json.dumps(arguments)}")
            else:
                inner = ", ".join(
                    f"{key} = {json.dumps(value)}" for key, value in arguments.items()
                )
                lines.append(f"arguments = {{ {inner} }}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"scripted/{path}"


def run(out: Path, suite: Path, llm: str, *options: str, **environment: str) -> Any:
    work = ("--suite", suite, "--task", "add_relu", "--llm", llm, "--out", out)
    quick = ("--seconds", "0.01", "--self-tolerance", "1e9", "--rules", "open", "--call", "direct")
    words = command("agent", "run", *work, *quick, *options)
    inherited = {key: value for key, value in os.environ.items() if not key.endswith("API_KEY")}
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**inherited, **environment},
    )


def attempts(out: Path) -> list[Attempt]:
    return list(read_lines(out / ATTEMPTS_FILE, Attempt))


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_small_suite(tmp_path / "small.parquet", 2)


WRITE = [
    call("create", name=LIST, text='["Fuse"]'),
    call("create", name="Fuse.py", text=PATTERN + GOOD),
]


@pytest.mark.slow
def test_an_llm_writes_a_pass_and_every_step_is_kept(tmp_path: Path, suite: Path) -> None:
    wrong = "def replacement(x, y):\n    return 100 + x + y\n"
    llm = script(
        tmp_path / "s.toml",
        [WRITE[0], call("create", name="Fuse.py", text=PATTERN + wrong), call("evaluate")],
        [WRITE[1], call("evaluate")],
        [call("submit")],
    )
    out = tmp_path / "out"
    process = run(out, suite, llm, "--json")
    assert process.returncode == 0, process.stderr
    (attempt,) = attempts(out)
    assert attempt.ending == "submitted" and attempt.num_turns == 3
    assert [evaluation.is_passing for evaluation in attempt.evaluations] == [False, True]
    scores = [evaluation.score for evaluation in attempt.evaluations]
    assert attempt.best is not None and scores[attempt.best] == max(scores) == attempt.score
    assert [trial.status for trial in attempt.judged] == ["ok", "ok"]
    assert attempt.final_score is not None
    assert [message.role for message in attempt.messages[:3]] == ["system", "user", "assistant"]
    answered_ids = {message.tool_call_id for message in attempt.messages if message.role == "tool"}
    call_ids = {request.id for message in attempt.messages for request in message.tool_calls}
    assert answered_ids == call_ids and len(call_ids) == 6
    best = out / "passes" / "add_relu"
    code = (best / "Fuse.py").read_text(encoding="utf-8")
    assert code == attempt.evaluations[attempt.best].files["Fuse.py"]
    assert list((out / "logs").glob("*.eval"))
    statistics = json.loads(process.stdout)
    assert statistics, "statistics are printed for a program to read"
    again = run(out, suite, llm)
    assert again.returncode == 2 and "add --resume" in again.stderr
    more = run(out, suite, llm, "--resume", "--attempts", "1")
    assert more.returncode == 0 and len(attempts(out)) == 1


@pytest.mark.slow
def test_nothing_that_an_llm_does_stops_the_run(tmp_path: Path, suite: Path) -> None:
    llm = script(
        tmp_path / "s.toml",
        [
            call("create", name="../../evil.py", text="x"),
            call("create", name="/etc/evil.py", text="x"),
            call("create", name="big.py", text="x" * 2_000_000),
            {"tool": "create", "arguments": "{broken"},
            {"tool": "create", "arguments": "[1, 2]"},
            call("shell", command="ls"),
            call("view", name="no.py"),
            call("show_graph", graph=99),
            call("evaluate"),
        ],
        [],
        [*WRITE, call("evaluate")],
    )
    out = tmp_path / "out"
    process = run(out, suite, llm)
    assert process.returncode == 0, process.stderr
    (attempt,) = attempts(out)
    assert attempt.ending == "stalled" and attempt.best == 0 and attempt.num_bad_actions == 9
    assert not (tmp_path / "evil.py").exists() and not Path("/etc/evil.py").exists()
    calls = [call for message in attempt.messages for call in message.tool_calls]
    assert "{broken" in calls[3].arguments, "as the LLM wrote it"
    answers = [message.content for message in attempt.messages if message.role == "tool"][:9]
    assert all(answer.startswith("error: ") and answer.count("\n") == 0 for answer in answers), (
        answers
    )
    assert (out / ATTEMPTS_FILE).stat().st_size < 3_000_000


@pytest.mark.slow
def test_an_llm_that_repeats_itself_is_stopped(tmp_path: Path, suite: Path) -> None:
    llm = script(tmp_path / "s.toml", *[[call("view")] for _ in range(40)])
    process = run(tmp_path / "out", suite, llm)
    (attempt,) = attempts(tmp_path / "out")
    assert attempt.ending == "stalled" and attempt.num_turns == 6 and attempt.best is None
    assert process.returncode == 1 and "best pass folders" not in process.stdout
    assert process.stderr.endswith("passnet: no attempt evaluated a pass folder: 1 stalled\n")


@pytest.mark.slow
def test_turns_are_limited_and_the_best_state_counts(tmp_path: Path, suite: Path) -> None:
    llm = script(
        tmp_path / "s.toml",
        [*WRITE, call("evaluate")],
        *[[call("view"), call("view", first=n)] for n in range(9)],
    )
    run(tmp_path / "out", suite, llm, "--turns", "4")
    (attempt,) = attempts(tmp_path / "out")
    assert attempt.ending == "turns" and attempt.num_turns == 4 and attempt.best == 0
    assert attempt.final_score is not None


@pytest.mark.slow
def test_time_is_limited(tmp_path: Path, suite: Path) -> None:
    slow = GOOD.replace("    return", "    import time\n    time.sleep(20)\n    return")
    files = [WRITE[0], call("create", name="Fuse.py", text=PATTERN + slow)]
    llm = script(tmp_path / "s.toml", [*files, call("evaluate")], [call("submit")])
    run(tmp_path / "out", suite, llm, "--timeout", "15")
    (attempt,) = attempts(tmp_path / "out")
    assert attempt.ending == "time" and attempt.best is None


@pytest.mark.parametrize(
    ("llm", "options", "text"),
    [
        ("openai/gpt-x", [], "OPENAI_API_KEY"),
        pytest.param("nobody/gpt-x", [], "nobody", marks=pytest.mark.slow),
        pytest.param("scripted/no_file.toml", [], "no_file.toml", marks=pytest.mark.slow),
        pytest.param("scripted", ["--cost", "1"], "--price", marks=pytest.mark.slow),
    ],
)
def test_an_llm_that_cannot_be_asked_at_all_is_one_line(
    tmp_path: Path, suite: Path, llm: str, options: list[str], text: str
) -> None:
    process = run(tmp_path / "out", suite, llm, *options)
    assert process.returncode in (1, 2) and process.stderr.count("\n") == 1, process.stderr
    assert text in process.stderr and not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_wrong_endpoint_is_a_record_and_is_tried_again(tmp_path: Path, suite: Path) -> None:
    out = tmp_path / "out"
    process = run(
        out, suite, "openai/tiny", "--base-url", "http://127.0.0.1:9/v1", "--retries", "0"
    )
    (attempt,) = attempts(out)
    assert attempt.ending == "error" and attempt.error is not None and "onnect" in attempt.error
    assert process.returncode == 1 and "onnect" in process.stderr
    run(
        out,
        suite,
        "openai/tiny",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--retries",
        "0",
        "--resume",
    )
    assert len(attempts(out)) == 2


def test_who_writes_must_be_said(tmp_path: Path, suite: Path) -> None:
    words = command("agent", "run", "--suite", suite, "--out", tmp_path / "out")
    process = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert process.returncode == 2 and "give --llm" in process.stderr


def test_an_llm_does_not_work_on_ray(tmp_path: Path, suite: Path) -> None:
    settings = AgentSettings("llm", LlmSettings("scripted"))
    with pytest.raises(InputError, match="--executor ray is for authors that are programs"):
        run_agent(load_suite(str(suite)), settings, tmp_path / "out", RunPlan(executor=run_ray))


def test_all_attempts_of_a_program_are_judged_beside_one_reference(
    tmp_path: Path, suite: Path
) -> None:
    parents = set()

    def program(session: Session, seed: int) -> None:
        session.files = {LIST: '["Fuse"]', "Fuse.py": PATTERN + GOOD}
        session.call("evaluate", "{}")
        desk: Any = session.evaluator
        parents.update(parent for parent, _ in desk._parents._parents.values())
        session.call("submit", "{}")

    judge = JudgeSettings(timing=None)
    settings = AgentSettings("compiler", run=RunSettings(judge), call="direct", num_attempts=2)
    made = run_agent(load_suite(str(suite)), settings, tmp_path / "out", program=program)
    right = {(item.task, item.number): item.is_right for item in made}
    tasks = {"add_relu": True, "mul_relu": False}
    assert right == {(task, number): tasks[task] for task in tasks for number in (0, 1)}
    assert len(parents) == 5, "one for the reference, and one for each folder"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.slow
def test_a_device_that_is_not_there_stops_a_run_before_it_begins(
    tmp_path: Path, suite: Path
) -> None:
    llm = script(tmp_path / "s.toml", [call("submit")])
    process = run(tmp_path / "out", suite, llm, "--device", "cuda")
    assert process.returncode == 2 and "device cuda is not on this machine" in process.stderr
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="device cuda is not on this machine"):
        passbench(str(suite), device="cuda")


@pytest.mark.slow
def test_the_command_line_of_inspect_judges_as_it_is_told(tmp_path: Path, suite: Path) -> None:
    llm = script(tmp_path / "s.toml", [*WRITE, call("evaluate")], [call("submit")])
    arguments = {"suite": suite, "tasks": "add_relu", "rules": "open", "call": "direct",
            "seconds": 0.01, "self_tolerance": 1e9}  # fmt: skip
    words = [str(Path(sys.executable).with_name("inspect")), "eval", "passnet/passbench",
             "--model", "passnet/scripted", "-M", f"script={llm.removeprefix('scripted/')}",
             "--log-dir", str(tmp_path / "logs"), "--log-format", "json"]  # fmt: skip
    for name, value in arguments.items():
        words += ["-T", f"{name}={value}"]
    process = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert process.returncode == 0, process.stderr
    (log,) = (tmp_path / "logs").glob("*.json")
    (sample,) = json.loads(log.read_text(encoding="utf-8"))["samples"]
    attempt = decode(sample["scores"]["passnet_as"]["metadata"]["attempt"], Attempt)
    assert (attempt.author, attempt.llm) == ("llm", "passnet/scripted")
    judge = attempt.settings.judge
    assert (judge.self_tolerance, judge.rules, judge.device) == (1e9, "open", "cpu")
    assert (
        attempt.ending == "submitted" and [trial.status for trial in attempt.judged] == ["ok"] * 2
    )
    assert sample["scores"]["passnet_as"]["value"] == attempt.final_score
