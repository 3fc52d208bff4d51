"""Commands whose options are the fields of a dataclass: name, type, default and help come from
there. The string below a field is its help, as in `passnet.core.jobs.run_plan.RunPlan`.

The name of an option is that of its field, without `num_`, `is_`, `has_` and without units. What a
field cannot say otherwise is in its metadata: `option` (another name), `choices`, `least`, `most`,
`metavar`, `type` (of click), `convert` (applied to the value), `default` (as the user writes it),
`complete` (of `completion`).
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from operator import attrgetter
from pathlib import Path
from pkgutil import resolve_name
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

import click

from passnet.cli.terminal.completion import Completion
from passnet.cli.terminal.groups import AskingCommand, ExtensibleGroup
from passnet.errors import no_such


class NamedPath(click.Path):
    """A path that ends in a name, which `Path.with_name` and `Path.with_suffix` need: "." and ".."
    are the folders that they stand for.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path."""
        path = super().convert(value, param, ctx)
        assert isinstance(path, Path), "paths are of the type path_type"
        return path if path.name not in ("", "..") else path.resolve()


PATH = NamedPath(path_type=Path)

MAX_WHOLE = 2**31 - 1
"""Largest whole number of an option; every seed, count and size in MiB that libraries take fits."""

MAX_REAL = 1e9
"""Largest real number of an option; as seconds these are 31 years, which clocks can wait for."""


class WholeRange(click.IntRange):
    """Whole numbers of a range, whose bounds are described in words."""

    name = "integer"

    def _describe_range(self) -> str:
        return bounds_in_words(self)


class FiniteRange(click.FloatRange):
    """Real numbers of a range, up to `MAX_REAL`; nan, which compares with nothing, is none."""

    name = "number"

    def _describe_range(self) -> str:
        return bounds_in_words(self)

    def __init__(self, low: float = 0, high: float = MAX_REAL, **ends: bool) -> None:
        super().__init__(low, high, **ends)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number.

        Raises:
            click.BadParameter: the text is no number, or one outside the range.
        """
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


def bounds_in_words(kind: click.IntRange | click.FloatRange, most: float = math.inf) -> str:
    """Return the bounds of a range; an upper one of `most` or more goes without saying.

    Examples:
        >>> bounds_in_words(FiniteRange(min_open=True), MAX_REAL), bounds_in_words(FiniteRange())
        ('above 0', '0 to 1000000000')
        >>> bounds_in_words(WholeRange(1), MAX_WHOLE), bounds_in_words(FiniteRange(0, 1))
        ('at least 1', '0 to 1')
        >>> bounds_in_words(FiniteRange(0, 1, min_open=True, max_open=True))
        'above 0, below 1'
    """
    low = f"{'above' if kind.min_open else 'at least'} {kind.min:.10g}"
    if kind.max is None or kind.max >= most:
        return low
    if kind.min_open or kind.max_open:
        return f"{low}, {'below' if kind.max_open else 'at most'} {kind.max:.10g}"
    return f"{kind.min:.10g} to {kind.max:.10g}"


class NamedChoice(click.Choice[str]):
    """A choice of names that offers similar ones for an unknown one."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the sentence for a value that is none of the choices."""
        text = no_such("choice", str(value), map(str, self.choices))
        return text if text.endswith("?") else f"{text}."


class BoundedOption(click.Option):
    """An option whose help names no bound that only keeps numbers apart from nonsense."""

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the default and the bounds of the value."""
        extra = super().get_help_extra(ctx)
        if "range" in extra and isinstance(self.type, click.IntRange | click.FloatRange):
            most = MAX_WHOLE if isinstance(self.type, click.IntRange) else MAX_REAL
            extra["range"] = bounds_in_words(self.type, most)
        return extra


@dataclass(frozen=True)
class OptionPart:
    """Parameters of a command, and the value that one field of its options gets from theirs."""

    params: tuple[click.Parameter, ...]
    value: Callable[[Mapping[str, Any]], Any]


PartMaker: TypeAlias = Callable[[type, str], OptionPart]
"""Makes the part of a field from the dataclass and the field's name."""


class OptionsCommand(AskingCommand):
    """A command that gets its options as one dataclass, the annotation of its only parameter.

    The dataclass is read, and settings that it refers to are imported, when the command is used.
    A command that `goes_on` continues what is in its `out` without being asked to.
    """

    def __init__(self, name: str, function: Callable[[Any], None], goes_on: bool = False) -> None:
        super().__init__(name, callback=self._run, help=function.__doc__)
        self.goes_on = goes_on
        del self.params  # from here on it is the property
        self._function = function

    @cached_property
    def _options(self) -> type:
        [options] = inspect.signature(self._function, eval_str=True).parameters.values()
        return options.annotation

    @cached_property
    def _parts(self) -> dict[str, OptionPart]:
        return {
            field.name: field.metadata.get("part", field_part)(self._options, field.name)
            for field in dataclasses.fields(self._options)
        }

    @cached_property
    def params(self) -> list[click.Parameter]:  # type: ignore[override]
        """Arguments and options, in the order of the fields."""
        return [parameter for part in self._parts.values() for parameter in part.params]

    def _run(self, **values: Any) -> None:
        parts = {name: part.value(values) for name, part in self._parts.items()}
        self._function(self._options(**parts))


class OptionsGroup(OptionsCommand, ExtensibleGroup):
    """A command with further commands below it, which the first word may name."""

    allow_extra_args = False
    allow_interspersed_args = True

    def __init__(self, name: str, function: Callable[[Any], None]) -> None:
        super().__init__(name, function)
        self.invoke_without_command, self.no_args_is_help = True, False

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the words of this command, or of the command that the first of them names."""
        if args and (below := self.below(args[0])):
            return below.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the parts of the usage line, without a place for further commands."""
        return click.Command.collect_usage_pieces(self, ctx)


def command(
    name: str, group: click.Group | None = None, goes_on: bool = False
) -> Callable[[Callable[[Any], None]], OptionsCommand]:
    """Return a decorator that makes a command of a function of one dataclass of options."""

    def decorate(function: Callable[[Any], None]) -> OptionsCommand:
        made = OptionsCommand(name, function, goes_on)
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def command_group(name: str) -> Callable[[Callable[[Any], None]], OptionsGroup]:
    """Return a decorator that makes a command, below which others may be."""
    return partial(OptionsGroup, name)


def field(default: Any = dataclasses.MISSING, **metadata: Any) -> Any:
    """Return a field of options with metadata; without a default the option is required."""
    return dataclasses.field(default=default, metadata=metadata)


def argument(
    nargs: int = 1,
    required: bool = True,
    metavar: str | None = None,
    complete: Completion | None = None,
) -> Any:
    """Return a field for words of the command line that follow no option."""

    def part(owner: type, name: str) -> OptionPart:
        kind = _click_type(_annotation(owner, name), {}, None)
        word = click.Argument(
            [name],
            type=kind["type"],
            nargs=nargs,
            required=required,
            metavar=metavar,
            shell_complete=complete,
        )
        return OptionPart((word,), lambda values: values[name])

    return dataclasses.field(metadata={"part": part})


def part(make: PartMaker) -> Any:
    """Return a field that is made of one or more parameters."""
    return dataclasses.field(metadata={"part": make})


def fields_of(make: Callable[..., Any] | str, *paths: str, **values: Any) -> Any:
    """Return a field that holds settings; some of their fields are options.

    Args:
        make: makes the settings when the command is used; a class as "module:name" is imported
            then.
        paths: the fields that are options, such as "judge.timing.seconds".
        values: the arguments of `make`.
    """

    def part(_: type, __: str) -> OptionPart:
        settings = (resolve_name(make) if isinstance(make, str) else make)(**values)
        options = {path: _settings_option(settings, path) for path in paths}

        def value(values: Mapping[str, Any]) -> Any:
            result = settings
            for path, option in options.items():
                result = _replaced(result, path.split("."), values[str(option.name)])
            return result

        return OptionPart(tuple(options.values()), value)

    return dataclasses.field(metadata={"part": part})


def field_part(owner: type, name: str) -> OptionPart:
    """Return the option of a field of a dataclass."""
    [field] = [field for field in dataclasses.fields(owner) if field.name == name]
    option = _option(owner, name, field.default, field.metadata)
    return OptionPart((option,), lambda values: values[str(option.name)])


def _settings_option(settings: Any, path: str) -> click.Option:
    """Return the option of a field of settings, with the value that it has there as default."""
    *outer, name = path.split(".")
    owner = attrgetter(".".join(outer))(settings) if outer else settings
    fields = dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ()
    metadata = next((field.metadata for field in fields if field.name == name), {})
    return _option(type(owner), name, getattr(owner, name), metadata)


def _replaced(settings: Any, names: list[str], value: Any) -> Any:
    """Return settings with another value of a field, which may lie deeper."""
    name, *deeper = names
    if deeper:
        value = _replaced(getattr(settings, name), deeper, value)
    if dataclasses.is_dataclass(settings) and not isinstance(settings, type):
        return dataclasses.replace(settings, **{name: value})
    import msgspec

    return msgspec.structs.replace(settings, **{name: value})


def _option(owner: type, name: str, default: Any, metadata: Mapping[str, Any]) -> click.Option:
    kind = _click_type(_annotation(owner, name), metadata, default)
    word = metadata.get("option") or _option_name(name)
    convert = metadata.get("convert")
    if "default" in metadata:
        kind["default"] = metadata["default"]
    elif default is not False and default not in (dataclasses.MISSING, None, ()):
        kind["default"] = default if convert is None or isinstance(default, int) else str(default)
    text = _docs(owner)[name]
    return BoundedOption(
        [f"--{word}", word.replace("-", "_")],
        help=f"{text[:-1]} (repeatable)." if kind.get("multiple") else text,
        required=default is dataclasses.MISSING and "default" not in metadata,
        show_default=True,
        callback=_callback(convert),
        metavar=metadata.get("metavar"),
        shell_complete=metadata.get("complete"),
        **kind,
    )


def _option_name(field: str) -> str:
    """Return the name of the option of a field.

    Examples:
        >>> [_option_name(field) for field in ("num_threads", "is_guarded", "call_timeout_s")]
        ['threads', 'guarded', 'call-timeout']
    """
    word = re.sub(r"^(num|is|has)_|_(s|ms|mib|bytes)$", "", field)
    return word.replace("_", "-")


def _callback(convert: Callable[[Any], Any] | None) -> Any:
    if convert is None:
        return None
    return lambda ctx, _, value: (
        value if value is None or ctx.resilient_parsing else convert(value)  # a shell completes
    )


def _click_type(annotation: Any, metadata: Mapping[str, Any], default: Any) -> dict[str, Any]:
    """Return how click parses values of a type."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(kind for kind in get_args(annotation) if kind is not NoneType)
    kinds = get_args(annotation) if get_origin(annotation) is tuple else ()
    if kinds[1:] == (Ellipsis,):
        return {**_click_type(kinds[0], metadata, None), "multiple": True}
    if "type" in metadata:
        return {"type": metadata["type"]}
    if kinds:
        return {**_click_type(kinds[0], metadata, None), "nargs": len(kinds)}
    if "choices" in metadata or get_origin(annotation) is Literal:
        return {"type": NamedChoice(metadata.get("choices") or get_args(annotation))}
    if annotation is bool:
        return {"is_flag": True}
    least = metadata.get("least", 0 if default == 0 else None)
    if annotation is int:
        low = 1 if least is None else least
        return {"type": WholeRange(low, metadata.get("most", MAX_WHOLE))}
    if annotation is float:
        ends = {"min_open": least is None, "max_open": "below" in metadata}
        high = metadata.get("below", metadata.get("most", MAX_REAL))
        return {"type": FiniteRange(least or 0, high, **ends)}
    return {"type": PATH if annotation is Path else click.STRING}


class _Names(dict[str, Any]):
    """Names of a module; one that only type checkers import stands for any type."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, object)


def _annotation(owner: type, name: str) -> Any:
    annotation = owner.__annotations__[name]
    if isinstance(annotation, str):
        names = _Names(vars(sys.modules[owner.__module__]))
        return eval(annotation, {"__builtins__": {}}, names)  # noqa: S307 (our own source)
    return annotation


@cache
def _docs(owner: type) -> dict[str, str]:
    """Return the first paragraph of the string below each field of a class."""
    source = ast.parse(inspect.getsource(sys.modules[owner.__module__]))
    [body] = [
        node.body
        for node in source.body
        if isinstance(node, ast.ClassDef) and node.name == owner.__name__
    ]
    return {
        field.target.id: " ".join(below.value.value.split("\n\n")[0].split())
        for field, below in zip(body, body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
