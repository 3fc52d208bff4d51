"""PassAgent as a task of Inspect: an llm writes passes with tools until it submits, or a limit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
from inspect_ai import Task as InspectTask
from inspect_ai.agent import AgentState, AgentSubmit, react
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentReasoning,
    GenerateConfig,
    Model,
    get_model,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolDef, ToolParams
from inspect_ai.util import LimitExceededError

from passnet.agent.attempt import Attempt, Ending, Message, ToolCall
from passnet.agent.attempt_record import AttemptProgress, finished, with_messages
from passnet.agent.evaluator import Workbench
from passnet.agent.prompt import system_prompt, task_prompt
from passnet.agent.session import Session
from passnet.agent.settings import AgentSettings, LlmSettings
from passnet.agent.tools import tool_schemas
from passnet.bench.run import held_out_graphs
from passnet.errors import AuthorError, PassnetError, boundary
from passnet.records.serialise import encode
from passnet.suite.suite import Suite

MAX_SILENT_TURNS = 3
"""How often in a row an llm may speak without calling a tool before the attempt ends."""

MAX_SAME_TURNS = 6
"""How often in a row it may make the same calls."""

GO_ON = "Call a tool. When you are done, call `submit`."

ENDINGS: dict[str, Ending] = {
    "turn": "turns",
    "message": "messages",
    "token": "tokens",
    "time": "time",
    "working": "time",
    "cost": "cost",
}
"""Endings by the names of Inspect's limits."""


def make_task(
    suite: Suite,
    settings: AgentSettings,
    held_out: Suite | None = None,
    done: Collection[tuple[str, int]] = (),
    keep: Callable[[Attempt], None] | None = None,
) -> InspectTask:
    """The task of Inspect with one sample for each attempt that is still to be made.

    Args:
        suite: the tasks to solve.
        settings: how.
        held_out: shapes of the same tasks that no author sees; see `judge.held_out`.
        done: attempts that are left out, by task and number.
        keep: told about every attempt that ended.
    """
    wanted = [
        (task.name, number) for number in range(settings.num_attempts) for task in suite.tasks
    ]
    samples = [
        Sample(
            input=f"Write passes for the task {name}.",
            id=f"{name}#{number}",
            metadata={"task": name, "number": number},
        )
        for name, number in wanted
        if (name, number) not in done
    ]
    attempts: dict[str, tuple[Session, AttemptProgress]] = {}
    limits = settings.limits
    return InspectTask(
        dataset=MemoryDataset(samples, name=suite.name),
        solver=_author(suite, settings, held_out, attempts)(),
        scorer=_recorder(suite, settings, attempts, keep)(),
        turn_limit=limits.turns,
        token_limit=limits.tokens,
        time_limit=limits.seconds,
        cost_limit=limits.cost,
        fail_on_error=False,
        name="passbench",
    )


def _author(
    suite: Suite,
    settings: AgentSettings,
    held_out: Suite | None,
    attempts: dict[str, tuple[Session, AttemptProgress]],
) -> Callable[[], Solver]:
    tasks = {task.name: task for task in suite.tasks}

    @solver(name="write_passes")
    def write_passes() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            task = tasks[state.metadata["task"]]
            progress = AttemptProgress()
            bench = Workbench(settings.run, settings.call)
            await anyio.to_thread.run_sync(bench.__enter__)
            session = Session(
                task, bench, held_out_graphs(held_out, task.name), settings.is_guarded
            )
            attempts[state.uuid] = (session, progress)
            try:
                await anyio.to_thread.run_sync(bench.prepare, task)
                prompt = await anyio.to_thread.run_sync(task_prompt, task, settings.run)
                state.messages = [
                    ChatMessageSystem(content=system_prompt(settings.run, settings.limits.turns)),
                    ChatMessageUser(content=prompt),
                ]
                seed = settings.seed + int(state.metadata["number"])
                await _converse(state, session, progress, _seeded(seed))
            finally:
                _note_usage(progress)
                bench.close()
                bench.__exit__()
            return state

        return solve

    return write_passes


def _seeded(seed: int) -> Model:
    model = get_model()
    return Model(model.api, model.config.merge(GenerateConfig(seed=seed)), model.model_args)


async def _converse(
    state: TaskState, session: Session, progress: AttemptProgress, model: Model
) -> None:
    """Let the llm speak and act until it submits, stalls, reaches a limit, or fails.

    Raises:
        LimitExceededError: a limit of Inspect's.
    """
    agent_state = AgentState(messages=list(state.messages))
    agent = react(
        prompt=None,
        tools=[item for item in _tools(session) if item.name != "submit"],
        submit=AgentSubmit(
            tool=next(item for item in _tools(session) if item.name == "submit"),
            keep_in_messages=True,
        ),
        model=model,
        on_continue=partial(_go_on, session),
    )
    progress.ending = "time"  # if it is cancelled
    try:
        with boundary(AuthorError, f"llm {model}"):
            agent_state = await agent(agent_state)
        progress.ending = "submitted" if session.is_submitted else "stalled"
    except PassnetError as cause:
        limit = _limit_in(cause)
        if limit is not None:
            progress.ending = ENDINGS.get(limit.type, "error")
            raise limit from cause
        progress.ending = "error"
        progress.error = _one_line(cause)
    finally:
        state.messages = agent_state.messages
        with_messages(progress, [_message(item) for item in state.messages])
        session.num_bad_actions += sum(
            isinstance(item, ChatMessageTool) and item.error is not None for item in state.messages
        )


async def _go_on(session: Session, state: AgentState) -> bool | str:
    """Whether the conversation goes on, or what is said to an llm that called no tool."""
    session.turn += 1
    if session.is_submitted:
        return False
    said = [item for item in state.messages if isinstance(item, ChatMessageAssistant)]
    last = said[-MAX_SILENT_TURNS:]
    if len(last) == MAX_SILENT_TURNS and not any(item.tool_calls for item in last):
        return False
    same = [
        [(call.function, str(call.arguments)) for call in item.tool_calls or ()]
        for item in said[-MAX_SAME_TURNS:]
    ]
    if len(same) == MAX_SAME_TURNS and all(item == same[0] for item in same):
        return False
    return True if said and said[-1].tool_calls else GO_ON


def _tools(session: Session) -> list[ToolDef]:
    """The tools of an attempt; what they do runs on another thread, so that others can go on."""
    found = []
    for schema in tool_schemas():
        function = schema["function"]
        found.append(
            ToolDef(
                _tool(session, function["name"]),
                name=function["name"],
                description=function["description"],
                parameters=ToolParams(
                    properties=function["parameters"]["properties"],
                    required=function["parameters"]["required"],
                ),
                max_output=0,
            )
        )
    return found


def _tool(session: Session, name: str) -> Callable[..., Any]:
    async def execute(**kwargs: Any) -> str:
        arguments = encode(kwargs)
        return await anyio.to_thread.run_sync(session.call, name, arguments, abandon_on_cancel=True)

    return execute


def _limit_in(cause: BaseException | None) -> LimitExceededError | None:
    while cause is not None:
        if isinstance(cause, LimitExceededError):
            return cause
        if isinstance(cause, BaseExceptionGroup):
            inner = [_limit_in(item) for item in cause.exceptions]
            return next((item for item in inner if item is not None), None)
        cause = cause.__cause__
    return None


def _one_line(cause: BaseException) -> str:
    return " ".join(str(cause).split())[:600]


def _note_usage(progress: AttemptProgress) -> None:
    for event in transcript().events:
        if isinstance(event, ModelEvent) and event.output.usage is not None:
            usage = event.output.usage
            progress.input_tokens += usage.input_tokens
            progress.output_tokens += usage.output_tokens
            if usage.total_cost is not None:
                progress.cost = (progress.cost or 0.0) + usage.total_cost


def _message(item: ChatMessage) -> Message:
    """A message of Inspect's as one of ours."""
    if isinstance(item, ChatMessageTool):
        text = item.text if item.error is None else f"error: {item.error.message}"
        return Message("tool", text, tool_call_id=item.tool_call_id)
    calls: Sequence[Any] = ()
    if isinstance(item, ChatMessageAssistant):
        calls = item.tool_calls or ()
    reasoning = None
    if not isinstance(item.content, str):
        thoughts = [part.reasoning for part in item.content if isinstance(part, ContentReasoning)]
        reasoning = "\n".join(thoughts) or None
    return Message(
        item.role,
        item.text,
        tuple(ToolCall(call.id, call.function, encode(call.arguments).decode()) for call in calls),
        reasoning=reasoning,
    )


def _recorder(
    suite: Suite,
    settings: AgentSettings,
    attempts: dict[str, tuple[Session, AttemptProgress]],
    keep: Callable[[Attempt], None] | None,
) -> Callable[[], Scorer]:
    @scorer(metrics=[mean(), stderr()], name="passnet_as")
    def passnet_as() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            session, progress = attempts.pop(state.uuid)
            number = int(state.metadata["number"])
            llm = settings.llm or LlmSettings(str(get_model()))  # Inspect's own command names it
            made_with = replace(settings, llm=llm)
            attempt = await anyio.to_thread.run_sync(
                finished, session, progress, suite, made_with, number
            )
            if keep is not None:
                keep(attempt)
            value = attempt.final_score if attempt.final_score is not None else attempt.score
            return Score(
                value=value if value is not None else 0.0,
                answer=None if attempt.best is None else f"evaluation {attempt.best}",
                explanation=attempt.error,
                metadata={"attempt": encode(attempt).decode()},
            )

        return score

    return passnet_as
