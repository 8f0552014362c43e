#pragma once

namespace nodepool::daemon {

// Daemons allocate with jemalloc, which works less for the many small objects of a crowd of requests than
// glibc, and keeps less of what a large answer of a cloud took (docs/design-notes.md).

// From now on a thread of the allocator gives memory back to the system some seconds after it was freed. A
// fork stops that thread, so call this in the process that stays. False where the program is linked without
// jemalloc, as with sanitizers.
bool ReturnUnusedMemory();

}  // namespace nodepool::daemon
