#pragma once

namespace nodepool::drivers::libvirt {

// Starts the thread that runs libvirt's event loop, once in a process, and keeps libvirt from printing
// errors. To be called before a connection is opened; from any thread. Keep-alive and events work only with
// it. The thread runs as long as the process: libvirt's loop cannot be taken down while connections exist.
void StartEventThread();

}  // namespace nodepool::drivers::libvirt
