export DISTRO_NAME=tiny
export DIB_INIT_SYSTEM=sysv
