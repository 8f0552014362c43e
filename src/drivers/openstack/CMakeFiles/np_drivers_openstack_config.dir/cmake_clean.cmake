file(REMOVE_RECURSE
  "CMakeFiles/np_drivers_openstack_config.dir/openstack_config.cc.o"
  "CMakeFiles/np_drivers_openstack_config.dir/openstack_config.cc.o.d"
  "libnp_drivers_openstack_config.a"
  "libnp_drivers_openstack_config.pdb"
)

# Per-language clean rules from dependency scanning.
foreach(lang CXX)
  include(CMakeFiles/np_drivers_openstack_config.dir/cmake_clean_${lang}.cmake OPTIONAL)
endforeach()
