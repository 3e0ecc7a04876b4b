/* How many bytes go over loopback while the host of a virtual machine leaves it alone (undisturbed.h).
 *
 *     loopback_pace
 *
 * Counts from when it is started until its input ends, then prints one line of JSON: the seconds that count, the
 * bytes that went over loopback in them, and those of all the time.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "undisturbed.h"

enum { LOOK_MS = 5 };

/* That loopback has sent since the machine was started, which is what it has received. */
static uint64_t loopback_bytes(void) {
    static int file = -1;
    char text[64] = "";
    if (file < 0) file = open("/sys/class/net/lo/statistics/tx_bytes", O_RDONLY);
    if (file < 0 || pread(file, text, sizeof text - 1, 0) <= 0) {
        fprintf(stderr, "loopback_pace: %s\n", strerror(errno));
        exit(1);
    }
    return strtoull(text, NULL, 10);
}

int main(void) {
    Undisturbed measured;
    struct pollfd input = {.fd = 0, .events = POLLIN};
    begin_undisturbed(&measured, 1e9, loopback_bytes());
    while (!poll(&input, 1, LOOK_MS)) end_slice(&measured, loopback_bytes(), 0);
    end_slice(&measured, loopback_bytes(), 1);
    int all = was_disturbed(&measured);
    printf("{\"seconds\": %.6f, \"bytes\": %llu, \"all_bytes\": %llu, \"undisturbed\": %.3f}\n",
           (double)(all ? measured.all_ns : measured.clean_ns) / 1e9,
           (unsigned long long)(all ? measured.all_done : measured.clean_done), (unsigned long long)measured.all_done,
           undisturbed_share(&measured));
    return 0;
}
