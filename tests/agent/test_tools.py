"""The calls of tools: accepted ones, and those that are answered with one line."""

import pytest

from passnet.agent.attempts.tools import (
    TOOLS,
    Create,
    Replace,
    ShowGraph,
    View,
    parse_action,
    tool_schemas,
)
from passnet.errors import ActionError


def test_a_call_becomes_an_action() -> None:
    assert parse_action("view", "") == View()
    assert parse_action("show_graph", '{"graph": 2}') == ShowGraph(2)
    assert parse_action("replace", '{"name":"a.py","old":"x","new":"y"}') == Replace(
        "a.py", "x", "y"
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        ("shell", "{}", "there is no tool 'shell'"),
        ("judge_source", "{}", "there is no tool 'judge_source'"),
        ("create", "{", "not JSON"),
        ("create", "[]", "must be an object"),
        ("create", '{"name": "a.py"}', "missing required field `text`"),
        ("create", '{"name": 1, "text": ""}', "Expected `str`"),
        ("create", '{"name": "a.py", "text": "", "mode": "w"}', "takes no 'mode'"),
        ("evaluate", '{"fast": true}', "takes no arguments"),
    ],
)
def test_a_malformed_call_is_refused_in_one_line(tool: str, arguments: str, problem: str) -> None:
    with pytest.raises(ActionError) as caught:
        parse_action(tool, arguments)
    assert problem in str(caught.value) and "\n" not in str(caught.value)


def test_every_tool_has_a_schema_with_every_argument_described() -> None:
    schemas = {schema["function"]["name"]: schema["function"] for schema in tool_schemas()}
    assert list(schemas) == list(TOOLS)
    assert schemas["create"]["parameters"]["required"] == ["name", "text"]
    assert all(
        value["description"] and ("type" in value or "anyOf" in value)
        for function in schemas.values()
        for value in function["parameters"]["properties"].values()
    )
    assert parse_action("create", '{"name":"a.py","text":"x"}') == Create("a.py", "x")
