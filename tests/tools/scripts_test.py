#!/usr/bin/env python3
"""The project's shell scripts: what they do without root, with wrong arguments, and from any folder. The commands that
they call are replaced by ones that only write down how they were called. Usage: scripts_test.py ROOT."""

import os
import shutil
import subprocess
import sys
import tempfile

ROOT = sys.argv[1]
SCRIPTS = ("tools/install-packages", "tools/quickstart", "tools/test", ".ci/run")


def sandbox(folder, *, uid=0, installed=True):
    """A copy of the scripts, and a PATH on which apt-get, cmake and the like only log."""
    for script in (*SCRIPTS, "tools/packages.txt"):
        target = os.path.join(folder, "project", script)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(os.path.join(ROOT, script), target)
    log = os.path.join(folder, "log")
    open(log, "w").close()
    fake = os.path.join(folder, "bin")
    os.makedirs(fake)
    texts = {
        "id": f"echo {uid}",
        "dpkg-query": "echo -n installed" if installed else "exit 1",
        **{name: f'echo "{name} $*" >> {log}' for name in ("apt-get", "cmake", "ctest")},
    }
    for name, text in texts.items():
        path = os.path.join(fake, name)
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)
    vatlas = os.path.join(folder, "project/build/release/bin/vatlas")
    os.makedirs(os.path.dirname(vatlas))
    with open(vatlas, "w") as file:
        file.write(f'#!/bin/sh\necho "vatlas $*" >> {log}\n')
    os.chmod(vatlas, 0o755)


def run(folder, script, *args):
    env = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}")
    result = subprocess.run([f"{folder}/project/{script}", *args], cwd="/", env=env, capture_output=True, text=True, timeout=30)
    with open(f"{folder}/log") as file:
        return result, file.read().splitlines()


def test_packages():
    with tempfile.TemporaryDirectory() as folder:
        sandbox(folder)
        result, log = run(folder, "tools/install-packages")
        assert result.returncode == 0 and log == [], (result, log)
    with tempfile.TemporaryDirectory() as folder:
        sandbox(folder, installed=False)
        result, log = run(folder, "tools/install-packages")
        assert result.returncode == 0 and log[0].startswith("apt-get update"), (result, log)
        assert "install -y" in log[1] and "libsystemc-dev" in log[1] and "#" not in log[1], log
        assert "apt-get was not found" not in result.stderr
    for script in SCRIPTS:
        with tempfile.TemporaryDirectory() as folder:
            sandbox(folder, uid=1000, installed=False)
            result, log = run(folder, script)
            assert result.returncode == 2 and log == [], (script, result, log)
            lines = [line for line in result.stderr.splitlines() if "sudo" in line]
            assert len(lines) == 1 and "apt-get update && " in lines[0] and "libsystemc-dev" in lines[0], result.stderr
        with tempfile.TemporaryDirectory() as folder:
            sandbox(folder, uid=1000)
            result, log = run(folder, script)
            assert result.returncode == 0 and (log == []) == (script == SCRIPTS[0]), (script, result, log)


def test_quickstart():
    with tempfile.TemporaryDirectory() as folder:
        sandbox(folder)
        result, log = run(folder, "tools/quickstart")
        assert result.returncode == 0 and log[0] == "cmake --preset release" and log[-1].startswith("vatlas run "), (result, log)
        assert "ascend950dt_8p.json --op quant_all_reduce" in log[-1] and "build/release/bin/vatlas run" in result.stdout


def test_tests():
    def presets(log):
        return [line.split()[2] for line in log if line.startswith("ctest --preset")]

    for script, args, expected in (("tools/test", [], ["release"]), ("tools/test", ["--sanitize"], ["asan", "tsan"]),
                                   (".ci/run", [], ["asan", "tsan", "release"]), ("tools/test", ["--long"], ["release"])):
        with tempfile.TemporaryDirectory() as folder:
            sandbox(folder)
            result, log = run(folder, script, *args)
            assert result.returncode == 0 and presets(log) == expected, (script, result, log)
            assert log[-1].startswith("ctest"), "the last thing shown is the summary of the tests"
    with tempfile.TemporaryDirectory() as folder:
        sandbox(folder)
        result, log = run(folder, "tools/test", "--fast")
        assert result.returncode == 2 and log == [] and "usage" in result.stderr, (result, log)
        # A build or a test that fails ends the script with its failure.
        with open(f"{folder}/bin/ctest", "w") as file:
            file.write("#!/bin/sh\nexit 8\n")
        result, log = run(folder, ".ci/run")
        assert result.returncode == 8, result


test_packages()
test_quickstart()
test_tests()
for script in SCRIPTS:
    assert os.access(os.path.join(ROOT, script), os.X_OK), f"{script} is not executable"
    with open(os.path.join(ROOT, script)) as file:
        assert "set -euo pipefail" in file.read(), script
print("scripts do what they say")
