"""An LLM as author of a pass for a range: one attempt, recorded in full."""

import ast
import json
from pathlib import Path

from passnet.agent.run import run_agent
from passnet.agent.settings import AgentLimits, AgentSettings, LlmSettings
from passnet.errors import AuthorError, PassnetError, boundary
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.suite.suite import make_suite
from passnet.optimizer.choose.judging import JudgedPass, judge_range, range_task
from passnet.passes.files import Files
from passnet.passes.folder import LIST_FILE
from passnet.passes.library.store import RangeKey

LEAST_S = 10.0
"""The least seconds that are worth an attempt."""


def let_llm_write(
    evaluator: JudgeDesk, key: RangeKey, llm: LlmSettings, seconds: float, folder: Path
) -> JudgedPass:
    """Let an LLM write for a range, in `seconds`, and judge the pass.

    The attempt is recorded in a new run folder within `folder`. Where the LLM fails or has too
    little time, the result says so and is not final.
    """
    task = range_task(key)
    suite = make_suite(task.name, task.graphs)
    limits = AgentLimits(seconds=max(1, int(seconds)))
    fields = {"is_judged_anew": False, "num_layouts": key.num_layouts}
    settings = AgentSettings("llm", llm, evaluator.settings, "direct", limits, **fields)
    # an attempt that was interrupted left its folder as it is
    paths = (folder / (f"{task.name}-{n}" if n else task.name) for n in range(10_000))
    try:
        with boundary(AuthorError, f"llm {llm.name}"):
            [attempt] = run_agent(suite, settings, next(p for p in paths if not p.exists()))
    except PassnetError as cause:
        text = " ".join(str(cause).split())
        return JudgedPass({}, None, text, is_final=False, is_answered=False)
    is_answered = attempt.num_turns > 0
    if not attempt.files:
        error = attempt.error or f"llm {llm.name} ended without a pass: {attempt.ending}"
        if attempt.ending == "time":
            failure = "wrote no pass" if is_answered else "gave no answer"
            error = f"llm {llm.name} {failure} in {limits.seconds} s"
        is_final = attempt.ending not in ("error", "time")
        return JudgedPass({}, None, error, is_final=is_final, is_answered=is_answered)
    bare = unguarded(attempt.files)
    if bare:
        error = f"{bare} has no guards, so that it would match in the net where it was not judged"
        return JudgedPass({}, None, error)
    return judge_range(evaluator, key, attempt.files)


def unguarded(files: Files) -> str | None:
    """Return the name of a pass without guards in a folder, or None.

    Examples:
        >>> names = '["A", "B"]'
        >>> unguarded({LIST_FILE: names, "A.py": "guards = ('x: float32',)", "B.py": "x = 1"})
        'B'
    """
    for name in json.loads(files[LIST_FILE]):
        named = {
            node.id if isinstance(node, ast.Name) else node.name
            for top in ast.parse(files[f"{name}.py"]).body
            for node in (top.targets if isinstance(top, ast.Assign) else [top])
            if isinstance(node, (ast.Name, ast.FunctionDef))
        }
        if named.isdisjoint(("guards", "guard")):
            return str(name)
    return None
