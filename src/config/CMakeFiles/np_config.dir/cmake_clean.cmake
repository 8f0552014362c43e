file(REMOVE_RECURSE
  "CMakeFiles/np_config.dir/config_loader.cc.o"
  "CMakeFiles/np_config.dir/config_loader.cc.o.d"
  "CMakeFiles/np_config.dir/disk_images.cc.o"
  "CMakeFiles/np_config.dir/disk_images.cc.o.d"
  "CMakeFiles/np_config.dir/main_schema.cc.o"
  "CMakeFiles/np_config.dir/main_schema.cc.o.d"
  "CMakeFiles/np_config.dir/scalar.cc.o"
  "CMakeFiles/np_config.dir/scalar.cc.o.d"
  "CMakeFiles/np_config.dir/schema.cc.o"
  "CMakeFiles/np_config.dir/schema.cc.o.d"
  "CMakeFiles/np_config.dir/schema_docs.cc.o"
  "CMakeFiles/np_config.dir/schema_docs.cc.o.d"
  "CMakeFiles/np_config.dir/section.cc.o"
  "CMakeFiles/np_config.dir/section.cc.o.d"
  "CMakeFiles/np_config.dir/validate.cc.o"
  "CMakeFiles/np_config.dir/validate.cc.o.d"
  "CMakeFiles/np_config.dir/validator.cc.o"
  "CMakeFiles/np_config.dir/validator.cc.o.d"
  "CMakeFiles/np_config.dir/value.cc.o"
  "CMakeFiles/np_config.dir/value.cc.o.d"
  "CMakeFiles/np_config.dir/yaml_reader.cc.o"
  "CMakeFiles/np_config.dir/yaml_reader.cc.o.d"
  "libnp_config.a"
  "libnp_config.pdb"
)

# Per-language clean rules from dependency scanning.
foreach(lang CXX)
  include(CMakeFiles/np_config.dir/cmake_clean_${lang}.cmake OPTIONAL)
endforeach()
