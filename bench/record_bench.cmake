add_executable(record_bench record_bench.cc)
target_link_libraries(record_bench PRIVATE nodepool::model benchmark::benchmark benchmark::benchmark_main)
target_precompile_headers(record_bench REUSE_FROM np_base)
