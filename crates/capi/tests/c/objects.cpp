/* The objects of C++: they look up, change, throw, and free themselves. */
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "classyard.hpp"

static void require(bool condition, const char *what) {
    if (!condition) {
        std::fprintf(stderr, "not true: %s\n", what);
        std::exit(1);
    }
}

int main() {
    auto policy = classyard::Policy::parse("schema ipv4-5tuple\npermit dport=443\ndeny any\n");
    policy.add(7, 9, "permit src=10.0.0.0/8");
    require(policy.rules() == 3, "three rules");
    classyard::Table table(policy);
    auto reader = table.reader();

    std::vector<std::uint32_t> src{0x0a000001, 0x0b000001, 0x0b000001}, rules(3), actions(3);
    std::vector<std::uint16_t> ports{443, 443, 80};
    cy_u128 zero{0, 0};
    cy_column columns[5] = {{CY_COLUMN_TYPE_U32, 0, src.data()},
                            {CY_COLUMN_TYPE_CONSTANT, 0, &zero},
                            {CY_COLUMN_TYPE_CONSTANT, 0, &zero},
                            {CY_COLUMN_TYPE_U16, 0, ports.data()},
                            {CY_COLUMN_TYPE_CONSTANT, 0, &zero}};
    cy_output output{rules.data(), actions.data(), nullptr};
    reader.classify(0, columns, 5, 3, output);
    require(rules == std::vector<std::uint32_t>{7, 0, 1}, "the winners of the policy");
    require(actions[0] == policy.action("permit") && actions[2] == policy.action("deny"), "actions");

    auto changes = table.transaction();
    changes.remove(0).insert(8, 10, "deny src=10.0.0.1").modify(7, 1, "permit dport=443");
    table.apply(changes);
    reader.classify(0, columns, 5, 3, output);
    require(rules == std::vector<std::uint32_t>{8, 1, 1}, "the winners after the changes");
    require(table.rules() == 3, "three rules after the changes");

    try {
        changes.remove(0);
        table.apply(changes);
        require(false, "a rule that does not exist is not removed");
    } catch (const classyard::Error &error) {
        require(error.status() == CY_STATUS_UPDATE_REFUSED, error.what());
    }
    try {
        classyard::Policy::parse("schema ipv4-5tuple\npermit dport=x\n");
        require(false, "a bad rule is not read");
    } catch (const classyard::Error &error) {
        require(error.status() == CY_STATUS_PARSE_FAILED, error.what());
    }
    try {
        reader.classify("vpd", nullptr, nullptr, CY_ARROW_OUTPUT_RULE, nullptr, nullptr);
        require(false, "a lookup without a batch fails");
    } catch (const classyard::Error &error) {
        require(error.status() == CY_STATUS_NULL_POINTER, error.what());
    }
    return 0;
}
