/* Threads read while another thread changes the rules: each lookup sees the rules of one
 * moment. Memory does not grow with the number of calls. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "test.h"

static cy_table *table;
static atomic_int stop;

/* Two rules move together: a call sees both before or both after a change. */
static void *read_rules(void *unused) {
    (void)unused;
    cy_reader *reader = NULL;
    OK(cy_reader_new(table, &reader));
    uint16_t ports[512];
    uint32_t rules[512];
    for (int row = 0; row < 512; row++) ports[row] = row < 300 ? 1 : 2;
    static cy_u128 zero;
    cy_column columns[5] = {{CY_COLUMN_TYPE_CONSTANT, 0, &zero},
                            {CY_COLUMN_TYPE_CONSTANT, 0, &zero},
                            {CY_COLUMN_TYPE_CONSTANT, 0, &zero},
                            {CY_COLUMN_TYPE_U16, 0, ports},
                            {CY_COLUMN_TYPE_CONSTANT, 0, &zero}};
    cy_output output = {rules, NULL, NULL};
    size_t lookups = 0;
    while (!stop || lookups < 1000) {
        OK(cy_classify_columns(reader, 0, columns, 5, 512, &output));
        for (int row = 0; row < 512; row++)
            CHECK(rules[row] % 2 == (row >= 300) && rules[row] / 2 == rules[0] / 2);
        lookups++;
    }
    OK(cy_reader_free(reader));
    return NULL;
}

static void change_rules(int rounds) {
    cy_transaction *changes = NULL;
    OK(cy_transaction_new(table, &changes));
    for (int round = 0; round < rounds; round++) {
        uint32_t old = 2 * (round % 2), new = 2 - old;
        OK(cy_transaction_remove(changes, old));
        OK(cy_transaction_remove(changes, old + 1));
        OK(cy_transaction_insert_text(changes, new, 5, "permit dport=1"));
        OK(cy_transaction_insert_text(changes, new + 1, 5, "permit dport=2"));
        OK(cy_table_apply(table, changes));
    }
    OK(cy_transaction_free(changes));
}

/* Two threads with one reader: one of them is told so, and nothing else happens. */
static void *share_reader(void *reader) {
    uint64_t keys[2 * 256] = {0};
    uint32_t rules[256];
    cy_output output = {rules, NULL, NULL};
    for (int call = 0; call < 20000; call++) {
        cy_status status = cy_classify_keys(reader, 0, keys, 256, &output);
        CHECK(status == CY_STATUS_OK || status == CY_STATUS_BUSY);
    }
    return NULL;
}

static void many_calls(void) {
    cy_reader *reader = NULL;
    OK(cy_reader_new(table, &reader));
    uint64_t keys[2 * 8] = {0};
    uint32_t rules[8];
    cy_output output = {rules, NULL, NULL};
    size_t before = 0;
    for (int call = 0; call < 100000; call++) {
        OK(cy_classify_keys(reader, 0, keys, 8, &output));
        CHECK(cy_classify_keys(reader, 9, keys, 8, &output) == CY_STATUS_INVALID_ARGUMENT);
        cy_policy *policy = NULL;
        CHECK(cy_policy_new("nothing", &policy) == CY_STATUS_INVALID_ARGUMENT);
        if (call % 1000 == 0) {
            OK(cy_policy_new("ipv4-5tuple", &policy));
            OK(cy_policy_free(policy));
        }
        if (call == 1000) before = mallinfo2().uordblks;
    }
    CHECK(mallinfo2().uordblks <= before + 4096);
    OK(cy_reader_free(reader));
}

int main(void) {
    cy_policy *policy = parse("schema ipv4-5tuple\npermit dport=1 id=0 priority=5\n"
                              "permit dport=2 id=1 priority=5\n");
    OK(cy_table_new(policy, NULL, &table));
    OK(cy_policy_free(policy));
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, read_rules, NULL) == 0);
    change_rules(2000);
    stop = 1;
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);

    cy_reader *reader = NULL;
    OK(cy_reader_new(table, &reader));
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, share_reader, reader) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    OK(cy_reader_free(reader));

    many_calls();
    OK(cy_table_free(table));
    return 0;
}
