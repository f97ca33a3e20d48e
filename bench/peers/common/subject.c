#include "subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

static int parse_kind(const char *name, enum kind *kind)
{
	static const char *const names[] = { "exact", "prefix", "range", "ternary" };
	for (unsigned i = 0; i < 4; i++) {
		if (strcmp(name, names[i]) == 0) {
			*kind = (enum kind)i;
			return 0;
		}
	}
	return fail("a field of unknown kind: %s", name);
}

static int add_field(struct subject *s, const char *name, const char *kind, unsigned bits)
{
	if (s->fields == MAX_FIELDS)
		return fail("more than %d fields", MAX_FIELDS);
	if (bits < 1 || bits > 128)
		return fail("a field of %u bits", bits);
	struct field *f = &s->field[s->fields++];
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->bits = bits;
	f->bytes = (bits + 7) / 8;
	f->offset = s->header_bytes;
	s->header_bytes += f->bytes;
	return parse_kind(kind, &f->kind);
}

/* The lines of text, up to and with the empty one. */
static int read_heading(struct subject *s, FILE *file)
{
	char line[256], first[64], second[64];
	unsigned bits, version = 0;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (line[0] == '\n')
			return version == 1 ? 0 : fail("not a subject of version 1");
		if (sscanf(line, "classyard-subject %u", &version) == 1 ||
		    sscanf(line, "schema %63s", s->schema) == 1 ||
		    sscanf(line, "rules %zu", &s->rules) == 1 ||
		    sscanf(line, "headers %zu", &s->headers) == 1)
			continue;
		if (sscanf(line, "field %63s %63s %u", first, second, &bits) != 3)
			return fail("a line that means nothing: %.60s", line);
		if (add_field(s, first, second, bits) != 0)
			return -1;
	}
	return fail("the file ends in its heading");
}

static const uint8_t *read_rows(FILE *file, size_t count, size_t bytes)
{
	uint8_t *rows = malloc(count * bytes + 1);
	if (rows == NULL) {
		fail("no memory for %zu rows", count);
		return NULL;
	}
	if (fread(rows, 1, count * bytes, file) != count * bytes) {
		fail("the file ends in its rows");
		free(rows);
		return NULL;
	}
	return rows;
}

int subject_read(struct subject *s, const char *path)
{
	memset(s, 0, sizeof(*s));
	FILE *file = fopen(path, "rb");
	if (file == NULL)
		return fail("%s cannot be opened", path);
	int result = read_heading(s, file);
	if (result == 0) {
		s->rule_rows = read_rows(file, s->rules, 2 * s->header_bytes);
		if (s->rule_rows != NULL)
			s->header_rows = read_rows(file, s->headers, s->header_bytes);
		result = s->header_rows == NULL ? -1 : 0;
	}
	fclose(file);
	return result;
}

const uint8_t *rule_first(const struct subject *s, size_t rule, unsigned field)
{
	return s->rule_rows + 2 * (rule * s->header_bytes + s->field[field].offset);
}

const uint8_t *rule_second(const struct subject *s, size_t rule, unsigned field)
{
	return rule_first(s, rule, field) + s->field[field].bytes;
}

const uint8_t *header_value(const struct subject *s, size_t header, unsigned field)
{
	return s->header_rows + header * s->header_bytes + s->field[field].offset;
}

uint64_t big_endian(const uint8_t *bytes, size_t count)
{
	uint64_t value = 0;
	for (size_t i = 0; i < count; i++)
		value = value << 8 | bytes[i];
	return value;
}
