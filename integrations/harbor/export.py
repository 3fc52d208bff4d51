"""Export of a suite's tasks as a Harbor dataset, for agents and trainers of other projects.

Each task is a folder of plain files:

- `instruction.md`, `task.toml`;
- `environment/`: the agent's image, with its graphs as text, an empty pass folder, Python, torch
  and g++. It holds neither passnet nor runnable graphs nor values.
- `tests/`: the image of the separate verifier, with our judge, the suite of the one task and its
  held-out shapes. The agent's container has ended when it starts, and only the pass folder is
  copied over (`artifacts`). The reward is the AS.
- `solution/`: a pass folder that solves it, where one is given.

Not covered: in a container without privileges the judge finds no sandbox, so that only the
verifier's container confines a pass that tries to forge its reward. An agent with network access
can fetch whatever is public.

Source: Harbor 0.25.0, `harbor/models/task/config.py` (schema version 1.4: `environment_mode`,
`[verifier.environment]`, `artifacts`), `models/task/verifier_mode.py` (a `tests/Dockerfile` must
bring `/tests/test.sh` itself), `verifier/verifier.py` (reward files), and its page "Separate
verifier".
"""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from string import Template

from integrations.harbor import verify
from integrations.harbor.verify import HELD_OUT_FILE, SETTINGS_FILE, SUITE_FILE
from passnet.agent.graph_text import graph_text
from passnet.agent.prompt import instruction
from passnet.core.records.folders import atomic_folder
from passnet.core.records.serialise import write_json
from passnet.errors import InputError
from passnet.judge.candidate import CallMode
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import Suite, held_out_graphs, make_suite, write_suite
from passnet.judge.task import Task, TaskGraph
from passnet.passes.files import read_files, write_files
from passnet.passes.folder import LIST_FILE, inspect_folder, is_pass_folder

WORK_FOLDER = "/app"
PASSES = f"{WORK_FOLDER}/passes"

_PLACES = Template((Path(__file__).parent / "places.md").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class HarborPlan:
    """Settings of the exported tasks.

    Args:
        settings: how the verifier judges; its sandbox is the best that the container allows.
        call: how the rewritten graph is called.
        base_image: with Python and g++, for the agent and for the verifier; one with a digest
            stays the same.
        torch: what pip installs in both, by default the version here.
        wheel: of passnet, which the verifier installs.
        passnet: what pip installs there instead, from an index that has it. One of both is needed:
            on PyPI the name is nobody's, and whoever took it would write the rewards.
    """

    settings: RunSettings = field(default_factory=RunSettings)
    call: CallMode = "compiled"
    base_image: str = "python:3.12-bookworm"
    torch: str = field(default_factory=lambda: f"torch=={version('torch').split('+')[0]}")
    wheel: Path | None = None
    passnet: str | None = None


@dataclass(frozen=True, slots=True)
class HarborExport:
    """The numbers of written tasks, with held-out shapes, and with a solution."""

    num_tasks: int
    num_held_out: int
    num_solutions: int


def export_harbor(
    suite: Suite,
    out: Path,
    plan: HarborPlan,
    held_out: Suite | None = None,
    solutions: Path | None = None,
) -> HarborExport:
    """Write every task of a suite as a task of Harbor.

    The folder `out` must be empty or absent, and is there whole or not at all. `held_out` are
    shapes of the same tasks that agents do not see; `solutions` is a pass folder for every task, or
    a folder with one a task under its name.

    Raises:
        InputError: two tasks have the same name for Harbor, the plan does not say where passnet
            comes from or measures no time, or `out` is not empty.
        GraphError: shapes of a graph cannot be inferred.
        PassFolderError: a solution is no pass folder.
    """
    if plan.settings.judge.timing is None:
        raise InputError("the settings measure no time, and a reward needs it")
    folders = _folders(suite.tasks)
    num_held_out = num_solutions = 0
    with atomic_folder(out) as partial:
        for task in suite.tasks:
            folder = partial / folders[task.name]
            unseen = held_out_graphs(held_out, task.name)
            solution = _solution(solutions, task.name)
            where = _PLACES.substitute(work=WORK_FOLDER, list_file=LIST_FILE)
            text = instruction(task, plan.settings).rstrip()
            _write(folder / "instruction.md", f"{text}\n\n{where}")
            _write(folder / "task.toml", _task_toml(suite, task, folder.name))
            _write_environment(folder / "environment", task, plan)
            _write_tests(folder / "tests", task, unseen, plan)
            if solution is not None:
                _write_solution(folder / "solution", solution)
            num_held_out += bool(unseen)
            num_solutions += solution is not None
        readme = _README.substitute(name=suite.name, num=len(suite.tasks))
        _write(partial / "README.md", readme)
    return HarborExport(len(suite.tasks), num_held_out, num_solutions)


def _folders(tasks: Sequence[Task]) -> dict[str, str]:
    """The folder of every task, a name that Harbor takes."""
    folders: dict[str, str] = {}
    for task in tasks:
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", task.name).strip("-_") or "task"
        if name in folders.values():
            raise InputError(f"two tasks would both be named {name}; rename {task.name}")
        folders[task.name] = name
    return folders


def _passnet(plan: HarborPlan) -> str:
    """Return pip's requirement for passnet."""
    if plan.passnet is not None and plan.wheel is None:
        return plan.passnet
    if plan.wheel is None:
        raise InputError(
            "say where the verifier has passnet from: give a wheel (pip wheel --no-deps makes one "
            "of the source), or a requirement such as passnet==0.1.0 for an index that has it"
        )
    if not plan.wheel.is_file():
        raise InputError(f"{plan.wheel}: no such wheel")
    return f"/tests/{plan.wheel.name}"


def _solution(solutions: Path | None, task: str) -> Path | None:
    if solutions is None:
        return None
    folder = solutions if is_pass_folder(solutions) else solutions / task
    if not folder.is_dir():
        return None
    inspect_folder(folder)
    return folder


def _task_toml(suite: Suite, task: Task, name: str) -> str:
    resources: dict[str, object] = {
        "build_timeout_sec": 1800.0,
        "cpus": 2,
        "memory_mb": 16384,
        "storage_mb": 20480,
    }
    tables: dict[str, dict[str, object]] = {
        "task": {
            "name": f"passnet/{name}",
            "description": f"Write compiler passes for a sequence of {len(task.ops)} op(s), in "
            f"{len(task.graphs)} graph(s), that are correct and faster than eager torch.",
            "keywords": ["compilers", "kernels", "pytorch"],
        },
        "metadata": {
            "suite": suite.name,
            "suite_hash": suite.content_hash,
            "task": task.name,
            "num_graphs": len(task.graphs),
            "ops": list(task.ops),
        },
        "agent": {"timeout_sec": 3600.0, "user": "agent"},
        "environment": {**resources, "workdir": WORK_FOLDER},
        "verifier": {"timeout_sec": 3600.0, "environment_mode": "separate"},
        "verifier.environment": {**resources, "network_mode": "no-network"},
    }
    lines = [f"schema_version = {_toml('1.4')}", f"artifacts = {_toml([PASSES])}"]
    for head, values in tables.items():
        lines += ["", f"[{head}]", *(f"{key} = {_toml(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """A text, a number or a list in TOML, which writes these as JSON does."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


_ENVIRONMENT = Template("""\
FROM $image

RUN pip install --no-cache-dir $torch $numpy && useradd --create-home agent

WORKDIR $work

COPY files/ $work/
RUN mkdir -p $passes && chown agent $passes
""")

_TESTS = Template("""\
FROM $image

COPY . /tests/
RUN pip install --no-cache-dir $torch && pip install --no-cache-dir $passnet

WORKDIR $work
""")

_TEST_SH = Template("""\
#!/bin/bash
# Judges the pass folder that the agent left; the reward is its AS, 1 for eager torch.
tests="$$(cd "$$(dirname "$$0")" && pwd)"
passes="$${PASSNET_PASSES:-$passes}"
logs="$${PASSNET_LOGS:-/logs/verifier}"
exec python "$$tests/verify.py" "$$passes" "$$logs" $call
""")

_SOLVE_SH = Template("""\
#!/bin/bash
# Copies the solution into the pass folder.
set -e
passes="$${PASSNET_PASSES:-$passes}"
mkdir -p "$$passes"
cp "$$(dirname "$$0")"/passes/* "$$passes"/
""")


def _write_environment(folder: Path, task: Task, plan: HarborPlan) -> None:
    text = _ENVIRONMENT.substitute(
        image=plan.base_image,
        work=WORK_FOLDER,
        passes=PASSES,
        torch=shlex.quote(plan.torch),
        numpy=f"numpy=={version('numpy')}",
    )
    _write(folder / "Dockerfile", text)
    for number, graph in enumerate(task.graphs):
        text = graph_text(graph, number, len(task.graphs)) + "\n"
        _write(folder / "files" / "graphs" / f"graph_{number}.txt", text)


def _write_tests(folder: Path, task: Task, unseen: Sequence[TaskGraph], plan: HarborPlan) -> None:
    text = _TESTS.substitute(
        image=plan.base_image,
        work=WORK_FOLDER,
        torch=shlex.quote(plan.torch),
        passnet=shlex.quote(_passnet(plan)),
    )
    _write(folder / "Dockerfile", text)
    if plan.wheel is not None:
        (folder / plan.wheel.name).write_bytes(plan.wheel.read_bytes())
    _write(folder / "verify.py", Path(verify.__file__).read_text(encoding="utf-8"))
    write_suite(folder / SUITE_FILE, make_suite(Path(SUITE_FILE).stem, task.graphs))
    write_json(folder / SETTINGS_FILE, plan.settings)
    if unseen:
        write_suite(folder / HELD_OUT_FILE, make_suite(Path(HELD_OUT_FILE).stem, unseen))
    script = _TEST_SH.substitute(passes=PASSES, call=plan.call)
    _write(folder / "test.sh", script, is_program=True)


def _write_solution(folder: Path, solution: Path) -> None:
    write_files(read_files(solution), folder / "passes")
    inspect_folder(folder / "passes")
    _write(folder / "solve.sh", _SOLVE_SH.substitute(passes=PASSES), is_program=True)


_README = Template("""\
# $name

$num tasks of compiler passes, in the format of Harbor (written for 0.25). To try them, from this
folder:

    harbor run -p . -a AGENT -m LLM --n-concurrent 1

The reward of a task is its Error-aware Speedup Score AS: 1 is eager torch, more is faster, 0.1 is
nothing that works. It is measured, so let one trial run at a time, on a quiet machine.
""")


def _write(path: Path, text: str, is_program: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if is_program:
        path.chmod(0o755)
