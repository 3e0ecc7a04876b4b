/* Writes or reads records through librdkafka as fast as it can, or runs transactions. One line of JSON comes out.
 *
 *     rdkafka_load produce      TOPIC PARTITIONS VALUE_BYTES COUNT SECONDS [PROPERTY=VALUE ...]
 *     rdkafka_load consume      TOPIC COUNT [PROPERTY=VALUE ...]
 *     rdkafka_load transactions TOPIC RECORDS VALUE_BYTES SECONDS [PROPERTY=VALUE ...]
 *
 * `produce` gives each partition RUN records in turn and ends after COUNT records or SECONDS, whichever is
 * first; the clock runs from after a first record was delivered until the last one was. `consume` reads partition 0 from its beginning;
 * the clock runs from its first records on. `transactions` puts RECORDS into each. What counts is time in which the
 * host of a virtual machine left it alone (../raw_load/undisturbed.h), as far as there is so much.
 * `client_busy` is the processor time of the whole span, in cores.
 * Values are different pieces of the same text, which compresses about as well as words do.
 *
 * librdkafka's headers need not be installed: what is used of its stable interface is declared here, and the
 * library is the one that the confluent-kafka package carries.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../raw_load/undisturbed.h"

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_topic_conf_s rd_kafka_topic_conf_t;
typedef struct rd_kafka_error_s rd_kafka_error_t;
typedef struct {
    int err;
    rd_kafka_topic_t *topic;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *opaque;
} rd_kafka_message_t;
enum { PRODUCER, CONSUMER };
enum { QUEUE_FULL = -184, END_OF_PARTITION = -191 };
static const int64_t FROM_BEGINNING = -2;

extern rd_kafka_conf_t *rd_kafka_conf_new(void);
extern int rd_kafka_conf_set(rd_kafka_conf_t *, const char *, const char *, char *, size_t);
extern void rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *, void (*)(rd_kafka_t *, const rd_kafka_message_t *, void *));
extern rd_kafka_t *rd_kafka_new(int, rd_kafka_conf_t *, char *, size_t);
extern rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *, const char *, rd_kafka_topic_conf_t *);
extern int rd_kafka_produce(rd_kafka_topic_t *, int32_t, int, void *, size_t, const void *, size_t, void *);
extern int rd_kafka_poll(rd_kafka_t *, int);
extern int rd_kafka_flush(rd_kafka_t *, int);
extern int rd_kafka_last_error(void);
extern const char *rd_kafka_err2str(int);
extern int rd_kafka_consume_start(rd_kafka_topic_t *, int32_t, int64_t);
extern int rd_kafka_consume_stop(rd_kafka_topic_t *, int32_t);
extern ssize_t rd_kafka_consume_batch(rd_kafka_topic_t *, int32_t, int, rd_kafka_message_t **, size_t);
extern void rd_kafka_message_destroy(rd_kafka_message_t *);
extern rd_kafka_error_t *rd_kafka_init_transactions(rd_kafka_t *, int);
extern rd_kafka_error_t *rd_kafka_begin_transaction(rd_kafka_t *);
extern rd_kafka_error_t *rd_kafka_commit_transaction(rd_kafka_t *, int);
extern const char *rd_kafka_error_string(const rd_kafka_error_t *);

enum { TEXT_BYTES = 1 << 20, BATCH = 10000, RUN = 100, TIMEOUT_MS = 120000 };
static char text[TEXT_BYTES];
static uint64_t delivered;
static char problem[512];

static void fail(const char *what, const char *why) {
    fprintf(stderr, "rdkafka_load: %s: %s\n", what, why);
    exit(1);
}

static void expect(const char *what, rd_kafka_error_t *error) {
    if (error) fail(what, rd_kafka_error_string(error));
}

static double seconds_of(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static double now_seconds(void) { return seconds_of(CLOCK_MONOTONIC); }

static Undisturbed measured;
static double measured_since, used_before;

/* Of processor time, in all threads. */
static double used_seconds(void) { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

static void begin_to_measure(double seconds, uint64_t done) {
    begin_undisturbed(&measured, seconds, done);
    measured_since = now_seconds(), used_before = used_seconds();
}

/* Words from a vocabulary of 2,000, the same ones in every run. */
static void write_text(void) {
    uint64_t seed = 88172645463325252u;
    for (size_t at = 0; at < TEXT_BYTES;) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        uint64_t word = (seed % 2000 + 1) * 2654435761u;
        for (int letter = 0; letter < 3 + (int)(word % 7) && at < TEXT_BYTES; letter++)
            text[at++] = (char)('a' + (word >> (5 * letter)) % 26);
        if (at < TEXT_BYTES) text[at++] = ' ';
    }
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    if (message->err) fail("a record was not delivered", rd_kafka_err2str(message->err));
    delivered++;
}

static rd_kafka_t *open_client(int kind, int count, char **properties) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (int at = 0; at < count; at++) {
        char *value = strchr(properties[at], '=');
        if (!value) fail(properties[at], "a property is NAME=VALUE");
        *value++ = 0;
        if (rd_kafka_conf_set(conf, properties[at], value, problem, sizeof problem)) fail("configuration", problem);
    }
    if (kind == PRODUCER) rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *client = rd_kafka_new(kind, conf, problem, sizeof problem);
    if (!client) fail("start", problem);
    return client;
}

static void send_record(rd_kafka_t *client, rd_kafka_topic_t *topic, uint64_t number, int partitions, size_t size) {
    char *value = text + number * 61 % (TEXT_BYTES - size);
    while (rd_kafka_produce(topic, (int32_t)(number / RUN % (uint64_t)partitions), 0, value, size, NULL, 0, NULL)) {
        if (rd_kafka_last_error() != QUEUE_FULL) fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(client, 1);
    }
}

static void flush(rd_kafka_t *client) {
    int error = rd_kafka_flush(client, TIMEOUT_MS);
    if (error) fail("flush", rd_kafka_err2str(error));
}

static void print(uint64_t done) {
    end_slice(&measured, done, 1);
    double busy = (used_seconds() - used_before) / (now_seconds() - measured_since);
    printf("{\"per_second\": %.1f, \"undisturbed\": %.3f, \"client_busy\": %.3f}\n", done_per_second(&measured),
           undisturbed_share(&measured), busy);
}

static void produce(int count, char **arguments) {
    int partitions = atoi(arguments[1]);
    size_t size = (size_t)atol(arguments[2]);
    uint64_t wanted = (uint64_t)atoll(arguments[3]), sent = 0;
    double seconds = atof(arguments[4]);
    rd_kafka_t *client = open_client(PRODUCER, count - 5, arguments + 5);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, arguments[0], NULL);
    send_record(client, topic, 0, partitions, size);
    flush(client);
    begin_to_measure(seconds, delivered);
    while (sent < wanted && !is_long_enough(&measured)) {
        send_record(client, topic, sent++, partitions, size);
        if (sent % RUN) continue;
        rd_kafka_poll(client, 0);
        end_slice(&measured, delivered, 0);
    }
    for (double deadline = now_seconds() + TIMEOUT_MS / 1000.0; delivered < sent + 1;) {
        if (now_seconds() > deadline) fail("flush", "records are not delivered");
        rd_kafka_poll(client, 1);
        end_slice(&measured, delivered, 0);
    }
    print(delivered);
}

static void consume(int count, char **arguments) {
    static rd_kafka_message_t *messages[BATCH];
    uint64_t wanted = (uint64_t)atoll(arguments[1]), all = 0;
    rd_kafka_t *client = open_client(CONSUMER, count - 2, arguments + 2);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, arguments[0], NULL);
    if (rd_kafka_consume_start(topic, 0, FROM_BEGINNING)) fail("consume", "cannot begin");
    double last = now_seconds();
    while (all < wanted) {
        ssize_t found = rd_kafka_consume_batch(topic, 0, 100, messages, BATCH);
        if (found < 0) fail("consume", rd_kafka_err2str(rd_kafka_last_error()));
        for (ssize_t at = 0; at < found; at++) {
            int error = messages[at]->err;
            if (error && error != END_OF_PARTITION) fail("consume", rd_kafka_err2str(error));
            all += !error;
            rd_kafka_message_destroy(messages[at]);
        }
        double now = now_seconds();
        if (found > 0) last = now;
        if (measured_since == 0 && all) begin_to_measure(0, all);
        end_slice(&measured, all, 0);
        if (now - last > TIMEOUT_MS / 1000.0) fail("consume", "no records come");
    }
    print(all);
    rd_kafka_consume_stop(topic, 0);
}

static void transactions(int count, char **arguments) {
    uint64_t records = (uint64_t)atoll(arguments[1]), sent = 0, committed = 0;
    size_t size = (size_t)atol(arguments[2]);
    double seconds = atof(arguments[3]);
    rd_kafka_t *client = open_client(PRODUCER, count - 4, arguments + 4);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, arguments[0], NULL);
    expect("init_transactions", rd_kafka_init_transactions(client, TIMEOUT_MS));
    for (;;) {
        expect("begin_transaction", rd_kafka_begin_transaction(client));
        for (uint64_t at = 0; at < records; at++) send_record(client, topic, sent++, 1, size);
        expect("commit_transaction", rd_kafka_commit_transaction(client, TIMEOUT_MS));
        if (committed++ == 0) begin_to_measure(seconds, committed); /* the first one finds its coordinator */
        end_slice(&measured, committed, 0);
        if (is_long_enough(&measured)) break;
    }
    print(committed);
}

int main(int count, char **arguments) {
    write_text();
    if (count >= 7 && !strcmp(arguments[1], "produce")) produce(count - 2, arguments + 2);
    else if (count >= 4 && !strcmp(arguments[1], "consume")) consume(count - 2, arguments + 2);
    else if (count >= 6 && !strcmp(arguments[1], "transactions")) transactions(count - 2, arguments + 2);
    else fail("usage", "see the head of rdkafka_load.c");
    return 0;
}
