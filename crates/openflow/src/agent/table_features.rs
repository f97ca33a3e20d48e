//! The features of all tables, in bytes.

use classyard_datapath::flow::{TableConfig, TableId};
use classyard_datapath::pipeline;

use super::parts::Parts;
use crate::message::Header;
use crate::multipart::{List, Reply};
use crate::oxm::OxmHeader;
use crate::table::{TableFeaturesItem, TableProperty, Written};

/// The features of all tables in bytes: they are the same for all controllers.
#[derive(Default)]
pub(super) struct TableFeatures {
    configs: Vec<TableConfig>,
    /// Whole messages, with transaction number 0.
    pub(super) parts: Vec<Vec<u8>>,
}

impl TableFeatures {
    /// Encodes the features again if the configuration of a table has changed.
    pub(super) fn refresh(&mut self, pipeline: &pipeline::Pipeline) {
        let tables = (0..=TableId::LAST.0).map(TableId);
        let configs: Vec<TableConfig> = tables
            .clone()
            .map(|table| pipeline.flows().config(table))
            .collect();
        if configs == self.configs {
            return;
        }
        let mut parts = Parts::new(0, Reply::TableFeatures(List(Vec::new())));
        for features in tables.filter_map(|table| pipeline.features(table)) {
            parts.push(&features_item(&features));
        }
        let bytes = parts.finish(false);
        self.parts = messages_of(&bytes).map(<[u8]>::to_vec).collect();
        self.configs = configs;
    }
}

/// Splits bytes into whole messages.
fn messages_of(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let header = Header::read(*bytes.first_chunk()?);
        let (message, rest) = bytes.split_at(usize::from(header.length));
        bytes = rest;
        Some(message)
    })
}

fn features_item(features: &pipeline::TableFeatures) -> TableFeaturesItem {
    let fields = |fields: &[classyard_datapath::Field]| {
        let headers = fields.iter().map(|&field| OxmHeader::new(field, false));
        headers.collect::<Vec<_>>()
    };
    let matches = features.matches.iter();
    let matches = matches.map(|&(field, has_mask)| OxmHeader::new(field, has_mask));
    let known_fields: Vec<_> = features.matches.iter().map(|(field, _)| *field).collect();
    // Properties of the table-miss entry are left out, since they are the same.
    let mut properties = vec![
        TableProperty::Instructions {
            miss: false,
            types: features.instructions.clone(),
        },
        TableProperty::NextTables {
            miss: false,
            tables: features.next_tables.clone(),
        },
        TableProperty::Match(matches.collect()),
        TableProperty::Wildcards(fields(&known_fields)),
    ];
    for written in [Written::Write, Written::Apply] {
        properties.push(TableProperty::Actions {
            written,
            miss: false,
            types: features.actions.clone(),
        });
        properties.push(TableProperty::SetFields {
            written,
            miss: false,
            fields: fields(&features.set_fields),
        });
    }
    TableFeaturesItem {
        table: features.table,
        name: [0; 32],
        metadata_match: features.metadata_match,
        metadata_write: features.metadata_write,
        config: 0,
        max_entries: features.config.max_entries,
        properties,
    }
}
