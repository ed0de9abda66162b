#!/usr/bin/env python3
"""Simulated sources come back at their positions (0.1 pixel) and fluxes (1 %).

Made by `simulate`, imaged, and fitted together with the PSF by the quickstart's tool;
astropy then says where on the sky the fitted pixels are.
"""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (FULL, ROOT, Suite, have_ms, l2_error, mpiexec, offset_radec,
                 read_image, run, simulate, write_sky)
import uvfits

# layout, dec, start (near transit of RA 60 deg), frequency, pixel [asec]
ARRAYS = {
    "meerkat": ("-30deg", "2026-01-01T19:23:00", "1.28GHz", 2.0),
    "vla-d": ("30deg", "2026-01-02T03:55:00", "1.4GHz", 8.0),
    "vla-a": ("30deg", "2026-01-02T03:55:00", "1.4GHz", 0.25),
    "lofar": ("50deg", "2026-01-01T20:20:00", "150MHz", 1.5),
    "mwa": ("-27deg", "2026-01-01T13:00:00", "150MHz", 25.0),
    "ska1-low": ("-27deg", "2026-01-01T13:00:00", "150MHz", 2.0),
    "ska1-mid": ("-30deg", "2026-01-01T19:23:00", "1.28GHz", 0.5),
}
SIZE = 512


def make_sky(suite, ra, dec, scale, freq):
    rng = np.random.default_rng(21)
    reach = 0.2 * SIZE * np.deg2rad(scale / 3600)
    sources = []
    for k in range(6):
        # One source per sector, so that none lies on another.
        angle, radius = 2 * np.pi * (k + rng.uniform(0, 0.4)) / 6, rng.uniform(0.4, 1)
        position = offset_radec(ra, dec, reach * radius * np.sin(angle),
                                reach * radius * np.cos(angle))
        wide = k == 5
        sources.append(dict(name=f"S{k}", ra=f"{position[0]:.10f}deg",
                            dec=f"{position[1]:.10f}deg",
                            flux_jy=round(rng.uniform(0.5, 3), 4), ref_freq=freq,
                            spectral_index=round(rng.uniform(-1, 0.5), 2),
                            major=f"{10 * scale if wide else 0}asec",
                            minor=f"{6 * scale if wide else 0}asec",
                            pa="30deg" if wide else "0deg"))
    return sources, write_sky(suite.path("sky.csv"), sources)


def check(suite, layout, ending, ranks):
    from astropy.wcs import WCS
    dec, start, freq, scale = ARRAYS[layout]
    sources, sky = make_sky(suite, 60.0, float(dec[:-3]), scale, freq)
    label = f"{layout}-{ending}"
    obs = simulate(suite.path(f"{label}.{ending}"), sky, layout=layout, dec=dec,
                   start=start, duration="30min", integration="3min", freq=freq,
                   width="2MHz", channels=4, extra=["--overwrite"])
    ran, prefix = suite.image(label, obs, "--size", SIZE, "--scale", f"{scale}asec",
                              "--weight", "briggs:0", ranks=ranks)
    if not ran:
        return
    report = suite.path("report.json")
    tool = os.path.join(ROOT, "jobs", "compare_sources.py")
    result = run([sys.executable, tool, sky, prefix, "--json", report], 120)
    suite.ran(f"{label}: sources found", result)
    _, header = read_image(prefix + "-dirty.fits")
    with open(report) as f:
        rows = json.load(f)
    for row, source in zip(rows, sources):
        suite.below(f"{label} {row['name']}: offset [pixel]", row["offset_pixel"], 0.1)
        suite.below(f"{label} {row['name']}: flux",
                    abs(row["found_jy"] / row["true_jy"] - 1), 0.01)
        at = WCS(header, fix=False).celestial.wcs_pix2world(row["x"], row["y"], 0)
        away = np.hypot((at[0] - float(source["ra"][:-3])) * np.cos(np.deg2rad(at[1])),
                        at[1] - float(source["dec"][:-3])) * 3600 / scale
        suite.below(f"{label} {row['name']}: offset on the sky [pixel]", away, 0.1)


def check_cleaned(suite):
    """The quickstart's tool finds them in a restored image, too."""
    dec, start, freq, scale = ARRAYS["meerkat"]
    _, sky = make_sky(suite, 60.0, float(dec[:-3]), scale, freq)
    obs = simulate(suite.path("cleaned.uvfits"), sky, layout="meerkat", dec=dec, start=start,
                   duration="30min", integration="3min", freq=freq, width="2MHz", channels=4,
                   extra=["--overwrite", "--noise", "0.2Jy"])
    ran, prefix = suite.image("cleaned", obs, "--size", SIZE, "--scale", f"{scale}asec",
                              "--niter", 100000, "--auto-threshold", 3, "--auto-mask", 5,
                              "--multiscale")
    tool = os.path.join(ROOT, "jobs", "compare_sources.py")
    if ran:
        suite.ran("cleaned: sources found",
                  run([sys.executable, tool, sky, prefix, "--cleaned"], 120))


def check_visibilities(suite):
    """What simulate writes is the direct sum in double of points and Gaussians over the
    uvw that the file holds, rounded once: half a unit in the last place, 6e-8."""
    sources, sky = make_sky(suite, 60.0, -30.0, 20.0, "1.28GHz")
    obs = simulate(suite.path("exact.uvfits"), sky, layout="meerkat", duration="4min",
                   start="2026-01-01T21:23:00", freq="1.28GHz", channels=3,
                   extra=["--overwrite"])
    uvw, freq, vis, weight, _ = uvfits.read(obs)
    wanted = sum(source_visibilities(s, uvw, freq) for s in sources)
    for k in range(2):
        suite.below(f"simulated correlation {k}: L2 error", l2_error(vis[..., k], wanted),
                    6e-8)
    suite.true("weights are 1", (weight == 1).all())


def source_visibilities(source, uvw, freq):
    """V [rows, channels] of one source of the sky model about (60, -30) degrees."""
    ra, dec = (np.deg2rad(float(source[k][:-3])) for k in ("ra", "dec"))
    ra0, dec0 = np.deg2rad([60.0, -30.0])
    l = np.cos(dec) * np.sin(ra - ra0)
    m = (np.sin(dec) * np.cos(dec0)
         - np.cos(dec) * np.sin(dec0) * np.cos(ra - ra0))
    lam = freq / 299792458.0
    turns = (uvw @ np.array([l, m, uvfits.n_minus_1(l, m)]))[:, None] * lam
    flux = source["flux_jy"] * (freq / 1.28e9) ** source["spectral_index"]
    vis = flux * np.exp(2j * np.pi * (turns - np.rint(turns)))
    sigma = [np.deg2rad(float(source[k][:-4]) / 3600) / np.sqrt(8 * np.log(2))
             for k in ("major", "minor")]
    pa = np.deg2rad(float(source["pa"][:-3]))
    n = 1 + uvfits.n_minus_1(l, m)
    u, v = uvw[:, 0] - uvw[:, 2] * l / n, uvw[:, 1] - uvw[:, 2] * m / n
    along, across = u * np.sin(pa) + v * np.cos(pa), u * np.cos(pa) - v * np.sin(pa)
    size = (along * sigma[0]) ** 2 + (across * sigma[1]) ** 2
    return vis * np.exp(-2 * np.pi ** 2 * size[:, None] * lam ** 2)


def main():
    suite = Suite("sources_full" if FULL else "sources")
    check_visibilities(suite)
    check_cleaned(suite)
    ranks = 2 if mpiexec() else 1
    for layout in ARRAYS if FULL else ("meerkat", "vla-d", "lofar"):
        check(suite, layout, "uvfits", ranks)
    if have_ms():
        check(suite, "vla-d", "ms", 1)
    suite.finish()


if __name__ == "__main__":
    main()
