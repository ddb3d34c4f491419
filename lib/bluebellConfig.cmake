# SPDX-License-Identifier: BSD-3-Clause
# find_package(bluebell) gives the targets bluebell::bluebell, for any program, and bluebell::soft, which a static
# program names as well. Both come from the pkg-config files beside this one.
include(CMakeFindDependencyMacro)
find_dependency(PkgConfig)

set(bluebell_saved_path "$ENV{PKG_CONFIG_PATH}")
set(ENV{PKG_CONFIG_PATH} "${CMAKE_CURRENT_LIST_DIR}/../../pkgconfig:$ENV{PKG_CONFIG_PATH}")
foreach(bluebell_part bluebell bluebell-soft)
  string(REPLACE "bluebell-" "" bluebell_name ${bluebell_part})
  if(NOT TARGET bluebell::${bluebell_name})
    pkg_check_modules(BLUEBELL_${bluebell_name} QUIET IMPORTED_TARGET ${bluebell_part})
    if(NOT BLUEBELL_${bluebell_name}_FOUND)
      set(bluebell_FOUND FALSE)
      set(bluebell_NOT_FOUND_MESSAGE
        "pkg-config does not find ${bluebell_part} or a package that it needs; see: pkg-config --print-errors ${bluebell_part}")
      break()
    endif()
    add_library(bluebell::${bluebell_name} INTERFACE IMPORTED)
    target_link_libraries(bluebell::${bluebell_name} INTERFACE PkgConfig::BLUEBELL_${bluebell_name})
  endif()
endforeach()
set(ENV{PKG_CONFIG_PATH} "${bluebell_saved_path}")
