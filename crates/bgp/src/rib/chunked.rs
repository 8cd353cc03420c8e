//! Arrays in chunks that never move. Growing copies nothing beyond the first chunk, which alone starts small.

use std::ops::{Index, IndexMut};

/// Values in a chunk; the first chunk may be shorter.
const CHUNK: usize = 4_096;

/// An array by `u32` index.
#[derive(Debug)]
pub(crate) struct Chunked<T> {
    chunks: Vec<Vec<T>>,
}

impl<T> Chunked<T> {
    pub(crate) const fn new() -> Self {
        Chunked { chunks: Vec::new() }
    }

    pub(crate) fn len(&self) -> u32 {
        let last = self.chunks.last().map_or(0, Vec::len);
        (self.chunks.len().saturating_sub(1) * CHUNK + last) as u32
    }

    /// Memory held, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let values: usize = self.chunks.iter().map(Vec::capacity).sum();
        values * size_of::<T>() + self.chunks.capacity() * size_of::<Vec<T>>()
    }

    /// Appends a value and returns its index.
    #[inline]
    pub(crate) fn push(&mut self, value: T) -> u32 {
        let index = self.len();
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(value),
            None => self.chunks.push(vec![value]),
            Some(_) => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(value);
                self.chunks.push(chunk);
            }
        }
        index
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let index = index as usize;
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    /// Removes the last chunk of values and returns it.
    pub(crate) fn pop_chunk(&mut self) -> Option<Vec<T>> {
        self.chunks.pop()
    }

    /// All values from `first` on, in contiguous runs, each with the index of its first value.
    pub(crate) fn runs_from(&self, first: u32) -> impl Iterator<Item = (u32, &[T])> {
        let skipped = first as usize / CHUNK;
        let offset = first as usize % CHUNK;
        self.chunks
            .iter()
            .enumerate()
            .skip(skipped)
            .map(move |(number, chunk)| {
                let begin = if number == skipped {
                    offset.min(chunk.len())
                } else {
                    0
                };
                ((number * CHUNK + begin) as u32, &chunk[begin..])
            })
    }
}

impl<T: Copy> Chunked<T> {
    /// Grows the array to at least `len` values.
    pub(crate) fn grow(&mut self, len: u32, value: T) {
        while self.len() < len {
            let left = (len - self.len()) as usize;
            match self.chunks.last_mut() {
                Some(chunk) if chunk.len() < CHUNK => {
                    chunk.resize(CHUNK.min(chunk.len() + left), value);
                }
                // Only the first chunk starts small.
                None if left < CHUNK => self.chunks.push(vec![value; left]),
                Some(_) | None => {
                    let mut chunk = Vec::with_capacity(CHUNK);
                    chunk.resize(CHUNK.min(left), value);
                    self.chunks.push(chunk);
                }
            }
        }
    }

    /// Appends `count` contiguous values. `count` has to divide the length of a chunk.
    pub(crate) fn push_block(&mut self, count: usize, value: T) -> u32 {
        debug_assert!(CHUNK.is_multiple_of(count));
        let first = self.len();
        for _ in 0..count {
            self.push(value);
        }
        first
    }

    /// The block of `count` values that starts there.
    #[inline]
    pub(crate) fn block(&self, first: u32, count: usize) -> &[T] {
        let offset = first as usize % CHUNK;
        &self.chunks[first as usize / CHUNK][offset..offset + count]
    }

    #[inline]
    pub(crate) fn block_mut(&mut self, first: u32, count: usize) -> &mut [T] {
        let offset = first as usize % CHUNK;
        &mut self.chunks[first as usize / CHUNK][offset..offset + count]
    }
}

impl<T> Index<u32> for Chunked<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}

impl<T> IndexMut<u32> for Chunked<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_they_were_put_over_several_chunks() {
        let mut array = Chunked::new();
        for n in 0..3 * CHUNK as u32 + 5 {
            assert_eq!(array.push(n), n);
        }
        assert_eq!(array.len(), 3 * CHUNK as u32 + 5);
        assert!((0..array.len()).all(|n| array[n] == n));
        assert_eq!(array.get(array.len()), None);
        let tail: Vec<u32> = array
            .runs_from(CHUNK as u32 + 3)
            .flat_map(|(first, run)| {
                assert_eq!(run.first().copied().unwrap_or(first), first);
                run.to_vec()
            })
            .collect();
        assert_eq!(tail, (CHUNK as u32 + 3..array.len()).collect::<Vec<_>>());
        assert_eq!(array.runs_from(array.len()).flat_map(|(_, r)| r).count(), 0);
    }

    #[test]
    fn a_block_never_crosses_a_chunk() {
        let mut array = Chunked::new();
        for n in 0..4 * CHUNK as u32 / 64 {
            let first = array.push_block(64, n);
            assert_eq!(array.block(first, 64), [n; 64]);
            array.block_mut(first, 64)[63] = 7;
            assert_eq!(array[first + 63], 7);
        }
    }
}
