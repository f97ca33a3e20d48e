#define _GNU_SOURCE
#include "peer.h"

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/resource.h>

static char reason[512] = "unknown";

int fail(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(reason, sizeof(reason), format, list);
	va_end(list);
	return -1;
}

/* Replies. Libraries may print to standard output, so replies have a stream
 * of their own, and what is printed goes to standard error. */
static FILE *replies;

static int open_replies(void)
{
	int copy = dup(STDOUT_FILENO);
	if (copy < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -1;
	replies = fdopen(copy, "w");
	return replies == NULL ? -1 : 0;
}

static void put_text(const char *text)
{
	fputc('"', replies);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', replies);
		fputc((unsigned char)*text < 0x20 ? ' ' : *text, replies);
	}
	fputc('"', replies);
}

static void put_size(const char *name, size_t value, const char *end)
{
	if (value == UNKNOWN)
		fprintf(replies, "\"%s\": null%s", name, end);
	else
		fprintf(replies, "\"%s\": %zu%s", name, value, end);
}

static void put_error(void)
{
	fputs("{\"error\": ", replies);
	put_text(reason);
	fputs("}\n", replies);
}

static double seconds_of(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct stopwatch {
	double cpu, wall;
};

static struct stopwatch started(void)
{
	return (struct stopwatch){
		.wall = seconds_of(CLOCK_MONOTONIC),
		.cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID),
	};
}

static struct stopwatch since(struct stopwatch start)
{
	return (struct stopwatch){
		.cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID) - start.cpu,
		.wall = seconds_of(CLOCK_MONOTONIC) - start.wall,
	};
}

static void put_times(struct stopwatch spent)
{
	fprintf(replies, "\"cpu_seconds\": %.9f, \"wall_seconds\": %.9f}\n", spent.cpu, spent.wall);
}

static int hello(const struct peer *peer)
{
	fputs("{\"peer\": ", replies);
	put_text(peer->name);
	fputs(", \"version\": ", replies);
	put_text(peer->version());
	fputs(", \"protocol\": 1, \"algorithms\": [", replies);
	const char *const *names = peer->algorithms();
	for (size_t i = 0; names[i] != NULL; i++) {
		if (i > 0)
			fputs(", ", replies);
		put_text(names[i]);
	}
	fputs("]}\n", replies);
	return 0;
}

static int build(const struct peer *peer)
{
	struct stopwatch start = started();
	if (peer->build() != 0)
		return -1;
	struct stopwatch spent = since(start);
	fputc('{', replies);
	put_times(spent);
	return 0;
}

/* Memory in huge pages, from the kernel's account of this process. */
static size_t huge_page_bytes(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	if (file == NULL)
		return UNKNOWN;
	char line[256];
	size_t kib, found = UNKNOWN;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "AnonHugePages: %zu kB", &kib) == 1)
			found = kib * 1024;
	}
	fclose(file);
	return found;
}

static int stats(const struct peer *peer)
{
	struct peer_sizes sizes = { UNKNOWN, UNKNOWN, UNKNOWN };
	struct rusage usage;
	peer->sizes(&sizes);
	getrusage(RUSAGE_SELF, &usage);
	fputc('{', replies);
	put_size("bytes", sizes.bytes, ", ");
	put_size("index_bytes", sizes.index_bytes, ", ");
	put_size("tables", sizes.tables, ", ");
	put_size("peak_rss_bytes", (size_t)usage.ru_maxrss * 1024, ", ");
	put_size("huge_page_bytes", huge_page_bytes(), "}\n");
	return 0;
}

static int pass(const struct peer *peer, const struct subject *subject, size_t burst)
{
	uint32_t winners[MAX_BURST];
	volatile uint32_t folded = 0;
	if (burst < 1 || burst > MAX_BURST)
		return fail("a burst of %zu headers", burst);
	struct stopwatch start = started();
	for (size_t first = 0; first < subject->headers; first += burst) {
		size_t left = subject->headers - first;
		if (peer->classify(first, left < burst ? left : burst, winners) != 0)
			return -1;
		folded = folded ^ winners[0];
	}
	struct stopwatch spent = since(start);
	fprintf(replies, "{\"headers\": %zu, ", subject->headers);
	put_times(spent);
	return 0;
}

static int winners(const struct peer *peer, const struct subject *subject, const char *path)
{
	uint32_t found[MAX_BURST];
	FILE *file = fopen(path, "wb");
	if (file == NULL)
		return fail("%s cannot be written", path);
	int result = 0;
	for (size_t first = 0; result == 0 && first < subject->headers; first += MAX_BURST) {
		size_t left = subject->headers - first;
		size_t count = left < MAX_BURST ? left : MAX_BURST;
		result = peer->classify(first, count, found);
		for (size_t i = 0; result == 0 && i < count; i++) {
			for (int shift = 0; shift < 32; shift += 8)
				fputc((int)(found[i] >> shift & 0xff), file);
		}
	}
	bool bad = ferror(file) != 0;
	if (fclose(file) != 0 || bad)
		result = fail("%s cannot be written", path);
	if (result == 0)
		fprintf(replies, "{\"headers\": %zu}\n", subject->headers);
	return result;
}

static int choose(const struct peer *peer, const char *algorithm)
{
	const char *const *names = peer->algorithms();
	for (size_t i = 0; names[i] != NULL; i++) {
		if (strcmp(names[i], algorithm) == 0)
			return peer->choose(algorithm);
	}
	return fail("no algorithm %s here", algorithm);
}

static int obey(const struct peer *peer, const struct subject *subject, char *line)
{
	static bool built;
	const char *command = strtok(line, " ");
	if (command == NULL)
		return fail("an empty command");
	if (strcmp(command, "build") == 0) {
		if (built)
			return fail("built already");
		if (build(peer) != 0)
			return -1;
		built = true;
		return 0;
	}
	if (!built)
		return fail("%s before build", command);
	if (strcmp(command, "stats") == 0)
		return stats(peer);
	const char *algorithm = strtok(NULL, " ");
	const char *last = strtok(NULL, ""); /* a path may have spaces */
	if (algorithm == NULL || last == NULL)
		return fail("%s is no command, or lacks arguments", command);
	if (strcmp(command, "pass") == 0) {
		if (choose(peer, algorithm) != 0)
			return -1;
		return pass(peer, subject, strtoul(last, NULL, 10));
	}
	if (strcmp(command, "winners") == 0) {
		if (choose(peer, algorithm) != 0)
			return -1;
		return winners(peer, subject, last);
	}
	return fail("%s is no command", command);
}

static int read_arguments(const struct peer *peer, int count, char **arguments, const char **path)
{
	*path = NULL;
	for (int i = 1; i < count; i++) {
		char *argument = arguments[i];
		if (strncmp(argument, "--", 2) != 0) {
			*path = argument;
			continue;
		}
		char *value = strchr(argument, '=');
		if (value == NULL)
			return fail("%s lacks a value", argument);
		*value++ = '\0';
		if (peer->option(argument + 2, value) != 0)
			return -1;
	}
	return *path == NULL ? fail("usage: %s [--OPTION=VALUE]... SUBJECT", arguments[0]) : 0;
}

int peer_main(const struct peer *peer, int count, char **arguments)
{
	static struct subject subject;
	const char *path;
	/* A build that takes minutes shall not outlive the benchmark. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (open_replies() != 0)
		return 2;
	if (read_arguments(peer, count, arguments, &path) != 0 ||
	    subject_read(&subject, path) != 0 || peer->open(&subject) != 0 || hello(peer) != 0) {
		put_error();
		return 1;
	}
	fflush(replies);
	char line[4096];
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, "quit") == 0)
			break;
		if (obey(peer, &subject, line) != 0)
			put_error();
		fflush(replies);
	}
	return 0;
}
