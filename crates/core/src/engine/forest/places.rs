//! Where the rule of an id is.

use hashbrown::HashMap;

use super::TableNumber;
use crate::rule::RuleId;

/// A rule's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) table: TableNumber,
    pub(super) slot: u32,
}

const NOWHERE: Place = Place {
    table: TableNumber::NONE,
    slot: 0,
};

/// Ids that share a page. Ids that follow each other, as those from files do,
/// cost 8 bytes and a share of a page's entry; one id all alone costs a page.
const PAGE: usize = 16;

/// Pages in one piece of memory. There are no more than these to spare, and
/// growing copies nothing.
const CHUNK: usize = 64;

/// Pages that change from the old index to the new with each new page.
const MOVED: usize = 8;

/// Entries of ids that follow each other.
#[derive(Clone, Debug)]
struct Page {
    /// The ids divided by [`PAGE`]; `u32::MAX` for a page that is not in use.
    number: u32,
    places: [Place; PAGE],
}

/// A map from rule ids to buckets. It grows without a pause: a larger index
/// takes the entries of the old one a few at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// Page numbers to pages.
    index: Index,
    /// Those not moved to the larger index yet.
    old: Index,
    /// Pages before this one have been moved.
    moved: usize,
    chunks: Vec<Box<[Page]>>,
    pages: usize,
    free: Vec<u32>,
    rules: usize,
}

type Index = HashMap<u32, u32, foldhash::fast::FixedState>;

#[allow(clippy::cast_possible_truncation)] // the page size is small
fn split(id: RuleId) -> (u32, usize) {
    (id.get() / PAGE as u32, id.get() as usize % PAGE)
}

impl Places {
    /// The number of rules.
    pub(super) fn len(&self) -> usize {
        self.rules
    }

    pub(super) fn get(&self, id: RuleId) -> Option<Place> {
        let (number, entry) = split(id);
        let page = self.find(number)? as usize;
        let places = &self.chunks[page / CHUNK][page % CHUNK].places;
        Some(places[entry]).filter(|place| *place != NOWHERE)
    }

    /// Says where a rule is, whether it was anywhere before or not.
    pub(super) fn set(&mut self, id: RuleId, place: Place) {
        let (number, entry) = split(id);
        let page = match self.find(number) {
            Some(page) => page,
            None => self.add_page(number),
        };
        let before = &mut self.page(page).places[entry];
        let new = *before == NOWHERE;
        *before = place;
        self.rules += usize::from(new);
    }

    /// Forgets a rule that is there.
    pub(super) fn remove(&mut self, id: RuleId) {
        let (number, entry) = split(id);
        let page = self.find(number).expect("the rule has a page");
        let held = self.page(page);
        held.places[entry] = NOWHERE;
        let empty = held.places == [NOWHERE; PAGE];
        self.rules -= 1;
        if empty {
            self.page(page).number = u32::MAX;
            self.index.remove(&number);
            self.old.remove(&number);
            self.free.push(page);
        }
    }

    /// The number of entries, used or not, in pages that are used or were.
    pub(super) fn entries(&self) -> usize {
        self.pages * PAGE
    }

    /// The rule of an entry. A rule keeps its entry as long as it is there.
    pub(super) fn entry(&self, entry: usize) -> Option<(RuleId, Place)> {
        let page = entry / PAGE;
        let page = &self.chunks[page / CHUNK][page % CHUNK];
        let place = page.places[entry % PAGE];
        let number = page.number as usize * PAGE + entry % PAGE;
        (place != NOWHERE).then(|| (RuleId::from_index(number), place))
    }

    fn find(&self, number: u32) -> Option<u32> {
        let page = self.index.get(&number).or_else(|| self.old.get(&number));
        page.copied()
    }

    fn page(&mut self, page: u32) -> &mut Page {
        &mut self.chunks[page as usize / CHUNK][page as usize % CHUNK]
    }

    fn add_page(&mut self, number: u32) -> u32 {
        if self.index.len() == self.index.capacity() {
            // Since the last time many more pages have come than there were to
            // be moved.
            while !self.old.is_empty() {
                self.move_pages();
            }
            let larger = HashMap::with_capacity_and_hasher(
                (2 * self.index.len()).max(16),
                Default::default(),
            );
            self.old = std::mem::replace(&mut self.index, larger);
            self.moved = 0;
        }
        self.move_pages();
        let page = self.free.pop().unwrap_or_else(|| {
            if self.pages == self.chunks.len() * CHUNK {
                let unused = Page {
                    number: u32::MAX,
                    places: [NOWHERE; PAGE],
                };
                self.chunks.push(vec![unused; CHUNK].into_boxed_slice());
            }
            self.pages += 1;
            u32::try_from(self.pages - 1).expect("fewer pages than ids")
        });
        self.page(page).number = number;
        self.index.insert(number, page);
        page
    }

    /// Moves some pages from the old index to the new.
    fn move_pages(&mut self) {
        if self.old.capacity() == 0 {
            return;
        }
        let to = self.pages.min(self.moved + MOVED);
        for page in self.moved..to {
            let number = self.chunks[page / CHUNK][page % CHUNK].number;
            if let Some(page) = self.old.remove(&number) {
                self.index.insert(number, page);
            }
        }
        self.moved = to;
        if self.old.is_empty() {
            self.old = Index::default();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.index.allocation_size()
            + self.old.allocation_size()
            + self.chunks.len() * CHUNK * size_of::<Page>()
            + self.chunks.capacity() * size_of::<Box<[Page]>>()
            + self.free.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_and_go_with_their_ids() {
        let mut places = Places::default();
        let place = |slot| Place {
            table: TableNumber::from_index(0),
            slot,
        };
        let id = |number| RuleId::new(number).unwrap();
        for number in [0, 15, 16, u32::MAX - 1] {
            assert_eq!(places.get(id(number)), None);
            places.set(id(number), place(number));
        }
        places.set(id(15), place(7));
        assert_eq!(places.len(), 4);
        assert_eq!(places.get(id(15)), Some(place(7)));
        assert_eq!(places.get(id(14)), None);
        for number in [0, 15, 16, u32::MAX - 1] {
            places.remove(id(number));
            assert_eq!(places.get(id(number)), None);
        }
        assert_eq!((places.len(), places.index.len()), (0, 0));
        places.set(id(99), place(1));
        assert_eq!(places.pages, 3, "pages are reused");
    }

    #[test]
    fn no_page_is_lost_while_the_index_grows() {
        let mut places = Places::default();
        let place = |slot| Place {
            table: TableNumber::from_index(1),
            slot,
        };
        // Ids far apart, each with a page of its own; every third one goes.
        let id = |number: u32| RuleId::new(number * 1000).unwrap();
        for number in 0..5000 {
            places.set(id(number), place(number));
            if number % 3 == 2 {
                places.remove(id(number - 1));
            }
            assert_eq!(
                places.get(id(number / 2 / 3 * 3)),
                Some(place(number / 2 / 3 * 3))
            );
        }
        for number in 0..4998 {
            let there = (number % 3 != 1).then(|| place(number));
            assert_eq!(places.get(id(number)), there);
        }
        assert_eq!(places.index.len() + places.old.len(), places.len());
    }
}
