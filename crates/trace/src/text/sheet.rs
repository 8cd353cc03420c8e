//! One statistic after the other, both directions beside each other: as two columns, or as separated values.

use core::fmt::{self, Write};

/// How statistics are laid out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Layout<'a> {
    /// A line for each, with labels and units.
    Columns,
    /// Values alone, each with this after it.
    Separated(&'a str),
}

pub(super) struct Sheet<'a> {
    out: &'a mut dyn Write,
    layout: Layout<'a>,
    /// The value to be padded.
    value: String,
}

/// Longest label, its colon included, that is printed.
const LABEL_MAX: usize = 19;

impl<'a> Sheet<'a> {
    pub(super) fn new(out: &'a mut dyn Write, layout: Layout<'a>) -> Sheet<'a> {
        let value = String::new();
        Sheet { out, layout, value }
    }

    /// Whether values alone are printed: then all of them, also those that columns leave out when they say nothing.
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
        self.value.clear();
        self.value.write_fmt(value)?;
        let value = &self.value;
        match self.layout {
            Layout::Separated(separator) => write!(self.out, "{value:>15}{separator}"),
            Layout::Columns => {
                let shown = label.len().min(LABEL_MAX - 1);
                let gap = 18usize.saturating_sub(shown + 1);
                write!(
                    self.out,
                    "     {}:{:gap$} {value:>9} {units:<5}",
                    &label[..shown],
                    ""
                )?;
                if right {
                    self.out.write_char('\n')
                } else {
                    Ok(())
                }
            }
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
        self.texts(label, units, [format_args!("{a:8}"), format_args!("{b:8}")])
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
                Some(value) => self.cell(label, units, format_args!("{value:8}"), right)?,
                None => self.cell(label, "", format_args!("NA"), right)?,
            }
        }
        Ok(())
    }

    /// A pair of times in nanoseconds, printed in milliseconds.
    pub(super) fn times(&mut self, label: &str, values: [f64; 2]) -> fmt::Result {
        let [a, b] = values.map(|time| time / 1e6);
        self.texts(
            label,
            "ms",
            [format_args!("{a:8.1}"), format_args!("{b:8.1}")],
        )
    }

    /// A pair of times in nanoseconds, either of which may be unknown, printed in milliseconds.
    pub(super) fn idle(&mut self, label: &str, values: [Option<i64>; 2]) -> fmt::Result {
        for (value, right) in values.into_iter().zip([false, true]) {
            match value.map(|time| time as f64 / 1e6) {
                Some(time) => self.cell(label, "ms", format_args!("{time:8.1}"), right)?,
                None => self.cell(label, "ms", format_args!("NA"), right)?,
            }
        }
        Ok(())
    }

    /// Octets in each direction over a length of time in nanoseconds: a rate, unless no time has passed.
    pub(super) fn throughput(&mut self, octets: [u64; 2], elapsed: i64) -> fmt::Result {
        if elapsed <= 0 {
            return self.texts("throughput", "", [format_args!("NA"), format_args!("NA")]);
        }
        let seconds = elapsed as f64 / 1e9;
        let [a, b] = octets.map(|octets| octets as f64 / seconds);
        self.texts(
            "throughput",
            "Bps",
            [format_args!("{a:8.0}"), format_args!("{b:8.0}")],
        )
    }

    /// What stands between groups of columns.
    pub(super) fn remark(&mut self, text: &str) -> fmt::Result {
        match self.layout {
            Layout::Columns => self.out.write_str(text),
            Layout::Separated(_) => Ok(()),
        }
    }
}
