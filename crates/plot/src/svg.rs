//! The SVG text itself: elements, colours, markers, and room for words.
//!
//! Colours are written as attributes, so that any viewer shows the light
//! scheme; the style sheet only overrides them where the dark one is wanted.

use std::fmt::Write as _;

/// Light and dark colour of each index: Okabe and Ito's, with a grey for their yellow.
pub(crate) const PALETTE: [(&str, &str); 8] = [
    ("#0072b2", "#4fa8e0"),
    ("#d55e00", "#f5853f"),
    ("#009e73", "#2cc598"),
    ("#e69f00", "#f2b632"),
    ("#cc79a7", "#dd92bf"),
    ("#56b4e9", "#8fd0f5"),
    ("#000000", "#f2f2f2"),
    ("#777777", "#a0a0a0"),
];

/// Looks that series have: each colour with a full marker, then each with a hollow one and another dash.
pub(crate) const LOOKS: usize = 2 * PALETTE.len();

/// What the dark scheme and a page need; each line overrides one class of attribute.
pub(crate) const STYLE_SHEET: &str = "\
.hc{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',Arial,sans-serif}
@media screen and (prefers-color-scheme:dark){
.hc .ground{fill:#16191d}.hc .text{fill:#e8e8e8}.hc .muted{fill:#b4b9c0}
.hc .grid{stroke:#343a41}.hc .axis{stroke:#8b939c}.hc .hollow{fill:#16191d}.hc .halo{stroke:#16191d}
.hc .s0{stroke:#4fa8e0}.hc .f0{fill:#4fa8e0}.hc .s1{stroke:#f5853f}.hc .f1{fill:#f5853f}
.hc .s2{stroke:#2cc598}.hc .f2{fill:#2cc598}.hc .s3{stroke:#f2b632}.hc .f3{fill:#f2b632}
.hc .s4{stroke:#dd92bf}.hc .f4{fill:#dd92bf}.hc .s5{stroke:#8fd0f5}.hc .f5{fill:#8fd0f5}
.hc .s6{stroke:#f2f2f2}.hc .f6{fill:#f2f2f2}.hc .s7{stroke:#a0a0a0}.hc .f7{fill:#a0a0a0}
}
";

/// Where a text's `x` is.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text is set.
#[derive(Clone, Copy)]
pub(crate) struct Font {
    pub(crate) size: f64,
    pub(crate) bold: bool,
    pub(crate) muted: bool,
}

impl Font {
    pub(crate) const fn plain(size: f64) -> Self {
        Self {
            size,
            bold: false,
            muted: false,
        }
    }

    pub(crate) const fn bold(size: f64) -> Self {
        Self {
            bold: true,
            ..Self::plain(size)
        }
    }

    pub(crate) const fn muted(size: f64) -> Self {
        Self {
            muted: true,
            ..Self::plain(size)
        }
    }

    /// An estimate, on the wide side, of how many user units `text` takes.
    pub(crate) fn width(self, text: &str) -> f64 {
        let ems: f64 = text.chars().map(ems).sum();
        ems * self.size * if self.bold { 1.08 } else { 1.0 }
    }

    /// `text` broken into lines of at most `width` user units, between words where that is possible.
    pub(crate) fn wrap(self, text: &str, width: f64) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            if let Some(line) = lines.last_mut()
                && self.width(line) + self.width(" ") + self.width(word) <= width
            {
                line.push(' ');
                line.push_str(word);
                continue;
            }
            let mut line = String::new();
            for c in word.chars() {
                if !line.is_empty() && self.width(&line) + ems(c) * self.size > width {
                    lines.push(std::mem::take(&mut line));
                }
                line.push(c);
            }
            lines.push(line);
        }
        lines
    }
}

/// A character's width in ems, after DejaVu Sans, the widest of the usual fonts.
fn ems(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' | '|' | '.' | ',' | ':' | ';' | '!' | ' ' | 'I' => 0.32,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 0.4,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.95,
        c if c.is_ascii_uppercase() => 0.7,
        c if c.is_ascii() => 0.61,
        c if (c as u32) < 0x2E80 => 0.7,
        _ => 1.0,
    }
}

/// `text` safe as SVG or HTML content and as an attribute's value.
///
/// Characters that XML 1.0 forbids become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            '\u{FFFE}' | '\u{FFFF}' => out.push('\u{FFFD}'),
            c if c.is_control() => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// A picture being written, from the top down.
pub(crate) struct Svg {
    body: String,
    pub(crate) width: f64,
    /// How far down the picture reaches so far.
    pub(crate) y: f64,
    /// Where plots begin at least, so that several align.
    pub(crate) frame_left: f64,
    /// The most that a plot is high.
    pub(crate) frame_tall: f64,
}

impl Svg {
    pub(crate) fn new(width: f64) -> Self {
        Self {
            body: String::new(),
            width: width.clamp(200.0, 4000.0),
            y: 14.0,
            frame_left: 0.0,
            frame_tall: 420.0,
        }
    }

    /// Appends an element as it stands.
    pub(crate) fn raw(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// Appends what another picture of the same size holds, over what is there.
    pub(crate) fn append(&mut self, other: Svg) {
        self.body.push_str(&other.body);
    }

    pub(crate) fn text(&mut self, x: f64, y: f64, anchor: Anchor, font: Font, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = if font.bold {
            " font-weight=\"600\""
        } else {
            ""
        };
        let (class, fill) = if font.muted {
            ("muted", "#55595f")
        } else {
            ("text", "#1b1d20")
        };
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" fill=\"{fill}\" x=\"{x:.1}\" y=\"{y:.1}\" \
             font-size=\"{}\"{anchor}{weight}>{}</text>",
            font.size,
            escape(text),
        );
    }

    /// The title and the subtitle of a picture, with `gap` below.
    pub(crate) fn heading(&mut self, title: &str, subtitle: &str, gap: f64) {
        let size = if self.width < 600.0 { 16.0 } else { 18.0 };
        self.paragraph(16.0, Font::bold(size), title);
        self.y += 3.0;
        self.paragraph(16.0, Font::muted(13.0), subtitle);
        self.y += gap;
    }

    /// Sets `text` over the whole width at the present height, and moves down.
    pub(crate) fn paragraph(&mut self, x: f64, font: Font, text: &str) {
        let width = self.width - x - 16.0;
        for line in text.lines().flat_map(|line| font.wrap(line, width)) {
            self.y += font.size * 1.3;
            self.text(x, self.y, Anchor::Start, font, &line);
        }
    }

    pub(crate) fn grid_line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), faint: bool) {
        let width = if faint { 0.5 } else { 1.0 };
        let _ = writeln!(
            self.body,
            "<path class=\"grid\" stroke=\"#d8dbdf\" stroke-width=\"{width}\" \
             d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"/>"
        );
    }

    pub(crate) fn axis_line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = writeln!(
            self.body,
            "<path class=\"axis\" stroke=\"#55595f\" d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"/>"
        );
    }

    /// A marker whose shape follows from `colour`, with a text shown on hovering unless empty.
    pub(crate) fn marker(&mut self, x: f64, y: f64, colour: usize, hollow: bool, hover: &str) {
        let (classes, ink) = if hollow {
            (
                format!("hollow {}", stroke(colour).0),
                format!("fill=\"#ffffff\" {}", stroke(colour).1),
            )
        } else {
            let (f, fill_attr) = fill(colour);
            let (s, stroke_attr) = stroke(colour);
            (format!("{f} {s}"), format!("{fill_attr} {stroke_attr}"))
        };
        let hover = if hover.is_empty() {
            String::new()
        } else {
            format!("<title>{}</title>", escape(hover))
        };
        let _ = writeln!(
            self.body,
            "<path class=\"{classes}\" {ink} stroke-width=\"1.5\" stroke-dasharray=\"none\" \
             d=\"{}\">{hover}</path>",
            shape(colour, x, y),
        );
    }

    /// A marker that stands out from a dense series of its own colour.
    pub(crate) fn marker_on_dense(&mut self, x: f64, y: f64, look: usize) {
        let halo = format!(
            "<path class=\"halo\" fill=\"none\" stroke=\"#ffffff\" stroke-width=\"4\" d=\"{}\"/>",
            shape(look, x, y)
        );
        self.raw(&halo);
        self.marker(x, y, look, hollow(look), "");
    }

    /// The whole document; without its own style sheet when a page provides it.
    pub(crate) fn finish(self, title: &str, description: &str, standalone: bool) -> String {
        let (width, height) = (self.width, (self.y + 14.0).ceil());
        let (title, description) = (escape(title), escape(description));
        // Inside of a page the style sheet sizes the picture.
        let (size, style) = if standalone {
            (
                format!(" width=\"{width}\" height=\"{height}\""),
                format!("<style>{STYLE_SHEET}</style>\n"),
            )
        } else {
            (String::new(), String::new())
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"hc\"{size} \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\" \
             font-family=\"DejaVu Sans,Arial,sans-serif\">\n\
             <title>{title}</title>\n<desc>{description}</desc>\n{style}\
             <rect class=\"ground\" fill=\"#ffffff\" width=\"{width}\" height=\"{height}\"/>\n\
             {}</svg>\n",
            self.body,
        )
    }
}

/// Class and attribute that stroke with a palette colour.
pub(crate) fn stroke(colour: usize) -> (String, String) {
    let i = colour % PALETTE.len();
    (format!("s{i}"), format!("stroke=\"{}\"", PALETTE[i].0))
}

/// Class and attribute that fill with a palette colour.
pub(crate) fn fill(colour: usize) -> (String, String) {
    let i = colour % PALETTE.len();
    (format!("f{i}"), format!("fill=\"{}\"", PALETTE[i].0))
}

/// Whether a look's marker is hollow.
pub(crate) fn hollow(look: usize) -> bool {
    look % LOOKS >= PALETTE.len()
}

/// The dash of a look's line, so that lines differ without colour too; empty for a full line.
pub(crate) fn dash(look: usize) -> &'static str {
    [
        "", "9 4", "2 3", "12 3 2 3", "5 2", "14 4 5 4", "", "1 4", "3 6", "16 6", "7 2 2 2",
        "4 4", "10 2 4 2", "1 2", "18 3", "6 6",
    ][look % LOOKS]
}

/// The outline of a colour's marker around a point.
pub(crate) fn shape(colour: usize, x: f64, y: f64) -> String {
    let polygon = |corners: &[(f64, f64)]| -> String {
        let corners: Vec<String> = corners
            .iter()
            .map(|(dx, dy)| format!("{:.1} {:.1}", x + dx, y + dy))
            .collect();
        format!("M{}Z", corners.join("L"))
    };
    match colour % PALETTE.len() {
        0 => polygon(&[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)]),
        1 => polygon(&[(0.0, -4.8), (4.6, 3.6), (-4.6, 3.6)]),
        2 => polygon(&[(0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)]),
        3 => polygon(&[(0.0, 4.8), (4.6, -3.6), (-4.6, -3.6)]),
        4 => polygon(&[
            (-2.6, -4.6),
            (2.6, -4.6),
            (5.2, 0.0),
            (2.6, 4.6),
            (-2.6, 4.6),
            (-5.2, 0.0),
        ]),
        5 => polygon(&[(-6.0, -2.2), (6.0, -2.2), (6.0, 2.2), (-6.0, 2.2)]),
        6 => format!(
            "M{:.1} {y:.1}a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0 -8.4 0Z",
            x - 4.2
        ),
        _ => polygon(&[(-2.2, -6.0), (2.2, -6.0), (2.2, 6.0), (-2.2, 6.0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_sheet_overrides_each_colour_of_the_palette() {
        for (i, (_, dark)) in PALETTE.iter().enumerate() {
            assert!(
                STYLE_SHEET.contains(&format!(".hc .s{i}{{stroke:{dark}}}")),
                "{i}"
            );
            assert!(
                STYLE_SHEET.contains(&format!(".hc .f{i}{{fill:{dark}}}")),
                "{i}"
            );
        }
    }

    #[test]
    fn wrapped_text_keeps_every_word_and_breaks_one_that_is_too_long() {
        let font = Font::plain(10.0);
        let lines = font.wrap("one two  three", 40.0);
        assert_eq!(lines.join(" "), "one two three");
        assert!(lines.len() > 1);
        let lines = font.wrap("incomprehensibilities", 40.0);
        assert_eq!(lines.concat(), "incomprehensibilities");
        assert!(lines.iter().all(|l| font.width(l) <= 40.0));
        assert_eq!(font.wrap("ab", 0.0), ["a", "b"]);
    }

    #[test]
    fn no_two_colours_share_a_marker() {
        let shapes: std::collections::HashSet<_> = (0..8).map(|i| shape(i, 0.0, 0.0)).collect();
        assert_eq!(shapes.len(), 8);
    }
}
