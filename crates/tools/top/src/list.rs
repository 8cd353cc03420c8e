//! A list on the screen: its rows in order, a selected row, and the part that is visible.

use std::cell::Cell;

/// Where the list is scrolled to, and which row is selected. A row's `K` names it in every reading.
#[derive(Debug)]
pub(crate) struct Cursor<K> {
    /// The selected row; none: the first row is marked, whichever it is.
    selected: Option<K>,
    /// The place of the selected row in the last order, for when the row is gone.
    place: usize,
    /// Drawing knows the height, so it scrolls.
    first: Cell<usize>,
    page: Cell<usize>,
}

impl<K> Default for Cursor<K> {
    fn default() -> Self {
        Self {
            selected: None,
            place: 0,
            first: Cell::new(0),
            page: Cell::new(1),
        }
    }
}

/// A movement of the selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}

impl<K: PartialEq + Clone> Cursor<K> {
    /// The index of the selected row among `keys`. A selected row that is gone passes the selection to the row in its
    /// place.
    pub(crate) fn index(&self, keys: &[K]) -> Option<usize> {
        if keys.is_empty() {
            return None;
        }
        let found = self
            .selected
            .as_ref()
            .and_then(|wanted| keys.iter().position(|key| key == wanted));
        let fallback = self.place.min(keys.len() - 1);
        Some(match self.selected {
            None => 0,
            Some(_) => found.unwrap_or(fallback),
        })
    }

    /// Moves the selection among `keys`.
    pub(crate) fn go(&mut self, to: Move, keys: &[K]) {
        let Some(index) = self.index(keys) else {
            return;
        };
        let page = self.page.get().max(1);
        let last = keys.len() - 1;
        let next = match to {
            Move::Up => index.saturating_sub(1),
            Move::Down => (index + 1).min(last),
            Move::PageUp => index.saturating_sub(page),
            Move::PageDown => (index + page).min(last),
            Move::Home => 0,
            Move::End => last,
        };
        self.place = next;
        // The top is a place, not a row: whichever row comes first is marked.
        self.selected = (to != Move::Home).then(|| keys[next].clone());
    }

    /// Remembers the place of the selected row, after the rows changed.
    pub(crate) fn settle(&mut self, keys: &[K]) {
        if let Some(index) = self.index(keys) {
            self.place = index;
            if self.selected.is_some() {
                self.selected = Some(keys[index].clone());
            }
        }
    }

    /// The rows that are visible in `height` lines, such that the selected one is.
    pub(crate) fn visible(&self, keys: &[K], height: usize) -> std::ops::Range<usize> {
        self.page.set(height);
        let index = self.index(keys).unwrap_or(0);
        let highest = keys.len().saturating_sub(height);
        let lowest = (index + 1).saturating_sub(height);
        let first = self
            .first
            .get()
            .clamp(lowest, index.max(lowest))
            .min(highest);
        self.first.set(first);
        first..(first + height).min(keys.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(cursor: &Cursor<usize>, keys: &[usize]) -> Option<usize> {
        cursor.index(keys).map(|index| keys[index])
    }

    #[test]
    fn the_selection_follows_its_row() {
        let mut cursor = Cursor::default();
        assert_eq!(key(&cursor, &[3, 1, 2]), Some(3));
        // Nothing was moved yet, so the first row is marked, whichever it is.
        assert_eq!(key(&cursor, &[2, 3, 1]), Some(2));
        cursor.go(Move::Down, &[2, 3, 1]);
        assert_eq!(key(&cursor, &[3, 2, 1]), Some(3));
        cursor.go(Move::Home, &[3, 2, 1]);
        assert_eq!(key(&cursor, &[1, 2, 3]), Some(1));
    }

    #[test]
    fn the_row_in_its_place_is_selected_once_the_row_is_gone() {
        let mut cursor = Cursor::default();
        cursor.go(Move::Down, &[1, 2, 3]);
        cursor.settle(&[1, 3]);
        assert_eq!(key(&cursor, &[1, 3]), Some(3));
        cursor.settle(&[1]);
        assert_eq!(key(&cursor, &[1]), Some(1));
        assert_eq!(key(&cursor, &[]), None);
        cursor.go(Move::Down, &[]);
    }

    #[test]
    fn the_selected_row_is_visible() {
        let keys: Vec<usize> = (0..10).collect();
        let mut cursor = Cursor::default();
        assert_eq!(cursor.visible(&keys, 4), 0..4);
        (0..4).for_each(|_| cursor.go(Move::Down, &keys));
        assert_eq!(cursor.visible(&keys, 4), 1..5);
        cursor.go(Move::PageDown, &keys);
        assert_eq!(cursor.visible(&keys, 4), 5..9);
        cursor.go(Move::End, &keys);
        assert_eq!(cursor.visible(&keys, 4), 6..10);
        assert_eq!(cursor.visible(&keys, 20), 0..10);
        assert_eq!(cursor.visible(&[], 4), 0..0);
        cursor.go(Move::PageUp, &keys);
        assert!(cursor.visible(&keys, 0).is_empty());
    }
}
