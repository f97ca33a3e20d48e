//! The part of a report of `classify` on the headers and packets of the input.

use classyard_report::input::headers::Headers;
use classyard_workload::capture::HeaderExtractor;
use serde::Serialize;

/// The input that was classified.
#[derive(Serialize)]
pub(super) struct InputReport {
    pub(super) source: String,
    kind: &'static str,
    pub(super) headers: usize,
    skipped: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) packets: Option<PacketsReport>,
}

#[derive(Default, Serialize)]
pub(super) struct PacketsReport {
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// Packets by kind, protocol, property and anomaly, with the parser's names.
    counters: Vec<Named>,
    /// Packets of Ethernet types that the parser does not support, the most frequent
    /// first.
    pub(super) unknown_ethertypes: Vec<EthertypeCount>,
    /// Packets that have no header for these rules, by kind.
    pub(super) without_header: Vec<Named>,
    #[serde(skip)]
    pub(super) kinds: Vec<Named>,
    #[serde(skip)]
    pub(super) transports: Vec<Named>,
    #[serde(skip)]
    pub(super) properties: Vec<Named>,
    #[serde(skip)]
    pub(super) anomalies: Vec<Named>,
}

/// The number of Ethernet types that a report names.
const ETHERTYPES_SHOWN: usize = 8;

#[derive(Clone, Serialize)]
pub(super) struct EthertypeCount {
    /// The number in hexadecimal, such as `0x88cc`.
    pub(super) ethertype: String,
    pub(super) packets: u64,
}

#[derive(Clone, Serialize)]
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) packets: u64,
}

impl InputReport {
    /// Describes headers that were given as text.
    pub(super) fn trace(headers: &Headers) -> InputReport {
        InputReport {
            source: headers.source.clone(),
            kind: "trace",
            headers: headers.trace.len(),
            skipped: headers.skipped,
            packets: None,
        }
    }

    /// Describes flow logs.
    pub(super) fn logs(source: &str, headers: usize) -> InputReport {
        InputReport {
            source: source.to_owned(),
            kind: "parquet",
            headers,
            skipped: 0,
            packets: None,
        }
    }

    /// Describes a capture: its number of packets, the number `with_header` that have
    /// a header, and their bytes.
    pub(super) fn capture(
        source: &str,
        with_header: usize,
        extractor: &HeaderExtractor,
        bytes: u64,
    ) -> InputReport {
        InputReport {
            source: source.to_owned(),
            kind: "capture",
            headers: with_header,
            skipped: 0,
            packets: Some(PacketsReport::new(extractor, bytes)),
        }
    }

    /// Describes the packets of a capture so far: their number, their bytes, and how
    /// many of them have a header.
    pub(super) fn so_far(count: u64, bytes: u64, with_header: usize) -> InputReport {
        InputReport {
            source: String::new(),
            kind: "capture",
            headers: with_header,
            skipped: 0,
            packets: Some(PacketsReport {
                count,
                bytes,
                ..PacketsReport::default()
            }),
        }
    }
}

impl PacketsReport {
    fn new(extractor: &HeaderExtractor, bytes: u64) -> PacketsReport {
        use classyard_workload::packet::{Anomaly, Kind, Property, Transport};
        let counters = extractor.counters();
        let named = |rows: Vec<(&'static str, u64)>| -> Vec<Named> {
            let rows = rows.into_iter().filter(|&(_, packets)| packets > 0);
            rows.map(|(name, packets)| Named { name, packets })
                .collect()
        };
        PacketsReport {
            count: counters.packets(),
            bytes,
            counters: named(counters.rows()),
            unknown_ethertypes: (counters.unknown_ethertypes().into_iter())
                .take(ETHERTYPES_SHOWN)
                .map(|(ethertype, packets)| EthertypeCount {
                    ethertype: format!("{ethertype:#06x}"),
                    packets,
                })
                .collect(),
            without_header: named(
                extractor
                    .left_out()
                    .into_iter()
                    .map(|(kind, count)| (kind.name(), count))
                    .collect(),
            ),
            kinds: named(Kind::ALL.map(|k| (k.name(), counters.kind(k))).into()),
            transports: named(
                Transport::ALL
                    .map(|t| (t.name(), counters.transport(t)))
                    .into(),
            ),
            properties: named(
                Property::ALL
                    .map(|p| (p.name(), counters.property(p)))
                    .into(),
            ),
            anomalies: named(
                Anomaly::ALL
                    .iter()
                    .map(|&a| (a.name(), counters.anomaly(a)))
                    .collect(),
            ),
        }
    }
}
