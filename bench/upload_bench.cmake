add_executable(upload_bench upload_bench.cc)
target_link_libraries(upload_bench PRIVATE nodepool::builder nodepool::net CLI11::CLI11)
target_precompile_headers(upload_bench REUSE_FROM np_base)
