//! A table whose first column takes the width that the others leave.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;

use super::Theme;

/// A column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// Its width; of the first column, the least.
    pub(super) width: u16,
    pub(super) is_right: bool,
    /// The width of the screen from which it is shown.
    pub(super) from: u16,
}

/// A column of texts.
pub(super) const fn left(title: &'static str, width: u16, from: u16) -> Column {
    Column {
        title,
        width,
        is_right: false,
        from,
    }
}

/// A column of figures.
pub(super) const fn right(title: &'static str, width: u16, from: u16) -> Column {
    Column {
        title,
        width,
        is_right: true,
        from,
    }
}

/// The columns that fit a width, each with its place.
pub(super) struct Table {
    /// Index, first cell and width.
    places: Vec<(usize, u16, u16)>,
    columns: &'static [Column],
}

impl Table {
    /// Places the columns.
    pub(super) fn new(columns: &'static [Column], width: u16) -> Self {
        let is_shown = |column: &Column| column.from <= width;
        let others: u16 = columns[1..]
            .iter()
            .filter(|column| is_shown(column))
            .map(|column| column.width + 1)
            .sum();
        let first = width.saturating_sub(others).max(columns[0].width);
        let mut places = Vec::new();
        let mut x = 0;
        for (i, column) in columns.iter().enumerate() {
            if i > 0 && !is_shown(column) {
                continue;
            }
            let wide = if i == 0 { first } else { column.width };
            places.push((i, x, wide));
            x += wide + 1;
        }
        Self { places, columns }
    }

    /// Writes the headings; that of the column `sorted` is underlined.
    pub(super) fn head(
        &self,
        buffer: &mut Buffer,
        area: Rect,
        theme: Theme,
        sorted: Option<usize>,
    ) {
        for &(i, x, width) in &self.places {
            let mut style = theme.heading();
            if sorted == Some(i) {
                style = style.add_modifier(Modifier::UNDERLINED);
            }
            let column = self.columns[i];
            cell(buffer, x, area.y, width, column, column.title, style);
        }
    }

    /// Writes a row. `style` is that of the whole line.
    pub(super) fn row(&self, buffer: &mut Buffer, y: u16, cells: &[(String, Style)], style: Style) {
        let width = buffer.area().width;
        buffer.set_style(Rect::new(0, y, width, 1), style);
        for &(i, x, wide) in &self.places {
            let (text, own) = &cells[i];
            // On a selected line, a colour of its own would be hard to read.
            let style = if style == Style::new() { *own } else { style };
            cell(buffer, x, y, wide, self.columns[i], text, style);
        }
    }
}

fn cell(buffer: &mut Buffer, x: u16, y: u16, width: u16, column: Column, text: &str, style: Style) {
    let wide = Span::raw(text).width() as u16;
    let indent = if column.is_right {
        width.saturating_sub(wide)
    } else {
        0
    };
    if x + indent < buffer.area().width {
        buffer.set_stringn(x + indent, y, text, (width - indent).into(), style);
    }
}
