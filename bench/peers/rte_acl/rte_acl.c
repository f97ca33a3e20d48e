/*
 * rte_acl, the packet classifier of DPDK, as a peer.
 *
 * What it is: rules become up to eight multi-bit tries over the bytes of a
 * header; a lookup walks all of them, several headers at a time in the lanes
 * of vector registers. There are no updates: every change is a new build.
 *
 * Headers: an array of pointers to headers, as rte_acl_classify() wants it.
 * They are prepared before any time is taken. Each header is packed tightly,
 * in network order, in the order in which rte_acl reads it: the protocol first
 * (it wants one byte, then groups of four), then addresses, then ports:
 *
 *     IPv4, 16 bytes   - - - proto | src | dst | sport dport
 *     IPv6, 40 bytes   - - - proto | src, four times four | dst | sport dport
 *
 * Packets in a switch would lie a cache line or more apart: this is kinder.
 *
 * Rules: each has a priority of its own, because equal ones are undefined.
 * Protocols are bit masks, addresses prefixes, ports ranges. No range is
 * expanded.
 *
 * Options
 *     pages=thp     its tries and the headers lie in memory for which the
 *                   kernel is asked for transparent huge pages (the default)
 *     pages=4k      in memory for which it is asked for none
 *     memory=MIB    all the memory that it may take; a third of it for the
 *                   finished tries, the rest for building. Default: 12288
 *     max_size=MIB  rte_acl's own limit on the finished tries. 0, the default,
 *                   is no limit, and then rte_acl splits rules into more and
 *                   smaller tries; with a limit it begins with fewer and larger
 *                   ones, and goes back to smaller ones when they exceed it
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_acl.h>
#include <rte_config.h>
#include <rte_errno.h>
#include <rte_version.h>

#include "../common/peer.h"
#include "dpdk.h"

/* Field numbers of the two schemas. */
enum { SRC, DST, SPORT, DPORT, PROTO, FIELDS };

/* Where a header begins with its protocol. */
enum { PROTO_AT = 3, ADDRESSES_AT = 4 };

static size_t max_size;

static const struct subject *rules_and_headers;
static struct rte_acl_config config;
static struct rte_acl_rule *rules;
static size_t rule_size;
static const uint8_t **packets;

static struct rte_acl_ctx *acl;
static size_t bytes_of_rules, bytes_of_all;

static const char *version(void)
{
	return rte_version();
}

static int option(const char *name, const char *value)
{
	char *end;
	if (strcmp(name, "pages") == 0) {
		huge_pages = strcmp(value, "thp") == 0;
		return huge_pages || strcmp(value, "4k") == 0 ? 0 : fail("pages are thp or 4k, not %s", value);
	}
	bool is_memory = strcmp(name, "memory") == 0;
	if (!is_memory && strcmp(name, "max_size") != 0)
		return fail("no option %s; there are pages, memory, max_size", name);
	size_t mib = strtoul(value, &end, 10);
	if (end == value || *end != '\0' || mib > 1 << 24 || (is_memory && mib < 64))
		return fail("%s is a number of MiB, not %s", name, value);
	*(is_memory ? &memory : &max_size) = mib * MIB;
	return 0;
}

static void define(unsigned type, unsigned size, unsigned input, size_t offset)
{
	unsigned index = config.num_fields++;
	config.defs[index] = (struct rte_acl_field_def){
		.type = (uint8_t)type,
		.size = (uint8_t)size,
		.field_index = (uint8_t)index,
		.input_index = (uint8_t)input,
		.offset = (uint32_t)offset,
	};
}

/* How rte_acl sees a header: one byte, then groups of four. */
static void define_fields(size_t address_bytes)
{
	unsigned input = 0;
	config.num_categories = 1;
	config.max_size = max_size;
	define(RTE_ACL_FIELD_TYPE_BITMASK, 1, input++, PROTO_AT);
	size_t at = ADDRESSES_AT;
	for (size_t end = at + 2 * address_bytes; at < end; at += 4)
		define(RTE_ACL_FIELD_TYPE_MASK, 4, input++, at);
	define(RTE_ACL_FIELD_TYPE_RANGE, 2, input, at);
	define(RTE_ACL_FIELD_TYPE_RANGE, 2, input, at + 2);
}

static unsigned ones(const uint8_t *bytes, size_t count)
{
	return (unsigned)__builtin_popcountll(big_endian(bytes, count));
}

static void convert_rule(const struct subject *s, size_t number, struct rte_acl_rule *rule)
{
	rule->data.category_mask = 1;
	rule->data.priority = (int32_t)(s->rules - number);
	rule->data.userdata = (uint32_t)number + 1;
	struct rte_acl_field *field = rule->field;
	field->value.u8 = *rule_first(s, number, PROTO);
	field->mask_range.u8 = *rule_second(s, number, PROTO);
	field++;
	for (unsigned address = SRC; address <= DST; address++) {
		const uint8_t *value = rule_first(s, number, address);
		const uint8_t *mask = rule_second(s, number, address);
		for (size_t at = 0; at < s->field[address].bytes; at += 4, field++) {
			field->value.u32 = (uint32_t)big_endian(value + at, 4);
			field->mask_range.u32 = ones(mask + at, 4);
		}
	}
	for (unsigned port = SPORT; port <= DPORT; port++, field++) {
		field->value.u16 = (uint16_t)big_endian(rule_first(s, number, port), 2);
		field->mask_range.u16 = (uint16_t)big_endian(rule_second(s, number, port), 2);
	}
}

static int prepare_rules(const struct subject *s)
{
	rule_size = RTE_ACL_RULE_SZ(config.num_fields);
	if (s->rules > RTE_ACL_MAX_PRIORITY)
		return fail("more rules than rte_acl has priorities");
	rules = calloc(s->rules + 1, rule_size);
	if (rules == NULL)
		return fail("no memory for the rules");
	for (size_t i = 0; i < s->rules; i++)
		convert_rule(s, i, (struct rte_acl_rule *)((char *)rules + i * rule_size));
	return 0;
}

static int prepare_headers(const struct subject *s)
{
	size_t addresses = 2 * s->field[SRC].bytes;
	size_t stride = ADDRESSES_AT + addresses + 4;
	packets = pages(s->headers * sizeof(*packets) + 1);
	uint8_t *packet = pages(s->headers * stride + 1);
	if (packets == NULL || packet == NULL)
		return -1;
	for (size_t i = 0; i < s->headers; i++, packet += stride) {
		packet[PROTO_AT] = *header_value(s, i, PROTO);
		/* The others stand in this order and form in the subject. */
		memcpy(packet + ADDRESSES_AT, header_value(s, i, SRC), addresses + 4);
		packets[i] = packet;
	}
	return 0;
}

static int open_subject(const struct subject *s)
{
	bool v4 = strcmp(s->schema, "ipv4-5tuple") == 0;
	bool v6 = strcmp(s->schema, "ipv6-5tuple") == 0;
	if ((!v4 && !v6) || s->fields != FIELDS)
		return fail("the rte_acl peer knows ipv4-5tuple and ipv6-5tuple, not %s", s->schema);
	rules_and_headers = s;
	define_fields(s->field[SRC].bytes);
	if (prepare_rules(s) != 0 || prepare_headers(s) != 0)
		return -1;
	return start_dpdk() == 0 ? limit_memory() : -1;
}

static struct rte_acl_ctx *context(const char *name, size_t capacity)
{
	return rte_acl_create(&(struct rte_acl_param){
		.name = name,
		.socket_id = SOCKET_ID_ANY,
		.rule_size = (uint32_t)rule_size,
		.max_rule_num = (uint32_t)capacity,
	});
}

static const struct {
	const char *name;
	enum rte_acl_classify_alg algorithm;
} known[] = {
	{ "scalar", RTE_ACL_CLASSIFY_SCALAR },
	{ "sse", RTE_ACL_CLASSIFY_SSE },
	{ "avx2", RTE_ACL_CLASSIFY_AVX2 },
	{ "avx512x16", RTE_ACL_CLASSIFY_AVX512X16 },
	{ "avx512x32", RTE_ACL_CLASSIFY_AVX512X32 },
	{ "neon", RTE_ACL_CLASSIFY_NEON },
	{ "altivec", RTE_ACL_CLASSIFY_ALTIVEC },
};
enum { KNOWN = sizeof(known) / sizeof(known[0]) };

/* Those that this processor and this build of DPDK can run. */
static const char *const *algorithms(void)
{
	static const char *names[KNOWN + 1];
	if (names[0] != NULL)
		return names;
	struct rte_acl_ctx *trial = context("trial", 1);
	size_t count = 0;
	for (size_t i = 0; trial != NULL && i < KNOWN; i++) {
		if (rte_acl_set_ctx_classify(trial, known[i].algorithm) == 0)
			names[count++] = known[i].name;
	}
	rte_acl_free(trial);
	return names;
}

static int build(void)
{
	size_t count = rules_and_headers->rules;
	size_t before = allocated();
	acl = context("rules", count > 0 ? count : 1);
	if (acl == NULL)
		return fail_with_log("rte_acl_create", rte_errno);
	int result = rte_acl_add_rules(acl, rules, (uint32_t)count);
	if (result != 0)
		return fail_with_log("rte_acl_add_rules", -result);
	bytes_of_rules = allocated() - before;
	result = rte_acl_build(acl, &config);
	if (result != 0)
		return fail_with_log("rte_acl_build", -result);
	bytes_of_all = allocated() - before;
	return 0;
}

static int choose(const char *algorithm)
{
	for (size_t i = 0; i < KNOWN; i++) {
		if (strcmp(known[i].name, algorithm) == 0) {
			int result = rte_acl_set_ctx_classify(acl, known[i].algorithm);
			return result == 0 ? 0 : fail_with_log("rte_acl_set_ctx_classify", -result);
		}
	}
	return fail("no algorithm %s", algorithm);
}

static int classify(size_t first, size_t count, uint32_t *winners)
{
	int result = rte_acl_classify(acl, packets + first, winners, (uint32_t)count, 1);
	return result == 0 ? 0 : fail_with_log("rte_acl_classify", -result);
}

/* The number of tries is only told to people. */
static size_t tries(void)
{
	char *text = NULL;
	size_t size, count = UNKNOWN;
	FILE *const out = stdout;
	FILE *const copy = open_memstream(&text, &size);
	if (copy == NULL)
		return UNKNOWN;
	stdout = copy;
	rte_acl_dump(acl);
	stdout = out;
	fclose(copy);
	const char *line = strstr(text, "num_tries=");
	if (line == NULL || sscanf(line, "num_tries=%zu", &count) != 1)
		count = UNKNOWN;
	free(text);
	return count;
}

static void sizes(struct peer_sizes *sizes)
{
	sizes->bytes = bytes_of_all;
	sizes->index_bytes = bytes_of_all - bytes_of_rules;
	sizes->tables = tries();
}

int main(int count, char **arguments)
{
	static const struct peer peer = {
		.name = "rte_acl",
		.version = version,
		.option = option,
		.open = open_subject,
		.algorithms = algorithms,
		.build = build,
		.choose = choose,
		.classify = classify,
		.sizes = sizes,
	};
	return peer_main(&peer, count, arguments);
}
