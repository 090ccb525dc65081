#!/usr/bin/env python3
"""Whose bytes are believed, and as what: which model the cache takes a file for.

In: the programs in $UIR_BIN; the folder `review` beside the one that $UIR_MODELS names, where it is there. Out: a line per
failure, then `N passed, M failed, S skipped`.
"""
import glob
import hashlib
import os
import shutil
import sys

import numpy as np

from cli import Lacking, RAN, ROOT, RUN, Case, expect, external_model, main, run, save

# Two models of one size and one XXH3-128.
ATTACKS = os.path.join(os.environ.get("UIR_MODELS") or os.path.join(ROOT, "..", "shared", "models"), "..", "review", "attacks")
PIECE = 1 << 22


def digest(data):
    """As cache/digest.h says."""
    pieces = [hashlib.blake2b(data[at:at + PIECE], digest_size=32, person=b"uir piece").digest()
              for at in range(0, len(data), PIECE)]
    whole = len(data).to_bytes(8, "little") + b"".join(pieces)
    return hashlib.blake2b(whole, digest_size=32, person=b"uir pieces").hexdigest()


def entries(cache):
    """The bytes of each entry of a cache, by its name."""
    return {name: open(os.path.join(cache, name), "rb").read()[4096:] for name in os.listdir(cache) if "." not in name}


def test_files_are_known_by_a_digest():
    """The cache's record of a model's data files names each by BLAKE2b of its bytes, as hashlib computes it."""
    with Case() as c:
        weights = np.arange(12, dtype=np.float32).tobytes() + bytes(range(256)) * (2 * PIECE // 256)
        model, cache = save(external_model("w.bin"), c.path("external.onnx")), c.path("cache")
        c.write("w.bin", weights)
        done = run(RUN, "--device", "vm", "--cache", cache, model)
        expect(done.returncode == RAN, "the model runs", done)
        line = f"{len(weights):x} {digest(weights)} w.bin\n".encode()
        expect(any(line in kept for kept in entries(cache).values()), f"no entry of the cache holds {line}")
        expect(all(len(name) == 64 for name in entries(cache)), f"names that are no digests: {list(entries(cache))}")


def test_models_of_one_weak_hash_are_two():
    """Two tenants of one cache: the second's model is not the first's, though somebody made them collide."""
    pair = [os.path.join(ATTACKS, f"c1_{who}.onnx") for who in ("evil", "victim")]
    if not all(map(os.path.exists, pair)):
        raise Lacking(f"no models of one XXH3-128 in {ATTACKS}")
    for device in (["vm"], ["cpu", "--no-vm"]):
        with Case() as c:
            answers = []
            for name, model in zip(("evil", "victim"), pair):
                shutil.copyfile(model, c.path("model.onnx"))
                for cached in (["--no-cache"], ["--cache", c.path("cache")]):
                    out = c.path(f"{name}{len(cached)}")
                    done = run(RUN, c.path("model.onnx"), "--device", *device, *cached, "--save", out)
                    expect(done.returncode == RAN, f"{name} on {device}", done)
                    answers.append([open(f, "rb").read() for f in sorted(glob.glob(out + "/output_*.pb"))])
            expect(answers[0] == answers[1] and answers[2] == answers[3], "a model answers for another out of the cache")
            expect(answers[0] != answers[2], "the two models are one")


if __name__ == "__main__":
    sys.exit(main(globals()))
