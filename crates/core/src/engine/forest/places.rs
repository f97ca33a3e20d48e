//! Where the rule of an id is.

use hashbrown::HashMap;

use super::TableNumber;
use crate::rule::RuleId;
use crate::simd::pages::ask_for_huge_pages;

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

/// A map from rule ids to buckets.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    index: HashMap<u32, u32, foldhash::fast::FixedState>,
    pages: Vec<[Place; PAGE]>,
    free: Vec<u32>,
    rules: usize,
}

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
        let (page, entry) = split(id);
        let page = *self.index.get(&page)?;
        Some(self.pages[page as usize][entry]).filter(|place| *place != NOWHERE)
    }

    /// Says where a rule is, whether it was anywhere before or not.
    pub(super) fn set(&mut self, id: RuleId, place: Place) {
        let (page, entry) = split(id);
        let Places {
            index, pages, free, ..
        } = self;
        let page = *index.entry(page).or_insert_with(|| {
            free.pop().unwrap_or_else(|| {
                if pages.len() == pages.capacity() {
                    pages.reserve_exact((pages.len() / 4).max(8));
                    ask_for_huge_pages(pages);
                }
                pages.push([NOWHERE; PAGE]);
                u32::try_from(pages.len() - 1).expect("fewer pages than ids")
            })
        });
        let before = &mut pages[page as usize][entry];
        self.rules += usize::from(*before == NOWHERE);
        *before = place;
    }

    /// Forgets a rule that is there.
    pub(super) fn remove(&mut self, id: RuleId) {
        let (number, entry) = split(id);
        let page = self.index[&number];
        let places = &mut self.pages[page as usize];
        places[entry] = NOWHERE;
        self.rules -= 1;
        if *places == [NOWHERE; PAGE] {
            self.index.remove(&number);
            self.free.push(page);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.index.allocation_size()
            + self.pages.capacity() * size_of::<[Place; PAGE]>()
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
        assert_eq!(places.pages.len(), 3, "pages are reused");
    }
}
