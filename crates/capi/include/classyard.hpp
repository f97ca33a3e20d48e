/*
 * classyard for C++17: objects that free themselves, and exceptions in place of codes.
 *
 * The functions are those of classyard.h, which documents them. Licence: MIT or Apache-2.0.
 */
#ifndef CLASSYARD_HPP
#define CLASSYARD_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "classyard.h"

namespace classyard {

/* A call failed: its code, and the message of cy_last_error. */
class Error : public std::runtime_error {
  public:
    explicit Error(cy_status status) : std::runtime_error(cy_last_error()), status_(status) {}
    cy_status status() const noexcept { return status_; }

  private:
    cy_status status_;
};

inline void check(cy_status status) {
    if (status != CY_STATUS_OK) throw Error(status);
}

namespace detail {
template <class T, cy_status (*release)(T *)> struct Release {
    void operator()(T *object) const noexcept { release(object); }
};
template <class T, cy_status (*release)(T *)>
using Owned = std::unique_ptr<T, Release<T, release>>;
} // namespace detail

/* Rules. For one thread at a time. */
class Policy {
  public:
    /* A policy without rules, over a schema such as "ipv4-5tuple". */
    explicit Policy(const std::string &schema) {
        cy_policy *policy = nullptr;
        check(cy_policy_new(schema.c_str(), &policy));
        policy_.reset(policy);
    }
    /* Reads a file of any format. */
    static Policy read(const std::string &path) {
        cy_policy *policy = nullptr;
        check(cy_policy_read(path.c_str(), nullptr, nullptr, &policy));
        return Policy(policy);
    }
    /* Reads a text of any format. */
    static Policy parse(std::string_view text) {
        cy_policy *policy = nullptr;
        check(cy_policy_parse(text.data(), text.size(), nullptr, nullptr, nullptr, &policy));
        return Policy(policy);
    }
    void add(std::uint32_t id, std::uint32_t priority, const std::string &rule) {
        check(cy_policy_add_text(get(), id, priority, rule.c_str()));
    }
    std::size_t rules() const {
        std::size_t count = 0;
        check(cy_policy_rules(get(), &count));
        return count;
    }
    /* The number of the action with this name. */
    std::uint32_t action(const std::string &name) {
        std::uint32_t action = 0;
        check(cy_policy_action(get(), name.c_str(), &action));
        return action;
    }
    cy_policy *get() const noexcept { return policy_.get(); }

  private:
    explicit Policy(cy_policy *policy) : policy_(policy) {}
    detail::Owned<cy_policy, cy_policy_free> policy_;
};

/* Changes to rules that are made together. For one thread at a time. */
class Transaction {
  public:
    explicit Transaction(const cy_table *table) {
        cy_transaction *transaction = nullptr;
        check(cy_transaction_new(table, &transaction));
        transaction_.reset(transaction);
    }
    Transaction &insert(std::uint32_t id, std::uint32_t priority, const std::string &rule) {
        check(cy_transaction_insert_text(get(), id, priority, rule.c_str()));
        return *this;
    }
    Transaction &modify(std::uint32_t id, std::uint32_t priority, const std::string &rule) {
        check(cy_transaction_modify_text(get(), id, priority, rule.c_str()));
        return *this;
    }
    Transaction &remove(std::uint32_t id) {
        check(cy_transaction_remove(get(), id));
        return *this;
    }
    cy_transaction *get() const noexcept { return transaction_.get(); }

  private:
    detail::Owned<cy_transaction, cy_transaction_free> transaction_;
};

/* Looks up headers. For one thread at a time. */
class Reader {
  public:
    explicit Reader(const cy_table *table) {
        cy_reader *reader = nullptr;
        check(cy_reader_new(table, &reader));
        reader_.reset(reader);
    }
    void classify(std::uint32_t part, const cy_column *columns, std::size_t column_count,
                  std::size_t rows, const cy_output &output) {
        check(cy_classify_columns(get(), part, columns, column_count, rows, &output));
    }
    void classify(std::uint32_t part, const std::uint64_t *keys, std::size_t count,
                  const cy_output &output) {
        check(cy_classify_keys(get(), part, keys, count, &output));
    }
    void classify(const cy_packet *packets, std::size_t count, const cy_output &output) {
        check(cy_classify_packets(get(), packets, count, &output));
    }
    /* `result` and `result_schema` are released by the caller. `outputs`: see cy_arrow_output. */
    void classify(const std::string &columns, const struct ArrowArray *batch,
                  const struct ArrowSchema *schema, std::uint32_t outputs,
                  struct ArrowArray *result, struct ArrowSchema *result_schema,
                  std::size_t threads = 1) {
        check(cy_classify_arrow(get(), columns.c_str(), batch, schema, outputs, threads, result,
                                result_schema));
    }
    cy_reader *get() const noexcept { return reader_.get(); }

  private:
    detail::Owned<cy_reader, cy_reader_free> reader_;
};

/* Rules that are looked up and changed at the same time, on any threads. */
class Table {
  public:
    explicit Table(const Policy &policy, const char *engine = nullptr) {
        cy_table *table = nullptr;
        check(cy_table_new(policy.get(), engine, &table));
        table_.reset(table);
    }
    Reader reader() const { return Reader(get()); }
    Transaction transaction() const { return Transaction(get()); }
    /* Makes all changes or none; the transaction is empty afterwards. */
    void apply(Transaction &transaction) { check(cy_table_apply(get(), transaction.get())); }
    std::size_t rules() const {
        std::size_t count = 0;
        check(cy_table_rules(get(), &count));
        return count;
    }
    cy_table *get() const noexcept { return table_.get(); }

  private:
    detail::Owned<cy_table, cy_table_free> table_;
};

} // namespace classyard

#endif
