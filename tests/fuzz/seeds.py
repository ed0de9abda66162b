"""What fuzzers start from: small files that tessera makes, and files that were damaged
on purpose (regression seeds). Each function fills a folder with seeds and another with
regression seeds."""
import os
import pathlib
import re
import struct
import subprocess

HOSTILE = pathlib.Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "hostile"

LAYOUT = """# lon=20 lat=-30 alt=1000
name,east,north,up,diameter
A,0,0,0,13.5
B,300,100,5,13.5
C,-200,400,-3,13.5
D,50,-70,1,13.5
"""
SKY = """name,l,m,flux_jy,q,u,v,spectral_index,ref_freq,major,minor,pa
a,0.001,0.002,1,.1,.2,.3,-.7,1.4GHz,,,
b,-0.001,0.0005,2,,,,,,20asec,10asec,30deg
"""
SKY_RADEC = """# a comment
ra,dec,flux_jy
4h00m00s,-30d00m00s,1.5
60.1deg,-30:10:00,2mJy
"""
LAYOUT_XYZ = """x,y,z
5109943.1,2003733.1,-3239117.2
5109906.5,2003745.7,-3238898.4
"""
SOURCES = """Format = Name, Type, Ra, Dec, I, SpectralIndex, LogarithmicSI, \
ReferenceFrequency='1.5e8', MajorAxis, MinorAxis, Orientation

s0c0,POINT,03:49:10.987654321,-28.38.52.40311234,0.5,[-0.7,0.1],false,1.5e8,,,
s1c0,GAUSSIAN,03:49:11.1,-28.38.52.4,0.5,[],true,,83.6,41.8,30
"""
SOURCES_DP3 = """# (Name, Type, Patch, Ra, Dec, I, Q, U, V, ReferenceFrequency='1e8', \
SpectralIndex='[0.5]', LogarithmicSI) = format
, , patch, 00:00:00, +00.00.00
a, POINT, patch, 3h49m11s, -28d38m52s, 1, 0.1, , 0.5, , -0.7, true
"""
LONG = "'" + "x" * 30 + "'"
ESCAPE = "'\033[2J\033]0;x\007'"


class Tessera:
    """The program that makes seeds."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        (folder / "layout.csv").write_text(LAYOUT)
        (folder / "sky.csv").write_text(SKY)

    def run(self, *arguments):
        subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL)

    def simulate(self, out, *more):
        self.run("simulate", "--layout", "./layout.csv", "--sky", "sky.csv", "--ra",
                 "60deg", "--dec", "-30deg", "--freq", "1.4GHz", "--duration", "24s",
                 "--quiet", "-o", out, *more)

    def image(self, out, *more):
        self.run("image", "obs.uvfits", "-o", out, "--size", "16", "--scale", "30asec",
                 "--accuracy", "1e-2", "--threads", "1", "--quiet", *more)


# ---- FITS ----

def blocks(data, fill):
    return data + fill * (-len(data) % 2880)


def card(key, value):
    text = f"{key:<8}= {value:>20}" if not str(value).startswith("'") else f"{key:<8}= {value}"
    return text[:80].ljust(80).encode("latin-1")


def header(cards):
    return blocks(b"".join(card(*c) for c in cards) + b"END".ljust(80), b" ")


def with_card(data, key, value):
    """The first header with this card set, before END when it is new."""
    end = next(k for k in range(0, len(data), 80) if data[k:k + 8] == b"END     ")
    cards = [data[k:k + 80] for k in range(0, end, 80)]
    old = [k for k, c in enumerate(cards) if c[:8] == key.ljust(8).encode()]
    if old:
        cards[old[0]] = card(key, value)
    else:
        cards.append(card(key, value))
    length = (end // 2880 + 1) * 2880
    return blocks(b"".join(cards) + b"END".ljust(80), b" ") + data[length:]


def as_integers(data):
    """The first array as integers of 16 bits, scaled."""
    end = next(k for k in range(0, len(data), 80) if data[k:k + 8] == b"END     ")
    start = (end // 2880 + 1) * 2880
    keys = {data[k:k + 8].decode().strip(): data[k + 10:k + 30].decode().strip()
            for k in range(0, end, 80)}
    axes = [int(keys[f"NAXIS{k + 1}"]) for k in range(int(keys["NAXIS"]))]
    groups = axes[0] == 0
    count = 1
    for length in axes[1:] if groups else axes:
        count *= length
    count = (count + int(keys.get("PCOUNT", 0))) * int(keys.get("GCOUNT", 1))
    size = abs(int(keys["BITPIX"])) // 8
    values = struct.unpack(f">{count}{'f' if size == 4 else 'd'}",
                           data[start:start + count * size])
    stored = [max(-32767, min(32767, round(v * 1000))) if v == v else -32768
              for v in values]
    rest = data[start + len(blocks(b" " * count * size, b" ")):]
    changed = data[:start] + blocks(struct.pack(f">{count}h", *stored), b"\0") + rest
    for key, value in [("BITPIX", 16), ("BSCALE", 1e-3), ("BZERO", 0.0),
                       ("BLANK", -32768)]:
        changed = with_card(changed, key, value)
    return changed


def damaged(data):
    """Headers that readers once trusted."""
    integers = as_integers(data)
    changes = {"blank": ("BLANK", LONG), "blank-number": ("BLANK", "9" * 30),
               "escape": ("OBJECT", ESCAPE), "telescope": ("TELESCOP", LONG * 2),
               "naxis": ("NAXIS", 999), "naxis-negative": ("NAXIS", -1),
               "huge": ("NAXIS2", 2**62), "huge-3": ("NAXIS3", 2**31),
               "negative": ("NAXIS2", -5), "groups": ("GCOUNT", 2**62),
               "groups-negative": ("GCOUNT", -1), "params": ("PCOUNT", 2**62),
               "params-none": ("PCOUNT", 0), "scale": ("BSCALE", "1E300"),
               "scale-none": ("BSCALE", "0.0"), "zero": ("BZERO", "NaN"),
               "bits": ("BITPIX", 7), "step": ("CDELT4", "0.0"),
               "date": ("PSCAL6", "1E30"), "frequency": ("CRVAL4", "-1.0"),
               "reference": ("CRPIX4", "1E300"), "reference-3": ("CRPIX3", "1E308")}
    for name, (key, value) in changes.items():
        yield name, with_card(data, key, value)
        yield name + "-integers", with_card(integers, key, value)
    for cut in (80, 2880, len(data) // 2, len(data) - 1):
        yield f"cut-{cut}", data[:cut]
    yield "tile", data + compressed("0.5")
    yield "tile-none", data + compressed("0")


def compressed(tile):
    """A compressed image's extension."""
    return header([("XTENSION", "'BINTABLE'"), ("BITPIX", 8), ("NAXIS", 2), ("NAXIS1", 8),
                   ("NAXIS2", 4), ("PCOUNT", 0), ("GCOUNT", 1), ("TFIELDS", 1),
                   ("TTYPE1", "'COMPRESSED_DATA'"), ("TFORM1", "'1PB(0)'"),
                   ("ZIMAGE", "T"), ("ZBITPIX", -32), ("ZNAXIS", 2), ("ZNAXIS1", 4),
                   ("ZNAXIS2", 4), ("ZTILE1", tile), ("ZTILE2", 1),
                   ("ZCMPTYPE", "'RICE_1'")]) + blocks(b"\0" * 32, b"\0")


def add_hostile(regression, *names):
    for name in names:
        if (HOSTILE / name).is_file():
            (regression / name).write_bytes((HOSTILE / name).read_bytes())


def add_fits(data, name, seeds, regression):
    (seeds / name).write_bytes(data)
    (seeds / f"{name}-integers").write_bytes(as_integers(data))
    for kind, changed in damaged(data):
        (regression / f"{name}-{kind}").write_bytes(changed)


# ---- one function for each fuzzer ----

def uvfits(make, seeds, regression, _program):
    make.simulate("obs.uvfits", "--channels", "2")
    make.simulate("circular.uvfits", "--pol", "RR,LL,RL,LR", "--noise", "1Jy",
                  "--autocorrelations", "yes")
    for name in ("obs", "circular"):
        add_fits((make.folder / f"{name}.uvfits").read_bytes(), name, seeds, regression)
    add_hostile(regression, "blank-uvfits.fits", "ztile-fpe.fits")


def model(make, seeds, regression, _program):
    make.simulate("obs.uvfits", "--channels", "2", "--pol", "RR,LL,RL,LR")
    make.image("out", "--stokes", "IQ", "--channels-out", "2")
    make.image("double", "--accuracy", "1e-7", "--size", "12,20", "--no-psf")
    for name in ("out-MFS-I-dirty", "double-dirty"):
        add_fits((make.folder / f"{name}.fits").read_bytes(), name, seeds, regression)
    add_hostile(regression, "blank-uvfits.fits", "ztile-fpe.fits")


def with_table_card(data, table, key, value):
    """The header of the binary table of this name with this card set, which it has."""
    at = next(k for k in range(0, len(data), 80) if data[k:k + 8] == b"EXTNAME "
              and data[k + 10:k + 80].strip().strip(b"'").split(b"'")[0].strip() == table.encode())
    begin = max(k for k in range(0, at, 2880) if data[k:k + 8] == b"XTENSION")
    end = next(k for k in range(begin, len(data), 80) if data[k:k + 8] == b"END     ")
    where = next(k for k in range(begin, end, 80) if data[k:k + 8] == key.ljust(8).encode())
    return data[:where] + card(key, value) + data[where + 80:]


def damaged_cubes(data, table):
    """Frequency axes and tables of cubes that are of no use."""
    for name, (key, value) in {
            "axis": ("CTYPE3", "'VRAD'"), "logarithms": ("CTYPE3", "'FREQ-LOG'"),
            "unit": ("CUNIT3", "'m/s'"), "long-unit": ("CUNIT3", LONG), "GHz": ("CUNIT3", "'GHz'"),
            "step": ("CDELT3", "0.0"), "wide-step": ("CDELT3", "1E308"), "nan": ("CRVAL3", "NaN"),
            "below": ("CDELT3", "-1E9"), "no-table": ("PS3_0", LONG), "column": ("PS3_1", LONG),
            "tab": ("CTYPE3", "'FREQ-TAB'"), "weights": ("SUMWT", "-1.0")}.items():
        yield name, with_card(data, key, value)
    for name, (key, value) in {
            "rows": ("NAXIS2", 2**40), "no-rows": ("NAXIS2", 0), "width": ("NAXIS1", 1),
            "fields": ("TFIELDS", 0), "text": ("TFORM1", "'8A'"), "bits": ("TFORM1", "'16X'"),
            "heap": ("TFORM1", "'1PD(8)'"), "huge": ("TFORM1", "'999999999D'"),
            "name": ("TTYPE1", LONG), "groups": ("GCOUNT", -1)}.items():
        yield "table-" + name, with_table_card(data, table, key, value)


def frequencies(make, seeds, regression, _program):
    make.simulate("obs.uvfits", "--channels", "5")
    make.image("even", "--stokes", "IQ", "--channels-out", "5", "--cube", "--size", "8",
               "--niter", "1")
    make.image("listed", "--channels-out", "3", "--cube", "--size", "8", "--no-psf")
    for name, table in [("even-cube-model", "PLANES"), ("listed-cube-dirty", "FREQUENCIES")]:
        data = (make.folder / f"{name}.fits").read_bytes()
        add_fits(data, name, seeds, regression)
        for kind, changed in damaged_cubes(data, table):
            (regression / f"{name}-cube-{kind}").write_bytes(changed)
    (seeds / "one-plane").write_bytes((make.folder / "even-MFS-I-model.fits").read_bytes())
    add_hostile(regression, "blank-uvfits.fits", "ztile-fpe.fits")


BANDS = """# LOW HIGH poly|inverse c0 c1 ...
0.9GHz 1.2GHz poly 1 -1.35e-3 6.0e-7 -1.2e-10
1.2GHz 1.7GHz inverse 1.0, 2e-3, 3e-7  # of the reciprocal
"""


def beam_file(axes, more=()):
    """A beam of 8 x 8 pixels and further axes, a Gaussian along the first two."""
    lengths = [8, 8] + [length for _, length, _ in more]
    names = [(axes[0], 4.5, -0.01), (axes[1], 4.5, 0.01)]
    cards = [("SIMPLE", "T"), ("BITPIX", -32), ("NAXIS", len(lengths))]
    cards += [(f"NAXIS{k + 1}", length) for k, length in enumerate(lengths)]
    for k, (name, pixel, step) in enumerate(names):
        cards += [(f"CTYPE{k + 1}", f"'{name:<8}'"), (f"CRPIX{k + 1}", pixel),
                  (f"CRVAL{k + 1}", 0.0), (f"CDELT{k + 1}", step), (f"CUNIT{k + 1}", "'deg     '")]
    for k, (name, _, (value, step)) in enumerate(more, 3):
        cards += [(f"CTYPE{k}", f"'{name:<8}'"), (f"CRPIX{k}", 1.0), (f"CRVAL{k}", value),
                  (f"CDELT{k}", step)]
    count = 1
    for length in lengths:
        count *= length
    values = [2.0 ** (-((k % 8 - 3.5) ** 2 + (k // 8 % 8 - 3.5) ** 2) / 8) for k in range(count)]
    return header(cards) + blocks(struct.pack(f">{count}f", *values), b"\0")


def beam(_make, seeds, regression, _program):
    freq = ("FREQ", 2, (1.3e9, 1e8))
    files = {"power": beam_file(("AZ", "EL"), [freq]),
             "stokes": beam_file(("L", "M"), [freq, ("STOKES", 4, (-5.0, -1.0))]),
             "voltage": beam_file(("X", "Y"), [("COMPLEX", 2, (1.0, 1.0)),
                                               ("STOKES", 2, (-5.0, -1.0)), freq])}
    for name, data in files.items():
        add_fits(data, name, seeds, regression)
        for kind, (key, value) in {
                "unit": ("CUNIT1", "'m'"), "type": ("CTYPE1", "'RA---SIN'"), "step": ("CDELT1", "0.0"),
                "tiny": ("CDELT1", "1E-300"), "wide": ("CDELT2", "1E300"), "far": ("CRPIX1", "1E300"),
                "far-value": ("CRVAL2", "-1E308"), "nan": ("CRPIX2", "NaN"), "no-frequency":
                ("CTYPE3", "'STOKES'"), "frequency-step": ("CDELT3", "0.0"), "GHz": ("CUNIT3", "'GHz'"),
                "logarithms": ("CTYPE3", "'FREQ-LOG'")}.items():
            (regression / f"{name}-beam-{kind}").write_bytes(with_card(data, key, value))
    (seeds / "bands").write_text(BANDS)
    for kind, text in {"returns": BANDS.replace("\n", "\r\n"), "mark": "\ufeff" + BANDS,
                       "numbers": BANDS.replace("e-", "e+"), "nan": BANDS.replace("2e-3", "nan"),
                       "large": BANDS.replace("2e-3", "-1.7e308"), "zero": BANDS.replace("poly 1", "poly 0"),
                       "words": BANDS.replace("poly", "pole"), "many": BANDS * 40,
                       "terms": BANDS.replace("3e-7", "1 " * 50), "order": BANDS.replace("1.7GHz", "1Hz"),
                       "range": BANDS.replace("1.7GHz", "1e300Hz")}.items():
        (regression / f"bands-{kind}").write_text(text)
    for cut in range(1, len(BANDS), 23):
        (regression / f"bands-cut-{cut}").write_text(BANDS[:cut])
    (regression / "bands-nul").write_bytes(BANDS.encode()[:60] + b"\0" + BANDS.encode()[60:])
    (regression / "empty").write_text("")


def kernels(make, seeds, regression, _program):
    make.simulate("obs.uvfits")
    make.image("out", "--w", "projection", "--oversampling", "2", "--write-gcf",
               "gcf.fits", "--no-psf")
    data = (make.folder / "gcf.fits").read_bytes()
    add_fits(data, "gcf", seeds, regression)
    # Values that are finite, but whose sum is not.
    (regression / "gcf-largest").write_bytes(
        with_card(as_integers(data), "BZERO", 1e308))
    add_hostile(regression, "blank-uvfits.fits", "ztile-fpe.fits")


def csv(_make, seeds, regression, _program):
    for name, text in [("layout", LAYOUT), ("layout-xyz", LAYOUT_XYZ), ("sky", SKY),
                       ("sky-radec", SKY_RADEC)]:
        (seeds / name).write_text(text)
        (regression / f"{name}-mark").write_text("\ufeff" + text)
        (regression / f"{name}-nul").write_text(text[:20] + "\0" + text[20:])
        (regression / f"{name}-returns").write_text(text.replace("\n", "\r\n"))
        (regression / f"{name}-wide").write_text(text.replace("\n", "," * 100 + "\n"))
        (regression / f"{name}-numbers").write_text(text.replace("1", "1e999"))
    (regression / "empty").write_text("")
    # A right ascension without a declination, beside l and m.
    (regression / "sky-lone-ra").write_text("l,m,flux_jy,ra\n0,0,1,2deg\n")


def sources(_make, seeds, regression, _program):
    for name, text in [("wsclean", SOURCES), ("dp3", SOURCES_DP3)]:
        (seeds / name).write_text(text)
        (regression / f"{name}-mark").write_text("\ufeff" + text)
        (regression / f"{name}-nul").write_text(text[:120] + "\0" + text[120:])
        (regression / f"{name}-returns").write_text(text.replace("\n", "\r\n"))
        (regression / f"{name}-wide").write_text(text.replace("\n", "," * 100 + "\n"))
        (regression / f"{name}-numbers").write_text(text.replace("1", "1e999"))
        (regression / f"{name}-nan").write_text(text.replace("0.5", "nan"))
        (regression / f"{name}-quotes").write_text(text.replace("'", "\"'"))
        (regression / f"{name}-brackets").write_text(text.replace("[", "[[[["))
        for cut in range(1, len(text), 37):
            (regression / f"{name}-cut-{cut}").write_text(text[:cut])
    (regression / "empty").write_text("")
    (regression / "binary").write_bytes(b"Format = Ra, Dec, I\n" + bytes(range(1, 256)) * 4)
    (regression / "terms").write_text(SOURCES + "a,POINT,1deg,1deg,1,[" + "1," * 5000 + "1]\n")


REGIONS = """# Region file format: DS9 version 4.1
global color=green font="helvetica 10"
fk5
polygon(9.5,-0.2,10.0,-0.2,10.05,0.9,9.5,0.9) # text={one}
point(9.8,.1)
polygon(10.0,-0.2,10.6,-0.2,10.6,0.9,10.05,0.9) # text="two"
-polygon(0h41m00s,0d6m,10.3d 0.1 10.3,0.3)
icrs;polygon(120,-60,110,-60,110,-75)
circle(10,0,5")
"""


CRTF = """#CRTFv0 CASA Region Text Format version 0
global coord=B1950
circle[[18h12m24s, -23d11m00s], 2.3arcsec], coord=J2000, range=[1chan, 5chan]
-box[[10pix, 20.5pix], [30pix, 40pix]]
centerbox[[60deg, -10.00.30], [3arcmin, 2deg]], range=[1.41GHz, 1420MHz]
rotbox[[1deg, 2deg], [8pix, 4pix], 1rad]
ellipse[[201deg, -42deg], [9arcsec, 4arcsec], 30deg], coord=GALACTIC
annulus[[60deg, -10deg], [1arcsec, 2arcsec]]
poly[[1deg, 2deg], [3deg, 4deg], [5deg, 1deg]]
ann text[[1deg, 2deg], 'x']
"""
SHAPES = "fk5;circle(60,-10d,2');ellipse(1,2,3\",4p,5)\n-box(1,2,3,4,5)\nimage;annulus 3 4 5 6\n"


ATERMS = """# corrections
aterms = [ first, tec ]
first.type = diagonal
first.images = [a.fits b.fits]  # two
tec.images = [c.fits, d.fits]
tec.window = raised_hann
"""


def aterms(_make, seeds, regression, _program):
    antenna, freq, times = ("ANTENNA", 2, (0.0, 1.0)), ("FREQ", 2, (1e8, 5e7)), ("TIME", 3, (5e9, 300.0))
    files = {"tec": beam_file(("RA---SIN", "DEC--SIN"), [antenna, freq, times]),
             "diagonal": beam_file(("RA---TAN", "DEC--TAN"), [("MATRIX", 4, (0.0, 1.0)), antenna, freq, times])}
    for name, data in files.items():
        add_fits(data, name, seeds, regression)
        for kind, (key, value) in {
                "type": ("CTYPE1", "'AZ'"), "step": ("CDELT1", "0.0"), "tiny": ("CDELT1", "1E-300"),
                "far": ("CRPIX1", "1E300"), "pole": ("CRVAL2", "90.0"), "nan": ("CRPIX2", "NaN"), "twice":
                ("CTYPE3", "'TIME'"), "same-times": ("CDELT5", "0.0"), "other": ("CTYPE5", "'STOKES'")}.items():
            (regression / f"{name}-{kind}").write_bytes(with_card(data, key, value))
    (seeds / "config").write_text(ATERMS)
    for kind, text in {"returns": ATERMS.replace("\n", "\r\n"), "bracket": ATERMS.replace("]", ""),
                       "type": ATERMS.replace("diagonal", "beam"), "many": ATERMS.replace("a.fits", "a " * 300),
                       "terms": ATERMS.replace("tec ", "tec " + "x, " * 20), "empty": ATERMS.replace("c.fits, d.fits", ""),
                       "equals": ATERMS.replace("=", "==")}.items():
        (regression / f"config-{kind}").write_text(text)
    for cut in range(1, len(ATERMS), 17):
        (regression / f"config-cut-{cut}").write_text(ATERMS[:cut])


def regions(_make, seeds, regression, _program):
    (seeds / "ds9").write_text(REGIONS)
    (seeds / "crtf").write_text(CRTF)
    (seeds / "shapes").write_text(SHAPES)
    for kind, text in {"crtf-open": CRTF.replace("]]", "]"), "crtf-wide": CRTF.replace("deg", "d" * 90),
                       "crtf-numbers": CRTF.replace("1", "1e999"), "crtf-many": CRTF * 50,
                       "crtf-odd": CRTF.replace(",", ""), "shapes-nan": SHAPES.replace("2", "nan")}.items():
        (regression / kind).write_text(text)
    for cut in range(6, len(CRTF), 29):
        (regression / f"crtf-cut-{cut}").write_text(CRTF[:cut])
    for kind, text in {"mark": "\ufeff" + REGIONS, "returns": REGIONS.replace("\n", "\r\n"),
                       "numbers": REGIONS.replace("9", "1e999"), "nan": REGIONS.replace("10.0", "nan"),
                       "same": REGIONS.replace("10.6", "10.0"), "braces": REGIONS.replace("{", "{{}"),
                       "image": REGIONS.replace("fk5", "image"), "fk4": REGIONS.replace("fk5", "b1950"),
                       "odd": REGIONS.replace(",0.9)", ")"), "pole": REGIONS.replace("0.9", "90"),
                       "names": REGIONS.replace("one", "x}" * 200), "holes": REGIONS.replace("polygon", "-polygon"),
                       "many": REGIONS + "polygon(" + "1,2," * 10000 + "3,4)\n",
                       "overlap": REGIONS * 2}.items():
        (regression / kind).write_text(text)
    (regression / "nul").write_bytes(REGIONS.encode()[:80] + b"\0" + REGIONS.encode()[80:])
    for cut in range(1, len(REGIONS), 23):
        (regression / f"cut-{cut}").write_text(REGIONS[:cut])
    (regression / "empty").write_text("")


def h5parm(_make, seeds, regression, _program):
    """The bytes are choices: of nothing odd where they are not 0 or 1 mod 8 and 16."""
    (seeds / "usual").write_bytes(bytes([7]) * 400)
    (seeds / "counting").write_bytes(bytes(k % 256 for k in range(600)))
    for value in (0, 1, 2, 3, 9, 255):
        (regression / f"all-{value}").write_bytes(bytes([value]) * 400)
    for at in range(60):
        (regression / f"one-{at}").write_bytes(bytes([7]) * at + b"\1" + bytes([7]) * 300)
        (regression / f"none-{at}").write_bytes(bytes([7]) * at + b"\0" + bytes([7]) * 300)
    (regression / "empty").write_bytes(b"")


def config(make, seeds, regression, _program):
    text = subprocess.run([make.program, "image", "--help"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    found = sorted(set(re.findall(r"--([a-z-]+)(?:\[?=(\S+))?", text)))
    lines = [f"{name} = {value.lower() if len(value) > 1 else 2}" for name, value in found]
    (seeds / "options").write_text("\n".join(lines) + "\n")
    for line in lines:
        (seeds / line.split()[0]).write_text(line + "\n")
    (seeds / "whole").write_text(
        '# a run\nsize = 64,32\nscale = 1.5asec\noutput = "fuzz"\nweight = briggs:0.5\n'
        "stokes = IQUV\naccuracy = 1e-3\nchannels-out = 2\ncenter = 4h00m00s,-30deg\n"
        "uvrange = 0:1000\nspw = 0,2\nchannels = 1:5\nmemory = 2GB\nobs = obs.uvfits\n")
    (regression / "long").write_text("size = " + "9" * 100000 + "\n")
    (regression / "nul").write_bytes(b"size = 6\0\n")
    (regression / "many").write_text("spw = 1\n" * 2000 + "obs = a\n" * 1200)


def add_checkpoints(program, seeds, regression, numbers):
    """A checkpoint that the fuzzer itself writes, and each number in it changed."""
    seed = seeds / "whole"
    subprocess.run([program, "-runs=0"], check=True, stderr=subprocess.DEVNULL,
                   cwd=seeds, env=dict(os.environ, TESS_FUZZ_SEED=str(seed)))
    text, file = seed.read_bytes().split(b"\0", 1)
    for at in range(8, min(len(file), 256), 8):
        for value in numbers:
            changed = file[:at] + struct.pack("<q", value) + file[at + 8:]
            (regression / f"header-{at}-{value}").write_bytes(text + b"\0" + changed)
    words = text.split(b" ")
    for k, word in enumerate(words):
        number, end, rest = word.partition(b"\n")
        for value in numbers if number.isdigit() else ():
            changed = b" ".join([*words[:k], str(value).encode() + end + rest,
                                 *words[k + 1:]])
            (regression / f"text-{k}-{value}").write_bytes(changed + b"\0" + file)
    (regression / "cut").write_bytes(seed.read_bytes()[:len(text) + 50])


def checkpoint(_make, seeds, regression, program):
    add_checkpoints(program, seeds, regression, (-1, 3, 2**31, 2**61, 2**63 - 1))


def resume(_make, seeds, regression, program):
    """A run takes long: two numbers have to do."""
    add_checkpoints(program, seeds, regression, (-1, 2**61))
