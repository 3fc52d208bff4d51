"""A task of Harbor has what its format asks for, gives nothing away, and its verifier judges."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from integrations.harbor.export import HarborExport, HarborPlan, export_harbor
from passnet.agent.prompt import instruction
from passnet.bench.run_record import run_folder
from passnet.errors import InputError, PassFolderError
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.judge.suite.suite import Suite, load_suite, make_suite
from passnet.judge.task import TaskGraph
from passnet.passes.folder import LIST_FILE
from tests.agent.attempts import SUITE

EXAMPLES = Path(__file__).parents[2] / "examples" / "passes"
TASK = "gelu_tanh"
QUICK = RunSettings(
    JudgeSettings(timing=TimingPlan(seconds=0.01, keeps_awake=False), self_tolerance=1e9)
)
PLAN = HarborPlan(QUICK, passnet="passnet==0.1.0", torch="torch==2.13.0")


def one_graph(name: str) -> Suite:
    """The first graph of a task of a shipped suite."""
    (task,) = (task for task in load_suite(name).tasks if task.name == TASK)
    return make_suite(name, task.graphs[:1])


def test_every_task_is_a_folder_of_the_files_that_harbor_reads(tmp_path: Path) -> None:
    export = export_harbor(SUITE, tmp_path / "out", PLAN)
    assert export == HarborExport(2, 0, 0)
    task = tmp_path / "out" / "relu"
    files = {str(path.relative_to(task)) for path in task.rglob("*") if path.is_file()}
    assert files == {
        "task.toml",
        "instruction.md",
        "environment/Dockerfile",
        "environment/files/graphs/graph_0.txt",
        "environment/files/graphs/graph_1.txt",
        "tests/Dockerfile",
        "tests/test.sh",
        "tests/verify.py",
        "tests/task.parquet",
        "tests/settings.json",
    }
    text = (task / "instruction.md").read_text()
    assert text.startswith(instruction(SUITE.tasks[0], QUICK)) and "\n\n## Where things are" in text
    assert os.access(task / "tests" / "test.sh", os.X_OK)
    suite = load_suite(str(task / "tests" / "task.parquet"))
    assert [exported.graphs for exported in suite.tasks] == [SUITE.tasks[0].graphs]


def test_the_verifier_is_separate_and_gets_the_pass_folder_alone(tmp_path: Path) -> None:
    export_harbor(SUITE, tmp_path / "out", PLAN)
    config = tomllib.loads((tmp_path / "out" / "relu" / "task.toml").read_text())
    assert config["schema_version"] == "1.4"
    assert config["task"]["name"] == "passnet/relu"
    assert config["artifacts"] == ["/app/passes"]
    assert config["verifier"]["environment_mode"] == "separate"
    assert config["verifier"]["environment"]["network_mode"] == "no-network"
    assert config["metadata"]["suite_hash"] == SUITE.content_hash


def test_the_environment_of_the_agent_has_no_judge_no_suite_and_no_held_out_shapes(
    tmp_path: Path,
) -> None:
    held_out = make_suite("held", SUITE.tasks[0].graphs[1:])
    shown = make_suite("seen", SUITE.tasks[0].graphs[:1])
    export = export_harbor(shown, tmp_path / "out", PLAN, held_out)
    assert export.num_held_out == 1
    task = tmp_path / "out" / "relu"
    assert (task / "tests" / "held-out.parquet").is_file()
    paths = [path for path in (task / "environment").rglob("*") if path.is_file()]
    assert {path.suffix for path in paths} == {"", ".txt"}
    text = "".join(path.read_text() for path in paths)
    assert "float32[8, 1]" in text
    assert "[8, 2]" not in text
    assert "passnet" not in text


def test_no_place_of_this_machine_and_no_host_is_named(tmp_path: Path) -> None:
    wheel = tmp_path / "passnet-0.1.0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    plan = HarborPlan(QUICK, wheel=wheel)
    export_harbor(SUITE, tmp_path / "out", plan)
    texts = {
        path: path.read_text()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file() and path.suffix not in (".parquet", ".whl")
    }
    for path, text in texts.items():
        for word in (str(tmp_path), str(Path.home()), str(EXAMPLES), "://"):
            assert word not in text, path
    tests = tmp_path / "out" / "relu" / "tests"
    assert (tests / wheel.name).read_bytes() == b"wheel"
    assert f"pip install --no-cache-dir /tests/{wheel.name}" in texts[tests / "Dockerfile"]


def test_where_passnet_comes_from_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="say where the verifier has passnet from"):
        export_harbor(SUITE, tmp_path / "out", HarborPlan(QUICK))
    with pytest.raises(InputError, match="no such wheel"):
        plan = HarborPlan(QUICK, wheel=tmp_path / "absent.whl")
        export_harbor(SUITE, tmp_path / "out", plan)
    assert not (tmp_path / "out").exists()


def test_settings_without_times_are_refused(tmp_path: Path) -> None:
    plan = HarborPlan(RunSettings(JudgeSettings(timing=None)), passnet="passnet")
    with pytest.raises(InputError, match="measure no time"):
        export_harbor(SUITE, tmp_path / "out", plan)


def test_two_tasks_of_one_name_for_harbor_are_refused(tmp_path: Path) -> None:
    graphs = [
        TaskGraph(name, f"{name}-0", SUITE.tasks[0].graphs[0].graph) for name in ("a b", "a  b")
    ]
    with pytest.raises(InputError, match="two tasks would both be named a-b"):
        export_harbor(make_suite("s", graphs), tmp_path / "out", PLAN)


def test_a_solution_that_is_no_pass_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "relu").mkdir()
    with pytest.raises(PassFolderError, match=LIST_FILE):
        export_harbor(SUITE, tmp_path / "out", PLAN, None, tmp_path)


@pytest.fixture(scope="module")
def harbor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real task of one graph, with a solution and held-out shapes, as Harbor's folder."""
    out = tmp_path_factory.mktemp("harbor") / "out"
    export = export_harbor(one_graph("demo"), out, PLAN, one_graph("demo-held-out"), EXAMPLES)
    assert export == HarborExport(1, 1, 1)
    return out / TASK


def run(script: Path, passes: Path, logs: Path) -> subprocess.CompletedProcess[str]:
    """Run a script of a task outside of a container."""
    interpreter = str(Path(sys.executable).parent)
    folders = {"PASSNET_PASSES": str(passes), "PASSNET_LOGS": str(logs)}
    path = f"{interpreter}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [script], env={**os.environ, **folders, "PATH": path}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_verifier_rewards_the_solution_with_its_score(harbor: Path, tmp_path: Path) -> None:
    passes, logs = tmp_path / "passes", tmp_path / "logs"
    assert run(harbor / "solution" / "solve.sh", passes, logs).returncode == 0
    assert (passes / LIST_FILE).is_file()
    judged = run(harbor / "tests" / "test.sh", passes, logs)
    assert judged.returncode == 0, judged.stderr
    reward = float((logs / "reward.txt").read_text())
    assert json.loads((logs / "reward.json").read_text()) == {"reward": reward}
    assert reward == json.loads((logs / "run" / "scores.json").read_text())["as"]
    assert reward > 0.5
    (trial,) = run_folder(logs / "run").records().values()
    assert (trial.task, trial.status) == (TASK, "ok")


@pytest.mark.slow
def test_a_pass_that_matches_nowhere_gets_the_least_reward(harbor: Path, tmp_path: Path) -> None:
    judged = run(harbor / "tests" / "test.sh", EXAMPLES / "pool_concat", tmp_path)
    assert judged.returncode == 0, judged.stderr
    assert float((tmp_path / "reward.txt").read_text()) == pytest.approx(0.1)


def test_an_empty_folder_gets_the_least_reward(harbor: Path, tmp_path: Path) -> None:
    judged = run(harbor / "tests" / "test.sh", tmp_path / "absent", tmp_path / "logs")
    assert judged.returncode == 0, judged.stderr
    assert "no pass folder" in judged.stdout
    assert json.loads((tmp_path / "logs" / "reward.json").read_text()) == {"reward": 0.1}


def test_where_the_judge_fails_there_is_no_reward_and_none_that_was_put_there(
    harbor: Path, tmp_path: Path
) -> None:
    tests = shutil.copytree(harbor / "tests", tmp_path / "tests")
    (tests / "task.parquet").write_bytes(b"no suite")
    (tmp_path / "reward.json").write_text('{"reward": 99}')
    judged = run(tests / "test.sh", EXAMPLES / TASK, tmp_path)
    assert judged.returncode != 0
    assert not (tmp_path / "reward.json").exists()
    assert not (tmp_path / "reward.txt").exists()
