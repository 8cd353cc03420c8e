//! Values per interval of time. If there are too many, the width of the intervals doubles, so that the list stays short
//! and nothing is lost but detail.

/// Values that can be joined.
pub trait Merge: Clone + Default {
    /// Adds the value of a later interval, or of the same one.
    fn merge(&mut self, other: &Self);
}

/// Values by interval. Intervals without any have no entry. They begin at multiples of their width since 1970.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Folding<T> {
    pub(super) width: i64,
    pub(super) limit: usize,
    /// Number of each interval, in order, and its value.
    pub(super) list: Vec<(i64, T)>,
}

impl<T: Merge> Folding<T> {
    /// No values, in intervals of `width` nanoseconds. Their width doubles when there are more than `limit`.
    #[must_use]
    pub fn new(width: i64, limit: usize) -> Folding<T> {
        Folding {
            width: width.max(1),
            limit: limit.max(2),
            list: Vec::new(),
        }
    }

    /// Width of an interval, in nanoseconds.
    #[must_use]
    pub fn width(&self) -> i64 {
        self.width
    }

    /// How many intervals have a value.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Start of each interval, in nanoseconds since 1970, and its value.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &T)> {
        let width = self.width;
        let list = self.list.iter();
        list.map(move |(number, value)| (number.saturating_mul(width), value))
    }

    /// Adds a value at that time, in nanoseconds since 1970.
    pub fn add(&mut self, time: i64, value: &T) {
        let number = time.div_euclid(self.width);
        let at = match self.list.last() {
            // Time stamps rarely run backwards.
            Some((last, _)) if *last == number => Ok(self.list.len() - 1),
            Some((last, _)) if *last < number => Err(self.list.len()),
            None => Err(0),
            _ => self.list.binary_search_by_key(&number, |entry| entry.0),
        };
        match at {
            Ok(at) => self.list[at].1.merge(value),
            Err(at) => {
                let mut new = T::default();
                new.merge(value);
                self.list.insert(at, (number, new));
            }
        }
        while self.list.len() > self.limit {
            self.fold();
        }
    }

    /// Doubles the width of the intervals.
    #[cold]
    pub(super) fn fold(&mut self) {
        self.width = self.width.saturating_mul(2);
        for (number, _) in &mut self.list {
            *number = number.div_euclid(2);
        }
        self.list.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1.merge(&later.1);
            }
            same
        });
    }
}
