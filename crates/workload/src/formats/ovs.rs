//! stub
use super::{SchemaChoice, WriteError, WriteReport};
use crate::diagnostic::{Loaded, ReadError, ReadOptions};
use classyard::Policy;
pub(super) fn looks_like_flow(line: &str) -> bool {
    line.contains("actions=")
}
/// stub
pub fn read(
    source: &str,
    _: &str,
    _: Option<&SchemaChoice>,
    _: &ReadOptions,
) -> Result<Loaded<Policy>, ReadError> {
    Err(ReadError::Format {
        file: source.to_owned(),
        found: "flows".to_owned(),
        expected: "another format, as flows are not read yet".to_owned(),
    })
}
/// stub
pub fn write(policy: &Policy, _: &mut dyn std::io::Write) -> Result<WriteReport, WriteError> {
    Err(WriteError::Schema {
        format: super::RuleFormat::Ovs,
        schema: policy.name().to_owned(),
        takes: "none yet",
    })
}
