//! Builders of capture files, in either byte order.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

pub(super) const ORDERS: [Order; 2] = [Order::Little, Order::Big];

impl Order {
    pub(super) fn u16(self, value: u16) -> [u8; 2] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    pub(super) fn u32(self, value: u32) -> [u8; 4] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    fn u64(self, value: u64) -> [u8; 8] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    pub(super) fn pcap_header(self, magic: u32, snap: u32, link: u32) -> Vec<u8> {
        let mut file = self.u32(magic).to_vec();
        file.extend(self.u16(2));
        file.extend(self.u16(4));
        file.extend([0; 8]);
        file.extend(self.u32(snap));
        file.extend(self.u32(link));
        file
    }

    pub(super) fn pcap_record(self, seconds: u32, fraction: u32, frame: &[u8]) -> Vec<u8> {
        let length = u32::try_from(frame.len()).unwrap();
        let mut record = Vec::new();
        for field in [seconds, fraction, length, length + 5] {
            record.extend(self.u32(field));
        }
        record.extend(frame);
        record
    }

    pub(super) fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let length = self.u32(u32::try_from(padded + 12).unwrap());
        let mut block = self.u32(kind).to_vec();
        block.extend(length);
        block.extend(body);
        block.resize(8 + padded, 0);
        block.extend(length);
        block
    }

    pub(super) fn section(self) -> Vec<u8> {
        let mut body = self.u32(0x1a2b_3c4d).to_vec();
        body.extend(self.u16(1));
        body.extend(self.u16(0));
        body.extend(self.u64(u64::MAX));
        self.block(0x0a0d_0d0a, &body)
    }

    pub(super) fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = self.u16(code).to_vec();
        option.extend(self.u16(u16::try_from(value.len()).unwrap()));
        option.extend(value);
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    pub(super) fn interface(self, link: u16, snap: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = self.u16(link).to_vec();
        body.extend([0, 0]);
        body.extend(self.u32(snap));
        for (code, value) in options {
            body.extend(self.option(*code, value));
        }
        if !options.is_empty() {
            body.extend(self.option(0, &[]));
        }
        self.block(1, &body)
    }

    pub(super) fn interface_with_clock(
        self,
        link: u16,
        resolution: u8,
        offset_seconds: i64,
    ) -> Vec<u8> {
        let offset = match self {
            Order::Little => offset_seconds.to_le_bytes(),
            Order::Big => offset_seconds.to_be_bytes(),
        };
        let options: [(u16, &[u8]); 3] = [(2, b"eth0"), (9, &[resolution]), (14, &offset)];
        self.interface(link, 0, &options)
    }

    pub(super) fn enhanced(self, interface: u32, ticks: u64, frame: &[u8]) -> Vec<u8> {
        let length = u32::try_from(frame.len()).unwrap();
        let mut body = self.u32(interface).to_vec();
        body.extend(self.u32(u32::try_from(ticks >> 32).unwrap()));
        body.extend(self.u32(u32::try_from(ticks & 0xffff_ffff).unwrap()));
        body.extend(self.u32(length));
        body.extend(self.u32(length + 5));
        body.extend(frame);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(self.option(1, b"a comment"));
        body.extend(self.option(0, &[]));
        self.block(6, &body)
    }

    pub(super) fn obsolete(self, interface: u16, ticks: u64, frame: &[u8]) -> Vec<u8> {
        let length = u32::try_from(frame.len()).unwrap();
        let mut body = self.u16(interface).to_vec();
        body.extend([0xff, 0xff]);
        body.extend(self.u32(u32::try_from(ticks >> 32).unwrap()));
        body.extend(self.u32(u32::try_from(ticks & 0xffff_ffff).unwrap()));
        body.extend(self.u32(length));
        body.extend(self.u32(length + 5));
        body.extend(frame);
        self.block(2, &body)
    }

    /// Adds a simple packet block; `frame` is the captured part of a packet of
    /// `original` bytes.
    pub(super) fn simple(self, original: u32, frame: &[u8]) -> Vec<u8> {
        let mut body = self.u32(original).to_vec();
        body.extend(frame);
        self.block(3, &body)
    }
}
