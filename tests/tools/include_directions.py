#!/usr/bin/env python3
"""Fails when a folder includes what it may not know about. Usage: include_directions.py ROOT, or --self-test."""

import os
import re
import sys
import tempfile

FOLDERS = ("sim", "kernels", "runtime", "hccl", "tools")
MAY = {  # besides itself
    "sim": set(),
    "kernels": set(),
    "runtime": {"sim"},
    "hccl": {"runtime"},
    "tools": {"hccl", "runtime", "sim", "kernels"},
}
# What kernels may know of the hardware, and plain structs that host and kernel share.
PORT = {"vatlas/sim/core_port.h", "vatlas/sim/config.h", "vatlas/sim/kernel_image.h", "vatlas/sim/time.h"}
SHARED = {"vatlas/kernel/quant_tiling.h", "vatlas/kernel/hccl_context.h"}
# Libraries that few files may see.
FEW = {
    ("systemc", "tlm"): {"sim/src/shell.cpp"},
    ("valijson/",): {"runtime/src/config/schema_valijson.cpp"},
    ("boost/asio",): {"runtime/src/session/sim_thread.cpp"},
    ("Eigen/",): {"tools/src/golden.cpp"},
    ("CLI/",): {"tools/src/main.cpp"},
    ("nlohmann/",): {
        "runtime/src/config/json_document.cpp", "runtime/src/config/schema_valijson.cpp", "runtime/src/acl/vatlas_api.cpp",
        "runtime/src/acl/acl_init.cpp", "hccl/src/rank_table.cpp", "tools/src/summary.cpp",
    },
}
# `vatlas run` reaches the cards as a user's own program does.
AS_USERS = {"tools/src/ranks.cpp", "tools/src/ranks.h"}
USERS_HEADERS = re.compile(r"(acl|aclnn|aclnnop|hccl)/|vatlas/vatlas\.h$")


def sources(root):
    for folder in FOLDERS:
        for base, _, files in os.walk(os.path.join(root, folder)):
            for name in files:
                if name.endswith((".h", ".cpp", ".inc")):
                    yield folder, os.path.relpath(os.path.join(base, name), root)


def owners_of_headers(root):
    owners = {}  # include text to folders
    for folder, relative in sources(root):
        for top in ("include", "src"):
            prefix = f"{folder}/{top}/"
            if relative.startswith(prefix) and not relative.endswith(".cpp"):
                owners.setdefault(relative[len(prefix):], set()).add(folder)
    return owners


def fault(folder, relative, included, owners):
    for libraries, allowed in FEW.items():
        if included.startswith(libraries) and relative not in allowed:
            return f"only {', '.join(sorted(allowed))} may include {included}"
    if not owners or folder in owners:
        return None
    if relative in AS_USERS and not USERS_HEADERS.match(included):
        return f"uses what users have, not {included}"
    if folder == "kernels" and included in PORT or folder in ("runtime", "hccl") and included in SHARED:
        return None
    return None if owners & MAY[folder] else f"{folder} may not include {included} of {', '.join(sorted(owners))}"


def check(root):
    headers = owners_of_headers(root)
    errors = []
    for folder, relative in sources(root):
        with open(os.path.join(root, relative), encoding="utf-8") as file:
            for line, text in enumerate(file, 1):
                match = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', text)
                error = match and fault(folder, relative, match.group(1), headers.get(match.group(1), set()))
                if error:
                    errors.append(f"{relative}:{line}: {error}")
    return headers, errors


def self_test():
    """Every rule finds what breaks it, and only that."""
    headers = ("sim/include/vatlas/sim/core_port.h", "sim/include/vatlas/sim/machine.h", "kernels/include/vatlas/kernel/tensor.h",
               "kernels/include/vatlas/kernel/quant_tiling.h", "runtime/include/acl/acl.h", "hccl/include/hccl/hccl.h")
    cases = [
        ("sim/src/a.cpp", "vatlas/sim/machine.h", True), ("sim/src/a.cpp", "acl/acl.h", False), ("sim/src/a.cpp", "systemc", False),
        ("sim/src/shell.cpp", "systemc", True), ("sim/src/a.cpp", "tlm_utils/x.h", False), ("sim/src/a.cpp", "vector", True),
        ("kernels/src/a.cpp", "vatlas/sim/core_port.h", True), ("kernels/src/a.cpp", "vatlas/sim/machine.h", False),
        ("kernels/src/a.inc", "acl/acl.h", False), ("runtime/src/a.cpp", "vatlas/sim/machine.h", True),
        ("runtime/src/a.h", "hccl/hccl.h", False), ("runtime/src/a.cpp", "vatlas/kernel/quant_tiling.h", True),
        ("runtime/src/a.cpp", "vatlas/kernel/tensor.h", False), ("hccl/src/a.cpp", "acl/acl.h", True),
        ("hccl/src/a.cpp", "vatlas/sim/machine.h", False), ("tools/src/a.cpp", "vatlas/sim/machine.h", True),
        ("tools/src/ranks.cpp", "vatlas/sim/machine.h", False), ("tools/src/ranks.cpp", "hccl/hccl.h", True),
        ("kernels/src/a.cpp", "Eigen/Core", False), ("tools/src/a.cpp", "nlohmann/json.hpp", False),
    ]
    for path, included, good in cases:
        with tempfile.TemporaryDirectory() as root:
            for header in headers:
                os.makedirs(os.path.dirname(os.path.join(root, header)), exist_ok=True)
                open(os.path.join(root, header), "w").close()
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w") as file:
                file.write(f'// first\n#  include "{included}"\n')
            _, errors = check(root)
            assert (errors == []) == good, (path, included, errors)
            assert good or errors[0].startswith(f"{path}:2: "), errors
    print(len(cases), "cases")


if sys.argv[1] == "--self-test":
    self_test()
else:
    known, found = check(sys.argv[1])
    print("\n".join(found) or f"{len(known)} headers, all includes go the right way")
    sys.exit(1 if found or len(known) < 50 else 0)
