"""vis2dirty() and dirty2vis() of tessera.wgridder, under the name that ducc0's users know:
`from ducc0.wgridder.experimental import vis2dirty, dirty2vis` becomes
`from tessera.wgridder.experimental import vis2dirty, dirty2vis`.

ducc0's functions with baseline-dependent averaging (`vis2dirty_bda`, `dirty2vis_bda`) are not
there: call the two once for each list of frequencies.
"""
from . import dirty2vis, vis2dirty

__all__ = ["vis2dirty", "dirty2vis"]
