# One static library per folder of src/, linked only to what it names. The
# floors are listed in ARCHITECTURE.md; tools/check-includes enforces them.

# Settings shared by every target: warnings, sanitizers, Asio compiled once.
add_library(np_options INTERFACE)
target_compile_options(np_options INTERFACE -Wall -Wextra -Wpedantic -Wno-missing-field-initializers)
target_compile_definitions(np_options INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED
  SPDLOG_FMT_EXTERNAL)
target_include_directories(np_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  # libstdc++ offers std::expected only to compilers that announce the final
  # concepts; these releases of clang implement what it needs but announce less.
  target_compile_definitions(np_options INTERFACE __cpp_concepts=202002L)
  target_compile_options(np_options INTERFACE -Wno-builtin-macro-redefined -Wno-macro-redefined)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # With the times of its files in a precompiled header, or the place of the clone in an assertion, ccache finds
  # nothing that was compiled elsewhen or elsewhere.
  target_compile_options(np_options INTERFACE "SHELL:-Xclang -fno-pch-timestamp" -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC reports these on correct inlined std::string and coroutine code.
  target_compile_options(np_options INTERFACE -Wno-restrict -Wno-dangling-pointer -Wno-maybe-uninitialized
                         -Wno-mismatched-new-delete)
  # Collecting garbage takes a tenth of the time that a unit of a unity build needs to compile.
  target_compile_options(np_options INTERFACE --param=ggc-min-expand=200 --param=ggc-min-heapsize=1048576)
  # From release 13 on, -O2 sets these for amd64, and a precompiled header fits only what is compiled with them.
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13 AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(np_options INTERFACE -munroll-only-small-loops)
    set(NODEPOOL_SET_BY_O2 -mvzeroupper)
  endif()
  # A unity build includes sources, and GCC takes their unnamed types for those of headers.
  target_compile_options(np_options INTERFACE -Wno-subobject-linkage)
endif()
if(NODEPOOL_SANITIZE)
  target_compile_options(np_options INTERFACE -fsanitize=${NODEPOOL_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(np_options INTERFACE -fsanitize=${NODEPOOL_SANITIZE})
endif()
if(NODEPOOL_SANITIZE MATCHES "undefined")
  # These two check each access to a member, which takes a fifth of the time to compile. A null pointer ends the
  # program anyway, and buffers that are read as records of the kernel are aligned.
  target_compile_options(np_options INTERFACE -fno-sanitize=null,alignment)
endif()
if(NODEPOOL_BUILD_FUZZERS)
  # Only what fuzzers explore reports its coverage: a test would take a quarter longer to compile.
  target_compile_options(np_options INTERFACE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:NODEPOOL_IS_TEST>>>:-fsanitize=fuzzer-no-link>)
  target_link_options(np_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# nodepool_library(<folder> [RUNS_RARELY] SOURCES ... [DEPS nodepool::x ...] [LIBS third-party ...])
# RUNS_RARELY: code that runs once, when a person asks, or as often as a cloud answers, is optimised less to be built sooner.
function(nodepool_library name)
  cmake_parse_arguments(arg "RUNS_RARELY" "" "SOURCES;DEPS;LIBS" ${ARGN})
  string(REPLACE "/" "_" target np_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  string(REPLACE "/" "::" alias nodepool::${name})
  add_library(${alias} ALIAS ${target})
  target_link_libraries(${target} PUBLIC np_options ${arg_DEPS} ${arg_LIBS})
  if(arg_RUNS_RARELY)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1> ${NODEPOOL_SET_BY_O2})
  endif()
  if(NOT name STREQUAL "base")
    target_precompile_headers(${target} REUSE_FROM np_base)
  endif()
endfunction()

# Folders whose headers are the API of drivers (installed by cmake/DriverPackage.cmake).
set(NODEPOOL_DRIVER_API base async model config zk net process store driver_section driver driver_cloud
    driver_cloud_api)

# The program exports its functions, also for the names in stack dumps, and has the whole
# API in it, so that drivers loaded from shared objects find what they use.
function(nodepool_hosts_drivers target)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
  list(TRANSFORM NODEPOOL_DRIVER_API PREPEND np_ OUTPUT_VARIABLE libraries)
  set(files ${libraries})
  list(TRANSFORM files REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  target_link_options(${target} PRIVATE LINKER:--whole-archive ${files} LINKER:--no-whole-archive)
  target_link_libraries(${target} PRIVATE ${libraries})
endfunction()

# Tests, and what only tests use, are compiled without optimisation and with a precompiled
# header of their own: they need not be fast, but quick to build.
function(nodepool_mark_as_test target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0> $<$<CONFIG:RelWithDebInfo>:-g0>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 19)
    # It reports, in rapidcheck's headers, what libstdc++ 14 discourages.
    target_compile_options(${target} PRIVATE -Wno-deprecated-declarations)
  endif()
  set_target_properties(${target} PROPERTIES NODEPOOL_IS_TEST TRUE)
endfunction()

function(nodepool_test_headers)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cc CONTENT "")
  add_library(np_test_headers OBJECT ${CMAKE_BINARY_DIR}/test_headers.cc)
  target_link_libraries(np_test_headers PRIVATE nodepool::base GTest::gmock)
  nodepool_mark_as_test(np_test_headers)
  get_target_property(headers np_base PRECOMPILE_HEADERS)
  target_precompile_headers(np_test_headers PRIVATE ${headers} <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

function(nodepool_build_quickly target)
  if(NOT TARGET np_test_headers)
    nodepool_test_headers()
  endif()
  target_precompile_headers(${target} REUSE_FROM np_test_headers)
  # As GTest's own targets have it: the precompiled header fits only what has the same definitions.
  target_compile_definitions(${target} PRIVATE GTEST_HAS_PTHREAD=1)
  nodepool_mark_as_test(${target})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL TRUE)  # built for the tests that use it
  endif()
endfunction()

# nodepool_test(<name> [SHARDS n] SOURCES ... [DEPS ...] [LIBS ...]): one binary, registered
# with CTest by name, or as n tests that run a part of it each; the tests inside run in any order and beside each other. The target
# `unit_tests` builds all of them, `all` builds none.
function(nodepool_test name)
  if(NOT NODEPOOL_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "SHARDS" "SOURCES;DEPS;LIBS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
  add_dependencies(unit_tests ${name})
  target_link_libraries(${name} PRIVATE np_options ${arg_DEPS} ${arg_LIBS} GTest::gmock GTest::gtest_main)
  nodepool_build_quickly(${name})
  if(NOT arg_SHARDS)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES TIMEOUT 600)
    return()
  endif()
  foreach(number RANGE 1 ${arg_SHARDS})
    math(EXPR index "${number} - 1")
    # Programs of one name that begin together would choose the same file.
    add_test(NAME ${name}_${number}
      COMMAND ${name} --gtest_brief=1 --gtest_output=xml:${CMAKE_BINARY_DIR}/test-results/${name}_${number}.xml)
    set_tests_properties(${name}_${number} PROPERTIES TIMEOUT 600
      COST 90  # with sanitizers they take as long as all others; they begin first
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
