/* Counts only while the host of a virtual machine gave it all of its cores.
 *
 * Time goes by in slices. One in which the host took time from any core ("steal" in /proc/stat) counts for
 * nothing, neither its length nor what was done in it: it tells of the host's other guests. On a machine of its
 * own every slice counts.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SLICE_NS = 20000000, PATIENCE = 4, STEAL_FIELD = 8 };

typedef struct {
    uint64_t wanted_ns;               /* of undisturbed time; it is given up after PATIENCE times as long */
    uint64_t slice_began;
    uint64_t done_before;             /* when the slice began */
    uint64_t all_ns, all_done;        /* with the disturbed slices */
    uint64_t clean_ns, clean_done;    /* without them */
    uint64_t clean_since;             /* nothing was disturbed from then on */
    long stolen;
} Undisturbed;

static uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* Ticks of all cores since the machine was started; 0 where nobody tells. */
static long stolen_ticks(void) {
    static int file = -2;
    char line[512];
    if (file == -2) file = open("/proc/stat", O_RDONLY);
    ssize_t got = file < 0 ? 0 : pread(file, line, sizeof line - 1, 0);
    if (got < 4) return 0;
    line[got] = 0;
    char *at = line + 3; /* after "cpu" */
    long value = 0;
    for (int field = 0; field < STEAL_FIELD; field++) value = strtol(at, &at, 10);
    return value;
}

static void begin_undisturbed(Undisturbed *time, double seconds, uint64_t done) {
    uint64_t now = now_ns();
    *time = (Undisturbed){.wanted_ns = (uint64_t)(seconds * 1e9), .slice_began = now, .done_before = done,
                          .clean_since = now, .stolen = stolen_ticks()};
}

/* To be called often, with how much is done by then; LAST ends a slice before its time.
 * 0: the slice is not over; 1: it counts; -1: it does not. */
static int end_slice(Undisturbed *time, uint64_t done, int last) {
    uint64_t now = now_ns(), length = now - time->slice_began;
    if (length < SLICE_NS && !last) return 0;
    long stolen = stolen_ticks();
    int counts = stolen == time->stolen;
    time->all_ns += length;
    time->all_done += done - time->done_before;
    if (counts) {
        time->clean_ns += length;
        time->clean_done += done - time->done_before;
    } else time->clean_since = now;
    time->slice_began = now;
    time->done_before = done;
    time->stolen = stolen;
    return counts ? 1 : -1;
}

static inline int is_long_enough(const Undisturbed *time) {
    return time->clean_ns >= time->wanted_ns || time->all_ns >= PATIENCE * time->wanted_ns;
}

/* So little was undisturbed that all of it has to do. */
static int was_disturbed(const Undisturbed *time) { return time->clean_ns * 10 < time->all_ns; }

static double undisturbed_share(const Undisturbed *time) {
    return time->all_ns ? (double)time->clean_ns / (double)time->all_ns : 1;
}

static inline double done_per_second(const Undisturbed *time) {
    if (was_disturbed(time)) return (double)time->all_done * 1e9 / (double)time->all_ns;
    return time->clean_ns ? (double)time->clean_done * 1e9 / (double)time->clean_ns : 0;
}
