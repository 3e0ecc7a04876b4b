/* Sends one prepared request over many connections, as fast as it is answered or at a fixed rate.
 *
 *     raw_load HOST PORT REQUEST_FILE CONNECTIONS IN_FLIGHT SECONDS WARMUP_SECONDS RATE [ID_AT [OPENING_FILE
 *              [NUMBER_AT STEP COUNT]]]
 *
 * REQUEST_FILE holds one whole request, its length first; only its correlation id changes, which is at byte
 * ID_AT of it (8, as in Kafka; 4 in ZooKeeper; 0: there is none to change or to check). OPENING_FILE holds
 * requests that each connection sends first, one after the other; what is answered to them is not looked at (-: none).
 * With NUMBER_AT, eight bytes there (an offset to fetch from) grow by STEP from request to request, over all
 * connections; it ends after COUNT requests, if SECONDS are not over before.
 * Frames with the id -1 are events that nobody asked for, and only counted; with IN_FLIGHT 0 nothing is sent. RATE is requests per
 * second over all connections, and latencies then count from when a request was due; 0 keeps IN_FLIGHT requests
 * under way on each connection, and latencies count from when one was sent. Every answer must carry the next
 * correlation id of its connection and be as long as the first one. Prints one line of JSON; the first answer
 * goes to REQUEST_FILE.answer, so that the caller can see whether it was a good one.
 *
 * What counts is SECONDS in which the host of a virtual machine left it alone (undisturbed.h), as far as there are
 * so many: a latency counts if nothing was disturbed from when it began until it ended.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "undisturbed.h"

enum { WINDOW = 4096, RECEIVE_BYTES = 1 << 20, EVENTS = 512, SAMPLES_MAX = 8 << 20 };

typedef struct {
    int fd;
    uint32_t sent, answered;    /* requests begun and answers complete: also the correlation ids */
    size_t sent_bytes;          /* of the request under way; 0: none */
    uint64_t since[WINDOW];     /* when each request in flight was sent or due, by correlation id */
    uint8_t head[8];            /* length and correlation id of the answer under way */
    size_t got;                 /* bytes of it that have come */
    int wants_write;
    uint64_t number;            /* of the request under way */
} Connection;

static uint8_t *request, *opening;
static size_t request_bytes, opening_bytes, id_at = 8, number_at;
static uint64_t number, step_size, started, count_max = UINT64_MAX;
static uint32_t *samples; /* nanoseconds; in front those of slices that count */
static size_t sample_count, samples_before; /* with and without those of the slice under way */
static uint64_t answers_in_all, bytes_per_answer, events_in_all;
static Undisturbed measured;
static int measuring;
static uint8_t *first_answer;
static uint8_t scratch[RECEIVE_BYTES];

static void fail(const char *what) {
    fprintf(stderr, "raw_load: %s: %s\n", what, errno ? strerror(errno) : "");
    exit(1);
}

static uint32_t length_at(const uint8_t *frame) {
    uint32_t length;
    memcpy(&length, frame, 4);
    return ntohl(length);
}

static void receive_all(int fd, size_t count) {
    for (ssize_t got; count > 0; count -= (size_t)got) {
        got = recv(fd, scratch, count < sizeof scratch ? count : sizeof scratch, MSG_WAITALL);
        if (got <= 0) fail("the opening was not answered");
    }
}

static uint64_t done(void) { return answers_in_all + events_in_all; }

/* Begins to measure when that is due, and forgets the latencies of a slice that does not count. */
static void look_at_clock(uint64_t measured_from, double seconds, int last) {
    if (!measuring && now_ns() >= measured_from) {
        begin_undisturbed(&measured, seconds, done());
        measuring = 1;
    }
    int ended = measuring ? end_slice(&measured, done(), last) : 0;
    if (ended > 0) samples_before = sample_count;
    if (ended < 0) sample_count = samples_before;
}

/* Requests of the opening one by one, while the socket still blocks. */
static void send_opening(int fd) {
    for (size_t at = 0; at < opening_bytes;) {
        size_t size = length_at(opening + at) + 4;
        if (send(fd, opening + at, size, MSG_NOSIGNAL) != (ssize_t)size) fail("the opening");
        receive_all(fd, 4);
        receive_all(fd, length_at(scratch));
        at += size;
    }
}

static void open_connection(Connection *c, const char *host, int port, int epoll) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1;
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("an IPv4 address is needed");
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    send_opening(c->fd);
    fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
}

static void want_write(Connection *c, int epoll, int wanted) {
    if (c->wants_write == wanted) return;
    c->wants_write = wanted;
    struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.ptr = c};
    epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
}

static void put_number(uint8_t *at, uint64_t value) {
    for (int byte = 7; byte >= 0; byte--, value >>= 8) at[byte] = (uint8_t)value;
}

static uint64_t number_in(const uint8_t *at) {
    uint64_t value = 0;
    for (int byte = 0; byte < 8; byte++) value = value << 8 | at[byte];
    return value;
}

/* Begins a request, or goes on with the one under way. 0: the socket is full. */
static int send_request(Connection *c, uint64_t since) {
    if (c->sent_bytes == 0) {
        c->since[c->sent % WINDOW] = since;
        c->sent++;
        c->number = number;
        number += step_size;
        started++;
    }
    uint32_t correlation = htonl(c->sent - 1);
    if (id_at) memcpy(request + id_at, &correlation, 4);
    if (number_at) put_number(request + number_at, c->number);
    while (c->sent_bytes < request_bytes) {
        ssize_t count = send(c->fd, request + c->sent_bytes, request_bytes - c->sent_bytes, MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN) return 0;
        if (count < 0) fail("send");
        c->sent_bytes += (size_t)count;
    }
    c->sent_bytes = 0;
    return 1;
}

static void fill_window(Connection *c, int epoll, uint32_t in_flight) {
    int open = 1;
    if (c->sent_bytes) open = send_request(c, 0);
    while (open && c->sent - c->answered < in_flight && started < count_max) open = send_request(c, now_ns());
    want_write(c, epoll, !open);
}

static void answer_complete(Connection *c, uint64_t size) {
    uint32_t correlation;
    memcpy(&correlation, c->head + 4, 4);
    errno = 0;
    if (ntohl(correlation) == UINT32_MAX && id_at) {
        events_in_all++;
        return;
    }
    if (id_at && ntohl(correlation) != c->answered) fail("an answer out of order");
    if (bytes_per_answer == 0) bytes_per_answer = size;
    if (size != bytes_per_answer) fail("answers differ in length");
    uint64_t now = now_ns(), since = c->since[c->answered % WINDOW];
    c->answered++;
    answers_in_all++;
    if (!measuring || sample_count == SAMPLES_MAX) return;
    if (since >= measured.clean_since) samples[sample_count++] = (uint32_t)(now - since);
}

static void take_answers(Connection *c) {
    for (;;) {
        ssize_t count = recv(c->fd, scratch, sizeof scratch, 0);
        if (count < 0 && errno == EAGAIN) return;
        errno = count == 0 ? 0 : errno;
        if (count <= 0) fail("the broker hung up");
        for (size_t at = 0; at < (size_t)count;) {
            while (c->got < 8 && at < (size_t)count) c->head[c->got++] = scratch[at++];
            if (c->got < 8) break;
            uint64_t size = (uint64_t)length_at(c->head) + 4, left = size - c->got, here = (uint64_t)count - at;
            uint64_t taken = left < here ? left : here;
            if (bytes_per_answer == 0) {
                if (c->got == 8) first_answer = realloc(first_answer, size);
                memcpy(first_answer, c->head, 8);
                memcpy(first_answer + c->got, scratch + at, taken);
            }
            at += taken;
            c->got += taken;
            if (c->got == size) {
                answer_complete(c, size);
                c->got = 0;
            }
        }
        if ((size_t)count < sizeof scratch) return;
    }
}

static uint8_t *load(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *content = malloc(*size);
    if (fread(content, 1, *size, file) != *size) fail(path);
    fclose(file);
    return content;
}

static void save_first_answer(const char *path) {
    char name[4096];
    snprintf(name, sizeof name, "%s.answer", path);
    FILE *file = fopen(name, "wb");
    if (!file || fwrite(first_answer, 1, bytes_per_answer, file) != bytes_per_answer) fail(name);
    fclose(file);
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double quantile_us(double share) {
    size_t at = (size_t)(share * (double)sample_count);
    return sample_count ? samples[at < sample_count ? at : sample_count - 1] / 1000.0 : 0;
}

int main(int count, char **arguments) {
    if (count < 9 || count > 14)
        fail("usage: HOST PORT REQUEST_FILE CONNECTIONS IN_FLIGHT SECONDS WARMUP_SECONDS RATE [ID_AT [OPENING_FILE [NUMBER_AT STEP COUNT]]]");
    int connections = atoi(arguments[4]);
    uint32_t in_flight = (uint32_t)atoi(arguments[5]);
    double seconds = atof(arguments[6]), warmup = atof(arguments[7]), rate = atof(arguments[8]);
    request = load(arguments[3], &request_bytes);
    if (count > 9) id_at = (size_t)atoi(arguments[9]);
    if (count > 10 && strcmp(arguments[10], "-")) opening = load(arguments[10], &opening_bytes);
    if (count == 14) {
        number_at = (size_t)atoi(arguments[11]);
        if (number_at + 8 > request_bytes) fail("NUMBER_AT");
        number = number_in(request + number_at);
        step_size = (uint64_t)atoll(arguments[12]);
        count_max = (uint64_t)atoll(arguments[13]);
    }
    samples = malloc(sizeof *samples * SAMPLES_MAX);
    Connection *all = calloc((size_t)connections, sizeof *all);
    int epoll = epoll_create1(0);
    if (in_flight > WINDOW || !samples || !all || epoll < 0) fail("start");
    for (int at = 0; at < connections; at++) open_connection(&all[at], arguments[1], atoi(arguments[2]), epoll);

    uint64_t began = now_ns(), due = began, step = rate > 0 ? (uint64_t)(1e9 / rate) : 0;
    uint64_t measured_from = began + (uint64_t)(warmup * 1e9);
    int next = 0;
    if (!step)
        for (int at = 0; at < connections; at++) fill_window(&all[at], epoll, in_flight);
    for (look_at_clock(measured_from, seconds, 0); !(measuring && is_long_enough(&measured)) && answers_in_all < count_max;
         look_at_clock(measured_from, seconds, 0)) {
        struct epoll_event events[EVENTS];
        struct timespec wait = {.tv_nsec = 100000000};
        if (step) {
            uint64_t now = now_ns();
            wait.tv_nsec = due > now ? (long)(due - now) : 0;
            if (wait.tv_nsec > 100000000) wait.tv_nsec = 100000000;
        }
        int ready = epoll_pwait2(epoll, events, EVENTS, &wait, NULL);
        for (int at = 0; at < ready; at++) {
            Connection *c = events[at].data.ptr;
            if (events[at].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) take_answers(c);
            if (!step) fill_window(c, epoll, in_flight);
            else if (c->sent_bytes) want_write(c, epoll, !send_request(c, 0));
        }
        for (; step && due <= now_ns(); due += step, next = (next + 1) % connections) {
            Connection *c = &all[next];
            errno = 0;
            if (c->sent_bytes || c->sent - c->answered >= WINDOW) fail("the broker cannot keep up with the rate");
            want_write(c, epoll, !send_request(c, due));
        }
    }
    look_at_clock(measured_from, seconds, 1);
    if (bytes_per_answer) save_first_answer(arguments[3]);
    else if (in_flight || step) fail("no answer came");
    qsort(samples, sample_count, sizeof *samples, by_size);
    double per_second = done_per_second(&measured), mb = 1e6;
    printf("{\"all_requests\": %llu, \"undisturbed\": %.3f, \"per_second\": %.1f, \"sent_mb_per_second\": %.2f, "
           "\"received_mb_per_second\": %.2f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f}\n",
           (unsigned long long)answers_in_all, undisturbed_share(&measured), per_second, per_second * (double)request_bytes / mb,
           per_second * (double)bytes_per_answer / mb, quantile_us(0.5), quantile_us(0.99), quantile_us(0.999), quantile_us(1));
    return 0;
}
