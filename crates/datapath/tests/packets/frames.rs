//! Random frames with all headers that the parser supports and with right checksums, and
//! damaged frames.

use classyard::author::splitmix;

/// Random numbers, reproducible from the seed (splitmix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        splitmix(&mut self.0)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len() as u64) as usize;
        &from[at]
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.next() as u8
    }
}

/// A frame under construction.
pub(crate) struct Builder<'a> {
    dice: &'a mut Dice,
    bytes: Vec<u8>,
    /// True if lengths may be wrong and there may be many extension headers.
    lies: bool,
}

/// Returns a frame with right lengths and checksums.
pub(crate) fn whole(dice: &mut Dice) -> Vec<u8> {
    built(dice, false)
}

/// Returns a frame with some wrong lengths: 0, too long, too short, or random. It may
/// have more extension headers than parsers accept.
pub(crate) fn lying(dice: &mut Dice) -> Vec<u8> {
    built(dice, true)
}

fn built(dice: &mut Dice, lies: bool) -> Vec<u8> {
    let mut builder = Builder {
        dice,
        bytes: Vec::new(),
        lies,
    };
    builder.ethernet();
    builder.bytes
}

/// Returns a frame with wrong bytes or a truncated end, or both.
pub(crate) fn damaged(dice: &mut Dice) -> Vec<u8> {
    let mut frame = whole(dice);
    for _ in 0..dice.below(4) {
        let at = dice.below(frame.len() as u64) as usize;
        frame[at] = match dice.below(3) {
            0 => dice.byte(),
            1 => 0,
            _ => frame[at] ^ 1 << dice.below(8),
        };
    }
    if dice.one_in(2) {
        frame.truncate(dice.below(frame.len() as u64 + 1) as usize);
    }
    frame
}

impl Builder<'_> {
    fn random(&mut self, count: usize) {
        for _ in 0..count {
            let byte = self.dice.byte();
            self.bytes.push(byte);
        }
    }

    fn put16(&mut self, value: u16) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn set16(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    /// Writes a length, or a wrong value.
    fn length(&mut self, at: usize, length: usize) {
        let length = u16::try_from(length).unwrap();
        let said = match self.lies && self.dice.one_in(2) {
            true => match self.dice.below(5) {
                0 | 1 => 0,
                2 => length.saturating_add(1 + self.dice.below(9) as u16),
                3 => self.dice.below(u64::from(length) + 1) as u16,
                _ => self.dice.next() as u16,
            },
            false => length,
        };
        self.set16(at, said);
    }

    fn ethernet(&mut self) {
        self.random(12);
        let tags = match self.dice.below(8) {
            0 => 2,
            1 => 9,
            2 | 3 => 1,
            _ => 0,
        };
        for _ in 0..tags {
            let kind = *self.dice.pick(&[0x8100, 0x88a8, 0x9100]);
            self.put16(kind);
            self.random(2);
        }
        let kind = *self.dice.pick(&[
            0x800, 0x800, 0x86dd, 0x86dd, 0x806, 0x8847, 0x8848, 0x8864, 0x1234,
        ]);
        let length_at = self.bytes.len();
        let llc = self.dice.below(10);
        match llc {
            0 => {
                self.put16(0);
                self.bytes.extend([0xaa, 0xaa, 3, 0, 0, 0]);
                self.put16(kind);
            }
            1 => {
                self.put16(0);
                self.bytes.extend([0x42, 0x42, 3]);
            }
            _ => self.put16(kind),
        }
        match (llc, kind) {
            (1, _) => self.random(30),
            (_, 0x800) => self.ipv4(),
            (_, 0x86dd) => self.ipv6(),
            (_, 0x806) => {
                self.bytes.extend([0, 1, 8, 0, 6, 4]);
                self.random(22);
            }
            (_, 0x8847 | 0x8848) => self.mpls(),
            (_, 0x8864) => self.pppoe(),
            _ => self.random(20),
        }
        if llc < 2 {
            let length = self.bytes.len() - length_at - 2;
            // A larger number would be a type.
            let length = match self.lies {
                true => self.dice.below(0x600) as usize,
                false => length.min(0x5ff),
            };
            self.set16(length_at, u16::try_from(length).unwrap());
        }
        // Padding.
        if self.dice.one_in(3) {
            self.random(7);
        }
    }

    fn pppoe(&mut self) {
        self.bytes.extend([0x11, 0]);
        self.random(2);
        let length_at = self.bytes.len();
        self.put16(0);
        match self.dice.below(5) {
            0 => {
                self.put16(0xc021);
                self.random(20);
            }
            1 | 2 => {
                self.put16(0x0021);
                self.ipv4();
            }
            _ => {
                self.put16(0x0057);
                self.ipv6();
            }
        }
        let length = self.bytes.len() - length_at - 2;
        self.length(length_at, length);
    }

    fn mpls(&mut self) {
        let labels = 1 + self.dice.below(3);
        for label in 0..labels {
            self.random(4);
            let at = self.bytes.len() - 2;
            self.bytes[at] = self.bytes[at] & 0xfe | u8::from(label + 1 == labels);
        }
        match self.dice.below(3) {
            0 => self.ipv4(),
            1 => self.ipv6(),
            _ => self.random(20),
        }
    }

    fn ipv4(&mut self) {
        let start = self.bytes.len();
        let options = *self.dice.pick(&[0, 0, 0, 1, 10]);
        self.bytes.push(0x45 + options);
        self.random(1);
        self.put16(0);
        self.random(2);
        let fragment = *self.dice.pick(&[0, 0, 0, 0x4000, 0x2000, 0x2005, 0x0007]);
        self.put16(fragment);
        self.random(1);
        let protocol = *self.dice.pick(&[6, 17, 132, 1, 58, 47]);
        self.bytes.push(protocol);
        self.put16(0);
        self.random(8 + usize::from(options) * 4);
        let transport = self.bytes.len();
        let addresses = self.bytes[start + 12..start + 20].to_vec();
        self.transport(protocol, 1);
        self.finish(transport, protocol, 1, &addresses, fragment & 0x1fff == 0);
        let total = self.bytes.len() - start;
        self.length(start + 2, total);
        let sum = checksum(&[&self.bytes[start..transport]]);
        self.set16(start + 10, sum);
    }

    fn ipv6(&mut self) {
        let start = self.bytes.len();
        let byte = self.dice.byte();
        self.bytes.push(0x60 | byte & 15);
        self.random(3);
        self.put16(0);
        self.bytes.push(0);
        self.random(33);
        let protocol = *self.dice.pick(&[6, 17, 132, 58, 1, 59, 50]);
        let (mut next_at, mut later) = (start + 6, false);
        let mut destination = self.bytes[start + 24..start + 40].to_vec();
        if self.dice.one_in(3) {
            let many = self.lies && self.dice.one_in(4);
            let max_headers = match many {
                true => *self.dice.pick(&[40, 400, 1_200]),
                false => 10,
            };
            for number in 0..self.dice.below(max_headers) {
                let kind = match many {
                    true => *self.dice.pick(&[43, 60]),
                    false if self.lies && number == 0 => 0,
                    false => *self.dice.pick(&[0, 43, 44, 51, 60]),
                };
                self.bytes[next_at] = kind;
                next_at = self.bytes.len();
                let extension = self.extension(kind);
                later |= kind == 44
                    && extension[2..4] != [0, 0]
                    && extension[2] | extension[3] & 0xf8 != 0;
                if kind == 43 && extension[3] > 0 {
                    destination.clear();
                }
                if later {
                    break;
                }
            }
        }
        self.bytes[next_at] = protocol;
        let transport = self.bytes.len();
        self.transport(protocol, 58);
        let mut addresses = self.bytes[start + 8..start + 24].to_vec();
        addresses.extend(destination);
        self.finish(transport, protocol, 58, &addresses, !later);
        let length = self.bytes.len() - start - 40;
        self.length(start + 4, length);
    }

    /// Returns an extension header. Its first byte is for the next header's number.
    fn extension(&mut self, kind: u8) -> Vec<u8> {
        let at = self.bytes.len();
        match kind {
            44 => {
                let field = *self.dice.pick(&[0, 0, 1, 0x28]);
                self.bytes.extend([0, 0, 0, field]);
                self.random(4);
            }
            51 => {
                self.bytes.extend([0, 4]);
                self.random(22);
            }
            0 if self.lies && self.dice.one_in(2) => self.jumbo_option(),
            _ => {
                let units = self.dice.below(3) as u8;
                let left = self.dice.below(2) as u8;
                self.bytes.extend([0, units, 0, left]);
                self.random(4 + usize::from(units) * 8);
            }
        }
        self.bytes[at..].to_vec()
    }

    /// Returns a hop-by-hop header with the length of a jumbogram, sometimes after
    /// padding.
    fn jumbo_option(&mut self) {
        let padding: [&[u8]; 3] = [&[], &[1, 6, 0, 0, 0, 0, 0, 0], &[0; 8]];
        let before = *self.dice.pick(&padding);
        self.bytes.extend([0, (before.len() / 8) as u8]);
        self.bytes.extend(before);
        let size = *self.dice.pick(&[4, 4, 4, 5]);
        let length = match self.dice.below(3) {
            0 => 0x1_0000 + self.dice.below(100),
            1 => self.dice.below(0x1_0000),
            _ => self.dice.next(),
        };
        self.bytes.extend([0xc2, size]);
        self.bytes.extend((length as u32).to_be_bytes());
    }

    /// Writes a transport header and its payload, without a checksum.
    fn transport(&mut self, protocol: u8, icmp: u8) {
        let start = self.bytes.len();
        match protocol {
            6 => {
                self.random(12);
                self.bytes.push(0x60);
                self.random(3);
                self.put16(0);
                self.random(6);
            }
            17 => {
                self.random(4);
                self.put16(0);
                self.put16(0);
            }
            132 => {
                self.random(8);
                self.bytes.extend([0; 4]);
            }
            _ if protocol == icmp => {
                let kind = *self.dice.pick(&[8, 128, 135, 135, 136, 136]);
                self.bytes.extend([kind, 0, 0, 0]);
                self.random(20);
                for _ in 0..self.dice.below(3) {
                    let option = 1 + self.dice.below(3) as u8;
                    self.bytes.extend([option, 1]);
                    self.random(6);
                }
                return;
            }
            _ => {}
        }
        let payload = self.dice.below(20) as usize;
        self.random(payload);
        if protocol == 17 {
            let length = self.bytes.len() - start;
            self.length(start + 4, length);
        }
    }

    /// Sets the checksum of a transport header. UDP sometimes has none.
    fn finish(&mut self, start: usize, protocol: u8, icmp: u8, addresses: &[u8], has_header: bool) {
        if !has_header || protocol == 17 && self.dice.one_in(4) {
            return;
        }
        match sum_place(protocol, icmp) {
            _ if protocol == 132 => {
                let sum = crc32c::crc32c(&self.bytes[start..]);
                self.bytes[start + 8..start + 12].copy_from_slice(&sum.to_le_bytes());
            }
            Some(place) => {
                let sum = transport_sum(&self.bytes[start..], protocol, addresses);
                self.set16(start + place, sum);
            }
            None => {}
        }
    }
}

/// Returns the position of the checksum in a transport header.
pub(crate) fn sum_place(protocol: u8, icmp: u8) -> Option<usize> {
    match protocol {
        6 => Some(16),
        17 => Some(6),
        _ if protocol == icmp => Some(2),
        _ => None,
    }
}

/// Returns the checksum of a transport header and its payload.
pub(crate) fn transport_sum(packet: &[u8], protocol: u8, addresses: &[u8]) -> u16 {
    let length = u32::try_from(packet.len()).unwrap().to_be_bytes();
    let sum = match protocol {
        1 => checksum(&[packet]),
        _ => checksum(&[addresses, &length, &[0, 0, 0, protocol], packet]),
    };
    match (protocol, sum) {
        (17, 0) => 0xffff,
        _ => sum,
    }
}

/// Returns the checksum of RFC 1071 over pieces. Only the last piece may have an odd
/// length.
pub(crate) fn checksum(pieces: &[&[u8]]) -> u16 {
    let mut sum = 0_u64;
    for pair in pieces.iter().flat_map(|piece| piece.chunks(2)) {
        sum += u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u64::from(low));
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap()
}
