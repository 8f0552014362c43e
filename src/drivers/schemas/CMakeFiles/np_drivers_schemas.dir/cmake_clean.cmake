file(REMOVE_RECURSE
  "CMakeFiles/np_drivers_schemas.dir/complete.cc.o"
  "CMakeFiles/np_drivers_schemas.dir/complete.cc.o.d"
  "CMakeFiles/np_drivers_schemas.dir/known_drivers.cc.o"
  "CMakeFiles/np_drivers_schemas.dir/known_drivers.cc.o.d"
  "CMakeFiles/np_drivers_schemas.dir/partial.cc.o"
  "CMakeFiles/np_drivers_schemas.dir/partial.cc.o.d"
  "libnp_drivers_schemas.a"
  "libnp_drivers_schemas.pdb"
)

# Per-language clean rules from dependency scanning.
foreach(lang CXX)
  include(CMakeFiles/np_drivers_schemas.dir/cmake_clean_${lang}.cmake OPTIONAL)
endforeach()
