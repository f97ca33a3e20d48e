//! Names of services, protocols and ports.

use classyard::value::ValueFormat;

/// Names, ports and protocols, one service a line.
const SERVICES: &str = include_str!("services.txt");

/// Returns the port of a service. Without a protocol (`tcp`, `udp`, `sctp`), of the first
/// protocol that has the service.
pub(crate) fn port(name: &str, protocol: Option<&str>) -> Option<u16> {
    let lines = SERVICES.lines().filter(|line| !line.starts_with('#'));
    let mut services = lines.map(|line| line.split(' '));
    services.find_map(|mut words| {
        let is_named = words.next()?.eq_ignore_ascii_case(name);
        let port = words.next()?.parse().ok()?;
        let has_protocol = protocol.is_none_or(|protocol| words.any(|word| word == protocol));
        (is_named && has_protocol).then_some(port)
    })
}

/// Returns a port: a number or the name of a service.
pub(crate) fn parse_port(text: &str, protocol: Option<&str>) -> Option<u16> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().ok(),
        false => port(text, protocol),
    }
}

/// Returns an IP protocol: a number or a name, such as `tcp`.
pub(crate) fn parse_protocol(text: &str) -> Option<u8> {
    let alias = match text {
        "ipv6-icmp" | "icmp6" => "icmpv6",
        "ipip" | "ipencap" | "ipinip" => "ipip",
        "ahp" => "ah",
        "igrp" => "9",
        other => other,
    };
    let is_number = alias.bytes().all(|byte| byte.is_ascii_digit());
    let format = match is_number {
        true => ValueFormat::Decimal,
        false if alias.starts_with("0x") => return None,
        false => ValueFormat::IpProtocol,
    };
    u8::try_from(format.parse(alias)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_ports() {
        assert_eq!(port("ssh", Some("tcp")), Some(22));
        assert_eq!(port("WWW", None), Some(80));
        assert_eq!(port("syslog", Some("udp")), Some(514));
        assert_eq!(port("syslog", Some("tcp")), None);
        assert_eq!(parse_port("65535", None), Some(65535));
        for text in ["65536", "", "-1", "+1", "nowhere", "ssh22"] {
            assert_eq!(parse_port(text, None), None, "{text}");
        }
    }

    #[test]
    fn every_service_has_a_port_and_a_protocol() {
        for line in SERVICES.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            assert!(words[1].parse::<u16>().is_ok(), "{line}");
            let protocols = &words[2..];
            assert!(!protocols.is_empty(), "{line}");
            let known = ["tcp", "udp", "sctp"];
            assert!(
                protocols.iter().all(|protocol| known.contains(protocol)),
                "{line}"
            );
        }
    }

    #[test]
    fn protocols_have_numbers() {
        for (text, number) in [("tcp", 6), ("ipv6-icmp", 58), ("47", 47), ("ahp", 51)] {
            assert_eq!(parse_protocol(text), Some(number));
        }
        assert_eq!(parse_protocol("256"), None);
        assert_eq!(parse_protocol("0x6"), None);
    }
}
