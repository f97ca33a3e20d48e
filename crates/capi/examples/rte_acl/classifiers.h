/* The two classifiers of forward.c. Each finds the winner of each packet of a burst. */
#ifndef CLASSIFIERS_H
#define CLASSIFIERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traffic.h"

enum { MAX_BURST = 256 };

/*
 * A winner is the id of a rule. Its low four bits are the queue of the rule, so no table of
 * queues can be older or newer than the rules. Packets without a rule have the winner 0 with
 * rte_acl, and CY_NO_RULE with classyard: queues 0 and 15.
 */
enum { QUEUE_BITS = 4, QUEUES = 1 << QUEUE_BITS };

static inline uint32_t rule_id(size_t number)
{
	return (uint32_t)number << QUEUE_BITS | rules[number].queue;
}

/* Finds the winners of a burst of frames. */
typedef void classify(const uint8_t **burst, size_t count, uint32_t *winners);

/* rte_acl: starts DPDK, then builds tries. Another call of acl_build() replaces them. */
const char *acl_version(void);
void acl_start(void);
void acl_build(void);
classify acl_classify;

/* The algorithms of rte_acl have numbers. acl_choose() is false if this processor or this
 * build of DPDK does not have the algorithm. */
enum { ACL_ALGORITHMS = 6 };
const char *acl_algorithm(size_t number);
bool acl_choose(size_t number);

/* classyard: makes a table. Another thread may replace rules of it during lookups. */
const char *table_version(void);
void table_build(void);
void table_replace_rule(size_t number, uint32_t queue);
void table_free(void);

/* Reads fields from fixed places, like rte_acl. */
classify table_classify_columns;

/* Parses frames: also with VLAN tags, IPv4 options and without ports. */
classify table_classify_packets;

#endif
