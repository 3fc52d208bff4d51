"""Calls of torch's compilers, whose modules are imported on use: they take seconds."""

import copy
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import count
from pathlib import Path
from types import FunctionType
from typing import Any

import torch
import torch.fx
from torch._C._dynamo import guards

from passnet.core.records.folders import inductor_cache

_numbers = count()

_IN_WORK = "_CxxBuild"
"""What Inductor adds to the name of what its compiler makes, for a folder meanwhile."""

empty_strided_cpu: Callable[..., torch.Tensor] = vars(guards)["_empty_strided_cpu"]
"""Allocator of CPU tensors, twice as fast as `torch.empty_strided`; tracers do not see it."""


def import_compilers() -> None:
    """Import what a compilation needs, so that a fork of this process is quick."""
    import torch._dynamo
    import torch._inductor.codecache
    import torch._inductor.compile_fx
    import torch._inductor.config
    import torch._inductor.package  # noqa: F401


def reset_dynamo() -> None:
    """Drop every compiled function and every counter of recompilations."""
    import torch._dynamo

    torch._dynamo.reset()


def own_frame(net: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls a net, with a code object of its own.

    Dynamo keeps what it compiles with code objects. Compiled like this, a net shares none with
    the user's own compiled nets of the same class, and no reset of Dynamo is needed before.
    """

    def call_net(*args: Any, **kwargs: Any) -> Any:
        return net(*args, **kwargs)

    code = call_net.__code__.replace(co_name=f"call_net_{next(_numbers)}")
    return FunctionType(code, globals(), code.co_name, None, call_net.__closure__)


def compile_no_more(function: Callable[..., Any]) -> None:
    """Let Dynamo run what it compiled of an own frame; calls that its guards refuse run eagerly."""
    from torch._dynamo.eval_frame import set_code_exec_strategy
    from torch._dynamo.types import FrameAction, FrameExecStrategy

    only = FrameExecStrategy(FrameAction.RUN_ONLY, FrameAction.RUN_ONLY)
    set_code_exec_strategy(function.__code__, only)


def dynamo_settings(**settings: Any) -> AbstractContextManager[object]:
    """Return a context with these settings of Dynamo (`torch._dynamo.config`)."""
    import torch._dynamo

    return torch._dynamo.config.patch(**settings)


def unspecialised_sizes() -> AbstractContextManager[object]:
    """Return a context to export programs in that run sizes of 1 too."""
    import torch.fx.experimental._config

    config: Any = torch.fx.experimental._config
    return config.patch(backed_size_oblivious=True)


def inductor_settings(settings: Mapping[str, Any]) -> AbstractContextManager[object]:
    """Return a context with these settings of Inductor (`torch._inductor.config`)."""
    from torch._inductor import config

    return config.patch(dict(settings))


def inductor_settings_kept() -> AbstractContextManager[object]:
    """Return a context after which Inductor's settings are as before, whatever is set within."""
    from torch._inductor import config

    return config.patch({name: getattr(config, name) for name in config.get_config_copy()})


def compile_in_this_process() -> None:
    """Keep Inductor from starting a pool of compiling processes."""
    import torch._inductor.config

    torch._inductor.config.compile_threads = 1


def graph_breaks() -> Counter[str]:
    """Return how often Dynamo stopped tracing in this process, by its reason."""
    from torch._dynamo.utils import counters

    return Counter(counters["graph_break"])


def is_dynamo_error(error: Exception) -> bool:
    """Return whether Dynamo raised an error: a compilation failed."""
    return type(error).__module__.startswith("torch._dynamo")


def trace_backward(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    keep: Callable[[torch.fx.GraphModule, list[Any]], None],
) -> None:
    """Trace a graph through autograd and call `keep` with its backward graph, in ops of aten.

    That graph maps saved values and gradients of outputs to gradients of arguments; `keep` also
    gets example values, and is not called if no argument needs a gradient. `module` stays as it is.
    """
    from torch._functorch import config
    from torch._functorch.aot_autograd import aot_module_simplified

    def forward(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Any:
        return graph.forward

    def backward(graph: torch.fx.GraphModule, values: Sequence[Any]) -> Any:
        keep(graph, list(values))
        return graph.forward

    own = torch.fx.GraphModule(module, copy.deepcopy(module.graph))
    with torch.enable_grad(), config.patch(force_non_lazy_backward_lowering=True):
        compilers: dict[str, Any] = {"fw_compiler": forward, "bw_compiler": backward}
        aot_module_simplified(own, inputs, **compilers)


def compile_with_inductor(
    module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    settings: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a graph for these inputs, with settings of Inductor by name, without guards."""
    from torch._inductor.compile_fx import compile_fx

    compiled: Any = compile_fx(module, list(example_inputs), config_patches=dict(settings or {}))
    return compiled


def compile_cpp_kernels(texts: Mapping[Any, tuple[Sequence[str], str]]) -> dict[Any, Any]:
    """Compile generated C++ kernels, each from the types of its arguments and its text."""
    from torch._inductor.async_compile import AsyncCompile

    compiler = AsyncCompile()
    return {
        name: compiler.cpp_pybinding(list(types), text) for name, (types, text) in texts.items()
    }


def build_package(program: Any, path: Path, settings: Mapping[str, Any]) -> None:
    """Compile a program of `torch.export` with AOTInductor into a package at `path`."""
    pack(compile_files(program, settings), path)


def compile_files(program: Any, settings: Mapping[str, Any]) -> list[str]:
    """Compile a program of `torch.export` with AOTInductor; return files that `pack` takes."""
    import torch._inductor

    args, kwargs = program.example_inputs
    options = {**settings, "aot_inductor.package": True}
    # guards of sizes are checked at each call before
    module = program.module(check_guards=False)
    for node in module.graph.find_nodes(op="get_attr"):
        parent, _, name = str(node.target).rpartition(".")
        owner = module.get_submodule(parent)
        if isinstance(value := vars(owner).get(name), torch.Tensor):
            # only a buffer keeps its name in the package
            delattr(owner, name)
            owner.register_buffer(name, value, persistent=False)
    files = torch._inductor.aot_compile(module, args, kwargs, options=options)
    return [str(file) for file in files]  # type: ignore[union-attr] (a list, for packages)


def pack(files: Sequence[str], path: Path) -> None:
    """Write files of `compile_files` into a package at `path`."""
    from torch._inductor.package import package_aoti

    package_aoti(str(path), list(files))


def load_package(path: Path) -> Any:
    """Load a package of AOTInductor to be called by one thread at a time."""
    import torch._inductor

    return torch._inductor.aoti_load_package(str(path), run_single_threaded=True)


def write_cached(path: Path, content: bytes) -> None:
    """Write a file into Inductor's cache in one step, as processes share it."""
    from torch._inductor.codecache import write_atomic

    path.parent.mkdir(exist_ok=True)
    write_atomic(str(path), content)


def keep_headers() -> None:
    """Keep Inductor's precompiled headers in its cache folder, which outlives a sandbox.

    Compiling them takes 8 s and 150 MB for each of three (torch 2.13).
    """
    import torch._inductor.codecache

    paths = _headers_in(inductor_cache())
    vars(torch._inductor.codecache).update(paths)
    folder = Path(paths["_HEADER_DIR"])
    # Of a judge that was ended while it compiled: compilers pass over half a header in silence.
    for unfinished in folder.glob(f"*{_IN_WORK}"):
        with suppress(OSError):
            Path(str(unfinished).removesuffix(_IN_WORK) + ".gch").unlink(missing_ok=True)
        shutil.rmtree(unfinished, ignore_errors=True)


def borrow_compiled(cache: Path) -> None:
    """Let Inductor take from another cache what its compiler has made there already.

    A name there is a hash of the source and of the compiler's command. This process writes into its
    own cache, `TORCHINDUCTOR_CACHE_DIR`, where it links what it takes.
    """
    from torch._inductor import codecache, cpp_builder

    own = Path(codecache.cache_dir())
    vars(codecache).update(_headers_in(own))
    build = cpp_builder.CppBuilder.build

    def build_or_link(builder: cpp_builder.CppBuilder) -> None:
        target = Path(builder.get_target_file_path())
        made = cache / target.relative_to(own) if target.is_relative_to(own) else None
        if made and made.is_file() and not Path(f"{made.with_suffix('')}{_IN_WORK}").exists():
            target.symlink_to(made)
        else:
            build(builder)

    cpp_builder.CppBuilder.build = build_or_link  # type: ignore[assignment] (another name)


def _headers_in(cache: Path) -> dict[str, str]:
    folder = cache / "precompiled_headers"
    return {"_HEADER_DIR": str(folder), "_HEADER_LOCK_DIR": str(folder / "locks")}
