"""The prompts of an LLM: the rules and the task, from the templates in `prompts`."""

from pathlib import Path
from string import Template

from passnet.agent.graph_text import graph_text, variants_table
from passnet.agent.rule_examples import rules_text
from passnet.agent.settings import GAIN
from passnet.judge.score.es import SEVERE_PENALTY
from passnet.judge.settings import RunSettings
from passnet.judge.task import Task
from passnet.passes.folder import LIST_FILE

PROMPTS = Path(__file__).parent / "prompts"
EXAMPLES = {
    "cpu": ("example_cpp", "example_cpp_rows"),
    "cuda": ("example_triton", "example_triton_rows"),
}
"""The folders of the worked examples, by kind of device: element by element, and row by row."""


def system_prompt(settings: RunSettings, num_turns: int) -> str:
    """Return the role of the LLM, a description of passes, the rules in force, and the reward."""
    return filled("system.md", passes=_passes(settings), turns=str(num_turns))


def attack_prompt(settings: RunSettings, num_turns: int) -> str:
    """Return the same for an LLM that attacks the judge."""
    return filled("attack.md", passes=_passes(settings), turns=str(num_turns), gain=f"{GAIN:g}")


def instruction(task: Task, settings: RunSettings) -> str:
    """Return both prompts in one text, for an author without our tools."""
    task_text = task_prompt(task, settings).rstrip()
    return filled("instruction.md", passes=_passes(settings), task=task_text)


def _passes(settings: RunSettings) -> str:
    kind = settings.judge.device.split(":")[0]
    text = filled(
        "passes.md",
        rules=rules_text(settings.judge.rules, held_out=settings.held_out is not None),
        language=_text(f"language_{kind}.md").strip(),
        example="\n\n".join(map(_example, EXAMPLES[kind])),
        penalty=f"{SEVERE_PENALTY:g}",
    )
    return text.rstrip()


def task_prompt(task: Task, settings: RunSettings) -> str:
    """Return the task: its calls, its graphs as a table, the first of them op by op."""
    nets = {graph.source.net for graph in task.graphs if graph.source}
    return filled(
        "task.md",
        task=task.name,
        num_graphs=str(len(task.graphs)),
        num_nets=str(max(len(nets), 1)),
        device=settings.judge.device,
        num_threads=str(settings.num_threads),
        ops="\n".join(f"{number}. `{op}`" for number, op in enumerate(task.ops)),
        variants=variants_table(task),
        graph=graph_text(task.graphs[0], 0, len(task.graphs)),
    )


def range_prompt(num_layouts: int) -> str:
    """Return the part of a prompt that follows a task which is a range of a net."""
    layouts = filled("layouts.md", num_layouts=str(num_layouts)) if num_layouts else ""
    return filled("range.md", layouts=layouts).rstrip()


def _example(name: str) -> str:
    folder = PROMPTS / name
    files = [
        f"`{path.name}`:\n\n```python\n{path.read_text(encoding='utf-8').rstrip()}\n```"
        for path in sorted(folder.glob("*.py"))
    ]
    return filled(
        "example.md",
        graph=_text(f"{name}/graph.txt").rstrip(),
        names=_text(f"{name}/{LIST_FILE}").rstrip(),
        files="\n\n".join(files),
    ).rstrip()


def _text(name: str) -> str:
    return (PROMPTS / name).read_text(encoding="utf-8")


def filled(name: str, **values: str) -> str:
    """Return a template of `prompts` with its variables filled in."""
    return Template(_text(name)).substitute(values)
