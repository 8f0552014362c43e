# A steady load for an hour (soak.py).
add_executable(soak_client soak_client.cc load_client.cc)
target_include_directories(soak_client PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(soak_client PRIVATE nodepool::store CLI11::CLI11)
target_precompile_headers(soak_client REUSE_FROM np_base)
