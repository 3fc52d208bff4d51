"""Trainers can read an export, and it holds all messages."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Message
from passnet.agent.attempts.tools import tool_schemas
from passnet.agent.trajectories.selection import TrainingInfo
from passnet.agent.trajectories.training_data import (
    about_path,
    folder_text,
    write_chats,
    write_pairs,
)
from passnet.cli.agent import agent
from passnet.core.records.serialise import LineWriter, read_json
from passnet.errors import InputError
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.suite.suite import write_suite
from passnet.judge.task import Task
from passnet.pages.tables.attempt_tables import training_table
from passnet.passes.folder import LIST_FILE
from tests.agent.attempts import (
    ATTEMPT,
    SUITE,
    attempt,
    chat,
    different,
    evaluation,
    load_rows,
    selection,
    turn,
)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def said(row: dict[str, Any]) -> list[str]:
    """The tools that are called in a chat."""
    return [call["function"]["name"] for message in row["messages"]
            for call in message.get("tool_calls", ())]  # fmt: skip


def test_a_chat_has_its_messages_its_calls_as_objects_and_its_tools(tmp_path: Path) -> None:
    thought = replace(ATTEMPT.messages[2], reasoning="Add first.")
    messages = (*ATTEMPT.messages[:2], thought, *ATTEMPT.messages[3:])
    write_chats(tmp_path / "chat.jsonl", selection(attempt(messages=messages)))
    (row,) = rows(tmp_path / "chat.jsonl")
    assert row["tools"] == tool_schemas()
    assert row["messages"][:4] == [
        {"role": "system", "content": "You write passes."},
        {"role": "user", "content": "Task relu. "},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "Add first.",
            "tool_calls": [
                {
                    "id": "call_0",
                    "type": "function",
                    "function": {
                        "name": "create",
                        "arguments": {"name": "Fuse.py", "text": "x = 1\n"},
                    },
                }
            ],
        },
        {"role": "tool", "content": "answer to create", "tool_call_id": "call_0", "name": "create"},
    ]
    assert said(row) == ["create", "evaluate", "submit"]
    assert (row["task"], row["llm"], row["score"]) == ("relu", "open/one", 1.4)


def test_an_answer_is_named_after_the_call_before_it_where_ids_come_again(tmp_path: Path) -> None:
    messages = (*ATTEMPT.messages[:2], *turn(0, "view"), *turn(0, "evaluate"), *turn(0, "submit"))
    write_chats(tmp_path / "chat.jsonl", selection(attempt(messages=messages)))
    (row,) = rows(tmp_path / "chat.jsonl")
    answers = [message["name"] for message in row["messages"] if message["role"] == "tool"]
    assert answers == ["view", "evaluate", "submit"]


LONG = chat("create", "evaluate", "view", "evaluate", "delete", "evaluate", "submit")


@pytest.mark.parametrize(
    ("best", "tools"),
    [
        (0, ["create", "evaluate"]),
        (1, ["create", "evaluate", "view", "evaluate"]),
        (2, ["create", "evaluate", "view", "evaluate", "delete", "evaluate", "submit"]),
    ],
)
def test_a_chat_can_be_cut_after_its_best_evaluation(
    tmp_path: Path, best: int, tools: list[str]
) -> None:
    tried = attempt(
        messages=LONG, evaluations=tuple(evaluation(number, 1.5) for number in (2, 4, 6)), best=best
    )
    info = write_chats(tmp_path / "chat.jsonl", selection(tried), until_best=True)
    (row,) = rows(tmp_path / "chat.jsonl")
    assert info.until_best
    assert said(row) == tools
    assert row["messages"][-1]["role"] == "tool"


def test_a_request_to_go_on_is_not_the_end_of_a_cut_chat(tmp_path: Path) -> None:
    messages = (*chat("evaluate"), Message("user", "Go on."), *turn(1, "view"))
    tried = attempt(messages=messages, evaluations=(evaluation(1, 1.5),))
    write_chats(tmp_path / "chat.jsonl", selection(tried), until_best=True)
    assert rows(tmp_path / "chat.jsonl")[0]["messages"][-1]["role"] == "tool"


def test_a_chat_without_the_turn_to_cut_at_is_refused(tmp_path: Path) -> None:
    tried = attempt(evaluations=(evaluation(7, 1.5),))
    with pytest.raises(InputError, match="turn 7 was evaluated, but the chat has 3 turns"):
        write_chats(tmp_path / "chat.jsonl", selection(tried), until_best=True)


def test_a_pair_is_the_text_of_the_task_and_the_submitted_folder(tmp_path: Path) -> None:
    def instruction(task: Task, settings: RunSettings) -> str:
        return f"Task {task.name} of {len(task.graphs)} graphs."

    tried = attempt(messages=())
    write_pairs(tmp_path / "pairs.jsonl", selection(tried, form="pairs"), instruction)
    (row,) = rows(tmp_path / "pairs.jsonl")
    ((question,), (answered,)) = row["prompt"], row["completion"]
    assert (question["role"], answered["role"]) == ("user", "assistant")
    assert question["content"].startswith("Task relu of 2 graphs.\n")
    assert answered["content"] == folder_text(tried.files)
    assert answered["content"].startswith(f'`{LIST_FILE}`:\n\n```json\n["Fuse"]\n```\n\n`Fuse.py`')


def test_a_pair_is_asked_for_under_the_rules_that_its_attempt_had(tmp_path: Path) -> None:
    for name, rules, threads in (("strict", "strict", 1), ("open", "open", 4)):
        settings = RunSettings(JudgeSettings(rules=rules), num_threads=threads)
        task = {"strict": "relu", "open": "tanh"}[name]
        with LineWriter(tmp_path / name / ATTEMPTS_FILE) as writer:
            writer.write(different(threads, task=task, settings=settings))
    write_suite(tmp_path / "train.parquet", SUITE)
    out = tmp_path / "pairs.jsonl"
    words = ["export", tmp_path / "strict", tmp_path / "open", "--form", "pairs", "--out", out]
    words += ["--suite", tmp_path / "train.parquet"]
    done = CliRunner().invoke(agent, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    texts = {row["task"]: row["prompt"][0]["content"] for row in rows(out)}
    assert "1 thread(s)" in texts["relu"] and "4 thread(s)" in texts["tanh"]
    forbids = "No operation of torch computes"
    assert forbids in texts["relu"] and forbids not in texts["tanh"]


def test_the_fence_around_a_file_is_longer_than_any_in_it() -> None:
    text = folder_text({"a.md": "```\nx\n```\n"})
    assert text == "`a.md`:\n\n````markdown\n```\nx\n```\n````"


def test_what_was_left_out_is_written_beside_the_rows(tmp_path: Path) -> None:
    out = tmp_path / "new" / "chat.jsonl"
    info = write_chats(out, selection(ATTEMPT, different(1), different(2, final_score=0.5)))
    assert read_json(about_path(out), TrainingInfo) == info
    assert (info.num_read, info.num_rows, info.num_tasks) == (3, 2, 1)
    assert info.dropped == {"score too low": 1}
    assert ("score too low", "1") in training_table(info).rows


def test_exported_chats_are_read_as_they_were_written(tmp_path: Path) -> None:
    out = tmp_path / "chat.jsonl"
    write_chats(out, selection(ATTEMPT, different(1), different(2, messages=LONG)))
    assert list(load_rows(out, tmp_path)) == rows(out)


def test_a_chat_that_calls_one_tool_only_is_read_as_it_was_written(tmp_path: Path) -> None:
    out = tmp_path / "chat.jsonl"
    write_chats(out, selection(attempt(messages=chat("submit"))))
    assert list(load_rows(out, tmp_path)) == rows(out)


def test_exported_pairs_are_read_as_they_were_written(tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    write_pairs(out, selection(ATTEMPT, different(1), form="pairs"), lambda task, _: task.name)
    assert list(load_rows(out, tmp_path)) == rows(out)
