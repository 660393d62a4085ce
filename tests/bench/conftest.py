"""The benchmarks are scripts beside the package: their folder is on the path for these tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
