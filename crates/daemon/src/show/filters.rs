//! Rows of filters and of their rules.

use filter::{Direction, Filter};

use super::{Rows, Step};
use crate::core::Core;
use control::rows;

/// Lines per step. Continuing from a line costs a walk over the lines before it.
const LINES: usize = 256;

/// The filter at the cursor.
pub(super) fn next(core: &Core, cursor: u32, out: &mut Rows) -> Step {
    let filters = core.edge.filters();
    let Some((_, filter)) = filters.set().iter().nth(cursor as usize) else {
        return Step::End;
    };
    let hits = |accept| {
        let lines = filter.lines().filter(|line| line.accept == accept);
        lines.map(|line| filters.hits(filter, line.rule)).sum()
    };
    out.push(&rows::Filter {
        schema: rows::Filter::SCHEMA,
        name: filter.name(),
        line: filter.line(),
        in_file: filter.is_in_file(),
        rules_in: rules(filter, Direction::In),
        rules_out: rules(filter, Direction::Out),
        accepted: hits(true),
        denied: hits(false),
    });
    Step::From(cursor + 1)
}

fn rules(filter: &Filter, direction: Direction) -> Option<usize> {
    filter
        .is_filtered(direction)
        .then(|| filter.rules(direction).len())
}

/// Lines of a filter from the cursor on.
pub(super) fn lines(core: &Core, name: &str, cursor: u32, out: &mut Rows) -> Step {
    let filters = core.edge.filters();
    let found = filters.set().find(name);
    let Some(filter) = found.and_then(|id| filters.set().get(id)) else {
        return Step::End;
    };
    let before = out.count;
    for line in filter.lines().skip(cursor as usize).take(LINES) {
        push(filter, &line, filters.hits(filter, line.rule), out);
    }
    match (out.count - before) as usize {
        LINES => Step::From(cursor + LINES as u32),
        _ => Step::End,
    }
}

fn push(filter: &Filter, line: &filter::Line, hits: u64, out: &mut Rows) {
    out.push(&rows::FilterLine {
        schema: rows::FilterLine::SCHEMA,
        filter: filter.name(),
        direction: &line.direction,
        rule: line.rule,
        line: (line.line > 0).then_some(line.line),
        text: line.text,
        accept: line.accept,
        log: line.log,
        hits,
    });
}
