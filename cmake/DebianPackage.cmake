# `cpack` in the build directory makes three packages: nodepool, nodepool-dev for authors of drivers, and
# nodepool-libvirt, a driver whose libraries an installation without hosts of its own does not need. Everything is to be built before.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME nodepool)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(NODEPOOL_MAINTAINER "The authors of Nodepool <nodepool@localhost>" CACHE STRING
  "Name and address of who makes the packages")
set(CPACK_PACKAGE_CONTACT ${NODEPOOL_MAINTAINER})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL programs development libvirt)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME nodepool)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PROGRAMS_DESCRIPTION "Pools of machines for continuous integration
Takes requests for machines out of ZooKeeper, boots them in clouds or picks existing
ones, hands them over, and deletes them after use; builds the images they boot from.")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS adduser)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_RECOMMENDS "ca-certificates, openssh-client")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS
  "zookeeperd, python3-diskimage-builder, debootstrap, e2fsprogs, qemu-utils, sudo")
set(scripts ${PROJECT_SOURCE_DIR}/packaging/debian)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_EXTRA
  ${scripts}/conffiles ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME nodepool-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "Headers and tools for authors of Nodepool drivers")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS ON)
# Drivers need the packages whose headers this build has used: a driver with another Boost or fmt is refused.
execute_process(COMMAND sh -c "dpkg-query -S \"$@\" | cut -d : -f 1 | sort -u | paste -s -d , | sed 's/,/, /g'" sh
    ${Boost_INCLUDE_DIRS}/boost/version.hpp ${boost_json_DIR}/boost_json-config.cmake ${fmt_DIR}/fmt-config.cmake
  OUTPUT_VARIABLE header_packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "nodepool (= ${PROJECT_VERSION}), ${header_packages}")

set(CPACK_DEBIAN_LIBVIRT_PACKAGE_NAME nodepool-libvirt)
set(CPACK_DEBIAN_LIBVIRT_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_LIBVIRT_DESCRIPTION "Nodepool driver for virtual machines on hosts of one's own
Boots the nodes as QEMU machines on one or several hosts with libvirt.")
set(CPACK_DEBIAN_LIBVIRT_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBVIRT_PACKAGE_DEPENDS "nodepool (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBVIRT_PACKAGE_RECOMMENDS openssh-client)
set(CPACK_DEBIAN_LIBVIRT_PACKAGE_SUGGESTS "libvirt-daemon-system, qemu-system-x86 | qemu-system-arm, qemu-utils, dnsmasq-base")

# What Debian's rules want beyond an installation.
set(CPACK_NODEPOOL_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake)
include(CPack)
