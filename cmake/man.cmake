# Manual pages, made by help2man from the program's own help: tessera(1) and
# tessera-COMMAND(1) for each command. Without help2man there are none. A sanitized
# program, and one that cannot run here, are not asked for their help.
find_program(TESS_HELP2MAN help2man DOC "Makes the manual pages")
if(NOT TESS_HELP2MAN OR TESS_SANITIZE OR CMAKE_CROSSCOMPILING)
    message(STATUS "No manual pages (help2man is not used)")
    return()
endif()
set(TESS_MAN_DIR ${CMAKE_BINARY_DIR}/man)
file(MAKE_DIRECTORY ${TESS_MAN_DIR})
set(pages "")

# tess_man_page(PAGE COMMAND OPTION SUMMARY)
macro(tess_man_page page command option summary)
    add_custom_command(OUTPUT ${TESS_MAN_DIR}/${page}.1
        COMMAND ${TESS_HELP2MAN} --no-info --section=1 "--name=${summary}"
                --help-option=${option} "--version-string=${PROJECT_VERSION}"
                "--source=tessera ${PROJECT_VERSION}" "--manual=tessera"
                --output=${TESS_MAN_DIR}/${page}.1 "${command}"
        DEPENDS tessera
        COMMENT "Manual page ${page}(1)" VERBATIM)
    list(APPEND pages ${TESS_MAN_DIR}/${page}.1)
endmacro()

set(program $<TARGET_FILE:tessera>)
tess_man_page(tessera "${program}" --help "radio-interferometric imager")
tess_man_page(tessera-image "${program} image" --help-all "make FITS images from observations")
tess_man_page(tessera-predict "${program} predict" --help-all "predict visibilities from a model image")
tess_man_page(tessera-restore "${program} restore" --help-all "put a model or a list of sources onto a residual")
tess_man_page(tessera-draw "${program} draw" --help-all "draw a list of sources as an image")
tess_man_page(tessera-facets "${program} facets" --help-all "make, check and draw the facets of an image")
tess_man_page(tessera-mosaic "${program} mosaic" --help-all "join images of several pointings")
tess_man_page(tessera-simulate "${program} simulate" --help-all "make an observation of a sky model")
tess_man_page(tessera-info "${program} info" --help-all "describe an observation")
tess_man_page(tessera-plan "${program} plan" --help-all "show how an image would be made")
tess_man_page(tessera-compare "${program} compare" --help-all "compare two FITS files")
tess_man_page(tessera-stats "${program} stats" --help-all "print peak, noise, beam and flux of FITS images")
tess_man_page(tessera-bench "${program} bench" --help-all "time gridding and degridding alone")
tess_man_page(tessera-wsclean "${program} wsclean" --help "do what a command line of WSClean asks for")
tess_man_page(tessera-bench-convolve "${program} bench convolve" --help-all "time convolutions of frames with a PSF")
add_custom_target(man ALL DEPENDS ${pages})
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
