//! Limits on how much of an input file is read.
//!
//! A file of a few megabytes can unpack to gigabytes, or claim lengths that it does not
//! have. Every reader of this crate therefore checks its limits during unpacking, and
//! stops at a limit with an error that names it. The options of each reader raise or
//! lower the defaults in this table.
//!
//! | limit | default | set by |
//! |---|---|---|
//! | bytes of a file of rules or headers, unpacked | 1 GiB ([`FileLimit::TEXT`]) | [`diagnostic::ReadOptions::max_bytes`](crate::diagnostic::ReadOptions::max_bytes) |
//! | rules, or headers, of such a file | 2^24 = 16,777,216 ([`MAX_ENTRIES`]) | [`diagnostic::ReadOptions::limit`](crate::diagnostic::ReadOptions::limit) |
//! | rules of a firewall's configuration | 2^20 = 1,048,576 ([`MAX_CONFIG_RULES`]) | [`diagnostic::ReadOptions::with_limit`](crate::diagnostic::ReadOptions::with_limit) |
//! | bytes of a schema file or a profile | 1 MiB ([`FileLimit::SCHEMA`], [`FileLimit::PROFILE`]) | fixed |
//! | bytes of a ClassBench seed file | 16 MiB ([`FileLimit::SEED_FILE`]) | fixed |
//! | bytes of a capture that is held in memory, unpacked | 1 GiB ([`FileLimit::CAPTURE`]) | [`capture::ReadOptions::max_bytes`](crate::capture::ReadOptions::max_bytes) |
//! | packets of a capture that is held in memory | 2^24 = 16,777,216 ([`MAX_ENTRIES`]) | [`capture::ReadOptions::limit`](crate::capture::ReadOptions::limit) |
//! | captured bytes of one packet | 256 KiB ([`MAX_RECORD`]) | [`capture::ReadOptions::max_record`](crate::capture::ReadOptions::max_record) |
//! | interfaces of a capture | 65,536 ([`MAX_INTERFACES`]) | fixed |
//! | block types of a capture that are counted one by one | 256 ([`MAX_BLOCK_KINDS`]) | fixed |
//!
//! A text file is held in memory as a whole while it is read, so reading takes the
//! unpacked bytes plus memory for each entry (measured 2026-11-23 with `classyard
//! convert`): 80 bytes for a rule of five fields, 280 bytes for a rule of 1,024 bits
//! (names and actions not counted), and 16 bytes for a header of `ipv4-5tuple`. At the
//! limit, 16,777,216 rules take 1.3 GB with five fields and 4.7 GB with 1,024 bits. 1
//! GiB of text holds 10 million rules of 107 characters. A capture that is streamed
//! ([`CaptureReader`](crate::capture::CaptureReader)) has no limit on bytes or packets
//! unless the caller sets one.

/// The maximum number of bytes of one file, counted after unpacking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimit {
    /// The limit in bytes.
    pub bytes: u64,
    /// The kind of file with its article, for messages: `a profile`.
    pub what: &'static str,
}

impl FileLimit {
    /// The default for files of rules or headers.
    pub const TEXT: FileLimit = FileLimit {
        bytes: 1 << 30,
        what: "a file of rules or headers",
    };

    /// The default for captures that are held in memory.
    pub const CAPTURE: FileLimit = FileLimit {
        bytes: 1 << 30,
        what: "a capture",
    };

    /// For schema files. A schema has at most 64 fields, which take less than 10 KiB.
    pub const SCHEMA: FileLimit = FileLimit {
        bytes: 1 << 20,
        what: "a schema file",
    };

    /// For profiles of generated rules. The built-in profiles take less than 10 KiB
    /// each.
    pub const PROFILE: FileLimit = FileLimit {
        bytes: 1 << 20,
        what: "a profile",
    };

    /// For parameter files of ClassBench. The public files take less than 1 MiB each.
    pub const SEED_FILE: FileLimit = FileLimit {
        bytes: 16 << 20,
        what: "a seed file",
    };

    /// Returns this limit with another number of bytes.
    #[must_use]
    pub const fn with_bytes(self, bytes: u64) -> FileLimit {
        FileLimit { bytes, ..self }
    }
}

/// The default maximum of rules, headers or packets in one file.
pub const MAX_ENTRIES: usize = 1 << 24;

/// The default maximum of rules of a firewall's configuration. A rule takes half a kilobyte while
/// the file is read.
pub const MAX_CONFIG_RULES: usize = 1 << 20;

/// The default maximum of captured bytes of one packet: 256 KiB, the longest snap
/// length of libpcap (`MAXIMUM_SNAPLEN`).
pub const MAX_RECORD: u32 = 262_144;

/// The maximum number of interfaces of a capture, over all its sections.
pub const MAX_INTERFACES: usize = 1 << 16;

/// The maximum number of pcapng block types that are counted one by one.
pub const MAX_BLOCK_KINDS: usize = 256;
