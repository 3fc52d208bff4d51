"""CUDA C++ that NVRTC compiles at the first call, launched through the driver; ctypes does both.

It needs the NVRTC that comes with torch, and no compiler on the machine. NVRTC knows no headers of
CUDA unless it is told where they are; the source here does without.
"""

import ctypes
import ctypes.util
import sysconfig
from functools import lru_cache
from pathlib import Path

import torch

TYPES = {"p": ctypes.c_void_p, "n": ctypes.c_int64, "f": ctypes.c_float}


def kernel(source, name, signature):
    """A callable that launches an `extern "C" __global__` function on the current stream.

    `signature` has a letter an argument: p pointer, n int64_t, f float. The callable takes the
    number of blocks and of threads in each, then the arguments.
    """

    @lru_cache
    def function(device):
        module, found = ctypes.c_void_p(), ctypes.c_void_p()
        major, minor = torch.cuda.get_device_capability(device)
        code = compiled(source, f"sm_{major}{minor}")
        check(driver().cuModuleLoadData(ctypes.byref(module), code), "cuModuleLoadData")
        check(
            driver().cuModuleGetFunction(ctypes.byref(found), module, name.encode()),
            "cuModuleGetFunction",
        )
        return found

    def launch(blocks, threads, *args):
        values = [TYPES[letter](arg) for letter, arg in zip(signature, args, strict=True)]
        places = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        found = function(torch.cuda.current_device())
        status = driver().cuLaunchKernel(
            found, blocks, 1, 1, threads, 1, 1, 0, stream, places, None
        )
        check(status, "cuLaunchKernel")

    return launch


@lru_cache
def compiled(source, architecture):
    """The machine code of a source."""
    nvrtc = library()
    program = ctypes.c_void_p()
    text = source.encode()
    check(
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None),
        "nvrtcCreateProgram",
    )
    options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17"]
    status = nvrtc.nvrtcCompileProgram(
        program, len(options), (ctypes.c_char_p * len(options))(*options)
    )
    size = ctypes.c_size_t()
    if status:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(f"NVRTC: {log.value.decode()}")
    check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "nvrtcGetCUBINSize")
    code = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetCUBIN(program, code), "nvrtcGetCUBIN")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


@lru_cache
def library():
    """NVRTC, of the packages that torch brings, or else of the machine."""
    version = torch.version.cuda.split(".")[0]
    packages = Path(sysconfig.get_paths()["purelib"])
    for builtins in packages.glob(f"nvidia/*/lib/libnvrtc-builtins.so.{version}*"):
        ctypes.CDLL(str(builtins))  # NVRTC finds them by their name only once they are loaded
    found = list(packages.glob(f"nvidia/*/lib/libnvrtc.so.{version}*"))
    name = str(found[0]) if found else ctypes.util.find_library("nvrtc")
    if not name:
        raise RuntimeError(f"no NVRTC; install the package nvidia-cuda-nvrtc of CUDA {version}")
    return ctypes.CDLL(name)


@lru_cache
def driver():
    """The driver of the GPU."""
    return ctypes.CDLL("libcuda.so.1")


def check(status, call):
    """Raise if a call did not succeed."""
    if status:
        raise RuntimeError(f"{call} gave error {status}")
