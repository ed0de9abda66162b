"""CASA's tasks by their names, made by tessera."""
from __future__ import annotations

import json
import os
import shutil
import warnings
from typing import Any, NoReturn, Optional, Union

from .. import _library as lib
from ..commands import info, predict
from ..imager import Images, image
from . import _table as table
from . import _translate as words
from ._files import Folder, check_replaced, free_name
from ._summary import summary_of

__all__ = ["tclean", "predict_model", "ft", "uvcontsub", "exportfits", "importfits"]

# The first line of what uvcontsub() writes.
_SIGN = "a continuum to be subtracted, for tclean of tessera.casa"
# A threshold that ends cleaning before it begins, to image and restore a model.
_NO_CLEANING: dict[str, Any] = dict(niter=1, threshold="1e30Jy", nmiter=1)


def _refused(error: ValueError) -> NoReturn:
    raise lib.UsageError(str(error)) from None


def _observations(vis: Any) -> tuple[list[str], dict[str, Any]]:
    """The sets of `vis`, and the options that files of uvcontsub() among them stand for."""
    names = [os.fspath(v) for v in (vis if isinstance(vis, (list, tuple)) else [vis])]
    sets: list[str] = []
    options: dict[str, Any] = {}
    for name in names:
        found = _continuum_of(name)
        if found and len(names) > 1:
            raise lib.UsageError(f"vis: {name} is of uvcontsub; give it alone")
        sets.append(found["vis"] if found else name)
        options = found["options"] if found else options
    if not sets or not sets[0]:
        raise lib.UsageError("vis: no observation is given")
    return sets, options


def _continuum_of(name: str) -> Optional[dict[str, Any]]:
    if not os.path.isfile(name) or os.path.getsize(name) > 1 << 20:
        return None
    try:
        with open(name, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
        return found if found.get("what") == _SIGN else None
    except (UnicodeDecodeError, ValueError, AttributeError):
        return None


def _center_of_field(obs: str, number: int) -> str:
    for field in info(obs, field=number)["fields"]:
        if field["id"] == number:
            return f"{field['ra_deg']!r}deg,{field['dec_deg']!r}deg"
    raise lib.UsageError(f"phasecenter={number}: {obs} has no such field")


def _start(values: dict[str, Any], imagename: str, fits_spectra: bool) -> Optional[str]:
    """The model that cleaning begins with."""
    given = values["startmodel"]
    if isinstance(given, (list, tuple)):
        given = given[0] if given else ""
    if given:
        path = words.existing_name(given)
        if not os.path.isfile(path):
            raise lib.UsageError(f"startmodel={given!r}: is no FITS image; write an image of "
                                 "CASA as FITS first, with CASA's exportfits")
        return path
    made = imagename + (".model.cube.fits" if fits_spectra else ".model.fits")
    return made if values["restart"] and os.path.isfile(made) else None


def _run(obs: list[str], folder: Folder, options: dict[str, Any], model: Optional[str]
         ) -> tuple[Images, list[Any]]:
    majors: list[Any] = []
    size, scale = options.pop("size"), options.pop("scale")
    if words.is_region(options.get("mask", "")):
        options["mask"] = folder.write_regions(options["mask"])
    if model:
        folder.begin_from(model, bool(options.get("cube")))
        options["continue"] = True
        if options.get("niter", 0) == 0:
            options.update(_NO_CLEANING)
    made = image(obs, size=size, scale=scale, output=folder.output, overwrite=True,
                 each_major=majors.append, **options)
    return made, majors


def tclean(vis: Any = "", selectdata: bool = True, field: Any = "", spw: Any = "",
           timerange: Any = "", uvrange: Any = "", antenna: Any = "", scan: Any = "",
           observation: Any = "", intent: Any = "", datacolumn: str = "corrected",
           imagename: Any = "", imsize: Any = [100], cell: Any = [], phasecenter: Any = "",
           stokes: str = "I", projection: str = "SIN", startmodel: Any = "",
           specmode: str = "mfs", reffreq: Any = "", nchan: int = -1, start: Any = "",
           width: Any = "", outframe: str = "LSRK", veltype: str = "radio",
           restfreq: Any = [], interpolation: str = "linear",
           perchanweightdensity: bool = True, gridder: str = "standard", facets: int = 1,
           psfphasecenter: Any = "", wprojplanes: int = 1, vptable: str = "",
           mosweight: bool = True, aterm: bool = True, psterm: bool = False,
           wbawp: bool = True, conjbeams: bool = False, cfcache: str = "",
           usepointing: bool = False, computepastep: float = 360.0,
           rotatepastep: float = 360.0, pointingoffsetsigdev: Any = [], pblimit: float = 0.2,
           normtype: str = "flatnoise", deconvolver: str = "hogbom", scales: Any = [],
           nterms: int = 2, smallscalebias: float = 0.0, fusedthreshold: float = 0.0,
           largestscale: int = -1, restoration: bool = True, restoringbeam: Any = [],
           pbcor: bool = False, outlierfile: str = "", weighting: str = "natural",
           robust: float = 0.5, noise: Any = "1.0Jy", npixels: int = 0, uvtaper: Any = [""],
           niter: int = 0, gain: float = 0.1, threshold: Any = 0.0, nsigma: float = 0.0,
           cycleniter: int = -1, cyclefactor: float = 1.0, minpsffraction: float = 0.05,
           maxpsffraction: float = 0.8, interactive: Union[bool, int] = False,
           nmajor: int = -1, fullsummary: bool = False, usemask: str = "user", mask: Any = "",
           pbmask: float = 0.0, sidelobethreshold: float = 3.0, noisethreshold: float = 5.0,
           lownoisethreshold: float = 1.5, negativethreshold: float = 0.0,
           smoothfactor: float = 1.0, minbeamfrac: float = 0.3, cutthreshold: float = 0.01,
           growiterations: int = 75, dogrowprune: bool = True, minpercentchange: float = -1.0,
           verbose: bool = False, fastnoise: bool = True, restart: bool = True,
           savemodel: str = "none", calcres: bool = True, calcpsf: bool = True,
           psfcutoff: float = 0.35, parallel: bool = False,
           **unknown: NoReturn) -> dict[str, Any]:
    """CASA's tclean. The manual's page "From CASA" says for each value of each parameter what
    becomes of it.

    Returns
    -------
    dict
        CASA's keys, as far as they make sense: iterdone, nmajordone, stopcode,
        stopDescription, summaryminor, ...; imagename is the name that the images begin with

    Raises
    ------
    tessera.UsageError : a value or name that is refused; the text says why, and what is nearest
    tessera.FileError, InputError, ResourceError : as tessera.image

    >>> tclean(vis="obs.ms", imagename="sky", imsize=512, cell="2arcsec",
    ...        niter=10000, nsigma=3.0)                                # doctest: +SKIP
    """
    values = dict(locals())
    values.update(values.pop("unknown"))
    return _tclean(values)


def _prepare(values: dict[str, Any], begins: bool) -> tuple[list[str], dict[str, Any], bool]:
    """The observations, the options, and whether spectra are fitted."""
    try:
        made = words.translate(values, begins)
    except words.Refused as error:
        _refused(error)
    obs, continuum = _observations(values["vis"])
    options = {**made.options, **continuum}
    if continuum and options.get("update_model"):
        raise lib.UsageError(f"savemodel={values['savemodel']!r}: uvcontsub has taken the continuum from vis, and "
                             "the data are not calibrated by what is left; call tclean with the vis of uvcontsub")
    if isinstance(options.get("center"), int):
        options["center"] = _center_of_field(obs[0], options["center"])
    terms = options.get("fit_spectral_pol", 0)
    if terms:  # no more output channels than there are channels
        channels = sum(int(w["channels"]) for w in info(obs[0])["spectral_windows"])
        if any(key in options for key in ("spw", "channels", "select_spw")):
            channels = min(channels, 2 * terms)  # a selection may have few
        options["channels_out"] = min(options["channels_out"], max(terms, channels))
    for note in made.notes:
        warnings.warn(note, UserWarning, stacklevel=4)
    return obs, options, terms > 0


def _names(values: dict[str, Any]) -> tuple[str, Optional[str]]:
    """The name that the images begin with, and the model that cleaning begins with."""
    given = values["imagename"]
    if isinstance(given, (list, tuple)) or not os.fspath(given):
        if given:
            _refused(words.Refused(f"imagename={given!r}: call tclean once for each"))
        raise lib.UsageError("imagename: a name is needed, which the images begin with")
    name = os.fspath(given)
    if not values["restart"]:
        name = free_name(name)
    return name, _start(values, name, str(values["deconvolver"]).lower() == "mtmfs")


def _tclean(values: dict[str, Any]) -> dict[str, Any]:
    imagename, model = _names(values)
    obs, options, fits_spectra = _prepare(values, bool(model))
    check_replaced(imagename)
    cleans = bool(model) or options.get("niter", 0) > 0
    leave_out = set() if values["restoration"] else {"image", "image.pbcor", "image.tt0"}
    if not values["pbcor"]:
        leave_out |= {"image.pbcor", "image.tt0.pbcor"}
    dirty_as = [] if cleans else ["residual"] + ["image"] * bool(values["restoration"])
    with Folder(imagename) as folder:
        _, majors = _run(obs, folder, options, model)
        earlier = folder.finish(fits_spectra, leave_out, dirty_as)
    if earlier:
        warnings.warn("images of an earlier call, which this one does not make, stay as they are: " +
                      ", ".join(earlier), UserWarning, stacklevel=3)
    return summary_of(values, imagename, majors)


# ---- the other tasks ----


def _check(task: str, rows: tuple[table.Row, ...], given: dict[str, Any]) -> None:
    try:
        words.check_names(given, table.names(rows), task)
    except words.Refused as error:
        _refused(error)


def _refuse(rows: tuple[table.Row, ...], name: str, value: Any, values: str = "") -> NoReturn:
    for row in rows:
        if row.name == name and row.status == table.REFUSED and row.values.startswith(values):
            raise lib.UsageError(f"{name}={value!r}: {row.how}")
    raise AssertionError(name)


def _check_one_field(vis: str, field: str) -> None:
    """Refuse several fields: each has a prediction of its own."""
    lists = any(c in field for c in ",~*")
    names = [str(f["name"]) for f in info(vis)["fields"] if f["rows"]] if lists or not field else []
    if (lists and field not in names) or (not field and len(names) > 1):
        _refuse(table.FT, "field", field, "''")


def predict_model(vis: Any = "", field: Any = "", spw: Any = "", model: Any = "",
                  nterms: int = 1, reffreq: str = "", complist: str = "",
                  incremental: bool = False, usescratch: bool = False,
                  **unknown: NoReturn) -> None:
    """CASA's ft: writes the visibilities of a model to MODEL_DATA. The manual's page "From
    CASA" says what becomes of each parameter.

    Raises
    ------
    tessera.UsageError : a value or name that is refused
    """
    _check("ft", table.FT, unknown)
    models = list(model) if isinstance(model, (list, tuple)) else [model]
    if complist:
        _refuse(table.FT, "complist", complist)
    if nterms != 1:
        _refuse(table.FT, "nterms", nterms)
    if len(models) != 1 or not models[0]:
        _refuse(table.FT, "model", model)
    if incremental:
        _refuse(table.FT, "incremental", incremental)
    if reffreq:
        warnings.warn(f"reffreq={reffreq!r} is ignored: it belongs to Taylor terms",
                      UserWarning, stacklevel=2)
    chosen = str(field[0] if isinstance(field, (list, tuple)) and len(field) == 1 else field)
    _check_one_field(os.fspath(vis), chosen)
    predict(os.fspath(vis), model=words.existing_name(models[0]), column="MODEL_DATA",
            overwrite=True, field=chosen or None, spw=str(spw).replace("~", "-") or None)


ft = predict_model


def _other_channels(fitspec: str, windows: list[int]) -> str:
    """The channels of each window that a fitspec does not name, as --line-channels has them."""
    fitted: dict[int, set[int]] = {}
    for part in fitspec.replace(" ", "").split(","):
        spw, _, channels = part.partition(":")
        if not channels or not all(c.isdigit() or c in "~;" for c in channels):
            _refuse(table.UVCONTSUB, "fitspec", fitspec)
        numbers = set()
        for span in channels.split(";"):
            first, _, last = span.partition("~")
            numbers |= set(range(int(first), int(last or first) + 1))
        for window in _windows(spw, len(windows), fitspec):
            fitted.setdefault(window, set()).update(numbers)
    lines = []
    for window, chosen in sorted(fitted.items()):
        left = [c for c in range(windows[window]) if c not in chosen]
        if left:
            lines.append(f"{window}:" + ";".join(_spans(left)))
    return ",".join(lines) or "none"


def _windows(text: str, count: int, fitspec: str) -> range:
    first, _, last = text.partition("~")
    if text in ("", "*"):
        return range(count)
    if not first.isdigit() or not (last or first).isdigit() or int(last or first) >= count:
        _refuse(table.UVCONTSUB, "fitspec", fitspec)
    return range(int(first), int(last or first) + 1)


def _spans(numbers: list[int]) -> list[str]:
    """Ascending numbers as 3~5, 8."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return [f"{first}~{last}" if last > first else str(first) for first, last in spans]


def uvcontsub(vis: Any = "", outputvis: Any = "", field: str = "", spw: str = "",
              scan: str = "", intent: str = "", array: str = "", observation: str = "",
              datacolumn: str = "data", fitspec: Any = "", fitmethod: str = "gsl",
              fitorder: int = 0, writemodel: bool = False, **unknown: NoReturn) -> None:
    """CASA's uvcontsub: notes in the file `outputvis` what tclean(vis=outputvis) subtracts while
    it reads `vis`. The manual's page "From CASA" says what becomes of each parameter.

    Raises
    ------
    tessera.UsageError : a value or name that is refused
    tessera.FileError : outputvis is there already, or cannot be written
    """
    given = dict(field=field, spw=spw, scan=scan, intent=intent, array=array,
                 observation=observation)
    _check("uvcontsub", table.UVCONTSUB, unknown)
    for name, value in given.items():
        if value:
            _refuse(table.UVCONTSUB, name, value)
    if writemodel:
        _refuse(table.UVCONTSUB, "writemodel", writemodel)
    if not isinstance(fitspec, str):
        _refuse(table.UVCONTSUB, "fitspec", fitspec)
    columns = {"data": "DATA", "corrected": "CORRECTED_DATA", "model": "MODEL_DATA"}
    if datacolumn.lower() not in columns:
        raise lib.UsageError(f"datacolumn={datacolumn!r}: " +
                             words.nearest(datacolumn, list(columns)))
    options: dict[str, Any] = dict(uvcontsub=int(fitorder))
    found = info(vis)
    if found["format"] == "MS":
        options["datacolumn"] = columns[datacolumn.lower()]
    windows = [int(w["channels"]) for w in found["spectral_windows"]]
    options["line_channels"] = _other_channels(fitspec, windows) if fitspec else "none"
    try:
        with open(outputvis, "x", encoding="utf-8") as file:
            json.dump(dict(what=_SIGN, vis=os.path.abspath(vis), options=options), file,
                      indent=1)
    except OSError as error:
        raise lib.FileError(f"outputvis={outputvis!r}: {error.strerror}") from None


def _copy(source: str, target: str, overwrite: bool) -> None:
    if os.path.isdir(source):
        raise lib.UsageError(f"{source}: is an image of CASA; write it with CASA's exportfits")
    if os.path.isfile(source) and os.path.exists(target) and os.path.samefile(source, target):
        return  # its images are FITS files of that name already
    try:
        if overwrite and (os.path.islink(target) or not os.path.isfile(target)) and \
                os.path.lexists(target):
            raise lib.FileError(f"{target}: is not a file, and is not replaced")
        with open(source, "rb") as read, open(target, "wb" if overwrite else "xb") as write:
            shutil.copyfileobj(read, write)
    except FileExistsError:
        raise lib.FileError(f"{target}: is there already; overwrite=True replaces it") from None
    except FileNotFoundError as error:
        raise lib.FileError(f"{error.filename}: {error.strerror}") from None


def exportfits(imagename: Any, fitsimage: Any, overwrite: bool = False) -> None:
    """CASA's exportfits: copies imagename.fits to another name; tessera's images are FITS."""
    _copy(words.existing_name(imagename), os.fspath(fitsimage), overwrite)


def importfits(fitsimage: Any, imagename: Any, overwrite: bool = False) -> None:
    """CASA's importfits: copies a FITS image to imagename.fits, where mask, startmodel and model
    find it."""
    _copy(os.fspath(fitsimage), os.fspath(imagename) + ".fits", overwrite)
