/*
 * Rules and headers, as the benchmark hands them to a peer: one file.
 *
 * The file begins with lines of text and goes on in bytes, without a gap:
 *
 *     classyard-subject 1
 *     schema ipv4-5tuple
 *     field src prefix 32          name, kind, width in bits; one line a field
 *     field dst prefix 32
 *     field sport range 16
 *     field dport range 16
 *     field proto exact 8
 *     rules 1000
 *     headers 1000000
 *                                  an empty line
 *     <rules><headers>
 *
 * A number of a field of w bits takes (w + 7) / 8 bytes, highest byte first,
 * as it stands in a packet. Fields follow one another without padding.
 *
 *     header   the value of each field
 *     rule     two numbers for each field:
 *                range                    lowest and highest value
 *                exact, prefix, ternary   value and mask; a value has no bit
 *                                         outside its mask, a wildcard is 0 0
 *
 * Rules stand best first: the first rule that matches a header wins. A rule's
 * number is its place in this order, from 0.
 */
#ifndef CLASSYARD_PEER_SUBJECT_H
#define CLASSYARD_PEER_SUBJECT_H

#include <stddef.h>
#include <stdint.h>

enum { MAX_FIELDS = 64 };

enum kind { KIND_EXACT, KIND_PREFIX, KIND_RANGE, KIND_TERNARY };

struct field {
	char name[64];
	enum kind kind;
	unsigned bits;
	size_t bytes;  /* of one number */
	size_t offset; /* of the value in a header; in a rule, of the pair: twice that */
};

struct subject {
	char schema[64];
	unsigned fields;
	struct field field[MAX_FIELDS];
	size_t header_bytes; /* a rule takes twice as many */
	size_t rules;
	size_t headers;
	const uint8_t *rule_rows;
	const uint8_t *header_rows;
};

/* Reads a file and keeps it in memory. 0, or -1 after fail(). */
int subject_read(struct subject *subject, const char *path);

/* The first and the second number of a rule's field. */
const uint8_t *rule_first(const struct subject *subject, size_t rule, unsigned field);
const uint8_t *rule_second(const struct subject *subject, size_t rule, unsigned field);

/* A header's field. */
const uint8_t *header_value(const struct subject *subject, size_t header, unsigned field);

/* A number of up to 8 bytes, highest byte first. */
uint64_t big_endian(const uint8_t *bytes, size_t count);

#endif
