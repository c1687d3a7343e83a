"""What the end-to-end tests share: running the command, its cases, and .npy files written by hand."""

import os
import struct
import subprocess
import sys

VATLAS = sys.argv[1]
TIMEOUT = 240
SOURCE = os.environ.get("VATLAS_SOURCE", "")
LONG = os.environ.get("VATLAS_LONG_TESTS") == "1"
SANITIZED = os.environ.get("VATLAS_SANITIZED", "") != ""  # everything is slower: fewer cases


# The developer's own settings do not reach the tests.
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("VATLAS_", "HCCL_", "ASCEND_"))}


def run(*args, env=None, cwd=None, **more):
    full = dict(CLEAN, **(env or {}))
    return subprocess.run([VATLAS, *args], capture_output=True, text=True, timeout=TIMEOUT, env=full, cwd=cwd, **more)


def expect(result, code, *texts, stdout=None):
    output = result.stdout + result.stderr
    if result.returncode != code or any(text not in output for text in texts):
        sys.exit(f"expected exit code {code} with {texts}, got {result.returncode}:\n{' '.join(result.args)}\n{output}")


COMBINATIONS = [
    (x, s, o)
    for x in ("int8", "hifloat8", "float8_e4m3fn", "float8_e5m2")
    for s in ("float", "float8_e8m0")
    for o in ("float", "float16", "bfloat16")
    if s == "float" or x in ("float8_e4m3fn", "float8_e5m2")
]


def case(op, cluster, combination, shape, *more):
    x, s, o = combination
    return ["run", "--cluster", cluster, "--op", op, "--x-dtype", x, "--scales-dtype", s, "--out-dtype", o, "--shape", shape, *more]


def npy(descr, shape, data, fortran=False, version=1):
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    text += " " * ((64 - (10 + len(text) + 1) % 64) % 64) + "\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(text)) + text.encode() + data


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def main(tests):
    """Runs the test that the command line names."""
    tests["test_" + sys.argv[2]]()
