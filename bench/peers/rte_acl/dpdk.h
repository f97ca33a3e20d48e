/*
 * DPDK for one thread of one program: no devices, no files, memory with or
 * without transparent huge pages, and not more of it than allowed.
 */
#ifndef CLASSYARD_PEER_DPDK_H
#define CLASSYARD_PEER_DPDK_H

#include <stdbool.h>
#include <stddef.h>

#define MIB ((size_t)1 << 20)

/* Whether memory is to be in transparent huge pages. */
extern bool huge_pages;

/* All the memory that may be taken: a third for DPDK's heap, in which rte_acl
 * keeps its tries, the rest for building. */
extern size_t memory;

/* Starts DPDK. */
int start_dpdk(void);

/* What building takes beside the tries comes from malloc, which fails at the
 * limit from here on. */
int limit_memory(void);

/* Memory of our own that is taken when it is touched; NULL after fail(). */
void *pages(size_t bytes);

/* Bytes that DPDK's heap has given out. */
size_t allocated(void);

/* fail() with an error number and what DPDK logged. */
int fail_with_log(const char *what, int error);

#endif
