"""An answer in the loops language as a pass folder: the fixed expander of the loops form.

It writes what the answer says and decides nothing: which ops are fused, how loops are nested and
what they compute comes from the answer. Its own are the pattern of each range, in which orders a
pattern may get its arguments, the layouts that arguments and results have in eager torch, a form
for the shapes of the graph, and C++ that a compiler may vectorise.
"""

from collections.abc import Sequence

from passnet.errors import AuthorError, CutError, GraphError, InputError, PassError
from passnet.inductor.generated_code import GeneratedCode, TensorLayout, contiguous
from passnet.passes.codegen.cpp_source import CPP_TYPES
from passnet.passes.codegen.folder_text import RangeSource, pass_folder
from passnet.passes.codegen.lowered_ranges import LoweredRange, Span, parameter_orders
from passnet.passes.files import Files
from passnet_loops.language.answer_text import parse_answer
from passnet_loops.language.cpp.cpp_text import MemoryLayout, cpp_of_nests
from passnet_loops.language.language import FusedRange, Index
from passnet_loops.language.nests.range_memory import spanned_elements
from passnet_loops.language.prompt import Prompt
from passnet_loops.language.symbols import Symbols

MAX_BUFFER_ELEMENTS = 2**30
"""The most elements that memory between nests has: 4 GiB in float32."""


def expand_answer(prompt: Prompt, answer: str) -> Files:
    """Expand an answer to a prompt into a pass folder.

    Raises:
        InputError: It is no answer, or a part of it has no meaning.
    """
    return folder_of_sources(answer_sources(prompt, answer))


def folder_of_sources(sources: Sequence[RangeSource]) -> Files:
    """Return the pass folder of the ranges of one or several graphs of a task.

    Raises:
        InputError: A source is too long for a file.
    """
    try:
        return pass_folder(sources)
    except AuthorError as cause:
        raise InputError(str(cause)) from cause


def answer_sources(prompt: Prompt, answer: str) -> list[RangeSource]:
    """Return the ranges of an answer, each with its C++.

    Raises:
        InputError: It is no answer, or a part of it has no meaning.
    """
    ranges = parse_answer(answer)
    spans = [span_of(prompt, fused) for fused in ranges]
    for (_, stop), (start, _) in zip(sorted(spans), sorted(spans)[1:], strict=False):
        if start < stop:
            raise InputError("two ranges of the answer have an op in common")
    try:
        return [
            _range_source(prompt, fused, span) for fused, span in zip(ranges, spans, strict=True)
        ]
    except (CutError, GraphError, PassError) as cause:
        raise InputError(f"the range cannot be replaced: {cause}") from cause


def span_of(prompt: Prompt, fused: FusedRange) -> Span:
    """Return the indices of the ops of a range.

    Raises:
        InputError: It names no op of the prompt, or the first comes after the last.
    """
    numbers = prompt.op_numbers
    for name in (fused.first, fused.last):
        if name not in numbers:
            raise InputError(f"range: {name!r} is no op of the prompt")
    start, stop = numbers[fused.first], numbers[fused.last] + 1
    if start >= stop:
        raise InputError(f"range {fused.first} {fused.last}: the first op comes after the last")
    return start, stop


def _range_source(prompt: Prompt, fused: FusedRange, span: Span) -> RangeSource:
    prompt_range = prompt.range(span)
    cut, names, results = prompt_range.cut, prompt_range.names, prompt_range.results
    if not cut.tensors:
        raise InputError(f"range {fused.first} {fused.last} reads nothing")
    originals = {prompt.names[name]: name for name in prompt.names}
    memory: dict[str, MemoryLayout] = {}

    def layout(name: str) -> TensorLayout:
        original = originals[name]
        spec = prompt.specs[original]
        if spec.dtype not in CPP_TYPES:
            raise InputError(f"{name} is of {spec.dtype}, in which the loops form does not compute")
        stride = prompt.strides.get(original, contiguous(spec.shape))
        memory[name] = MemoryLayout(name, spec.dtype, spec.shape, stride)
        return TensorLayout(spec.shape, stride, spec.dtype)

    inputs = {spec.name: layout(names[spec.name]) for spec in cut.tensors}
    outputs = [(name, layout(name)) for name in results]
    scratch = []
    for buffer in fused.memory:
        if buffer.name in memory or buffer.name in names.values():
            raise InputError(f"buf {buffer.name}: the name has a meaning already")
        shape = tuple(_size(prompt.symbols, size) for size in buffer.shape)
        if spanned_elements(shape) > MAX_BUFFER_ELEMENTS:
            raise InputError(f"buf {buffer.name}: has more than {MAX_BUFFER_ELEMENTS:,} elements")
        memory[buffer.name] = MemoryLayout(buffer.name, buffer.dtype, shape, contiguous(shape))
        scratch.append(buffer.name)
    for name in results:
        sizes = zip(memory[name].stride, memory[name].shape, strict=True)
        if any(step == 0 and size > 1 for step, size in sizes):
            raise InputError(f"{name} is a view with steps of 0, which cannot be put")
    missing = [name for name in results if not _is_put(fused, name)]
    if missing:
        raise InputError(f"{missing[0]} is used after the range, and nothing is put into it")
    text = cpp_of_nests(
        fused.nests, memory, prompt_range.arguments, results, scratch, prompt.symbols
    )
    code = GeneratedCode("cpu", inputs, {}, tuple(outputs), (), (), 0)
    orders = tuple(parameter_orders(cut, prompt.graph.program, span[0]))
    return RangeSource(LoweredRange(span, cut, code, orders), text)


def _is_put(fused: FusedRange, name: str) -> bool:
    steps = [step for nest in fused.nests for step in nest.steps]
    steps += [inner for step in steps for inner in getattr(step, "steps", ())]
    return any(getattr(step, "memory", None) == name for step in steps)


def _size(symbols: Symbols, size: Index) -> int:
    number = symbols.index_value(size)
    if not 0 <= number <= MAX_BUFFER_ELEMENTS:
        raise InputError(f"memory of a size of {number}")
    return number
