"""From the parameters of CASA's tclean to the options of `tessera image`, as _table.py says.
Values are read here, and nothing of tessera's library."""
from __future__ import annotations

import difflib
import math
import os
import re
from typing import Any, Callable, NamedTuple, NoReturn, Optional

from . import _table as table

# The parameters of tclean with their defaults, in its order.
DEFAULTS: dict[str, Any] = dict(
    vis="", selectdata=True, field="", spw="", timerange="", uvrange="", antenna="", scan="",
    observation="", intent="", datacolumn="corrected", imagename="", imsize=[100], cell=[],
    phasecenter="", stokes="I", projection="SIN", startmodel="", specmode="mfs", reffreq="",
    nchan=-1, start="", width="", outframe="LSRK", veltype="radio", restfreq=[],
    interpolation="linear", perchanweightdensity=True, gridder="standard", facets=1,
    psfphasecenter="", wprojplanes=1, vptable="", mosweight=True, aterm=True, psterm=False,
    wbawp=True, conjbeams=False, cfcache="", usepointing=False, computepastep=360.0,
    rotatepastep=360.0, pointingoffsetsigdev=[], pblimit=0.2, normtype="flatnoise",
    deconvolver="hogbom", scales=[], nterms=2, smallscalebias=0.0, fusedthreshold=0.0,
    largestscale=-1, restoration=True, restoringbeam=[], pbcor=False, outlierfile="",
    weighting="natural", robust=0.5, noise="1.0Jy", npixels=0, uvtaper=[""], niter=0, gain=0.1,
    threshold=0.0, nsigma=0.0, cycleniter=-1, cyclefactor=1.0, minpsffraction=0.05,
    maxpsffraction=0.8, interactive=False, nmajor=-1, fullsummary=False, usemask="user",
    mask="", pbmask=0.0, sidelobethreshold=3.0, noisethreshold=5.0, lownoisethreshold=1.5,
    negativethreshold=0.0, smoothfactor=1.0, minbeamfrac=0.3, cutthreshold=0.01,
    growiterations=75, dogrowprune=True, minpercentchange=-1.0, verbose=False, fastnoise=True,
    restart=True, savemodel="none", calcres=True, calcpsf=True, psfcutoff=0.35, parallel=False)

_SELECTIONS = ("field", "spw", "timerange", "uvrange", "antenna", "scan", "observation",
               "intent")
_AUTOMASK = ("sidelobethreshold", "noisethreshold", "lownoisethreshold", "negativethreshold",
             "smoothfactor", "minbeamfrac", "cutthreshold", "growiterations", "dogrowprune",
             "minpercentchange", "fastnoise")


class Refused(ValueError):
    """A parameter or value that is refused; the text says why, and what is nearest."""


class Translation(NamedTuple):
    options: dict[str, Any]  # of tessera.image, without observation and output
    notes: list[str]         # of values that are ignored or approximated: for warnings


class _Given:
    """All parameters of a call, and what has been made of them."""

    def __init__(self, values: dict[str, Any], begins: bool) -> None:
        self.values = {**DEFAULTS, **values}
        if not self.values["selectdata"]:
            self.values.update({name: DEFAULTS[name] for name in _SELECTIONS})
        self.begins = begins
        self.num_stokes = 1
        self.options: dict[str, Any] = {}
        self.notes: list[str] = []

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def word(self, name: str) -> str:
        """A value as text without blanks around it; a list of one counts as this one."""
        value = self.values[name]
        if isinstance(value, (list, tuple)):
            value = ",".join(str(v) for v in value)
        return str(value).strip()

    def is_given(self, name: str) -> bool:
        value, default = self.values[name], DEFAULTS[name]
        return not (value == default or (isinstance(value, (str, list, tuple)) and
                                         not any(value) and not any(default)))

    def refuse(self, name: str, values: str = "") -> NoReturn:
        """Raise what the table says of this parameter: its row that is refused, whose text
        of values begins with `values`."""
        for row in table.TCLEAN:
            if row.name == name and row.status == table.REFUSED and \
                    row.values.startswith(values):
                raise Refused(f"{name}={self.values[name]!r}: {row.how}")
        raise AssertionError(name)

    def one_of(self, name: str, words: tuple[str, ...]) -> str:
        """A word that CASA allows, in its own case."""
        for word in words:
            if self.word(name).lower() == word.lower():
                return word
        raise Refused(f"{name}={self.values[name]!r}: " + nearest(self.word(name), words))


def nearest(word: str, words: Any) -> str:
    """'did you mean ...', or all that there is."""
    found = difflib.get_close_matches(word, [str(w) for w in words], 1, 0.5)
    return f"did you mean {found[0]!r}?" if found else f"it may be {', '.join(words)}"


def check_names(given: dict[str, Any], known: Any, task: str) -> None:
    for name in given:
        if name not in known:
            raise Refused(f"{task} has no parameter {name!r}: {nearest(name, list(known))}")


# ---- values ----

_ANGLES = {"arcsec": "asec", "asec": "asec", '"': "asec", "": "asec", "arcmin": "amin",
           "amin": "amin", "deg": "deg", "rad": "rad", "mas": "mas", "marcsec": "mas",
           "uas": "uas", "uarcsec": "uas"}
_RADIANS = {"asec": math.pi / 648000, "amin": math.pi / 10800, "deg": math.pi / 180,
            "rad": 1.0, "mas": math.pi / 648e6, "uas": math.pi / 648e9}
_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*?)\s*$")


def split_number(value: Any, name: str) -> tuple[str, str]:
    """A number as it was written, and its unit."""
    unit = getattr(value, "unit", None)
    if unit is not None:  # an astropy Quantity
        return repr(float(value.value)), str(unit)
    match = _NUMBER.match(str(value))
    if not match:
        raise Refused(f"{name}: {value!r} is no number with a unit")
    return match.group(1), match.group(2)


def angle(value: Any, name: str) -> str:
    """'2arcsec' as tessera writes it, '2asec'."""
    number, unit = split_number(value, name)
    if unit not in _ANGLES:
        raise Refused(f"{name}: {value!r} has no unit of angles: " + nearest(unit, _ANGLES))
    return number + _ANGLES[unit]


def radians(value: Any, name: str) -> float:
    number, unit = split_number(angle(value, name), name)
    return float(number) * _RADIANS[unit]


def flux(value: Any, name: str) -> Optional[str]:
    """A flux with its unit; None for 0."""
    number, unit = split_number(value, name)
    unit = unit.split("/")[0].strip() or "Jy"
    return f"{number}{unit}" if float(number) > 0 else None


def _list(value: Any) -> list[Any]:
    """A list of what is not empty."""
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return [v for v in values if str(v).strip() != ""]


def existing_name(value: Any) -> str:
    """A file, or the file with .fits that CASA's name of an image means."""
    path = str(os.fspath(value))
    return path + ".fits" if not os.path.exists(path) and os.path.exists(path + ".fits") else path


# ---- which visibilities ----

_SPW = re.compile(r"[\d,~]+$")
_SPW_CHANNELS = re.compile(r"([\d~]*|\*):(\d+)~(\d+)$")
_UVRANGE = re.compile(r"(?:(>|<)\s*)?([\d.eE+]+)(?:~([\d.eE+]+))?\s*(m|km|lambda|klambda|Mlambda)?$")


def _field(given: _Given) -> None:
    word = given.word("field")
    if re.search(r"[*~<>?&]", word):
        given.options["select_field"] = word
    elif word:
        given.options["field"] = word


def _spw(given: _Given) -> None:
    word = given.word("spw").replace(" ", "")
    channels = _SPW_CHANNELS.match(word)
    if word in ("", "*"):
        return
    if _SPW.match(word):
        given.options["spw"] = word.replace("~", "-")
    elif channels:
        if channels.group(1) not in ("", "*"):
            given.options["spw"] = channels.group(1).replace("~", "-")
        given.options["channels"] = f"{channels.group(2)}:{int(channels.group(3)) + 1}"
    else:
        given.options["select_spw"] = word


def _uvrange(given: _Given) -> None:
    word = given.word("uvrange").strip()
    if not word:
        return
    match = _UVRANGE.match(word)
    if not match or (match.group(1) is None) == (match.group(3) is None):
        given.options["select_uvrange"] = word
        return
    sign, first, last, unit = match.groups()
    factor = {"km": 1e3, "klambda": 1e3, "Mlambda": 1e6}.get(unit or "m", 1.0)
    low = float(first) * factor if sign != "<" else None
    high = float(last) * factor if last else float(first) * factor if sign == "<" else None
    if unit and unit.endswith("lambda"):
        given.options["uvrange"] = f"{low or 0.0!r}:{'' if high is None else repr(high)}"
        return
    if low is not None:
        given.options["minuvw_m"] = low
    if high is not None:
        given.options["maxuvw_m"] = high


def _selection(given: _Given) -> None:
    _field(given)
    _spw(given)
    _uvrange(given)
    for name, option in (("timerange", "select_time"), ("antenna", "select_antenna"),
                         ("scan", "select_scan"), ("intent", "select_intent")):
        if given.word(name):
            given.options[option] = given.word(name)
    if given.word("observation"):
        given.refuse("observation")
    column = given.one_of("datacolumn", ("corrected", "data", "model", "residual"))
    given.options.update({"data": dict(datacolumn="DATA"), "corrected": {},
                          "model": dict(datacolumn="MODEL_DATA"),
                          "residual": dict(datacolumn="CORRECTED_DATA",
                                           subtract_column="MODEL_DATA")}[column])


# ---- pixels ----

def _hms(text: str) -> str:
    """12h30m49.4 as 12:30:49.4; -30d00m00 and -30.00.00 likewise."""
    text = re.sub(r"[hmd]", ":", text).rstrip("s:")
    if ":" not in text and text.count(".") >= 2:
        first, second, rest = text.split(".", 2)
        text = f"{first}:{second}:{rest}"
    return text


def direction(value: Any, name: str = "phasecenter") -> Optional[str]:
    """'J2000 12h30m49 12d23m28' or a SkyCoord as RA,DEC; None for another frame."""
    icrs = getattr(value, "icrs", None)
    if icrs is not None:
        return f"{float(icrs.ra.deg)!r}deg,{float(icrs.dec.deg)!r}deg"
    words = str(value).replace(",", " ").split()
    if words and words[0].upper() in ("J2000", "ICRS"):
        words = words[1:]
    if len(words) != 2 or not re.match(r"[-+]?[\d.]", words[0] + " "):
        return None
    if words[0].endswith(("deg", "rad")):
        return ",".join(words)
    return f"{_hms(words[0])},{_hms(words[1])}"


def _pixels(given: _Given) -> None:
    size = [str(int(n)) for n in _list(given["imsize"])]
    given.options["size"] = size[0] if len(size) == 1 else ",".join(size)
    cells = _list(given["cell"]) or ["1arcsec"]
    if len(cells) > 1 and not math.isclose(radians(cells[0], "cell"),
                                           radians(cells[1], "cell"), rel_tol=1e-9):
        given.refuse("cell")
    given.options["scale"] = angle(cells[0], "cell")
    if given.word("projection").upper() != "SIN":
        given.refuse("projection")
    stokes = given.word("stokes").replace(",", "")
    parts = re.findall(r"RR|LL|RL|LR|XX|YY|XY|YX|[IQUV]", stokes)
    if stokes.lower() == "pseudoi":
        parts, stokes = ["I"], "I"
    if "".join(parts) != stokes:
        raise Refused(f"stokes={given['stokes']!r}: it may be I, IV, IQUV, RRLL, XX ...")
    given.options["stokes"] = ",".join(parts) if len(parts[0]) == 2 else "".join(parts)
    given.num_stokes = len(parts)
    center = given["phasecenter"]
    if isinstance(center, int) or str(center).strip().isdigit():
        given.options["center"] = int(center)  # of a field: the task looks it up
    elif given.is_given("phasecenter"):
        given.options["center"] = direction(center) or given.refuse("phasecenter")


# ---- channels ----

_VELOCITY = re.compile(r"\s*([-+\d.eE]+)\s*m/s\s*$")


def _axis_value(given: _Given, name: str) -> Optional[str]:
    value = given[name]
    if isinstance(value, dict):
        given.refuse(name if name == "start" else "start", "records")
    if hasattr(value, "unit"):
        value = "".join(split_number(value, name)).replace(" ", "")
    text = str(value).strip()
    metres = _VELOCITY.match(text)
    return f"{float(metres.group(1)) / 1e3!r}km/s" if metres else text.replace(" ", "") or None


def _channels(given: _Given) -> None:
    mode = given.one_of("specmode", ("mfs", "cont", "mvc", "cube", "cubedata", "cubesource"))
    if mode == "cubesource":
        given.refuse("specmode")
    if mode in ("mfs", "cont", "mvc"):
        if given.num_stokes > 1:
            given.options["cube"] = True  # all in one file, as CASA has them
        return
    given.options["cube"] = True
    frame = given.word("outframe").lower() or "lsrk"
    if frame not in ("lsrk", "bary", "topo", "galacto"):
        given.refuse("outframe")
    given.options["frame"] = "topo" if mode == "cubedata" else frame
    if int(given["nchan"]) > 0:
        given.options["nchan"] = int(given["nchan"])
    for name in ("start", "width"):
        given.options[name] = _axis_value(given, name)
    if "m/s" in f"{given.options['start']}{given.options['width']}":
        if given.word("veltype").lower() not in ("radio", "optical"):
            given.refuse("veltype")
        if given.word("veltype").lower() == "optical":
            given.options["velocity"] = "optical"
    rest = _list(given["restfreq"])
    if len(rest) > 1:
        given.refuse("restfreq")
    if rest:
        given.options["restfreq"] = str(rest[0]).replace(" ", "")
    interpolation = given.one_of("interpolation", ("linear", "nearest", "cubic"))
    given.options["interpolation"] = "nearest" if interpolation == "nearest" else "linear"
    if not given["perchanweightdensity"]:
        given.options["mf_weighting"] = True


# ---- weights and gridding ----

_LAMBDA = {"": 1.0, "lambda": 1.0, "klambda": 1e3, "Mlambda": 1e6}


def _taper_radians(value: Any) -> float:
    """FWHM on the sky. CASA halves weights at the baseline that is given in wavelengths."""
    number, unit = split_number(value, "uvtaper")
    if unit in _LAMBDA:
        return 2 * math.log(2) / math.pi / (float(number) * _LAMBDA[unit])
    return radians(value, "uvtaper")


def _taper(given: _Given) -> None:
    taper = _list(given["uvtaper"])
    if not taper:
        return
    given.options["taper_at"] = "visibilities"
    if len(taper) == 1 and split_number(taper[0], "uvtaper")[1] not in _LAMBDA:
        given.options["taper_gaussian"] = angle(taper[0], "uvtaper")
        return
    widths = [round(_taper_radians(t) / _RADIANS["asec"], 9) for t in taper[:2]]
    if len(set(widths)) == 1:
        given.options["taper_gaussian"] = f"{widths[0]!r}asec"
        return
    turn = math.degrees(radians(taper[2], "uvtaper")) if len(taper) > 2 else 0.0
    if widths[0] < widths[1]:  # baselines: the longer one is the narrower side on the sky
        widths, turn = widths[::-1], turn + 90
    given.options["taper_gaussian"] = \
        f"{widths[0]!r}asec,{widths[1]!r}asec,{round(turn, 9)!r}deg"


def _density(given: _Given) -> None:
    """CASA's cells of the density, as many as pixels, and its weights of Stokes parameters.
    tessera's number of cells of a side is a multiple of four, or where super_weight divides
    it, of two."""
    sides = [int(n) for n in given.options["size"].split(",")]
    wider = {-(-n // 4) * 4 / n for n in sides}
    given.options["hand_weight"] = "mean"
    if given.options["weight"] == "natural":
        return  # no cells: the taper is taken at the visibilities
    given.options.update(density_frame="lsrk", padding=1.0)
    if wider != {1.0} and len(wider) == 1 and sides[0] % 2 == 0:
        given.options["super_weight"] = wider.pop()


def _weights(given: _Given) -> None:
    weighting = given.one_of("weighting", ("natural", "uniform", "briggs", "superuniform",
                                           "briggsbwtaper", "briggsabs", "radial"))
    cells = int(given["npixels"])
    if weighting in ("briggsabs", "radial"):
        given.refuse("weighting")
    if weighting.startswith("briggs"):
        given.options["weight"] = f"briggs:{float(given['robust'])!r}"
    else:
        given.options["weight"] = "natural" if weighting == "natural" else "uniform"
    if cells > 0 and weighting in ("uniform", "briggs", "briggsbwtaper"):
        given.refuse("npixels")
    _taper(given)
    _density(given)
    if weighting == "superuniform":
        given.options["density_box"] = cells if cells > 0 else 3


_GRIDDERS = ("standard", "gridft", "ft", "wproject", "wprojectft", "widefield", "mosaic",
             "mosaicft", "ftmosaic", "imagemosaic")


def _gridder(given: _Given) -> None:
    if given.word("gridder").lower().startswith("aw"):
        given.refuse("gridder", "'awproject'")
    gridder = given.one_of("gridder", _GRIDDERS)
    is_mosaic = "mosaic" in gridder
    if is_mosaic:
        given.options["mosaic"] = True
    elif gridder in ("standard", "gridft", "ft") and int(given["facets"]) == 1:
        given.options["w"] = "none"
    if is_mosaic or given["pbcor"] or given.word("usemask") == "pb" or float(given["pbmask"]) > 0:
        if given.word("vptable"):
            given.refuse("vptable")
        given.options["primary_beam"] = "auto"
    if given["pbcor"]:
        given.options["pbcor"] = True
    if is_mosaic or given["pbcor"]:
        limit = float(given["pblimit"])
        given.options["pb_limit"] = limit if limit > 0 else 1e-6
    if given.word("outlierfile"):
        given.refuse("outlierfile")


# ---- cleaning ----

def _width(scale: float) -> float:
    """The size of tessera's scale whose kernel is as wide as that of CASA's. CASA's, a parabola times a
    spheroidal function, ends at a radius of `scale` pixels, and tessera's at scale/2 + 1.5 or so. Kernels of 5 to
    100 pixels are 7 to 13 % of their flux apart then, and 16 to 78 % if both have the same number."""
    return max(1.65 * scale - 2.5, min(scale, 2.0))


def _asp_scales(given: _Given) -> None:
    largest = int(given["largestscale"])
    given.options["multiscale"] = True
    if largest > 0:
        given.options["multiscale_scales"] = ",".join(
            ["0"] + [f"{4 * 2**k}" for k in range(20) if 4 * 2**k <= largest])
    if given.is_given("smallscalebias"):
        _bias(given)


def _bias(given: _Given) -> None:
    given.options["multiscale_scale_bias"] = round(.6 + .4 * float(given["smallscalebias"]), 9)


def _scales(given: _Given) -> None:
    deconvolver = given.word("deconvolver")
    scales = {_width(float(s)) for s in _list(given["scales"])}
    if deconvolver == "asp":
        _asp_scales(given)
    elif deconvolver in ("multiscale", "mtmfs") and any(scales):
        given.options["multiscale"] = True
        given.options["multiscale_scales"] = ",".join(f"{s:g}" for s in sorted(scales))
        if given.is_given("smallscalebias"):
            _bias(given)
        else:
            given.options["multiscale_choice"] = "fit"


def _deconvolver(given: _Given) -> None:
    words = ("hogbom", "clark", "clarkstokes", "clark_exp", "clarkstokes_exp", "multiscale",
             "mtmfs", "asp", "mem")
    given.values["deconvolver"] = word = given.one_of("deconvolver", words)
    if word == "mem":
        given.refuse("deconvolver")
    if word.startswith("clarkstokes") and given.num_stokes > 1:
        given.options["join_polarizations"] = True
    if word == "mtmfs":
        if given.options.get("cube"):
            raise Refused("deconvolver='mtmfs': it is for specmode='mfs' and one Stokes "
                          "parameter here; call tclean once for each")
        terms = int(given["nterms"])
        given.options.update(channels_out=4 * terms, join_channels=True, cube=True,
                             fit_spectral_pol=terms,
                             reference_freq=given.word("reffreq").replace(" ", "") or "middle")
    _scales(given)


def _beam(given: _Given) -> None:
    beam = _list(given["restoringbeam"])
    if not beam or beam == ["common"]:
        given.options["lobe_beam"] = True
    if not beam:
        return
    if beam == ["common"]:
        given.options["common_beam"] = True
    elif len(beam) == 1:
        given.options["beam_size"] = angle(beam[0], "restoringbeam")
    else:
        angles = [angle(b, "restoringbeam") for b in beam]
        if len(angles) == 2:
            angles.append("0deg")
        given.options["beam_shape"] = ",".join(angles)


def _cycles(given: _Given) -> None:
    given.options["niter"] = int(given["niter"])
    given.options["gain"] = float(given["gain"])
    given.options["threshold"] = flux(given["threshold"], "threshold")
    if float(given["nsigma"]) > 0:
        given.options["auto_threshold"] = float(given["nsigma"])
    majors = int(given["nmajor"])
    given.options["nmiter"] = 0 if majors < 0 else max(majors, 1)
    if int(given["cycleniter"]) > 0:
        given.options["cycleniter"] = int(given["cycleniter"])
    for name, option in (("cyclefactor", "cyclefactor"),
                         ("minpsffraction", "min_psf_fraction"),
                         ("maxpsffraction", "max_psf_fraction")):
        given.options[option] = float(given[name])


_REGION = re.compile(r"\s*(box|centerbox|rotbox|circle|ellipse|annulus|poly)\s*\[\s*\[", re.IGNORECASE)


def is_region(mask: str) -> bool:
    """Whether a mask is a region itself, as CASA writes it, and not the name of a file."""
    return _REGION.match(mask) is not None


def _mask(given: _Given) -> None:
    mask = given["mask"]
    if isinstance(mask, (list, tuple)):
        masks = _list(mask)
        if len(masks) > 1:
            given.refuse("mask", "a list")
        mask = masks[0] if masks else ""
    path = existing_name(mask) if mask else ""
    if not path:
        return
    if os.path.isdir(path):
        given.options["casa_mask"] = path
    elif path.lower().endswith((".fits", ".fits.gz", ".fit")):
        given.options["fits_mask"] = path
    else:
        given.options["mask"] = path


def _masks(given: _Given) -> None:
    use = given.one_of("usemask", ("user", "pb", "auto-multithresh"))
    if use == "user":
        _mask(given)
    if use == "pb" or float(given["pbmask"]) > 0:
        given.options["pb_mask"] = float(given["pbmask"]) or .2
    if use == "auto-multithresh":
        given.options["auto_multithresh"] = True
        for row in table.TCLEAN:
            if row.name in _AUTOMASK and given.is_given(row.name):
                value = given[row.name]
                given.options[next(key for key in row.options)] = \
                    value if not isinstance(value, bool) else "yes" if value else "no"


def _cleaning(given: _Given) -> None:
    if given["niter"] and int(given["niter"]) < 0:
        raise Refused("niter: it is 0 or more")
    _deconvolver(given)
    if int(given["niter"]) == 0 and not given.begins:
        for option in ("multiscale", "multiscale_scales", "multiscale_scale_bias", "multiscale_choice",
                       "join_polarizations"):
            given.options.pop(option, None)
        given.options["lobe_beam"] = True
        return
    _beam(given)
    _cycles(given)
    _masks(given)
    _model_column(given)


def _model_column(given: _Given) -> None:
    if given.one_of("savemodel", ("none", "modelcolumn", "virtual")) == "none":
        return
    if given.options.get("mosaic") and given.options.get("cube"):
        given.refuse("savemodel", "the same")
    if given.options.get("frame"):
        given.refuse("savemodel", "'modelcolumn'")
    given.options["update_model"] = True


def _rest(given: _Given) -> None:
    if given["interactive"] not in (False, 0):
        given.refuse("interactive")
    if isinstance(given["imagename"], (list, tuple)):
        given.refuse("imagename")
    if isinstance(given["startmodel"], (list, tuple)) and len(given["startmodel"]) > 1:
        given.refuse("startmodel")
    if given["verbose"]:
        given.options["log"] = "info"


def _note(given: _Given) -> None:
    """Notes of values that are not the default and that the table says to be ignored."""
    for row in table.TCLEAN:
        if row.status == table.IGNORED and given.is_given(row.name):
            given.notes.append(f"{row.name}={given[row.name]!r} is ignored: {row.how}")


_STEPS: tuple[Callable[[_Given], None], ...] = (_rest, _selection, _pixels, _channels, _weights,
                                                _gridder, _cleaning, _note)


def translate(values: dict[str, Any], begins: bool = False) -> Translation:
    """The options of `tessera image` for these parameters of tclean. `begins`: there is a model
    to begin with, which is imaged and restored even without cleaning.

    Raises
    ------
    Refused : a name that tclean does not have, or a value that the table refuses
    """
    check_names(values, DEFAULTS, "tclean")
    given = _Given(values, begins)
    for step in _STEPS:
        step(given)
    options = {name: value for name, value in given.options.items() if value is not None}
    return Translation(options, given.notes)
