/* What the test programs share. */
#ifndef TEST_H
#define TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "classyard.h"

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, \
                    #condition, cy_last_error());                               \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

#define OK(call) CHECK((call) == CY_STATUS_OK)

/* The call fails with this code, and the message has this text. */
#define FAILS(call, code, text)                          \
    do {                                                 \
        CHECK((call) == (code));                         \
        CHECK(strstr(cy_last_error(), (text)) != NULL);  \
    } while (0)

static inline cy_policy *parse(const char *text) {
    cy_policy *policy = NULL;
    OK(cy_policy_parse(text, strlen(text), NULL, NULL, NULL, &policy));
    CHECK(policy != NULL);
    return policy;
}

/* A random number; the state is any number but 0. */
static inline uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
