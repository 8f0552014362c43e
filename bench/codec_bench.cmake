add_executable(codec_bench codec_bench.cc)
target_link_libraries(codec_bench PRIVATE nodepool::zk benchmark::benchmark benchmark::benchmark_main)
target_precompile_headers(codec_bench REUSE_FROM np_base)
