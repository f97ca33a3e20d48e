//! Hashes of inputs and of this program. Stored measurements carry them, so that no
//! measurement of other contents or of another build is used again.
//!
//! A hash identifies contents that nobody forges: two 64-bit states take up eight bytes
//! at a time.

use std::fs::File;
use std::io::{self, Read, Write};

use classyard::author::splitmix;
use classyard::{Policy, PolicyTrace};
use classyard_workload::formats::{RuleFormat, write_policy, write_schema};
use classyard_workload::traffic::locality::LocalityPacket;

/// Bytes that are read from a file at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The hash of bytes that are written to it.
pub(super) struct Identity {
    states: [u64; 2],
    /// Bytes that do not fill a word yet, and their number.
    partial: [u8; 8],
    partial_bytes: usize,
    total_bytes: u64,
}

impl Identity {
    /// Returns the hash of no bytes.
    pub(super) fn new() -> Identity {
        Identity {
            states: [0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b],
            partial: [0; 8],
            partial_bytes: 0,
            total_bytes: 0,
        }
    }

    fn word(&mut self, word: u64) {
        let [first, second] = &mut self.states;
        let mut next = *first ^ word;
        *first = splitmix(&mut next);
        next = *second ^ word.rotate_left(32);
        *second = splitmix(&mut next).rotate_left(17);
    }

    fn bytes(&mut self, mut bytes: &[u8]) {
        self.total_bytes = self.total_bytes.wrapping_add(bytes.len() as u64);
        if self.partial_bytes > 0 {
            let taken = bytes.len().min(8 - self.partial_bytes);
            let (head, rest) = bytes.split_at(taken);
            self.partial[self.partial_bytes..][..taken].copy_from_slice(head);
            self.partial_bytes += taken;
            bytes = rest;
            if self.partial_bytes < 8 {
                return;
            }
            self.word(u64::from_le_bytes(self.partial));
            self.partial_bytes = 0;
        }
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        self.partial[..rest.len()].copy_from_slice(rest);
        self.partial_bytes = rest.len();
    }

    /// Returns the hash as 32 hexadecimal digits.
    pub(super) fn finish(mut self) -> String {
        let total_bytes = self.total_bytes;
        self.partial[self.partial_bytes..].fill(0);
        self.word(u64::from_le_bytes(self.partial));
        self.word(total_bytes);
        let [first, second] = self.states;
        format!("{first:016x}{second:016x}")
    }
}

impl Write for Identity {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the hash of everything that can be read from a stream.
fn of_stream(mut stream: impl Read) -> io::Result<String> {
    let mut identity = Identity::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(identity.finish()),
            Ok(read) => identity.bytes(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the hash of this program's file. A program that adds engines to this library
/// is another file, so its version alone does not identify its engines.
pub(super) fn of_program() -> String {
    // The link leads to the running program even after its file was replaced.
    let file = File::open("/proc/self/exe").or_else(|_| File::open(std::env::current_exe()?));
    let hash = file.and_then(of_stream);
    hash.unwrap_or_else(|error| format!("unknown: {error}"))
}

/// Returns the hash of a text file's bytes.
pub(super) fn of_file(path: &str) -> String {
    let hash = File::open(path).and_then(of_stream);
    hash.unwrap_or_else(|error| format!("unknown: {error}"))
}

/// Returns the hash of rules: their schemas, matches, priorities and actions. Comments and
/// the format of the file make no difference.
///
/// # Errors
/// If rules of these schemas cannot be written as text.
pub(super) fn of_rules(policy: &Policy) -> io::Result<String> {
    let mut identity = Identity::new();
    for schema in policy.schemas() {
        write_schema(schema, &mut identity)?;
    }
    let written = write_policy(policy, RuleFormat::Rules, &mut identity);
    written.map_err(|error| io::Error::other(error.to_string()))?;
    Ok(identity.finish())
}

/// Returns the hash of headers.
pub(super) fn of_headers(trace: &PolicyTrace) -> String {
    let mut identity = Identity::new();
    for (part, key) in trace.iter() {
        identity.bytes(format!("{part:?}").as_bytes());
        key.iter().for_each(|&word| identity.word(word));
    }
    identity.finish()
}

/// Returns the hash of packets: their headers and times.
pub(super) fn of_packets(packets: &[LocalityPacket]) -> String {
    let mut identity = Identity::new();
    for packet in packets {
        identity.word(packet.time);
        packet
            .header
            .words()
            .iter()
            .for_each(|&word| identity.word(word));
    }
    identity.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(parts: &[&[u8]]) -> String {
        let mut identity = Identity::new();
        for part in parts {
            identity.write_all(part).unwrap();
        }
        identity.finish()
    }

    #[test]
    fn a_hash_depends_on_the_bytes_and_not_on_the_writes() {
        let whole = hash(&[b"0123456789abcdefXYZ"]);
        assert_eq!(whole.len(), 32);
        assert_eq!(hash(&[b"01234", b"", b"56789abcdefXY", b"Z"]), whole);
        assert_eq!(of_stream(&b"0123456789abcdefXYZ"[..]).unwrap(), whole);
        for other in [
            &b"0123456789abcdefXYz"[..],
            b"0123456789abcdefXYZ\0",
            b"89abcdef01234567XYZ",
            b"",
        ] {
            assert_ne!(hash(&[other]), whole);
        }
    }

    #[test]
    fn the_program_has_the_same_hash_each_time() {
        let program = of_program();
        assert!(!program.contains("unknown"), "{program}");
        assert_eq!(of_program(), program);
    }
}
