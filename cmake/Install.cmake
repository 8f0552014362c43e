# What `cmake --install` brings beside the driver author's kit (cmake/DriverPackage.cmake):
# the programs, and what hosts want of them.
install(TARGETS nodepool nodepool-launcher nodepool-builder nodepool-runners nodepoold RUNTIME COMPONENT programs)

# A driver of its own, where the programs look for drivers.
install(TARGETS nodepool_driver_libvirt LIBRARY DESTINATION ${NODEPOOL_DRIVERS_DIR} COMPONENT libvirt OPTIONAL)

set(units ${PROJECT_SOURCE_DIR}/packaging/systemd)
install(FILES ${units}/nodepool-launcher.service ${units}/nodepool-builder.service ${units}/nodepool-runners.service ${units}/nodepool-standalone.service
  DESTINATION lib/systemd/system COMPONENT programs)
install(FILES ${units}/nodepool.sysusers.conf DESTINATION lib/sysusers.d RENAME nodepool.conf COMPONENT programs)
install(FILES ${units}/nodepool.tmpfiles.conf DESTINATION lib/tmpfiles.d RENAME nodepool.conf COMPONENT programs)

# Made by the target `reference`, which is part of a whole build.
foreach(section 1 8)
  install(DIRECTORY ${NODEPOOL_CLI_REFERENCE}/man/ DESTINATION share/man/man${section} COMPONENT programs
    FILES_MATCHING PATTERN "*.${section}")
endforeach()
install(DIRECTORY ${NODEPOOL_CLI_REFERENCE}/bash/ DESTINATION share/bash-completion/completions COMPONENT programs)
install(DIRECTORY ${NODEPOOL_CLI_REFERENCE}/zsh/ DESTINATION share/zsh/vendor-completions COMPONENT programs)
install(DIRECTORY ${NODEPOOL_CLI_REFERENCE}/fish/ DESTINATION share/fish/vendor_completions.d COMPONENT programs)

# What README.md links to lies beside it, as in the tree.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/examples
  DESTINATION share/doc/nodepool USE_SOURCE_PERMISSIONS COMPONENT programs)
# Made by the target `docs`, which is part of a whole build.
foreach(page reference/api.md reference/builder-metrics.md reference/configuration.md reference/metrics.md
    reference/runners-metrics.md
    driver-guide/reference.md)
  cmake_path(GET page PARENT_PATH folder)
  install(FILES ${NODEPOOL_MADE_DOCS}/${page} DESTINATION share/doc/nodepool/docs/${folder} COMPONENT programs)
endforeach()
set(pages README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE packages.txt packages-real.txt)
list(TRANSFORM pages PREPEND ${PROJECT_SOURCE_DIR}/)
install(FILES ${pages} DESTINATION share/doc/nodepool COMPONENT programs)
