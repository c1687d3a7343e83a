#!/usr/bin/env python3
"""Fails when the README does not show what the main job prints. Usage: readme_test.py VATLAS [--update]."""

import os
import shlex
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
README = os.path.join(ROOT, "README.md")
BEGIN, END = "<!-- main-job-output -->\n", "<!-- /main-job-output -->\n"

with open(README, encoding="utf-8") as file:
    text = file.read()
section = text.split("## The main job")[1].split(BEGIN)[0]
command = shlex.split(section.replace("\\\n", " ").split("    vatlas ", 1)[1].split("\n\n")[0])
clean = {k: v for k, v in os.environ.items() if not k.startswith(("VATLAS_", "HCCL_"))}
result = subprocess.run([sys.argv[1], *command], cwd=ROOT, capture_output=True, text=True, timeout=240, check=True, env=clean)
shown = "".join(f"    {line}".rstrip() + "\n" for line in result.stdout.splitlines())
before, rest = text.split(BEGIN)
old, after = rest.split(END)
if old.strip("\n") == shown.strip("\n"):
    print("the README shows what the main job prints")
elif sys.argv[2:] == ["--update"]:
    with open(README, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n" + shown + "\n" + END + after)
    print("updated README.md")
else:
    sys.exit(f"the README shows something else than the main job prints; run tests/e2e/readme_test.py VATLAS --update:\n{shown}")
