//! Lays out pairs of statistics, one for each direction: as two columns, or as separated values.

use super::digits::Digits;
use core::fmt::{self, Write};

/// The layout.
#[derive(Debug, Clone, Copy)]
pub(super) enum Layout<'a> {
    /// A line for each, with labels and units.
    Columns,
    /// Only values, each followed by this separator.
    Separated(&'a str),
}

pub(super) struct Sheet<'a> {
    out: &'a mut dyn Write,
    layout: Layout<'a>,
    /// The value to be padded, where it is no plain number.
    value: String,
    /// The line so far.
    line: String,
}

/// As many spaces as are ever wanted.
const SPACES: &str = "                    ";

/// `count` spaces.
fn spaces(count: usize) -> &'static str {
    &SPACES[..count.min(SPACES.len())]
}

/// Longest label, its colon included, that is printed.
const LABEL_MAX: usize = 19;

impl<'a> Sheet<'a> {
    pub(super) fn new(out: &'a mut dyn Write, layout: Layout<'a>) -> Sheet<'a> {
        Sheet {
            out,
            layout,
            value: String::new(),
            line: String::with_capacity(128),
        }
    }

    /// Whether only values are printed: then all of them, also those that columns omit if they are 0.
    pub(super) fn is_separated(&self) -> bool {
        matches!(self.layout, Layout::Separated(_))
    }

    /// One value of a pair: the left one, then the right one.
    fn cell(
        &mut self,
        label: &str,
        units: &str,
        value: fmt::Arguments<'_>,
        right: bool,
    ) -> fmt::Result {
        let mut text = core::mem::take(&mut self.value);
        text.clear();
        text.write_fmt(value)?;
        let done = self.plain(label, units, &text, right);
        self.value = text;
        done
    }

    /// The same of a text.
    fn plain(&mut self, label: &str, units: &str, value: &str, right: bool) -> fmt::Result {
        let line = &mut self.line;
        match self.layout {
            Layout::Separated(separator) => {
                line.push_str(spaces(15usize.saturating_sub(value.len())));
                line.push_str(value);
                line.push_str(separator);
            }
            Layout::Columns => {
                let shown = label.len().min(LABEL_MAX - 1);
                line.push_str("     ");
                line.push_str(&label[..shown]);
                line.push(':');
                line.push_str(spaces(18usize.saturating_sub(shown + 1) + 1));
                line.push_str(spaces(9usize.saturating_sub(value.len())));
                line.push_str(value);
                line.push(' ');
                line.push_str(units);
                line.push_str(spaces(5usize.saturating_sub(units.len())));
                if right {
                    line.push('\n');
                }
            }
        }
        if right {
            self.out.write_str(&self.line)?;
            self.line.clear();
        }
        Ok(())
    }

    /// A number with the given decimals, padded to the width of its column.
    fn fixed(
        &mut self,
        label: &str,
        units: &str,
        (value, decimals): (f64, usize),
        right: bool,
    ) -> fmt::Result {
        match Digits::new().fixed(value, decimals) {
            Some(text) => self.plain(label, units, text, right),
            None => self.cell(label, units, format_args!("{value:.decimals$}"), right),
        }
    }

    /// A pair of values that are printed as they are.
    pub(super) fn texts(
        &mut self,
        label: &str,
        units: &str,
        values: [fmt::Arguments<'_>; 2],
    ) -> fmt::Result {
        self.cell(label, units, values[0], false)?;
        self.cell(label, units, values[1], true)
    }

    /// A pair of counts.
    pub(super) fn counts<T: Into<u64>>(
        &mut self,
        label: &str,
        units: &str,
        values: [T; 2],
    ) -> fmt::Result {
        let [a, b] = values.map(Into::into);
        self.plain(label, units, Digits::new().whole(a), false)?;
        self.plain(label, units, Digits::new().whole(b), true)
    }

    /// A pair of numbers with the given decimals, up to 3.
    pub(super) fn decimals(
        &mut self,
        label: &str,
        units: &str,
        values: [f64; 2],
        decimals: usize,
    ) -> fmt::Result {
        self.fixed(label, units, (values[0], decimals), false)?;
        self.fixed(label, units, (values[1], decimals), true)
    }

    /// A pair of counts, either of which may be unknown.
    pub(super) fn known(
        &mut self,
        label: &str,
        units: &str,
        values: [Option<u64>; 2],
    ) -> fmt::Result {
        for (value, right) in values.into_iter().zip([false, true]) {
            match value {
                Some(value) => self.plain(label, units, Digits::new().whole(value), right)?,
                None => self.plain(label, "", "NA", right)?,
            }
        }
        Ok(())
    }

    /// A pair of times in nanoseconds, printed in milliseconds.
    pub(super) fn times(&mut self, label: &str, values: [f64; 2]) -> fmt::Result {
        self.decimals(label, "ms", values.map(|time| time / 1e6), 1)
    }

    /// A pair of times in nanoseconds, either of which may be unknown, printed in milliseconds.
    pub(super) fn idle(&mut self, label: &str, values: [Option<i64>; 2]) -> fmt::Result {
        for (value, right) in values.into_iter().zip([false, true]) {
            match value.map(|time| time as f64 / 1e6) {
                Some(time) => self.fixed(label, "ms", (time, 1), right)?,
                None => self.plain(label, "ms", "NA", right)?,
            }
        }
        Ok(())
    }

    /// Bytes in each direction over a duration in nanoseconds: a rate, unless the duration is 0.
    pub(super) fn throughput(&mut self, octets: [u64; 2], elapsed: i64) -> fmt::Result {
        if elapsed <= 0 {
            return self.texts("throughput", "", [format_args!("NA"), format_args!("NA")]);
        }
        let seconds = elapsed as f64 / 1e9;
        let rates = octets.map(|octets| octets as f64 / seconds);
        self.decimals("throughput", "Bps", rates, 0)
    }

    /// Writes a remark between groups of columns.
    pub(super) fn remark(&mut self, text: &str) -> fmt::Result {
        match self.layout {
            Layout::Columns => self.out.write_str(text),
            Layout::Separated(_) => Ok(()),
        }
    }
}
