//! Nodes: chains of tables, the best first; tables that come and go.

use super::Structure;
use super::table::{Role, Table};
use crate::engine::forest::slot::{Bucket, Place, Slot, TableNumber};

impl<const W: usize> Structure<W> {
    /// The tables of a node from one of them on, in the order in which lookups
    /// visit them.
    #[inline]
    pub(crate) fn chain(&self, first: TableNumber) -> impl Iterator<Item = TableNumber> {
        let some = |number: TableNumber| (number != TableNumber::NONE).then_some(number);
        std::iter::successors(some(first), move |number| some(self.table(*number).next()))
    }

    /// The tables of the root.
    pub(crate) fn root_tables(&self) -> impl Iterator<Item = &Table<W>> {
        self.chain(self.root).map(|number| self.table(number))
    }

    /// The first table of the node at a place; `NONE` if there is no node.
    pub(crate) fn first_of(&self, node: Place) -> TableNumber {
        if node.is_root() {
            return self.root;
        }
        match self.slot(node).bucket() {
            Bucket::Node(first) => first,
            Bucket::Empty | Bucket::Run(_) => TableNumber::NONE,
        }
    }

    /// The role of the root's table that a table is in or under.
    pub(crate) fn role_in_root(&self, number: TableNumber) -> Role {
        let mut table = self.table(number);
        while !table.node().is_root() {
            table = self.table(table.node().table);
        }
        table.role()
    }

    /// Adds a table to the node that it was made for.
    pub(crate) fn add(&mut self, table: Table<W>) -> TableNumber {
        if self.huge_pages {
            table.ask_for_huge_pages();
        }
        let number = self.tables.add(table);
        self.link(number);
        number
    }

    /// From now on the root's tables accept no rules.
    pub(crate) fn drain_root(&mut self) {
        let root: Vec<TableNumber> = self.chain(self.root).collect();
        for number in root {
            self.tables[number.index()].set_role(Role::Draining);
        }
    }

    /// Whether a table of the root is still to be drained of rules.
    pub(crate) fn has_draining_rules(&self) -> bool {
        let mut root = self.root_tables();
        root.any(|table| table.role() == Role::Draining && table.rules() > 0)
    }

    /// Keeps the root's tables as they are, those without rules excepted.
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

    /// Takes an empty table away.
    pub(super) fn drop_table(&mut self, number: TableNumber) {
        self.unlink(number);
        let slots = self.tables[number.index()].take_slots();
        self.leftover.push(slots);
        self.tables.remove(number);
    }

    /// Gives a table another bound, and the place in the chain that goes with
    /// it.
    pub(super) fn set_best(&mut self, number: TableNumber, best: u64) {
        let table = self.table(number);
        if table.best() == best {
            return;
        }
        if table.next() == TableNumber::NONE && self.first_of(table.node()) == number {
            // Alone in its node: to leave it would empty the node's slot.
            self.tables[number.index()].set_best(best);
            return;
        }
        self.unlink(number);
        self.tables[number.index()].set_best(best);
        self.link(number);
    }

    fn set_first(&mut self, node: Place, first: TableNumber) {
        if node.is_root() {
            self.root = first;
            return;
        }
        let table = &mut self.tables[node.table.index()];
        let slot = if first == TableNumber::NONE {
            Slot::EMPTY
        } else {
            Slot::new(Bucket::Node(first), table.slot(node.slot).signature())
        };
        table.set_slot(node.slot, slot);
    }

    /// Puts a table into its node's chain, behind those with bounds that are no
    /// worse.
    fn link(&mut self, number: TableNumber) {
        let (node, best) = (self.table(number).node(), self.table(number).best());
        let first = self.first_of(node);
        let before = self.chain(first);
        let before = before
            .take_while(|other| self.table(*other).best() <= best)
            .last();
        match before {
            None => {
                self.tables[number.index()].set_next(first);
                self.set_first(node, number);
            }
            Some(before) => {
                let next = self.table(before).next();
                self.tables[number.index()].set_next(next);
                self.tables[before.index()].set_next(number);
            }
        }
    }

    /// Takes a table out of its node's chain.
    fn unlink(&mut self, number: TableNumber) {
        let (node, next) = (self.table(number).node(), self.table(number).next());
        let first = self.first_of(node);
        if first == number {
            self.set_first(node, next);
            return;
        }
        let before = self
            .chain(first)
            .find(|other| self.table(*other).next() == number)
            .expect("a table is in its node's chain");
        self.tables[before.index()].set_next(next);
    }
}
