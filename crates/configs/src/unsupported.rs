//! Formats of firewalls that are recognised and not read.

/// A format, with lists of texts. A file of the format has all texts of one list.
struct Format {
    name: &'static str,
    marks: &'static [&'static [&'static str]],
}

const FORMATS: [Format; 9] = [
    Format {
        name: "FortiOS configurations",
        marks: &[&["config firewall policy"], &["config firewall address"]],
    },
    Format {
        name: "PAN-OS configurations",
        marks: &[
            &["<config version=", "<rulebase>"],
            &["rulebase security rules"],
        ],
    },
    Format {
        name: "RouterOS exports",
        marks: &[&["/ip firewall filter"], &["/ipv6 firewall filter"]],
    },
    Format {
        name: "VyOS configurations",
        marks: &[
            &["set firewall ipv4 name"],
            &["set firewall name"],
            &["vyos-config-version"],
        ],
    },
    Format {
        name: "VRP configurations of Huawei",
        marks: &[&["acl number ", "\n rule "], &["acl name ", "\n rule "]],
    },
    Format {
        name: "network security groups of Azure",
        marks: &[&["\"securityRules\"", "\"sourceAddressPrefix\""]],
    },
    Format {
        name: "firewall rules of Google Cloud",
        marks: &[&["\"sourceRanges\"", "\"IPProtocol\""]],
    },
    Format {
        name: "rules of ufw",
        marks: &[&["Status: active", "Action", "From"]],
    },
    Format {
        name: "rules of pf",
        marks: &[
            &["\nblock ", "\npass ", " keep state"],
            &["set skip on ", "\npass "],
        ],
    },
];

/// Returns the name of a format that is recognised and not read.
pub(crate) fn name(text: &str) -> Option<&'static str> {
    let has_all = |marks: &&[&str]| marks.iter().all(|mark| text.contains(mark));
    let mut formats = FORMATS.iter();
    let format = formats.find(|format| format.marks.iter().any(&has_all))?;
    Some(format.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised_by_their_content() {
        for (text, expected) in [
            (
                "config firewall policy\n    edit 1\n",
                Some("FortiOS configurations"),
            ),
            (
                "/ip firewall filter\nadd chain=input action=drop\n",
                Some("RouterOS exports"),
            ),
            (
                "set skip on lo\nblock all\npass out keep state\n",
                Some("rules of pf"),
            ),
            ("schema ipv4-5tuple\ndeny\n", None),
            ("", None),
        ] {
            assert_eq!(name(text), expected, "{text}");
        }
    }
}
