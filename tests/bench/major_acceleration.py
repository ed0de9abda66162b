#!/usr/bin/env python3
"""Major iterations of CLEAN that methods of acceleration need, and those that plain CLEAN needs
(Müller et al. 2026, A&A 706, A77, arXiv:2511.17410).

usage: major_acceleration.py [--set NAME ...] [--obs FILE --size N --scale S [--weight W]]
                             [--method NAME ...] [--mgain M ...] [--scales single multi]
                             [--threshold SIGMA] [--majors 15] [--threads 2] [--smoke]

A session makes residual images, and tessera's minor loops (clean_arrays) make the update d of the
model x from the residual r. H is what a prediction and an image of its visibilities make of a model;
one major iteration makes H d. The methods:

plain   x + d
line    x + αd; α by exact line search of χ², <d, r> / <d, H d>
peak    x + αd; α of the least peak of the residual, which is linear in α
cg      x + αd + βs, s the last step: the least χ² in the plane of both. This is the flexible method of
        conjugate gradients (Notay 2000, SIAM J. Sci. Comput. 22, 1444), whose preconditioner is CLEAN
all     the least χ² over all updates so far
moment  Nesterov's: CLEAN begins at x + θs instead of x, θ = (t − 1) / t', begun again when s ascends

Plain CLEAN at mgain .8 runs until it ends. Then each method runs until it has come to the same rms
(to 1 %) and peak (to 5 %). A line of CSV is printed for each major iteration; at the end the number of
them that each method needed for the rms, and for both. Nothing judges them.
"""
import argparse
import os
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
import module  # noqa: E402, F401, finds tessera
import tessera  # noqa: E402
import clean_scene as scene  # noqa: E402
from clean_wsclean import DEC, RA, make_sky  # noqa: E402
from e2e import BIN, data_folder, mpi_environment  # noqa: E402

WORK = os.environ.get("TESS_WORK", "/tmp/major_acceleration")
FOLDERS = ("data", "uvfits")
# options of simulate; size, pixel [arcsec], points, Gaussians, fluxes of these [log10 Jy]
SIMULATED = {
    "vla": (["--layout", "vla-a", "--freq", "1.4GHz", "--chan-width", "4MHz", "--channels", "16",
             "--duration", "4h", "--integration", "94s", "--noise", "0.07Jy"], 1024, .5, 10, 10, (-2, .3)),
    "meerkat": (["--layout", "meerkat", "--freq", "1.28GHz", "--chan-width", "13MHz", "--channels", "16",
                 "--duration", "2h", "--integration", "80s", "--noise", "0.16Jy"],
                1024, 2.2, 400, 25, (-3, .3)),
    "sparse": (["--layout", "meerkat", "--antennas", "10", "--freq", "1.28GHz", "--duration", "8h",
                "--integration", "120s", "--noise", "0.01Jy"], 256, 4., 5, 12, (-1, .3)),
    "smoke": (["--layout", "meerkat", "--antennas", "16", "--freq", "1.28GHz", "--duration", "30min",
               "--integration", "300s", "--noise", "0.05Jy"], 128, 4., 5, 3, (-1, .3))}
WIDTHS = (14, 140)  # of Gaussians [pixels]
# files of reference data; size, pixel, weights
REAL = {"m87": ("mojave-M87-8GHz.uvfits", 512, "0.1mas", "briggs:0")}


def observation(name):
    """File, size, pixel and weights of a set."""
    if name in REAL:
        file, size, pixel, weight = REAL[name]
        return data_folder(*FOLDERS, file), size, pixel, weight
    options, size, pixel, points, gaussians, flux = SIMULATED[name]
    obs, sky = (os.path.join(WORK, name + end) for end in (".uvfits", ".csv"))
    if not os.path.exists(obs):
        make_sky(sky, size, pixel, points, gaussians, flux, WIDTHS)
        subprocess.run([BIN, "simulate", *options, "--sky", sky, "--ra", f"{RA}deg", f"--dec={DEC}deg",
                        "-o", obs, "-q"], check=True, env=mpi_environment())
    return obs, size, f"{pixel}asec", "briggs:0"


def beam_of(psf):
    """The larger FWHM in pixels, by the second moments of the logarithm around the centre."""
    y, x = np.array(psf.shape) // 2
    near = np.log(np.maximum(psf[y - 1:y + 2, x - 1:x + 2], 1e-3))
    dyy, dxx = near[2, 1] + near[0, 1] - 2 * near[1, 1], near[1, 2] + near[1, 0] - 2 * near[1, 1]
    dxy = (near[2, 2] + near[0, 0] - near[2, 0] - near[0, 2]) / 4
    least = np.min(-np.linalg.eigvalsh([[dxx, dxy], [dxy, dyy]]))
    return np.sqrt(8 * np.log(2) / least)


class Clean:
    """Residual images of an observation, and minor loops at one mgain."""

    def __init__(self, args, session, multiscale, mgain):
        self.session, self.args = session, args
        self.psf, self.dirty = session.psf(), session.dirty()
        self.opts = dict(niter=1000000, mgain=mgain, auto_threshold=args.threshold,
                         multiscale=int(multiscale), beam=beam_of(self.psf), threads=args.threads)

    def update(self, residual):
        """A minor loop's update of the model, and its report."""
        reports, model, _, _ = scene.run(os.path.join(WORK, "arrays"), residual, self.psf, **self.opts)
        return model, reports[0]


def combine(updates, images, residual):
    """Shares of the updates with the least χ²."""
    matrix = np.array([[np.vdot(a, b) for b in images] for a in updates])
    right = np.array([np.vdot(a, residual) for a in updates])
    return np.linalg.lstsq((matrix + matrix.T) / 2, right, rcond=1e-12)[0]


class Plain:
    def begin(self, model, residual):
        """Where the minor loop starts."""
        return model, residual

    def end(self, model, residual, update, after):
        """Model, residual and shares; `after` is the residual of model + update."""
        return model + update, after, [1.]


class Subspace(Plain):
    """The least χ² over the newest update and `memory` earlier steps or updates."""

    def __init__(self, memory, steps=False):
        self.memory, self.steps = memory, steps
        self.updates, self.images = [], []

    def end(self, model, residual, update, after):
        self.updates.append(update)
        self.images.append(residual - after)
        share = combine(self.updates, self.images, residual)
        step = sum(c * d for c, d in zip(share, self.updates))
        image = sum(c * d for c, d in zip(share, self.images))
        if self.steps:
            self.updates[-1], self.images[-1] = step, image
        self.updates = self.updates[-self.memory:] if self.memory else []
        self.images = self.images[-self.memory:] if self.memory else []
        return model + step, residual - image, share


class LeastPeak(Plain):
    def end(self, model, residual, update, after):
        image = residual - after
        tried = np.arange(.6, 3, .05)
        share = tried[np.argmin([np.abs(residual - c * image).max() for c in tried])]
        return model + share * update, residual - share * image, [share]


class Momentum:
    def __init__(self):
        self.t, self.last = 1., None

    def begin(self, model, residual):
        self.now = model, residual
        if self.last is None:
            return model, residual
        if np.vdot(residual, model - self.last[0]) < 0:
            self.t = 1.
        after = (1 + np.sqrt(1 + 4 * self.t ** 2)) / 2
        theta, self.t = (self.t - 1) / after, after
        return model + theta * (model - self.last[0]), residual + theta * (residual - self.last[1])

    def end(self, model, residual, update, after):
        self.last = self.now
        return model + update, after, [1.]


METHODS = {"plain": Plain, "line": lambda: Subspace(0), "peak": LeastPeak,
           "cg": lambda: Subspace(1, steps=True), "all": lambda: Subspace(20), "moment": Momentum}


def has_rms(row, goal):
    return row[0] <= 1.01 * goal[0]


def has_both(row, goal):
    return has_rms(row, goal) and row[1] <= 1.05 * goal[1]


def needed(found, goal, reached):
    """Major iterations until one has reached the goal."""
    counts = [k + 1 for k, row in enumerate(found) if reached(row, goal)]
    return str(counts[0]) if counts else f"more than {len(found)}"


def majors(clean, method, most, goal):
    """(rms, peak, ...) after each major iteration, until the goal is reached; without one, until CLEAN
    ends."""
    model, residual, found = np.zeros_like(clean.dirty), clean.dirty, []
    for _ in range(most):
        model, residual = method.begin(model, residual)
        update, report = clean.update(residual)
        if report["iterations"] == 0 or report["end"] == 5:  # nothing to clean; diverged
            break
        after = clean.session.residual(model + update)
        model, residual, share = method.end(model, residual, update, after)
        found.append((residual.std(), np.abs(residual).max(), report["iterations"], share,
                      model.sum(), report["final"]))
        if has_both(found[-1], goal) if goal else not report["again"]:
            break
    return found, model, residual


def tell(start, found):
    for k, row in enumerate(found):
        shares = " ".join(f"{c:.3f}" for c in row[3])
        print(f"CSV {start},{k + 1},{row[2]:.0f},{row[0]:.5g},{row[1]:.5g},{row[4]:.6g},{row[5]:.5g},"
              f"{shares}", flush=True)


def compare(args, name, session, multiscale):
    """Lines of results."""
    kind = "multi" if multiscale else "single"
    found, _, _ = majors(Clean(args, session, multiscale, .8), Plain(), args.majors, None)
    tell(f"{name},{kind},goal,0.8", found)
    if not found:
        return [f"{name} {kind}: plain CLEAN finds nothing, or diverges"]
    goal = found[-1][:2]
    lines = [f"{name} {kind}: plain CLEAN, mgain .8, ends after {len(found)} majors, rms {goal[0]:.5g}, "
             f"peak {goal[1]:.5g}"]
    for mgain in args.mgain:
        clean = Clean(args, session, multiscale, mgain)
        for method in args.method:
            found, model, residual = majors(clean, METHODS[method](), args.majors, goal)
            tell(f"{name},{kind},{method},{mgain}", found)
            if not found:
                continue
            direct = session.residual(model)
            drift = np.linalg.norm(direct - residual) / np.linalg.norm(direct)
            lines.append(f"{name} {kind} mgain {mgain} {method}: rms in {needed(found, goal, has_rms)}, "
                         f"with peak in {needed(found, goal, has_both)}; at the end rms "
                         f"{found[-1][0]:.5g}, peak {found[-1][1]:.5g}; summed residual off by {drift:.1e}")
            print(lines[-1], flush=True)
    return lines


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--set", nargs="+", choices=sorted({**SIMULATED, **REAL}),
                        default=["vla", "meerkat", "sparse"])
    parser.add_argument("--obs", help="an observation instead of sets")
    parser.add_argument("--size", type=int)
    parser.add_argument("--scale")
    parser.add_argument("--weight", default="briggs:0")
    parser.add_argument("--method", nargs="+", choices=sorted(METHODS), default=list(METHODS))
    parser.add_argument("--mgain", nargs="+", type=float, default=[.8, .95])
    parser.add_argument("--scales", nargs="+", choices=["single", "multi"], default=["single", "multi"])
    parser.add_argument("--threshold", type=float, default=3)
    parser.add_argument("--majors", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--full", action="store_true", help="as ctest calls it: ignored")
    args = parser.parse_args()
    if args.smoke:
        args.set, args.mgain, args.scales, args.majors = ["smoke"], [.8], ["multi"], 4
    return args


def main():
    args = arguments()
    os.makedirs(WORK, exist_ok=True)
    sets = [("own", (args.obs, args.size, args.scale, args.weight))] if args.obs else \
        [(name, observation(name)) for name in args.set]
    print("CSV set,scales,method,mgain,major,iterations,rms,peak,flux,threshold,shares", flush=True)
    lines = []
    for name, (obs, size, scale, weight) in sets:
        with tessera.Session(obs, size=size, scale=scale, weight=weight, threads=args.threads) as session:
            for scales in args.scales:
                lines += compare(args, name, session, scales == "multi")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
