"""The program that measures a machine's rates: `python -m passnet.judge.worker.rates cpu THREADS`.

It prints them as JSON: bytes a second that are read, written and copied by size of the memory, and
operations a second by dtype. Threads of a CPU run at the same time, each in memory of its own.
"""

import ctypes
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from passnet.passes.compilation import build

DTYPES = ("float32", "bfloat16", "float16", "float64")
NUM_BYTES = {"cpu": range(14, 29), "cuda": range(20, 31)}
"""Powers of two: sizes from the first cache to beyond the last."""
_MATRIX_SIZES = {"cpu": (256, 512), "cuda": (4096, 8192)}
_NUM_REPEATS = 12


def cpu_rates(num_threads: int) -> dict[str, object]:
    """Return the rates of some threads of the processor."""
    source = Path(__file__).with_suffix(".cpp").read_text(encoding="utf-8")
    library = ctypes.CDLL(str(build(source, ("-ffp-contract=fast",))))
    library.bytes_per_s.argtypes = (ctypes.c_int64, ctypes.c_void_p)
    library.operations_per_s.restype = ctypes.c_double

    def of_memory(num_bytes: int) -> list[float]:
        rates = (ctypes.c_double * 3)()
        library.bytes_per_s(num_bytes, rates)
        return list(rates)

    torch.set_num_threads(1)
    memory = []
    with ThreadPoolExecutor(num_threads) as pool:
        for power in NUM_BYTES["cpu"]:
            of_threads = pool.map(of_memory, [2**power // num_threads] * num_threads)
            memory.append((2**power, *map(sum, zip(*of_threads, strict=True))))
    widths = {dtype: getattr(torch, dtype).itemsize for dtype in DTYPES} | {"bfloat16": 4}
    alone = {dtype: library.operations_per_s(width) for dtype, width in widths.items()}
    products = {dtype: max(rate, _product_rate("cpu", dtype)) for dtype, rate in alone.items()}
    return {
        "memory": memory,
        "products": {dtype: num_threads * rate for dtype, rate in products.items()},
        "elementwise": {dtype: num_threads * rate for dtype, rate in alone.items()},
    }


def cuda_rates() -> dict[str, object]:
    """Return the rates of torch's kernels on the first visible GPU."""
    memory = []
    for power in NUM_BYTES["cuda"]:
        values = torch.ones(2**power // 4, device="cuda")
        first, second = values.chunk(2)
        actions = (values.amax, lambda v=values: v.fill_(1.0), lambda a=first, b=second: b.copy_(a))
        memory.append((2**power, *(2**power / _least_s(action, "cuda") for action in actions)))
    products = {dtype: _product_rate("cuda", dtype) for dtype in DTYPES}
    return {"memory": memory, "products": products, "elementwise": {}}


def _product_rate(device: str, dtype: str) -> float:
    """Return the most operations a second in a product of square matrices."""
    rates = []
    for size in _MATRIX_SIZES[device]:
        matrix = torch.ones((size, size), dtype=getattr(torch, dtype), device=device)
        rates.append(2 * size**3 / _least_s(lambda m=matrix: m @ m, device))
    return max(rates)


def _least_s(action: Callable[[], object], device: str) -> float:
    """Return the least time of an action: processor time, or until a GPU has finished."""
    on_gpu = device == "cuda"
    clock, times_s = time.perf_counter if on_gpu else time.thread_time, []
    for _ in range(_NUM_REPEATS):
        start = clock()
        action()
        if on_gpu:
            torch.cuda.synchronize()
        times_s.append(clock() - start)
    return min(times_s)


if __name__ == "__main__":
    print(json.dumps(cpu_rates(int(sys.argv[2])) if sys.argv[1] == "cpu" else cuda_rates()))
