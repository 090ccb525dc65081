#!/usr/bin/env python3
"""Whose bytes are believed, and as what: which model the cache takes a file for, and who signed a package.

In: the programs in $UIR_BIN; the folder `review` beside the one that $UIR_MODELS names, where it is there. Out: a line per
failure, then `N passed, M failed, S skipped`.
"""
import glob
import hashlib
import os
import random
import shutil
import stat
import sys

import numpy as np
from onnx import TensorProto, helper

from cli import (BAD_FILE, FAILED, GIVEN_MODELS, PACK, RAN, RUN, RUN_PACKAGE, UNSUPPORTED, USAGE, Case, Lacking, expect,
                 external_model, fails, make_model, product_model, run, run_tests, save, value)

# Two models of one size and one XXH3-128.
ATTACKS = os.path.join(GIVEN_MODELS, "..", "review", "attacks")
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


# Behind a package: a word, the public key, the signature.
WORD, SIGNATURE = b"UIRSIGN1", 8 + 32 + 64


def make_keys(c, *names):
    for name in names:
        done = run(PACK, "--make-key", c.path(name))
        expect(done.returncode == RAN and not done.err, "a pair of keys", done)


def pack(c, name, *options, model=None):
    done = run(PACK, model or c.model, "-o", c.path(name), *options)
    expect(done.returncode == RAN, "the model is packed", done)
    return c.path(name)


def test_keys_are_made_once():
    with Case() as c:
        make_keys(c, "key")
        secret, public = c.path("key"), c.path("key.pub")
        expect(stat.S_IMODE(os.stat(secret).st_mode) == 0o600, "others may read the secret key")
        expect(open(secret).read().startswith("uir-secret-key ") and open(public).read().startswith("uir-public-key "), "their words")
        before = open(secret).read(), open(public).read()
        fails(FAILED, "already", command=[PACK, "--make-key", secret])
        os.remove(secret)
        fails(FAILED, "already", command=[PACK, "--make-key", secret])
        expect(not os.path.exists(secret), "half a pair is left")
        expect(open(public).read() == before[1], "a key was written over")
        make_keys(c, "other")
        expect(open(c.path("other")).read() != before[0], "two keys are one")
        fails(USAGE, "--make-key", command=[PACK, "--make-key", c.path("third"), c.model])
        fails(FAILED, "key", command=[PACK, "--make-key", c.path("nowhere", "key")])


def test_what_a_trusted_key_signed_runs():
    """Its native code too, by both programs; without a key to trust it is a package as any other."""
    with Case() as c:
        make_keys(c, "mine", "other")
        package = pack(c, "m.uir", "--sign", c.path("mine"))
        data = open(package, "rb").read()
        expect(data[-SIGNATURE:].startswith(WORD), "nothing follows the package")
        plain = open(pack(c, "plain.uir"), "rb").read()
        expect(data[:-SIGNATURE] == plain, "what is signed is another package")
        expect(open(pack(c, "again.uir", "--sign", c.path("mine")), "rb").read() == data, "signed twice is not the same")
        for program in (RUN, RUN_PACKAGE):
            for keys in (["mine"], ["other", "mine"], ["mine", "other"]):
                trust = [word for key in keys for word in ("--trust", c.path(key + ".pub"))]
                done = run(program, package, *trust, "--no-vm")
                expect(done.returncode == RAN and not done.err, f"{program} trusts {keys}", done)
            expect(run(program, package).returncode == RAN and run(program, package, "--trusted", "--no-vm").returncode == RAN,
                   "signed is as good as not signed, where nobody asks")
            expect(run(program, package, "--info").returncode == RAN, "--info")
        fails(BAD_FILE, "not a package", command=[RUN, c.model, "--trust", c.path("mine.pub")])


def test_what_no_trusted_key_signed_does_not_run():
    with Case() as c:
        make_keys(c, "mine", "other")
        signed = pack(c, "m.uir", "--sign", c.path("mine"))
        plain = pack(c, "plain.uir")
        another = pack(c, "another.uir", "--sign", c.path("mine"), model=save(product_model(4), c.path("four.onnx")))
        forged = c.write("forged.uir", open(plain, "rb").read() + open(another, "rb").read()[-SIGNATURE:])
        trust = ["--trust", c.path("mine.pub")]
        for program in (RUN, RUN_PACKAGE):
            for more in ([], ["--trusted"], ["--device", "vm"]):
                fails(BAD_FILE, "not signed", "hint:", command=[program, plain, *trust, *more])
                fails(BAD_FILE, "not trusted", command=[program, signed, "--trust", c.path("other.pub"), *more])
                fails(BAD_FILE, "does not match its signature", command=[program, forged, *trust, *more])
            fails(BAD_FILE, "no such file", command=[program, signed, "--trust", c.path("nowhere.pub")])
            fails(BAD_FILE, "not a uir key", command=[program, signed, "--trust", c.path("mine")])
            fails(BAD_FILE, "not a uir key", command=[program, signed, *trust, "--trust", signed])


def test_every_byte_is_signed():
    """A package of which any bit was changed, or that was cut, is not run where a key is to be trusted."""
    with Case() as c:
        make_keys(c, "mine")
        data = bytearray(open(pack(c, "m.uir", "--sign", c.path("mine")), "rb").read())
        chance, end, trust = random.Random(1), len(data) - SIGNATURE, ["--trust", c.path("mine.pub")]
        changed = c.path("changed.uir")
        places = [0, 8, 12, 16, 24, 31, end - 1, end, end + 7, end + 8, end + 39, end + 40, len(data) - 1]
        for at in places + [chance.randrange(end) for _ in range(30)]:
            data[at] ^= 1 << chance.randrange(8)
            c.write("changed.uir", bytes(data))
            word = ("not a package" if at < 8 else "does not match its signature" if at < end or at >= end + 40 else "not signed" if at < end + 8 else "not trusted")
            fails(BAD_FILE, word, command=[RUN_PACKAGE, changed, *trust])
            data = bytearray(open(c.path("m.uir"), "rb").read())
        for size in [0, 1, 103, 104, 105, end - 1, end, end + 1, len(data) - 1] + [chance.randrange(end) for _ in range(5)]:
            c.write("changed.uir", bytes(data[:size]))
            fails(BAD_FILE, command=[RUN_PACKAGE, changed, *trust])
        for more in (b"\0", bytes(data[end:]), bytes(data)):
            c.write("changed.uir", bytes(data) + more)
            fails(BAD_FILE, "sign", command=[RUN_PACKAGE, changed, *trust])
        c.write("changed.uir", bytes(data))
        expect(run(RUN_PACKAGE, changed, *trust).returncode == RAN, "as it was it runs")


def test_keys_that_are_none_sign_nothing():
    """It is said before anything is compiled, and no package is left."""
    with Case() as c:
        make_keys(c, "mine")
        out = c.path("m.uir")
        for key, word in ((c.path("mine.pub"), "uir-secret-key"), (c.path("nowhere"), "no such file"), (c.model, "uir-secret-key"),
                          (c.write("short", "uir-secret-key 00"), "uir-secret-key"), (c.write("none", b""), "uir-secret-key"),
                          (c.write("long", "uir-secret-key " + "0" * 65), "uir-secret-key")):
            fails(BAD_FILE, word, command=[PACK, c.model, "-o", out, "--sign", key], env={"CC": "/bin/false"})
            expect(not os.path.exists(out), "a package is left")


def test_without_libsodium_nothing_is_trusted():
    """The runtime's own program links nothing for it, and says so where it cannot be opened."""
    with Case() as c:
        make_keys(c, "mine")
        package = pack(c, "m.uir", "--sign", c.path("mine"))
        os.mkdir(c.path("lib"))
        for name in ("libsodium.so", "libsodium.so.23", "libsodium.so.26"):
            c.write("lib/" + name, "no library")
        bare = {"LD_LIBRARY_PATH": c.path("lib")}
        expect(run(RUN_PACKAGE, package, "--trusted", "--no-vm", env=bare).returncode == RAN, "nothing else needs it")
        fails(UNSUPPORTED, "libsodium", "hint:", command=[RUN_PACKAGE, package, "--trust", c.path("mine.pub")], env=bare)


def test_pictures_of_many_scans():
    """JPEG files are libjpeg-turbo's, in the channels that they have; each scan is a pass over all pixels, and so they are few."""
    from PIL import Image
    with Case() as c:
        model = save(make_model([helper.make_node("Identity", ["x"], ["y"])], [value("x", ["h", "w", "c"], TensorProto.UINT8)],
                                [value("y", None, TensorProto.UINT8)]), c.path("identity.onnx"))
        pixels = np.random.default_rng(1).integers(0, 256, (40, 24, 3), np.uint8)
        for mode in ("RGB", "L"):
            for progressive in (False, True):
                path = c.path("p.jpg")
                Image.fromarray(pixels).convert(mode).save(path, progressive=progressive, subsampling=0)
                expected = np.asarray(Image.open(path)).reshape(40, 24, -1)
                done = run(RUN, "--device", "interpreter", model, "--input", "x=" + path, "--preprocess", "layout=nhwc", "--save", c.path("out"), "--format", "npy")
                expect(done.returncode == RAN, "a picture is read", done)
                shown = np.load(c.path("out", "y.npy"))
                expect(shown.shape == expected.shape and np.abs(shown.astype(int) - expected).max() <= 2, f"{mode}: other pixels")
        data = open(path, "rb").read()
        scan = data[data.rindex(b"\xff\xda"):-2]
        for times, code in ((50, RAN), (2000, BAD_FILE)):
            c.write("p.jpg", data[:-2] + scan * times + data[-2:])
            done = run(RUN, "--device", "interpreter", model, "--input", "x=" + path)
            expect(done.returncode == code and (code == RAN or "scans" in done.err), f"{times} scans more", done)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
