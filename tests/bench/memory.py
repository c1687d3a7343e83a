#!/usr/bin/env python3
"""Peak resident memory of `vatlas run` at 16 Mi elements a rank on 8 ranks, against 1.3 times the device tensors and
windows plus 100 MB; and the wall time of a process that opens an 8-card cluster and closes it. Usage: memory.py VATLAS"""

import os
import resource
import subprocess
import sys
import time

MI = 1 << 20
elements, ranks = 16 * MI, 8
tensors = ranks * (elements + elements // 32 + 2 * elements + 16 * MI)  # x, scales, output, workspace
windows = ranks * (2 * 200 * MI + MI)
used = ranks * (elements + elements // 32)  # of the windows, by one call
limit = 1.3 * (ranks * (elements + elements // 32 + 2 * elements) + used) + 100e6
process = subprocess.run([sys.argv[1], "run", "--op", "quant_all_reduce", "--cluster", "ascend950dt_8p", "--shape", "2048,8192", "--quiet"])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
print(f"peak {peak / 1e6:.0f} MB; x, scales, outputs and the touched part of the windows {(ranks * (elements + elements // 32 + 2 * elements) + used) / 1e6:.0f} MB, "
      f"1.3 times that + 100 MB = {limit / 1e6:.0f} MB: {'within' if peak <= limit else 'NOT within'}")
best = min(
    (lambda start: (subprocess.run([sys.argv[1], "run", "--op", "quant_all_reduce", "--shape", "8,1024", "--quiet", "--no-check"], check=True), time.time() - start)[1])(time.time())
    for _ in range(5))
print(f"a whole `vatlas run` of 8 x 1024 elements: {best * 1e3:.0f} ms")
sys.exit(process.returncode)
