/* Wrong arguments give a code and a message, and change nothing. */
#include "test.h"

static const char RULES[] = "schema dual-5tuple\n"
                            "permit src=10.0.0.0/8 dport=443 proto=tcp\n"
                            "permit src=2001:db8::/32\n"
                            "deny any\n";

static void policies(void) {
    cy_policy *policy = NULL;
    const char *bad = "schema ipv4-5tuple\npermit dport=99999\n";
    FAILS(cy_policy_parse(bad, strlen(bad), NULL, NULL, NULL, &policy), CY_STATUS_PARSE_FAILED,
          "text:2");
    CHECK(policy == NULL);
    FAILS(cy_policy_parse("\xff", 1, NULL, NULL, NULL, &policy), CY_STATUS_INVALID_ARGUMENT, "utf-8");
    FAILS(cy_policy_parse("what", 4, NULL, NULL, NULL, &policy), CY_STATUS_PARSE_FAILED, "nftables");
    FAILS(cy_policy_parse("", 0, "pf", NULL, NULL, &policy), CY_STATUS_INVALID_ARGUMENT, "`pf`");
    FAILS(cy_policy_parse(NULL, 5, NULL, NULL, NULL, &policy), CY_STATUS_NULL_POINTER, "text");
    FAILS(cy_policy_parse(RULES, strlen(RULES), NULL, NULL, NULL, NULL), CY_STATUS_NULL_POINTER,
          "place");
    FAILS(cy_policy_read("no/such/file", NULL, NULL, &policy), CY_STATUS_INVALID_ARGUMENT,
          "no/such/file");
    FAILS(cy_policy_new("ipv5", &policy), CY_STATUS_INVALID_ARGUMENT, "ipv4-5tuple");
    FAILS(cy_policy_rules(NULL, NULL), CY_STATUS_NULL_POINTER, "policy");

    policy = parse(RULES);
    size_t count = 0;
    OK(cy_policy_parts(policy, &count));
    CHECK(count == 2);
    FAILS(cy_policy_rules(policy, NULL), CY_STATUS_NULL_POINTER, "number of rules");
    FAILS(cy_policy_key_words(policy, 2, &count), CY_STATUS_INVALID_ARGUMENT, "part 2");

    char name[4];
    uint32_t width = 0, line = 0, action = 0;
    OK(cy_policy_field(policy, 1, 0, name, sizeof name, &width));
    CHECK(strcmp(name, "src") == 0 && width == 128);
    FAILS(cy_policy_field(policy, 1, 5, name, sizeof name, &width), CY_STATUS_INVALID_ARGUMENT,
          "field 5");
    FAILS(cy_policy_field(policy, 1, 0, NULL, 0, &width), CY_STATUS_NULL_POINTER, "room");
    OK(cy_policy_line(policy, 2, &line));
    CHECK(line == 4);
    FAILS(cy_policy_line(policy, 3, &line), CY_STATUS_INVALID_ARGUMENT, "id 3");
    OK(cy_policy_action(policy, "permit", &action));
    OK(cy_policy_action_name(policy, action, name, sizeof name));
    CHECK(strcmp(name, "per") == 0);
    FAILS(cy_policy_action_name(policy, 77, name, sizeof name), CY_STATUS_INVALID_ARGUMENT, "77");

    OK(cy_policy_add_text(policy, 9, 1, "permit dport=22"));
    FAILS(cy_policy_add_text(policy, 9, 1, "permit dport=23"), CY_STATUS_UPDATE_REFUSED, "9");
    FAILS(cy_policy_add_text(policy, 10, 1, "permit dport=22,24"), CY_STATUS_PARSE_FAILED, "");
    FAILS(cy_policy_add_text(policy, 10, 1, "permit dport=22 # ssh"), CY_STATUS_PARSE_FAILED, "");
    FAILS(cy_policy_add_text(policy, 10, 1, "permit any\ndeny any"), CY_STATUS_PARSE_FAILED, "");
    FAILS(cy_policy_add_text(policy, UINT32_MAX, 1, "permit any"), CY_STATUS_PARSE_FAILED, "");
    OK(cy_policy_line(policy, 9, &line));
    CHECK(line == 0);

    cy_match matches[5];
    memset(matches, 0, sizeof matches);
    cy_rule rule = {20, 1, 0, 0};
    cy_form form = {0, matches, 5};
    matches[2].kind = 7;
    FAILS(cy_policy_add(policy, &rule, &form, 1), CY_STATUS_INVALID_ARGUMENT, "field 2");
    matches[2].kind = CY_MATCH_TYPE_EXACT;
    matches[2].first.low = 70000;
    FAILS(cy_policy_add(policy, &rule, &form, 1), CY_STATUS_INVALID_ARGUMENT, "sport");
    matches[2].kind = CY_MATCH_TYPE_PREFIX;
    matches[2].prefix_length = 4000000000u;
    FAILS(cy_policy_add(policy, &rule, &form, 1), CY_STATUS_INVALID_ARGUMENT, "sport");
    matches[2].kind = CY_MATCH_TYPE_ANY;
    FAILS(cy_policy_add(policy, &rule, &form, 0), CY_STATUS_UPDATE_REFUSED, "");
    FAILS(cy_policy_add(policy, NULL, &form, 1), CY_STATUS_NULL_POINTER, "rule");
    FAILS(cy_policy_add(policy, &rule, NULL, 1), CY_STATUS_NULL_POINTER, "forms");
    form.match_count = 4;
    FAILS(cy_policy_add(policy, &rule, &form, 1), CY_STATUS_INVALID_ARGUMENT, "4");
    form.match_count = SIZE_MAX;
    FAILS(cy_policy_add(policy, &rule, &form, 1), CY_STATUS_INVALID_ARGUMENT, "exceed memory");
    OK(cy_policy_rules(policy, &count));
    CHECK(count == 4);

    cy_table *table = NULL;
    FAILS(cy_table_new(policy, "magic", &table), CY_STATUS_INVALID_ARGUMENT, "magic");
    FAILS(cy_table_new(policy, "rfc", &table), CY_STATUS_BUILD_FAILED, "rfc");
    CHECK(table == NULL);
    OK(cy_policy_free(policy));
}

static void handles(void) {
    cy_policy *policy = parse(RULES);
    cy_table *table = NULL;
    cy_reader *reader = NULL;
    cy_transaction *changes = NULL;
    OK(cy_table_new(policy, NULL, &table));
    OK(cy_reader_new(table, &reader));
    OK(cy_transaction_new(table, &changes));

    /* An object of another type. */
    size_t count;
    FAILS(cy_policy_rules((cy_policy *)table, &count), CY_STATUS_INVALID_HANDLE, "policy");
    FAILS(cy_table_free((cy_table *)policy), CY_STATUS_INVALID_HANDLE, "table");
    FAILS(cy_table_apply(table, (cy_transaction *)reader), CY_STATUS_INVALID_HANDLE, "transaction");
    uint64_t memory[8] = {0};
    cy_output output = {NULL, NULL, NULL};
    FAILS(cy_classify_keys((cy_reader *)memory, 0, NULL, 0, &output), CY_STATUS_INVALID_HANDLE,
          "reader");
    FAILS(cy_classify_keys((cy_reader *)((char *)memory + 1), 0, NULL, 0, &output),
          CY_STATUS_INVALID_HANDLE, "reader");
    FAILS(cy_classify_keys(NULL, 0, NULL, 0, &output), CY_STATUS_NULL_POINTER, "reader");

    /* Freed twice, and used after it was freed. */
    OK(cy_policy_free(policy));
    FAILS(cy_policy_free(policy), CY_STATUS_INVALID_HANDLE, "freed");
    FAILS(cy_policy_rules(policy, &count), CY_STATUS_INVALID_HANDLE, "freed");
    OK(cy_policy_free(NULL));
    OK(cy_table_free(table));
    FAILS(cy_table_free(table), CY_STATUS_INVALID_HANDLE, "freed");
    FAILS(cy_reader_new(table, &reader), CY_STATUS_INVALID_HANDLE, "freed");

    /* The reader and the transaction are not parts of the table. */
    OK(cy_classify_keys(reader, 0, NULL, 0, &output));
    OK(cy_transaction_insert_text(changes, 50, 1, "permit dport=22"));
    FAILS(cy_table_apply(table, changes), CY_STATUS_INVALID_HANDLE, "freed");
    OK(cy_transaction_free(changes));
    FAILS(cy_transaction_clear(changes), CY_STATUS_INVALID_HANDLE, "freed");
    OK(cy_reader_free(reader));
    FAILS(cy_reader_free(reader), CY_STATUS_INVALID_HANDLE, "freed");
}

static void lookups(void) {
    cy_policy *policy = parse(RULES);
    cy_table *table = NULL;
    cy_reader *reader = NULL;
    cy_transaction *changes = NULL;
    OK(cy_table_new(policy, NULL, &table));
    OK(cy_reader_new(table, &reader));
    OK(cy_transaction_new(table, &changes));

    uint32_t addresses[2] = {0x0a000001, 0x0b000001};
    uint16_t ports[2] = {443, 443}, *odd = (uint16_t *)((char *)ports + 1);
    uint32_t protocols[2] = {6, 300};
    uint32_t rules[2] = {1, 2};
    cy_output output = {rules, NULL, NULL};
    cy_u128 six = {6, 0};
    cy_column columns[5] = {{CY_COLUMN_TYPE_U32, 0, addresses},
                            {CY_COLUMN_TYPE_U32, 0, addresses},
                            {CY_COLUMN_TYPE_U16, 0, ports},
                            {CY_COLUMN_TYPE_U16, 0, ports},
                            {CY_COLUMN_TYPE_CONSTANT, 0, &six}};
    OK(cy_classify_columns(reader, 0, columns, 5, 2, &output));
    CHECK(rules[0] == 0 && rules[1] == 2);
    FAILS(cy_classify_columns(reader, 0, columns, 4, 2, &output), CY_STATUS_INVALID_COLUMNS, "4 columns");
    FAILS(cy_classify_columns(reader, 2, columns, 5, 2, &output), CY_STATUS_INVALID_ARGUMENT, "part 2");
    FAILS(cy_classify_columns(reader, 0, columns, 5, 2, NULL), CY_STATUS_NULL_POINTER, "output");
    columns[4] = (cy_column){CY_COLUMN_TYPE_U32, 0, protocols};
    FAILS(cy_classify_columns(reader, 0, columns, 5, 2, &output), CY_STATUS_INVALID_COLUMNS,
          "`proto`, row 1: 300");
    columns[4] = (cy_column){9, 0, protocols};
    FAILS(cy_classify_columns(reader, 0, columns, 5, 2, &output), CY_STATUS_INVALID_COLUMNS, "9 is");
    columns[4] = (cy_column){CY_COLUMN_TYPE_BIG_ENDIAN, 17, protocols};
    FAILS(cy_classify_columns(reader, 0, columns, 5, 2, &output), CY_STATUS_INVALID_COLUMNS, "17");
    columns[4] = (cy_column){CY_COLUMN_TYPE_U8, 0, NULL};
    FAILS(cy_classify_columns(reader, 0, columns, 5, 2, &output), CY_STATUS_NULL_POINTER, "column");
    columns[4] = (cy_column){CY_COLUMN_TYPE_U16, 0, odd};
    FAILS(cy_classify_columns(reader, 0, columns, 5, 2, &output), CY_STATUS_INVALID_ARGUMENT,
          "multiple of 2");
    columns[4] = (cy_column){CY_COLUMN_TYPE_U16, 0, ports};
    FAILS(cy_classify_columns(reader, 0, columns, 5, SIZE_MAX, &output), CY_STATUS_INVALID_ARGUMENT,
          "exceed");
    CHECK(rules[0] == 0 && rules[1] == 2);
    OK(cy_classify_columns(reader, 0, columns, 5, 0, &output));

    uint8_t arp[60] = {[12] = 8, [13] = 6};
    cy_packet packets[3] = {{arp, sizeof arp}, {arp, 3}, {NULL, 0}};
    uint32_t found[3], actions[3];
    uint64_t cookies[3] = {1, 1, 1};
    cy_output of_packets = {found, actions, cookies};
    OK(cy_classify_packets(reader, packets, 3, &of_packets));
    for (int i = 0; i < 3; i++)
        CHECK(found[i] == CY_NO_HEADER && actions[i] == CY_NO_HEADER && cookies[i] == 0);
    packets[2].length = 1;
    FAILS(cy_classify_packets(reader, packets, 3, &of_packets), CY_STATUS_NULL_POINTER, "packet");

    FAILS(cy_transaction_insert_text(changes, 7, 7, "jump dport=22"), CY_STATUS_INVALID_ARGUMENT,
          "`jump`");
    FAILS(cy_transaction_insert_text(changes, 7, 7, "permit colour=red"), CY_STATUS_PARSE_FAILED,
          "colour");
    FAILS(cy_transaction_remove(changes, UINT32_MAX), CY_STATUS_INVALID_ARGUMENT, "4294967295");
    OK(cy_table_apply(table, changes));
    OK(cy_transaction_insert_text(changes, 7, 7, "deny dport=443"));
    OK(cy_table_apply(table, changes));
    OK(cy_classify_columns(reader, 0, columns, 5, 0, &output));
    columns[4] = (cy_column){CY_COLUMN_TYPE_CONSTANT, 0, &six};
    OK(cy_classify_columns(reader, 0, columns, 5, 2, &output));
    CHECK(rules[0] == 7 && rules[1] == 7);
    FAILS(cy_table_apply(NULL, changes), CY_STATUS_NULL_POINTER, "table");

    OK(cy_reader_free(reader));
    OK(cy_transaction_free(changes));
    OK(cy_table_free(table));
    OK(cy_policy_free(policy));
}

int main(void) {
    CHECK(strcmp(cy_last_error(), "") == 0);
    CHECK(strchr(cy_version(), '.') != NULL);
    policies();
    handles();
    lookups();
    return 0;
}
