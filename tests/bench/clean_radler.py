#!/usr/bin/env python3
"""Times a multiscale minor loop and Radler's on the same arrays, and prints a line of CSV for each
run: transforms counted, seconds in them, seconds of list work. --smoke: a small image, to show that
it runs. Skipped where the Python package `radler` is not installed."""
import argparse
import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
sys.path.append(os.path.join(sys.path[0], "peers"))
import clean_scene as scene
import peer_radler

WORK = os.environ.get("TESS_WORK", "/tmp/clean_radler")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    side, repeat = (256, 1) if args.smoke else (args.side, args.repeat)
    psf = scene.make_psf(side, side).astype("f4").astype(float)
    sky = scene.make_sky(side, side, 200, 25, 3, edge=side // 4)
    noise = np.random.default_rng(1).normal(0, 1e-3, (side, side))
    dirty = (scene.convolve(sky, psf) + noise).astype("f4").astype(float)
    print("CSV program,side,threads,iterations,total_s,transforms,transform_s,list_s", flush=True)
    for _ in range(repeat):
        begin = time.time()
        (count,) = peer_radler.radler(dirty, psf, multiscale=True, thread_count=args.threads)[0]
        print(f"CSV radler,{side},{args.threads},{count},{time.time() - begin:.3f},,,", flush=True)
        report = scene.run(WORK, dirty, psf, niter=100000, mgain=.8, beam=peer_radler.BEAM,
                           multiscale=1, threads=args.threads)[0][0]
        values = [f"{report[k]:g}" for k in ("iterations", "total_s", "transforms", "transform_s",
                                             "list_s")]
        print(f"CSV tessera,{side},{args.threads}," + ",".join(values), flush=True)
        assert abs(report["iterations"] - count) <= .02 * count


if __name__ == "__main__":
    main()
