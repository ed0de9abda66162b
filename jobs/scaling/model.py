"""A model of where a job's time goes, fitted to a study and extrapolated from it.

Each stage of docs/design/order-of-work.md takes a sum of terms, each a known function of the
layout and the data times a coefficient that is not negative:

    work/n     shared by the n cores in use, computing
    work/b     shared by them, moving memory: b = triad(n)/triad(1) cores' worth
    work       not shared by the ranks of a node: what goes to and from its files
    moved/b    what leaves a rank, work (1 - 1/P)/b: each visibility and each tile sum goes
               to its owner once, with the chance 1 - 1/P that this is another rank
    log2 P     trees of collective calls
    1          what every rank does for itself, such as choosing a kernel

The work is V, the visibilities; A, the pixels; G = A planes, the cells of all planes; or
F = A log2(A) planes, the transforms. Coefficients are those of the least sum of absolute
residuals on the mean times over ranks, a residual counted relative to its run's time: other
work on a machine makes single runs slow, never fast, and a square would let these decide.
`other` is what is between the stages.

Beyond one node the figures below, which are stated and not fitted, add what no run on one
node can tell: network() and a file system that all nodes share.
"""
import math

import numpy as np

import summary

# Terms of each stage, "quantity/divisor". Planning is the same for any layout, but for the
# first run on a machine, which measures it.
TERMS = {
    "read": ["V/n", "V/b", "V", "1"],
    "weight": ["V/n", "moved V/b", "log2 P"],
    "plan": ["1"],
    "partition": ["V/n", "1", "log2 P"],
    "exchange": ["moved V/b", "log2 P"],
    "sort": ["V/n", "V/b"],
    "grid": ["V/n", "1"],
    "reduce": ["G/b", "moved G/b", "log2 P"],
    "fft": ["F/n", "F/b", "1"],
    "correct": ["A/b", "1"],
    "write": ["A/b", "A", "1"],
    "other": ["V/n", "A/b", "1", "log2 P"],
}
NETWORK_GB_PER_S = 12.5  # each way, of each node: 100 Gb/s
MESSAGE_S = 2e-6
FILES_GB_PER_S = 100.0  # that a parallel file system gives to all nodes together
ROUND_BYTES = 24 * 2**20  # of exchange and reduce, docs/design/ranks.md
REWEIGHTINGS = 60
SMALL_RESIDUAL = 1e-3  # of a run's time: smaller ones count as squares


def nnls(matrix, right):
    """min |matrix x - right| with x >= 0, by active sets (Lawson & Hanson 1974, chapter
    23)."""
    matrix, right = np.asarray(matrix, float), np.asarray(right, float)
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1
    a = matrix / scale
    x = np.zeros(a.shape[1])
    free = np.zeros(a.shape[1], bool)
    small = 1e-12 * max(1.0, float(np.abs(a.T @ right).max()))
    for _ in range(10 * len(x)):
        slope = np.where(free, -np.inf, a.T @ (right - a @ x))
        if free.all() or slope.max() <= small:
            break
        free[np.argmax(slope)] = True
        while free.any():
            trial = np.zeros_like(x)
            trial[free] = np.linalg.lstsq(a[:, free], right, rcond=1e-10)[0]
            if trial[free].min() > 0:
                x = trial
                break
            below = free & (trial <= 0)
            step = np.min(x[below] / (x[below] - trial[below] + 1e-300))
            x = x + step * (trial - x)
            free &= x > 1e-15
            x[~free] = 0
    return x / scale


def least_deviations(matrix, right):
    """min sum |matrix x - right| with x >= 0: least squares, again and again, with the
    weights that make squares of residuals their sizes (Schlossmacher 1973,
    doi:10.1080/01621459.1973.10481336)."""
    matrix, right = np.asarray(matrix, float), np.asarray(right, float)
    weight = np.ones(len(right))
    for _ in range(REWEIGHTINGS):
        found = nnls(matrix * weight[:, None], right * weight)
        size = np.abs(matrix @ found - right)
        weight = 1 / np.sqrt(np.maximum(size, SMALL_RESIDUAL))
    return found


class Bandwidth:
    """Memory bandwidth of n cores in units of one core's, from the triad; without one,
    n. More cores than a node has are on further nodes."""

    def __init__(self, triad, node_cores):
        rates = {int(n): float(g) for n, g in triad.items()}
        self.node_cores = node_cores
        self.cores = sorted(rates) or sorted({1, node_cores})
        self.worth = [rates[n] / rates[1] for n in self.cores] if 1 in rates else \
            [float(n) for n in self.cores]

    def __call__(self, cores):
        nodes, rest = divmod(cores, self.node_cores)
        found = nodes * float(np.interp(self.node_cores, self.cores, self.worth))
        return found + (float(np.interp(rest, self.cores, self.worth)) if rest else 0)


def quantities(point, bandwidth):
    pixels = float(point["size"]) ** 2
    ranks = point["ranks"]
    return {"V": float(point["visibilities"]), "A": pixels, "G": pixels * point["planes"],
            "F": pixels * math.log2(pixels) * point["planes"], "n": float(point["units"]),
            "b": bandwidth(point["units"]), "away": 1 - 1 / ranks, "P": float(ranks),
            "nodes": nodes_of(point, bandwidth.node_cores)}


def nodes_of(point, node_cores):
    return -(-point["units"] // node_cores)


def term(name, q):
    """Value of "moved V/b", "A", "log2 P" or "1"."""
    if name == "1":
        return 1.0
    if name == "log2 P":
        return math.log2(q["P"])
    quantity, _, divisor = name.partition("/")
    value = q[quantity.split()[-1]] / q[divisor or "nodes"]
    return value * q["away"] if quantity.startswith("moved") else value


class Model:
    """Fitted to points as summary.points() gives them."""

    def __init__(self, points, triad, node_cores):
        self.bandwidth = Bandwidth(triad, node_cores)
        self.node_cores = node_cores
        self.coefficients = {}
        weight = np.array([1 / p["seconds"] for p in points])
        q = [quantities(p, self.bandwidth) for p in points]
        for stage, names in TERMS.items():
            matrix = np.array([[term(n, one) for n in names] for one in q])
            right = np.array([p["stages"][stage] for p in points])
            found = least_deviations(matrix * weight[:, None], right * weight)
            self.coefficients[stage] = dict(zip(names, (float(v) for v in found)))
        self.bytes = traffic(points)
        self.file_bytes = {
            "read": max(p["stage_bytes"]["read"] / p["visibilities"] for p in points),
            "write": max(p["stage_bytes"]["write"] / p["size"] ** 2 for p in points)}

    def stages(self, point):
        """Seconds of each stage on a measured or imagined layout."""
        q = quantities(point, self.bandwidth)
        found = {stage: sum(c * term(n, q) for n, c in terms.items())
                 for stage, terms in self.coefficients.items()}
        if q["nodes"] > 1:
            for stage, quantity in (("read", "V"), ("write", "A")):
                least = self.file_bytes[stage] * q[quantity] / (1e9 * FILES_GB_PER_S)
                found[stage] = max(found[stage], least)
        return found

    def seconds(self, point):
        return sum(self.stages(point).values()) + sum(self.network(point).values())

    def network(self, point):
        """Seconds that ranks on several nodes add: bytes through each node's adapter,
        and messages to all other ranks in each round; nothing on one node."""
        nodes = nodes_of(point, self.node_cores)
        if nodes == 1:
            return {"network": 0.0, "messages": 0.0}
        q = quantities(point, self.bandwidth)
        sent = self.bytes["V"] * q["V"] + self.bytes["G"] * q["G"]
        away = 1 - 1 / nodes
        rounds = math.ceil(sent / point["ranks"] / ROUND_BYTES) + 1
        return {"network": sent * away / nodes / (1e9 * NETWORK_GB_PER_S),
                "messages": rounds * (point["ranks"] - 1) * MESSAGE_S}


def traffic(points):
    """Bytes sent to other ranks, a visibility and a cell, were all ranks others: the most
    that any run of several ranks has sent."""
    found = {"V": 0.0, "G": 0.0}
    for p in points:
        if p["ranks"] > 1:
            away = 1 - 1 / p["ranks"]
            cells = p["size"] ** 2 * p["planes"]
            sent = p["stage_bytes"]
            found["V"] = max(found["V"], sent["exchange"] / p["visibilities"] / away)
            found["G"] = max(found["G"], sent["reduce"] / cells / away)
    return found


def of_study(study, points=None):
    settings, triad = study["settings"], study["triad"]
    node_cores = max(1, settings["cores"] // settings["nodes"])
    if settings["backend"] == "cuda":  # each GPU has memory of its own
        triad, node_cores = {}, max(1, settings["gpus"] // settings["nodes"])
    return Model(points or all_points(study), triad, node_cores)


def all_points(study):
    return summary.points(study, "strong") + summary.points(study, "weak")


def largest(points):
    """The most ranks x threads among the points."""
    return max(p["ranks"] * p["threads"] for p in points)


def check(study):
    """{"left_out", "points": [{..., measured_s, predicted_s, error}]} of the model fitted
    without the largest layouts; None when too few runs remain."""
    points = all_points(study)
    most = largest(points)
    rest = [p for p in points if p["ranks"] * p["threads"] < most]
    left = [p for p in points if p["ranks"] * p["threads"] == most]
    if len(rest) < 2:
        return None
    model = of_study(study, rest)
    rows = []
    for p in left:
        predicted = model.seconds(p)
        rows.append({"scaling": p["kind"], "ranks": p["ranks"], "threads": p["threads"],
                     "measured_s": p["seconds"], "predicted_s": predicted,
                     "error": predicted / p["seconds"] - 1})
    return {"left_out": most, "fitted_to": len(rest), "points": rows}


def imagined(point, ranks, share):
    """The layout of `ranks` ranks of one thread on a core each, `share` times the data
    and pixels of a measured point."""
    return point | {"ranks": ranks, "threads": 1, "units": ranks,
                    "visibilities": point["visibilities"] * share,
                    "size": point["size"] * math.sqrt(share)}
