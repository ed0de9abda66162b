"""What the tests of the Python module share: the module from the source tree with the
library of the build, and direct sums to compare with.

TESSERA_LIBRARY names the folder of the library (default: lib/ beside the program's bin/).
With TESS_TEST_INSTALLED=1 the module, and its library, are those that are installed where
this Python looks.
"""
import os
import select
import signal
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import BIN, C_M_S, ROOT, skip  # noqa: E402

SOURCE = os.path.join(ROOT, "app", "python")
INSTALLED = os.environ.get("TESS_TEST_INSTALLED") == "1"
sys.dont_write_bytecode = True
if not INSTALLED:
    os.environ.setdefault("TESSERA_LIBRARY",
                          os.path.join(os.path.dirname(os.path.dirname(BIN)), "lib"))
    sys.path.insert(0, SOURCE)
    if not os.path.exists(os.environ["TESSERA_LIBRARY"]):
        skip("the library is not built")
import tessera  # noqa: E402

if INSTALLED and os.path.abspath(tessera.__file__).startswith(SOURCE):
    raise SystemExit(f"{tessera.__file__} is not installed")


def environment(**more):
    """The environment of a process that imports this module."""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **more}
    if not INSTALLED:
        env["PYTHONPATH"] = SOURCE
    return env


def in_child(work, seconds=60):
    """What `work` returns, as text, or the exception that it raises, in a child of this
    process; "hangs" when there is none after so many seconds, "" after a crash."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(work())
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    ended = select.select([read], [], [], seconds)[0]
    text = os.read(read, 65536).decode() if ended else "hangs"
    os.close(read)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return text


class Geometry:
    """Positions of pixels and visibilities as ducc0.wgridder means them: flips of u and v
    reverse the image around its centre. Direct sums in double precision, phases reduced
    to a turn before they become angles."""

    def __init__(self, uvw, freq, size, pixsize, center=(0.0, 0.0), flips=(0, 0, 0),
                 do_wgridding=True, divide_by_n=True):
        x, y = ((np.arange(n) - n // 2) * (-p if f else p) + c
                for n, p, c, f in zip(size, pixsize, center, flips))
        self.x, self.y = (a.ravel() for a in np.meshgrid(x, y, indexing="ij"))
        r2 = self.x**2 + self.y**2
        self.seen = r2 < 1
        nm1 = -r2 / (1 + np.sqrt(np.where(self.seen, 1 - r2, 1)))
        self.n = 1 + nm1 if do_wgridding and divide_by_n else np.ones_like(r2)
        self.nm1 = nm1 if do_wgridding else np.zeros_like(r2)
        sign = np.array([1.0, 1.0, -1.0 if flips[2] else 1.0])
        per_m = freq / C_M_S
        self.uvw = (uvw * sign)[:, None, :] * per_m[None, :, None]
        self.size = size

    def _phasors(self, row):
        """exp(2πi(u x + v y − w(n−1))) of a row's channels at all pixels in the sky."""
        u, v, w = (self.uvw[row, :, k][:, None] for k in range(3))
        turns = u * self.x[self.seen] + v * self.y[self.seen] - w * self.nm1[self.seen]
        return np.exp(2j * np.pi * (turns - np.rint(turns)))

    def dirty(self, vis):
        out = np.zeros(self.x.shape)
        for row in range(vis.shape[0]):
            out[self.seen] += (vis[row][:, None] * self._phasors(row)).real.sum(axis=0)
        return (out / self.n).reshape(self.size)

    def vis(self, image):
        flat = (image.ravel().astype(float) / self.n)[self.seen]
        return np.array([self._phasors(row).conj() @ flat
                         for row in range(self.uvw.shape[0])])
