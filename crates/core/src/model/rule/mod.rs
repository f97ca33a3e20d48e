//! Rules: one match for each field, a priority, an action and a cookie, packed
//! into words.
//!
//! Users write a rule as a list of [`FieldMatch`]es. It is stored *packed*, in
//! the layout of its schema ([`Schema::rule_words`]):
//!
//! ```text
//! | value: key_words | mask: key_words | high: high_words |
//! ```
//!
//! A key can match only if `(key ^ value) & mask` is zero. For exact, prefix
//! and ternary fields, this is the whole test.
//!
//! Ranges are never expanded. The lower end of a range is in `value` and its
//! upper end in `high`. `mask` has the leading bits that all values of the
//! range share: the longest prefix that contains the range ([TM19] §III.A). So
//! engines that hash use only `value` and `mask`, and check the range itself
//! for the few rules that the hash lookup returns.
//!
//! Prefix and range fields also accept a value under any mask. For a range
//! field, `value` and `high` are then the smallest and the largest value that
//! agree with the mask. Every value that agrees with the mask is between these
//! two, so one test serves ranges and masks. A range and a value under a mask
//! cannot be confused: the mask of a range is a prefix, and a value under a
//! mask that is a prefix is the same match as a range.
//!
//! [TM19]: crate::papers#tm19

use std::fmt;
use std::sync::Arc;

use crate::model::error::RuleError;
use crate::model::packed::PackedRule;
use crate::model::schema::{Field, FieldId, MatchKind, RangeField, Schema};
use crate::model::schema::{low_ones, prefix_mask};
use crate::model::value::ValueFormat;

mod builder;
mod field_value;
mod masked;
#[cfg(test)]
mod tests;

pub use builder::RuleBuilder;
pub(crate) use builder::{Draft, rule_setters};
pub use field_value::FieldValue;

/// Identifies a rule. Ids are unique within a rule set; at equal priority the
/// lower id wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(u32);

impl RuleId {
    /// The largest id. The next number means "no rule".
    pub const MAX: RuleId = RuleId(u32::MAX - 1);

    /// Returns the id with this number.
    ///
    /// # Errors
    /// [`RuleError::IdTooLarge`] for `u32::MAX`.
    pub fn new(number: u32) -> Result<RuleId, RuleError> {
        if number > RuleId::MAX.0 {
            return Err(RuleError::IdTooLarge { number });
        }
        Ok(RuleId(number))
    }

    /// Returns the id whose number is a position in a list.
    ///
    /// # Panics
    /// If the position is above [`RuleId::MAX`]: no list in memory is that
    /// long.
    #[must_use]
    pub fn from_index(index: usize) -> RuleId {
        let number = u32::try_from(index).expect("more rules than ids");
        RuleId::new(number).expect("more rules than ids")
    }

    /// Returns the number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }

    /// Returns the number as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The priority of a rule. Of the rules that match a header, a rule with the
/// highest priority wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Priority(pub u32);

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The action of a rule: an index into the user's own table of actions. Rule
/// sets and engines with updates store it. A [live table](crate::table) returns
/// the winner's action to readers
/// ([`EngineReplica::action`](crate::table::EngineReplica::action)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ActionId(pub u32);

/// The outcome of a lookup, packed into 64 bits so that the better of two
/// outcomes is the smaller number. The high half is the inverted priority and
/// the low half is the rule id. A miss has all bits set.
///
/// The order is total: highest priority first, then lowest id; any rule beats a
/// miss.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Winner(u64);

impl Winner {
    /// No rule matches.
    pub const MISS: Winner = Winner(u64::MAX);

    /// Returns the outcome of a lookup that the rule with this priority and id
    /// wins.
    #[must_use]
    pub fn new(priority: Priority, id: RuleId) -> Winner {
        Winner((u64::from(u32::MAX - priority.0) << 32) | u64::from(id.0))
    }

    /// Returns the outcome with this packed number.
    #[inline]
    pub(crate) fn from_rank(rank: u64) -> Winner {
        Winner(rank)
    }

    /// True if this outcome is strictly better than the other.
    #[inline]
    #[must_use]
    pub fn beats(self, other: Winner) -> bool {
        self.0 < other.0
    }

    /// Returns the better of two outcomes.
    #[inline]
    #[must_use]
    pub fn or(self, other: Winner) -> Winner {
        Winner(self.0.min(other.0))
    }

    /// True if no rule matches.
    #[inline]
    #[must_use]
    pub fn is_miss(self) -> bool {
        self == Winner::MISS
    }

    /// Returns the packed number; smaller is better.
    #[inline]
    #[must_use]
    pub fn rank(self) -> u64 {
        self.0
    }

    /// Returns the winning rule, or `None` on a miss.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the low half is the id
    pub fn rule(self) -> Option<RuleId> {
        (!self.is_miss()).then_some(RuleId(self.0 as u32))
    }

    /// Returns the winning rule's priority, or `None` on a miss.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the high half is the priority
    pub fn priority(self) -> Option<Priority> {
        (!self.is_miss()).then_some(Priority(u32::MAX - (self.0 >> 32) as u32))
    }
}

impl fmt::Debug for Winner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rule(), self.priority()) {
            (Some(id), Some(priority)) => write!(f, "rule {id} (priority {priority})"),
            _ => f.write_str("miss"),
        }
    }
}

/// A rule's match of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldMatch {
    /// Any value: a wildcard.
    Any,
    /// This single value.
    Exact(u128),
    /// The values that share the leading `length` bits with `value`. The other
    /// bits of `value` are ignored.
    Prefix {
        /// Any member of the prefix.
        value: u128,
        /// The number of leading bits, at most the field's width.
        length: u32,
    },
    /// The values from `low` to `high`, both included.
    Range {
        /// The smallest value that matches.
        low: u128,
        /// The largest value that matches.
        high: u128,
    },
    /// The values that agree with `value` on the bits of `mask`. Other bits of
    /// `value` are ignored. Prefix, range and ternary fields accept any mask.
    Ternary {
        /// Any value that matches.
        value: u128,
        /// The bits that must agree.
        mask: u128,
    },
}

/// A match in packed form.
struct PackedMatch {
    value: u128,
    mask: u128,
    high: u128,
}

impl FieldMatch {
    fn pack(&self, field: &Field) -> Result<PackedMatch, RuleError> {
        self.check(field)?;
        let width = field.width();
        let full = field.max_value();
        // The two ends, if the match is an interval.
        let ends = match *self {
            FieldMatch::Any => Some((0, full)),
            FieldMatch::Exact(value) => Some((value, value)),
            FieldMatch::Prefix { value, length } => {
                let mask = prefix_mask(width, length);
                Some((value & mask, (value & mask) | (full & !mask)))
            }
            FieldMatch::Range { low, high } => Some((low, high)),
            FieldMatch::Ternary { value, mask } => {
                let free = full & !mask;
                // The mask is a prefix if the free bits are the lowest bits.
                (free & free.wrapping_add(1) == 0).then_some((value & mask, (value & mask) | free))
            }
        };
        let wrong_kind = || RuleError::WrongKind {
            field: field.name().to_owned(),
            kind: field.kind(),
            found: self.describe(field),
        };
        match (field.kind(), ends) {
            (MatchKind::Range, Some((low, high))) => Ok(PackedMatch {
                value: low,
                mask: shared_prefix_mask(low, high, width),
                high,
            }),
            (MatchKind::Exact, None) => Err(wrong_kind()),
            (_, None) => match *self {
                FieldMatch::Ternary { value, mask } => Ok(PackedMatch {
                    value: value & mask,
                    mask,
                    high: (value & mask) | (full & !mask),
                }),
                _ => unreachable!("only a ternary match is no interval"),
            },
            (kind, Some((low, high))) => {
                let mask = shared_prefix_mask(low, high, width);
                let is_prefix = low & !mask == 0 && high == low | (full & !mask);
                let allowed = kind != MatchKind::Exact || mask == full || mask == 0;
                if !is_prefix || !allowed {
                    return Err(wrong_kind());
                }
                Ok(PackedMatch {
                    value: low,
                    mask,
                    high: 0,
                })
            }
        }
    }

    /// Checks that every number fits in the field.
    fn check(&self, field: &Field) -> Result<(), RuleError> {
        let too_large = |value: u128| RuleError::ValueTooLarge {
            field: field.name().to_owned(),
            value: field.format().display(value).to_string(),
            width: field.width(),
        };
        let values = match *self {
            FieldMatch::Any => [0, 0],
            FieldMatch::Exact(value) => [value, 0],
            FieldMatch::Prefix { value, length } => {
                if length > field.width() {
                    return Err(RuleError::PrefixTooLong {
                        field: field.name().to_owned(),
                        length,
                        width: field.width(),
                    });
                }
                [value, 0]
            }
            FieldMatch::Range { low, high } => {
                if low > high {
                    return Err(RuleError::InvertedRange {
                        field: field.name().to_owned(),
                        low: field.format().display(low).to_string(),
                        high: field.format().display(high).to_string(),
                    });
                }
                [low, high]
            }
            FieldMatch::Ternary { value, mask } => [value, mask],
        };
        match values.into_iter().find(|&value| value > field.max_value()) {
            Some(value) => Err(too_large(value)),
            None => Ok(()),
        }
    }

    /// Formats the match for people: `*`, `10.0.0.0/8`, `80`, `1024-65535`,
    /// `0x10&0xf0`, `+syn-ack`, `eth*`.
    #[must_use]
    pub fn describe(&self, field: &Field) -> String {
        let show = |value| field.format().display(value);
        match *self {
            FieldMatch::Any => "*".to_owned(),
            FieldMatch::Exact(value) => show(value).to_string(),
            FieldMatch::Prefix { value, length } => match text_prefix(field, value, length) {
                Some(start) => format!("{start}*"),
                None => format!("{}/{length}", show(value)),
            },
            FieldMatch::Range { low, high } => format!("{}-{}", show(low), show(high)),
            FieldMatch::Ternary { value, mask } => {
                let named = field.format().display_masked(value, mask);
                named.unwrap_or_else(|| format!("{value:#x}&{mask:#x}"))
            }
        }
    }
}

/// Returns the text that all texts of a prefix start with, if it has whole characters.
fn text_prefix(field: &Field, value: u128, length: u32) -> Option<String> {
    let is_text = field.format() == ValueFormat::Text && length > 0 && length.is_multiple_of(8);
    let start = value & !low_ones(128 - length);
    let has_all_bytes = start.trailing_zeros() < 128 - length + 8;
    (is_text && has_all_bytes).then(|| field.format().display(start).to_string())
}

/// Returns a mask of the leading bits that `low` and `high` share.
fn shared_prefix_mask(low: u128, high: u128, width: u32) -> u128 {
    let differing = 128 - (low ^ high).leading_zeros();
    low_ones(width) & !low_ones(differing)
}

/// Returns the smallest `width`-bit number that is at least `low` and agrees
/// with `value` on the bits of `mask`, if there is one. `value` has no bits
/// outside `mask`.
fn smallest_from(low: u128, value: u128, mask: u128, width: u32) -> Option<u128> {
    let differing = (low ^ value) & mask;
    if differing == 0 {
        return Some(low);
    }
    let first = differing.ilog2();
    if value >> first & 1 != 0 {
        // The higher bits agree, and this bit makes the number larger than
        // `low`.
        let low_bits = low_ones(first + 1);
        return Some((low & !low_bits) | (value & low_bits));
    }
    // This bit makes the number smaller than `low`, so a higher free bit must
    // make it larger. The smallest result sets the lowest free bit that is 0 in
    // `low`.
    let free = low_ones(width) & !mask & !low & !low_ones(first + 1);
    if free == 0 {
        return None;
    }
    let raised = free.trailing_zeros();
    let low_bits = low_ones(raised);
    Some((low & !low_bits) | 1 << raised | (value & low_bits))
}

/// A packed rule's match of a range field.
#[derive(Clone, Copy)]
struct Demanded {
    low: u128,
    high: u128,
    mask: u128,
    width: u32,
}

impl Demanded {
    fn new(rule: &RuleRef<'_>, range: &RangeField) -> Demanded {
        Demanded {
            low: range.key.get(rule.value()),
            high: range.high.get(rule.high()),
            mask: range.key.get(rule.mask()),
            width: rule.schema.field(range.field).width(),
        }
    }

    /// True if this is a value under a mask that is not a prefix.
    fn has_holes(self) -> bool {
        self.mask != shared_prefix_mask(self.low, self.high, self.width)
    }

    /// True if some value satisfies both matches. The caller has checked that
    /// the two rules agree on the bits that both masks have.
    fn meets(self, other: Demanded) -> bool {
        let intervals_meet = self.low <= other.high && other.low <= self.high;
        let within = |holes: Demanded, range: Demanded| {
            smallest_from(range.low, holes.low, holes.mask, holes.width)
                .is_some_and(|smallest| smallest <= range.high)
        };
        intervals_meet
            && match (self.has_holes(), other.has_holes()) {
                (true, false) => within(self, other),
                (false, true) => within(other, self),
                (true, true) | (false, false) => true,
            }
    }
}

/// A rule that owns its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    schema: Arc<Schema>,
    id: RuleId,
    priority: Priority,
    action: ActionId,
    cookie: u64,
    words: Box<[u64]>,
}

impl Rule {
    /// Packs a rule from one match for each field of the schema, in order.
    ///
    /// # Errors
    /// [`RuleError`] if the number of matches differs from the number of
    /// fields, or a match does not fit its field's width or kind. Different
    /// forms of the same match are equivalent: a range field accepts a prefix,
    /// and a prefix field accepts a range that is a prefix. Both accept a value
    /// under any mask. An exact field accepts a single value or the wildcard.
    pub fn new(
        schema: &Arc<Schema>,
        id: RuleId,
        priority: Priority,
        action: ActionId,
        matches: &[FieldMatch],
    ) -> Result<Rule, RuleError> {
        let mut words = vec![0; schema.rule_words()].into_boxed_slice();
        pack_into(schema, matches, &mut words)?;
        Ok(Rule {
            schema: Arc::clone(schema),
            id,
            priority,
            action,
            cookie: 0,
            words,
        })
    }

    /// Returns a rule that owns these packed words: value, mask, high.
    pub(crate) fn from_words(
        schema: &Arc<Schema>,
        id: RuleId,
        priority: Priority,
        action: ActionId,
        cookie: u64,
        words: Vec<u64>,
    ) -> Rule {
        debug_assert_eq!(words.len(), schema.rule_words());
        Rule {
            schema: Arc::clone(schema),
            id,
            priority,
            action,
            cookie,
            words: words.into(),
        }
    }

    /// Returns the rule with this cookie: a number for the caller's use, 0
    /// unless set. It is stored with the rule; classifiers ignore it.
    #[must_use]
    pub fn with_cookie(self, cookie: u64) -> Rule {
        Rule { cookie, ..self }
    }

    /// Returns the rule with this action.
    #[must_use]
    pub fn with_action(self, action: ActionId) -> Rule {
        Rule { action, ..self }
    }

    /// Returns the rule as a borrowed view.
    #[must_use]
    pub fn view(&self) -> RuleRef<'_> {
        RuleRef {
            schema: &self.schema,
            id: self.id,
            priority: self.priority,
            action: self.action,
            cookie: self.cookie,
            words: &self.words,
        }
    }
}

/// Packs matches into zeroed words of length [`Schema::rule_words`].
pub(crate) fn pack_into(
    schema: &Schema,
    matches: &[FieldMatch],
    words: &mut [u64],
) -> Result<(), RuleError> {
    if matches.len() != schema.fields().len() {
        return Err(RuleError::WrongFieldCount {
            found: matches.len(),
            expected: schema.fields().len(),
        });
    }
    let (value, rest) = words.split_at_mut(schema.key_words());
    let (mask, high) = rest.split_at_mut(schema.key_words());
    let mut ranges = schema.range_fields().iter();
    for (id, field_match) in schema.field_ids().zip(matches) {
        let field = schema.field(id);
        let packed = field_match.pack(field)?;
        schema.placement(id).set(value, packed.value);
        schema.placement(id).set(mask, packed.mask);
        if field.kind() == MatchKind::Range {
            let range = ranges.next().expect("one entry for each range field");
            range.high.set(high, packed.high);
        }
    }
    Ok(())
}

/// A borrowed rule. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct RuleRef<'a> {
    pub(crate) schema: &'a Arc<Schema>,
    pub(crate) id: RuleId,
    pub(crate) priority: Priority,
    pub(crate) action: ActionId,
    pub(crate) cookie: u64,
    pub(crate) words: &'a [u64],
}

impl<'a> RuleRef<'a> {
    /// Returns the schema for which the rule is packed.
    #[must_use]
    pub fn schema(&self) -> &'a Arc<Schema> {
        self.schema
    }

    /// Returns the rule's id.
    #[must_use]
    pub fn id(&self) -> RuleId {
        self.id
    }

    /// Returns the rule's priority.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Returns the rule's action.
    #[must_use]
    pub fn action(&self) -> ActionId {
        self.action
    }

    /// Returns the rule's cookie; see [`Rule::with_cookie`].
    #[must_use]
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Returns the outcome of a lookup that this rule wins.
    #[must_use]
    pub fn winner(&self) -> Winner {
        Winner::new(self.priority, self.id)
    }

    /// Returns all packed words: value, mask, high.
    #[must_use]
    pub fn words(&self) -> &'a [u64] {
        self.words
    }

    /// Returns the value words: the bits that a matching key has under
    /// [`mask`](Self::mask), and the lower ends of ranges.
    #[must_use]
    pub fn value(&self) -> &'a [u64] {
        &self.words[..self.schema.key_words()]
    }

    /// Returns the mask words: the bits on which all matching keys agree. These
    /// words are the rule's tuple.
    #[must_use]
    pub fn mask(&self) -> &'a [u64] {
        &self.words[self.schema.key_words()..2 * self.schema.key_words()]
    }

    /// Returns the upper ends of ranges.
    #[must_use]
    pub fn high(&self) -> &'a [u64] {
        &self.words[2 * self.schema.key_words()..]
    }

    /// Returns the rule's match of a field, in its simplest form.
    #[must_use]
    pub fn field(&self, id: FieldId) -> FieldMatch {
        let field = self.schema.field(id);
        let placement = self.schema.placement(id);
        let value = placement.get(self.value());
        let mask = placement.get(self.mask());
        let full = field.max_value();
        match field.kind() {
            MatchKind::Range => {
                let (low, high) = self.ends(id);
                match (low, high) {
                    _ if mask != shared_prefix_mask(low, high, field.width()) => {
                        FieldMatch::Ternary { value, mask }
                    }
                    (0, high) if high == full => FieldMatch::Any,
                    (low, high) if low == high => FieldMatch::Exact(low),
                    (low, high) => FieldMatch::Range { low, high },
                }
            }
            _ if mask == 0 => FieldMatch::Any,
            _ if mask == full => FieldMatch::Exact(value),
            MatchKind::Prefix if mask == prefix_mask(field.width(), mask.count_ones()) => {
                FieldMatch::Prefix {
                    value,
                    length: mask.count_ones(),
                }
            }
            MatchKind::Prefix | MatchKind::Ternary | MatchKind::Exact => {
                FieldMatch::Ternary { value, mask }
            }
        }
    }

    /// Returns the rule's match of each field, in order.
    #[must_use]
    pub fn fields(&self) -> Vec<FieldMatch> {
        self.schema.field_ids().map(|id| self.field(id)).collect()
    }

    /// Returns the smallest and the largest value of a field that the rule
    /// matches.
    ///
    /// If [`field`](Self::field) is a [`FieldMatch::Ternary`], every matching
    /// value is between the two, but not every value between them matches.
    #[must_use]
    pub fn ends(&self, id: FieldId) -> (u128, u128) {
        PackedRule::from(*self).field_ends(id)
    }

    /// True if the rule matches a key of its schema.
    #[must_use]
    pub fn matches(&self, key: &[u64]) -> bool {
        PackedRule::from(*self).matches(key)
    }

    /// True if some key matches both rules, which must share a schema.
    #[must_use]
    pub fn overlaps(&self, other: &RuleRef<'_>) -> bool {
        let masks = self.mask().iter().zip(other.mask());
        let values = self.value().iter().zip(other.value());
        let mut pairs = values.zip(masks);
        if pairs.any(|((a, b), (ma, mb))| (a ^ b) & ma & mb != 0) {
            return false;
        }
        self.schema
            .range_fields()
            .iter()
            .all(|range| Demanded::new(self, range).meets(Demanded::new(other, range)))
    }

    /// True if every key that matches `other` also matches this rule. The rules
    /// must share a schema.
    #[must_use]
    pub fn covers(&self, other: &RuleRef<'_>) -> bool {
        let masks = self.mask().iter().zip(other.mask());
        let values = self.value().iter().zip(other.value());
        let mut pairs = values.zip(masks);
        if pairs.any(|((a, b), (ma, mb))| ma & !mb != 0 || (a ^ b) & ma != 0) {
            return false;
        }
        self.schema.range_fields().iter().all(|range| {
            range.key.get(self.value()) <= range.key.get(other.value())
                && range.high.get(other.high()) <= range.high.get(self.high())
        })
    }

    /// Returns a copy that owns its words.
    #[must_use]
    pub fn to_rule(&self) -> Rule {
        Rule {
            schema: Arc::clone(self.schema),
            id: self.id,
            priority: self.priority,
            action: self.action,
            cookie: self.cookie,
            words: self.words.into(),
        }
    }
}

impl fmt::Display for RuleRef<'_> {
    /// Writes matches like `src=10.0.0.0/8 dport=80` without wildcards, or
    /// `any` if all are wildcards.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for id in self.schema.field_ids() {
            let field_match = self.field(id);
            if field_match != FieldMatch::Any {
                let field = self.schema.field(id);
                write!(
                    f,
                    "{separator}{}={}",
                    field.name(),
                    field_match.describe(field)
                )?;
                separator = " ";
            }
        }
        if separator.is_empty() {
            f.write_str("any")?;
        }
        Ok(())
    }
}

impl<'a> From<RuleRef<'a>> for PackedRule<'a> {
    fn from(rule: RuleRef<'a>) -> PackedRule<'a> {
        PackedRule::new(rule.schema(), rule.words())
    }
}
