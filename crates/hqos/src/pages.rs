//! A list in pages: it grows without moving what it holds, so that no packet waits for a copy of a large table.

use core::ops::{Index, IndexMut};

const SHIFT: usize = 10;
/// Values in a page.
const PAGE: usize = 1 << SHIFT;

/// A list that only grows.
#[derive(Debug)]
pub(crate) struct Pages<T> {
    pages: Vec<Vec<T>>,
    len: usize,
}

impl<T> Pages<T> {
    pub(crate) fn new() -> Self {
        Self {
            pages: Vec::new(),
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, value: T) {
        if self.len.is_multiple_of(PAGE) {
            self.pages.push(Vec::with_capacity(PAGE));
        }
        if let Some(page) = self.pages.last_mut() {
            page.push(value);
            self.len += 1;
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.pages.get_mut(index >> SHIFT)?.get_mut(index % PAGE)
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.pages.get(index >> SHIFT)?.get(index % PAGE)
    }
}

impl<T> Index<usize> for Pages<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.pages[index >> SHIFT][index % PAGE]
    }
}

impl<T> IndexMut<usize> for Pages<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.pages[index >> SHIFT][index % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_on_every_page() {
        let mut all = Pages::new();
        (0..3 * PAGE + 1).for_each(|n| all.push(n));
        assert_eq!(all.len(), 3 * PAGE + 1);
        all[PAGE] = 7;
        assert_eq!(
            (all[PAGE - 1], all[PAGE], all[3 * PAGE]),
            (PAGE - 1, 7, 3 * PAGE)
        );
        assert_eq!(all.get(3 * PAGE + 1), None);
        assert_eq!(all.get_mut(1 << 40), None);
    }
}
