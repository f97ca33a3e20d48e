//! Chains of tables, best first; adding and removing tables.
//!
//! A chain is identified by its *parent*: the slot that points to its first table,
//! or [`Place::ROOT`].

use super::Structure;
use super::table::{Role, Table};
use crate::engines::forest::slot::{Bucket, Place, Slot, TableNumber};

impl<const W: usize> Structure<W> {
    /// The tables of a chain from `first` on, in the order in which lookups visit
    /// them.
    #[inline]
    pub(crate) fn chain(&self, first: TableNumber) -> impl Iterator<Item = TableNumber> {
        let existing = |number: TableNumber| (number != TableNumber::NONE).then_some(number);
        std::iter::successors(existing(first), move |number| {
            existing(self.table(*number).next())
        })
    }

    /// The tables of the root.
    pub(crate) fn root_tables(&self) -> impl Iterator<Item = &Table<W>> {
        self.chain(self.root).map(|number| self.table(number))
    }

    /// The tables of the root, in the order of learning. A rule goes to the first table
    /// that fits it.
    #[inline]
    pub(crate) fn root_by_order(&self) -> impl Iterator<Item = TableNumber> {
        self.root_by_order.iter().copied()
    }

    /// Returns the first table of the chain under a parent, or `NONE`.
    pub(crate) fn first_of(&self, parent: Place) -> TableNumber {
        if parent.is_root() {
            return self.root;
        }
        match self.slot(parent).bucket() {
            Bucket::Nested(first) => first,
            Bucket::Empty | Bucket::Run(_) => TableNumber::NONE,
        }
    }

    /// Returns the role of the root table that contains the table `number`.
    pub(crate) fn role_in_root(&self, number: TableNumber) -> Role {
        let mut table = self.table(number);
        while !table.parent().is_root() {
            table = self.table(table.parent().table);
        }
        table.role()
    }

    /// Adds a table to its chain.
    pub(crate) fn add(&mut self, table: Table<W>) -> TableNumber {
        if self.huge_pages {
            table.ask_for_huge_pages();
        }
        let (is_root, order) = (table.parent().is_root(), table.order());
        let number = self.tables.add(table);
        self.link(number);
        if is_root {
            let tables = &self.tables;
            let before = |number: &TableNumber| tables[number.index()].order() <= order;
            let index = self.root_by_order.partition_point(before);
            self.root_by_order.insert(index, number);
        }
        number
    }

    /// Makes all tables of the root draining: they accept no rules.
    pub(crate) fn drain_root(&mut self) {
        let root: Vec<TableNumber> = self.chain(self.root).collect();
        for number in root {
            self.tables[number.index()].set_role(Role::Draining);
        }
    }

    /// True if a draining table of the root still has rules.
    pub(crate) fn has_draining_rules(&self) -> bool {
        let mut root = self.root_tables();
        root.any(|table| table.role() == Role::Draining && table.rules() > 0)
    }

    /// Makes all tables of the root settled, and removes those without rules.
    pub(crate) fn settle_root(&mut self) {
        let root: Vec<TableNumber> = self.chain(self.root).collect();
        for number in root {
            let table = &mut self.tables[number.index()];
            debug_assert!(table.role() != Role::Draining, "it still has rules");
            table.set_role(Role::Settled);
            if table.rules() == 0 {
                self.drop_table(number);
            }
        }
    }

    /// Removes an empty table.
    pub(super) fn drop_table(&mut self, number: TableNumber) {
        self.unlink(number);
        if self.table(number).parent().is_root() {
            self.root_by_order.retain(|other| *other != number);
        }
        let slots = self.tables[number.index()].take_slots();
        self.leftover.push(slots);
        self.tables.remove(number);
    }

    /// Changes a table's bound and its position in the chain.
    pub(super) fn set_best(&mut self, number: TableNumber, best: u64) {
        let table = self.table(number);
        if table.best() == best {
            return;
        }
        if table.next() == TableNumber::NONE && self.first_of(table.parent()) == number {
            // Alone in its chain: unlinking it would empty the parent slot.
            self.tables[number.index()].set_best(best);
            return;
        }
        self.unlink(number);
        self.tables[number.index()].set_best(best);
        self.link(number);
    }

    fn set_first(&mut self, parent: Place, first: TableNumber) {
        if parent.is_root() {
            self.root = first;
            return;
        }
        let table = &mut self.tables[parent.table.index()];
        let slot = if first == TableNumber::NONE {
            Slot::EMPTY
        } else {
            Slot::new(Bucket::Nested(first), table.slot(parent.slot).signature())
        };
        table.set_slot(parent.slot, slot);
    }

    /// Links a table into its chain, behind all tables with equal or better bounds.
    fn link(&mut self, number: TableNumber) {
        let (parent, best) = (self.table(number).parent(), self.table(number).best());
        let first = self.first_of(parent);
        let before = self.chain(first);
        let before = before
            .take_while(|number| self.table(*number).best() <= best)
            .last();
        match before {
            None => {
                self.tables[number.index()].set_next(first);
                self.set_first(parent, number);
            }
            Some(before) => {
                let next = self.table(before).next();
                self.tables[number.index()].set_next(next);
                self.tables[before.index()].set_next(number);
            }
        }
    }

    /// Unlinks a table from its chain.
    fn unlink(&mut self, number: TableNumber) {
        let (parent, next) = (self.table(number).parent(), self.table(number).next());
        let first = self.first_of(parent);
        if first == number {
            self.set_first(parent, next);
            return;
        }
        let before = self
            .chain(first)
            .find(|other| self.table(*other).next() == number)
            .expect("a table is in its chain");
        self.tables[before.index()].set_next(next);
    }
}
