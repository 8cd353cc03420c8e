//! Reads the queues of a running shaper or an interface repeatedly.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use reactor::clock;

use super::model::Tree;
use super::record::{Record, What};
use super::{ask, grow, ours, text};
use crate::apply::state::{Names, Store};
use crate::running::Running;
use cli::screen::{Beat, Screen};

/// Where the queues are read from.
pub(super) enum Source {
    /// A shaper, by its control socket. The connection is opened when needed.
    Running(PathBuf, Option<Running>),
    /// An interface, with the directory of states of `headend qos apply`, and the filters from the last query to tc.
    Interface(String, PathBuf, Option<Filters>),
}

/// Cached filters. They are queried again only when the qdiscs and classes have changed.
pub(super) struct Filters {
    /// The qdiscs and classes at the time of the query.
    at: Vec<(What, String)>,
    filters: Vec<Record>,
    /// The names of the policy that `headend qos apply` has put in force.
    names: Option<Names>,
}

impl Filters {
    /// Queries the filters that count packets again, those with actions.
    fn with_counters(mut self, interface: &str) -> Result<Self> {
        let counted = self
            .filters
            .iter()
            .filter(|filter| filter.numbers.is_some());
        let parents: BTreeSet<String> = counted.filter_map(|it| it.parent.clone()).collect();
        let mut order: Vec<Option<String>> = Vec::new();
        for filter in &self.filters {
            if order.last() != Some(&filter.parent) {
                order.push(filter.parent.clone());
            }
        }
        self.filters.retain(|filter| {
            let parent = filter.parent.as_ref();
            parent.is_none_or(|parent| !parents.contains(parent))
        });
        self.filters.extend(ask::filters_at(interface, parents)?);
        self.filters
            .sort_by_key(|filter| order.iter().position(|parent| *parent == filter.parent));
        Ok(self)
    }
}

impl Source {
    /// The current tree, and the time of the reading in nanoseconds.
    fn look(&mut self) -> Result<(Tree, u64)> {
        let (tree, at) = match self {
            Self::Running(path, connection) => {
                let mut running = match connection.take() {
                    Some(running) => running,
                    None => Running::connect(path)?,
                };
                let run = running.show()?;
                // A connection that failed is not reused.
                *connection = Some(running);
                (ours::of_run(&run), run.taken_ns)
            }
            Self::Interface(name, states, filters) => {
                let mut records = ask::queues(name)?;
                let at = clock::now().as_nanos();
                let there = records
                    .iter()
                    .map(|record| (record.what, record.handle.clone()));
                let there: Vec<_> = there.collect();
                let known = match filters.take() {
                    Some(known) if known.at == there => known.with_counters(name)?,
                    _ => Filters {
                        at: there,
                        filters: ask::filters(name, &records)?,
                        names: Store::new(states)?.names(name),
                    },
                };
                records.extend(known.filters.iter().cloned());
                if let Some(names) = &known.names {
                    records
                        .iter_mut()
                        .for_each(|record| record.take_name(names));
                }
                *filters = Some(known);
                (grow::grow(&records, name), at)
            }
        };
        super::bounded(&tree)?;
        Ok((tree, at))
    }
}

/// A source and its previous reading.
pub(super) struct Watcher {
    source: Source,
    before: Option<(Tree, u64)>,
}

impl Watcher {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            before: None,
        }
    }

    /// Takes a reading, with the rates since the previous reading if there was one.
    ///
    /// # Errors
    /// The source does not answer. The next reading then has no rates.
    pub(super) fn look(&mut self) -> Result<Tree> {
        let before = self.before.take();
        let (mut tree, at) = self.source.look()?;
        tree.has_rates = true;
        self.before = Some((tree.clone(), at));
        if let Some((before, was)) = before {
            tree.since(&before, at.saturating_sub(was));
        }
        Ok(tree)
    }

    /// Drops the previous reading: the next one has no rates.
    pub(super) fn forget(&mut self) {
        self.before = None;
    }

    /// Takes one reading, without rates.
    pub(super) fn once(mut self) -> Result<Tree> {
        Ok(self.source.look()?.0)
    }

    /// Takes two readings, `interval` apart, and returns the second with rates.
    pub(super) fn over(mut self, interval: Duration) -> Result<Tree> {
        self.look()?;
        std::thread::sleep(interval);
        self.look()
    }
}

/// Draws the tree every `every`, `count` times or until the output is closed.
///
/// # Errors
/// The source no longer answers, or the output is closed.
pub(super) fn draw(mut watcher: Watcher, every: Duration, count: Option<u64>) -> Result<()> {
    let mut screen = Screen::new();
    let mut beat = Beat::new(every);
    let mut drawn = 0;
    watcher.look()?;
    while count.is_none_or(|count| drawn < count) {
        beat.wait();
        let tree = watcher.look()?;
        screen.show(&format!(
            "{}: {}\n{}",
            tree.title,
            tree.state,
            text::terminal(&tree)
        ))?;
        drawn += 1;
    }
    Ok(())
}
