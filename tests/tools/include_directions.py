#!/usr/bin/env python3
"""Fails when a folder includes what it may not know about."""

import os
import re
import sys

ROOT = sys.argv[1]
HEADERS = {}  # include text to folder
for folder in ("sim", "kernels", "runtime", "hccl", "tools"):
    for base, _, files in os.walk(os.path.join(ROOT, folder)):
        for name in files:
            if not name.endswith((".h", ".inc")):
                continue
            path = os.path.join(base, name)
            for top in ("include", "src"):
                prefix = os.path.join(ROOT, folder, top) + os.sep
                if path.startswith(prefix):
                    HEADERS.setdefault(path[len(prefix):], set()).add(folder)

PORT = {"vatlas/sim/core_port.h", "vatlas/sim/config.h", "vatlas/sim/kernel_image.h", "vatlas/sim/time.h"}
# Plain structs that host and kernel share.
SHARED = {"vatlas/kernel/quant_tiling.h", "vatlas/kernel/hccl_context.h"}
MAY = {
    "sim": {"sim"},
    "kernels": {"kernels"},
    "runtime": {"runtime", "sim"},
    "hccl": {"hccl", "runtime", "sim"},
    "tools": {"tools", "hccl", "runtime", "sim", "kernels"},
}
FEW = {  # libraries that few files may see
    "systemc": {"sim/src/shell.cpp"},
    "valijson/": {"runtime/src/config/schema_valijson.cpp"},
    "boost/asio": {"runtime/src/session/sim_thread.cpp"},
}
errors = []
for folder in MAY:
    for base, _, files in os.walk(os.path.join(ROOT, folder)):
        for name in files:
            if not name.endswith((".h", ".cpp", ".inc")):
                continue
            path = os.path.join(base, name)
            relative = os.path.relpath(path, ROOT)
            for line, text in enumerate(open(path, encoding="utf-8"), 1):
                match = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', text)
                if not match:
                    continue
                included = match.group(1)
                for library, allowed in FEW.items():
                    if included.startswith(library) and relative not in allowed:
                        errors.append(f"{relative}:{line}: only {', '.join(allowed)} may include {included}")
                if folder not in ("runtime",) and "nlohmann" in included and folder not in ("hccl", "tools"):
                    errors.append(f"{relative}:{line}: {folder} does not read JSON")
                owners = HEADERS.get(included, set())
                if not owners or folder in owners:
                    continue
                if included in SHARED and folder in ("runtime", "hccl"):
                    continue
                if folder == "kernels" and included in PORT:
                    continue
                if not owners & MAY[folder]:
                    errors.append(f"{relative}:{line}: {folder} may not include {included} of {', '.join(sorted(owners))}")
print("\n".join(errors) or f"{len(HEADERS)} headers, all includes go the right way")
sys.exit(1 if errors else 0)
