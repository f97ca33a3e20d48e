/*
 * classyard for C: which rule does a packet hit?
 *
 * A policy has rules. A table looks headers up while its rules change. A reader looks up, on
 * one thread. A transaction changes rules together or not at all.
 *
 * Every function that can fail returns a cy_status; cy_last_error() has the message. Lookups
 * allocate nothing after the first ones of a reader.
 *
 * Pointers to objects come from the functions that make them, and are freed once, by the
 * function that frees them. Using an object after it is freed is undefined; where that can be
 * told, it is CY_STATUS_INVALID_HANDLE. Arrays have as many elements as their count says.
 * Texts are UTF-8 and end with a null byte, unless a length is given.
 *
 * Generated from the Rust sources. Licence: MIT or Apache-2.0.
 */

#ifndef CLASSYARD_H
#define CLASSYARD_H



#include <stddef.h>
#include <stdint.h>

/* The structures of Arrow's C data interface. */
struct ArrowArray;
struct ArrowSchema;

/**
 * The rule id and the action of a header that no rule matches.
 */
#define CY_NO_RULE UINT32_MAX

/**
 * The rule id and the action of a packet that has no header for the rules, such as a packet
 * of ARP among five-tuples.
 */
#define CY_NO_HEADER (UINT32_MAX - 1)

/**
 * The result of a call. Every call that can fail returns a status; `cy_last_error` has the
 * message for people.
 */
typedef enum cy_status {
    /**
     * The call succeeded.
     */
    CY_STATUS_OK = 0,
    /**
     * A pointer that must not be null is null.
     */
    CY_STATUS_NULL_POINTER = 1,
    /**
     * A pointer is not an object of this type, or the object was freed.
     */
    CY_STATUS_INVALID_HANDLE = 2,
    /**
     * An argument is out of range or unknown: a name, a part, an id, a text that is not UTF-8, a
     * file that cannot be read.
     */
    CY_STATUS_INVALID_ARGUMENT = 3,
    /**
     * A file or text of rules has problems. Nothing was loaded.
     */
    CY_STATUS_PARSE_FAILED = 4,
    /**
     * An engine cannot be built over the rules.
     */
    CY_STATUS_BUILD_FAILED = 5,
    /**
     * A change to rules was refused. Nothing was changed.
     */
    CY_STATUS_UPDATE_REFUSED = 6,
    /**
     * Columns do not fit the schema. Nothing was looked up.
     */
    CY_STATUS_INVALID_COLUMNS = 7,
    /**
     * Another thread is using the reader. A reader is for one thread at a time.
     */
    CY_STATUS_BUSY = 8,
    /**
     * A defect of the library. The message says where.
     */
    CY_STATUS_INTERNAL_ERROR = 9,
} cy_status;

/**
 * The values of a field that a rule matches.
 */
typedef enum cy_match_type {
    /**
     * All values.
     */
    CY_MATCH_TYPE_ANY = 0,
    /**
     * The value `first`.
     */
    CY_MATCH_TYPE_EXACT = 1,
    /**
     * The values that start with the first `prefix_length` bits of `first`.
     */
    CY_MATCH_TYPE_PREFIX = 2,
    /**
     * The values from `first` to `second`.
     */
    CY_MATCH_TYPE_RANGE = 3,
    /**
     * The values that agree with `first` on the bits of the mask `second`.
     */
    CY_MATCH_TYPE_MASKED = 4,
} cy_match_type;

/**
 * The type of the values of a column.
 */
typedef enum cy_column_type {
    /**
     * `uint8_t`.
     */
    CY_COLUMN_TYPE_U8 = 0,
    /**
     * `uint16_t`, in the order of this processor.
     */
    CY_COLUMN_TYPE_U16 = 1,
    /**
     * `uint32_t`, in the order of this processor.
     */
    CY_COLUMN_TYPE_U32 = 2,
    /**
     * `uint64_t`, in the order of this processor.
     */
    CY_COLUMN_TYPE_U64 = 3,
    /**
     * Values of `size` bytes, most significant byte first, as in packets. `size` is 1 to 16.
     */
    CY_COLUMN_TYPE_BIG_ENDIAN = 4,
    /**
     * One `cy_u128`, for all rows.
     */
    CY_COLUMN_TYPE_CONSTANT = 5,
} cy_column_type;

/**
 * A column of the result of `cy_classify_arrow`.
 */
typedef enum cy_arrow_output {
    /**
     * `matched`, Boolean: true if a rule matches.
     */
    CY_ARROW_OUTPUT_MATCHED = 1,
    /**
     * `rule`, UInt32: the id of the winning rule, null if no rule matches.
     */
    CY_ARROW_OUTPUT_RULE = 2,
    /**
     * `action`, Dictionary(Int32, Utf8): the name of the winner's action, null if no rule
     * matches.
     */
    CY_ARROW_OUTPUT_ACTION = 4,
    /**
     * `action_id`, UInt32: the number of the winner's action, null if no rule matches.
     */
    CY_ARROW_OUTPUT_ACTION_ID = 8,
    /**
     * `cookie`, UInt64: the cookie of the winner, null if no rule matches.
     */
    CY_ARROW_OUTPUT_COOKIE = 16,
} cy_arrow_output;

/**
 * Rules, with the names of their actions. A policy is for one thread at a time.
 */
typedef struct cy_policy cy_policy;

/**
 * Looks up headers in a table. A reader is for one thread at a time: make one for each thread.
 */
typedef struct cy_reader cy_reader;

/**
 * Rules that are looked up and changed at the same time. Any thread may use a table.
 */
typedef struct cy_table cy_table;

/**
 * Changes to rules that are made together. A transaction is for one thread at a time, and for
 * tables with the schemas of the table that it was made for.
 */
typedef struct cy_transaction cy_transaction;

/**
 * A rule without its matches.
 */
typedef struct cy_rule {
    /**
     * The id: any number but `CY_NO_RULE`, once for each rule.
     */
    uint32_t id;
    /**
     * The priority. The matching rule of highest priority wins; among equal priorities, the
     * rule of lowest id.
     */
    uint32_t priority;
    /**
     * The number of the action: see `cy_policy_action`.
     */
    uint32_t action;
    /**
     * A number for the program's own use.
     */
    uint64_t cookie;
} cy_rule;

/**
 * A number of 128 bits.
 */
typedef struct cy_u128 {
    /**
     * The low 64 bits.
     */
    uint64_t low;
    /**
     * The high 64 bits.
     */
    uint64_t high;
} cy_u128;

/**
 * One field of a rule.
 */
typedef struct cy_match {
    /**
     * A number of `cy_match_type`.
     */
    uint32_t kind;
    /**
     * The length of a prefix in bits.
     */
    uint32_t prefix_length;
    /**
     * The value, or the first value of a range.
     */
    struct cy_u128 first;
    /**
     * The last value of a range, or the mask.
     */
    struct cy_u128 second;
} cy_match;

/**
 * The matches of a rule in one part of a policy. A rule for IPv4 and IPv6 has two forms.
 */
typedef struct cy_form {
    /**
     * The part: 0 in policies of one schema; 0 (IPv4) or 1 (IPv6) in policies of both.
     */
    uint32_t part;
    /**
     * One match for each field of the part's schema, in order.
     */
    const struct cy_match *matches;
    /**
     * The number of matches.
     */
    size_t match_count;
} cy_form;

/**
 * The values of one field: one for each header.
 */
typedef struct cy_column {
    /**
     * A number of `cy_column_type`.
     */
    uint32_t kind;
    /**
     * The number of bytes of a value, for `CY_COLUMN_TYPE_BIG_ENDIAN`.
     */
    uint32_t size;
    /**
     * The values.
     */
    const void *values;
} cy_column;

/**
 * The results of a lookup: arrays with an element for each header. Lookups do not write to an
 * array that is null.
 */
typedef struct cy_output {
    /**
     * The ids of the winning rules; `CY_NO_RULE` where no rule matches.
     */
    uint32_t *rules;
    /**
     * The actions of the winning rules; `CY_NO_RULE` where no rule matches.
     */
    uint32_t *actions;
    /**
     * The cookies of the winning rules; 0 where no rule matches.
     */
    uint64_t *cookies;
} cy_output;

/**
 * A packet: an Ethernet frame.
 */
typedef struct cy_packet {
    /**
     * The bytes, from the Ethernet header on.
     */
    const uint8_t *bytes;
    /**
     * The number of bytes.
     */
    size_t length;
} cy_packet;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the message of the last call of this thread that failed; an empty text if none
 * failed. The text ends with a null byte. It is valid until another call of this thread
 * fails, or the thread ends.
 */
const char *cy_last_error(void);

/**
 * Returns the version of the library, such as "0.1.0". The text is valid for ever.
 */
const char *cy_version(void);

/**
 * Reads the rules of a file: any format that `classyard formats` lists, also packed with
 * gzip.
 *
 * `format` is the name of the format, or null to detect it. `list` is the list of a
 * firewall's configuration to read, or null for all lists. `*policy` is the new policy; free
 * it with `cy_policy_free`.
 */
enum cy_status cy_policy_read(const char *path,
                              const char *format,
                              const char *list,
                              struct cy_policy **policy);

/**
 * Reads the rules of a text.
 *
 * `text` has `length` bytes of UTF-8. `format` and `list` are as for `cy_policy_read`.
 * `schema` is the schema of rules that do not name one, such as "ipv4-5tuple", or null.
 */
enum cy_status cy_policy_parse(const char *text,
                               size_t length,
                               const char *format,
                               const char *schema,
                               const char *list,
                               struct cy_policy **policy);

/**
 * Makes a policy without rules. `schema` is "ipv4-5tuple", "ipv6-5tuple", "dual-5tuple" (IPv4
 * and IPv6 in one order), "acl" (the fields of firewall rules), or "openflow15".
 */
enum cy_status cy_policy_new(const char *schema, struct cy_policy **policy);

/**
 * Frees a policy. Tables that were made from it stay. Null is accepted.
 */
enum cy_status cy_policy_free(struct cy_policy *policy);

/**
 * Adds a rule: one form for each part that it is in.
 */
enum cy_status cy_policy_add(struct cy_policy *policy,
                             const struct cy_rule *rule,
                             const struct cy_form *forms,
                             size_t form_count);

/**
 * Adds a rule that a text gives, such as "permit src=10.0.0.0/8 dport=443 proto=tcp": a line
 * of the format `rules` without id and priority. The text must be one rule: it has no lists.
 */
enum cy_status cy_policy_add_text(struct cy_policy *policy,
                                  uint32_t id,
                                  uint32_t priority,
                                  const char *rule);

/**
 * Writes the number of rules to `*count`.
 */
enum cy_status cy_policy_rules(const struct cy_policy *policy, size_t *count);

/**
 * Writes the number of parts to `*count`: 1, or 2 for policies of IPv4 and IPv6.
 */
enum cy_status cy_policy_parts(const struct cy_policy *policy, size_t *count);

/**
 * Writes the number of words of a key of a part to `*words`: see `cy_classify_keys`.
 */
enum cy_status cy_policy_key_words(const struct cy_policy *policy,
                                   uint32_t part_number,
                                   size_t *words);

/**
 * Writes the name of a field of a part to `name`, an array of `capacity` bytes, and its width
 * in bits to `*width`. Fields have the numbers 0, 1 and so on. A field after the last is
 * `CY_STATUS_INVALID_ARGUMENT`. The name ends with a null byte, and is cut if it does not
 * fit.
 */
enum cy_status cy_policy_field(const struct cy_policy *policy,
                               uint32_t part_number,
                               size_t field,
                               char *name,
                               size_t capacity,
                               uint32_t *width);

/**
 * Writes the number of the action with this name to `*action`. An action that the policy does
 * not have is declared.
 */
enum cy_status cy_policy_action(struct cy_policy *policy, const char *name, uint32_t *action);

/**
 * Writes the name of an action to `name`, an array of `capacity` bytes. The name ends with a
 * null byte, and is cut if it does not fit. An action without a name is
 * `CY_STATUS_INVALID_ARGUMENT`.
 */
enum cy_status cy_policy_action_name(const struct cy_policy *policy,
                                     uint32_t action,
                                     char *name,
                                     size_t capacity);

/**
 * Writes the line of a rule to `*line`: in the file or text that it was read from, counted
 * from 1; 0 for rules that were added later.
 */
enum cy_status cy_policy_line(const struct cy_policy *policy, uint32_t rule, uint32_t *line);

/**
 * Packs headers that are stored by column into keys, for `cy_classify_keys`.
 *
 * `columns` has one column for each field of the part, each with `rows` values. `keys` has
 * room for `rows` keys of `cy_policy_key_words` words each.
 */
enum cy_status cy_policy_pack(const struct cy_policy *policy,
                              uint32_t part_number,
                              const struct cy_column *columns,
                              size_t column_count,
                              size_t rows,
                              uint64_t *keys);

/**
 * Makes a table of a policy's rules. The policy is not needed afterwards.
 *
 * `engine` is the name of an engine with its options, such as "tuplemerge", or null for
 * "forest". An engine without updates is `CY_STATUS_BUILD_FAILED`.
 */
enum cy_status cy_table_new(const struct cy_policy *policy,
                            const char *engine,
                            struct cy_table **table);

/**
 * Frees a table. Its readers and transactions stay, and are freed on their own. Null is
 * accepted.
 */
enum cy_status cy_table_free(struct cy_table *table);

/**
 * Writes the number of rules to `*count`.
 */
enum cy_status cy_table_rules(const struct cy_table *table, size_t *count);

/**
 * Makes all changes of a transaction, in order, or none. Lookups that begin after the call see
 * all changes. The transaction is empty afterwards; if the changes are refused, it stays.
 *
 * Several threads may apply transactions; each waits for the other.
 */
enum cy_status cy_table_apply(const struct cy_table *table, struct cy_transaction *transaction);

/**
 * Makes a transaction without changes.
 */
enum cy_status cy_transaction_new(const struct cy_table *table,
                                  struct cy_transaction **transaction);

/**
 * Frees a transaction. Null is accepted.
 */
enum cy_status cy_transaction_free(struct cy_transaction *transaction);

/**
 * Removes all changes from a transaction.
 */
enum cy_status cy_transaction_clear(struct cy_transaction *transaction);

/**
 * Appends a rule that is new: one form for each part that it is in. `cy_table_apply` refuses
 * a rule whose id is in use.
 */
enum cy_status cy_transaction_insert(struct cy_transaction *transaction,
                                     const struct cy_rule *rule,
                                     const struct cy_form *forms,
                                     size_t form_count);

/**
 * Appends a rule that replaces the rule of the same id. `cy_table_apply` refuses it if there
 * is none.
 */
enum cy_status cy_transaction_modify(struct cy_transaction *transaction,
                                     const struct cy_rule *rule,
                                     const struct cy_form *forms,
                                     size_t form_count);

/**
 * Appends a rule that is new, from a text as for `cy_policy_add_text`. Its action must be an
 * action of the policy that the table was made from.
 */
enum cy_status cy_transaction_insert_text(struct cy_transaction *transaction,
                                          uint32_t id,
                                          uint32_t priority,
                                          const char *rule);

/**
 * Appends a rule that replaces the rule of the same id, from a text as for
 * `cy_transaction_insert_text`.
 */
enum cy_status cy_transaction_modify_text(struct cy_transaction *transaction,
                                          uint32_t id,
                                          uint32_t priority,
                                          const char *rule);

/**
 * Appends the removal of the rule with this id. `cy_table_apply` refuses it if there is none.
 */
enum cy_status cy_transaction_remove(struct cy_transaction *transaction, uint32_t id);

/**
 * Makes a reader of a table. The reader stays usable after the table is freed.
 */
enum cy_status cy_reader_new(const struct cy_table *table, struct cy_reader **reader);

/**
 * Frees a reader. Null is accepted. A reader that another thread is using is
 * `CY_STATUS_BUSY`, and stays.
 */
enum cy_status cy_reader_free(struct cy_reader *reader);

/**
 * Looks up packed keys of one part. All keys of a call see the rules of one moment.
 *
 * `keys` has `count` keys of `cy_policy_key_words` words each. `output` says where to write.
 */
enum cy_status cy_classify_keys(struct cy_reader *reader,
                                uint32_t part_number,
                                const uint64_t *keys,
                                size_t count,
                                const struct cy_output *output);

/**
 * Looks up headers of one part that are stored by column. All headers of a call see the rules
 * of one moment. If a value does not fit its field, nothing is looked up.
 *
 * `columns` has one column for each field of the part, in order, each with `rows` values.
 * `output` says where to write.
 */
enum cy_status cy_classify_columns(struct cy_reader *reader,
                                   uint32_t part_number,
                                   const struct cy_column *columns,
                                   size_t column_count,
                                   size_t rows,
                                   const struct cy_output *output);

/**
 * Looks up Ethernet frames. All packets of a call see the rules of one moment.
 *
 * A packet without a header for the rules has `CY_NO_HEADER` as its rule and action, for
 * example ARP, or a packet that is cut short, among five-tuples. Packets without ports have
 * port 0. `output` says where to write.
 */
enum cy_status cy_classify_packets(struct cy_reader *reader,
                                   const struct cy_packet *packets,
                                   size_t count,
                                   const struct cy_output *output);

/**
 * Looks up one packed key of a part, and sets in `mask` the bits of the key on which the answer
 * depends: every key that agrees on these bits has the same answer. Bits that are set already
 * stay set. So a cache can keep one entry for many headers.
 *
 * `key` and `mask` have `cy_policy_key_words` words. `*rule` and `*action` are the winning
 * rule and its action, or `CY_NO_RULE`.
 */
enum cy_status cy_classify_masked(struct cy_reader *reader,
                                  uint32_t part_number,
                                  const uint64_t *key,
                                  uint64_t *mask,
                                  uint32_t *rule,
                                  uint32_t *action);

/**
 * Looks up the headers in the rows of an Arrow record batch. All rows see the rules of one
 * moment.
 *
 * `batch` and `schema` are a struct array of Arrow's C data interface: one child for each
 * column. They stay the caller's. `columns` says which columns have the fields: a preset
 * ("fields", "vpc", "zeek", "netflow", "ipfix"), or parts such as "src=source_ip,proto:=6", or
 * a preset and changes to it. "fields" takes the columns with the names of the fields. Columns
 * may be integers, texts, binary values or dictionaries of them.
 *
 * `outputs` is the sum of the `cy_arrow_output` values of the wanted columns. `*result` and
 * `*result_schema` become a struct array with these columns, in the order of `cy_arrow_output`.
 * The caller releases both. Rows with a null in a mapped column are null. The call uses at most
 * `threads` threads; with 1, it starts none.
 *
 * Columns that are missing or do not fit their fields are `CY_STATUS_INVALID_COLUMNS`; nothing
 * is looked up then, and `*result` is not written. A call allocates its results.
 */
enum cy_status cy_classify_arrow(struct cy_reader *reader,
                                 const char *columns,
                                 const struct ArrowArray *batch,
                                 const struct ArrowSchema *schema,
                                 uint32_t outputs,
                                 size_t threads,
                                 struct ArrowArray *result,
                                 struct ArrowSchema *result_schema);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CLASSYARD_H */
