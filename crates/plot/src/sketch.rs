//! A drawing of boxes, arrows and words for a page that has [`STYLE_SHEET`](crate::figure::STYLE_SHEET): it follows a dark
//! colour scheme. Start at [`Sketch`].

use std::fmt::Write as _;

use crate::svg::{escape, fill};

/// Where a text's `x` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At its start.
    Start,
    /// In its middle.
    Middle,
}

/// How a text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// A name.
    Strong,
    /// Words that explain.
    Muted,
}

/// How an arrow looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrow {
    /// Whether it has a head at both ends, and not at its end alone.
    pub both: bool,
    /// Whether it is thick.
    pub thick: bool,
}

/// SVG elements with the classes of the style sheet. Points and sizes are in user units.
#[derive(Clone, Debug, Default)]
pub struct Sketch {
    elements: String,
}

impl Sketch {
    /// An empty sketch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A line of text.
    pub fn text(&mut self, (x, y): (f64, f64), place: Place, ink: Ink, text: &str) {
        let (class, colour, size, weight) = match ink {
            Ink::Muted => ("muted", "#55595f", 12, ""),
            Ink::Strong => ("text", "#1b1d20", 13, " font-weight=\"600\""),
        };
        let anchor = match place {
            Place::Start => "start",
            Place::Middle => "middle",
        };
        let _ = writeln!(
            self.elements,
            "<text class=\"{class}\" fill=\"{colour}\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\" \
             text-anchor=\"{anchor}\"{weight}>{}</text>",
            escape(text)
        );
    }

    /// A rectangle with lines of text: the first is a name, the others explain it.
    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), lines: &[&str]) {
        let _ = writeln!(
            self.elements,
            "<rect class=\"hollow axis\" fill=\"#ffffff\" stroke=\"#55595f\" stroke-width=\"1.5\" rx=\"6\" x=\"{x}\" \
             y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
        let top = y + (height - 17.0 * lines.len() as f64) / 2.0 + 13.0;
        for (i, line) in lines.iter().enumerate() {
            let ink = if i == 0 { Ink::Strong } else { Ink::Muted };
            let at = (x + width / 2.0, top + 17.0 * i as f64);
            self.text(at, Place::Middle, ink, line);
        }
    }

    /// A line with a head at its end, or with heads at both ends.
    pub fn arrow(&mut self, from: (f64, f64), to: (f64, f64), arrow: Arrow) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy).max(1.0);
        let (ux, uy) = (dx / length, dy / length);
        let mut path = format!("M{} {}L{} {}", from.0, from.1, to.0, to.1);
        let mut head = |(x, y): (f64, f64), way: f64| {
            for side in [-1.0, 1.0] {
                let (hx, hy) = (
                    x - way * 8.0 * ux + side * 4.5 * uy,
                    y - way * 8.0 * uy - side * 4.5 * ux,
                );
                let _ = write!(path, "M{x} {y}L{hx:.1} {hy:.1}");
            }
        };
        head(to, 1.0);
        if arrow.both {
            head(from, -1.0);
        }
        let width = if arrow.thick { 3 } else { 2 };
        let _ = writeln!(
            self.elements,
            "<path class=\"axis\" fill=\"none\" stroke=\"#55595f\" stroke-width=\"{width}\" d=\"{path}\"/>"
        );
    }

    /// A small filled rectangle in a colour of the palette.
    pub fn chip(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colour: usize) {
        let (class, ink) = fill(colour);
        let _ = writeln!(
            self.elements,
            "<rect class=\"{class}\" {ink} x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    /// The SVG element; `about` describes it for readers who do not see it.
    #[must_use]
    pub fn finish(self, (width, height): (f64, f64), about: &str) -> String {
        let about = escape(about);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"hc\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{about}\"><title>{about}</title>\n{}</svg>",
            self.elements
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_every_colour_follows_the_scheme() {
        let mut sketch = Sketch::new();
        sketch.rect((0.0, 0.0), (10.0, 10.0), &["<b>", "x"]);
        sketch.arrow((0.0, 0.0), (9.0, 0.0), Arrow::default());
        sketch.chip((1.0, 1.0), (2.0, 2.0), 9);
        let svg = sketch.finish((10.0, 10.0), "a & b");
        assert!(svg.contains("&lt;b&gt;") && svg.contains("a &amp; b"));
        assert!(svg.contains("class=\"f1\""));
        let plain = |line: &&str| line.starts_with('<') && !line.contains("class=\"");
        assert!(
            !svg.lines().any(|line| plain(&line) && line != "</svg>"),
            "{svg}"
        );
    }
}
