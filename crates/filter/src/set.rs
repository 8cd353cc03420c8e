//! The filters of a file: found by name once, then by number; changed without a gap; hits counted by whoever filters.

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

/// What a filter says of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// Whether it may pass.
    pub accept: bool,
    /// Whether the line that decided asks for it to be told to the log: [`describe`](crate::describe) makes the text.
    pub log: bool,
    /// The line that decided: its place among the filter's [`Line`]s and its [`Hits`].
    pub rule: u32,
}

/// Which filter of a set, as a session keeps it; also in the sets that replace it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilterId(NonZeroU16);

impl FilterId {
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
    /// Its place, as in [`Verdict::rule`].
    pub rule: u32,
    /// Which way the packets go.
    pub direction: Direction,
    /// Line of the file, from 1; 0 if nothing in the file says so.
    pub line: usize,
    /// As written; of the two lines that need not be written `default deny` and `damaged`.
    pub text: &'f str,
    /// Accept, or else deny.
    pub accept: bool,
    /// Whether the log is told.
    pub log: bool,
}

/// What decides in front of the rules; see docs/filter.md.
pub(crate) const DAMAGED: &str = "damaged";

/// One direction, compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Table {
    written: Written,
    /// By the place of the rule; behind the rules the default, and behind that what is damaged.
    verdicts: Box<[Verdict]>,
    v4: Compiled<u32>,
    v6: Compiled<u128>,
}

impl Table {
    /// `first` is the place of its first line.
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
    /// By [`Direction`]; `None` lets everything pass.
    tables: [Option<Table>; 2],
    /// Its lines.
    lines: usize,
    /// Place of its first line among those of the set.
    first_slot: usize,
    /// Whether the file still has it.
    is_in_file: bool,
}

impl Filter {
    fn new(source: Source) -> Self {
        let [inward, outward] = source.directions;
        let lines_of = |table: &Table| table.verdicts.len();
        // What is not filtered needs one place, for what passes.
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

    /// Line of the file where it begins, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// Whether the file that was read last has it. If not, it is kept for sessions that have it.
    #[must_use]
    pub fn is_in_file(&self) -> bool {
        self.is_in_file
    }

    /// Whether it looks at packets of this direction at all; if not, all pass.
    #[must_use]
    #[inline]
    pub fn is_filtered(&self, direction: Direction) -> bool {
        self.tables[direction as usize].is_some()
    }

    /// What becomes of a packet: the first line that matches decides.
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

    /// The rules of a direction, in their order; none if it is not filtered.
    #[must_use]
    pub fn rules(&self, direction: Direction) -> &[Rule] {
        self.written(direction)
            .map_or(&[], |written| &written.rules)
    }

    pub(crate) fn written(&self, direction: Direction) -> Option<&Written> {
        let table = self.tables[direction as usize].as_ref()?;
        Some(&table.written)
    }

    /// Everything that can decide: for each direction the rules, the default, and the check for damaged packets; `not
    /// filtered` where there are no rules.
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

    /// Octets that its tables take.
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
    /// Those that are not in the file any more too.
    by_name: HashMap<String, FilterId>,
    slots: usize,
}

impl FilterSet {
    /// Reads and compiles a file's text. What is unwise, but possible, comes with it.
    ///
    /// # Errors
    /// What is wrong with it, each with line, column and word; and what is unwise.
    pub fn parse(text: &str, names: &Names) -> Result<(Self, Vec<Remark>), Remarks> {
        Self::default().reload(text, names)
    }

    /// Reads a changed text of the same file. A filter of a name that was there keeps its [`FilterId`]; one that is
    /// gone stays as it was for who has its id, and is not found by name. The old set remains as it is: put the new one
    /// in its place at once, and carry the hits over with [`Hits::carried`].
    ///
    /// # Errors
    /// As [`FilterSet::parse`], and more than [`FILTERS_MAX`] filters together with those that are gone.
    pub fn reload(&self, text: &str, names: &Names) -> Result<(Self, Vec<Remark>), Remarks> {
        let (sources, mut remarks) = text::parse(text, names);
        text::advise(&sources, &mut remarks);
        let mut filters = self.filters.clone();
        let mut by_name = self.by_name.clone();
        for filter in &mut filters {
            filter.is_in_file = false;
        }
        for source in sources {
            let place = by_name.get(&source.name).map(|id| id.index());
            let line = source.line;
            let filter = Filter::new(source);
            match place {
                Some(place) => filters[place] = filter,
                None if filters.len() < FILTERS_MAX => {
                    by_name.insert(filter.name.clone(), FilterId::of(filters.len()));
                    filters.push(filter);
                }
                None => {
                    remarks.faults.push(Remark {
                        line,
                        column: 1,
                        word: filter.name,
                        message: format!(
                            "more than {FILTERS_MAX} filters with those that are gone"
                        ),
                        right: "a restart forgets those".to_owned(),
                    });
                    break;
                }
            }
        }
        if !remarks.faults.is_empty() {
            return Err(remarks);
        }
        let mut slots = 0;
        for filter in &mut filters {
            filter.first_slot = slots;
            slots += filter.lines;
        }
        let set = Self {
            filters,
            by_name,
            slots,
        };
        Ok((set, remarks.advice))
    }

    /// The filter of a Filter-Id.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<FilterId> {
        let id = *self.by_name.get(name)?;
        self.get(id)?.is_in_file.then_some(id)
    }

    /// The filter of an id that [`FilterSet::find`] gave, of this set or of one before it.
    #[must_use]
    #[inline]
    pub fn get(&self, id: FilterId) -> Option<&Filter> {
        self.filters.get(id.index())
    }

    /// All filters, with those that are not in the file any more.
    pub fn iter(&self) -> impl Iterator<Item = (FilterId, &Filter)> {
        let filters = self.filters.iter().enumerate();
        filters.map(|(index, filter)| (FilterId::of(index), filter))
    }
}

/// How often each line of each filter of a set decided. Whoever filters has one of its own, which others may read
/// meanwhile.
#[derive(Debug, Default)]
pub struct Hits {
    slots: Box<[AtomicU64]>,
}

impl Hits {
    /// None yet, for the lines of a set.
    #[must_use]
    pub fn new(set: &FilterSet) -> Self {
        Self {
            slots: (0..set.slots).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Counts a verdict of a filter of the set that these are for. One thread alone may count: the others read.
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

    /// Adds those of another who filters by the same set.
    pub fn add(&mut self, other: &Hits) {
        for (slot, more) in self.slots.iter_mut().zip(&other.slots) {
            *slot.get_mut() += more.load(Relaxed);
        }
    }

    /// The hits for the set that replaces another: a line of the same direction and text in the filter of the same name
    /// goes on counting, the n-th of equal ones as the n-th; a changed or new one begins at 0.
    #[must_use]
    pub fn carried(&self, old: &FilterSet, new: &FilterSet) -> Self {
        let hits = Self::new(new);
        for (before, now) in old.filters.iter().zip(&new.filters) {
            let mut counts: HashMap<_, VecDeque<u64>> = HashMap::new();
            for line in before.lines() {
                let count = self.of(before, line.rule);
                let of_text = counts.entry((line.direction, line.text)).or_default();
                of_text.push_back(count);
            }
            for line in now.lines() {
                let of_text = counts.get_mut(&(line.direction, line.text));
                if let Some(count) = of_text.and_then(VecDeque::pop_front) {
                    hits.slots[now.first_slot + line.rule as usize].store(count, Relaxed);
                }
            }
        }
        hits
    }
}
