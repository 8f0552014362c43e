#include <csignal>

#include "main/standalone.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return nodepool::RunNodepoold(argc, argv);
}
