# Run by cpack when everything lies in the packages' directories.
set(ENV{DESTDIR} "")  # of the component that was installed last
set(programs ${CPACK_TEMPORARY_DIRECTORY}/programs)
file(INSTALL ${CPACK_NODEPOOL_SOURCE}/packaging/debian/default DESTINATION ${programs}/etc/default RENAME nodepool
  PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
foreach(package programs/usr/share/doc/nodepool development/usr/share/doc/nodepool-dev libvirt/usr/share/doc/nodepool-libvirt)
  file(INSTALL ${CPACK_NODEPOOL_SOURCE}/LICENSE DESTINATION ${CPACK_TEMPORARY_DIRECTORY}/${package} RENAME copyright
    PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endforeach()
file(GLOB pages ${programs}/usr/share/man/*/*)
execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)
