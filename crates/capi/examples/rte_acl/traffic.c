#include "traffic.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_RULES = 1 << 20, FRAME_STRIDE = 128 };

struct rule *rules;
size_t rule_count = 10000;
const uint8_t **frames;
size_t packet_count = 65536;

void fail(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);
	if (memory == NULL)
		fail("no memory for %zu times %zu bytes", count, size);
	return memory;
}

static uint32_t random_bits(void)
{
	static uint64_t state = 0x9e3779b97f4a7c15;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32);
}

uint32_t below(uint32_t limit)
{
	return (uint32_t)(((uint64_t)random_bits() * limit) >> 32);
}

static uint32_t host_bits(uint32_t length)
{
	return length == 0 ? UINT32_MAX : (uint32_t)((1ULL << (32 - length)) - 1);
}

static uint32_t random_queue(void)
{
	return below(4) == 0 ? DROP : FIRST_PORT + below(PORTS);
}

/* Few values for each byte, so that short prefixes contain long ones. */
static uint32_t address(uint32_t network)
{
	return network << 24 | below(32) << 18 | below(32) << 11 | below(64) << 2 | below(4);
}

/* Services, ranges or all for servers; mostly all for clients. */
static void random_ports(uint16_t ports[2], bool server)
{
	static const uint16_t services[8] = { 22, 25, 53, 80, 123, 143, 443, 3306 };
	uint32_t kind = server ? below(8) : 6 + below(16);
	ports[0] = 0;
	ports[1] = UINT16_MAX;
	if (kind < 5) {
		ports[0] = ports[1] = services[below(8)];
	} else if (kind == 5) {
		ports[0] = (uint16_t)below(60000);
		ports[1] = (uint16_t)(ports[0] + below(100));
	} else if (kind == 6) {
		ports[0] = 1024;
	}
}

/* Rules with longer prefixes come first, as exceptions do in access lists. */
static int compare_rules(const void *first, const void *second)
{
	const struct rule *a = first, *b = second;
	uint32_t length_a = a->src_length + a->dst_length, length_b = b->src_length + b->dst_length;
	if (length_a != length_b)
		return length_a < length_b ? 1 : -1;
	return memcmp(a, b, sizeof(*a));
}

void make_rules(void)
{
	static const uint8_t src_lengths[8] = { 0, 0, 0, 16, 24, 24, 28, 32 };
	static const uint8_t dst_lengths[8] = { 16, 24, 24, 28, 32, 32, 32, 32 };
	static const uint8_t protos[8] = { 6, 6, 6, 6, 6, 17, 17, 0 };
	rules = allocate(rule_count, sizeof(*rules));
	for (size_t i = 0; i < rule_count; i++) {
		struct rule *rule = &rules[i];
		rule->src_length = src_lengths[below(8)];
		rule->dst_length = dst_lengths[below(8)];
		rule->src = address(172) & ~host_bits(rule->src_length);
		rule->dst = address(10) & ~host_bits(rule->dst_length);
		rule->proto = protos[below(8)];
		random_ports(rule->sport, false);
		random_ports(rule->dport, true);
		rule->queue = random_queue();
	}
	qsort(rules, rule_count, sizeof(*rules), compare_rules);
}

/* False if a line is not a rule. */
static bool read_rule(const char *line, struct rule *rule)
{
	unsigned s[5], d[5], ports[4], proto, proto_mask;
	int count = sscanf(line, "@%u.%u.%u.%u/%u %u.%u.%u.%u/%u %u : %u %u : %u %x/%x", &s[0], &s[1],
			   &s[2], &s[3], &s[4], &d[0], &d[1], &d[2], &d[3], &d[4], &ports[0], &ports[1],
			   &ports[2], &ports[3], &proto, &proto_mask);
	bool in_range = count == 16 && s[4] <= 32 && d[4] <= 32 && proto <= UINT8_MAX;
	for (unsigned i = 0; in_range && i < 4; i++)
		in_range = s[i] <= UINT8_MAX && d[i] <= UINT8_MAX && ports[i] <= UINT16_MAX;
	if (!in_range || ports[0] > ports[1] || ports[2] > ports[3] ||
	    (proto_mask == 0 ? proto != 0 : proto_mask != UINT8_MAX || proto == 0))
		return false;
	*rule = (struct rule){
		.src = (s[0] << 24 | s[1] << 16 | s[2] << 8 | s[3]) & ~host_bits(s[4]),
		.dst = (d[0] << 24 | d[1] << 16 | d[2] << 8 | d[3]) & ~host_bits(d[4]),
		.src_length = s[4],
		.dst_length = d[4],
		.sport = { (uint16_t)ports[0], (uint16_t)ports[1] },
		.dport = { (uint16_t)ports[2], (uint16_t)ports[3] },
		.proto = (uint8_t)proto,
		.queue = random_queue(),
	};
	return true;
}

void read_rules(const char *path)
{
	char line[256];
	FILE *file = fopen(path, "r");
	if (file == NULL)
		fail("%s: %s", path, strerror(errno));
	rules = allocate(MAX_RULES, sizeof(*rules));
	rule_count = 0;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (rule_count == MAX_RULES)
			fail("%s: more than %d rules", path, MAX_RULES);
		line[strcspn(line, "\r\n")] = '\0';
		if (!read_rule(line, &rules[rule_count++]))
			fail("%s:%zu: expected \"@SRC/LENGTH DST/LENGTH PORT : PORT PORT : PORT "
			     "PROTO/MASK\" with a protocol of mask 0xFF, or 0x00/0x00; found \"%s\"",
			     path, rule_count, line);
	}
	if (ferror(file))
		fail("%s: cannot be read", path);
	fclose(file);
	if (rule_count == 0)
		fail("%s: no rules", path);
}

static void put(uint8_t *to, uint32_t value, unsigned bytes)
{
	while (bytes-- > 0) {
		to[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

/* One of 16 packets takes its source from another rule: many of these hit no rule. Protocols
 * without ports have port 0. */
static void make_frame(uint8_t *frame)
{
	const struct rule *rule = &rules[below((uint32_t)rule_count)];
	const struct rule *source = below(16) == 0 ? &rules[below((uint32_t)rule_count)] : rule;
	uint32_t proto = rule->proto != 0 ? rule->proto : below(2) == 0 ? 6 : 17;
	put(frame + 12, 0x0800, 2);
	put(frame + 14, 0x4500, 2);
	put(frame + 16, FRAME_BYTES - 14, 2); /* bytes of the IPv4 packet */
	frame[22] = 64;
	frame[PROTO_AT] = (uint8_t)proto;
	put(frame + SRC_AT, source->src | (random_bits() & host_bits(source->src_length)), 4);
	put(frame + DST_AT, rule->dst | (random_bits() & host_bits(rule->dst_length)), 4);
	if (proto != 6 && proto != 17)
		return;
	put(frame + SPORT_AT, rule->sport[0] + below(rule->sport[1] - rule->sport[0] + 1u), 2);
	put(frame + DPORT_AT, rule->dport[0] + below(rule->dport[1] - rule->dport[0] + 1u), 2);
	if (proto == 6)
		frame[46] = 5 << 4; /* words of the TCP header, in the high bits */
	else
		put(frame + 38, FRAME_BYTES - 34, 2); /* bytes of the UDP datagram */
}

void make_packets(void)
{
	uint8_t *bytes = allocate(packet_count, FRAME_STRIDE);
	frames = allocate(packet_count, sizeof(*frames));
	for (size_t i = 0; i < packet_count; i++) {
		frames[i] = bytes + i * FRAME_STRIDE;
		make_frame(bytes + i * FRAME_STRIDE);
	}
}
