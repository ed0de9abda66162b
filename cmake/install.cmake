# What `cmake --install` installs beside the program, which app/ installs: the library, its
# headers, what find_package(tessera) and pkg-config need, manual pages, completion, batch
# scripts, examples, documentation and licence.
include(CMakePackageConfigHelpers)
set(TESS_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)

install(TARGETS tessera_shared EXPORT tesseraTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION ${TESS_CONFIG_DIR})

configure_package_config_file(cmake/tesseraConfig.cmake.in
    ${CMAKE_BINARY_DIR}/generated/tesseraConfig.cmake
    INSTALL_DESTINATION ${TESS_CONFIG_DIR})
# Before 1.0 a new second number may change anything.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/tesseraConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/tesseraConfig.cmake
              ${CMAKE_BINARY_DIR}/generated/tesseraConfigVersion.cmake
        DESTINATION ${TESS_CONFIG_DIR})

# Paths relative to the file itself, so that --prefix may be given when installing.
file(RELATIVE_PATH TESS_PREFIX_FROM_PC
     /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/tessera.pc.in ${CMAKE_BINARY_DIR}/generated/tessera.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/tessera.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The environment module names the folder that is installed to, which is known only then.
set(TESS_MODULE_FILE ${CMAKE_INSTALL_DATADIR}/modulefiles/tessera/${PROJECT_VERSION})
set(TESS_MODULE_PREFIX "@TESS_MODULE_PREFIX@")
configure_file(jobs/packages/modulefile.in ${CMAKE_BINARY_DIR}/generated/modulefile.in @ONLY)
install(CODE "
    set(TESS_MODULE_PREFIX \"\${CMAKE_INSTALL_PREFIX}\")
    set(module_file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${TESS_MODULE_FILE}\")
    configure_file(\"${CMAKE_BINARY_DIR}/generated/modulefile.in\" \"\${module_file}\" @ONLY)
    message(STATUS \"Installing: \${module_file}\")
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${module_file}\")
")

include(cmake/man.cmake)
install(FILES app/cli/completion/tessera.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tessera)
install(FILES app/cli/completion/_tessera
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)

# The batch scripts and studies find tessera on PATH. quickstart.sh builds the source and
# is of no use elsewhere.
install(DIRECTORY jobs DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera
        USE_SOURCE_PERMISSIONS
        PATTERN "quickstart*" EXCLUDE
        PATTERN "packages" EXCLUDE
        PATTERN "example" EXCLUDE
        PATTERN "__pycache__" EXCLUDE)
install(FILES tests/bench/triad.c tests/bench/gcf_ncu.py
        DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera/tests/bench)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera
        USE_SOURCE_PERMISSIONS PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY docs/manual docs/design docs/results docs/images
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md LICENSE NOTICE CHANGELOG.md CITATION.cff
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
