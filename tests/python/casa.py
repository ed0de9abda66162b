#!/usr/bin/env python3
"""tessera.casa: what the table says of each value is what is done with it; its options are
those of the program; the page of the manual is made of it; and tclean's files and dictionary."""
import os
import sys
import warnings

import numpy as np

from module import SOURCE
from e2e import ASEC, BIN, ROOT, Suite, fits_module, have_ms, offset_radec, run, simulate, write_sky
import tessera
from tessera import casa
from tessera.casa import _table as table, _translate as translate

PAGE = os.path.join(ROOT, "docs", "manual", "from-casa.md")
GIVEN = dict(vis="a.ms", imagename="x")
fits = fits_module()


def outcome(values):
    """What becomes of a call: its options and notes, or the refusal."""
    try:
        return translate.translate({**GIVEN, **values}), ""
    except translate.Refused as error:
        return None, str(error)


def check_row(row):
    """What is wrong with a row; None: nothing."""
    made, refused = outcome(row.example)
    if row.status == table.REFUSED:
        return None if row.name in refused or not row.example else "is not refused"
    if refused:
        return refused
    if row.status == table.IGNORED and row.example and row.name not in "".join(made.notes):
        return "is ignored without a note"
    return next((f"{key} is {made.options.get(key)!r}" for key, value in row.options.items()
                 if made.options.get(key) != value), None)


def check_table(suite):
    os.makedirs(suite.path("FOLDER"))
    os.chdir(suite.work)
    suite.true("the parameters of tclean in the table, in CASA's order",
               table.names(table.TCLEAN) == list(translate.DEFAULTS))
    suite.equal("rows that are not what is done", [
        (row.name, row.values, wrong) for row in table.TCLEAN
        for wrong in [check_row(row)] if wrong], [])
    whole = table.share_done(table.TCLEAN)
    suite.true(f"{100 * whole:.0f} % of the parameters have values that are done or approximated",
               whole >= .75)
    wrong = outcome(dict(imsiez=3))[1]
    suite.true(f"a name that is not there: {wrong}", "'imsize'" in wrong)
    suite.true("a word that is not there", "'hogbom'" in outcome(dict(deconvolver="hogbon"))[1])


def check_options(suite):
    """Names of options: each is one of the program's."""
    listed = run([BIN, "image", "--help-all"], 60).out
    used = set()
    for row in table.TCLEAN:
        made = outcome(row.example)[0]
        used |= set(made.options) if made else set()
    lacking = [o for o in sorted(used) if f"--{o.replace('_', '-')}" not in listed and o != "log"]
    suite.equal("options of the table that the program lacks", lacking, [])


def check_page(suite):
    made = run([sys.executable, os.path.join(SOURCE, "tessera", "casa", "_table.py")], 60)
    with open(PAGE, encoding="utf-8") as file:
        suite.true("docs/manual/from-casa.md is made of the table; to make it again: python3 "
                   "app/python/tessera/casa/_table.py > docs/manual/from-casa.md",
                   made.out == file.read())


def refusal(call, *kinds):
    try:
        call()
    except kinds as error:
        return str(error)
    return None


def check_refused(suite, obs):
    for what, call in (
            ("interactive", lambda: casa.tclean(vis=obs, imagename="no", interactive=True)),
            ("nitr", lambda: casa.tclean(vis=obs, imagename="no", nitr=3)),
            ("complist", lambda: casa.ft(vis=obs, complist="c.cl")),
            ("fitspec", lambda: casa.uvcontsub(vis=obs, outputvis="no", fitspec="0:1.4~1.5GHz")),
            ("imagename", lambda: casa.tclean(vis=obs)),
            ("imagename='no/x'", lambda: casa.tclean(vis=obs, imagename="no/x"))):
        said = refusal(call, tessera.UsageError, tessera.FileError)
        suite.true(f"{what} is refused: {said}", said and what in said)
    with open("mine.psf.fits", "w") as file:
        file.write("mine")
    said = refusal(lambda: casa.tclean(vis=obs, imagename="mine"), tessera.FileError)
    suite.true(f"a file of others is not replaced: {said}",
               said and os.path.getsize("mine.psf.fits") == 4)
    suite.true("and nothing is left behind", not [n for n in os.listdir() if n[0] == "."])


def data(name):
    with fits.open(name) as file:
        return file[0].data.squeeze().astype(float)


def check_continuum_image(suite, obs):
    """Names, numbers and a restart of one image."""
    call = dict(vis=obs, imagename="sky", imsize=64, cell="20arcsec", weighting="briggs",
                robust=0.5)
    found = casa.tclean(niter=40, threshold="1mJy", nmajor=2, **call)
    names = sorted(n for n in os.listdir() if n.startswith("sky."))
    suite.equal("files", names, ["sky.csv", "sky.image.fits", "sky.model.fits", "sky.psf.fits",
                                 "sky.residual.fits"])
    own = tessera.image(obs, size=64, scale="20asec", weight="briggs:0.5", niter=40, gain=.1,
                        threshold="1mJy", nmiter=2, cyclefactor=1, min_psf_fraction=.05,
                        max_psf_fraction=.8, padding=1, hand_weight="mean", lobe_beam=True, w="none",
                        density_frame="lsrk")
    suite.true("the pixels of tessera.image", np.array_equal(
        data("sky.image.fits"), own.image.data.astype(float)))
    minor = found["summaryminor"][0][0]["I"]
    suite.true(f"the dictionary: {found['iterdone']} iterations, {found['stopDescription']}",
               found["iterdone"] == own.model.header["NITER"] == sum(minor["iterDone"]) and
               found["nmajordone"] == 1 + len(minor["peakRes"]) and
               found["stopcode"] in (1, 9) and found["imagename"] == "sky")
    size = os.path.getsize("sky.image.fits")
    casa.exportfits("sky.image", "sky.image.fits", overwrite=True)
    suite.equal("an image that is exported to its own name stays", size,
                os.path.getsize("sky.image.fits"))
    again = casa.tclean(niter=0, **call)
    suite.true("niter=0 with a model restores it",
               np.allclose(data("sky.model.fits").sum(), own.model.data.sum(), rtol=1e-6) and
               np.allclose(data("sky.image.fits"), own.image.data, atol=1e-4) and
               again["iterdone"] == 0)
    beside = casa.tclean(niter=0, restart=False, restoration=False, **call)
    suite.true("restart=False takes another name", beside["imagename"] == "sky_1" and
               np.allclose(data("sky_1.residual.fits"), own.dirty.data, atol=1e-3) and
               not os.path.exists("sky_1.image.fits"))


def check_empty_mask(suite, obs):
    found = casa.tclean(vis=obs, imagename="empty", imsize=64, cell="20arcsec", niter=9,
                        usemask="auto-multithresh", noisethreshold=1e6, sidelobethreshold=1e6)
    suite.true("an automatic mask that is empty ends cleaning, and tells",
               found["stopcode"] == 7 and found["summaryminor"][0][0]["I"]["iterDone"] == [0])


def check_region(suite, obs):
    casa.tclean(vis=obs, imagename="within", imsize=64, cell="20arcsec", niter=50,
                mask="circle[[60deg, -30deg], 60arcsec]")
    y, x = np.nonzero(data("within.model.fits"))
    suite.true("components lie within a region that is given as text", len(x) > 0 and
               np.all(np.hypot(x - 32, y - 32) <= 3.01))


def check_stokes(suite, obs):
    casa.tclean(vis=obs, imagename="iq", imsize=32, cell="20arcsec", stokes="IQ")
    suite.equal("a file has all Stokes parameters", data("iq.image.fits").shape, (2, 32, 32))


def check_spectra(suite, obs):
    casa.tclean(vis=obs, imagename="terms", imsize=64, cell="20arcsec", deconvolver="mtmfs",
                nterms=2, niter=60, reffreq="1.35GHz")
    wanted = ["alpha", "alpha.error", "image.tt0", "image.tt1", "model.cube", "model.tt0",
              "psf.tt0", "residual.tt0"]
    suite.equal("files of mtmfs", sorted(n[6:-5] for n in os.listdir()
                                         if n.startswith("terms.") and n.endswith(".fits")), wanted)
    peak = np.unravel_index(np.argmax(data("terms.image.tt0.fits")), (64, 64))
    index = data("terms.alpha.fits")[peak]
    flux = data("terms.image.tt0.fits")[peak]
    suite.true(f"whose flux is that at reffreq, {(1.35 / 1.28) ** -.7:.3f} Jy: {flux:.3f}",
               abs(flux / (1.35 / 1.28) ** -.7 - 1) < .01)
    suite.true(f"the spectral index of the brightest source, -0.7: {index:.3f}",
               abs(index + .7) < .05)


def check_cube(suite, obs):
    """A cube of lines, of which uvcontsub takes the continuum."""
    casa.uvcontsub(vis=obs, outputvis="a.contsub", fitspec="0:0~2;5~7", fitorder=1)
    casa.tclean(vis="a.contsub", imagename="line", specmode="cube", outframe="TOPO", imsize=64,
                cell="20arcsec", niter=5)
    own = tessera.image(obs, size=64, scale="20asec", weight="natural", niter=5, gain=.1, cube=True,
                        frame="topo", interpolation="linear", uvcontsub=1, line_channels="3~4",
                        nmiter=0, hand_weight="mean", lobe_beam=True, w="none")
    said = refusal(lambda: casa.tclean(vis="a.contsub", imagename="line", imsize=64, cell="20arcsec", niter=5,
                                       savemodel="modelcolumn"), tessera.UsageError)
    suite.true(f"savemodel of what uvcontsub has left: {said}", said and said.startswith("savemodel='modelcolumn'"))
    image = data("line.image.fits")
    suite.true("channels of a cube without the continuum", image.shape == (8, 64, 64) and
               np.array_equal(image[3], own.select(kind="image", channel=3)[0].data.astype(float)))


def check_ft(suite, obs):
    if not have_ms():
        suite.skipped("ft: built without MeasurementSets")
        return
    simulate("copy.ms", "sky.csv", duration="4min", integration="60s", layout="vla-d", channels=2)
    tessera.predict("copy.ms", model="sky.model.fits", column="DATA", overwrite=True)
    casa.ft(vis="copy.ms", model="sky.model", usescratch=True)
    rest = tessera.image("copy.ms", size=32, scale="20asec", datacolumn="DATA",
                         subtract_column="MODEL_DATA", no_psf=True)
    suite.below("ft writes MODEL_DATA", np.abs(rest.dirty.data).max(), 1e-5)
    check_cube_model(suite)
    tessera.predict("copy.ms", model=2 * data("sky.model.fits"), scale="20asec",
                    column="MODEL_DATA", overwrite=True)
    casa.tclean(vis="copy.ms", imagename="sky", imsize=64, cell="20arcsec", datacolumn="data",
                savemodel="modelcolumn", gridder="wproject", restoringbeam="90arcsec")
    rest = tessera.image("copy.ms", size=32, scale="20asec", datacolumn="DATA",
                         subtract_column="MODEL_DATA", no_psf=True)
    suite.below("and so does niter=0 with a model", np.abs(rest.dirty.data).max(), 1e-5)
    suite.below("whose restoring beam is the given one",
                abs(fits.getheader("sky.image.fits")["BMAJ"] * 3600 - 90), 1e-3)


def check_cube_model(suite):
    """The models of a cube are not written while it is made, and ft writes them afterwards."""
    cube = dict(vis="copy.ms", imagename="line", imsize=32, cell="20arcsec", datacolumn="data", niter=20,
                specmode="cubedata")
    for how in ("modelcolumn", "virtual"):
        said = refusal(lambda: casa.tclean(savemodel=how, **cube), tessera.UsageError)
        suite.true(f"savemodel of a cube: {said}", said and said.startswith(f"savemodel={how!r}") and "ft(" in said)
    casa.tclean(**{**cube, "imagename": "ours"})
    casa.ft(vis="copy.ms", model="ours.model", usescratch=True)
    made = tessera.predict("copy.ms", model="ours.model.fits")[0].vis
    rest = [np.abs(tessera.image("copy.ms", size=32, scale="20asec", datacolumn="MODEL_DATA", no_psf=True, **less)
                   .dirty.data).max() for less in ({}, dict(subtract="ours.model.fits"))]
    suite.true(f"ft of a cube: {rest}", np.abs(made).max() > 0 and rest[1] < 1e-3 * rest[0])


def check_mosaic(suite):
    """Two pointings, in one image; their model columns see the model through their beams."""
    if not have_ms():
        suite.skipped("mosaics: built without MeasurementSets")
        return
    ra, dec = offset_radec(60, -30, 1000 * ASEC, 350 * ASEC)  # the middle of a pixel
    write_sky("apart.csv", [dict(ra="60deg", dec="-30deg", flux_jy=1),
                            dict(ra=f"{ra:.10f}deg", dec=f"{dec:.10f}deg", flux_jy=2)])
    simulate("two.ms", "apart.csv", duration="8min", integration="60s", layout="vla-d", channels=1,
             extra=("--pointings", "hex:2,20amin", "--primary-beam", "auto"))
    casa.tclean(vis="two.ms", imagename="two", imsize=128, cell="25arcsec", gridder="mosaic", niter=200, pbcor=True,
                threshold="5mJy", savemodel="modelcolumn", datacolumn="data", phasecenter="J2000 60deg -30deg")
    suite.equal("files of a mosaic", sorted(n[4:-5] for n in os.listdir() if n.startswith("two.") and
                                            n.endswith(".fits")),
                ["image", "image.pbcor", "model", "pb", "psf", "residual", "weight"])
    found = np.nanmax(data("two.image.pbcor.fits"))
    suite.true(f"the flux of the brighter source, 2 Jy: {found:.3f}", abs(found - 2) < .04)
    check_earlier(suite)
    for field in ("", "0,1", "0~1", [0, 1]):
        said = refusal(lambda: casa.ft(vis="two.ms", field=field, model="two.model"), tessera.UsageError)
        suite.true(f"ft of several fields, {field!r}: {said}", said and "once for each field" in said)
    peaks = {}
    for column in ("DATA", "MODEL_DATA"):
        peaks[column] = [np.abs(tessera.image("two.ms", size=128, scale="25asec", field=str(k), datacolumn=column,
                                              no_psf=True).dirty.data).max() for k in (0, 1)]
    suite.true(f"each field's model is near its data: {peaks}",
               np.allclose(peaks["DATA"], peaks["MODEL_DATA"], rtol=.03))


def check_earlier(suite):
    """Images of an earlier call that a later one does not make stay, and are told of."""
    before = data("two.image.pbcor.fits")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        casa.tclean(vis="two.ms", imagename="two", imsize=128, cell="25arcsec", niter=0, field="0", datacolumn="data",
                    phasecenter="J2000 60deg -30deg")
    told = [str(w.message) for w in caught if "earlier call" in str(w.message)]
    suite.true(f"earlier images: {told}", len(told) == 1 and told[0].endswith(
        "two.image.pbcor.fits, two.pb.fits, two.weight.fits"))
    suite.true("stay", np.array_equal(data("two.image.pbcor.fits"), before, equal_nan=True))


def main():
    suite = Suite("python_casa")
    warnings.simplefilter("ignore", tessera.TesseraWarning)
    check_table(suite)
    check_options(suite)
    check_page(suite)
    sky = write_sky(suite.path("sky.csv"), [
        dict(ra="60deg", dec="-30deg", flux_jy=1, spectral_index=-.7, ref_freq="1.28GHz"),
        dict(ra="60.05deg", dec="-30.04deg", flux_jy=.4)])
    obs = simulate(suite.path("obs.uvfits"), sky, duration="10min", integration="60s",
                   channels=8, width="20MHz")
    check_refused(suite, obs)
    check_continuum_image(suite, obs)
    check_empty_mask(suite, obs)
    check_region(suite, obs)
    check_stokes(suite, obs)
    check_spectra(suite, obs)
    check_cube(suite, obs)
    check_ft(suite, obs)
    check_mosaic(suite)
    suite.finish()


if __name__ == "__main__":
    main()
