//! IPv6 extension headers (RFC 8200 section 4, RFC 4302).
//!
//! [`Extension::split`] is the only check: it splits off one extension header. The
//! values it returns are plain.
//!
//! Hop-by-hop options, routing, destination options, fragment and authentication
//! headers are walked through. The walk stops at ESP, whose content is encrypted.
//! Mobility, HIP and Shim6 are not walked through: to rules they are protocols of their
//! own.

use super::{Anomaly, Fragment};

/// Hop-by-hop options.
pub const HOP_BY_HOP: u8 = 0;
/// Routing.
pub const ROUTING: u8 = 43;
/// Fragment.
pub const FRAGMENT: u8 = 44;
/// Authentication.
pub const AUTHENTICATION: u8 = 51;
/// Nothing follows.
pub const NO_NEXT: u8 = 59;
/// Destination options.
pub const DESTINATION: u8 = 60;

/// True if the parser walks through headers of this protocol number.
#[inline]
#[must_use]
pub fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION
    )
}

/// The type of the option with the length of a jumbogram (RFC 2675), and the length of
/// its value.
const JUMBO_PAYLOAD: [u8; 2] = [0xc2, 4];

/// The padding option of one byte, which has no length field.
const PAD_1: u8 = 0;

/// Returns the payload length in the jumbo payload option of the hop-by-hop header at
/// the start of `bytes`. Returns `None` if the header is cut off, has no such option,
/// or the length would fit the IPv6 header. The first such option counts.
#[must_use]
pub fn jumbo_length(bytes: &[u8]) -> Option<usize> {
    let units = usize::from(*bytes.get(1)?);
    let mut options = bytes.get(2..(units + 1) * 8)?;
    loop {
        let (&kind, after) = options.split_first()?;
        if kind == PAD_1 {
            options = after;
            continue;
        }
        let (&length, value) = after.split_first()?;
        let value_length = usize::from(length);
        if [kind, length] == JUMBO_PAYLOAD {
            let length = u32::from_be_bytes(*value.first_chunk()?);
            return usize::try_from(length)
                .ok()
                .filter(|&length| length > 0xffff);
        }
        options = value.get(value_length..)?;
    }
}

/// The fields of an extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The protocol of what follows.
    pub next: u8,
    /// The offset in units of 8 bytes, and the more-fragments flag; for fragment
    /// headers only.
    pub fragment: Option<(u16, bool)>,
}

impl Extension {
    /// Returns the part of a packet that this packet carries, if the header has that
    /// information.
    #[inline]
    #[must_use]
    pub fn fragment_kind(self) -> Option<Fragment> {
        self.fragment
            .map(|(offset, more)| Fragment::new(offset, more))
    }

    /// Splits off the extension header of the given protocol number at the start of
    /// `bytes`. Returns it with the bytes after it.
    ///
    /// # Errors
    /// [`Anomaly::TruncatedExtension`].
    #[inline]
    pub fn split(protocol: u8, bytes: &[u8]) -> Result<(Extension, &[u8]), Anomaly> {
        let Some(&[next, length, high, low, ..]) = bytes.first_chunk::<8>() else {
            return Err(Anomaly::TruncatedExtension);
        };
        let (length, fragment) = match protocol {
            FRAGMENT => {
                let field = u16::from_be_bytes([high, low]);
                (8, Some((field >> 3, field & 1 == 1)))
            }
            AUTHENTICATION => ((usize::from(length) + 2) * 4, None),
            _ => ((usize::from(length) + 1) * 8, None),
        };
        match bytes.get(length..) {
            Some(rest) => Ok((Extension { next, fragment }, rest)),
            None => Err(Anomaly::TruncatedExtension),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_headers_off() {
        let mut bytes = [0; 25];
        bytes[..4].copy_from_slice(&[6, 1, 0x12, 0x39]);
        let plain = |next| Extension {
            next,
            fragment: None,
        };
        let rest = |protocol| {
            let (header, rest) = Extension::split(protocol, &bytes).unwrap();
            (header, rest.len())
        };
        assert_eq!(rest(HOP_BY_HOP), (plain(6), 9));
        assert_eq!(rest(DESTINATION), (plain(6), 9));
        assert_eq!(rest(ROUTING), (plain(6), 9));
        assert_eq!(rest(AUTHENTICATION), (plain(6), 13));
        let (fragment, left) = rest(FRAGMENT);
        assert_eq!((fragment.fragment, left), (Some((0x247, true)), 17));
        assert_eq!(fragment.fragment_kind(), Some(Fragment::Later));
    }

    #[test]
    fn the_jumbo_option_is_found_behind_others() {
        let length = 70_000_u32.to_be_bytes();
        let jumbo = [&[0xc2, 4][..], &length].concat();
        let header = |options: &[&[u8]]| {
            let mut bytes = [&[6, 0][..], &options.concat()].concat();
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            bytes[1] = u8::try_from(bytes.len() / 8 - 1).unwrap();
            bytes
        };
        for before in [&[][..], &[0], &[0, 0, 0], &[1, 0], &[5, 3, 9, 9, 9]] {
            let bytes = header(&[before, &jumbo]);
            assert_eq!(jumbo_length(&bytes), Some(70_000), "{before:?}");
            // The header is cut off.
            assert_eq!(jumbo_length(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(jumbo_length(&header(&[&[0xc2, 4, 0, 0, 0xff, 0xff]])), None);
        assert_eq!(jumbo_length(&header(&[&[0xc2, 5, 0, 1, 0, 0, 0]])), None);
        assert_eq!(jumbo_length(&header(&[&[5, 200], &jumbo])), None);
        assert_eq!(jumbo_length(&[6, 0, 0, 0, 0, 0, 0, 0]), None);
        // The option begins in the header and ends behind it.
        let late = [6, 0, 0, 0, 0xc2, 4, 0, 1, 0, 0, 9, 9, 9, 9, 9, 9];
        assert_eq!(jumbo_length(&late), None);
        assert_eq!(jumbo_length(&[]), None);
    }

    #[test]
    fn too_short_is_an_anomaly() {
        let bytes = [6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for length in 0..16 {
            let bytes = &bytes[..length.min(15)];
            assert_eq!(
                Extension::split(ROUTING, bytes),
                Err(Anomaly::TruncatedExtension)
            );
        }
        assert!(Extension::split(FRAGMENT, &bytes[..8]).is_ok());
        assert!(Extension::split(AUTHENTICATION, &bytes[..12]).is_ok());
        assert!(Extension::split(AUTHENTICATION, &bytes[..11]).is_err());
    }
}
