//! The flags that raise and lower the limits on input files.

use classyard_workload::capture;
use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::limits::FileLimit;

use super::count;

/// The flag of every command that reads rules, headers or captures.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ByteLimit {
    /// Refuse files with more bytes than SIZE after unpacking (64M, 2G, ...)
    ///
    /// K, M and G mean 1,024 bytes, 1,024 K and 1,024 M. The default is 1 GiB;
    /// captures that are read packet by packet then have no limit. Schema files and
    /// profiles are always limited to 1 MiB, seed files to 16 MiB.
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Input")]
    pub limit_bytes: Option<u64>,
}

impl ByteLimit {
    /// Returns the limit for a text file.
    pub fn text(&self) -> FileLimit {
        let bytes = self.limit_bytes.unwrap_or(FileLimit::TEXT.bytes);
        FileLimit::TEXT.with_bytes(bytes)
    }
}

/// The flag of every command that reads headers.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct HeaderLimit {
    /// Refuse traces and captures with more than N headers or packets (10k, 1M, ...)
    ///
    /// The default is 16,777,216; captures that are read packet by packet then have
    /// no limit.
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Input")]
    pub limit_headers: Option<usize>,
}

/// The flag of every command that reads captures.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RecordLimit {
    /// Skip packets with more captured bytes than SIZE (64K, 1M, ...)
    ///
    /// The default is 256K. Standard error has the number of skipped packets.
    #[arg(long, value_name = "SIZE", value_parser = record, help_heading = "Input")]
    pub limit_record: Option<u32>,
}

impl HeaderLimit {
    /// Returns the options for a trace, given the options for its rules.
    pub fn trace(&self, rules: ReadOptions) -> ReadOptions {
        rules.with_limit(self.limit_headers.unwrap_or(ReadOptions::DEFAULT.limit))
    }

    /// Returns the options for a capture; limits without a flag are taken from
    /// `default`.
    pub fn capture(
        &self,
        bytes: &ByteLimit,
        record: &RecordLimit,
        default: capture::ReadOptions,
    ) -> capture::ReadOptions {
        default
            .with_limit(self.limit_headers.unwrap_or(default.limit))
            .with_max_bytes(bytes.limit_bytes.unwrap_or(default.max_bytes))
            .with_max_record(record.limit_record.unwrap_or(default.max_record))
    }
}

/// Parses a number of bytes such as `500`, `64K` or `2G`, for the argument parser.
pub fn size(text: &str) -> Result<u64, String> {
    let scales = [("K", 10), ("M", 20), ("G", 30), ("T", 40)];
    let upper = text.to_ascii_uppercase();
    let (digits, shift) = scales
        .iter()
        .find_map(|&(unit, shift)| Some((upper.strip_suffix(unit)?, shift)))
        .unwrap_or((&upper, 0));
    let number: Option<u64> = digits.replace('_', "").parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| {
            format!("`{text}` is not a size; expected bytes such as 500, 64K, 512M or 2G")
        })
}

/// Parses a number of bytes that fits into 32 bits.
fn record(text: &str) -> Result<u32, String> {
    u32::try_from(size(text)?).map_err(|_| format!("`{text}` is too large; expected less than 4G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_suffixes() {
        for (text, bytes) in [
            ("0", 0),
            ("500", 500),
            ("64K", 65_536),
            ("64k", 65_536),
            ("512M", 1 << 29),
            ("2G", 1 << 31),
            ("1T", 1 << 40),
            ("1_000", 1000),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "K", "-1", "1.5G", "G2", "64KiB", "99999999999T", "ten"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert_eq!(record("256K"), Ok(262_144));
        assert!(record("4G").is_err());
    }
}
