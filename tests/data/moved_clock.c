// Preloaded into a process, moves its system clock by the nanoseconds in the file that MOVED_CLOCK names (a 64-bit
// number, which may change at any time). The steady clock and all timers are left alone, unlike with
// libfaketime, which changes the timers of an event loop, too.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* shift;

__attribute__((constructor)) static void open_shift(void) {
  const char* path = getenv("MOVED_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void* page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) shift = page;
  if (file >= 0) close(file);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int64_t second = 1000000000;
  int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result != 0 || clock != CLOCK_REALTIME || !shift) return result;
  int64_t moved = now->tv_sec * second + now->tv_nsec + *shift;
  now->tv_sec = moved / second;
  now->tv_nsec = moved % second;
  return 0;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  struct timespec precise;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* result) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (result) *result = precise.tv_sec;
  return precise.tv_sec;
}
