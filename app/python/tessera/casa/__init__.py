"""CASA's tasks by their names and with their parameters: `from tessera.casa import tclean`. The
manual's page "From CASA" says for each value of each parameter what becomes of it."""
from ._tasks import exportfits, ft, importfits, predict_model, tclean, uvcontsub

__all__ = ["tclean", "predict_model", "ft", "uvcontsub", "exportfits", "importfits"]
