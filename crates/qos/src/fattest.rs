//! Finds the longest of many queues without visiting all of them.

/// Queues in a group, and groups in a group: as many as fit a cache line.
const GROUP: usize = 16;
const SHIFT: u32 = GROUP.trailing_zeros();

/// Finds the longest of a fixed number of queues.
///
/// A tree of upper bounds. A queue that grows raises its bound and the bounds above it as far as they are lower,
/// seldom more than one level. A queue that shrinks changes nothing. [`Fattest::find`] corrects the bounds that it
/// meets on its way, so the packets that left since the last call pay for it: O(log n) amortised.
#[derive(Debug, Default)]
pub struct Fattest {
    /// From the queues up to a level of at most [`GROUP`] bounds.
    levels: Vec<Vec<u32>>,
}

impl Fattest {
    /// A tree for `queues` empty queues.
    #[must_use]
    pub fn new(queues: usize) -> Self {
        let mut levels = Vec::new();
        let mut length = queues;
        loop {
            levels.push(vec![0; length]);
            if length <= GROUP {
                return Self { levels };
            }
            length = length.div_ceil(GROUP);
        }
    }

    /// Raises the bound of a queue that grew to `size`.
    #[inline]
    pub fn raise(&mut self, queue: usize, size: u32) {
        let mut index = queue;
        for level in &mut self.levels {
            let Some(bound) = level.get_mut(index).filter(|bound| **bound < size) else {
                return;
            };
            *bound = size;
            index >>= SHIFT;
        }
    }

    /// The longest queue, the first of several; `size` returns a queue's present length. `None` if all are empty.
    pub fn find(&mut self, mut size: impl FnMut(usize) -> u32) -> Option<usize> {
        loop {
            let mut queue = 0;
            let mut bound = 0;
            for level in self.levels.iter().rev() {
                let start = queue << SHIFT;
                let end = level.len().min(start + GROUP);
                (queue, bound) = largest(&level[start..end]);
                queue += start;
            }
            if bound == 0 {
                return None;
            }
            let actual = size(queue);
            if actual >= bound {
                return Some(queue);
            }
            self.lower(queue, actual);
        }
    }

    /// Corrects a queue's bound and the bounds above it.
    fn lower(&mut self, queue: usize, size: u32) {
        let mut index = queue;
        let mut bound = size;
        for level in &mut self.levels {
            if level[index] == bound {
                return;
            }
            level[index] = bound;
            let start = index / GROUP * GROUP;
            let end = level.len().min(start + GROUP);
            bound = largest(&level[start..end]).1;
            index >>= SHIFT;
        }
    }
}

/// The first of the largest values, and its index.
fn largest(values: &[u32]) -> (usize, u32) {
    let largest = values.iter().copied().max().unwrap_or(0);
    let place = values.iter().position(|&value| value == largest);
    (place.unwrap_or(0), largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_finds_what_a_walk_finds(
            queues in 1usize..600,
            steps in prop::collection::vec((any::<prop::sample::Index>(), 0u32..50, any::<bool>()), 1..400),
        ) {
            let mut fattest = Fattest::new(queues);
            let mut sizes = vec![0u32; queues];
            for (index, size, search) in steps {
                let index = index.index(queues);
                if size > sizes[index] {
                    fattest.raise(index, size);
                }
                sizes[index] = size;
                if search {
                    let most = *sizes.iter().max().expect("not empty");
                    let walked = sizes.iter().position(|&size| size == most && size > 0);
                    prop_assert_eq!(fattest.find(|queue| sizes[queue]), walked);
                }
            }
        }
    }
}
