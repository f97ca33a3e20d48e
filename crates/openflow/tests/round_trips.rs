//! Random messages of every type, in bytes and back, and random bytes.

mod worlds;

use classyard_conformance::random::{Dice, SeededDice};
use classyard_openflow::{Header, Message};

use worlds::message;

/// Types of messages that [`message`] makes.
const KINDS: usize = 35;

#[test]
fn every_message_reads_back() {
    let mut dice = SeededDice::new(1);
    let mut names = std::collections::BTreeSet::new();
    for number in 0..KINDS * 400 {
        let xid = u32::try_from(number).expect("few messages");
        let before = message(&mut dice, number % KINDS);
        let bytes = before.to_bytes(xid);
        let (header, after) = Message::read(&bytes)
            .unwrap_or_else(|fault| panic!("{fault}: {before:?} as {bytes:02x?}"));
        assert_eq!(after, before, "{bytes:02x?}");
        assert_eq!(header.xid, xid);
        assert_eq!(usize::from(header.length), bytes.len());
        names.insert(before.name());
    }
    assert_eq!(names.len(), KINDS, "{names:?}");
}

/// Messages with a few changed bytes are refused, or mean something that reads back.
#[test]
fn changed_bytes_are_refused_or_read_back() {
    let mut dice = SeededDice::new(2);
    let (mut refused, mut accepted) = (0, 0);
    for number in 0..KINDS * 3_000 {
        let mut bytes = message(&mut dice, number % KINDS).to_bytes(9);
        for _ in 0..=dice.below(3) {
            let place = dice.below(bytes.len());
            bytes[place] = u8::try_from(dice.below(256)).expect("a byte");
        }
        if dice.below(4) == 0 {
            bytes.truncate(Header::BYTES + dice.below(bytes.len()));
            let length = u16::try_from(bytes.len()).expect("short messages");
            bytes
                .get_mut(2..4)
                .expect("a header")
                .copy_from_slice(&length.to_be_bytes());
        }
        let Ok((header, read)) = Message::read(&bytes) else {
            refused += 1;
            continue;
        };
        accepted += 1;
        let again = read.to_bytes(header.xid);
        let (_, second) = Message::read(&again)
            .unwrap_or_else(|fault| panic!("{fault}: {read:?} from {bytes:02x?} as {again:02x?}"));
        assert_eq!(second, read, "{bytes:02x?}");
    }
    assert!(refused > 1_000 && accepted > 1_000, "{refused} refused");
}

/// Every prefix of a message is refused: its length says more.
#[test]
fn parts_of_messages_are_refused() {
    let mut dice = SeededDice::new(3);
    for number in 0..KINDS * 4 {
        let bytes = message(&mut dice, number % KINDS).to_bytes(1);
        for length in 0..bytes.len() {
            assert!(Message::read(&bytes[..length]).is_err(), "{bytes:02x?}");
        }
    }
}
