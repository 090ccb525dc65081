"""What the suites of described machines share: running the programs, naming a device, counting what held.

In: the programs in $UIR_BIN, the models in $UIR_MODELS_BUILT.
"""
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("UIR_BIN", os.path.join(ROOT, "build", "release", "bin"))
MODELS = os.environ.get("UIR_MODELS_BUILT", os.path.join(ROOT, "build", "models"))


class Suite:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0

    def tell(self, good, what):
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        if not good:
            print("FAILED", what)

    def add(self, passed, failed, skipped):
        """What a program counted."""
        self.passed, self.failed, self.skipped = self.passed + passed, self.failed + failed, self.skipped + skipped

    def skip(self, why):
        self.skipped += 1
        print("skip:", why)

    def end(self):
        """The last line, and the exit code."""
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return self.failed != 0


def run(program, *words):
    return subprocess.run([os.path.join(BIN, program), *words], capture_output=True, text=True, errors="replace")


def select(device):
    """The words that name a device, or a file of its own."""
    return ("--device-file", device) if device.endswith(".device") else ("--device", device)
