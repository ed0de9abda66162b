"""UVFITS and direct sums in numpy, independent of tessera.

Reader and writer follow AIPS Memo 117; both return what the file's single precision
really holds, so that sums over it are exact.
"""
import io

import numpy as np

from e2e import C_M_S, fits_module

BLOCK = 2880
MJD_ZERO_JD = 2400000.5


def random_tracks(rows, extent_m, w_fraction=0.3, seed=1):
    """uvw [rows, 3] metres, uniform in a box: |u|, |v| < extent, |w| < w_fraction of it."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (rows, 3)) * extent_m * np.array([1, 1, w_fraction])


def stored_uvw(uvw_m):
    """What a UVFITS file keeps of uvw: single-precision seconds."""
    return (uvw_m / C_M_S).astype("f4").astype("f8") * C_M_S


def table_bytes(hdus):
    fits = fits_module()
    buffer = io.BytesIO()
    fits.HDUList([fits.PrimaryHDU()] + hdus).writeto(buffer)
    return buffer.getvalue()[BLOCK:]


def _antenna_table(count, freq_hz):
    fits = fits_module()
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    xyz = np.stack([300 * np.cos(angle), 300 * np.sin(angle), 20 * angle], 1)
    one = np.zeros(count)
    columns = [
        fits.Column("ANNAME", "8A", array=[f"A{i:02d}" for i in range(count)]),
        fits.Column("STABXYZ", "3D", unit="METERS", array=xyz),
        fits.Column("NOSTA", "1J", array=np.arange(1, count + 1)),
        fits.Column("MNTSTA", "1J", array=one),
        fits.Column("STAXOF", "1E", unit="METERS", array=one),
        fits.Column("POLTYA", "1A", array=["X"] * count),
        fits.Column("POLAA", "1E", array=one),
        fits.Column("POLTYB", "1A", array=["Y"] * count),
        fits.Column("POLAB", "1E", array=one)]
    table = fits.BinTableHDU.from_columns(columns, name="AIPS AN", ver=1)
    table.header.update(ARRAYX=5109271.5, ARRAYY=2006808.9, ARRAYZ=-3239130.7,
                        GSTIA0=100.0, DEGPDY=360.9856, FREQ=freq_hz, RDATE="2026-01-01",
                        POLARX=0.0, POLARY=0.0, UT1UTC=0.0, DATUTC=0.0, TIMSYS="UTC",
                        ARRNAM="TEST", NUMORB=0, NOPCAL=0, FREQID=1, IATUTC=37.0)
    return table


def _source_table(sources):
    fits = fits_module()
    n = len(sources)
    columns = [
        fits.Column("ID. NO.", "1J", array=np.arange(1, n + 1)),
        fits.Column("SOURCE", "16A", array=[s[0] for s in sources]),
        fits.Column("QUAL", "1J", array=np.zeros(n)),
        fits.Column("CALCODE", "4A", array=[""] * n),
        fits.Column("FREQOFF", "1D", unit="HZ", array=np.zeros(n)),
        fits.Column("RAEPO", "1D", unit="DEGREES", array=[s[1] for s in sources]),
        fits.Column("DECEPO", "1D", unit="DEGREES", array=[s[2] for s in sources]),
        fits.Column("EPOCH", "1D", unit="YEARS", array=np.full(n, 2000.0)),
        fits.Column("RAAPP", "1D", unit="DEGREES", array=[s[1] for s in sources]),
        fits.Column("DECAPP", "1D", unit="DEGREES", array=[s[2] for s in sources])]
    table = fits.BinTableHDU.from_columns(columns, name="AIPS SU", ver=1)
    table.header.update(NO_IF=1, FREQID=1, VELTYP="OPTICAL", VELDEF="")
    return table


def _frequency_table(width_hz, channels):
    fits = fits_module()
    columns = [fits.Column("FRQSEL", "1J", array=[1]),
               fits.Column("IF FREQ", "1D", unit="HZ", array=[0.0]),
               fits.Column("CH WIDTH", "1E", unit="HZ", array=[width_hz]),
               fits.Column("TOTAL BANDWIDTH", "1E", unit="HZ",
                           array=[width_hz * channels]),
               fits.Column("SIDEBAND", "1J", array=[1])]
    table = fits.BinTableHDU.from_columns(columns, name="AIPS FQ", ver=1)
    table.header["NO_IF"] = 1
    return table


def write(path, uvw_m, freq_hz, vis, weight, corr_first=-5, ra_deg=60.0, dec_deg=-30.0,
          antennas=16, sources=None, source_of_row=None, cards=None, autos=False):
    """Write vis [rows, channels, correlations] with codes corr_first, corr_first-1...
    (Stokes +1, +2... upwards). `sources`: (name, ra, dec) of a multi-source file.
    `cards` replaces header cards. Returns uvw as stored."""
    fits = fits_module()
    rows, channels, corrs = vis.shape
    freq_hz = np.atleast_1d(freq_hz)
    width = float(freq_hz[1] - freq_hz[0]) if channels > 1 else 1e6
    first, second = np.triu_indices(antennas, 0 if autos else 1)
    pair = np.arange(rows) % len(first)
    seconds = (np.arange(rows) // len(first)) * 10.0
    uvw_s = (uvw_m / C_M_S).astype("f4")
    groups = [uvw_s[:, 0], uvw_s[:, 1], uvw_s[:, 2],
              np.zeros(rows), seconds / 86400.0,
              256.0 * (first[pair] + 1) + second[pair] + 1, np.full(rows, 10.0)]
    names = ["UU---SIN", "VV---SIN", "WW---SIN", "DATE", "DATE", "BASELINE", "INTTIM"]
    zeros = [0.0] * 7
    zeros[3] = 61041.0 + MJD_ZERO_JD
    if sources:
        groups.append(np.asarray(source_of_row) + 1.0)
        names.append("SOURCE")
        zeros.append(0.0)
    header = fits.Header()
    header["SIMPLE"], header["BITPIX"] = True, -32
    axes = [0, 3, corrs, channels, 1, 1, 1]
    header["NAXIS"] = len(axes)
    for i, n in enumerate(axes):
        header[f"NAXIS{i + 1}"] = n
    header["EXTEND"], header["GROUPS"] = True, True
    header["PCOUNT"], header["GCOUNT"] = len(groups), rows
    for i, (name, zero) in enumerate(zip(names, zeros)):
        header[f"PTYPE{i + 1}"] = name
        header[f"PSCAL{i + 1}"], header[f"PZERO{i + 1}"] = 1.0, zero
    step = 1.0 if corr_first > 0 else -1.0
    for i, (name, value, delta) in enumerate(
            [("COMPLEX", 1.0, 1.0), ("STOKES", float(corr_first), step),
             ("FREQ", float(freq_hz[0]), width), ("IF", 1.0, 1.0),
             ("RA", ra_deg, 1.0), ("DEC", dec_deg, 1.0)]):
        k = i + 2
        header[f"CTYPE{k}"], header[f"CRVAL{k}"] = name, value
        header[f"CRPIX{k}"], header[f"CDELT{k}"] = 1.0, delta
    header["OBJECT"], header["TELESCOP"] = "MULTI" if sources else "TEST", "TEST"
    header["DATE-OBS"], header["EPOCH"], header["BUNIT"] = "2026-01-01", 2000.0, "JY"
    for key, value in (cards or {}).items():
        header[key] = value

    record = np.empty((rows, len(groups) + 3 * corrs * channels), ">f4")
    record[:, :len(groups)] = np.stack(groups, 1)
    samples = np.stack([vis.real, vis.imag, np.broadcast_to(weight, vis.shape)], -1)
    record[:, len(groups):] = samples.reshape(rows, -1)
    raw = record.tobytes()
    tables = [_antenna_table(antennas, float(freq_hz[0])),
              _frequency_table(width, channels)]
    if sources:
        tables.append(_source_table(sources))
    with open(path, "wb") as f:
        f.write(header.tostring(padding=True).encode())
        f.write(raw + b"\0" * (-len(raw) % BLOCK))
        f.write(table_bytes(tables))
    return stored_uvw(uvw_m)


def read(path):
    """uvw [rows, 3] metres, freq [IF × channels] Hz, vis and weight [rows, IF × channels,
    correlations], correlation codes. One IF axis at most, FQ table as AIPS writes it."""
    fits = fits_module()
    with open(path, "rb") as f:
        header = fits.Header.fromfile(f)
        start = f.tell()
    dims = [header[f"NAXIS{i}"] for i in range(2, header["NAXIS"] + 1)]
    params, rows = header["PCOUNT"], header["GCOUNT"]
    record = np.fromfile(path, ">f4", rows * (params + int(np.prod(dims))), offset=start)
    record = record.reshape(rows, -1).astype("f4")
    named = {}
    for i in range(params):
        key = header[f"PTYPE{i + 1}"].strip()
        value = (record[:, i].astype("f8") * header.get(f"PSCAL{i + 1}", 1.0)
                 + header.get(f"PZERO{i + 1}", 0.0))
        named[key] = named.get(key, 0.0) + value
    uvw = np.stack([next(v for k, v in named.items() if k.startswith(c))
                    for c in ("UU", "VV", "WW")], 1) * C_M_S
    axis = {str(header.get(f"CTYPE{i}", "")).strip(): i
            for i in range(2, header["NAXIS"] + 1)}

    def along(name, i):
        k = axis[name]
        return header[f"CRVAL{k}"] + (i + 1 - header[f"CRPIX{k}"]) * header[f"CDELT{k}"]

    channels, corrs = header[f"NAXIS{axis['FREQ']}"], header[f"NAXIS{axis['STOKES']}"]
    freq = along("FREQ", np.arange(channels))
    ifs = header[f"NAXIS{axis['IF']}"] if "IF" in axis else 1
    if ifs > 1:
        offsets = np.ravel(fits.getdata(path, "AIPS FQ")["IF FREQ"][0])
        freq = (offsets[:, None] + freq[None]).ravel()
    data = record[:, params:].reshape(rows, ifs * channels, corrs, dims[0])
    codes = np.rint(along("STOKES", np.arange(corrs))).astype(int)
    vis = data[..., 0].astype("f8") + 1j * data[..., 1]
    weight = data[..., 2].astype("f8") if dims[0] > 2 else np.ones(vis.shape)
    return uvw, np.atleast_1d(freq), vis, weight, codes


def pixel_lm(nx, ny, scale_rad):
    """l, m [ny, nx] of the pixels: column 0 easternmost, row 0 southernmost."""
    return np.meshgrid(-(np.arange(nx) - nx // 2) * scale_rad,
                       (np.arange(ny) - ny // 2) * scale_rad)


def n_minus_1(l, m):
    r = l * l + m * m
    return -r / (np.sqrt(1 - r) + 1)


def stokes_i(vis, weight):
    """Mean of the two parallel hands where both are good, and the smaller weight."""
    good = (np.isfinite(vis) & np.isfinite(weight) & (weight > 0)).all(-1)
    mean = np.where(good, vis.mean(-1), 0)
    return mean, np.where(good, weight.min(-1), 0.0)


def phase_block(size):
    """How many times `size` phases are taken at a time: a few MiB, which stay in a processor's cache."""
    return 1 + (1 << 18) // max(1, size)


def direct_dirty(uvw_m, freq_hz, vis, weight, nx, ny, scale_rad):
    """D = sum W Re{V exp(-2 pi i (u l + v m + w (n - 1)))} / sum W, for one Stokes
    parameter: vis, weight [rows, channels]. Samples beyond 1/(2 scale) are left out."""
    lam = freq_hz[None, :] / C_M_S
    u, v, w = (uvw_m[:, k:k + 1] * lam for k in range(3))
    limit = 0.5 / scale_rad
    use = (weight > 0) & (np.abs(u) < limit) & (np.abs(v) < limit)
    u, v, w = u[use], v[use], w[use]
    value = (vis * weight)[use]
    l, m = pixel_lm(nx, ny, scale_rad)
    l, m = l.ravel(), m.ravel()
    nm1 = n_minus_1(l, m)
    out = np.zeros(l.size)
    block = phase_block(l.size)
    for a in range(0, u.size, block):
        s = slice(a, a + block)
        turns = (np.outer(l, u[s]) + np.outer(m, v[s]) + np.outer(nm1, w[s]))
        turns -= np.rint(turns)
        phase = 2 * np.pi * turns
        out += np.cos(phase) @ value[s].real + np.sin(phase) @ value[s].imag
    return out.reshape(ny, nx) / weight[use].sum()


def direct_predict(uvw_m, freq_hz, image, scale_rad, shift=(0.0, 0.0)):
    """V [rows, channels] = sum S exp(+2 pi i (u l + v m + w (n - 1))) of an image whose
    phase centre lies `shift` pixels (x, y) from its middle one."""
    ny, nx = image.shape
    l, m = pixel_lm(nx, ny, scale_rad)
    l, m = l + shift[0] * scale_rad, m - shift[1] * scale_rad
    lit = (image != 0) & np.isfinite(image) & (l * l + m * m < 1)
    l, m, flux = l[lit], m[lit], image[lit]
    out = np.empty((len(uvw_m), len(freq_hz)), complex)
    block = phase_block(flux.size)
    for a in range(0, len(uvw_m), block):
        delay = uvw_m[a:a + block] @ np.stack([l, m, n_minus_1(l, m)])
        for k, f in enumerate(freq_hz):
            turns = delay * (f / C_M_S)
            phase = 2 * np.pi * (turns - np.rint(turns))
            out[a:a + block, k] = np.cos(phase) @ flux + 1j * (np.sin(phase) @ flux)
    return out


def write_model(path, image, scale_rad, ra_deg=60.0, dec_deg=-30.0, freq_hz=1.4e9,
                stokes=1, shift=(0.0, 0.0)):
    """Model image in Jy/pixel, double precision; its reference pixel lies `shift` pixels
    (x, y) from the middle one."""
    fits = fits_module()
    ny, nx = image.shape[-2:]
    planes = image if image.ndim == 3 else image[None]
    hdu = fits.PrimaryHDU(planes[:, None].astype("f8"))
    deg = np.rad2deg(scale_rad)
    for k, (name, value, pixel, delta, unit) in enumerate(
            [("RA---SIN", ra_deg, nx // 2 + 1.0 + shift[0], -deg, "deg"),
             ("DEC--SIN", dec_deg, ny // 2 + 1.0 + shift[1], deg, "deg"),
             ("FREQ", freq_hz, 1.0, 1e6, "Hz"), ("STOKES", stokes, 1.0, 1.0, "")]):
        hdu.header[f"CTYPE{k + 1}"], hdu.header[f"CRVAL{k + 1}"] = name, value
        hdu.header[f"CRPIX{k + 1}"], hdu.header[f"CDELT{k + 1}"] = pixel, delta
        hdu.header[f"CUNIT{k + 1}"] = unit
    hdu.header["EQUINOX"], hdu.header["BUNIT"] = 2000.0, "JY/PIXEL"
    hdu.writeto(path, overwrite=True)
    return path
