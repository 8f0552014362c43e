# The embedded server against Apache's.
if(TARGET np_testing_zookeeper)
  add_executable(zk_server_bench zk_server_bench.cc figures.cc)
  target_include_directories(zk_server_bench PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(zk_server_bench PRIVATE nodepool::testing_zookeeper CLI11::CLI11)
  target_precompile_headers(zk_server_bench REUSE_FROM np_base)
endif()
