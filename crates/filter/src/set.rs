//! The filters of a file: looked up by name once, then by number; replaced atomically; with hit counters per
//! filtering thread. Start reading at [`FilterSet`].

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU16;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use wire::ip::Header;

use crate::compile::Compiled;
use crate::rule::{Rule, is_damaged};
use crate::text::{self, Remark, Remarks, Source, Written};
use crate::{Direction, FILTERS_MAX, Names};

/// A filter's decision on a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// Whether it is accepted.
    pub accept: bool,
    /// Whether the deciding line requests logging: [`describe`](crate::describe) builds the text.
    pub log: bool,
    /// The deciding line: an index into the filter's [`Line`]s and its [`Hits`].
    pub rule: u32,
}

/// Identifies a filter of a set for a session; it stays valid in the sets that replace it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilterId(NonZeroU16);

impl FilterId {
    /// No set has a filter with this id, so no packet passes it.
    pub const NOBODY: Self = Self(NonZeroU16::MAX);

    fn of(index: usize) -> Self {
        let number = u16::try_from(index + 1).ok().and_then(NonZeroU16::new);
        Self(number.expect("a set has FILTERS_MAX filters at most"))
    }

    fn index(self) -> usize {
        usize::from(self.0.get()) - 1
    }
}

/// One line of a filter that can decide on a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'f> {
    /// Its index, as in [`Verdict::rule`].
    pub rule: u32,
    /// The direction of the packets.
    pub direction: Direction,
    /// Line of the file, from 1; 0 for an implicit rule.
    pub line: usize,
    /// As written; the two implicit lines are `default deny` and `damaged`.
    pub text: &'f str,
    /// Accept if true, deny otherwise.
    pub accept: bool,
    /// Whether its packets are logged.
    pub log: bool,
}

/// The check before all rules; see docs/filter.md.
pub(crate) const DAMAGED: &str = "damaged";

/// One direction, compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Table {
    written: Written,
    /// By rule index; after the rules the default, then the check for damaged packets.
    verdicts: Box<[Verdict]>,
    v4: Compiled<u32>,
    v6: Compiled<u128>,
}

impl Table {
    /// `first` is the index of its first line.
    fn new(written: Written, first: usize) -> Self {
        let lines = written.rules.iter().chain([&written.default]);
        let verdicts = lines.map(|rule| (rule.accept, rule.log));
        let verdicts = verdicts.chain([(false, false)]).zip(first as u32..);
        Self {
            verdicts: verdicts
                .map(|((accept, log), rule)| Verdict { accept, log, rule })
                .collect(),
            v4: Compiled::new(&written.rules),
            v6: Compiled::new(&written.rules),
            written,
        }
    }

    #[inline]
    fn verdict(&self, packet: &Header) -> Verdict {
        let rules = self.written.rules.len();
        let at = if is_damaged(packet) {
            rules + 1
        } else {
            let place = match packet.version {
                4 => self.v4.first_match(packet),
                _ => self.v6.first_match(packet),
            };
            place as usize
        };
        self.verdicts[at]
    }
}

/// A filter, compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    name: String,
    line: usize,
    /// By [`Direction`]; `None` accepts everything.
    tables: [Option<Table>; 2],
    /// Its lines.
    lines: usize,
    /// Index of its first line among those of the set.
    first_slot: usize,
    /// Whether the file still contains it.
    is_in_file: bool,
}

impl Filter {
    fn new(source: Source) -> Self {
        let [inward, outward] = source.directions;
        let lines_of = |table: &Table| table.verdicts.len();
        // An unfiltered direction needs one line, for accepted packets.
        let inward = inward.map(|written| Table::new(written, 0));
        let second = inward.as_ref().map_or(1, lines_of);
        let outward = outward.map(|written| Table::new(written, second));
        Self {
            name: source.name,
            line: source.line,
            lines: second + outward.as_ref().map_or(1, lines_of),
            tables: [inward, outward],
            first_slot: 0,
            is_in_file: true,
        }
    }

    /// Its Filter-Id.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line of the file where it starts, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// Whether the last file read contains it. If not, it is kept for sessions that use it.
    #[must_use]
    pub fn is_in_file(&self) -> bool {
        self.is_in_file
    }

    /// Whether it filters this direction; if not, all packets are accepted.
    #[must_use]
    #[inline]
    pub fn is_filtered(&self, direction: Direction) -> bool {
        self.tables[direction as usize].is_some()
    }

    /// Decides on a packet: the first matching line applies.
    #[must_use]
    #[inline]
    pub fn matches(&self, packet: &Header, direction: Direction) -> Verdict {
        match &self.tables[direction as usize] {
            Some(table) => table.verdict(packet),
            None => Verdict {
                accept: true,
                log: false,
                rule: self.first_line(direction),
            },
        }
    }

    #[inline]
    fn first_line(&self, direction: Direction) -> u32 {
        match (direction, &self.tables[0]) {
            (Direction::In, _) => 0,
            (Direction::Out, None) => 1,
            (Direction::Out, Some(table)) => table.verdicts.len() as u32,
        }
    }

    /// The rules of a direction, in order; none if it is not filtered.
    #[must_use]
    pub fn rules(&self, direction: Direction) -> &[Rule] {
        self.written(direction)
            .map_or(&[], |written| &written.rules)
    }

    pub(crate) fn written(&self, direction: Direction) -> Option<&Written> {
        let table = self.tables[direction as usize].as_ref()?;
        Some(&table.written)
    }

    /// Every line that can decide: for each direction the rules, the default, and the check for damaged
    /// packets; `not filtered` for a direction without rules.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        Direction::ALL.into_iter().flat_map(move |direction| {
            let table = self.tables[direction as usize].as_ref();
            let texts = table.into_iter().flat_map(|table| {
                let rules = table.written.rules.iter();
                let written = rules.chain([&table.written.default]);
                let written = written.map(|rule| (rule.line, rule.text.as_str()));
                let verdicts = table.verdicts.iter().copied();
                written.chain([(0, DAMAGED)]).zip(verdicts)
            });
            let passing = Verdict {
                accept: true,
                log: false,
                rule: self.first_line(direction),
            };
            let passing = table.is_none().then_some(((0, "not filtered"), passing));
            texts
                .chain(passing)
                .map(move |((line, text), verdict)| Line {
                    rule: verdict.rule,
                    direction,
                    line,
                    text,
                    accept: verdict.accept,
                    log: verdict.log,
                })
        })
    }

    /// Bytes that its tables take.
    #[must_use]
    pub fn octets(&self) -> usize {
        let tables = self.tables.iter().flatten();
        tables
            .map(|table| table.v4.octets() + table.v6.octets())
            .sum()
    }
}

/// All filters of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilterSet {
    filters: Vec<Filter>,
    /// Includes filters that are no longer in the file.
    by_name: HashMap<String, FilterId>,
    slots: usize,
}

impl FilterSet {
    /// Parses and compiles a file's text. Returns warnings too.
    ///
    /// # Errors
    /// The faults, each with line, column and word, and the warnings.
    pub fn parse(text: &str, names: &Names) -> Result<(Self, Vec<Remark>), Remarks> {
        let (sources, mut remarks) = text::parse(text, names);
        text::advise(&sources, &mut remarks);
        if !remarks.faults.is_empty() {
            return Err(remarks);
        }
        let filters = sources.into_iter().map(Filter::new).collect();
        Ok((Self::of(filters), remarks.advice))
    }

    /// Parses a changed text of the same file: [`FilterSet::parse`], then [`FilterSet::after`].
    ///
    /// # Errors
    /// As for the two.
    pub fn reload(&self, text: &str, names: &Names) -> Result<(Self, Vec<Remark>), Remarks> {
        let (set, advice) = Self::parse(text, names)?;
        match set.after(self) {
            Ok(set) => Ok((set, advice)),
            Err(fault) => Err(Remarks {
                faults: vec![fault],
                advice,
            }),
        }
    }

    /// This set of a file, to be installed in place of `before`. A filter whose name existed before keeps its
    /// [`FilterId`]. A removed filter stays unchanged for sessions that hold its id, but is not found by name.
    /// Carry the hit counters over with [`Carry`].
    ///
    /// # Errors
    /// More than [`FILTERS_MAX`] filters including the removed ones.
    pub fn after(&self, before: &Self) -> Result<Self, Remark> {
        let olds = before.filters.iter().map(|old| match self.find(&old.name) {
            Some(id) => self.filters[id.index()].clone(),
            None => Filter {
                is_in_file: false,
                ..old.clone()
            },
        });
        let mut filters: Vec<Filter> = olds.collect();
        for new in self.filters.iter().filter(|filter| filter.is_in_file) {
            if before.by_name.contains_key(&new.name) {
                continue;
            }
            if filters.len() >= FILTERS_MAX {
                return Err(Remark {
                    line: new.line,
                    column: 1,
                    word: new.name.clone(),
                    message: format!("more than {FILTERS_MAX} filters with those that are gone"),
                    right: "a restart forgets those".to_owned(),
                });
            }
            filters.push(new.clone());
        }
        Ok(Self::of(filters))
    }

    fn of(mut filters: Vec<Filter>) -> Self {
        let mut slots = 0;
        let mut by_name = HashMap::with_capacity(filters.len());
        for (index, filter) in filters.iter_mut().enumerate() {
            filter.first_slot = slots;
            slots += filter.lines;
            by_name.insert(filter.name.clone(), FilterId::of(index));
        }
        Self {
            filters,
            by_name,
            slots,
        }
    }

    /// The filter with a Filter-Id.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<FilterId> {
        let id = *self.by_name.get(name)?;
        self.get(id)?.is_in_file.then_some(id)
    }

    /// The filter for an id from [`FilterSet::find`], of this set or an earlier one.
    #[must_use]
    #[inline]
    pub fn get(&self, id: FilterId) -> Option<&Filter> {
        self.filters.get(id.index())
    }

    /// All filters, including those no longer in the file.
    pub fn iter(&self) -> impl Iterator<Item = (FilterId, &Filter)> {
        let filters = self.filters.iter().enumerate();
        filters.map(|(index, filter)| (FilterId::of(index), filter))
    }
}

/// How often each line of each filter of a set decided. Each filtering thread has its own, which others may
/// read concurrently.
#[derive(Debug, Default)]
pub struct Hits {
    slots: Box<[AtomicU64]>,
}

impl Hits {
    /// Zeroed counters for the lines of a set.
    #[must_use]
    pub fn new(set: &FilterSet) -> Self {
        Self {
            slots: (0..set.slots).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Counts a verdict of a filter of the set that these counters are for. Only one thread may count; others
    /// may read.
    #[inline]
    pub fn count(&self, filter: &Filter, verdict: Verdict) {
        if let Some(slot) = self.slots.get(filter.first_slot + verdict.rule as usize) {
            slot.store(slot.load(Relaxed) + 1, Relaxed);
        }
    }

    /// How often a line of a filter decided.
    #[must_use]
    pub fn of(&self, filter: &Filter, rule: u32) -> u64 {
        let slot = self.slots.get(filter.first_slot + rule as usize);
        slot.map_or(0, |slot| slot.load(Relaxed))
    }

    /// Adds the counters of another thread that uses the same set.
    pub fn add(&mut self, other: &Hits) {
        for (slot, more) in self.slots.iter_mut().zip(&other.slots) {
            *slot.get_mut() += more.load(Relaxed);
        }
    }

    /// The counters for a set that replaces another: see [`Carry`].
    #[must_use]
    pub fn carried(&self, old: &FilterSet, new: &FilterSet) -> Self {
        let hits = Self::new(new);
        self.carry(&Carry::new(old, new), &hits);
        hits
    }

    /// Adds these counters to those of the set that replaces this one.
    pub fn carry(&self, carry: &Carry, to: &Hits) {
        for &(old, new) in &carry.0 {
            if let (Some(old), Some(new)) = (self.slots.get(old), to.slots.get(new)) {
                new.store(new.load(Relaxed) + old.load(Relaxed), Relaxed);
            }
        }
    }
}

/// Which lines of a set continue the counters of an earlier set. A line keeps its count if the filter of the same
/// name has a line of the same direction and text; the n-th of equal lines continues the n-th. Changed and new lines
/// start at 0.
#[derive(Debug, Default)]
pub struct Carry(Vec<(usize, usize)>);

impl Carry {
    /// Compares the lines of two sets; `new` came from [`FilterSet::after`].
    #[must_use]
    pub fn new(old: &FilterSet, new: &FilterSet) -> Self {
        let mut carry = Vec::with_capacity(old.slots);
        for (before, now) in old.filters.iter().zip(&new.filters) {
            let mut slots: HashMap<_, VecDeque<usize>> = HashMap::new();
            for line in before.lines() {
                let of_text = slots.entry((line.direction, line.text)).or_default();
                of_text.push_back(before.first_slot + line.rule as usize);
            }
            for line in now.lines() {
                let of_text = slots.get_mut(&(line.direction, line.text));
                if let Some(old) = of_text.and_then(VecDeque::pop_front) {
                    carry.push((old, now.first_slot + line.rule as usize));
                }
            }
        }
        Self(carry)
    }
}
