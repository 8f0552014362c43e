# Our ZooKeeper client against Apache's C client, where that is installed.
find_library(ZOOKEEPER_MT zookeeper_mt)
if(ZOOKEEPER_MT AND TARGET np_testing_zookeeper)
  add_executable(zk_client_bench zk_client_bench.cc zk_c_client.cc figures.cc)
  target_include_directories(zk_client_bench PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(zk_client_bench PRIVATE nodepool::testing_zookeeper ${ZOOKEEPER_MT} CLI11::CLI11)
  target_precompile_headers(zk_client_bench REUSE_FROM np_base)
  # Its header declares things with the calling conventions of C.
  set_source_files_properties(zk_c_client.cc PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endif()
