#!/usr/bin/env python3
"""The ONNX backend suite on an OpenCL device of the system, as PoCL: `run_onnx.py --chip CHIP [OPTION...]`.

In: the programs in $UIR_BIN; further options are those of conformance_suite. Out: what it prints, in the end
`N passed, M failed, S skipped`; without an OpenCL device all is skipped."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from device import CHIPS, run_on_device  # noqa: E402
from suite import make_parser  # noqa: E402


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--chip", choices=CHIPS, required=True)
    options, words = parser.parse_known_args()
    return run_on_device("conformance_suite", "--device", f"opencl:{options.chip}", *words)


if __name__ == "__main__":
    sys.exit(main())
