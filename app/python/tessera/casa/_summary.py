"""What tclean returns: CASA's dictionary, of the major cycles of a run."""
from __future__ import annotations

from typing import Any

# CASA's stop codes for the ends of cleaning of `tessera image`.
_CODES = {"niter": (1, "iteration limit"), "threshold": (2, "threshold"),
          "stalled": (4, "no change in peak residual across major cycles"),
          "diverged": (5, "peak residual increased"), "nothing": (7, "nothing to clean"),
          "nsigma": (8, "n-sigma threshold"), "nmiter": (9, "maximum number of major cycles"),
          "mask-nmiter": (9, "maximum number of major cycles"),
          "negative": (3, "a negative component")}


def _stop(values: dict[str, Any], majors: list[Any]) -> tuple[int, str]:
    ends = [major.end for major in majors if major.end]
    if not ends:
        return (0, "global stopping criterion not reached")
    end = ends[-1]
    if end == "threshold" and float(values["nsigma"]) > 0:
        end = "nsigma"
    return _CODES[end]


def _minor(majors: list[Any]) -> dict[int, Any]:
    """[field][channel][stokes] of lists, an entry for each minor cycle."""
    found: dict[int, Any] = {}
    for major in majors:
        lists = found.setdefault(major.channel, {}).setdefault(
            major.polarisation, dict(iterDone=[], peakRes=[], modelFlux=[], cycleThresh=[],
                                     startIterDone=[], startPeakRes=[]))
        for key, value in (("startIterDone", major.iterations - major.minor_iterations),
                           ("iterDone", major.minor_iterations),
                           ("startPeakRes", major.peak_start), ("peakRes", major.peak),
                           ("modelFlux", major.flux), ("cycleThresh", major.threshold)):
            lists[key].append(value)
    return {0: found}


def summary_of(values: dict[str, Any], imagename: str, majors: list[Any]) -> dict[str, Any]:
    """`majors` are what each_major was called with."""
    code, words = _stop(values, majors)
    last = {(m.interval, m.channel, m.polarisation): m.iterations for m in majors}
    return dict(iterdone=sum(last.values()),
                nmajordone=max((m.major for m in majors), default=0) + 1,
                niter=values["niter"], threshold=values["threshold"], nsigma=values["nsigma"],
                loopgain=values["gain"], cyclefactor=values["cyclefactor"], cleanstate="stopped",
                stopcode=code, stopDescription=words, summaryminor=_minor(majors),
                imagename=imagename)
