"""The whole path with a real llm: a tiny one, behind an OpenAI-compatible server on loopback."""

import tomllib
from pathlib import Path

import pytest

from tests.agent.test_run import WRITE, attempts, call, run
from tests.agent.tiny_llm import said, served, teach
from tests.bench.runs import write_small_suite

pytest.importorskip("fastapi", reason="the server of transformers needs fastapi and uvicorn")
pytest.importorskip("uvicorn", reason="the server of transformers needs fastapi and uvicorn")
from passnet.agent.authors.scripted_llm import DEFAULT_SCRIPT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("agent")]


def test_an_llm_behind_a_server_solves_a_task(tmp_path: Path) -> None:
    turns = [
        said("I look first.", [call("show_graph", graph=0)]),
        said("Now the pass.", WRITE),
        said("How does it do?", [call("check_match"), call("evaluate")]),
        said("Good.", [call("submit")]),
    ]
    folder = tmp_path / "tiny"
    assert teach(folder, turns), "it has not learned its turns"
    suite = write_small_suite(tmp_path / "small.parquet", 2)
    out = tmp_path / "out"
    with served(folder) as address:
        process = run(out, suite, f"openai/{folder}", "--base-url", address, "--retries", "0")
        log = (folder / "server.log").read_text(encoding="utf-8", errors="replace")
    assert process.returncode == 0, process.stderr + log
    (attempt,) = attempts(out)
    assert attempt.error is None, (attempt.error, log)
    assert attempt.ending == "submitted" and attempt.num_turns == 4, attempt.messages
    assert attempt.output_tokens > 100 and attempt.final_score is not None
    assert (out / "passes" / "add_relu" / "Fuse.py").exists()


def test_the_shipped_script_is_one_that_a_server_could_give() -> None:
    turns = tomllib.loads(DEFAULT_SCRIPT.read_text(encoding="utf-8"))["turn"]
    assert all(said(turn["text"], turn.get("call", [])).endswith("<|im_end|>") for turn in turns)


def test_a_model_that_the_server_refuses_is_a_record(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    teach(folder, [said("Nothing.", [])])
    suite = write_small_suite(tmp_path / "small.parquet", 2)
    with served(folder) as address:
        process = run(
            tmp_path / "out", suite, "openai/gpt-x", "--base-url", address, "--retries", "0"
        )
    (attempt,) = attempts(tmp_path / "out")
    assert attempt.ending == "error" and attempt.error is not None
    assert "gpt-x" in process.stderr
