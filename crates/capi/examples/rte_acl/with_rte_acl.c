/* The classifier of the loop: rte_acl. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <sys/mman.h>

#include <rte_acl.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <rte_version.h>

#include "classifiers.h"
#include "traffic.h"

const char *acl_version(void)
{
	return rte_version();
}

enum { PROTO, SRC, DST, SPORT, DPORT, FIELDS };
RTE_ACL_RULE_DEF(acl_rule, FIELDS);

static struct acl_rule *acl_rules;
static struct rte_acl_ctx *acl;

/* rte_acl reads one byte, then groups of four: the ports are one group. */
static const struct rte_acl_config acl_config = {
	.num_categories = 1,
	.num_fields = FIELDS,
	.defs = {
		{ RTE_ACL_FIELD_TYPE_BITMASK, 1, PROTO, 0, PROTO_AT },
		{ RTE_ACL_FIELD_TYPE_MASK, 4, SRC, 1, SRC_AT },
		{ RTE_ACL_FIELD_TYPE_MASK, 4, DST, 2, DST_AT },
		{ RTE_ACL_FIELD_TYPE_RANGE, 2, SPORT, 3, SPORT_AT },
		{ RTE_ACL_FIELD_TYPE_RANGE, 2, DPORT, 3, DPORT_AT },
	},
};

static const struct {
	const char *name;
	enum rte_acl_classify_alg algorithm;
} algorithms[ACL_ALGORITHMS] = {
	{ "sse", RTE_ACL_CLASSIFY_SSE },
	{ "avx2", RTE_ACL_CLASSIFY_AVX2 },
	{ "avx512x16", RTE_ACL_CLASSIFY_AVX512X16 },
	{ "avx512x32", RTE_ACL_CLASSIFY_AVX512X32 },
	{ "neon", RTE_ACL_CLASSIFY_NEON },
	{ "altivec", RTE_ACL_CLASSIFY_ALTIVEC },
};

/*
 * Without huge pages of its own, DPDK takes its memory from a file in memory, which most
 * kernels keep in pages of 4 KiB. If it cannot have such a file, it takes anonymous memory,
 * for which the kernel can use huge pages. This replaces the C library's function. Leave it
 * out in a program with huge pages.
 */
int memfd_create(const char *name, unsigned flags)
{
	(void)name;
	(void)flags;
	errno = ENOSYS;
	return -1;
}

static int use_huge_pages(const struct rte_memseg_list *list, void *unused)
{
	(void)unused;
	madvise(list->base_va, list->len, MADV_HUGEPAGE);
	return 0;
}

/* DPDK without devices, on any processor. */
void acl_start(void)
{
	char core[32], mib[32];
	cpu_set_t allowed;
	sched_getaffinity(0, sizeof(allowed), &allowed);
	snprintf(core, sizeof(core), "--lcores=0@%d", sched_getcpu());
	/* About 64 KiB for each rule are enough for the rules of ClassBench. */
	snprintf(mib, sizeof(mib), "%zu", 256 + rule_count / 16);
	char *arguments[] = { "forward", core, "--no-shconf", "--no-huge", "-m", mib, "--no-pci",
			      "--no-telemetry", "--log-level=error",
			      /* The default is 256. */
			      "--force-max-simd-bitwidth=512", NULL };
	if (rte_eal_init((int)(sizeof(arguments) / sizeof(arguments[0])) - 1, arguments) < 0)
		fail("DPDK does not start: %s", rte_strerror(rte_errno));
	rte_memseg_list_walk(use_huge_pages, NULL);
	/* DPDK has bound this thread to one processor. */
	sched_setaffinity(0, sizeof(allowed), &allowed);
}

static void convert_rule(size_t number)
{
	const struct rule *rule = &rules[number];
	struct acl_rule *to = &acl_rules[number];
	to->data.category_mask = 1;
	to->data.priority = (int32_t)(rule_count - number);
	to->data.userdata = rule_id(number);
	to->field[PROTO].value.u8 = rule->proto;
	to->field[PROTO].mask_range.u8 = rule->proto == 0 ? 0 : UINT8_MAX;
	to->field[SRC].value.u32 = rule->src;
	to->field[SRC].mask_range.u32 = rule->src_length;
	to->field[DST].value.u32 = rule->dst;
	to->field[DST].mask_range.u32 = rule->dst_length;
	to->field[SPORT].value.u16 = rule->sport[0];
	to->field[SPORT].mask_range.u16 = rule->sport[1];
	to->field[DPORT].value.u16 = rule->dport[0];
	to->field[DPORT].mask_range.u16 = rule->dport[1];
}

void acl_build(void)
{
	acl_rules = realloc(acl_rules, rule_count * sizeof(*acl_rules));
	if (acl_rules == NULL)
		fail("no memory for the rules");
	for (size_t i = 0; i < rule_count; i++)
		convert_rule(i);
	rte_acl_free(acl);
	acl = rte_acl_create(&(struct rte_acl_param){
		.name = "rules",
		.socket_id = SOCKET_ID_ANY,
		.rule_size = sizeof(*acl_rules),
		.max_rule_num = (uint32_t)rule_count,
	});
	if (acl == NULL)
		fail("rte_acl_create: %s", rte_strerror(rte_errno));
	int result = rte_acl_add_rules(acl, (struct rte_acl_rule *)acl_rules, (uint32_t)rule_count);
	if (result == 0)
		result = rte_acl_build(acl, &acl_config);
	if (result != 0)
		fail("rte_acl_build: %s", rte_strerror(-result));
}

const char *acl_algorithm(size_t number)
{
	return algorithms[number].name;
}

bool acl_choose(size_t number)
{
	return rte_acl_set_ctx_classify(acl, algorithms[number].algorithm) == 0;
}

void acl_classify(const uint8_t **burst, size_t count, uint32_t *winners)
{
	int result = rte_acl_classify(acl, burst, winners, (uint32_t)count, 1);
	if (result != 0)
		fail("rte_acl_classify: %s", rte_strerror(-result));
}
