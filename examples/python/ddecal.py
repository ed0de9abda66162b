"""Direction-dependent self-calibration with DP3's ddecal: image and clean, write a model column of each
facet in one pass, have DP3 solve for all directions together, and image again with its solutions.

usage: python ddecal.py OBS.ms FACETS.reg SIZE SCALE [SOLINT [ROUNDS]]
       python ddecal.py --simulate OBS.ms

SOLINT is in integrations. The program DP3 is that of the variable DP3, or of PATH. The facets have names
and points. The second line tries it on the set of direction_dependent.py, beside which this file lies.
"""
import os
import subprocess
import sys

import h5py

import tessera
from direction_dependent import image, read_facets, simulate


def solve(path, columns, solutions, solint):
    """Phases of all antennas in the direction of each column."""
    if os.path.exists(solutions):
        os.remove(solutions)
    subprocess.run([os.environ.get("DP3", "DP3"), f"msin={path}", "msout=.", "steps=[ddecal]",
                    f"ddecal.modeldatacolumns=[{','.join(columns)}]", f"ddecal.h5parm={solutions}",
                    "ddecal.mode=scalarphase", f"ddecal.solint={solint}", "ddecal.nchan=0",
                    "ddecal.maxiter=100", "ddecal.stepsize=0.2"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})


def set_directions(solutions, where):
    """DP3 does not know where the models of columns lie: it writes the phase centre for all of them."""
    with h5py.File(solutions, "a") as file:
        source = file["sol000/source"][:]
        source["dir"] = where
        file["sol000/source"][:] = source


def self_calibrate(path, regions, size, scale, solint, rounds):
    facets, where = read_facets(regions)
    name, solutions = path.rstrip("/").removesuffix(".ms"), path + ".h5"
    image(path, size, scale, f"{name}-dp3-round0", regions)
    for k in range(rounds):
        model = f"{name}-dp3-round{k}-model{'-pb' if k else ''}.fits"  # in true flux
        tessera.predict(path, model=model, facets=regions, column_per_facet=True, overwrite=True)
        solve(path, [f"MODEL_DATA_{facet}" for facet in facets], solutions, solint)
        set_directions(solutions, where)
        image(path, size, scale, f"{name}-dp3-round{k + 1}", regions, facet_solutions=solutions,
              soltabs="phase000")


if sys.argv[1] == "--simulate":
    simulate(sys.argv[2], "XX,XY,YX,YY")  # DP3 takes all four
    self_calibrate(sys.argv[2], sys.argv[2] + ".reg", 720, "2.5asec", 10, 3)
else:
    SOLINT, ROUNDS = (sys.argv[5:] + ["4", "2"][len(sys.argv) - 5:])[:2]
    self_calibrate(*sys.argv[1:3], int(sys.argv[3]), sys.argv[4], int(SOLINT), int(ROUNDS))
