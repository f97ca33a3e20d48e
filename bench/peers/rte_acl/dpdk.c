#define _GNU_SOURCE
#include "dpdk.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/resource.h>

#include <rte_config.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_memory.h>

#include "../common/peer.h"

#define HUGE_PAGE (2 * MIB)

bool huge_pages = true;
size_t memory = 12288 * MIB;

/* What DPDK logged, for messages. */
static char *log_text;
static size_t log_size;
static FILE *log_stream;

int fail_with_log(const char *what, int error)
{
	fflush(log_stream);
	for (char *at = log_text; (at = strchr(at, '\n')) != NULL;)
		*at = at[1] == '\0' ? '\0' : ';';
	return fail("%s: %s%s%s", what, strerror(error), *log_text == '\0' ? "" : "; ", log_text);
}

void *pages(size_t bytes)
{
	uint8_t *start = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (start == MAP_FAILED) {
		fail("no room for %zu bytes", bytes);
		return NULL;
	}
	start += HUGE_PAGE - ((uintptr_t)start & (HUGE_PAGE - 1));
	/* Kernels without huge pages refuse; the statistics tell. */
	madvise(start, bytes, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return start;
}

/*
 * DPDK without huge pages of its own takes its memory from a file in memory,
 * which the kernel gives no transparent huge pages by default. Where there are
 * no such files it takes anonymous memory. So here there are none: this stands
 * in for the C library's function.
 */
int memfd_create(const char *name, unsigned flags)
{
	(void)name;
	(void)flags;
	errno = ENOSYS;
	return -1;
}

static int advise(const struct rte_memseg_list *list, void *unused)
{
	(void)unused;
	madvise(list->base_va, list->len, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return 0;
}

/* The processors that this program was given, as the one core of DPDK. */
static int lcores(char *text, size_t size)
{
	cpu_set_t allowed;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return fail("sched_getaffinity: %s", strerror(errno));
	size_t length = (size_t)snprintf(text, size, "--lcores=0@(");
	for (int cpu = 0; cpu < CPU_SETSIZE && length + 8 < size; cpu++) {
		if (CPU_ISSET(cpu, &allowed))
			length += (size_t)snprintf(text + length, 8, "%d,", cpu);
	}
	text[length - 1] = ')'; /* in place of the last comma */
	return 0;
}

int start_dpdk(void)
{
	char cores[6 * CPU_SETSIZE], mib[32];
	if (lcores(cores, sizeof(cores)) != 0)
		return -1;
	snprintf(mib, sizeof(mib), "%zu", memory / 3 / MIB);
	char *arguments[] = {
		(char[]){ "rte_acl" }, cores, (char[]){ "-m" }, mib,
		(char[]){ "--no-huge" }, (char[]){ "--no-shconf" }, (char[]){ "--no-pci" },
		(char[]){ "--no-telemetry" }, (char[]){ "--log-level=error" },
		/* Vectors wider than 256 bits are not allowed by default. */
		(char[]){ "--force-max-simd-bitwidth=512" }, NULL,
	};
	log_stream = open_memstream(&log_text, &log_size);
	if (log_stream == NULL || rte_openlog_stream(log_stream) != 0)
		return fail("no memory for a log");
	if (rte_eal_init((int)(sizeof(arguments) / sizeof(arguments[0])) - 1, arguments) < 0)
		return fail_with_log("DPDK does not start", rte_errno);
	rte_memseg_list_walk(advise, NULL);
	return 0;
}

int limit_memory(void)
{
	size_t used;
	FILE *file = fopen("/proc/self/statm", "r");
	if (file == NULL || fscanf(file, "%zu", &used) != 1)
		return fail("/proc/self/statm cannot be read");
	fclose(file);
	rlim_t limit = used * (size_t)sysconf(_SC_PAGESIZE) + memory / 3 * 2;
	if (setrlimit(RLIMIT_AS, &(struct rlimit){ limit, limit }) != 0)
		return fail("setrlimit: %s", strerror(errno));
	return 0;
}

size_t allocated(void)
{
	size_t sum = 0;
	struct rte_malloc_socket_stats stats;
	for (unsigned i = 0; i < rte_socket_count(); i++) {
		if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &stats) == 0)
			sum += stats.heap_allocsz_bytes;
	}
	return sum;
}
