#!/usr/bin/env python3
"""End-to-end tests of the vatlas command. Usage: cli_test.py VATLAS TEST; a test is a function test_NAME."""

import itertools
import json
import os
import signal
import struct
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from cli import CLEAN, COMBINATIONS, LONG, SANITIZED, SOURCE, TIMEOUT, VATLAS, case, expect, main, npy, run, write

def run_cases(cases):
    if SANITIZED:
        cases = cases[::7]
    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(lambda c: run(*c), cases):
            expect(result, 0, "bitwise equal")
    print(len(cases), "cases equal")


def run_matrix(cluster):
    """All types and H; each with two of the four pairs of shape and operator (all four: --long), and after one, two or
    three calls on the communicator: two use its second window, three come back to the first."""
    cases = []
    for i, (combination, hidden) in enumerate(itertools.product(COMBINATIONS, (1024, 5120, 7168, 8192))):
        shapes = [f"16,{hidden}", f"2,8,{hidden}"]
        ops = ["quant_all_reduce", "quant_reduce_scatter"]
        chosen = [(s, o) for s in shapes for o in ops] if LONG else [(shapes[i % 2], ops[i // 2 % 2]), (shapes[1 - i % 2], ops[1 - i // 2 % 2])]
        for j, (shape, op) in enumerate(chosen):
            cases.append(case(op, cluster, combination, shape, "--repeat", str((i + j) % 3 + 1)))
    run_cases(cases)


def test_matrix_2():
    run_matrix("ascend950dt_2p")


def test_matrix_4():
    run_matrix("ascend950pr_4p")


def test_matrix_8():
    run_matrix("ascend950dt_8p")


def test_other_clusters():
    """The rest of the shipped clusters, Atlas 350 with all types."""
    cases = []
    for i, combination in enumerate(COMBINATIONS):
        for j, cluster in enumerate(("atlas350_2p", "atlas350_4p")):
            op = ("quant_all_reduce", "quant_reduce_scatter")[(i + j) % 2]
            cases.append(case(op, cluster, combination, ("16,5120", "2,8,1024")[i // 2 % 2], "--repeat", str(i % 3 + 1)))
    for cluster in ("ascend950pr_2p", "ascend950dt_4p", "ascend950pr_8p"):
        for op in ("quant_all_reduce", "quant_reduce_scatter"):
            cases.append(case(op, cluster, COMBINATIONS[8], "16,7168", "--repeat", "2"))
    run_cases(cases)


def test_atlas350():
    for op in ("quant_all_reduce", "quant_reduce_scatter"):
        expect(run(*case(op, "atlas350_8p", COMBINATIONS[0], "16,5120")), 2, "UnifiedBus", "atlas350_8p")


def test_exact():
    for op in ("quant_all_reduce", "quant_reduce_scatter"):
        expect(run(*case(op, "ascend950dt_4p", COMBINATIONS[6], "64,2048", "--input", "exact")), 0, "bitwise equal")


def test_report():
    with tempfile.TemporaryDirectory() as folder:
        report, trace = os.path.join(folder, "r.json"), os.path.join(folder, "t.json")
        expect(run(*case("quant_all_reduce", "ascend950dt_4p", COMBINATIONS[8], "64,1024", "--json", report, "--trace", trace)), 0,
               "modelled time", "bus bandwidth", "links")
        data = json.load(open(report))
        elements = 64 * 1024
        contributed = elements + elements // 128 * 4
        assert len(data["ranks"]) == 4 and all(r["different"] == 0 and r["elements"] == elements for r in data["ranks"]), data
        assert len(data["links"]) == 12, data
        # Every rank reads every peer's x and scales once, and writes a 32-byte status word for each core.
        for link in data["links"]:
            assert link["bytes"] == contributed + 64 * 32, link
        starts = min(r["start_ps"] for r in data["ranks"])
        ends = max(r["end_ps"] for r in data["ranks"])
        assert data["time_ps"] == ends - starts
        assert abs(data["algorithm_bandwidth_gb_per_s"] - contributed / data["time_ps"] * 1e3) < 1e-6
        events = json.load(open(trace))
        names = {e["name"] for e in events if e["ph"] == "X"}
        assert {"load", "store"} <= names and any(n.startswith("quant_all_reduce") for n in names), names
        assert any(e["ph"] == "C" for e in events)
        kernels = [e for e in events if e["ph"] == "X" and e["name"].startswith("quant_all_reduce")]
        assert len(kernels) == 4 and all(e["dur"] > 0 for e in kernels)


def test_chaos():
    digests = set()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(5 if SANITIZED else 20):
            trace = os.path.join(folder, "t.json")
            result = run(*case("quant_all_reduce", "ascend950dt_8p", COMBINATIONS[8], "32,1024", "--repeat", "2", "--digest", "--trace", trace,
                               "--trace-cores", "2"), env={"VATLAS_CHAOS": str(seed)})
            expect(result, 0, "bitwise equal", "sha256 ")
            digests.add(result.stdout.split("sha256 ")[1].strip())
            assert "host's timing" not in result.stdout, result.stdout
    assert len(digests) == 1, digests
    print(digests)


def test_files():
    """Real inputs as .npy and raw files; the outputs are checked here, in Python, for values that are exact."""
    with tempfile.TemporaryDirectory() as folder:
        rows, hidden, ranks = 8, 1024, 2
        n = rows * hidden
        for rank in range(ranks):
            x = bytes((i * 7 + rank * 3) % 256 for i in range(n))
            scales = b"".join(struct.pack("<f", 0.5 * (1 + (g + rank) % 4)) for g in range(n // 128))
            write(f"{folder}/x{rank}.npy", npy("|i1", (rows, hidden), x))
            write(f"{folder}/s{rank}.npy", npy("<f4", (rows, hidden // 128), scales))
            write(f"{folder}/x{rank}.raw", x)
            write(f"{folder}/s{rank}.raw", scales)
        args = case("quant_all_reduce", "ascend950dt_2p", ("int8", "float", "float"), f"{rows},{hidden}")
        for kind in ("npy", "raw"):
            expect(run(*args, "--x", f"{folder}/x{{rank}}.{kind}", "--scales", f"{folder}/s{{rank}}.{kind}", "--out", f"{folder}/o{{rank}}.{kind}"), 0)
        raw = open(f"{folder}/o1.raw", "rb").read()
        whole = open(f"{folder}/o1.npy", "rb").read()
        assert whole.endswith(raw) and whole.startswith(b"\x93NUMPY") and len(raw) == 4 * n
        assert b"'descr': '<f4'" in whole and b"(8, 1024)" in whole
        for i in range(n):
            expected = 0.0
            for rank in range(ranks):
                code = (i * 7 + rank * 3) % 256
                expected += (code - 256 if code > 127 else code) * 0.5 * (1 + (i // 128 + rank) % 4)
            assert struct.unpack_from("<f", raw, 4 * i)[0] == expected, i


def test_bad_files():
    with tempfile.TemporaryDirectory() as folder:
        data = bytes(8 * 1024)
        scales = bytes(4 * 64)
        args = case("quant_all_reduce", "ascend950dt_2p", ("int8", "float", "float"), "8,1024")
        good_x = npy("|i1", (8, 1024), data)
        bad = {
            "cut off": good_x[:-1],
            "is cut off": b"\x93NUM",
            "no .npy file": b"hello world, this is text",
            "of type '<f8'": npy("<f8", (8, 1024), data),
            "of type '|u1'": npy("|u1", (8, 1024), data),
            "Fortran order": npy("|i1", (8, 1024), data, fortran=True),
            "has shape [1024, 8]": npy("|i1", (1024, 8), data),
            "has shape [8192]": npy("|i1", (8192,), data),
            ".npy version 9": npy("|i1", (8, 1024), data, version=9),
            "8193 bytes of data": good_x + b"x",
        }
        for rank in (0, 1):
            write(f"{folder}/s{rank}.npy", npy("<f4", (8, 8), scales))
            write(f"{folder}/good{rank}.npy", good_x)
        for i, (text, content) in enumerate(bad.items()):
            for rank in (0, 1):
                write(f"{folder}/bad{i}_{rank}.npy", content)
            expect(run(*args, "--x", f"{folder}/bad{i}_{{rank}}.npy", "--scales", f"{folder}/s{{rank}}.npy"), 2, text, f"bad{i}_0.npy")
        x = ["--x", f"{folder}/good{{rank}}.npy"]
        s = ["--scales", f"{folder}/s{{rank}}.npy"]
        expect(run(*args, "--x", f"{folder}/none{{rank}}.npy", *s), 2, "there is no such file")
        expect(run(*args, "--x", folder + "/{rank}", *s), 2, "no such file")
        expect(run(*args, "--x", f"{folder}/good0.npy", *s), 2, "{rank}")
        expect(run(*args, *x), 2, "give both or none")
        expect(run(*args, *x, *s, "--out", "/nonexistent/o{rank}.npy"), 2, "/nonexistent/o0.npy", "cannot be written")
        expect(run(*args, *x, *s, "--json", "/nonexistent/r.json"), 2, "cannot be written")
        expect(run(*args, *x, *s, "--trace", "/nonexistent/t.json"), 2, "cannot be written")
        expect(run(*args, *x, *s), 0, "bitwise equal")


def test_usage():
    base = ["run", "--op", "quant_all_reduce"]
    expect(run(), 2)
    expect(run("nonsense"), 2)
    expect(run("run"), 2, "--op")
    expect(run("run", "--op", "all_to_all"), 2)
    expect(run("--help"), 0, "run")
    expect(run("--version"), 0, "0.1.0")
    for shape in ("", "8", "8,", "a,b", "8,1024,1,1", "0,1024", "-8,1024", "8,1025", "8,512", "8,16384", "99999999999999999999,1024"):
        expect(run(*base, "--shape", shape), 2)
    expect(run(*base, "--x-dtype", "float16"), 2, "float16")
    expect(run(*base, "--x-dtype", "int8", "--scales-dtype", "float8_e8m0"), 2, "float8_e8m0")
    expect(run(*base, "--shape", "12,1024"), 2, "do not divide")
    expect(run(*base, "--shape", "1024,8192", env={"HCCL_BUFFSIZE": "8"}), 2, "set HCCL_BUFFSIZE to")
    expect(run(*base, "--cluster", "ascend950dt_9p"), 2, "ascend950dt_8p")
    expect(run(*base, "--repeat", "0"), 2)
    expect(run(*base, "--shape", "8,1024", env={"HCCL_BUFFSIZE": "many"}), 2, "HCCL_BUFFSIZE")
    expect(run(*base, "--shape", "8,1024", env={"VATLAS_PEER_GRACE_MS": "soon"}), 2, "VATLAS_PEER_GRACE_MS")
    expect(run(*base, "--shape", "8,1024", env={"VATLAS_HOST_MEMORY_MB": "100"}), 2, "room")


def test_configs():
    """Bad cluster files: every one is refused with its place, by validate and by run."""
    with tempfile.TemporaryDirectory() as folder:
        good = {"vatlas": 1}
        shipped = None
        for root in (SOURCE + "/configs",):
            shipped = json.load(open(root + "/clusters/ascend950dt_2p.json"))
            product = root + "/products/"
        changes = {
            "syntax": "{ \"name\": ",
            "empty": "",
            "unknown key": dict(shipped, colour="blue"),
            "wrong type": dict(shipped, ranks="two"),
            "three ranks": dict(shipped, ranks=3),
            "nine ranks": dict(shipped, ranks=9),
            "unknown product": dict(shipped, product="ascend951"),
        }
        for name, content in changes.items():
            path = f"{folder}/{name.replace(' ', '_')}.json"
            write(path, (content if isinstance(content, str) else json.dumps(content, indent=1)).encode())
            for args in (["validate", path], ["run", "--op", "quant_all_reduce", "--cluster", path]):
                result = run(*args)
                expect(result, 2, os.path.basename(path))
        expect(run("validate", SOURCE + "/configs/clusters/ascend950dt_2p.json"), 0, "good")
        expect(run("validate", f"{folder}/none.json"), 2, "none.json")
        expect(run("validate", folder), 2)
        expect(run("validate", "/dev/null"), 2)


def test_rank_tables():
    with tempfile.TemporaryDirectory() as folder:
        def table(**changes):
            ranks = [{"rank_id": i, "local_id": i, "device_id": i, "level_list": []} for i in range(2)]
            return dict({"version": "2.0", "status": "completed", "rank_count": 2, "rank_list": ranks}, **changes)

        path = f"{folder}/ranks.json"
        write(path, json.dumps(table()).encode())
        expect(run("validate", path), 0, "good")
        twice = table()
        twice["rank_list"][1]["rank_id"] = 0
        for bad, text in ((table(version="1.0"), "2.0"), (table(rank_count=3), "rank_count"), (twice, "twice")):
            write(path, json.dumps(bad).encode())
            expect(run("validate", path), 2, text)


def test_environment():
    result = run("run", "--op", "quant_all_reduce", "--shape", "8,1024", env={"VATLAS_CLUSTER": "ascend950pr_2p"})
    expect(result, 0, "ascend950pr_2p (2 ranks)")
    expect(run("run", "--op", "quant_all_reduce", env={"VATLAS_CLUSTER": "nope"}), 2, "nope")
    digests = set()
    for simd in ("baseline", "avx2", "avx512", "avx512_vbmi"):
        result = run("run", "--op", "quant_all_reduce", "--shape", "64,1024", "--digest", env={"VATLAS_SIMD": simd})
        expect(result, 0, "bitwise equal")
        digests.add(result.stdout.split("sha256 ")[1])
    assert len(digests) == 1, digests
    with open("/dev/full", "w") as full:
        code = subprocess.run([VATLAS, "info"], stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT, env=CLEAN).returncode
    assert code == 2, code


def test_info():
    expect(run("info"), 0, "Ascend950DT_9581", "32 / 64", "144", "shipped clusters")
    expect(run("info", "--cluster", "atlas350_8p"), 0, "PCIe", "UB")
    expect(run("info", "--cluster", "nope"), 2)
    expect(run("doctor"), 0, "SystemC 2.3", "a machine opens")


def test_model_check():
    result = run("model-check")
    expect(result, 0, "within 5 %", "AllReduce")
    print(result.stdout)


def test_interrupt():
    """Ctrl-C in the middle: exit code 130, and the trace is valid JSON."""
    for delay in (0.0, 0.05, 0.3, 0.8, 1.5):
        with tempfile.TemporaryDirectory() as folder:
            trace = f"{folder}/t.json"
            args = case("quant_all_reduce", "ascend950dt_8p", COMBINATIONS[8], "1024,5120", "--repeat", "1000", "--trace", trace)
            process = subprocess.Popen([VATLAS, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=CLEAN)
            while not os.path.exists(trace + ".part") and process.poll() is None:
                time.sleep(0.01)
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            assert process.returncode == 130, (delay, process.returncode, out, err)
            json.load(open(trace))


def test_missing_hardware_support():
    with tempfile.TemporaryDirectory() as folder:
        expect(run("run", "--op", "quant_all_reduce", "--cluster", "atlas350_8p", "--out", f"{folder}/o{{rank}}.npy"), 2, "UnifiedBus")
        assert os.listdir(folder) == [], "nothing is written by a run that is refused"


main(globals())
