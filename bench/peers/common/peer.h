/*
 * A peer: somebody else's classifier, measured beside classyard's engines.
 *
 * The program of a peer stays alive through a measurement, so that its passes
 * go in turns with those of the engines. It is started as
 *
 *     PROGRAM [--OPTION=VALUE]... SUBJECT
 *
 * with a file as in subject.h, and then talks over standard input and output.
 * Each reply is one line, a JSON object; {"error": "..."} says why something
 * failed. The first line comes unasked:
 *
 *     {"peer": "rte_acl", "version": "DPDK 22.11", "protocol": 1,
 *      "algorithms": ["scalar", "sse"]}
 *
 * It is sent when the subject has been read and whatever can be prepared is
 * prepared: the file may be removed then. Commands, one a line:
 *
 *     build                   {"cpu_seconds": .., "wall_seconds": ..}
 *     stats                   {"bytes": .., "index_bytes": .., "tables": ..,
 *                              "peak_rss_bytes": .., "huge_page_bytes": ..}
 *     pass ALGORITHM BURST    {"headers": .., "cpu_seconds": .., "wall_seconds": ..}
 *                             all headers once, BURST (1 to 256) at a time
 *     winners ALGORITHM FILE  {"headers": ..}
 *                             a 32-bit little-endian number for each header:
 *                             the winner's number + 1, or 0 for none
 *     quit                    no reply; nor for the end of the input
 *
 * cpu_seconds are those of the thread that works. The bytes of "stats" are
 * what is held for lookups after building, the rules included; "index_bytes"
 * leaves the rules out; "tables" is the number of structures that every lookup
 * may visit. Numbers that a peer does not know are null.
 */
#ifndef CLASSYARD_PEER_PEER_H
#define CLASSYARD_PEER_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "subject.h"

enum { MAX_BURST = 256 };

/* A number that is not known. */
#define UNKNOWN SIZE_MAX

struct peer_sizes {
	size_t bytes;
	size_t index_bytes;
	size_t tables;
};

/* What a peer must be able to do. Functions that return int return 0, or -1
 * after fail(). */
struct peer {
	const char *name;
	const char *(*version)(void);

	/* An option of the command line; called before anything else. */
	int (*option)(const char *name, const char *value);

	/* Prepares everything that is not part of building: the rules in the
	 * peer's form, and the headers as a program of its kind has them. */
	int (*open)(const struct subject *subject);

	/* Its algorithms on this processor, NULL after the last. */
	const char *const *(*algorithms)(void);

	/* Builds; called once. */
	int (*build)(void);

	/* Chooses one of the algorithms for the passes that follow. */
	int (*choose)(const char *algorithm);

	/* Classifies `count` headers from `first` on in one call. Winners are
	 * numbers + 1, 0 for a miss. */
	int (*classify)(size_t first, size_t count, uint32_t *winners);

	void (*sizes)(struct peer_sizes *sizes);
};

/* Notes why something failed; returns -1. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The program: reads the arguments, then carries out commands. */
int peer_main(const struct peer *peer, int count, char **arguments);

#endif
