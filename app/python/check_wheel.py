"""Checks an installed wheel: it simulates an observation, images and cleans it, and needs nothing
but numpy. Its exit status says whether all is well. `python -I` runs it, so that the module is not that
of its own folder."""
import os
import tempfile

import tessera

with tempfile.TemporaryDirectory() as folder:
    sky, obs = os.path.join(folder, "sky.csv"), os.path.join(folder, "obs.uvfits")
    with open(sky, "w", encoding="utf-8") as file:
        file.write("name,ra,dec,flux_jy\na,60deg,-30deg,1\n")
    tessera.simulate(obs, layout="vla-d", sky=sky, ra="4h", dec="-30deg", duration="4min",
                     integration="60s", freq="1.4GHz", channels=2)
    with tessera.Session(obs, size=64, scale="20asec") as session:
        images = session.clean(niter=100, auto_threshold=3)
        restored = session.restore(images.model.data, images.residual.data)
    assert abs(restored[32, 32] - 1) < .05, restored[32, 32]
print(tessera.library_version(), tessera.__file__)
