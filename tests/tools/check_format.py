#!/usr/bin/env python3
"""Fails when a source file is not laid out as .clang-format says."""

import os
import subprocess
import sys

tool, root = sys.argv[1:3]
files = []
for folder in ("sim", "kernels", "runtime", "hccl", "tools", "tests"):
    for base, _, names in os.walk(os.path.join(root, folder)):
        files += [os.path.join(base, n) for n in names if n.endswith((".h", ".cpp"))]
result = subprocess.run([tool, "--dry-run", "--Werror", *sorted(files)], cwd=root, capture_output=True, text=True)
print(result.stderr[-3000:])
sys.exit(result.returncode)
