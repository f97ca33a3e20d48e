/* The classifier of the loop: classyard. */
#include <stdio.h>

#include "classifiers.h"
#include "classyard.h"
#include "traffic.h"

const char *table_version(void)
{
	return cy_version();
}

enum { FIELDS = 5 };

static cy_table *table;
static cy_reader *reader;
static uint32_t actions[QUEUES];

static void ok(cy_status status)
{
	if (status != CY_STATUS_OK)
		fail("classyard: %s", cy_last_error());
}

static cy_match prefix(uint32_t value, uint32_t length)
{
	return (cy_match){ CY_MATCH_TYPE_PREFIX, length, { value, 0 }, { 0, 0 } };
}

static cy_match range(const uint16_t ports[2])
{
	return (cy_match){ CY_MATCH_TYPE_RANGE, 0, { ports[0], 0 }, { ports[1], 0 } };
}

/* Fills in a rule as classyard has it. The fields are src, dst, sport, dport, proto. */
static cy_rule describe(size_t number, cy_match matches[FIELDS])
{
	const struct rule *rule = &rules[number];
	matches[0] = prefix(rule->src, rule->src_length);
	matches[1] = prefix(rule->dst, rule->dst_length);
	matches[2] = range(rule->sport);
	matches[3] = range(rule->dport);
	matches[4] = (cy_match){ rule->proto == 0 ? CY_MATCH_TYPE_ANY : CY_MATCH_TYPE_EXACT, 0,
				 { rule->proto, 0 }, { 0, 0 } };
	return (cy_rule){ rule_id(number), (uint32_t)(rule_count - number), actions[rule->queue], 0 };
}

void table_build(void)
{
	cy_policy *policy;
	ok(cy_policy_new("ipv4-5tuple", &policy));
	for (unsigned queue = DROP; queue < FIRST_PORT + PORTS; queue++) {
		char name[16] = "drop";
		if (queue != DROP)
			snprintf(name, sizeof(name), "port%u", queue - FIRST_PORT);
		ok(cy_policy_action(policy, name, &actions[queue]));
	}
	for (size_t i = 0; i < rule_count; i++) {
		cy_match matches[FIELDS];
		cy_rule rule = describe(i, matches);
		ok(cy_policy_add(policy, &rule, &(cy_form){ 0, matches, FIELDS }, 1));
	}
	ok(cy_table_new(policy, NULL, &table));
	ok(cy_policy_free(policy));
	ok(cy_reader_new(table, &reader));
}

void table_classify_columns(const uint8_t **burst, size_t count, uint32_t *winners)
{
	uint32_t src[MAX_BURST], dst[MAX_BURST];
	uint16_t sport[MAX_BURST], dport[MAX_BURST];
	uint8_t proto[MAX_BURST];
	for (size_t i = 0; i < count; i++) {
		src[i] = get32(burst[i] + SRC_AT);
		dst[i] = get32(burst[i] + DST_AT);
		sport[i] = get16(burst[i] + SPORT_AT);
		dport[i] = get16(burst[i] + DPORT_AT);
		proto[i] = burst[i][PROTO_AT];
	}
	const cy_column columns[FIELDS] = { { CY_COLUMN_TYPE_U32, 0, src },
					    { CY_COLUMN_TYPE_U32, 0, dst },
					    { CY_COLUMN_TYPE_U16, 0, sport },
					    { CY_COLUMN_TYPE_U16, 0, dport },
					    { CY_COLUMN_TYPE_U8, 0, proto } };
	/* Winners only: the ids have the queues, and actions would cost a look into a map. */
	const cy_output output = { .rules = winners };
	ok(cy_classify_columns(reader, 0, columns, FIELDS, count, &output));
}

void table_classify_packets(const uint8_t **burst, size_t count, uint32_t *winners)
{
	cy_packet packets[MAX_BURST];
	for (size_t i = 0; i < count; i++)
		packets[i] = (cy_packet){ burst[i], FRAME_BYTES };
	const cy_output output = { .rules = winners };
	ok(cy_classify_packets(reader, packets, count, &output));
}

void table_replace_rule(size_t number, uint32_t queue)
{
	cy_transaction *changes;
	cy_match matches[FIELDS];
	ok(cy_transaction_new(table, &changes));
	ok(cy_transaction_remove(changes, rule_id(number)));
	rules[number].queue = queue;
	cy_rule rule = describe(number, matches);
	ok(cy_transaction_insert(changes, &rule, &(cy_form){ 0, matches, FIELDS }, 1));
	ok(cy_table_apply(table, changes));
	ok(cy_transaction_free(changes));
}

void table_free(void)
{
	ok(cy_reader_free(reader));
	ok(cy_table_free(table));
}
