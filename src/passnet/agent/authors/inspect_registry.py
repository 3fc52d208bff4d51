"""Entry points for Inspect: `inspect eval passnet/passbench`, and the scripted LLM."""

from inspect_ai import Task, task

from passnet.agent.authors.inspect_task import make_task
from passnet.agent.authors.scripted_llm import ScriptedLlm
from passnet.agent.settings import AgentLimits, AgentSettings
from passnet.judge.candidate import CallMode
from passnet.judge.inspection.rules import RulesName
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.protocol.device import find_device
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.judge.suite.suite import load_suite, only_tasks

__all__ = ["ScriptedLlm", "passbench"]


@task
def passbench(
    suite: str = "demo",
    tasks: str = "",
    turns: int = 50,
    attempts: int = 1,
    rules: RulesName = "strict",
    call: CallMode = "compiled",
    device: str = "cpu",
    threads: int = 1,
    seconds: float = 0.4,
    self_tolerance: float = 0.1,
    seed: int = 0,
    sandbox: str = "auto",
    held_out: str = "",
    guarded: bool = False,
) -> Task:
    """Write graph-compiler passes for the tasks of a suite.

    Args:
        suite: a shipped suite, a Parquet file, or a folder of graphs.
        tasks: names of tasks, separated by commas; all where empty.
        turns: how often the llm may speak.
        attempts: at each task.
        rules: what replacements may use: "strict", own kernels only, or "open".
        call: how the rewritten graph is called: "compiled", "direct" or "guarded".
        device: "cpu" or "cuda", where graphs are judged.
        threads: of candidate and reference.
        seconds: to measure each graph.
        self_tolerance: how far the reference may be from itself before a measurement is repeated.
        seed: of inputs, and of the first attempt.
        sandbox: what confines candidate code.
        held_out: a suite of other shapes of the same tasks.
        guarded: submit nothing that scores no better than leaving the graph alone.
    """
    find_device(device)
    loaded = load_suite(suite)
    if tasks:
        loaded = only_tasks(loaded, tuple(tasks.split(",")))
    judge = JudgeSettings(
        device=device,
        seed=seed,
        timing=TimingPlan(seconds=seconds),
        self_tolerance=self_tolerance,
        rules=rules,
    )
    unseen = load_suite(held_out) if held_out else None
    held_out_hash = unseen.content_hash if unseen else None
    run = RunSettings(judge, threads, find_sandbox(sandbox).name, held_out_hash)
    settings = AgentSettings(
        author="llm",
        run=run,
        call=call,
        limits=AgentLimits(turns),
        seed=seed,
        num_attempts=attempts,
        is_guarded=guarded,
    )
    return make_task(loaded, settings, unseen)
