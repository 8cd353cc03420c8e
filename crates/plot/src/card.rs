//! A picture to share: a title, and panels that each have a number, some words and a small line. Start at [`Card`].
//!
//! The same panels stand side by side in a PNG of 1,200 by 630 pixels, the size that pages preview links with, and as
//! drawings of any width in a [`Page`](crate::Page).

use std::fmt::Write as _;

use crate::png::{self, PngError};
use crate::svg::{Anchor, Font, Svg, stroke};

/// Size of the shared picture, in pixels.
pub const CARD_SIZE: (f64, f64) = (1_200.0, 630.0);

/// Space around panels.
const MARGIN: f64 = 24.0;
/// Below this width, panels stand one below the other.
const NARROW: f64 = 600.0;
/// Points of a small line, at most; more are left out evenly.
const POINTS_MAX: usize = 400;

/// A picture of numbers.
#[derive(Clone, Debug, Default)]
pub struct Card {
    /// The first line.
    pub title: String,
    /// The second line; may be empty.
    pub subtitle: String,
    /// The panels, from the left.
    pub panels: Vec<Panel>,
    /// The last line; may be empty.
    pub foot: String,
}

/// One number of a card.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// The number, with its unit: at most about ten characters.
    pub number: String,
    /// What the number counts.
    pub words: String,
    /// Small lines over shared axes: the index of a colour, and the points in drawing order.
    pub lines: Vec<(usize, Vec<(f64, f64)>)>,
}

/// A rectangle in user units.
#[derive(Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Card {
    /// The picture as a complete SVG document of 1,200 by 630 units.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let (width, height) = CARD_SIZE;
        let mut svg = Svg::new(width);
        svg.y = 40.0;
        svg.paragraph(2.0 * MARGIN, Font::bold(44.0), &self.title);
        svg.y += 4.0;
        svg.paragraph(2.0 * MARGIN, Font::muted(22.0), &self.subtitle);
        let area = Area {
            left: 2.0 * MARGIN,
            top: svg.y + 36.0,
            width: width - 4.0 * MARGIN,
            height: height - svg.y - 110.0,
        };
        self.row(&mut svg, area, 1.9);
        let foot = Font::muted(20.0);
        svg.text(2.0 * MARGIN, height - 32.0, Anchor::Start, foot, &self.foot);
        // The height that the document adds below the last line.
        svg.y = height - 14.0;
        svg.finish(&self.title, &self.description(), true)
    }

    /// The picture as a PNG of 1,200 by 630 pixels, light.
    ///
    /// # Errors
    /// This build cannot write PNG.
    pub fn to_png(&self) -> Result<Vec<u8>, PngError> {
        png::svg_to_png(&self.to_svg(), 1.0)
    }

    /// The panels alone, `width` units wide, for a page that has [`STYLE_SHEET`](crate::figure::STYLE_SHEET).
    #[must_use]
    pub fn to_inline_svg(&self, width: f64) -> String {
        let mut svg = Svg::new(width);
        let height = 190.0;
        let area = |top| Area {
            left: 8.0,
            top,
            width: width - 16.0,
            height,
        };
        if width < NARROW {
            for (number, panel) in (0_u8..).zip(&self.panels) {
                let top = 8.0 + (height + MARGIN) * f64::from(number);
                draw(&mut svg, panel, area(top), 1.0);
                svg.y = top + height;
            }
        } else {
            self.row(&mut svg, area(8.0), 1.0);
            svg.y = 8.0 + height;
        }
        svg.finish(&self.title, &self.description(), false)
    }

    fn row(&self, svg: &mut Svg, area: Area, scale: f64) {
        let count = self.panels.len().max(1) as f64;
        let width = (area.width - (count - 1.0) * MARGIN * scale) / count;
        for (number, panel) in (0_u8..).zip(&self.panels) {
            let left = area.left + f64::from(number) * (width + MARGIN * scale);
            draw(
                svg,
                panel,
                Area {
                    left,
                    width,
                    ..area
                },
                scale,
            );
        }
    }

    fn description(&self) -> String {
        let panels = self.panels.iter();
        let words: Vec<String> = panels
            .map(|panel| format!("{}: {}", panel.number, panel.words))
            .collect();
        words.join("; ")
    }
}

/// Draws a panel: a rule, the number, the words, and the lines below.
fn draw(svg: &mut Svg, panel: &Panel, area: Area, scale: f64) {
    let right = area.left + area.width;
    svg.axis_line((area.left, area.top), (right, area.top));
    let mut size = 34.0 * scale;
    while size > 12.0 && Font::bold(size).width(&panel.number) > 0.92 * area.width {
        size -= 1.0;
    }
    let mut y = area.top + 42.0 * scale;
    svg.text(area.left, y, Anchor::Start, Font::bold(size), &panel.number);
    let words = Font::muted(13.0 * scale.min(1.5));
    for line in words.wrap(&panel.words, area.width) {
        y += words.size * 1.35;
        svg.text(area.left, y, Anchor::Start, words, &line);
    }
    let top = y + 10.0 * scale;
    let plot = Area {
        top,
        height: area.top + area.height - top,
        ..area
    };
    lines(svg, panel, plot);
}

fn lines(svg: &mut Svg, panel: &Panel, area: Area) {
    let all = || panel.lines.iter().flat_map(|(_, points)| points);
    let (mut x_min, mut x_max, mut y_max) = (f64::INFINITY, f64::NEG_INFINITY, 0.0_f64);
    for (x, y) in all() {
        (x_min, x_max, y_max) = (x_min.min(*x), x_max.max(*x), y_max.max(*y));
    }
    let has_room = area.height > 10.0 && x_max > x_min && y_max > 0.0;
    if !has_room || !(x_max - x_min).is_finite() || !y_max.is_finite() {
        return;
    }
    let bottom = area.top + area.height;
    svg.grid_line((area.left, bottom), (area.left + area.width, bottom), false);
    for (colour, points) in &panel.lines {
        let every = points.len().div_ceil(POINTS_MAX).max(1);
        let mut path = String::new();
        for (x, y) in points.iter().step_by(every).chain(points.last()) {
            let x = area.left + (x - x_min) / (x_max - x_min) * area.width;
            let y = bottom - y.max(0.0) / y_max * area.height;
            let command = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{command}{x:.1} {y:.1}");
        }
        let (class, ink) = stroke(*colour);
        svg.raw(&format!(
            "<path class=\"{class}\" fill=\"none\" {ink} stroke-width=\"2.5\" d=\"{path}\"/>"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Card {
        let panel = |number: &str, colour| Panel {
            number: number.into(),
            words: "what it counts, in some words that need two lines or more".into(),
            lines: vec![(
                colour,
                (0..1_000)
                    .map(|x| (f64::from(x), f64::from(x * x)))
                    .collect(),
            )],
        };
        Card {
            title: "Title & more".into(),
            subtitle: "Below".into(),
            panels: vec![panel("10,000/s", 0), panel("48 %", 1), panel("<none>", 2)],
            foot: "headend".into(),
        }
    }

    #[test]
    fn the_picture_has_its_size_and_every_text() {
        let svg = card().to_svg();
        assert!(
            svg.contains("width=\"1200\" height=\"630\""),
            "{}",
            &svg[..300]
        );
        for text in [
            "Title &amp; more",
            "Below",
            "10,000/s",
            "48 %",
            "&lt;none&gt;",
            ">headend<",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(svg.matches("stroke-width=\"2.5\"").count(), 3);
    }

    #[test]
    fn panels_without_points_have_no_line_and_narrow_ones_stand_below_each_other() {
        let mut card = card();
        card.panels[1].lines = vec![(0, vec![(1.0, 1.0)])];
        card.panels[2].lines.clear();
        let (wide, narrow) = (card.to_inline_svg(860.0), card.to_inline_svg(420.0));
        assert_eq!(wide.matches("stroke-width=\"2.5\"").count(), 1);
        let height = |svg: &str| {
            let view = svg.split("viewBox=\"0 0 ").nth(1).unwrap();
            let view = view.split('"').next().unwrap();
            view.split(' ').nth(1).unwrap().parse::<f64>().unwrap()
        };
        assert!(height(&narrow) > 2.5 * height(&wide));
    }

    #[cfg(feature = "png")]
    #[test]
    fn the_png_has_the_size_of_a_preview() {
        let png = card().to_png().unwrap();
        let size = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert_eq!((size(16), size(20)), (1_200, 630));
    }
}
