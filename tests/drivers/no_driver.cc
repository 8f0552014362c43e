// A shared object that has nothing to do with Nodepool.
extern "C" int answer() { return 42; }
