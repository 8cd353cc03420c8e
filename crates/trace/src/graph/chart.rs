//! A chart: series over time, and their style.

use super::axis::Unit;
use std::borrow::Cow;

/// Style of a series. The colours are those of Okabe and Ito, which colour-blind people can distinguish. Marks also
/// differ in shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// A line from point to point.
    Line,
    /// A line that goes level, then up or down.
    Steps,
    /// The same, dashed.
    DashedSteps,
    /// Dots.
    Dots,
    /// Crosses.
    Cross,
    /// Triangles that point up.
    Triangle,
    /// Small squares.
    Square,
    /// Rings.
    Ring,
}

impl Look {
    /// Every point is drawn, because each is an event.
    pub(super) const fn is_mark(self) -> bool {
        matches!(
            self,
            Look::Cross | Look::Triangle | Look::Square | Look::Ring
        )
    }
}

pub(super) const BLUE: &str = "#0072b2";
pub(super) const VERMILION: &str = "#d55e00";
pub(super) const GREEN: &str = "#009e73";
pub(super) const ORANGE: &str = "#e69f00";
pub(super) const SKY: &str = "#56b4e9";
pub(super) const PURPLE: &str = "#cc79a7";
pub(super) const BLACK: &str = "#333333";

/// Points of a series, in the order of time once [`Data::put_in_order`] has run.
#[derive(Debug)]
pub(super) enum Data {
    /// x, y.
    Points(Vec<(f64, f64)>),
    /// x, and y from and to.
    Bars(Vec<(f64, f64, f64)>),
}

/// A series of values over time.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) name: Cow<'static, str>,
    pub(super) colour: &'static str,
    pub(super) look: Look,
    pub(super) data: Data,
}

/// A picture to draw. x is in seconds.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) title: String,
    /// The connection, and how many packets the graph lacks.
    pub(super) subtitle: String,
    pub(super) y_name: &'static str,
    pub(super) y_unit: Unit,
    pub(super) series: Vec<Series>,
    /// From, to, and what the sender waited for.
    pub(super) bands: Vec<(f64, f64, crate::why::Cause)>,
}

impl Data {
    /// Sorts points by time: the time stamps of some captures run backwards.
    pub(super) fn put_in_order(&mut self) {
        match self {
            Data::Points(points) if !points.is_sorted_by(|a, b| a.0 <= b.0) => {
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
            }
            Data::Bars(bars) if !bars.is_sorted_by(|a, b| a.0 <= b.0) => {
                bars.sort_by(|a, b| a.0.total_cmp(&b.0));
            }
            Data::Points(_) | Data::Bars(_) => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Data::Points(points) => points.is_empty(),
            Data::Bars(bars) => bars.is_empty(),
        }
    }
}

/// Least and greatest.
pub(super) type Bounds = (f64, f64);

fn grow(bounds: &mut Bounds, value: f64) {
    *bounds = (bounds.0.min(value), bounds.1.max(value));
}

impl Chart {
    /// The ranges of x and y to show, and whether a window is outside. A window far above all other values is left
    /// outside, because it would flatten the rest.
    pub(super) fn bounds(&self) -> (Bounds, Bounds, bool) {
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut x, mut y, mut windows) = (none, none, none);
        for series in &self.series {
            let window = series.look == Look::DashedSteps;
            let y = if window { &mut windows } else { &mut y };
            match &series.data {
                Data::Points(points) => {
                    for point in points {
                        grow(&mut x, point.0);
                        grow(y, point.1);
                    }
                }
                Data::Bars(bars) => {
                    for bar in bars {
                        grow(&mut x, bar.0);
                        grow(y, bar.1);
                        grow(y, bar.2);
                    }
                }
            }
        }
        let above = y.1 > 0.0 && windows.1 > 3.0 * y.1;
        if !above {
            y = (y.0.min(windows.0), y.1.max(windows.1));
        }
        (x, y, above)
    }
}
