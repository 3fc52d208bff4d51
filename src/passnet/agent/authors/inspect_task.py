"""PassAgent as a task of Inspect: an LLM writes passes with tools until it submits, or a limit."""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from anyio import to_thread
from inspect_ai import Task as InspectTask
from inspect_ai import model as ai
from inspect_ai.agent import AgentState, AgentSubmit, react
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, ToolDef, ToolParams
from inspect_ai.util import LimitExceededError

from passnet.agent.attempts.attempt import Attempt, Ending, Message, ToolCall
from passnet.agent.attempts.attempt_record import attempt_record
from passnet.agent.attempts.observations import unchanged_text
from passnet.agent.attempts.session import Session, new_session
from passnet.agent.attempts.tools import tool_schemas
from passnet.agent.authors.inspect_asking import (
    Endpoint,
    Endpoints,
    answer_tokens,
    ask,
    note_usage,
)
from passnet.agent.authors.inspect_llm import named
from passnet.agent.prompt import attack_prompt, range_prompt, system_prompt, task_prompt
from passnet.agent.settings import AgentLimits, AgentSettings, LlmSettings
from passnet.core.records.serialise import encode
from passnet.errors import AuthorError, PassnetError, boundary
from passnet.judge.suite.suite import Suite
from passnet.judge.task import Task

MAX_SILENT_TURNS = 3
"""Turns in a row without a call of a tool that end an attempt."""
MAX_SAME_TURNS = 6
"""Turns in a row with the same calls that end an attempt."""

ENDINGS: dict[str, Ending] = {"turn": "turns", "message": "messages", "token": "tokens"}
ENDINGS |= {"time": "time", "working": "time", "cost": "cost"}
"""Endings by the names of Inspect's limits."""


def make_task(
    suite: Suite,
    settings: AgentSettings,
    held_out: Suite | None = None,
    missing: Sequence[tuple[Task, int]] | None = None,
    keep: Callable[[Attempt], None] | None = None,
    check: Callable[[], None] = lambda: None,
    llms: Sequence[ai.Model] = (),
    watch: Callable[[Session], None] = lambda session: None,
) -> InspectTask:
    """Return the task of Inspect with one sample for each attempt, or each `missing` one.

    `keep` gets every attempt that ended; `check` is called before each, and raises to end the run.
    `held_out` are shapes that no author sees. `llms` are the endpoints to ask, by default that of
    Inspect's own command. `watch` gets a session after each answer.
    """
    if missing is None:
        numbers = range(settings.num_attempts)
        missing = [(task, number) for number in numbers for task in suite.tasks]
    samples = [
        Sample(
            input=f"Write passes for the task {task.name}.",
            id=f"{task.name}#{number}",
            metadata={"task": task.name, "number": number},
        )
        for task, number in missing
    ]
    sessions: dict[str, Session] = {}
    limits = settings.limits
    return InspectTask(
        dataset=MemoryDataset(samples, name=suite.name),
        solver=_author(suite, settings, held_out, sessions, check, Endpoints(llms), watch),
        scorer=_recorder(suite, settings, sessions, keep),
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
    sessions: dict[str, Session],
    check: Callable[[], None],
    endpoints: Endpoints,
    watch: Callable[[Session], None],
) -> Solver:
    tasks = {task.name: task for task in suite.tasks}
    prompt_of = system_prompt if settings.kernels is None else attack_prompt

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        check()
        task = tasks[state.metadata["task"]]
        session = sessions[state.uuid] = new_session(task, settings, held_out)
        session.ending = "time"  # if it is cancelled
        with ExitStack() as stack:
            try:
                with boundary(AuthorError, "preparing the attempt"):
                    await to_thread.run_sync(stack.enter_context, session.evaluator)
                    stack.callback(session.evaluator.close)
                    stack.callback(note_usage, session)
                    await to_thread.run_sync(session.evaluator.prepare, task)
                    prompt = await to_thread.run_sync(task_prompt, task, settings.run)
                    unchanged = await to_thread.run_sync(session.evaluator.unchanged, task)
            except PassnetError as cause:
                session.fail(cause)
                return state
            if text := unchanged_text(unchanged, task):
                prompt += f"\n\n{text}\n"
            if settings.num_layouts is not None:
                prompt += range_prompt(settings.num_layouts)
            state.messages = [
                ai.ChatMessageSystem(content=prompt_of(settings.run, settings.limits.turns)),
                ai.ChatMessageUser(content=prompt),
            ]
            asked = stack.enter_context(endpoints.use())
            seed = settings.seed + int(state.metadata["number"])
            await converse(state, session, asked, seed, settings.limits, watch)
        return state

    return solver(name="write_passes")(lambda: solve)()


async def converse(
    state: TaskState,
    session: Session,
    endpoints: list[Endpoint],
    seed: int,
    limits: AgentLimits,
    watch: Callable[[Session], None],
) -> None:
    """Let the LLM speak and act until it submits, stalls, reaches a limit, or fails."""
    agent_state = AgentState(messages=list(state.messages))

    async def answer(state: AgentState, tools: list[Tool]) -> AgentState:
        most = answer_tokens(session, state.messages, limits, endpoints[0].llm)
        config = ai.GenerateConfig(seed=seed, max_tokens=most)
        try:
            state.output = await ask(endpoints, state.messages, tools, config)
        finally:
            note_usage(session)
        state.messages.append(state.output.message)
        watch(session)
        return state

    tools = _tools(session)
    agent = react(
        prompt=None,
        submit=AgentSubmit(tool=tools.pop("submit"), keep_in_messages=True),
        tools=list(tools.values()),
        model=answer,
        on_continue=partial(_go_on, session),
    )
    try:
        with boundary(AuthorError, named(endpoints[0].llm)):
            agent_state = await agent(agent_state)
        session.ending = "submitted" if session.is_submitted else "stalled"
    except PassnetError as cause:
        limit = _limit_in(cause)
        if limit is not None:
            session.ending = ENDINGS.get(limit.type, "error")
            raise limit from cause
        session.fail(cause)
    finally:
        state.messages = agent_state.messages
        session.messages = [recorded_message(message) for message in state.messages]
        session.num_bad_actions += sum(
            isinstance(message, ai.ChatMessageTool) and message.error is not None
            for message in state.messages
        )


async def _go_on(session: Session, state: AgentState) -> bool | str:
    """Return whether the conversation goes on, or the answer to an LLM that called no tool."""
    session.turn += 1
    if session.is_submitted:
        return False
    turns = [
        [(call.function, str(call.arguments)) for call in message.tool_calls or ()]
        for message in state.messages
        if isinstance(message, ai.ChatMessageAssistant)
    ]
    last, same = turns[-MAX_SILENT_TURNS:], turns[-MAX_SAME_TURNS:]
    if len(last) == MAX_SILENT_TURNS and not any(last):
        return False
    if len(same) == MAX_SAME_TURNS and all(calls == same[0] for calls in same):
        return False
    return True if turns and turns[-1] else "Call a tool. When you are done, call `submit`."


def _tools(session: Session) -> dict[str, ToolDef]:
    """Return the tools of an attempt; they work on another thread, so that others can go on."""
    functions = [schema["function"] for schema in tool_schemas(session.known_tools)]
    return {
        function["name"]: ToolDef(
            _tool(session, function["name"]),
            name=function["name"],
            description=function["description"],
            parameters=ToolParams(**function["parameters"]),
            max_output=0,
        )
        for function in functions
    }


def _tool(session: Session, name: str) -> Callable[..., Any]:
    async def execute(**kwargs: Any) -> str:
        arguments = encode(kwargs)
        return await to_thread.run_sync(session.call, name, arguments, abandon_on_cancel=True)

    return execute


def _limit_in(cause: BaseException | None) -> LimitExceededError | None:
    while cause is not None:
        if isinstance(cause, LimitExceededError):
            return cause
        if isinstance(cause, BaseExceptionGroup):
            limits = map(_limit_in, cause.exceptions)
            return next((limit for limit in limits if limit is not None), None)
        cause = cause.__cause__
    return None


def recorded_message(message: ai.ChatMessage) -> Message:
    """Return a message as it is recorded.

    Inspect calls a tool without arguments if those that the LLM wrote are no JSON. They are
    recorded as Inspect's complaint, which holds them and is no JSON either.
    """
    if isinstance(message, ai.ChatMessageTool):
        text = message.text if message.error is None else f"error: {message.error.message}"
        return Message("tool", text, tool_call_id=message.tool_call_id)
    calls = message.tool_calls if isinstance(message, ai.ChatMessageAssistant) else None
    parts = [] if isinstance(message.content, str) else message.content
    thoughts = [part.reasoning for part in parts if isinstance(part, ai.ContentReasoning)]
    return Message(
        message.role,
        message.text,
        tuple(
            ToolCall(call.id, call.function, call.parse_error or encode(call.arguments).decode())
            for call in calls or ()
        ),
        reasoning="\n".join(thoughts) or None,
    )


def _recorder(
    suite: Suite,
    settings: AgentSettings,
    sessions: dict[str, Session],
    keep: Callable[[Attempt], None] | None,
) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        llm = settings.llm or LlmSettings(str(ai.get_model()))  # Inspect's own command names it
        attempt = await to_thread.run_sync(
            attempt_record,
            sessions.pop(state.uuid),
            suite,
            replace(settings, llm=llm),
            int(state.metadata["number"]),
        )
        if keep is not None:
            keep(attempt)
        value = attempt.last_score
        return Score(
            value=math.nan if value is None else value,  # no mean counts it
            answer=None if attempt.best is None else f"evaluation {attempt.best}",
            explanation=attempt.error or attempt.untimed,
            metadata={"attempt": encode(attempt).decode()},
        )

    return scorer(metrics=[mean(), stderr()], name="passnet_as")(lambda: score)()
