#!/usr/bin/env python3
"""Random kernels and each instruction on an OpenCL device of the system: `run_kernels.py --chip CHIP SIZES [OPTION...]`.

In: uir-opencl-kernels in $UIR_BIN, which further words are for. Those of chip gpu are of anywhere.device. Out: what it
prints, in the end `N passed, M failed, S skipped`; without an OpenCL device all is skipped."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from device import CHIPS, run_on_device  # noqa: E402
from suite import make_parser  # noqa: E402

OWN = {"gpu": ["--device-file", os.path.join("tests", "backends", "opencl", "anywhere.device")], "cpu": []}


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--chip", choices=CHIPS, required=True)
    parser.add_argument("sizes", metavar="SIZES")
    options, words = parser.parse_known_args()
    return run_on_device("uir-opencl-kernels", options.sizes, *OWN[options.chip], *words,
                         env={"UIR_OPENCL_CHIP": options.chip})


if __name__ == "__main__":
    sys.exit(main())
