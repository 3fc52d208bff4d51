"""Attempts as training data: chats with tool calls, or pairs of a task and its passes.

The chats are in the conversational format with tools of TRL, for `SFTTrainer` with
`assistant_only_loss=True`: `messages` in which `tool_calls[].function.arguments` is an object and
not text (templates of Qwen, Llama 3.1 and others fail or quote twice otherwise), and `tools` as a
list of JSON schemas. The pairs are in its conversational prompt-completion format. Lines are read
with `datasets.load_dataset("json", data_files=...)`; from 4.7 on, which TRL 1 needs, `datasets`
keeps objects of different keys as they are, and before that it filled them up with None.

Source: TRL 1.16.0, `trl/trainer/sft_trainer.py` (`tokenize_fn`), `trl/chat_template_utils.py`
(`supports_tool_calling`) and its page "Dataset formats and types"; datasets 5.2.0,
`packaged_modules/json`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passnet.agent.attempt import Attempt, Message
from passnet.agent.dedup import call_arguments
from passnet.agent.files import Files
from passnet.agent.selection import Chosen, ExclusionReason, Filters, Selection, TrainingForm
from passnet.agent.tools import tool_schemas
from passnet.errors import InputError
from passnet.passes.folder import LIST_FILE
from passnet.records.serialise import SCHEMA_VERSION, encode, make_folder, replace_file, write_json
from passnet.suite.suite import Task

ANSWER_FORM = f"""
Answer with the whole pass folder and nothing else: for each file its name as `name`: and below it
its text as a code block, {LIST_FILE} first.
"""
"""What is added to the text of a task where the answer is a folder and not tool calls."""

_LANGUAGES = {"py": "python", "json": "json", "md": "markdown", "txt": "text"}


@dataclass(frozen=True)
class TrainingInfo:
    """What a file of training data was made of; beside it under `about_path`.

    `dropped` says how many attempts were left out for which reason; see `selection.Selection`.
    """

    schema_version: int
    form: TrainingForm
    until_best: bool
    filters: Filters
    evaluation: dict[str, str]
    near_sequences: int
    num_read: int
    dropped: dict[ExclusionReason, int]
    num_rows: int
    num_tasks: int


def about_path(out: Path) -> Path:
    """Where the record of a file of training data is."""
    return out.with_name(out.stem + ".about.json")


def write_chats(out: Path, selection: Selection, until_best: bool = False) -> TrainingInfo:
    """Write the chats of attempts as JSON lines, replacing the file whole or not at all.

    Args:
        out: the file.
        selection: made with form "chat".
        until_best: leave out what was said after the evaluation with the highest score; a
            submission that came right after it stays.

    Raises:
        InputError: a chat does not hold the turn that was evaluated; the file cannot be written.
    """
    assert selection.form == "chat", "what has no chat is left out for chats only"
    tools = tool_schemas()
    rows = [_chat_row(item, until_best, tools) for item in selection.chosen]
    return _write(out, rows, selection, until_best)


def write_pairs(
    out: Path, selection: Selection, instruction: Callable[[Task], str]
) -> TrainingInfo:
    """Write tasks and the passes that were submitted for them, in the same way.

    Args:
        out: the file.
        selection: made with form "pairs".
        instruction: the text of a task; how to answer is added to it.

    Raises:
        InputError: the file cannot be written.
    """
    rows = [_pair_row(item, instruction(item.task)) for item in selection.chosen]
    return _write(out, rows, selection, until_best=False)


def _write(
    out: Path, rows: Sequence[dict[str, Any]], selection: Selection, until_best: bool
) -> TrainingInfo:
    info = TrainingInfo(
        SCHEMA_VERSION,
        selection.form,
        until_best,
        selection.filters,
        selection.evaluation,
        selection.near_sequences,
        selection.num_read,
        selection.dropped,
        len(rows),
        len({item.task.ops for item in selection.chosen}),
    )
    make_folder(out.parent)
    try:
        replace_file(out, b"".join(encode(row) + b"\n" for row in rows))
        write_json(about_path(out), info)
    except OSError as cause:
        raise InputError(f"{out}: cannot be written: {cause.strerror}") from cause
    return info


def _chat_row(item: Chosen, until_best: bool, tools: list[dict[str, Any]]) -> dict[str, Any]:
    messages = _until_best(item.attempt) if until_best else item.attempt.messages
    names: dict[str, str] = {}
    said = []
    for message in messages:  # in order, for some llms give the same ids in every turn
        names.update({call.id: call.name for call in message.tool_calls})
        said.append(_chat_message(message, names))
    return {"messages": said, "tools": tools, **_facts(item.attempt)}


def _pair_row(item: Chosen, text: str) -> dict[str, Any]:
    asked = text.rstrip() + "\n" + ANSWER_FORM.rstrip()
    return {
        "prompt": [{"role": "user", "content": asked}],
        "completion": [{"role": "assistant", "content": folder_text(item.attempt.files)}],
        **_facts(item.attempt),
    }


def _facts(attempt: Attempt) -> dict[str, Any]:
    """Columns that trainers leave alone, to choose rows by."""
    return {
        "task": attempt.task,
        "suite": attempt.suite,
        "author": attempt.author,
        "llm": attempt.llm,
        "score": attempt.final_score,
        "passnet": attempt.environment.passnet,
    }


def _chat_message(message: Message, names: dict[str, str]) -> dict[str, Any]:
    """A message with only the keys that its role has: templates ask whether a key is there."""
    made: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        made["tool_call_id"] = message.tool_call_id
        made["name"] = names.get(message.tool_call_id or "", "")
    if message.reasoning:
        made["reasoning_content"] = message.reasoning
    if message.tool_calls:
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call_arguments(call.arguments)},
            }
            for call in message.tool_calls
        ]
    return made


def _until_best(attempt: Attempt) -> tuple[Message, ...]:
    """The chat up to the answers to the turn of the best evaluation.

    The next turn stays if it submits, so that submitting is learned.
    """
    assert attempt.best is not None, "what submitted nothing was left out"
    turn = attempt.evaluations[attempt.best].turn
    spoken = [place for place, item in enumerate(attempt.messages) if item.role == "assistant"]
    if not 0 < turn <= len(spoken):
        raise InputError(
            f"task {attempt.task}: {attempt.author}, attempt {attempt.number}: turn {turn} was "
            f"evaluated, but the chat has {len(spoken)} turns; export without cutting it"
        )
    if turn < len(spoken):
        following = attempt.messages[spoken[turn]]
        turn += any(call.name == "submit" for call in following.tool_calls)
    stop = spoken[turn] if turn < len(spoken) else len(attempt.messages)
    kept = attempt.messages[:stop]
    while kept[-1].role == "user":  # what was said to make the author go on
        kept = kept[:-1]
    return kept


def folder_text(files: Files) -> str:
    """A pass folder as one text: of each file its name, then its text as a code block.

    Examples:
        >>> print(folder_text({"a.py": "x = 1\\n"}))
        `a.py`:
        <BLANKLINE>
        ```python
        x = 1
        ```
    """
    names = sorted(files, key=lambda name: (name != LIST_FILE, name))
    return "\n\n".join(_block(name, files[name]) for name in names)


def _block(name: str, text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    language = _LANGUAGES.get(name.rsplit(".", 1)[-1], "cpp")
    end = "" if text.endswith("\n") or not text else "\n"
    return f"`{name}`:\n\n{fence}{language}\n{text}{end}{fence}"
