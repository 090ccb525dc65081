"""Remainders of floats, which are exact however large the quotient is."""
import numpy as np
from made_opsets import model

RANDOM = np.random.default_rng(29)
GREATEST = {np.float16: 4, np.float32: 36, np.float64: 300}  # decimal exponents


def cases():
    for dtype, exponent in GREATEST.items():
        for digits in (0, exponent // 2, exponent):
            a, b = (RANDOM.standard_normal((2, 64)) * 10.0 ** RANDOM.uniform(-digits, digits, (2, 64))).astype(dtype)
            a[:8], b[b == 0] = b[:8] * np.arange(8, dtype=dtype), 1
            with np.errstate(over="ignore"):
                a[~np.isfinite(a)] = 1
            yield (f"mod_{dtype.__name__}_{digits}",) + model(13, "Mod", [a, b], [np.fmod(a, b)], fmod=1)
