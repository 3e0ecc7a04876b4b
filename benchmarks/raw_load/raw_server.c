/* What the machine can do at most for a server on one core: sends requests back, or answers them with a file.
 *
 *     raw_server echo
 *     raw_server sendfile FILE BYTES
 *     raw_server append FILE
 *
 * Prints the port that it chose on loopback, and serves until it is killed, all connections in one thread. A
 * request is a length of four bytes and that many more. `sendfile` answers with a length, four zeros and the first
 * BYTES of FILE. `append` writes the requests one behind the other into FILE, which it makes, and answers with a
 * length and four zeros: no checksum, no offsets, no order; nobody who stores what he is sent can do less.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 512, REQUEST_BYTES_MAX = 4 << 20, SEND_BUFFER_BYTES = 100 << 10 };

typedef struct {
    int fd, sending;
    off_t sent;         /* of the file */
    size_t got, room;   /* bytes of the request under way, and how many fit */
    uint8_t *request;   /* with its length */
} Connection;

static int epoll, file;
static size_t file_bytes;
static off_t file_end;
static int (*serve)(Connection *); /* 0: it is over */

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int listen_on_loopback(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1024)) fail("listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static void watch(Connection *c, int change, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = c};
    epoll_ctl(epoll, change, c->fd, &event);
}

static int may_go_on(ssize_t count) { return count > 0 || (count < 0 && errno == EAGAIN); }

static int echo(Connection *c) {
    ssize_t count = recv(c->fd, c->request, c->room, 0);
    if (count <= 0) return may_go_on(count);
    return send(c->fd, c->request, (size_t)count, MSG_NOSIGNAL) == count;
}

/* 1: there is a whole request; 0: not yet; -1: there will not be one. */
static int receive_request(Connection *c) {
    for (;;) {
        uint32_t length = 0;
        if (c->got >= 4) memcpy(&length, c->request, 4);
        size_t wanted = 4 + (size_t)ntohl(length);
        if (c->got == wanted && wanted > 4) return 1;
        if (wanted > REQUEST_BYTES_MAX) return -1;
        if (wanted > c->room && !(c->request = realloc(c->request, c->room = wanted))) fail("memory");
        ssize_t count = recv(c->fd, c->request + c->got, wanted - c->got, 0);
        if (count <= 0) return may_go_on(count) ? 0 : -1;
        c->got += (size_t)count;
    }
}

static int send_file(Connection *c) {
    uint32_t head[2] = {htonl((uint32_t)file_bytes + 4), 0};
    for (;;) {
        if (!c->sending) {
            int received = receive_request(c);
            if (received <= 0) return received == 0;
            if (send(c->fd, head, sizeof head, MSG_MORE | MSG_NOSIGNAL) != sizeof head) return 0;
            c->got = 0, c->sent = 0, c->sending = 1;
        }
        while ((size_t)c->sent < file_bytes) {
            ssize_t count = sendfile(c->fd, file, &c->sent, file_bytes - (size_t)c->sent);
            if (count <= 0) {
                watch(c, EPOLL_CTL_MOD, EPOLLOUT);
                return may_go_on(count);
            }
        }
        c->sending = 0;
        watch(c, EPOLL_CTL_MOD, EPOLLIN);
    }
}

static int append(Connection *c) {
    uint32_t head[2] = {htonl(4), 0};
    int received;
    while ((received = receive_request(c)) > 0) {
        if (pwrite(file, c->request, c->got, file_end) != (ssize_t)c->got) fail("write");
        file_end += (off_t)c->got;
        c->got = 0;
        if (send(c->fd, head, sizeof head, MSG_NOSIGNAL) != sizeof head) return 0;
    }
    return received == 0;
}

static void accept_one(int listener) {
    int one = 1, size = SEND_BUFFER_BYTES;
    Connection *c = calloc(1, sizeof *c);
    if (!c || !(c->request = malloc(c->room = 1 << 16))) fail("memory");
    c->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (c->fd < 0) fail("accept");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    /* What the kernel chooses by itself is too large for loopback: the data leave the processor's cache. */
    if (serve == send_file) setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    watch(c, EPOLL_CTL_ADD, EPOLLIN);
}

static void end(Connection *c) {
    close(c->fd);
    free(c->request);
    free(c);
}

int main(int count, char **arguments) {
    if (count == 2 && !strcmp(arguments[1], "echo")) serve = echo;
    if (count == 4 && !strcmp(arguments[1], "sendfile")) serve = send_file;
    if (count == 3 && !strcmp(arguments[1], "append")) serve = append;
    if (!serve) fail("usage: echo | sendfile FILE BYTES | append FILE");
    if (count > 2) file = serve == append ? open(arguments[2], O_WRONLY | O_CREAT | O_TRUNC, 0600) : open(arguments[2], O_RDONLY);
    if (file < 0) fail(arguments[2]);
    if (serve == send_file) file_bytes = (size_t)atol(arguments[3]);
    Connection listening = {.fd = listen_on_loopback()};
    epoll = epoll_create1(0);
    watch(&listening, EPOLL_CTL_ADD, EPOLLIN);
    for (struct epoll_event events[EVENTS];;) {
        int ready = epoll_wait(epoll, events, EVENTS, -1);
        for (int at = 0; at < ready; at++) {
            Connection *c = events[at].data.ptr;
            if (c == &listening) accept_one(listening.fd);
            else if (!serve(c)) end(c);
        }
    }
}
