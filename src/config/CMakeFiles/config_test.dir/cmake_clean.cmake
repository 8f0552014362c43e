file(REMOVE_RECURSE
  "../../bin/config_test"
  "../../bin/config_test.pdb"
  "CMakeFiles/config_test.dir/config_loader_test.cc.o"
  "CMakeFiles/config_test.dir/config_loader_test.cc.o.d"
  "CMakeFiles/config_test.dir/disk_images_test.cc.o"
  "CMakeFiles/config_test.dir/disk_images_test.cc.o.d"
  "CMakeFiles/config_test.dir/scalar_test.cc.o"
  "CMakeFiles/config_test.dir/scalar_test.cc.o.d"
  "CMakeFiles/config_test.dir/schema_test.cc.o"
  "CMakeFiles/config_test.dir/schema_test.cc.o.d"
  "CMakeFiles/config_test.dir/validator_test.cc.o"
  "CMakeFiles/config_test.dir/validator_test.cc.o.d"
  "CMakeFiles/config_test.dir/yaml_reader_test.cc.o"
  "CMakeFiles/config_test.dir/yaml_reader_test.cc.o.d"
)

# Per-language clean rules from dependency scanning.
foreach(lang CXX)
  include(CMakeFiles/config_test.dir/cmake_clean_${lang}.cmake OPTIONAL)
endforeach()
