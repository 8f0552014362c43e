# The memory of nodes.
if(TARGET np_testing_zk)
  add_executable(memory_bench memory_bench.cc figures.cc)
  target_include_directories(memory_bench PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(memory_bench PRIVATE nodepool::store nodepool::testing_zk CLI11::CLI11)
  target_precompile_headers(memory_bench REUSE_FROM np_base)
endif()
