//! Random frames: complete frames with right checksums, damaged and tiny frames, and
//! wrong lengths.

use classyard::author::splitmix;
use classyard_conformance::random::Dice;

/// A frame under construction.
struct Builder<'d> {
    dice: &'d mut dyn Dice,
    bytes: Vec<u8>,
    /// True if some lengths are wrong.
    lies: bool,
}

/// Creates a random frame.
pub(crate) fn frame(dice: &mut dyn Dice) -> Vec<u8> {
    let shape = dice.below(16);
    if shape == 0 {
        // Less than a header, or not much more.
        let count = dice.below(40);
        return random(dice, count);
    }
    let mut builder = Builder {
        lies: shape == 1,
        dice,
        bytes: Vec::new(),
    };
    builder.ethernet();
    let mut bytes = builder.bytes;
    if (2..5).contains(&shape) {
        damage(&mut bytes, dice);
    }
    bytes
}

/// Changes some bytes, or truncates a frame, or both.
fn damage(bytes: &mut Vec<u8>, dice: &mut dyn Dice) {
    for _ in 0..dice.below(4) {
        let index = dice.below(bytes.len());
        bytes[index] = match dice.below(4) {
            0 => random(dice, 1)[0],
            1 => 0,
            _ => bytes[index] ^ 1 << dice.below(8),
        };
    }
    if dice.one_in(2) {
        let count = dice.below(bytes.len() + 1);
        bytes.truncate(count);
    }
}

/// Returns random bytes from one choice (splitmix64), to save a fuzzer's bytes for more
/// useful choices.
fn random(dice: &mut dyn Dice, count: usize) -> Vec<u8> {
    let mut state = dice.below(1 << 16) as u64;
    let mut bytes = Vec::new();
    while bytes.len() < count {
        bytes.extend(splitmix(&mut state).to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

/// Returns a length in two bytes.
fn short(length: usize) -> [u8; 2] {
    u16::try_from(length).expect("a short frame").to_be_bytes()
}

impl Builder<'_> {
    fn random(&mut self, count: usize) {
        let bytes = random(self.dice, count);
        self.bytes.extend(bytes);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        *self.dice.pick(among)
    }

    /// Writes a length, or a wrong one.
    fn length(&mut self, at: usize, length: usize) {
        let written = match self.lies && self.dice.one_in(2) {
            true => match self.dice.below(4) {
                0 => 0,
                1 => length + 1 + self.dice.below(9),
                2 => self.dice.below(length + 1),
                _ => self.dice.below(1 << 16),
            },
            false => length,
        };
        self.bytes[at..at + 2].copy_from_slice(&short(written));
    }

    fn ethernet(&mut self) {
        self.random(12);
        let tags = self.pick(&[0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 8, 9]);
        for _ in 0..tags {
            let kind = self.pick(&[[0x81, 0], [0x88, 0xa8], [0x91, 0]]);
            self.put(&kind);
            self.random(2);
        }
        const TYPES: [[u8; 2]; 13] = [
            [8, 0],
            [8, 0],
            [8, 0],
            [8, 0],
            [0x86, 0xdd],
            [0x86, 0xdd],
            [0x86, 0xdd],
            [8, 6],
            [0x88, 0x47],
            [0x88, 0x47],
            [0x88, 0x48],
            [0x88, 0x64],
            [0x12, 0x34],
        ];
        let kind = self.pick(&TYPES);
        let length_at = self.bytes.len();
        let framing = self.dice.below(14);
        match framing {
            0 => {
                self.put(&[0, 0, 0xaa, 0xaa, 3, 0, 0]);
                let organisation = self.pick(&[0, 0, 0xf8, 7]);
                self.put(&[organisation]);
                self.put(&kind);
            }
            1 => {
                self.put(&[0, 0, 0x42, 0x42, 3]);
                self.random(30);
            }
            _ => self.put(&kind),
        }
        match kind {
            _ if framing == 1 => {}
            [8, 0] => self.ipv4(),
            [0x86, 0xdd] => self.ipv6(),
            [8, 6] => {
                let hardware = self.pick(&[1, 1, 1, 6, 2]);
                self.put(&[0, hardware, 8, 0, 6, 4, 0]);
                let operation = self.pick(&[1, 2]);
                self.put(&[operation]);
                self.random(20);
            }
            [0x88, 0x47 | 0x48] => self.mpls(),
            [0x88, 0x64] => self.pppoe(),
            _ => self.random(20),
        }
        if framing < 2 {
            let length = self.bytes.len() - length_at - 2;
            self.length(length_at, length);
        }
        if self.dice.one_in(3) {
            // Padding.
            self.random(7);
        }
    }

    /// A PPPoE session's data; a switch does not parse its content.
    fn pppoe(&mut self) {
        self.put(&[0x11, 0]);
        self.random(2);
        let length_at = self.bytes.len();
        self.put(&[0, 0, 0, 0x21]);
        self.ipv4();
        let length = self.bytes.len() - length_at - 2;
        self.length(length_at, length);
    }

    fn mpls(&mut self) {
        let labels = 1 + self.dice.below(3);
        for label in 1..=labels {
            self.random(4);
            let label_end = self.bytes.len();
            self.bytes[label_end - 2] =
                self.bytes[label_end - 2] & 0xfe | u8::from(label == labels);
            if self.dice.one_in(6) {
                self.bytes[label_end - 1] = 1;
            }
        }
        match self.dice.below(3) {
            0 => self.ipv4(),
            1 => self.ipv6(),
            _ => self.random(20),
        }
    }

    fn ttl(&mut self) -> u8 {
        self.pick(&[0, 1, 2, 64, 64, 255])
    }

    fn ipv4(&mut self) {
        let start = self.bytes.len();
        let options = self.pick(&[0, 0, 0, 0, 1, 10]);
        self.put(&[0x45 + options]);
        // Includes code points of assured forwarding.
        let class = self.pick(&[0, 0x28, 0x48, 0x8c, 0xb8, 0x2b]);
        self.put(&[class, 0, 0]);
        self.random(2);
        let fragment = self.pick(&[
            [0, 0],
            [0, 0],
            [0x40, 0],
            [0x40, 0],
            [0x20, 0],
            [0x20, 5],
            [0, 7],
        ]);
        self.put(&fragment);
        let (ttl, protocol) = (self.ttl(), self.pick(&[6, 6, 17, 17, 132, 1, 58, 47]));
        self.put(&[ttl, protocol, 0, 0]);
        self.random(8 + usize::from(options) * 4);
        let transport = self.bytes.len();
        let addresses = self.bytes[start + 12..start + 20].to_vec();
        self.transport(protocol, 1);
        if fragment[0] & 0x1f == 0 && fragment[1] == 0 {
            self.sum(transport, protocol, 1, &addresses);
        }
        let total = self.bytes.len() - start;
        self.length(start + 2, total);
        let sum = checksum(&[&self.bytes[start..transport]]);
        self.bytes[start + 10..start + 12].copy_from_slice(&sum);
    }

    fn ipv6(&mut self) {
        let start = self.bytes.len();
        let class = self.pick(&[0, 2, 4, 9]);
        self.put(&[0x60 | class]);
        self.random(3);
        self.put(&[0, 0, 0]);
        let ttl = self.ttl();
        self.put(&[ttl]);
        self.random(32);
        let protocol = self.pick(&[6, 6, 17, 17, 132, 58, 58, 58, 1, 59, 50]);
        let mut next_at = start + 6;
        let (mut is_later, mut is_routed) = (false, false);
        if self.dice.one_in(3) {
            let max_headers = self.pick(&[10, 10, 10, 60]);
            let count = self.dice.below(max_headers);
            for _ in 0..count {
                let kind = self.pick(&[0, 43, 44, 51, 60]);
                self.bytes[next_at] = kind;
                next_at = self.bytes.len();
                match kind {
                    0 if self.lies => {
                        // The length of a jumbogram.
                        self.put(&[0, 0, 0xc2, 4]);
                        let high = self.pick(&[0, 0, 1]);
                        self.put(&[0, high]);
                        self.random(2);
                    }
                    44 => {
                        let field = self.pick(&[0, 0, 1, 0x28]);
                        self.put(&[0, 0, 0, field]);
                        self.random(4);
                        is_later = field > 7;
                    }
                    51 => {
                        self.put(&[0, 4]);
                        self.random(22);
                    }
                    _ => {
                        let units = self.pick(&[0, 0, 1, 2]);
                        let segments_left = self.pick(&[0, 1]);
                        self.put(&[0, units, 0, segments_left]);
                        self.random(4 + usize::from(units) * 8);
                        is_routed |= kind == 43 && segments_left > 0;
                    }
                }
                if is_later {
                    break;
                }
            }
        }
        self.bytes[next_at] = protocol;
        let transport = self.bytes.len();
        self.transport(protocol, 58);
        let addresses = match is_routed {
            true => self.bytes[start + 8..start + 24].to_vec(),
            false => self.bytes[start + 8..start + 40].to_vec(),
        };
        if !is_later {
            self.sum(transport, protocol, 58, &addresses);
        }
        let length = self.bytes.len() - start - 40;
        self.length(start + 4, length);
    }

    /// Writes two ports. 0 and 65,535 are equivalent in checksums.
    fn ports(&mut self) {
        for _ in 0..2 {
            match self.dice.below(5) {
                0 => self.put(&[0, 0]),
                1 => self.put(&[0xff, 0xff]),
                _ => self.random(2),
            }
        }
    }

    /// Writes a transport header and its payload, with 0 in place of the checksum.
    fn transport(&mut self, protocol: u8, icmp: u8) {
        let start = self.bytes.len();
        match protocol {
            6 => {
                self.ports();
                self.random(8);
                self.put(&[0x50, 2, 1, 0, 0, 0, 0, 0]);
            }
            17 => {
                self.ports();
                self.put(&[0, 0, 0, 0]);
            }
            132 => {
                self.ports();
                self.random(4);
                self.put(&[0; 4]);
            }
            _ if protocol == icmp => {
                let kind = self.pick(&[8, 128, 135, 135, 136, 136]);
                let code = self.pick(&[0, 0, 0, 1]);
                self.put(&[kind, code, 0, 0]);
                self.random(20);
                let options = self.pick(&[0, 1, 1, 2, 17]);
                for _ in 0..options {
                    let option = self.pick(&[1, 2, 3]);
                    let units = self.pick(&[1, 1, 1, 1, 2]);
                    self.put(&[option, units]);
                    self.random(usize::from(units) * 8 - 2);
                }
                return;
            }
            _ => {}
        }
        let count = self.dice.below(20);
        self.random(count);
        if protocol == 17 {
            let length = self.bytes.len() - start;
            self.length(start + 4, length);
        }
    }

    /// Sets a transport checksum; sometimes a wrong one, or none in UDP.
    fn sum(&mut self, start: usize, protocol: u8, icmp: u8, addresses: &[u8]) {
        let payload = &self.bytes[start..];
        let length = short(payload.len());
        let pseudo = [addresses, &[0, 0], &length, &[0, 0, 0, protocol]].concat();
        let (offset, sum) = match protocol {
            6 => (16, checksum(&[&pseudo, payload])),
            17 => (6, checksum(&[&pseudo, payload])),
            58 if icmp == 58 => (2, checksum(&[&pseudo, payload])),
            1 if icmp == 1 => (2, checksum(&[payload])),
            132 => {
                let sum = crc32c::crc32c(payload).to_le_bytes();
                self.bytes[start + 8..start + 12].copy_from_slice(&sum);
                return;
            }
            _ => return,
        };
        let sum = match self.dice.below(8) {
            0 => [0, 0],
            1 => [0xff, 0xff],
            _ => sum,
        };
        self.bytes[start + offset..start + offset + 2].copy_from_slice(&sum);
    }
}

/// Returns the checksum of RFC 1071 over pieces; only the last piece may have an odd
/// length.
fn checksum(pieces: &[&[u8]]) -> [u8; 2] {
    let mut sum = 0_u64;
    for pair in pieces.iter().flat_map(|piece| piece.chunks(2)) {
        sum += u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| low.into());
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let [.., high, low] = (!sum).to_be_bytes();
    [high, low]
}
