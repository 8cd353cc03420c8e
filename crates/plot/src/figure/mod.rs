//! Charts as self-contained SVG, for the benchmarks and the history page.
//!
//! The pictures are written by hand rather than with a plotting library: the
//! legend stands outside of the data, dashes are real dashes, every picture
//! carries a title and a description, text is text, and it follows a dark
//! colour scheme by itself.
//!
//! Colour is never the only cue: a colour index also fixes the marker's shape,
//! and the [`Style`] fixes the dash and whether the marker is hollow. The
//! palette is Okabe and Ito's, which stays distinct for colour-blind readers;
//! their yellow, unreadable on white, is replaced by a grey.
//!
//! Left out: stacked areas, second axes; interaction is for a [`Page`](crate::Page).

mod bars;
pub(crate) mod lines;

#[cfg(test)]
pub(crate) mod tests;

pub use crate::axis::Axis;
pub use crate::number;

use crate::svg;
use serde::Serialize;

/// Width in user units of a picture made by `to_svg`.
pub const WIDTH_DEFAULT: f64 = 860.0;

/// Width in user units at which text stays legible on a phone.
pub const WIDTH_NARROW: f64 = 420.0;

/// Colour index kept for headend's own present design.
pub const COLOUR_OURS: usize = 6;

/// The style sheet of every picture, for a page that holds several of them;
/// [`Figure::to_inline_svg`] leaves it out.
pub const STYLE_SHEET: &str = svg::STYLE_SHEET;

/// How a series or bar is drawn, which says where its values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Measured here: a full line with filled markers.
    Solid,
    /// Published elsewhere: a dashed line with hollow markers.
    Dashed,
    /// Extrapolated, not measured: a dotted line with hollow markers.
    Dotted,
    /// Single measurements: filled markers without a line.
    Points,
}

/// Which points of a series are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Marks {
    /// Each point of a short series, some of a long one, evenly spread.
    Spread,
    /// The last point alone, because the line up to it is drawn and not known.
    End,
}

/// One line or cloud of points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// Where the values come from.
    pub style: Style,
    /// Index into the palette of eight, taken modulo eight; it fixes the marker's shape too.
    pub colour: usize,
    /// Whether the line is drawn thicker than the others.
    pub bold: bool,
    /// Which points have markers.
    pub marks: Marks,
    /// `(x, y)` in the units of the axes, in drawing order; values that are not finite break the line.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// A series with a line of ordinary width; an extrapolated one is marked at its end only.
    pub fn new(
        name: impl Into<String>,
        style: Style,
        colour: usize,
        points: Vec<(f64, f64)>,
    ) -> Self {
        Self {
            name: name.into(),
            style,
            colour,
            bold: false,
            marks: if style == Style::Dotted {
                Marks::End
            } else {
                Marks::Spread
            },
            points,
        }
    }

    /// Marks the last point alone.
    #[must_use]
    pub fn marked_at_end(self) -> Self {
        Self {
            marks: Marks::End,
            ..self
        }
    }

    /// Draws the line thicker than the others.
    #[must_use]
    pub fn bold(self) -> Self {
        Self { bold: true, ..self }
    }
}

/// Lines and points over two axes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// What the picture shows, in a few words.
    pub title: String,
    /// One sentence below the title: the conditions, or what to look for.
    pub subtitle: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn; also the order of the legend.
    pub series: Vec<Series>,
    /// Sentences below the legend: what is missing, extrapolated or only partly known.
    pub notes: Vec<String>,
}

impl Chart {
    /// An empty chart; `series` and `notes` are filled in by the caller.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            subtitle: subtitle.into(),
            x,
            y,
            series: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The chart as a complete SVG document that needs no other file.
    pub fn to_svg(&self) -> String {
        lines::render(self, WIDTH_DEFAULT, true)
    }
}

/// One bar of a [`BarGroup`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// The name written beside the bar.
    pub name: String,
    /// The bar's length in the unit of the chart's axis; `None` draws no bar.
    pub value: Option<f64>,
    /// What is written at the bar's end instead of the value, e.g. `> 3 h`.
    pub text: Option<String>,
    /// Where the value comes from; `Points` is drawn as `Solid`.
    pub style: Style,
    /// Index into the palette, as for a [`Series`].
    pub colour: usize,
}

impl Bar {
    /// A bar with its value written at its end.
    pub fn new(name: impl Into<String>, style: Style, colour: usize, value: f64) -> Self {
        Self {
            name: name.into(),
            value: Some(value),
            text: None,
            style,
            colour,
        }
    }

    /// A bar that has no value, and the words that say why.
    pub fn missing(name: impl Into<String>, colour: usize, why: impl Into<String>) -> Self {
        let (value, text) = (None, Some(why.into()));
        Self {
            name: name.into(),
            value,
            text,
            style: Style::Solid,
            colour,
        }
    }

    /// Writes `text` at the bar's end instead of the value.
    #[must_use]
    pub fn labelled(self, text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..self
        }
    }
}

/// Bars that are to be compared with each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BarGroup {
    /// The heading over the bars.
    pub name: String,
    /// The bars, from the top down.
    pub bars: Vec<Bar>,
}

/// Groups of horizontal bars over one axis, each bar named and its value written out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BarChart {
    /// What the picture shows, in a few words.
    pub title: String,
    /// One sentence below the title.
    pub subtitle: String,
    /// The axis along which the bars grow.
    pub value: Axis,
    /// The groups, from the top down.
    pub groups: Vec<BarGroup>,
    /// Sentences below the bars.
    pub notes: Vec<String>,
}

impl BarChart {
    /// The chart as a complete SVG document that needs no other file.
    pub fn to_svg(&self) -> String {
        bars::render(self, WIDTH_DEFAULT, true)
    }
}

/// Either kind of picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Figure {
    /// Lines and points.
    Lines(Chart),
    /// Bars.
    Bars(BarChart),
}

impl From<Chart> for Figure {
    fn from(chart: Chart) -> Self {
        Self::Lines(chart)
    }
}

impl From<BarChart> for Figure {
    fn from(chart: BarChart) -> Self {
        Self::Bars(chart)
    }
}

impl Figure {
    /// The picture's title.
    pub fn title(&self) -> &str {
        match self {
            Self::Lines(chart) => &chart.title,
            Self::Bars(chart) => &chart.title,
        }
    }

    /// The picture as a complete SVG document that needs no other file.
    pub fn to_svg(&self) -> String {
        self.render(WIDTH_DEFAULT, true)
    }

    /// The picture `width` user units wide, for a page that has [`STYLE_SHEET`].
    pub fn to_inline_svg(&self, width: f64) -> String {
        self.render(width, false)
    }

    fn render(&self, width: f64, standalone: bool) -> String {
        match self {
            Self::Lines(chart) => lines::render(chart, width, standalone),
            Self::Bars(chart) => bars::render(chart, width, standalone),
        }
    }
}
