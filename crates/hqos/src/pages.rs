//! A list in pages: it grows without moving what it holds, so that no packet waits for a copy of a large table.

use core::ops::{Index, IndexMut};

const SHIFT: usize = 10;
/// Values in a page.
const PAGE: usize = 1 << SHIFT;

/// A list that only grows. A page has values from its start, so that an index is checked once.
#[derive(Debug)]
pub(crate) struct Pages<T> {
    pages: Vec<Box<[T; PAGE]>>,
    len: usize,
}

impl<T: Clone + Default> Pages<T> {
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
        let at = self.len % PAGE;
        if at == 0 {
            let page = vec![T::default(); PAGE].into_boxed_slice();
            self.pages.extend(page.try_into().ok());
        }
        if let Some(page) = self.pages.last_mut() {
            page[at] = value;
            self.len += 1;
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        Some(&mut self.pages.get_mut(index >> SHIFT)?[index % PAGE])
    }

    /// A value; from the end of the list to that of its page, the default.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        Some(&self.pages.get(index >> SHIFT)?[index % PAGE])
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
        assert_eq!(all.get(3 * PAGE + 1), Some(&0));
        assert_eq!(all.get(4 * PAGE), None);
        assert_eq!(all.get_mut(1 << 40), None);
    }
}
