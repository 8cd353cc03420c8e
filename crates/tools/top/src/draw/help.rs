//! The list of keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::Theme;
use crate::app::HELP;

pub(super) fn draw(buffer: &mut Buffer, area: Rect, theme: Theme) {
    let mut lines = vec![Line::from("")];
    for (keys, what) in HELP {
        lines.push(Line::from(vec![
            Span::styled(format!("  {keys:<18}"), theme.heading()),
            Span::raw(*what),
        ]));
    }
    lines.push(Line::styled("  Any key closes this list.", theme.dim()));
    super::lines(buffer, area, &lines, theme);
}
