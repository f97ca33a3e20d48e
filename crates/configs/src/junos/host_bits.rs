//! Networks of prefix lists and address books with bits outside of their prefix.

use super::address_book::children_at;
use super::statements::Reader;
use super::tree::WordId;

/// Records the networks.
pub(super) fn note(reader: &mut Reader<'_, '_, '_>) {
    let tree = reader.tree;
    for list in children_at(tree, &["policy-options", "prefix-list"]) {
        note_children(reader, list, list);
    }
    let zones = children_at(tree, &["security", "zones", "security-zone"]);
    let zone_books = zones.filter_map(|zone| tree.child(zone, "address-book"));
    let books = children_at(tree, &["security", "address-book"]);
    for book in zone_books.chain(books) {
        let addresses = tree.child(book, "address").into_iter();
        for address in addresses.flat_map(|addresses| tree.children(addresses)) {
            note_children(reader, address, address);
            for keyword in ["ip-prefix", "wildcard-address"] {
                if let Some(word) = tree.child(address, keyword) {
                    note_children(reader, word, address);
                }
            }
        }
    }
}

/// Records the networks among the words below a word, as members of a group.
fn note_children(reader: &mut Reader<'_, '_, '_>, word: WordId, group: WordId) {
    let tree = reader.tree;
    for member in tree.children(word) {
        let text = tree.text(member);
        let position = reader.lines.position(text);
        reader.builder.member_at(position, text, tree.text(group));
    }
}
