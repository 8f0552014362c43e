# The changed libraries become few units each, which halves the time to compile them.
set(changed np_sched np_store np_driver np_driver_cloud np_launcher)
cmake_language(DEFER CALL set_target_properties ${changed} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
