//! Reads a running shaper or an interface's queues again and again.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use reactor::clock;

use super::model::Tree;
use super::record::{Record, What};
use super::{ask, grow, ours, text};
use crate::running::Running;
use crate::screen::{Beat, Screen};

/// Whose queues are looked at.
pub(super) enum Source {
    /// A shaper by its control socket, connected to when it is needed.
    Running(PathBuf, Option<Running>),
    /// An interface, and its filters as tc last told them.
    Interface(String, Option<Filters>),
}

/// Filters change with what they stand at only, or with nobody's help.
pub(super) struct Filters {
    /// What there was when they were asked for.
    at: Vec<(What, String)>,
    filters: Vec<Record>,
}

impl Source {
    /// What there is, and when that was in nanoseconds.
    fn look(&mut self) -> Result<(Tree, u64)> {
        let (tree, at) = match self {
            Self::Running(path, connection) => {
                let mut running = match connection.take() {
                    Some(running) => running,
                    None => Running::connect(path)?,
                };
                let run = running.show()?;
                // One that failed is not asked again.
                *connection = Some(running);
                (ours::of_run(&run), run.taken_ns)
            }
            Self::Interface(name, filters) => {
                let mut records = ask::queues(name)?;
                let at = clock::now().as_nanos();
                let there = records
                    .iter()
                    .map(|record| (record.what, record.handle.clone()));
                let there: Vec<_> = there.collect();
                let known = match filters.take() {
                    Some(known) if known.at == there => known,
                    _ => Filters {
                        at: there,
                        filters: ask::filters(name, &records)?,
                    },
                };
                records.extend(known.filters.iter().cloned());
                *filters = Some(known);
                (grow::grow(&records, name), at)
            }
        };
        super::bounded(&tree)?;
        Ok((tree, at))
    }
}

/// A source with what it told last.
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

    /// What there is, with the rates since the last look where there was one.
    ///
    /// # Errors
    /// Nobody answers; the next look is the first.
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

    /// One look without rates.
    pub(super) fn once(mut self) -> Result<Tree> {
        Ok(self.source.look()?.0)
    }

    /// Two looks, `interval` apart.
    pub(super) fn over(mut self, interval: Duration) -> Result<Tree> {
        self.look()?;
        std::thread::sleep(interval);
        self.look()
    }
}

/// Draws the tree each `every`, `count` times or until nobody looks.
///
/// # Errors
/// Nobody answers any more.
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
