/* What the machine can do at most for a server on one core: sends requests back, or answers them with a file.
 *
 *     raw_server echo
 *     raw_server sendfile FILE BYTES
 *     raw_server append FILE
 *
 * Prints the port that it chose on loopback, and serves until it is killed. A request is a length of four bytes
 * and that many more. `sendfile` answers with a length, four zeros and the first BYTES of FILE. `append` writes
 * the requests one behind the other into FILE, which it makes, and answers with a length and four zeros.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 512, RECEIVE_BYTES = 1 << 16, SEND_BUFFER_BYTES = 100 << 10, APPENDED_BYTES_MAX = 4 << 20 };
static int file;
static size_t file_bytes;

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

static int accept_one(int listener) {
    int one = 1, connection = accept(listener, NULL, NULL);
    if (connection < 0) fail("accept");
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return connection;
}

static void echo(int listener) {
    static char buffer[RECEIVE_BYTES];
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[EVENTS];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int ready = epoll_wait(epoll, events, EVENTS, -1);
        for (int at = 0; at < ready; at++) {
            int fd = events[at].data.fd;
            if (fd == listener) {
                event.data.fd = accept_one(listener);
                epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
                continue;
            }
            ssize_t count = recv(fd, buffer, sizeof buffer, 0);
            if (count <= 0 || send(fd, buffer, (size_t)count, MSG_NOSIGNAL) != count) close(fd);
        }
    }
}

static void *send_files(void *argument) {
    static char buffer[RECEIVE_BYTES];
    int fd = (int)(intptr_t)argument, size = SEND_BUFFER_BYTES;
    uint32_t head[2] = {htonl((uint32_t)file_bytes + 4), 0}, length;
    /* What the kernel chooses by itself is too large for loopback: the data leave the processor's cache. */
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    while (recv(fd, &length, 4, MSG_WAITALL) == 4 && ntohl(length) <= sizeof buffer) {
        if (recv(fd, buffer, ntohl(length), MSG_WAITALL) <= 0) break;
        if (send(fd, head, sizeof head, MSG_MORE | MSG_NOSIGNAL) != sizeof head) break;
        off_t offset = 0;
        while ((size_t)offset < file_bytes)
            if (sendfile(fd, file, &offset, file_bytes - (size_t)offset) <= 0) break;
    }
    close(fd);
    return NULL;
}

/* No checksum, no offsets, no order: nobody who stores what he is sent can do less. */
static void *append(void *argument) {
    static _Atomic long long end;
    int fd = (int)(intptr_t)argument;
    uint32_t head[2] = {htonl(4), 0}, length;
    char *room = malloc(APPENDED_BYTES_MAX);
    while (room && recv(fd, &length, 4, MSG_WAITALL) == 4 && ntohl(length) <= APPENDED_BYTES_MAX) {
        ssize_t size = (ssize_t)ntohl(length);
        if (recv(fd, room, (size_t)size, MSG_WAITALL) != size) break;
        if (pwrite(file, room, (size_t)size, atomic_fetch_add(&end, size)) != size) break;
        if (send(fd, head, sizeof head, MSG_NOSIGNAL) != sizeof head) break;
    }
    free(room);
    close(fd);
    return NULL;
}

int main(int count, char **arguments) {
    if (count == 2 && !strcmp(arguments[1], "echo")) echo(listen_on_loopback());
    int appends = count == 3 && !strcmp(arguments[1], "append");
    if (!appends && (count != 4 || strcmp(arguments[1], "sendfile")))
        fail("usage: echo | sendfile FILE BYTES | append FILE");
    file = appends ? open(arguments[2], O_WRONLY | O_CREAT | O_TRUNC, 0600) : open(arguments[2], O_RDONLY);
    if (file < 0) fail(arguments[2]);
    if (!appends) file_bytes = (size_t)atol(arguments[3]);
    for (int listener = listen_on_loopback();;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, appends ? append : send_files, (void *)(intptr_t)accept_one(listener))) fail("thread");
        pthread_detach(thread);
    }
}
