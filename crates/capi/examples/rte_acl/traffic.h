/* Rules and packets for forward.c. */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>

enum { FRAME_BYTES = 64 };

/* Places in a frame: Ethernet without VLAN tag, IPv4 without options, TCP or UDP. */
enum { PROTO_AT = 23, SRC_AT = 26, DST_AT = 30, SPORT_AT = 34, DPORT_AT = 36 };

/* Queues of packets: one for the packets to drop, then one for each port. */
enum { DROP = 1, FIRST_PORT = 2, PORTS = 8 };

struct rule {
	uint32_t src, dst;
	uint32_t src_length, dst_length; /* of the prefixes, in bits */
	uint16_t sport[2], dport[2];     /* first and last */
	uint8_t proto;                   /* 0: any */
	uint32_t queue;
};

/* The first rule that matches a packet wins. */
extern struct rule *rules;
extern size_t rule_count;

extern const uint8_t **frames;
extern size_t packet_count;

/* Prints a message and ends the program. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Memory of zeros. */
void *allocate(size_t count, size_t size);

/* A random number below `limit`. For one thread at a time. */
uint32_t below(uint32_t limit);

/* Makes `rule_count` rules. */
void make_rules(void);

/* Reads rules in the format of ClassBench. They get random queues. */
void read_rules(const char *path);

/* Makes `packet_count` packets at random points of random rules. */
void make_packets(void);

static inline uint16_t get16(const uint8_t *from)
{
	uint16_t value;
	memcpy(&value, from, sizeof(value));
	return ntohs(value);
}

static inline uint32_t get32(const uint8_t *from)
{
	uint32_t value;
	memcpy(&value, from, sizeof(value));
	return ntohl(value);
}

#endif
