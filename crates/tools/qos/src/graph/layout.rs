//! Positions of the boxes: a parent is to the left of its children, in columns, and many leaves of one node form a
//! grid. No two boxes overlap.

use super::model::{Kind, Tree};
use crate::printable;

/// Width of a character of the monospaced face, in hundredths of a pixel at 12 pixels.
const CHARACTER: u32 = 735;
/// Pixels of a line of text.
pub(super) const LINE: u32 = 16;
/// Pixels between text and border.
pub(super) const PAD: u32 = 9;
/// Pixels between columns.
const BETWEEN: u32 = 64;
/// Pixels between columns when the lines show rates, and in grids.
const BETWEEN_RATES: u32 = 156;
const GRID_BETWEEN: u32 = 24;
const GRID_BETWEEN_RATES: u32 = 108;
/// Characters reserved for a line whose number changes.
const SLOT_CHARACTERS: usize = 30;
/// The same in a fold, which names a node.
const FOLD_CHARACTERS: usize = 38;
/// Pixels of the rates of the last minutes: the curve, and the axis of time below it.
pub(super) const CURVE: u32 = 26;
pub(super) const AXIS: u32 = 14;
/// Vertical pixels between boxes.
const GAP: u32 = 16;
/// Maximum characters in a line; longer text is wrapped.
const CHARACTERS_MAX: usize = 38;
/// Maximum lines in a box; the tooltip shows the rest.
const LINES_MAX: usize = 9;
/// Number of sibling leaves from which they are arranged in a grid.
pub(super) const GRID_FROM: usize = 12;

/// A box and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    /// The first is the title.
    pub(super) lines: Vec<String>,
    /// Number of trailing `lines` whose text is updated live.
    pub(super) slots: usize,
    /// Whether the box is in a grid behind the first column, so that its line has to enter from above.
    pub(super) is_inner: bool,
}

/// The boxes of a picture, one per node, and the picture's size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) places: Vec<Place>,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// Cuts a line whose text changes to the space that is reserved for it.
pub(super) fn cut(line: &mut String) {
    if line.chars().count() > FOLD_CHARACTERS {
        let kept: String = line.chars().take(FOLD_CHARACTERS - 1).collect();
        *line = kept + "\u{2026}";
    }
}

/// Computes the layout of `tree` below a heading of `top` pixels.
pub(super) fn lay_out(tree: &Tree, top: u32) -> Layout {
    let children = tree.children();
    let mut places: Vec<Place> = (0..tree.nodes.len()).map(|id| sized(tree, id)).collect();
    let order = parents_first(tree, &children);
    let (between, grid_between) = between(tree);
    let left = left_edges(&order, &places, between);
    let grids: Vec<Option<usize>> = children
        .iter()
        .map(|below| nodes_across(below, &children))
        .collect();
    let heights = heights(&order, &children, &grids, &places);
    // The vertical band of each node: the space for the node and all its descendants.
    let mut bands = vec![0; places.len()];
    let mut at = top;
    for root in tree.roots() {
        bands[root] = at;
        at += heights[root] + 2 * GAP;
    }
    for (id, depth) in order {
        places[id].x = places[id].x.max(left[depth]);
        let below = &children[id];
        match grids[id] {
            Some(across) => {
                let corner = (left[depth + 1], bands[id]);
                grid(below, (across, grid_between), corner, &mut places);
            }
            None => {
                let sum: u32 = below.iter().map(|child| heights[*child] + GAP).sum();
                let sum = sum.saturating_sub(GAP);
                let mut y = bands[id] + (heights[id] - sum.min(heights[id])) / 2;
                for child in below {
                    bands[*child] = y;
                    y += heights[*child] + GAP;
                }
            }
        }
        if !places[id].is_inner && places[id].y == 0 {
            places[id].y = bands[id] + (heights[id] - places[id].height) / 2;
        }
    }
    let width = places.iter().map(|place| place.x + place.width).max();
    let height = places.iter().map(|place| place.y + place.height).max();
    Layout {
        width: width.unwrap_or(0) + 40,
        height: height.unwrap_or(0) + 24,
        places,
    }
}

/// Pixels between columns, and between the boxes of a grid.
pub(super) fn between(tree: &Tree) -> (u32, u32) {
    match tree.has_rates {
        true => (BETWEEN_RATES, GRID_BETWEEN_RATES),
        false => (BETWEEN, GRID_BETWEEN),
    }
}

/// All nodes with their depths, each after its parent.
fn parents_first(tree: &Tree, children: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let mut order = Vec::with_capacity(children.len());
    let mut open: Vec<(usize, usize)> = tree.roots().iter().map(|root| (*root, 0)).collect();
    open.reverse();
    while let Some((id, depth)) = open.pop() {
        order.push((id, depth));
        open.extend(children[id].iter().rev().map(|child| (*child, depth + 1)));
    }
    order
}

/// The left edge of each column, and that of one column more.
fn left_edges(order: &[(usize, usize)], places: &[Place], between: u32) -> Vec<u32> {
    let mut columns: Vec<u32> = Vec::new();
    for (id, depth) in order {
        if columns.len() <= *depth {
            columns.push(0);
        }
        columns[*depth] = columns[*depth].max(places[*id].width);
    }
    let mut left = vec![24];
    for width in columns {
        left.push(left[left.len() - 1] + width + between);
    }
    left
}

/// How many nodes a row of the grid of `below` has; `None` if they form no grid.
fn nodes_across(below: &[usize], children: &[Vec<usize>]) -> Option<usize> {
    let is_grid = below.len() >= GRID_FROM && below.iter().all(|child| children[*child].is_empty());
    is_grid.then(|| (1..).find(|n| n * n * 3 >= below.len()).unwrap_or(1))
}

/// The height that each node takes together with its descendants.
fn heights(
    order: &[(usize, usize)],
    children: &[Vec<usize>],
    grids: &[Option<usize>],
    places: &[Place],
) -> Vec<u32> {
    let mut heights = vec![0; places.len()];
    for (id, _) in order.iter().rev() {
        let below = &children[*id];
        let sum = match grids[*id] {
            Some(across) => below
                .chunks(across)
                .map(|row| tallest(row, places) + GAP)
                .sum::<u32>(),
            None => below.iter().map(|child| heights[*child] + GAP).sum(),
        };
        heights[*id] = places[*id].height.max(sum.saturating_sub(GAP));
    }
    heights
}

fn tallest(row: &[usize], places: &[Place]) -> u32 {
    let heights = row.iter().map(|id| places[*id].height);
    heights.max().unwrap_or(0)
}

/// Places `nodes` in rows of `across`, `between` pixels apart.
fn grid(
    nodes: &[usize],
    (across, between): (usize, u32),
    (x, y): (u32, u32),
    places: &mut [Place],
) {
    let width = nodes.iter().map(|id| places[*id].width).max().unwrap_or(0);
    let mut down = 0;
    for row in nodes.chunks(across) {
        let height = tallest(row, places);
        let mut right = x;
        for (at, id) in row.iter().enumerate() {
            places[*id].x = right;
            places[*id].y = y + down;
            places[*id].is_inner = at > 0;
            right += width + between;
        }
        down += height + GAP;
    }
}

fn sized(tree: &Tree, id: usize) -> Place {
    let node = &tree.nodes[id];
    let mut lines = wrapped(&node.title);
    let own = node.lines.iter().flat_map(|line| wrapped(line));
    lines.extend(own);
    if lines.len() > LINES_MAX {
        lines.truncate(LINES_MAX - 1);
        lines.push("\u{2026}".to_owned());
    }
    let before = lines.len();
    let slots = match node.numbers {
        Some(_) if tree.has_rates || node.worst.is_some() => {
            let mut slots = node.slots();
            slots.iter_mut().for_each(cut);
            lines.extend(slots);
            lines.len() - before
        }
        numbers => {
            let words = numbers.and_then(|numbers| numbers.words());
            lines.extend(words.iter().flat_map(|words| wrapped(words)));
            0
        }
    };
    let mut longest = lines
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0);
    if slots > 0 {
        longest = longest.max(match node.kind {
            Kind::Fold => FOLD_CHARACTERS,
            _ => SLOT_CHARACTERS,
        });
    }
    if node.is_default || node.kind == Kind::Fold {
        // The word is at the right end of the title's line.
        longest = longest.max(lines[0].chars().count() + 9);
    }
    let longest = u32::try_from(longest).unwrap_or(u32::MAX / CHARACTER);
    let rows = u32::try_from(lines.len()).unwrap_or(u32::MAX / LINE);
    let past = match tree.has_past && node.has_past() {
        true => CURVE + AXIS,
        false => 0,
    };
    let tip = if node.kind == Kind::Filter { 4 } else { 0 };
    Place {
        x: 0,
        y: 0,
        width: (longest * CHARACTER / 100 + 2 * PAD + tip).max(60),
        height: rows * LINE + 2 * PAD - 4 + past,
        lines,
        slots,
        is_inner: false,
    }
}

/// Wraps `text` into lines that fit, between words and after commas where possible.
fn wrapped(text: &str) -> Vec<String> {
    let text = printable(text);
    let mut lines = Vec::new();
    let mut line = String::new();
    let words = text.split_whitespace();
    let pieces = words.flat_map(|word| {
        let pieces = word.split_inclusive(',').enumerate();
        pieces.map(|(at, piece)| (at == 0, piece))
    });
    for (begins_word, piece) in pieces {
        let mut piece: Vec<char> = piece.chars().collect();
        let space = usize::from(begins_word && !line.is_empty());
        if !line.is_empty() && line.chars().count() + space + piece.len() > CHARACTERS_MAX {
            lines.push(core::mem::take(&mut line));
        } else if space > 0 {
            line.push(' ');
        }
        while piece.len() > CHARACTERS_MAX {
            let rest = piece.split_off(CHARACTERS_MAX);
            lines.push(piece.into_iter().collect());
            piece = rest;
        }
        line.extend(piece);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}
