/*
 * One forwarding loop with rte_acl, and the same loop with classyard in its place.
 *
 *     forward [RULES [PACKETS [UPDATES]]]      default: 10000 65536 200
 *
 * RULES is a number of random rules, with a fixed seed, or a file of rules in the format of
 * ClassBench. The program makes both libraries' rules from one array: the C API does not
 * give the rules of a policy back.
 *
 * Each burst is received, classified, and put into the queues of its ports. The program prints
 * the rates of both libraries and the time to replace a rule. It compares every decision; at a
 * difference it prints the packet and exits with 1.
 *
 * with_rte_acl.c and with_classyard.c have the calls of both libraries. The loop calls either.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "classifiers.h"
#include "traffic.h"

enum { ROUNDS = 15, MAX_WAYS = ACL_ALGORITHMS + 2 };

struct queue {
	const uint8_t *frames[MAX_BURST];
	unsigned count;
};

static size_t update_count = 200;
static struct queue queues[QUEUES];
static size_t sent[QUEUES];

static double seconds(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int compare_numbers(const void *first, const void *second)
{
	double a = *(const double *)first, b = *(const double *)second;
	return (a > b) - (a < b);
}

/* The value that `percent` of the values do not exceed. Sorts the values. */
static double percentile(double *values, size_t count, size_t percent)
{
	qsort(values, count, sizeof(*values), compare_numbers);
	return values[(count - 1) * percent / 100];
}

/* Stands in for rte_eth_rx_burst(). */
static size_t receive(size_t first, size_t limit, const uint8_t **burst)
{
	size_t count = packet_count - first < limit ? packet_count - first : limit;
	for (size_t i = 0; i < count; i++) {
		burst[i] = frames[first + i];
		__builtin_prefetch(burst[i]);
	}
	return count;
}

/* Stands in for rte_eth_tx_burst(). */
static void transmit(void)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		sent[i] += queues[i].count;
		queues[i].count = 0;
	}
}

/* Forwards all packets once. Writes the winner of each, and returns seconds of CPU time. */
static double forward(classify *find, size_t burst_size, uint32_t *winners)
{
	double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
	const uint8_t *burst[MAX_BURST];
	memset(sent, 0, sizeof(sent));
	for (size_t first = 0; first < packet_count; first += burst_size) {
		size_t count = receive(first, burst_size, burst);
		find(burst, count, winners + first);
		for (size_t i = 0; i < count; i++) {
			struct queue *queue = &queues[winners[first + i] % QUEUES];
			queue->frames[queue->count++] = burst[i];
		}
		transmit();
	}
	return seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
}

struct way {
	const char *name;
	classify *find;
	int algorithm; /* of rte_acl; negative for classyard */
};

static void print_winner(const char *library, uint32_t winner)
{
	if (winner == 0)
		fprintf(stderr, "%s: no rule\n", library);
	else
		fprintf(stderr, "%s: rule %u, queue %u\n", library, winner >> QUEUE_BITS, winner % QUEUES);
}

static void fail_at(size_t packet, const char *name, uint32_t expected, uint32_t winner)
{
	const uint8_t *src = frames[packet] + SRC_AT, *dst = frames[packet] + DST_AT;
	fprintf(stderr, "packet %zu: src=%u.%u.%u.%u dst=%u.%u.%u.%u sport=%u dport=%u proto=%u\n", packet,
		src[0], src[1], src[2], src[3], dst[0], dst[1], dst[2], dst[3],
		get16(frames[packet] + SPORT_AT), get16(frames[packet] + DPORT_AT),
		frames[packet][PROTO_AT]);
	print_winner("expected", expected);
	print_winner(name, winner);
	exit(1);
}

/* Ends the program if a winner is not as expected, without its low `ignored` bits. */
static void compare(const char *name, const uint32_t *expected, const uint32_t *winners,
		    unsigned ignored)
{
	for (size_t i = 0; i < packet_count; i++) {
		uint32_t winner = winners[i] == UINT32_MAX ? 0 : winners[i];
		if (winner >> ignored != expected[i] >> ignored)
			fail_at(i, name, expected[i], winner);
	}
}

static double rate(struct way way, size_t burst_size, uint32_t *winners)
{
	if (way.algorithm >= 0)
		acl_choose((size_t)way.algorithm);
	return (double)packet_count / forward(way.find, burst_size, winners) / 1e6;
}

/* The first algorithm of rte_acl writes `expected`; the others must find the same. */
static void measure(const struct way *ways, size_t way_count, uint32_t *expected)
{
	static const size_t burst_sizes[] = { 32, 64, 256 };
	double rates[MAX_WAYS][ROUNDS];
	uint32_t *winners = allocate(packet_count, sizeof(*winners));
	printf("burst");
	for (size_t way = 0; way < way_count; way++)
		printf("  %s", ways[way].name);
	printf("\n");
	for (size_t i = 0; i < 3; i++) {
		for (size_t round = 0; round < ROUNDS; round++) {
			rates[0][round] = rate(ways[0], burst_sizes[i], expected);
			for (size_t way = 1; way < way_count; way++) {
				rates[way][round] = rate(ways[way], burst_sizes[i], winners);
				compare(ways[way].name, expected, winners, 0);
			}
		}
		printf("%5zu", burst_sizes[i]);
		for (size_t way = 0; way < way_count; way++)
			printf("  %*.1f", (int)strlen(ways[way].name), percentile(rates[way], ROUNDS, 50));
		printf("\n");
	}
	free(winners);
}

static size_t find_ways(struct way ways[MAX_WAYS])
{
	size_t count = 0;
	for (int i = 0; i < ACL_ALGORITHMS; i++) {
		if (acl_choose((size_t)i))
			ways[count++] = (struct way){ acl_algorithm((size_t)i), acl_classify, i };
	}
	if (count == 0)
		fail("rte_acl has no algorithm for this processor");
	ways[count++] = (struct way){ "classyard-columns", table_classify_columns, -1 };
	ways[count++] = (struct way){ "classyard-packets", table_classify_packets, -1 };
	return count;
}

struct controller {
	const uint32_t *winners; /* of the packets, to choose rules that packets hit */
	double *micros;
	atomic_bool done;
};

/* A second thread: replaces a rule each millisecond. */
static void *control(void *argument)
{
	struct controller *controller = argument;
	for (size_t i = 0; i < update_count;) {
		uint32_t winner = controller->winners[below((uint32_t)packet_count)];
		if (winner == 0)
			continue;
		size_t number = winner >> QUEUE_BITS;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		double begin = seconds(CLOCK_MONOTONIC);
		table_replace_rule(number, FIRST_PORT + (rules[number].queue + 1) % PORTS);
		controller->micros[i++] = (seconds(CLOCK_MONOTONIC) - begin) * 1e6;
	}
	controller->done = true;
	return NULL;
}

/* Forwards while rules change. Replaced rules keep their numbers, so every packet must have
 * the rule that it had before. */
static void forward_while_changing(const uint32_t *before)
{
	struct controller controller = { before, allocate(update_count, sizeof(double)), false };
	uint32_t *winners = allocate(packet_count, sizeof(*winners));
	double time = 0;
	size_t passes = 0;
	pthread_t thread;
	if (pthread_create(&thread, NULL, control, &controller) != 0)
		fail("no thread");
	do {
		time += forward(table_classify_columns, MAX_BURST, winners);
		compare("classyard while rules change", before, winners, QUEUE_BITS);
		passes++;
	} while (!controller.done);
	pthread_join(thread, NULL);
	printf("classyard replaces a rule in %.1f us (99 %%: %.1f us), and forwards %.1f M packets/s\n",
	       percentile(controller.micros, update_count, 50),
	       percentile(controller.micros, update_count, 99),
	       (double)(packet_count * passes) / time / 1e6);
	free(controller.micros);
	free(winners);
}

/* Builds rte_acl's tries again, and compares all packets under the changed rules. */
static void rebuild(const uint32_t *before)
{
	double times[3];
	uint32_t *expected = allocate(packet_count, sizeof(*expected));
	uint32_t *winners = allocate(packet_count, sizeof(*winners));
	for (size_t i = 0; i < 3; i++) {
		double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
		acl_build();
		times[i] = seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
	}
	forward(acl_classify, MAX_BURST, expected);
	forward(table_classify_columns, MAX_BURST, winners);
	compare("classyard", expected, winners, 0);
	size_t changed = 0;
	for (size_t i = 0; i < packet_count; i++)
		changed += expected[i] != before[i];
	if (changed == 0)
		fail("no packet has another queue after %zu changes", update_count);
	printf("rte_acl builds all rules again in %.0f us of CPU time\n", percentile(times, 3, 50) * 1e6);
	printf("%zu changes gave %zu packets another queue\n", update_count, changed);
	free(expected);
	free(winners);
}

static size_t number(const char *name, const char *text, size_t limit)
{
	char *end;
	size_t value = strtoul(text, &end, 10);
	if (*text == '\0' || *end != '\0' || value == 0 || value > limit)
		fail("%s: %s is not a number from 1 to %zu", name, text, limit);
	return value;
}

int main(int count, char **arguments)
{
	if (count > 2)
		packet_count = number("PACKETS", arguments[2], 1 << 24);
	if (count > 3)
		update_count = number("UPDATES", arguments[3], 1 << 20);
	if (count > 1 && strspn(arguments[1], "0123456789") < strlen(arguments[1])) {
		read_rules(arguments[1]);
	} else {
		if (count > 1)
			rule_count = number("RULES", arguments[1], 1 << 20);
		make_rules();
	}
	make_packets();
	acl_start();
	acl_build();
	table_build();

	uint32_t *winners = allocate(packet_count, sizeof(*winners));
	struct way ways[MAX_WAYS];
	printf("%s, classyard %s: %zu rules, %zu packets\n", acl_version(), table_version(), rule_count,
	       packet_count);
	printf("millions of packets a second of thread CPU time, medians of %d rounds:\n", ROUNDS);
	measure(ways, find_ways(ways), winners);
	printf("of %zu packets, rules drop %zu, and %zu have no rule\n", packet_count, sent[DROP],
	       sent[QUEUES - 1]);
	if (sent[QUEUES - 1] == packet_count)
		fail("no packet has a rule");
	forward_while_changing(winners);
	rebuild(winners);
	table_free();
	return 0;
}
