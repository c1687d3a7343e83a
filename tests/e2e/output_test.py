#!/usr/bin/env python3
"""End-to-end tests of exit codes and of what the command leaves behind. Usage: output_test.py VATLAS TEST."""

import json
import os
import pty
import resource
import signal
import stat
import subprocess
import tempfile
import time

from cli import CLEAN, COMBINATIONS, SANITIZED, SOURCE, VATLAS, case, expect, main, npy, run, write

MI = 1 << 20


def content(path):
    with open(path, "rb") as file:
        return file.read()


def test_wrong_kernel():
    """Kernels that are wrong: results that differ end with 1, faults of the emulator's own kernels with 3."""
    env = {"VATLAS_KERNEL_PATH": os.environ["VATLAS_WRONG_KERNELS"]}
    with tempfile.TemporaryDirectory() as folder:
        out, report = f"{folder}/o{{rank}}.npy", f"{folder}/r.json"
        args = case("quant_all_reduce", "ascend950dt_2p", ("int8", "float", "float"), "8,1024", "--out", out, "--json", report)
        expect(run(*args, env=env), 1, "of 8192 differ", "first difference at index", "instead of", "largest error")
        data = json.load(open(report))
        assert all(r["different"] > 8000 and "expected" in r["first_difference"] for r in data["ranks"]), data
        assert len(content(f"{folder}/o1.npy")) > 4 * 8192, "a result that is not equal is written all the same"
        assert run(*args, "--quiet", env=env).stdout == ""
        expect(run(*args, "--no-check", env=env), 0, "not checked")
        # What an earlier, correct call left in the output does not hide a call that does nothing.
        expect(run(*args, "--repeat", "2", env=env), 1, "of 8192 differ")
        expect(run(*args), 0, "bitwise equal")
    fault = case("quant_all_reduce", "ascend950dt_2p", ("float8_e4m3fn", "float", "float"), "8,1024")
    expect(run(*fault, env=env), 3, "rank", "answered")


def test_switches():
    """A cluster file's model switches reach the cards and the golden result."""
    shipped = json.load(open(f"{SOURCE}/configs/clusters/ascend950dt_2p.json"))
    with tempfile.TemporaryDirectory() as folder:
        for name, value in (("overflow", "saturate"), ("e8m0_zero", "ocp")):
            path = f"{folder}/{name}.json"
            write(path, json.dumps(dict(shipped, switches=dict(shipped["switches"], **{name: value}))).encode())
            for op in ("quant_all_reduce", "quant_reduce_scatter"):
                for combination in (("float8_e5m2", "float", "float16"), ("float8_e5m2", "float8_e8m0", "bfloat16")):
                    expect(run(*case(op, path, combination, "16,1024")), 0, "bitwise equal")
        # Code 0 of float8_e8m0: zero, or 2^-127.
        for rank in (0, 1):
            write(f"{folder}/x{rank}.npy", npy("|u1", (2, 1024), bytes([0x3C]) * 2048))
            write(f"{folder}/s{rank}.npy", npy("|u1", (2, 16, 2), bytes(64)))
        files = ["--x", f"{folder}/x{{rank}}.npy", "--scales", f"{folder}/s{{rank}}.npy", "--out", f"{folder}/o{{rank}}.raw"]
        for cluster, bits in (("ascend950dt_2p", 0), (f"{folder}/e8m0_zero.json", 0x00800000)):  # 2 * 2^-127
            expect(run(*case("quant_all_reduce", cluster, ("float8_e5m2", "float8_e8m0", "float"), "2,1024", *files)), 0)
            assert content(f"{folder}/o0.raw") == bits.to_bytes(4, "little") * 2048, cluster


def test_clashes():
    """No file is written that is read as well, or twice."""
    with tempfile.TemporaryDirectory() as folder:
        data = npy("|i1", (8, 1024), bytes(8192))
        for rank in (0, 1):
            write(f"{folder}/x{rank}.npy", data)
            write(f"{folder}/s{rank}.npy", npy("<f4", (8, 8), bytes(256)))
        os.symlink(folder, f"{folder}/again")
        args = case("quant_all_reduce", "ascend950dt_2p", ("int8", "float", "float"), "8,1024", "--x", f"{folder}/x{{rank}}.npy",
                    "--scales", f"{folder}/s{{rank}}.npy")
        for more in (["--out", f"{folder}/x{{rank}}.npy"], ["--out", f"{folder}/again/s{{rank}}.npy"], ["--json", f"{folder}/./x1.npy"],
                     ["--trace", f"{folder}/x0.npy"], ["--json", f"{folder}/a", "--trace", f"{folder}/a"],
                     ["--out", f"{folder}/{{rank}}", "--json", f"{folder}/1"]):
            expect(run(*args, *more), 2, "is named twice")
        assert content(f"{folder}/x0.npy") == data and content(f"{folder}/x1.npy") == data
        assert len(os.listdir(folder)) == 5, os.listdir(folder)


def test_earlier_results():
    """A run that fails or is interrupted leaves what was there."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("o0.npy", "o1.npy", "r.json"):
            write(f"{folder}/{name}", b"earlier")
        more = ["--out", f"{folder}/o{{rank}}.npy", "--json", f"{folder}/r.json"]
        args = case("quant_all_reduce", "ascend950dt_2p", ("int8", "float", "float"), "8,1024")

        def untouched():
            assert sorted(os.listdir(folder)) == ["o0.npy", "o1.npy", "r.json"], os.listdir(folder)
            return all(content(f"{folder}/{name}") == b"earlier" for name in os.listdir(folder))

        expect(run(*args, *more, env={"VATLAS_HOST_MEMORY_MB": "64"}), 2)
        assert untouched()
        expect(run(*args, *more, "--trace", "/nonexistent/t.json"), 2)
        assert untouched()
        process = subprocess.Popen([VATLAS, *args, *more, "--repeat", "100000"], stderr=subprocess.PIPE, env=CLEAN)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130, process.returncode
        assert untouched()
        expect(run(*args, *more), 0)
        assert not any(content(f"{folder}/{name}") == b"earlier" for name in os.listdir(folder))
        expect(run(*args, "--json", "/dev/full"), 2, "/dev/full", "cannot be written")
        expect(run(*args, "--json", "/dev/null"), 0)


def test_deterministic():
    """In rank order all ranks have the same bits, otherwise they differ; by the option, or by the environment."""
    args = case("quant_all_reduce", "ascend950dt_4p", ("int8", "float", "float"), "64,1024")
    with tempfile.TemporaryDirectory() as folder:
        for more, env, agree in (
            ([], {}, False),
            (["--deterministic"], {}, True),
            ([], {"HCCL_DETERMINISTIC": "true"}, True),
            ([], {"HCCL_DETERMINISTIC": "STRICT"}, True),
            ([], {"HCCL_DETERMINISTIC": "false"}, False),
            ([], {"HCCL_DETERMINISTIC": "nonsense"}, False),
        ):
            expect(run(*args, *more, "--out", folder + "/o{rank}.npy", env=env), 0, "bitwise equal")
            outputs = {content(f"{folder}/o{rank}.npy") for rank in range(4)}
            assert (len(outputs) == 1) == agree, (more, env, len(outputs))


def test_special_files():
    """Traces to what is no regular file: written at the end, and the file stays what it is."""
    args = case("quant_all_reduce", "ascend950dt_2p", ("int8", "float", "float"), "8,1024", "--trace")
    expect(run(*args, "/dev/full"), 2, "/dev/full", "cannot be written")
    expect(run(*args, "/dev/null"), 0)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode) and stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with tempfile.TemporaryDirectory() as folder:
        pipe, earlier = f"{folder}/pipe", f"{folder}/t.json"
        os.mkfifo(pipe)
        with tempfile.TemporaryFile() as seen:  # a pipe would fill up before anyone reads it
            reader = subprocess.Popen(["cat", pipe], stdout=seen)
            expect(run(*args, pipe, "--digest"), 0, "sha256")
            assert reader.wait(timeout=60) == 0
            seen.seek(0)
            events = json.load(seen)
        assert any(event["ph"] == "X" for event in events)
        write(earlier, b"earlier")
        expect(run(*args, earlier), 0)
        assert json.load(open(earlier)) == events
        assert sorted(os.listdir(folder)) == ["pipe", "t.json"], os.listdir(folder)


def test_progress():
    """On a terminal the command says what it is doing, on stderr; elsewhere stderr stays empty."""
    args = case("quant_all_reduce", "ascend950dt_2p", ("int8", "float", "float"), "64,1024")
    result = run(*args)
    expect(result, 0, "bitwise equal")
    assert result.stderr == "", result.stderr
    for more, expected in (([], True), (["--quiet"], False)):
        terminal, stderr = pty.openpty()
        process = subprocess.Popen([VATLAS, *args, *more], stdout=subprocess.PIPE, stderr=stderr, env=CLEAN)
        process.communicate(timeout=120)
        os.close(stderr)
        seen = b""
        try:
            while piece := os.read(terminal, 65536):
                seen += piece
        except OSError:
            pass  # the terminal is gone when its last user is
        os.close(terminal)
        assert process.returncode == 0
        assert (b"uploading" in seen and b"running" in seen) == expected, seen


def test_doctor():
    expect(run("doctor"), 0, "SystemC 2.3", "QuickThreads", "libsystemc-dev 2.3", "memory available", "address space is not limited", "a machine opens")
    expect(run("doctor", env={"VATLAS_CONFIG_DIR": "/nonexistent"}), 2, "BAD", "VATLAS_CONFIG_DIR")
    expect(run("doctor", env={"VATLAS_CLUSTER": "nope"}), 2, "BAD", "nope")
    if not SANITIZED:  # they need all of the address space themselves
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))
        result = run("doctor", preexec_fn=limit)
        expect(result, 2, "limited to 8.0 GiB", "ulimit -v unlimited")


def test_version():
    for args in (["version"], ["--version"]):
        expect(run(*args), 0, "0.1.0")
    expect(run("version", "now"), 2)


def test_memory():
    """16 Mi elements on each of 8 ranks: at most 1.3 times the tensors and what is used of the windows, plus 100 MB."""
    if SANITIZED:
        return
    elements, ranks = 16 * MI, 8
    inputs = ranks * (elements + elements // 32)
    limit = 1.3 * (inputs + ranks * 2 * elements + inputs) + 100e6
    expect(run(*case("quant_all_reduce", "ascend950dt_8p", ("float8_e4m3fn", "float8_e8m0", "bfloat16"), "2048,8192")), 0, "bitwise equal")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"peak {peak / 1e6:.0f} MB of {limit / 1e6:.0f} MB")
    assert peak <= limit, (peak, limit)


main(globals())
