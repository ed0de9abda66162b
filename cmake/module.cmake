# Modules: a folder each, one target each.
#
#   tess_module(grid USES base mpi fft)   in the folder's CMakeLists.txt
#
# makes the object library tess_grid of what target_sources() adds to it, and puts its
# objects into tessera_core. A header named tess_*.h or tess_*.cuh is public: links to a
# module's public headers lie in a folder of the build, which is all that other modules
# search. Any other header is private: the compiler does not find it from outside.

# Folders of private headers, for tests, which look inside.
set_property(GLOBAL PROPERTY TESS_PRIVATE_FOLDERS "")

function(tess_module name)
    cmake_parse_arguments(PARSE_ARGV 1 module "" "" "USES")
    set(target tess_${name})
    set(public ${CMAKE_BINARY_DIR}/modules/${name})
    file(REMOVE_RECURSE ${public}) # a header may have got another name
    file(MAKE_DIRECTORY ${public})
    file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tess_*.h
         ${CMAKE_CURRENT_SOURCE_DIR}/tess_*.cuh)
    foreach(header ${headers})
        get_filename_component(file ${header} NAME)
        file(CREATE_LINK ${header} ${public}/${file} SYMBOLIC)
    endforeach()

    add_library(${target} OBJECT)
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
                               PUBLIC ${public})
    list(TRANSFORM module_USES PREPEND tess_)
    target_link_libraries(${target} PUBLIC tess_settings ${module_USES})
    tess_warnings(${target})
    target_sources(tessera_core PRIVATE $<TARGET_OBJECTS:${target}>)
    set_property(GLOBAL APPEND PROPERTY TESS_PRIVATE_FOLDERS ${CMAKE_CURRENT_SOURCE_DIR})
    set(TESS_MODULE ${target} PARENT_SCOPE)
endfunction()
