#pragma once

namespace nodepool {

// The command `nodepool standalone`: launcher, builder, web server and, where the
// configuration names no ZooKeeper, the embedded server in one process. `arguments[0]`
// is the command's name. Returns the exit status.
int RunStandalone(int argc, char** arguments);

// The program `nodepoold`: the same without the embedded server, and without what the
// command line leaves to others.
int RunNodepoold(int argc, char** arguments);

}  // namespace nodepool
