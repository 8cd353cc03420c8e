//! A chart of measurements: what is drawn, and how.

use crate::axis::Axis;
use crate::picture::{self, Place};
use crate::png::{self, PngError};
use crate::samples::{Samples, Thinner};
use std::sync::Arc;

/// How the samples of a chart are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A line through the samples in the order of x.
    Line,
    /// A dot for each sample; over seconds, with the ticks of [`Kind::OverTime`].
    Scatter,
    /// The share of samples up to a value: x is the samples' y, and y goes from 0 to 1.
    Cdf,
    /// Steps: each value holds until the next sample; over seconds, with the ticks of [`Kind::OverTime`].
    Steps,
    /// A line over the time in seconds since the start, whose ticks are minutes and hours where that reads better.
    OverTime,
}

/// What the table below a chart tells of each series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// How many samples there are, and how their values are distributed.
    Values,
    /// The same of packets, with how many were lost.
    Packets,
    /// Where the steps start and end, their extremes, their mean over x, and the time of the last change.
    Steps,
}

/// Samples with a name. A clone shares the samples, also in the page made of both.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name in the legend; any text, which is escaped wherever it is written.
    pub name: String,
    /// Index into sixteen looks, modulo sixteen: eight colours, each with a marker and a dash of its own, then the same
    /// with hollow markers and other dashes; without one it is the series' place in its chart.
    pub colour: Option<usize>,
    pub(crate) samples: Arc<Samples>,
}

impl Series {
    /// A series of samples that a [`Thinner`] kept.
    pub fn new(name: impl Into<String>, samples: Samples) -> Self {
        Self {
            name: name.into(),
            colour: None,
            samples: Arc::new(samples),
        }
    }

    /// A series of `(x, y)` in the units of the chart's axes, and the x of each lost packet.
    ///
    /// The iterators are read once and not kept; see [`Thinner::push`] for what is left out.
    pub fn from_points(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
        lost: impl IntoIterator<Item = f64>,
    ) -> Self {
        let mut thinner = Thinner::new();
        for (x, y) in points {
            thinner.push(x, y);
        }
        for x in lost {
            thinner.push_lost(x);
        }
        thinner.finish(name)
    }

    /// The same series with a colour of its own.
    #[must_use]
    pub fn coloured(mut self, colour: usize) -> Self {
        self.colour = Some(colour);
        self
    }

    /// What is kept of the samples, with their count, extremes and percentiles.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }
}

/// A named part of the horizontal axis: a phase of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Where it begins and ends.
    pub x: (f64, f64),
    /// Whether it is shaded.
    pub is_shaded: bool,
    /// Its name, written at its top where there is room.
    pub name: String,
}

/// Series over two axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// How the samples are drawn.
    pub kind: Kind,
    /// What the picture shows, in a few words.
    pub title: String,
    /// One sentence below the title: the conditions, or what to look for; may be empty.
    pub subtitle: String,
    /// The horizontal axis; of a [`Kind::Cdf`], that of the samples' y.
    pub x: Axis,
    /// The vertical axis; of a [`Kind::Cdf`], the share.
    pub y: Axis,
    /// What is drawn; also the order of the legend.
    pub series: Vec<Series>,
    /// Parts of the horizontal axis. A [`Kind::Cdf`] draws none.
    pub bands: Vec<Band>,
    /// What the table below the chart counts.
    pub summary: Summary,
    /// Sentences below the legend; may be empty.
    pub notes: Vec<String>,
}

impl Chart {
    /// An empty chart; the caller fills in `series`, and `subtitle` and `notes` if wanted.
    pub fn new(kind: Kind, title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            kind,
            title: title.into(),
            subtitle: String::new(),
            x,
            y,
            series: Vec::new(),
            bands: Vec::new(),
            summary: if kind == Kind::Steps {
                Summary::Steps
            } else {
                Summary::Values
            },
            notes: Vec::new(),
        }
    }

    /// The same chart, whose table counts packets and their losses too.
    #[must_use]
    pub fn of_packets(self) -> Self {
        Self {
            summary: Summary::Packets,
            ..self
        }
    }

    /// The distribution of the same series' values, which shares their samples.
    #[must_use]
    pub fn to_cdf(&self, title: impl Into<String>) -> Self {
        let value = if self.kind == Kind::Cdf {
            &self.x
        } else {
            &self.y
        };
        let share = Axis::linear("share of samples up to this value", "");
        Self {
            subtitle: self.subtitle.clone(),
            series: self.series.clone(),
            ..Self::new(Kind::Cdf, title, value.clone(), share)
        }
    }

    /// The same samples drawn in another way: a line as dots, or dots as a line.
    #[must_use]
    pub fn drawn_as(&self, kind: Kind, title: impl Into<String>) -> Self {
        Self {
            kind,
            title: title.into(),
            ..self.clone()
        }
    }

    /// The same chart with a logarithmic axis of values if a linear one would crush most of them: where the highest is
    /// more than fifty times the highest median, and none is zero or below.
    #[must_use]
    pub fn log_if_crushed(mut self) -> Self {
        let samples = || self.series.iter().map(Series::samples);
        let ranges = || samples().filter_map(Samples::range);
        let high = ranges().map(|r| r.1).fold(0.0, f64::max);
        let low = ranges().map(|r| r.0).fold(f64::INFINITY, f64::min);
        let medians = samples().filter_map(|s| s.percentiles()[0]);
        if low > 0.0 && high > 50.0 * medians.fold(0.0, f64::max) && high.is_finite() {
            match self.kind {
                Kind::Cdf => self.x.log = true,
                _ => self.y.log = true,
            }
        }
        self
    }

    /// The chart as a complete SVG document that needs no other file and follows a dark colour scheme.
    pub fn to_svg(&self) -> String {
        picture::render(self, crate::figure::WIDTH_DEFAULT, Place::Alone)
    }

    /// The chart as SVG for a page that has [`figure::STYLE_SHEET`](crate::figure::STYLE_SHEET), `width` units wide.
    pub fn to_inline_svg(&self, width: f64) -> String {
        picture::render(self, width, Place::Inline)
    }

    /// The chart as a PNG, light, `scale` pixels for each of its 860 units of width; its text needs no font of the
    /// machine.
    ///
    /// # Errors
    /// When the picture would be larger than a PNG of ours may be.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>, PngError> {
        png::svg_to_png(&self.to_svg(), scale)
    }

    /// The look of the series at `index`.
    pub(crate) fn colour(&self, index: usize) -> usize {
        self.series[index].colour.unwrap_or(index)
    }
}
