//! A fixed number of rows of numbers; the newest replaces the oldest.

/// The last rows of so many columns. All memory is taken at the start.
#[derive(Debug)]
pub(super) struct Ring {
    cells: Box<[f32]>,
    columns: usize,
    /// The place of the next row.
    next: usize,
    /// Rows that are filled.
    filled: usize,
}

impl Ring {
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        Self {
            cells: vec![f32::NAN; rows * columns].into(),
            columns,
            next: 0,
            filled: 0,
        }
    }

    /// How many rows fit.
    pub(super) fn rows(&self) -> usize {
        self.cells.len() / self.columns
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.filled
    }

    /// The cells of a new row, to be filled. They hold old numbers.
    pub(super) fn push(&mut self) -> &mut [f32] {
        let rows = self.rows();
        let place = self.next;
        self.next = (place + 1) % rows;
        self.filled = (self.filled + 1).min(rows);
        &mut self.cells[place * self.columns..][..self.columns]
    }

    /// The numbers of a column from row `from` on, oldest first; row 0 is the oldest.
    pub(super) fn column(&self, column: usize, from: usize) -> impl Iterator<Item = f32> + '_ {
        let rows = self.rows();
        let oldest = self.next + rows - self.filled;
        (from..self.filled).map(move |row| {
            let place = (oldest + row) % rows;
            self.cells[place * self.columns + column]
        })
    }

    /// Bytes of the numbers.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rows_are_there_in_order_whatever_came_before() {
        for rows in [1, 2, 7] {
            let mut ring = Ring::new(rows, 2);
            for number in 0..20_u16 {
                ring.push()
                    .copy_from_slice(&[number.into(), -f32::from(number)]);
                let first = (usize::from(number) + 1).saturating_sub(rows);
                let expected: Vec<f32> = (first..=number.into()).map(|n| n as f32).collect();
                assert_eq!(ring.len(), expected.len());
                assert_eq!(ring.column(0, 0).collect::<Vec<_>>(), expected);
                let minus: Vec<f32> = expected.iter().map(|number| -number).collect();
                assert_eq!(ring.column(1, 0).collect::<Vec<_>>(), minus);
                assert_eq!(ring.column(0, 1).count(), expected.len() - 1);
            }
        }
    }
}
