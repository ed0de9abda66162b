/* Beats: datagrams by which ranks tell each other that they live, and what they have
 * heard of others. Each rank sends a few of them a second to ranks that it chooses at
 * random. So the news of each rank reaches all within seconds, also on ways around a
 * broken link, and the number of datagrams grows with the number of ranks alone. */
#define _GNU_SOURCE
#include "watch.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <math.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tess_log.h"
#include "tess_mem.h"

/* Time between two beats [s]. A longer time between two ticks is the time for which
 * this process was stopped, and does not count: nobody could be heard in it. */
static const double BEAT_S = 1, LONGEST_TICK_S = 2;

/* This many beats of a rank may be lost. News of a rank travel longer if there are more
 * than NEWS ranks to tell of. */
static const double MISSED_BEATS = 3.5, RANKS_PER_DELAY = 1000;

/* Ranks to which a beat goes; ranks of which one datagram tells, so that it fits into a
 * frame of Ethernet; addresses of a host. */
enum { FAN_OUT = 8, NEWS = 320, MOST_ADDRESSES = 8, HOST_LENGTH = 64 };

enum { NEVER = UINT16_MAX };

/* Where a rank can be reached. */
typedef struct card {
    struct in_addr address[MOST_ADDRESSES];
    int num;
    in_port_t port; /* in the order of the network; 0: this rank has no socket */
    char host[HOST_LENGTH];
} card;

/* What a datagram tells of a rank. */
typedef struct news {
    uint16_t age_ds;  /* time since it was heard [.1 s], rounded up */
    uint16_t waits_s; /* rounded down */
} news;

typedef struct datagram {
    uint64_t job[2]; /* a random number of the job */
    int32_t rank;    /* of the sender */
    int32_t phase;
    int32_t first, count; /* ranks of which it tells, from the first one on */
    news sender;
    news of[NEWS];
} datagram;

/* The last address from which a rank was heard, and when. */
typedef struct source {
    struct sockaddr_in from;
    double heard_s;
} source;

struct watch_beats {
    int rank, size, socket, wake;
    uint64_t job[2], random;
    card *cards;       /* [size] */
    source *sources;   /* [size] */
    watch_rank *known; /* [size] */
    watch_phase phase;
    double now_s;   /* time that this process was not stopped, since the start */
    double clock_s; /* tess_time_now() at the last tick */
    double due_s;   /* of the next beat, as of tess_time_now() */
    int next;       /* the first rank of which the next datagram tells */
};

/* ---- where ranks are ---- */

static void find_addresses(card *own)
{
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0) return;
    for (const struct ifaddrs *at = list; at && own->num < MOST_ADDRESSES;
         at = at->ifa_next) {
        struct sockaddr_in address;
        if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET ||
            !(at->ifa_flags & IFF_UP))
            continue;
        memcpy(&address, at->ifa_addr, sizeof address);
        own->address[own->num++] = address.sin_addr;
    }
    freeifaddrs(list);
}

/* Opens the socket. Without one, the port stays 0. */
static void open_socket(watch_beats *beats, card *own)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    gethostname(own->host, sizeof own->host - 1);
    find_addresses(own);
    beats->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (beats->socket < 0) return;
    if (bind(beats->socket, (struct sockaddr *)&address, sizeof address) == 0 &&
        getsockname(beats->socket, (struct sockaddr *)&address, &length) == 0)
        own->port = address.sin_port;
}

tess_status watch_beats_create(tess_comm *comm, watch_beats **beats_out)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(comm);
    card own = {0};
    watch_beats *beats = tess_alloc_zero(1, sizeof *beats);
    if (beats) {
        beats->rank = tess_comm_rank(comm);
        beats->size = size;
        beats->socket = beats->wake = -1;
        beats->cards = tess_alloc_zero(size, sizeof *beats->cards);
        beats->sources = tess_alloc_zero(size, sizeof *beats->sources);
        beats->known = tess_alloc_zero(size, sizeof *beats->known);
    }
    TESS_TRY(
        tess_comm_agree(comm, beats && beats->cards && beats->sources && beats->known
                                  ? TESS_OK
                                  : TESS_ERR_ALLOC));
    for (int k = 0; k < size; ++k)
        beats->known[k].heard_s = beats->sources[k].heard_s = -1;
    open_socket(beats, &own);
    beats->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (getrandom(beats->job, sizeof beats->job, 0) != sizeof beats->job)
        beats->job[0] = (uint64_t)getpid();
    TESS_TRY(tess_comm_bcast(comm, beats->job, sizeof beats->job, 0));
    TESS_TRY(tess_comm_allgather(comm, &own, sizeof own, beats->cards));
    beats->random = beats->job[1] ^ ((uint64_t)beats->rank + 1) << 32;
    beats->clock_s = beats->due_s = tess_time_now();
    *beats_out = beats;
    beats = NULL;
cleanup:
    watch_beats_free(beats);
    return status;
}

void watch_beats_free(watch_beats *beats)
{
    if (!beats) return;
    if (beats->socket >= 0) close(beats->socket);
    if (beats->wake >= 0) close(beats->wake);
    tess_free(beats->cards);
    tess_free(beats->sources);
    tess_free(beats->known);
    tess_free(beats);
}

/* ---- sending ---- */

static news news_of(const watch_beats *beats, int rank)
{
    const watch_rank *known = &beats->known[rank];
    const double age_ds = ceil(10 * (beats->now_s - known->heard_s));
    return (news){.age_ds =
                      known->heard_s < 0 || age_ds >= NEVER ? NEVER : (uint16_t)age_ds,
                  .waits_s = (uint16_t)fmin(known->waits_s, UINT16_MAX)};
}

static size_t write_datagram(watch_beats *beats, datagram *out)
{
    *out = (datagram){.job = {beats->job[0], beats->job[1]},
                      .rank = beats->rank,
                      .phase = (int32_t)beats->phase,
                      .first = beats->next,
                      .count = beats->size < NEWS ? beats->size : NEWS,
                      .sender = news_of(beats, beats->rank)};
    for (int k = 0; k < out->count; ++k)
        out->of[k] = news_of(beats, (out->first + k) % beats->size);
    beats->next = (out->first + out->count) % beats->size;
    return offsetof(datagram, of) + (size_t)out->count * sizeof out->of[0];
}

/* Sends to where the rank was heard of late, or else to all of its addresses. A
 * datagram that cannot be sent counts as lost. */
static void send_to(watch_beats *beats, int rank)
{
    const card *to = &beats->cards[rank];
    const source *last = &beats->sources[rank];
    datagram out;
    if (beats->socket < 0 || to->port == 0) return;
    const size_t bytes = write_datagram(beats, &out);
    struct sockaddr_in address = last->from;
    const bool is_known =
        last->heard_s >= 0 && beats->now_s - last->heard_s < watch_beats_fresh_s(beats);
    for (int k = 0; k < (is_known ? 1 : to->num); ++k) {
        if (!is_known)
            address = (struct sockaddr_in){.sin_family = AF_INET,
                                           .sin_port = to->port,
                                           .sin_addr = to->address[k]};
        (void)sendto(beats->socket, &out, bytes, 0, (struct sockaddr *)&address,
                     sizeof address);
    }
}

/* Another rank, by chance (the generator of Marsaglia 2003, "Xorshift RNGs"). */
static int any_other(watch_beats *beats)
{
    beats->random ^= beats->random << 13;
    beats->random ^= beats->random >> 7;
    beats->random ^= beats->random << 17;
    const int step = 1 + (int)(beats->random % (uint64_t)(beats->size - 1));
    return (beats->rank + step) % beats->size;
}

static void send_beat(watch_beats *beats)
{
    const int others = beats->size - 1;
    for (int k = 1; k <= others && k <= FAN_OUT; ++k)
        send_to(beats,
                others <= FAN_OUT ? (beats->rank + k) % beats->size : any_other(beats));
}

/* ---- receiving ---- */

static void learn(watch_beats *beats, int rank, const news *of)
{
    watch_rank *known = &beats->known[rank];
    const double heard_s = beats->now_s - 0.1 * of->age_ds;
    if (rank == beats->rank || of->age_ds == NEVER || heard_s <= known->heard_s) return;
    *known = (watch_rank){.heard_s = fmax(heard_s, 0), .waits_s = of->waits_s};
}

static bool is_of_this_job(const watch_beats *beats, const datagram *in, ssize_t bytes)
{
    if (bytes < (ssize_t)offsetof(datagram, of) || in->job[0] != beats->job[0] ||
        in->job[1] != beats->job[1])
        return false;
    return in->rank >= 0 && in->rank < beats->size && in->first >= 0 &&
           in->first < beats->size && in->count >= 0 && in->count <= NEWS &&
           bytes >=
               (ssize_t)(offsetof(datagram, of) + (size_t)in->count * sizeof in->of[0]);
}

static void receive(watch_beats *beats)
{
    for (;;) {
        datagram in;
        source from = {.heard_s = beats->now_s};
        socklen_t length = sizeof from.from;
        const ssize_t bytes = recvfrom(beats->socket, &in, sizeof in, MSG_DONTWAIT,
                                       (struct sockaddr *)&from.from, &length);
        if (bytes < 0) return;
        if (!is_of_this_job(beats, &in, bytes)) continue;
        beats->sources[in.rank] = from;
        learn(beats, in.rank, &in.sender);
        for (int k = 0; k < in.count; ++k)
            learn(beats, (in.first + k) % beats->size, &in.of[k]);
        if (in.phase > (int)beats->phase && in.phase <= WATCH_SAID)
            beats->phase = (watch_phase)in.phase;
    }
}

/* Receives until a beat is due, a phase begins, or another thread wakes this one. */
static void receive_until_due(watch_beats *beats)
{
    const watch_phase before = beats->phase;
    struct pollfd wait_for[2] = {{.fd = beats->socket, .events = POLLIN},
                                 {.fd = beats->wake, .events = POLLIN}};
    while (beats->phase == before) {
        const double left_s = beats->due_s - tess_time_now();
        if (left_s <= 0 || poll(wait_for, 2, (int)ceil(1e3 * left_s)) < 0) return;
        if (wait_for[0].revents) receive(beats);
        if (wait_for[1].revents) return;
    }
}

double watch_beats_tick(watch_beats *beats, double waits_s)
{
    receive_until_due(beats);
    const double clock_s = tess_time_now();
    const double passed_s = fmin(clock_s - beats->clock_s, LONGEST_TICK_S);
    beats->clock_s = clock_s;
    beats->now_s += passed_s;
    beats->known[beats->rank] =
        (watch_rank){.heard_s = beats->now_s, .waits_s = waits_s};
    if (clock_s >= beats->due_s) {
        send_beat(beats);
        beats->due_s = clock_s + BEAT_S;
    }
    return passed_s;
}

void watch_beats_wake(watch_beats *beats)
{
    const uint64_t one = 1;
    (void)!write(beats->wake, &one, sizeof one);
}

/* ---- what is known ---- */

double watch_beats_now(const watch_beats *beats)
{
    return beats->now_s;
}

const watch_rank *watch_beats_of(const watch_beats *beats, int rank)
{
    return &beats->known[rank];
}

const char *watch_beats_host(const watch_beats *beats, int rank)
{
    return beats->cards[rank].host;
}

watch_phase watch_beats_phase(const watch_beats *beats)
{
    return beats->phase;
}

void watch_beats_announce(watch_beats *beats, watch_phase phase)
{
    beats->phase = phase;
    for (int k = 1; k < beats->size; ++k)
        send_to(beats, (beats->rank + k) % beats->size);
}

double watch_beats_fresh_s(const watch_beats *beats)
{
    return MISSED_BEATS * BEAT_S * (1 + beats->size / RANKS_PER_DELAY);
}
