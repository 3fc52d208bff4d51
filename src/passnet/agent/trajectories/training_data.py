"""Attempts as training data: chats with tool calls, or pairs of a task and its passes.

The chats are in the conversational format with tools of TRL, for `SFTTrainer` with
`assistant_only_loss=True`: `tool_calls[].function.arguments` is an object and not text, and `tools`
a list of JSON schemas. The pairs are in its prompt-completion format. Read them with
`datasets.load_dataset("json", data_files=...)` 4.7 or later, which keeps objects of different keys.

Source: TRL 1.16.0, `trl/trainer/sft_trainer.py` (`tokenize_fn`) and its page "Dataset formats and
types"; datasets 5.2.0, `packaged_modules/json`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from passnet.agent.attempts.attempt import Attempt, Message
from passnet.agent.attempts.tools import tool_schemas
from passnet.agent.trajectories.selection import (
    Selection,
    TrainingInfo,
    call_arguments,
)
from passnet.core.records.serialise import encode, make_folder, replace_file, write_json
from passnet.errors import InputError
from passnet.judge.settings import RunSettings
from passnet.judge.task import Task
from passnet.passes.files import Files
from passnet.passes.folder import LIST_FILE

ANSWER_FORM = f"""
Answer with the whole pass folder and nothing else: for each file its name as `name`: and below it
its text as a code block, {LIST_FILE} first.
"""
"""The end of a task's text if the answer is a folder and not tool calls."""

_LANGUAGES = {"py": "python", "json": "json", "md": "markdown", "txt": "text"}


def about_path(out: Path) -> Path:
    """Return the path of the record of a file of training data."""
    return out.with_name(out.stem + ".about.json")


def write_chats(out: Path, selection: Selection, until_best: bool = False) -> TrainingInfo:
    """Write the chats of attempts as JSON lines, replacing the file whole or not at all.

    With `until_best` messages after the evaluation with the highest score are left out, except a
    submission right after it. Raises InputError for a chat without that turn.
    """
    assert selection.info.form == "chat", "what has no chat is left out for chats only"
    rows = [_chat_row(example.attempt, until_best) for example in selection.examples]
    return _write(out, rows, replace(selection.info, until_best=until_best))


def write_pairs(
    out: Path, selection: Selection, instruction: Callable[[Task, RunSettings], str]
) -> TrainingInfo:
    """Write tasks and the passes that were submitted for them, in the same way.

    `instruction` gives the text of a task under the settings of an attempt.
    """
    rows = []
    for example in selection.examples:
        task_text = instruction(example.task, example.attempt.settings)
        prompt = task_text.rstrip() + "\n" + ANSWER_FORM.rstrip()
        answer = folder_text(example.attempt.files)
        row = {
            "prompt": [{"role": "user", "content": prompt}],
            "completion": [{"role": "assistant", "content": answer}],
        }
        rows.append(row | _facts(example.attempt))
    return _write(out, rows, selection.info)


def _write(out: Path, rows: Sequence[dict[str, Any]], info: TrainingInfo) -> TrainingInfo:
    make_folder(out.parent)
    replace_file(out, b"".join(encode(row) + b"\n" for row in rows))
    write_json(about_path(out), info)
    return info


def _chat_row(attempt: Attempt, until_best: bool) -> dict[str, Any]:
    names: dict[str, str] = {}
    messages = []
    for message in _until_best(attempt) if until_best else attempt.messages:
        # Ids may repeat: some LLMs give the same ones in every turn.
        names |= {call.id: call.name for call in message.tool_calls}
        messages.append(_chat_message(message, names))
    return {"messages": messages, "tools": tool_schemas(), **_facts(attempt)}


def _facts(attempt: Attempt) -> dict[str, Any]:
    return {
        "task": attempt.task,
        "suite": attempt.suite,
        "author": attempt.author,
        "llm": attempt.llm,
        "score": attempt.final_score,
        "passnet": attempt.environment.passnet,
    }


def _chat_message(message: Message, names: dict[str, str]) -> dict[str, Any]:
    """Return a message with only the keys of its role; `names` maps ids of calls to tools."""
    row: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        row["tool_call_id"] = message.tool_call_id
        row["name"] = names.get(message.tool_call_id or "", "")
    if message.reasoning:
        row["reasoning_content"] = message.reasoning
    if message.tool_calls:
        row["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call_arguments(call.arguments)},
            }
            for call in message.tool_calls
        ]
    return row


def _until_best(attempt: Attempt) -> tuple[Message, ...]:
    """Return the chat up to the answers to the best evaluation, and a submission right after it."""
    assert attempt.best is not None, "what submitted nothing was left out"
    messages = attempt.messages
    turn = attempt.evaluations[attempt.best].turn
    starts = [index for index, message in enumerate(messages) if message.role == "assistant"]
    if not 0 < turn <= len(starts):
        raise InputError(
            f"task {attempt.task}: {attempt.author}, attempt {attempt.number}: turn {turn} was "
            f"evaluated, but the chat has {len(starts)} turns; export without cutting it"
        )
    if turn < len(starts):
        turn += any(call.name == "submit" for call in messages[starts[turn]].tool_calls)
    stop = starts[turn] if turn < len(starts) else len(messages)
    while messages[stop - 1].role == "user":  # reminders to go on
        stop -= 1
    return messages[:stop]


def folder_text(files: Files) -> str:
    """Return a pass folder as one text: for each file its name, then its text as a code
    block.

    Examples:
        >>> print(folder_text({"a.py": "x = 1\\n"}))
        `a.py`:
        <BLANKLINE>
        ```python
        x = 1
        ```
    """
    names = sorted(files, key=lambda name: (name != LIST_FILE, name))
    return "\n\n".join(_code_block(name, files[name]) for name in names)


def _code_block(name: str, text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    language = _LANGUAGES.get(name.rsplit(".", 1)[-1], "cpp")
    end = "" if text.endswith("\n") or not text else "\n"
    return f"`{name}`:\n\n{fence}{language}\n{text}{end}{fence}"
