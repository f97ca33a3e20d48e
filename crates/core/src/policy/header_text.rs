//! Headers as text: `src=10.0.0.1 dport=443 proto=tcp`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::Policy;
use super::header::FiveTuple;
use crate::model::error::HeaderTextError;
use crate::model::part::PartId;
use crate::model::schema::{Field, FieldId, Schema};
use crate::model::value::ValueFormat;

/// A header parsed from text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderText {
    /// The value of each field, in the order of the schema.
    pub values: Vec<u128>,
    /// The fields that the text does not name; their values are 0.
    pub missing: Vec<FieldId>,
}

/// Splits a text into pairs of a field name and a value.
///
/// # Errors
/// [`HeaderTextError::NoPair`]
fn header_pairs(text: &str) -> Result<Vec<(&str, &str)>, HeaderTextError> {
    let no_pair = |text: &str| HeaderTextError::NoPair {
        text: text.to_owned(),
    };
    let words = text.split([' ', ',', '\t', '\n']);
    let words = words.filter(|word| !word.is_empty());
    let pairs = words.map(|word| word.split_once('=').ok_or_else(|| no_pair(word)));
    let pairs: Vec<_> = pairs.collect::<Result<_, _>>()?;
    match pairs.is_empty() {
        true => Err(no_pair(text)),
        false => Ok(pairs),
    }
}

impl Schema {
    /// Parses a header: `field=value` pairs separated by spaces or commas, in
    /// any order. Values are in the fields' [formats](ValueFormat), or numbers.
    /// Fields that the text does not name are 0.
    ///
    /// # Errors
    /// See [`HeaderTextError`].
    ///
    /// ```
    /// use classyard::Schema;
    ///
    /// let header = Schema::ipv4_5tuple().parse_header("src=10.0.0.1 dport=443 proto=tcp")?;
    /// assert_eq!(header.values, [0x0a00_0001, 0, 0, 443, 6]);
    /// assert_eq!(header.missing.len(), 2);
    /// # Ok::<(), classyard::error::HeaderTextError>(())
    /// ```
    pub fn parse_header(&self, text: &str) -> Result<HeaderText, HeaderTextError> {
        let mut values: Vec<Option<u128>> = vec![None; self.fields().len()];
        for (name, text) in header_pairs(text)? {
            let id = self.field_named(name).ok_or_else(|| self.no_field(name))?;
            let value = parse_value(self.field(id), text)?;
            if values[id.index()].replace(value).is_some() {
                return Err(HeaderTextError::RepeatedField {
                    name: name.to_owned(),
                });
            }
        }
        let missing = self.field_ids().filter(|id| values[id.index()].is_none());
        Ok(HeaderText {
            missing: missing.collect(),
            values: values.into_iter().map(Option::unwrap_or_default).collect(),
        })
    }

    fn no_field(&self, name: &str) -> HeaderTextError {
        let fields = self.fields().iter();
        HeaderTextError::UnknownField {
            schema: self.name().to_owned(),
            name: name.to_owned(),
            fields: fields.map(|field| field.name().to_owned()).collect(),
        }
    }
}

impl Policy {
    /// Parses a header like [`Schema::parse_header`], for the first part whose
    /// address format is the format of the addresses in the text. If there is
    /// no such part, parses the text for the first part.
    ///
    /// # Errors
    /// See [`HeaderTextError`].
    ///
    /// ```
    /// use classyard::Policy;
    ///
    /// let policy = Policy::dual_stack();
    /// let (part, header) = policy.parse_header("dst=2001:db8::1 proto=udp")?;
    /// assert_eq!(policy.part(part).schema().name(), "ipv6-5tuple");
    /// assert_eq!(header.missing.len(), 3);
    /// # Ok::<(), classyard::error::HeaderTextError>(())
    /// ```
    pub fn parse_header(&self, text: &str) -> Result<(PartId, HeaderText), HeaderTextError> {
        let pairs = header_pairs(text)?;
        let fits = |part: &PartId| {
            let schema = self.part(*part).schema();
            let mut fields = pairs.iter().filter_map(|(name, value)| {
                let id = schema.field_named(name)?;
                Some((schema.field(id).format(), value))
            });
            fields.all(|(format, value)| match format {
                ValueFormat::Ipv4 => !value.contains(':'),
                ValueFormat::Ipv6 => !value.contains('.') || value.contains(':'),
                _ => true,
            })
        };
        let part = self.part_ids().find(fits).unwrap_or(PartId::FIRST);
        let header = self.part(part).schema().parse_header(text)?;
        Ok((part, header))
    }
}

fn parse_value(field: &Field, text: &str) -> Result<u128, HeaderTextError> {
    let (name, text) = (field.name().to_owned(), text.to_owned());
    match field.format().parse(&text) {
        None => Err(HeaderTextError::BadValue {
            name,
            text,
            expected: field.format().expectation(),
        }),
        Some(value) if value > field.max_value() => Err(HeaderTextError::ValueTooLarge {
            name,
            text,
            width: field.width(),
        }),
        Some(value) => Ok(value),
    }
}

impl FromStr for FiveTuple {
    type Err = HeaderTextError;

    /// Parses `src=ADDRESS dst=ADDRESS sport=PORT dport=PORT proto=PROTOCOL`,
    /// in any order. Ports that the text does not name are 0; the other fields
    /// are required.
    ///
    /// ```
    /// use classyard::FiveTuple;
    ///
    /// let header: FiveTuple = "src=10.0.0.1 dst=10.0.0.2 sport=40123 dport=443 proto=tcp".parse()?;
    /// assert_eq!(header.to_string().parse(), Ok(header));
    /// # Ok::<(), classyard::error::HeaderTextError>(())
    /// ```
    fn from_str(text: &str) -> Result<FiveTuple, HeaderTextError> {
        let source = header_pairs(text)?.into_iter().find(|pair| pair.0 == "src");
        let is_ipv6 = source.is_some_and(|(_, address)| address.contains(':'));
        let schema = match is_ipv6 {
            true => Schema::ipv6_5tuple(),
            false => Schema::ipv4_5tuple(),
        };
        let header = schema.parse_header(text)?;
        for name in ["src", "dst", "proto"] {
            let id = schema.field_named(name).expect("a field of five-tuples");
            if header.missing.contains(&id) {
                return Err(HeaderTextError::MissingField { name });
            }
        }
        let address = |value: u128| match is_ipv6 {
            true => IpAddr::V6(value.into()),
            false => IpAddr::V4(u32::try_from(value).expect("fits in 32 bits").into()),
        };
        let port = |value: u128| u16::try_from(value).expect("fits in 16 bits");
        let [source, destination, source_port, destination_port, protocol] = header.values[..]
        else {
            unreachable!("five-tuples have five fields");
        };
        let protocol = u8::try_from(protocol).expect("fits in 8 bits");
        let header = FiveTuple::new(
            address(source),
            address(destination),
            port(source_port),
            port(destination_port),
            protocol,
        );
        Ok(header.expect("both addresses are of one family"))
    }
}

impl fmt::Display for FiveTuple {
    /// Writes the format that [`FiveTuple::from_str`] parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = self.addresses();
        let (sport, dport) = self.ports();
        let protocol = ValueFormat::IpProtocol.display(self.proto().into());
        write!(
            f,
            "src={source} dst={destination} sport={sport} dport={dport} proto={protocol}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_header_is_refused_with_a_reason() {
        let schema = Schema::ipv4_5tuple();
        for (text, reason) in [
            ("", "`` is not a header; expected field=value pairs"),
            ("src", "`src` is not a header; expected field=value pairs"),
            ("src=10.0.0.1 src=10.0.0.1", "the header says `src` twice"),
            (
                "sprt=1",
                "has no field `sprt`; its fields are src, dst, sport",
            ),
            ("sport=65536", "sport: 65536 does not fit in 16 bits"),
            (
                "src=x",
                "src: `x` is not a value of the field; expected an IPv4",
            ),
        ] {
            let error = schema.parse_header(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn five_tuples_of_both_families_are_read_back() {
        for text in [
            "src=10.0.0.1 dst=10.0.0.2 sport=1 dport=2 proto=udp",
            "src=2001:db8::1 dst=2001:db8::2 sport=0 dport=0 proto=icmpv6",
            "src=::1 dst=::2 sport=65535 dport=65535 proto=255",
        ] {
            let header: FiveTuple = text.parse().unwrap();
            assert_eq!(header.to_string(), text);
        }
        let spread: FiveTuple = "proto=6,dst=10.0.0.2,src=10.0.0.1".parse().unwrap();
        let said = "src=10.0.0.1 dst=10.0.0.2 sport=0 dport=0 proto=tcp";
        assert_eq!(spread.to_string(), said);
    }

    #[test]
    fn five_tuples_need_addresses_of_one_family_and_a_protocol() {
        let refused = |text: &str| text.parse::<FiveTuple>().unwrap_err().to_string();
        let no_source = refused("dst=10.0.0.2 proto=tcp");
        assert_eq!(no_source, "the header does not say `src`");
        let no_protocol = refused("src=10.0.0.1 dst=10.0.0.2");
        assert_eq!(no_protocol, "the header does not say `proto`");
        let mixed = refused("src=10.0.0.1 dst=::1 proto=tcp");
        assert!(mixed.starts_with("dst: `::1` is not a value"), "{mixed}");
        // A number is a valid address in either family.
        assert!("src=::1 dst=5 proto=6".parse::<FiveTuple>().is_ok());
    }
}
