# A toolchain file: the newest clang that is installed.
execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../tools/newest-llvm clang++
  OUTPUT_VARIABLE CMAKE_CXX_COMPILER OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
