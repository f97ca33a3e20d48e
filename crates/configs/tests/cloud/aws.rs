//! Outputs of `aws ec2`, written for these tests.

use classyard_configs::ConfigFormat::Aws;

use crate::helper::{load, mutate, problems};

const GROUPS: &str = r#"{
    "SecurityGroups": [
        {
            "Description": "web servers",
            "GroupName": "web",
            "IpPermissions": [
                {
                    "FromPort": 443,
                    "IpProtocol": "tcp",
                    "IpRanges": [
                        {
                            "CidrIp": "0.0.0.0/0",
                            "Description": "everyone"
                        },
                        { "CidrIp": "10.9.0.0/16" }
                    ],
                    "Ipv6Ranges": [{ "CidrIpv6": "::/0" }],
                    "PrefixListIds": [],
                    "ToPort": 443,
                    "UserIdGroupPairs": []
                },
                {
                    "FromPort": 8,
                    "IpProtocol": "icmp",
                    "IpRanges": [{ "CidrIp": "10.0.0.0/8" }],
                    "ToPort": -1
                },
                {
                    "FromPort": 3,
                    "IpProtocol": "icmp",
                    "IpRanges": [{ "CidrIp": "10.0.0.0/8" }],
                    "ToPort": 4
                },
                {
                    "IpProtocol": "icmpv6",
                    "Ipv6Ranges": [{ "CidrIpv6": "2001:db8::/32" }]
                },
                {
                    "IpProtocol": "50",
                    "FromPort": 7,
                    "ToPort": 7,
                    "IpRanges": [{ "CidrIp": "198.51.100.7/32" }]
                },
                {
                    "FromPort": 22,
                    "ToPort": 22,
                    "IpProtocol": "tcp",
                    "UserIdGroupPairs": [
                        { "GroupId": "sg-2", "UserId": "111122223333", "Description": "bastion" }
                    ]
                },
                {
                    "FromPort": 8000,
                    "ToPort": 8100,
                    "IpProtocol": "udp",
                    "PrefixListIds": [{ "PrefixListId": "pl-1" }, { "PrefixListId": "pl-2" }]
                }
            ],
            "OwnerId": "111122223333",
            "GroupId": "sg-1",
            "IpPermissionsEgress": [
                {
                    "IpProtocol": "-1",
                    "IpRanges": [{ "CidrIp": "0.0.0.0/0" }],
                    "Ipv6Ranges": [],
                    "PrefixListIds": [],
                    "UserIdGroupPairs": [{ "GroupId": "sg-9", "UserId": "999999999999" }]
                }
            ],
            "Tags": [],
            "VpcId": "vpc-1"
        },
        {
            "GroupId": "sg-2",
            "IpPermissions": [],
            "IpPermissionsEgress": []
        }
    ]
}
{ "PrefixLists": [{ "PrefixListId": "pl-1", "PrefixListName": "offices" }] }
{ "Entries": [{ "Cidr": "203.0.113.0/25" }, { "Cidr": "203.0.113.128/25", "Description": "b" }] }
"#;

#[test]
fn security_groups_permit_what_a_rule_matches() {
    let loaded = load(GROUPS, Aws);
    let lists = ["web/sg-1/in", "web/sg-1/out", "sg-2/in", "sg-2/out"];
    assert_eq!(loaded.lists(), lists);
    loaded.check(
        "web/sg-1/in",
        "permit 11 src=8.8.8.8 dst=10.0.0.1 proto=tcp dport=443
         permit 11 src=10.9.0.1 dst=10.0.0.1 proto=tcp dport=443
         permit 17 src=2001:db8::1 dst=2001:db8::2 proto=tcp dport=443
         deny 3 src=8.8.8.8 dst=10.0.0.1 proto=tcp dport=444
         deny 3 src=8.8.8.8 dst=10.0.0.1 proto=udp dport=443
         permit 3 src=8.8.8.8 dst=10.0.0.1 proto=udp dport=443 state=established
         permit 3 src=8.8.8.8 dst=10.0.0.1 proto=icmp state=related
         deny 3 src=8.8.8.8 dst=10.0.0.1 proto=udp dport=443 state=invalid
         permit 25 src=10.0.0.9 dst=10.0.0.1 proto=icmp icmp_type=8 icmp_code=9
         deny 3 src=11.0.0.9 dst=10.0.0.1 proto=icmp icmp_type=8
         permit 31 src=10.0.0.9 dst=10.0.0.1 proto=icmp icmp_type=3 icmp_code=4
         deny 3 src=10.0.0.9 dst=10.0.0.1 proto=icmp icmp_type=3 icmp_code=3
         permit 36 src=2001:db8::1 dst=2001:db8::2 proto=icmpv6 icmp_type=135
         deny 3 src=2001:db9::1 dst=2001:db8::2 proto=icmpv6 icmp_type=135
         permit 42 src=198.51.100.7 dst=10.0.0.1 proto=50
         permit 56 src=203.0.113.200 dst=10.0.0.1 proto=udp dport=8050
         deny 3 src=203.0.114.1 dst=10.0.0.1 proto=udp dport=8050
         permit 56 src=203.0.114.1 dst=10.0.0.1 proto=udp dport=8050 condition=0x2
         deny 3 src=203.0.114.1 dst=10.0.0.1 proto=tcp dport=22
         permit 49 src=203.0.114.1 dst=10.0.0.1 proto=tcp dport=22 condition=0x1
         deny 3 src=203.0.114.1 dst=10.0.0.1 proto=tcp dport=23 condition=0x1",
    );
    loaded.check(
        "web/sg-1/out",
        "permit 64 src=10.0.0.1 dst=8.8.8.8 proto=47
         deny 3 src=2001:db8::1 dst=2001:db8::2 proto=tcp
         permit 67 src=2001:db8::1 dst=2001:db8::2 proto=tcp condition=0x4",
    );
    loaded.check("sg-2/in", "deny 73 src=10.0.0.1 dst=8.8.8.8 proto=47");
    let conditions = [
        "source is member of sg-2",
        "source is in prefix list pl-2",
        "destination is member of sg-9",
    ];
    assert_eq!(loaded.conditions.texts(), conditions);
}

#[test]
fn statements_have_positions_texts_and_comments() {
    let loaded = load(GROUPS, Aws);
    let header = "src=8.8.8.8 dst=10.0.0.1 proto=tcp dport=443";
    let (_, source) = loaded.decide("web/sg-1/in", header);
    assert_eq!((source.line, source.column), (11, 25));
    let text = "IpProtocol tcp, FromPort 443, ToPort 443, CidrIp 0.0.0.0/0";
    assert_eq!(source.text, text);
    assert_eq!(source.comment.as_deref(), Some("everyone"));
    assert!(!source.is_implied && source.conditions.is_empty());
    let header = "src=8.8.8.8 dst=10.0.0.1 proto=tcp dport=22 condition=0x1";
    let (_, source) = loaded.decide("web/sg-1/in", header);
    assert_eq!((source.line, source.column), (49, 25));
    assert_eq!(source.comment.as_deref(), Some("bastion"));
    assert_eq!(source.conditions, ["source is member of sg-2"]);
    let sources = &loaded.config.sources;
    for list in loaded.lists() {
        let of_list: Vec<_> = sources
            .iter()
            .filter(|source| source.list == list)
            .collect();
        assert_eq!(of_list[0].text, "permit established and related packets");
        assert!(of_list[0].is_implied);
        let last_source = of_list.last().unwrap();
        assert!(last_source.is_implied && last_source.text == "deny all other packets");
        let implied = of_list.iter().filter(|source| source.is_implied);
        assert_eq!(implied.count(), 2);
    }
}

#[test]
fn equal_rules_are_kept() {
    let text = r#"[{"SecurityGroups": [{"GroupId": "sg-1", "IpPermissions": [
        {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [
            {"CidrIp": "10.0.0.0/8"},
            {"CidrIp": "10.0.0.0/8"}]}], "IpPermissionsEgress": []}]}]"#;
    let loaded = load(text, Aws);
    let lines: Vec<u32> = loaded
        .config
        .sources
        .iter()
        .map(|source| source.line)
        .collect();
    assert_eq!(lines, [1, 3, 4, 1, 1, 1]);
    assert_eq!(loaded.config.policy.len(), 6);
}

#[test]
fn members_of_groups_have_addresses_if_interfaces_are_in_the_file() {
    let interfaces = r#"
{"Reservations": [{"Instances": [{"NetworkInterfaces": [
    {"Groups": [{"GroupId": "sg-2"}],
     "PrivateIpAddresses": [{"PrivateIpAddress": "10.0.5.1"}],
     "Ipv6Addresses": [{"Ipv6Address": "2001:db8::5"}]}]}]}]}
{"NetworkInterfaces": [
    {"Groups": [{"GroupId": "sg-2"}, {"GroupId": "sg-7"}],
     "PrivateIpAddresses": [{"PrivateIpAddress": "10.0.5.2"}, {"PrivateIpAddress": "10.0.5.3"}],
     "Ipv4Prefixes": [{"Ipv4Prefix": "10.0.6.0/28"}]},
    {"Groups": []}]}
"#;
    let loaded = load(&(GROUPS.to_owned() + interfaces), Aws);
    loaded.check(
        "web/sg-1/in",
        "permit 49 src=10.0.5.1 dst=10.0.0.1 proto=tcp dport=22
         permit 49 src=10.0.5.3 dst=10.0.0.1 proto=tcp dport=22
         permit 49 src=10.0.6.9 dst=10.0.0.1 proto=tcp dport=22
         permit 49 src=2001:db8::5 dst=2001:db8::9 proto=tcp dport=22
         deny 3 src=10.0.5.4 dst=10.0.0.1 proto=tcp dport=22",
    );
    // The group of another account is still a condition.
    let conditions = [
        "source is in prefix list pl-2",
        "destination is member of sg-9",
    ];
    assert_eq!(loaded.conditions.texts(), conditions);
    let no_members = r#"{"NetworkInterfaces": []}"#;
    let loaded = load(&(GROUPS.to_owned() + no_members), Aws);
    let header = "src=10.0.5.1 dst=10.0.0.1 proto=tcp dport=22";
    assert_eq!(loaded.decide("web/sg-1/in", header).0, "deny");
}

const RULES: &str = r#"{
    "SecurityGroupRules": [
        {
            "SecurityGroupRuleId": "sgr-1",
            "GroupId": "sg-5",
            "GroupOwnerId": "111122223333",
            "IsEgress": false,
            "IpProtocol": "tcp",
            "FromPort": 5432,
            "ToPort": 5432,
            "CidrIpv4": "10.0.0.0/16",
            "Description": "databases",
            "Tags": []
        },
        { "GroupId": "sg-5", "IsEgress": true, "IpProtocol": "-1", "FromPort": -1, "ToPort": -1,
          "CidrIpv6": "::/0" },
        { "GroupId": "sg-6", "IsEgress": false, "IpProtocol": "-1", "FromPort": -1, "ToPort": -1,
          "ReferencedGroupInfo": { "GroupId": "sg-5", "UserId": "111122223333" } },
        { "GroupId": "sg-6", "IsEgress": true, "IpProtocol": "udp", "FromPort": 53, "ToPort": 53,
          "PrefixListId": "pl-7" }
    ]
}"#;

#[test]
fn rules_of_groups_are_read() {
    let loaded = load(RULES, Aws);
    assert_eq!(
        loaded.lists(),
        ["sg-5/in", "sg-5/out", "sg-6/in", "sg-6/out"]
    );
    loaded.check(
        "sg-5/in",
        "permit 3 src=10.0.9.9 dst=10.1.0.1 proto=tcp dport=5432
         deny 3 src=10.1.9.9 dst=10.1.0.1 proto=tcp dport=5432",
    );
    let header = "src=10.0.9.9 dst=10.1.0.1 proto=tcp dport=5432";
    assert_eq!(
        loaded.decide("sg-5/in", header).1.comment.as_deref(),
        Some("databases")
    );
    loaded.check(
        "sg-5/out",
        "permit 15 src=2001:db8::1 dst=2001:db8::2 proto=99",
    );
    loaded.check(
        "sg-6/in",
        "permit 17 src=10.0.0.1 dst=10.0.0.2 proto=99 condition=0x1",
    );
    loaded.check(
        "sg-6/out",
        "permit 19 src=10.0.0.1 dst=10.0.0.2 proto=udp dport=53 condition=0x2",
    );
    // With the groups in the file, their own lists count.
    let groups = r#"{"SecurityGroups": [{"GroupId": "sg-5", "IpPermissions": [],
        "IpPermissionsEgress": []}]}"#;
    let loaded = load(&(RULES.to_owned() + groups), Aws);
    assert_eq!(
        loaded.lists(),
        ["sg-5/in", "sg-5/out", "sg-6/in", "sg-6/out"]
    );
    assert_eq!(loaded.decide("sg-5/in", header).0, "deny");
    assert!(loaded.config.notes[0].starts_with("2 elements of `SecurityGroupRules` are"));
}

const ACLS: &str = r#"{
  "NetworkAcls": [
    {
      "Associations": [],
      "Entries": [
        {"CidrBlock": "0.0.0.0/0", "Egress": true, "Protocol": "-1", "RuleAction": "allow", "RuleNumber": 100},
        {"CidrBlock": "0.0.0.0/0", "Egress": true, "Protocol": "-1", "RuleAction": "deny", "RuleNumber": 32767},
        {"CidrBlock": "0.0.0.0/0", "Egress": false, "PortRange": {"From": 1024, "To": 65535}, "Protocol": "6", "RuleAction": "allow", "RuleNumber": 200},
        {"CidrBlock": "0.0.0.0/0", "Egress": false, "IcmpTypeCode": {"Code": -1, "Type": 8}, "Protocol": "1", "RuleAction": "allow", "RuleNumber": 110},
        {"CidrBlock": "10.66.0.0/16", "Egress": false, "Protocol": "-1", "RuleAction": "deny", "RuleNumber": 90},
        {"Ipv6CidrBlock": "::/0", "Egress": false, "IcmpTypeCode": {"Code": -1, "Type": -1}, "Protocol": "58", "RuleAction": "allow", "RuleNumber": 120},
        {"CidrBlock": "0.0.0.0/0", "Egress": false, "Protocol": "-1", "RuleAction": "deny", "RuleNumber": 32767},
        {"Ipv6CidrBlock": "::/0", "Egress": false, "Protocol": "-1", "RuleAction": "deny", "RuleNumber": 32768}
      ],
      "IsDefault": true,
      "NetworkAclId": "acl-1",
      "Tags": [],
      "VpcId": "vpc-1"
    }
  ]
}"#;

#[test]
fn network_acls_are_ordered_by_number() {
    let loaded = load(ACLS, Aws);
    assert_eq!(loaded.lists(), ["acl-1/in", "acl-1/out"]);
    loaded.check(
        "acl-1/in",
        "deny 10 src=10.66.0.1 dst=10.0.0.1 proto=tcp dport=2000
         permit 8 src=10.67.0.1 dst=10.0.0.1 proto=tcp dport=2000
         permit 8 src=10.67.0.1 dst=10.0.0.1 proto=tcp dport=65535 state=established
         deny 12 src=10.67.0.1 dst=10.0.0.1 proto=tcp dport=1023
         deny 12 src=10.67.0.1 dst=10.0.0.1 proto=tcp dport=1023 state=established
         permit 9 src=10.67.0.1 dst=10.0.0.1 proto=icmp icmp_type=8 icmp_code=1
         deny 12 src=10.67.0.1 dst=10.0.0.1 proto=icmp icmp_type=9
         permit 11 src=2001:db8::1 dst=2001:db8::2 proto=icmpv6 icmp_type=9
         deny 13 src=2001:db8::1 dst=2001:db8::2 proto=tcp dport=2000",
    );
    loaded.check(
        "acl-1/out",
        "permit 6 src=10.0.0.1 dst=8.8.8.8 proto=99
         deny 3 src=2001:db8::1 dst=2001:db8::2 proto=99",
    );
    let numbers: Vec<_> = loaded
        .config
        .sources
        .iter()
        .map(|source| source.line)
        .collect();
    assert_eq!(numbers, [10, 9, 11, 8, 12, 13, 6, 7, 3]);
    let implied = loaded
        .config
        .sources
        .iter()
        .filter(|source| source.is_implied);
    assert_eq!(implied.count(), 1);
    assert_eq!(loaded.config.sources[0].column, 9);
    assert!(
        loaded.config.sources[0]
            .text
            .starts_with(r#"{"CidrBlock": "10.66.0.0/16","#)
    );
}

#[test]
fn output_in_yaml_is_read() {
    let text = "NetworkAcls:\n- Entries:\n  - CidrBlock: 10.0.0.0/8\n    Egress: false\n    \
                Protocol: '-1'\n    RuleAction: allow\n    RuleNumber: 100\n  \
                NetworkAclId: acl-2\n";
    let loaded = load(text, Aws);
    loaded.check(
        "acl-2/in",
        "permit 3 src=10.0.0.1 dst=8.8.8.8 proto=99
         deny 2 src=11.0.0.1 dst=8.8.8.8 proto=99",
    );
}

/// Returns a group with one permission.
fn permission(permission: &str) -> String {
    format!(
        "{{\"SecurityGroups\": [{{\"GroupId\": \"sg-1\", \"IpPermissionsEgress\": [],\n\
         \"IpPermissions\": [\n{permission}\n]}}]}}"
    )
}

/// Returns a network ACL with entries.
fn entries(entries: &str) -> String {
    format!("{{\"NetworkAcls\": [{{\"NetworkAclId\": \"acl-1\", \"Entries\": [\n{entries}\n]}}]}}")
}

/// Permissions, with their problems.
const MISTAKES: &[(&str, &str)] = &[
    (
        r#"{"IpProtocol": "tcp", "FromPort": 1, "IpRanges": []}"#,
        "3:1: no `ToPort`; expected a number for `FromPort` and for `ToPort`",
    ),
    (
        r#"{"IpProtocol": "tcp", "FromPort": 9, "ToPort": 8, "IpRanges": []}"#,
        "3:48: the number `8`; expected a port from 9 to 65535",
    ),
    (
        r#"{"IpProtocol": "tcp", "FromPort": 9, "ToPort": 65536, "IpRanges": []}"#,
        "3:48: the number `65536`; expected a number from 0 to 65535",
    ),
    (
        r#"{"IpProtocol": "icmp", "FromPort": -1, "ToPort": 8, "IpRanges": []}"#,
        "3:50: the number `8`; expected -1, because the ICMP type is -1",
    ),
    (
        r#"{"IpProtocol": 6, "FromPort": 1, "ToPort": 1}"#,
        "3:16: the number `6`; expected a string, in quotes",
    ),
    (
        r#"{"IpProtocol": "warp"}"#,
        "3:16: the string `warp`; expected -1, a protocol from 0 to 255, or its name",
    ),
    (
        r#"{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "::/0"}]}"#,
        "3:46: the string `::/0`; expected an IPv4 network such as 10.0.0.0/8",
    ),
    (
        r#"{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "10.0.0.0"}]}"#,
        "3:46: the string `10.0.0.0`; expected an IPv4 network such as 10.0.0.0/8",
    ),
    (
        r#"{"IpProtocol": "-1", "Ipv6Ranges": [{"CidrIpv6": "::/129"}]}"#,
        "3:50: a prefix length above 128; expected an IPv6 network such as 2001:db8::/32",
    ),
    (
        r#"{"IpProtocol": "-1", "IpRanges": [{"Cidr": "10.0.0.0/8"}]}"#,
        "3:36: the unknown field `Cidr`; expected one of the fields CidrIp, Description",
    ),
    (
        r#"{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupName": "web"}]}"#,
        "3:43: no `GroupId`; expected a value of `GroupId`",
    ),
    (
        r#"{"IpProtocol": "-1", "IpRanges": []}"#,
        "3:1: a permission without peers; expected an element of IpRanges, Ipv6Ranges, \
             PrefixListIds or UserIdGroupPairs",
    ),
    (
        r#"{"IpProtocol": "-1", "Ports": []}"#,
        "3:22: the unknown field `Ports`; expected one of the fields IpProtocol, FromPort, \
             ToPort, IpRanges, Ipv6Ranges, PrefixListIds, UserIdGroupPairs",
    ),
    (r#""x""#, "3:1: the string `x`; expected a mapping"),
    (
        r#"{"IpProtocol": "-1", "IpProtocol": "6"}"#,
        "3:22: a second value of the key `IpProtocol`; expected each key once",
    ),
];

#[test]
fn mistakes_have_positions() {
    for (text, expected) in MISTAKES {
        assert_eq!(problems(&permission(text), Aws), [*expected], "{text}");
    }
}

#[test]
fn mistakes_of_entries_have_positions() {
    let all = r#"{"CidrBlock": "0.0.0.0/0", "Egress": false, "Protocol": "-1", "RuleAction": "deny", "RuleNumber": 5}"#;
    let second = format!("{all},\n{all}");
    for (text, expected) in [
        (
            second.as_str(),
            "3:99: a second entry with the number 5 in this direction; expected entries with \
             different numbers",
        ),
        (
            r#"{"Egress": false, "Protocol": "-1", "RuleAction": "deny", "RuleNumber": 5}"#,
            "2:1: no network; expected a value of CidrBlock or Ipv6CidrBlock",
        ),
        (
            r#"{"Egress": "no", "Protocol": "-1", "RuleAction": "deny", "RuleNumber": 5}"#,
            "2:12: the string `no`; expected true or false",
        ),
        (
            r#"{"Egress": true, "Protocol": "-1", "RuleAction": "drop", "RuleNumber": 5}"#,
            "2:50: the string `drop`; expected allow or deny",
        ),
        (
            r#"{"Egress": true, "Protocol": "-1", "RuleAction": "deny", "RuleNumber": 0}"#,
            "2:72: the number `0`; expected a number from 1 to 32768",
        ),
        (
            r#"{"CidrBlock": "0.0.0.0/0", "Egress": true, "Protocol": "6", "RuleAction": "deny", "RuleNumber": 5}"#,
            "2:1: no `From`; expected a number for `From` and for `To`",
        ),
    ] {
        assert_eq!(problems(&entries(text), Aws), [expected], "{text}");
    }
}

#[test]
fn mistakes_of_outputs_have_positions() {
    let groups = r#"{"SecurityGroups": [{"GroupId": "sg-1", "IpPermissions": []}]}"#;
    for (text, expected) in [
        (
            groups,
            "1:21: no `IpPermissionsEgress`; expected both lists of permissions",
        ),
        (
            r#"{"SecurityGroups": [], "NextToken": "x"}"#,
            "1:24: an output that lacks its next pages; expected the output of all pages \
             (without --max-items and --no-paginate)",
        ),
        (
            r#"{"SecurityGroups": []} {"Entries": []}"#,
            "1:25: entries of a prefix list that is not named, after an output with 0 prefix \
             lists; expected an output of `describe-managed-prefix-lists` with this list alone \
             before it, or the key `PrefixListId` beside `Entries`",
        ),
        (
            r#"{"SecurityGroups": [], "RuleGroup": {}}"#,
            "1:24: AWS Network Firewall; expected security groups and network ACLs",
        ),
        (
            "{\"SecurityGroups\": [}",
            "1:21: `}`; expected a value of JSON",
        ),
        (
            "{\"SecurityGroups\": [",
            "1:21: the text ends here; expected a value of JSON",
        ),
        (
            "{}",
            "file: no rules of AWS; expected the output of `aws ec2 describe-security-groups`, \
             `describe-security-group-rules` or `describe-network-acls`",
        ),
    ] {
        assert_eq!(problems(text, Aws), [expected], "{text}");
    }
    let twice = r#"{"NetworkAcls": [{"NetworkAclId": "a", "Entries": []}, {"NetworkAclId": "a"}]}"#;
    let expected = "1:56: a second network ACL `a`; expected each network ACL once";
    assert_eq!(problems(twice, Aws), [expected]);
}

#[test]
fn prefix_lists_have_entries() {
    let groups = permission(r#"{"IpProtocol": "-1", "PrefixListIds": [{"PrefixListId": "pl-3"}]}"#);
    for lists in [
        r#"{"PrefixListId": "pl-3", "Entries": [{"Cidr": "10.1.0.0/16"}]}"#,
        r#"{"PrefixLists": [{"PrefixListId": "pl-3", "Cidrs": ["10.1.0.0/16"]}]}"#,
    ] {
        let loaded = load(&format!("{groups}\n{lists}"), Aws);
        loaded.check(
            "sg-1/in",
            "permit 3 src=10.1.2.3 dst=10.0.0.1 proto=1
             deny 1 src=10.2.2.3 dst=10.0.0.1 proto=1",
        );
        assert!(loaded.conditions.texts().is_empty() && loaded.config.notes.is_empty());
    }
}

#[test]
fn outputs_without_use_are_noted() {
    let others = r#"{"Vpcs": []} {"Subnets": []}"#;
    let loaded = load(&format!("{GROUPS}{others}"), Aws);
    let note = "outputs without rules, addresses and prefix lists were ignored: `Vpcs`, `Subnets`";
    assert_eq!(loaded.config.notes, [note]);
}

#[test]
fn mutations_do_not_panic() {
    mutate(GROUPS, Aws, 1500, 1);
    mutate(RULES, Aws, 500, 2);
    mutate(ACLS, Aws, 1500, 3);
}
