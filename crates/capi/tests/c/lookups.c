/* Every way to look up finds what a scan of the rules finds, before and after changes. */
#include "test.h"

enum { RULES = 300, ROWS = 1500 };

/* A rule as the scan sees it: ranges of the five fields. */
struct plain {
    uint32_t id, priority, action;
    uint64_t cookie;
    uint32_t low[5], high[5];
    int present;
};

static struct plain plain[2 * RULES];
static const uint32_t MAX[5] = {UINT32_MAX, UINT32_MAX, UINT16_MAX, UINT16_MAX, UINT8_MAX};

static struct plain random_rule(uint32_t id, uint64_t *state, cy_match matches[5]) {
    struct plain rule = {.id = id,
                         .priority = next(state) % 50,
                         .action = next(state) % 4,
                         .cookie = next(state),
                         .present = 1};
    memset(matches, 0, 5 * sizeof *matches);
    for (int field = 0; field < 5; field++) {
        uint32_t value = next(state) & MAX[field] & 0x0f00000f;
        if (field >= 2) value = next(state) % 8;
        rule.low[field] = 0;
        rule.high[field] = MAX[field];
        matches[field].kind = CY_MATCH_TYPE_ANY;
        switch (next(state) % 3) {
        case 0:
            break;
        case 1: /* A prefix of addresses, a range of ports, or one protocol. */
            if (field < 2) {
                uint32_t length = 4 + next(state) % 29;
                uint32_t mask = length == 32 ? UINT32_MAX : ~(UINT32_MAX >> length);
                matches[field].kind = CY_MATCH_TYPE_PREFIX;
                matches[field].prefix_length = length;
                rule.low[field] = value & mask;
                rule.high[field] = value | ~mask;
            } else if (field < 4) {
                matches[field].kind = CY_MATCH_TYPE_RANGE;
                rule.low[field] = value;
                rule.high[field] = value + next(state) % 4;
                matches[field].second.low = rule.high[field];
            } else {
                matches[field].kind = CY_MATCH_TYPE_EXACT;
                rule.low[field] = rule.high[field] = value;
            }
            matches[field].first.low = value;
            break;
        case 2:
            matches[field].kind = field == 4 ? CY_MATCH_TYPE_MASKED : CY_MATCH_TYPE_EXACT;
            matches[field].first.low = value;
            matches[field].second.low = 0xff;
            rule.low[field] = rule.high[field] = value;
            break;
        }
    }
    return rule;
}

static const struct plain *scan(const uint32_t header[5]) {
    const struct plain *best = NULL;
    for (int i = 0; i < 2 * RULES; i++) {
        const struct plain *rule = &plain[i];
        int matches = rule->present;
        for (int field = 0; field < 5; field++)
            matches &= rule->low[field] <= header[field] && header[field] <= rule->high[field];
        if (matches && (!best || rule->priority > best->priority ||
                        (rule->priority == best->priority && rule->id < best->id)))
            best = rule;
    }
    return best;
}

static uint32_t src[ROWS], dst[ROWS];
static uint16_t sport[ROWS], dport[ROWS];
static uint8_t proto[ROWS], dst_bytes[4 * ROWS];
static uint8_t frames[ROWS][64];

static void random_headers(uint64_t *state) {
    for (int row = 0; row < ROWS; row++) {
        src[row] = next(state) & 0x0f00000f;
        dst[row] = next(state) & 0x0f00000f;
        sport[row] = next(state) % 12;
        dport[row] = next(state) % 12;
        proto[row] = next(state) % 2 ? 6 : 17;
        for (int byte = 0; byte < 4; byte++)
            dst_bytes[4 * row + byte] = dst[row] >> (24 - 8 * byte);
        /* The packet: Ethernet, IPv4, ports. */
        uint8_t *frame = memset(frames[row], 0, sizeof frames[row]);
        frame[12] = 8;
        uint8_t *ip = frame + 14;
        ip[0] = 0x45;
        ip[3] = 50;
        ip[8] = 64;
        ip[9] = proto[row];
        for (int byte = 0; byte < 4; byte++) ip[12 + byte] = src[row] >> (24 - 8 * byte);
        memcpy(ip + 16, dst_bytes + 4 * row, 4);
        ip[20] = sport[row] >> 8, ip[21] = sport[row];
        ip[22] = dport[row] >> 8, ip[23] = dport[row];
        ip[32] = 0x50; /* the length of a TCP header, or in the data of UDP */
        ip[24] = 0, ip[25] = 30;
    }
}

static uint32_t rules[ROWS], actions[ROWS];
static uint64_t cookies[ROWS];

static void compare(const char *how) {
    for (int row = 0; row < ROWS; row++) {
        uint32_t header[5] = {src[row], dst[row], sport[row], dport[row], proto[row]};
        const struct plain *best = scan(header);
        uint32_t rule = best ? best->id : CY_NO_RULE, action = best ? best->action : CY_NO_RULE;
        uint64_t cookie = best ? best->cookie : 0;
        if (rules[row] != rule || actions[row] != action || cookies[row] != cookie) {
            fprintf(stderr, "%s, row %d: rule %u, not %u; action %u, not %u\n", how, row,
                    rules[row], rule, actions[row], action);
            exit(1);
        }
    }
    memset(rules, 0xaa, sizeof rules);
    memset(actions, 0xaa, sizeof actions);
    memset(cookies, 0xaa, sizeof cookies);
}

static void look_up(const cy_policy *policy, cy_reader *reader) {
    cy_output output = {rules, actions, cookies};
    cy_column columns[5] = {{CY_COLUMN_TYPE_U32, 0, src},
                            {CY_COLUMN_TYPE_BIG_ENDIAN, 4, dst_bytes},
                            {CY_COLUMN_TYPE_U16, 0, sport},
                            {CY_COLUMN_TYPE_U16, 0, dport},
                            {CY_COLUMN_TYPE_U8, 0, proto}};
    OK(cy_classify_columns(reader, 0, columns, 5, ROWS, &output));
    compare("columns");

    size_t words = 0;
    OK(cy_policy_key_words(policy, 0, &words));
    uint64_t *keys = calloc(ROWS * words, sizeof *keys);
    OK(cy_policy_pack(policy, 0, columns, 5, ROWS, keys));
    OK(cy_classify_keys(reader, 0, keys, ROWS, &output));
    compare("keys");

    uint64_t *mask = calloc(words, sizeof *mask), *other = calloc(words, sizeof *other);
    uint64_t state = 99;
    for (int row = 0; row < ROWS; row++) {
        memset(mask, 0, words * sizeof *mask);
        const uint64_t *key = keys + row * words;
        OK(cy_classify_masked(reader, 0, key, mask, &rules[row], &actions[row]));
        const uint32_t header[5] = {src[row], dst[row], sport[row], dport[row], proto[row]};
        cookies[row] = scan(header) ? scan(header)->cookie : 0;
        /* Keys that differ in other bits have the same answer. */
        uint64_t ignored[64] = {0};
        uint32_t rule, action;
        for (size_t word = 0; word < words; word++)
            other[word] = (key[word] & mask[word]) | (next(&state) & ~mask[word]);
        OK(cy_classify_masked(reader, 0, other, ignored, &rule, &action));
        CHECK(rule == rules[row] && action == actions[row]);
    }
    compare("masked");
    free(mask);
    free(other);
    free(keys);

    static cy_packet packets[ROWS];
    for (int row = 0; row < ROWS; row++)
        packets[row] = (cy_packet){frames[row], sizeof frames[row]};
    OK(cy_classify_packets(reader, packets, ROWS, &output));
    compare("packets");
}

int main(void) {
    uint64_t state = 4711;
    cy_policy *policy = NULL;
    OK(cy_policy_new("ipv4-5tuple", &policy));
    cy_match matches[5];
    for (uint32_t id = 0; id < RULES; id++) {
        plain[id] = random_rule(id, &state, matches);
        cy_rule rule = {id, plain[id].priority, plain[id].action, plain[id].cookie};
        cy_form form = {0, matches, 5};
        OK(cy_policy_add(policy, &rule, &form, 1));
    }
    size_t count = 0;
    OK(cy_policy_rules(policy, &count));
    CHECK(count == RULES);

    const char *engines[] = {NULL, "linear", "tuplemerge"};
    for (size_t engine = 0; engine < sizeof engines / sizeof *engines; engine++) {
        cy_table *table = NULL;
        cy_reader *reader = NULL;
        cy_transaction *changes = NULL;
        OK(cy_table_new(policy, engines[engine], &table));
        OK(cy_reader_new(table, &reader));
        OK(cy_transaction_new(table, &changes));
        random_headers(&state);
        look_up(policy, reader);

        /* Half of the rules go, others change, new ones come. */
        struct plain before[2 * RULES];
        memcpy(before, plain, sizeof plain);
        for (uint32_t id = 0; id < 2 * RULES; id++) {
            if (id < RULES && id % 3 == 0) {
                OK(cy_transaction_remove(changes, id));
                plain[id].present = 0;
            } else if (id % 3 == 1) {
                plain[id] = random_rule(id, &state, matches);
                cy_rule rule = {id, plain[id].priority, plain[id].action, plain[id].cookie};
                cy_form form = {0, matches, 5};
                if (id < RULES)
                    OK(cy_transaction_modify(changes, &rule, &form, 1));
                else
                    OK(cy_transaction_insert(changes, &rule, &form, 1));
            }
        }
        OK(cy_table_apply(table, changes));
        size_t present = 0, found = 0;
        for (int i = 0; i < 2 * RULES; i++) present += plain[i].present;
        OK(cy_table_rules(table, &found));
        CHECK(found == present);
        look_up(policy, reader);

        /* A refused transaction changes nothing. */
        OK(cy_transaction_remove(changes, 1));
        OK(cy_transaction_remove(changes, 0));
        FAILS(cy_table_apply(table, changes), CY_STATUS_UPDATE_REFUSED, "0");
        look_up(policy, reader);
        memcpy(plain, before, sizeof plain);
        OK(cy_transaction_free(changes));
        OK(cy_table_free(table));
        OK(cy_reader_free(reader));
    }
    OK(cy_policy_free(policy));
    return 0;
}
