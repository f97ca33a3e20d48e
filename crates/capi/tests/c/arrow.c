/* Lookups in Arrow data find what lookups in columns find. */
#include "test.h"

/* The structures of Arrow's C data interface. */
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

enum { ROWS = 900, COLUMNS = 5 };

static uint32_t src[ROWS];
static uint8_t dst[4 * ROWS], proto[ROWS], valid[ROWS / 8 + 1];
static uint16_t sport[ROWS], dport[ROWS];

/* The batch is the program's: a call that released it would be a defect. */
static void release_array(struct ArrowArray *array) {
    (void)array;
    fprintf(stderr, "a call released the batch\n");
    exit(1);
}
static void release_schema(struct ArrowSchema *schema) {
    (void)schema;
    release_array(NULL);
}

static struct ArrowSchema column_types[COLUMNS], *types[COLUMNS], batch_type;
static struct ArrowArray column_arrays[COLUMNS], *arrays[COLUMNS], batch;
static const void *buffers[COLUMNS][2], *no_buffer[1];

static void make_batch(void) {
    const char *names[COLUMNS] = {"src", "dst", "sport", "dport", "proto"};
    const char *formats[COLUMNS] = {"I", "w:4", "S", "S", "C"};
    const void *values[COLUMNS] = {src, dst, sport, dport, proto};
    for (int i = 0; i < COLUMNS; i++) {
        column_types[i] = (struct ArrowSchema){
            .format = formats[i], .name = names[i], .flags = 2, .release = release_schema};
        buffers[i][1] = values[i];
        column_arrays[i] = (struct ArrowArray){.length = ROWS,
                                               .n_buffers = 2,
                                               .buffers = buffers[i],
                                               .release = release_array};
        types[i] = &column_types[i];
        arrays[i] = &column_arrays[i];
    }
    /* Every seventh port is null. */
    for (int row = 0; row < ROWS; row++)
        if (row % 7 != 3) valid[row / 8] |= 1 << row % 8;
    buffers[3][0] = valid;
    column_arrays[3].null_count = -1;
    batch_type = (struct ArrowSchema){.format = "+s",
                                      .name = "",
                                      .n_children = COLUMNS,
                                      .children = types,
                                      .release = release_schema};
    batch = (struct ArrowArray){.length = ROWS,
                                .n_buffers = 1,
                                .buffers = no_buffer,
                                .n_children = COLUMNS,
                                .children = arrays,
                                .release = release_array};
}

static int bit(const void *bits, int64_t row) {
    return bits == NULL || ((const uint8_t *)bits)[row / 8] >> row % 8 & 1;
}

/* Looks up the rows of the batch from `first` on, and compares with a lookup in columns. */
static void compare(cy_reader *reader, int first, size_t threads) {
    uint32_t rules[ROWS], actions[ROWS];
    uint64_t cookies[ROWS];
    cy_output output = {rules, actions, cookies};
    cy_column columns[COLUMNS] = {{CY_COLUMN_TYPE_U32, 0, src},
                                  {CY_COLUMN_TYPE_BIG_ENDIAN, 4, dst},
                                  {CY_COLUMN_TYPE_U16, 0, sport},
                                  {CY_COLUMN_TYPE_U16, 0, dport},
                                  {CY_COLUMN_TYPE_U8, 0, proto}};
    OK(cy_classify_columns(reader, 0, columns, COLUMNS, ROWS, &output));

    batch.offset = first;
    batch.length = ROWS - first;
    struct ArrowArray result;
    struct ArrowSchema result_type;
    uint32_t all = CY_ARROW_OUTPUT_MATCHED | CY_ARROW_OUTPUT_RULE | CY_ARROW_OUTPUT_ACTION |
                   CY_ARROW_OUTPUT_ACTION_ID | CY_ARROW_OUTPUT_COOKIE;
    OK(cy_classify_arrow(reader, "fields", &batch, &batch_type, all, threads, &result,
                         &result_type));
    CHECK(strcmp(result_type.format, "+s") == 0 && result.length == ROWS - first);
    const char *names[] = {"matched", "rule", "action", "action_id", "cookie"};
    const char *formats[] = {"b", "I", "i", "I", "L"};
    CHECK(result_type.n_children == 5 && result.n_children == 5);
    for (int i = 0; i < 5; i++) {
        CHECK(strcmp(result_type.children[i]->name, names[i]) == 0);
        CHECK(strcmp(result_type.children[i]->format, formats[i]) == 0);
        CHECK(result.children[i]->length == ROWS - first && result.children[i]->offset == 0);
    }
    const struct ArrowArray *names_of_actions = result.children[2]->dictionary;
    const int32_t *offsets = names_of_actions->buffers[1];
    const char *text = names_of_actions->buffers[2];
    const char *action_names[] = {"permit", "deny"};
    int matches = 0, nulls = 0;
    for (int row = 0; row < ROWS - first; row++) {
        int from = row + first, has_header = bit(valid, from);
        int matched = has_header && rules[from] != CY_NO_RULE;
        CHECK(bit(result.children[0]->buffers[0], row) == has_header);
        if (has_header) CHECK(bit(result.children[0]->buffers[1], row) == matched);
        for (int i = 1; i < 5; i++)
            CHECK(bit(result.children[i]->buffers[0], row) == matched);
        matches += matched;
        nulls += !has_header;
        if (!matched) continue;
        CHECK(((const uint32_t *)result.children[1]->buffers[1])[row] == rules[from]);
        CHECK(((const uint32_t *)result.children[3]->buffers[1])[row] == actions[from]);
        CHECK(((const uint64_t *)result.children[4]->buffers[1])[row] == cookies[from]);
        int32_t name = ((const int32_t *)result.children[2]->buffers[1])[row];
        size_t length = offsets[name + 1] - offsets[name];
        const char *expected = action_names[actions[from]];
        CHECK(length == strlen(expected) && memcmp(text + offsets[name], expected, length) == 0);
    }
    CHECK(matches > 50 && nulls > 50);
    result.release(&result);
    result_type.release(&result_type);
}

/* A call with mistakes fails with a message, and writes no result. */
static void mistakes(cy_reader *reader) {
    struct ArrowArray result = {0};
    struct ArrowSchema type = {0};
    cy_status bad = CY_STATUS_INVALID_COLUMNS, argument = CY_STATUS_INVALID_ARGUMENT;
    const uint32_t rule = CY_ARROW_OUTPUT_RULE;
#define LOOK_UP(columns, outputs) \
    cy_classify_arrow(reader, columns, &batch, &batch_type, outputs, 1, &result, &type)
    FAILS(LOOK_UP("vpc", rule), bad, "no column `srcaddr`");
    FAILS(LOOK_UP("vpd", rule), argument, "did you mean `vpc`?");
    FAILS(LOOK_UP(NULL, rule), CY_STATUS_NULL_POINTER, "columns");
    FAILS(LOOK_UP("fields", 0), argument, "cy_arrow_output");
    FAILS(LOOK_UP("fields", 33), argument, "cy_arrow_output");
    FAILS(cy_classify_arrow(reader, "fields", NULL, &batch_type, rule, 1, &result, &type),
          CY_STATUS_NULL_POINTER, "batch");
    FAILS(cy_classify_arrow(reader, "fields", &batch, NULL, rule, 1, &result, &type),
          CY_STATUS_NULL_POINTER, "schema");
    FAILS(cy_classify_arrow(reader, "fields", &batch, &batch_type, rule, 1, NULL, &type),
          CY_STATUS_NULL_POINTER, "result");
    FAILS(cy_classify_arrow(NULL, "fields", &batch, &batch_type, rule, 1, &result, &type),
          CY_STATUS_NULL_POINTER, "reader");
    FAILS(cy_classify_arrow(reader, "fields", &column_arrays[0], &column_types[0], rule, 1,
                            &result, &type),
          bad, "struct");

    column_types[3].name = "other";
    FAILS(LOOK_UP("fields", rule), bad, "no column `dport`");
    column_types[3].name = "dport";
    column_types[3].format = "nonsense";
    FAILS(LOOK_UP("fields", rule), bad, "nonsense");
    column_types[3].format = "S";
    column_arrays[3].length = 5; /* shorter than the batch */
    FAILS(LOOK_UP("fields", rule), bad, "");
    column_arrays[3].length = ROWS;
    batch.release = NULL;
    FAILS(LOOK_UP("fields", rule), argument, "released");
    batch.release = release_array;
    CHECK(result.release == NULL && type.release == NULL);
}

int main(void) {
    cy_policy *policy = parse("schema ipv4-5tuple\n"
                              "permit dst=10.0.0.0/8 dport=3 priority=9\n"
                              "deny src=10.0.0.0/9 dport=0-5 priority=8\n");
    cy_table *table = NULL;
    cy_reader *reader = NULL;
    cy_transaction *changes = NULL;
    OK(cy_table_new(policy, NULL, &table));
    OK(cy_reader_new(table, &reader));
    OK(cy_transaction_new(table, &changes));
    uint64_t state = 7;
    for (int row = 0; row < ROWS; row++) {
        src[row] = 10u << 24 | (next(&state) & 0xffffff);
        dst[4 * row] = next(&state) % 2 ? 10 : 11;
        sport[row] = next(&state) % 4;
        dport[row] = next(&state) % 8;
        proto[row] = 6;
    }
    make_batch();
    compare(reader, 0, 1);
    compare(reader, 13, 2);
    mistakes(reader);

    /* A new rule depends on another field: its column is needed from then on. */
    struct ArrowArray result;
    struct ArrowSchema type;
    const char *some = "src=src,dst=dst,dport=dport";
    uint32_t matched = CY_ARROW_OUTPUT_MATCHED;
    OK(cy_classify_arrow(reader, some, &batch, &batch_type, matched, 1, &result, &type));
    result.release(&result);
    type.release(&type);
    OK(cy_transaction_insert_text(changes, 70, 90, "deny sport=2"));
    OK(cy_table_apply(table, changes));
    FAILS(cy_classify_arrow(reader, some, &batch, &batch_type, matched, 1, &result, &type),
          CY_STATUS_INVALID_COLUMNS, "sport");
    compare(reader, 1, 1);

    /* The reader outlives the table. */
    OK(cy_table_free(table));
    compare(reader, 0, 1);
    OK(cy_reader_free(reader));
    OK(cy_transaction_free(changes));
    OK(cy_policy_free(policy));
    return 0;
}
