//! Elements drawn into pixels.

use super::elements::{Element, Piece, pieces, unescaped};
use super::letters::Fonts;
use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Mask, Paint, Path, PathBuilder, Pixmap, Rect, Shader,
    Stroke, StrokeDash, Transform,
};

/// How far from its ends the controls of a quarter circle's curve are, in radii.
const QUARTER: f32 = 0.552_284_8;

/// Elements whose text is for readers, not for the picture.
const UNSEEN: [&str; 3] = ["title", "desc", "style"];

/// A picture being drawn.
pub(super) struct Raster {
    pixels: Pixmap,
    scale: f32,
    /// For each `svg` element around the present one: what moves its elements, and what cuts them off.
    frames: Vec<(Transform, Option<Mask>)>,
}

impl Raster {
    pub(super) fn new(pixels: Pixmap, scale: f32) -> Self {
        Self {
            pixels,
            scale,
            frames: Vec::new(),
        }
    }

    pub(super) fn into_pixels(self) -> Pixmap {
        self.pixels
    }

    /// Draws a document; `None` if something in it is none of ours.
    pub(super) fn draw(&mut self, svg: &str) -> Option<()> {
        let fonts = Fonts::load()?;
        let (mut text_of, mut unseen) = (None, 0_usize);
        for piece in pieces(svg) {
            match piece {
                Piece::Start { element, is_empty } if UNSEEN.contains(&element.name) => {
                    unseen += usize::from(!is_empty);
                }
                Piece::End(name) if UNSEEN.contains(&name) => unseen = unseen.checked_sub(1)?,
                _ if unseen > 0 => {}
                Piece::Start { element, is_empty } => match element.name {
                    "svg" if !is_empty => self.enter(&element)?,
                    "rect" => self.shape(&element, &rect(&element)?),
                    "path" => {
                        if let Some(path) = path(element.get("d")?)? {
                            self.shape(&element, &path);
                        }
                    }
                    "text" if !is_empty => text_of = Some(element),
                    _ => return None,
                },
                Piece::End("svg") => drop(self.frames.pop()?),
                Piece::End(_) => text_of = None,
                Piece::Text(text) => {
                    if let Some(element) = &text_of {
                        self.text(&fonts, element, &unescaped(text))?;
                    }
                }
            }
        }
        self.frames.is_empty().then_some(())
    }

    /// A nested picture moves its elements and cuts them off at its edge.
    fn enter(&mut self, element: &Element<'_>) -> Option<()> {
        let Some((around, _)) = self.frames.last() else {
            self.frames
                .push((Transform::from_scale(self.scale, self.scale), None));
            return Some(());
        };
        let area = rect(element)?;
        // Its own units start at its corner, unless a box of view says that they go on from around it.
        let corner = area.bounds();
        let own = match element.get("viewBox") {
            Some(_) => *around,
            None => around.pre_translate(corner.left(), corner.top()),
        };
        let mut mask = Mask::new(self.pixels.width(), self.pixels.height())?;
        mask.fill_path(&area, FillRule::Winding, true, *around);
        self.frames.push((own, Some(mask)));
        Some(())
    }

    /// Fills and strokes a path as its element says.
    fn shape(&mut self, element: &Element<'_>, path: &Path) {
        let Some((transform, mask)) = self.frames.last() else {
            return;
        };
        let opacity = |name| element.number(name).unwrap_or(1.0);
        if let Some(paint) = paint(element.get("fill"), opacity("fill-opacity")) {
            self.pixels
                .fill_path(path, &paint, FillRule::Winding, *transform, mask.as_ref());
        }
        if let Some(paint) = paint(element.get("stroke"), opacity("stroke-opacity")) {
            let stroke = stroke(element);
            self.pixels
                .stroke_path(path, &paint, &stroke, *transform, mask.as_ref());
        }
    }

    fn text(&mut self, fonts: &Fonts, element: &Element<'_>, text: &str) -> Option<()> {
        let bold = element.get("font-weight").is_some();
        let (path, width) = fonts.line(text, element.number("font-size")?, bold);
        let before = match element.get("text-anchor") {
            Some("middle") => width / 2.0,
            Some("end") => width,
            _ => 0.0,
        };
        let (x, y) = (element.number("x")? - before, element.number("y")?);
        if let Some(path) = path.and_then(|path| path.transform(Transform::from_translate(x, y))) {
            self.shape(element, &path);
        }
        Some(())
    }
}

/// A colour written as `#rrggbb`; none for `none`, and for an element that names no colour.
fn paint(colour: Option<&str>, opacity: f32) -> Option<Paint<'static>> {
    let digits = colour?.strip_prefix('#')?;
    let part = |i: usize| {
        let part = u8::from_str_radix(digits.get(i..i + 2)?, 16).ok()?;
        Some(f32::from(part) / 255.0)
    };
    let colour = Color::from_rgba(part(0)?, part(2)?, part(4)?, opacity.clamp(0.0, 1.0))?;
    Some(Paint {
        shader: Shader::SolidColor(colour),
        anti_alias: true,
        ..Paint::default()
    })
}

fn stroke(element: &Element<'_>) -> Stroke {
    let dashes = element.get("stroke-dasharray").unwrap_or_default();
    let dashes: Vec<f32> = dashes
        .split(' ')
        .filter_map(|dash| dash.parse().ok())
        .collect();
    let is_round = |name| element.get(name) == Some("round");
    Stroke {
        width: element.number("stroke-width").unwrap_or(1.0),
        line_cap: if is_round("stroke-linecap") {
            LineCap::Round
        } else {
            LineCap::Butt
        },
        line_join: if is_round("stroke-linejoin") {
            LineJoin::Round
        } else {
            LineJoin::Miter
        },
        // An odd number of dashes is refused by it; then the line is full.
        dash: StrokeDash::new(dashes, 0.0),
        ..Stroke::default()
    }
}

fn rect(element: &Element<'_>) -> Option<Path> {
    let [x, y] = ["x", "y"].map(|name| element.number(name).unwrap_or(0.0));
    let (width, height) = (element.number("width")?, element.number("height")?);
    Rect::from_xywh(x, y, width, height).map(PathBuilder::from_rect)
}

/// A path of lines and half circles; `Some(None)` if nothing of it can be seen.
fn path(text: &str) -> Option<Option<Path>> {
    let mut builder = PathBuilder::new();
    let (mut x, mut y, mut start) = (0.0, 0.0, (0.0, 0.0));
    let mut rest = text.trim_start();
    while let Some(command) = rest.chars().next() {
        let after = rest.get(1..)?;
        let end = after
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let numbers = numbers(&after[..end])?;
        rest = &after[end..];
        let (dx, dy) = if command.is_ascii_lowercase() {
            (x, y)
        } else {
            (0.0, 0.0)
        };
        match (command.to_ascii_uppercase(), numbers.as_slice()) {
            ('M', [to_x, to_y]) => {
                (x, y) = (to_x + dx, to_y + dy);
                start = (x, y);
                builder.move_to(x, y);
            }
            ('L', [to_x, to_y]) => (x, y) = (to_x + dx, to_y + dy),
            ('H', [to]) => x = to + dx,
            ('V', [to]) => y = to + dy,
            ('A', [.., to_x, to_y]) if numbers.len() == 7 => {
                let end = (to_x + dx, to_y + dy);
                half_circle(&mut builder, (x, y), end, numbers[4] == 1.0);
                (x, y) = end;
            }
            ('Z', []) => {
                builder.close();
                (x, y) = start;
            }
            _ => return None,
        }
        if matches!(command.to_ascii_uppercase(), 'L' | 'H' | 'V') {
            builder.line_to(x, y);
        }
    }
    Some(builder.finish())
}

/// Numbers between spaces; a sign starts one too.
fn numbers(text: &str) -> Option<Vec<f32>> {
    let spaced = text.replace('-', " -");
    let numbers = spaced.split_whitespace().map(|number| number.parse().ok());
    numbers.collect()
}

/// A half circle from one end of a diameter to the other, the way of the clock if `clockwise`.
fn half_circle(builder: &mut PathBuilder, from: (f32, f32), to: (f32, f32), clockwise: bool) {
    let side = if clockwise { 1.0 } else { -1.0 };
    // From the middle to the end, and to the place half way along.
    let (ax, ay) = ((to.0 - from.0) / 2.0, (to.1 - from.1) / 2.0);
    let (bx, by) = (ay * side, -ax * side);
    let (mx, my) = (from.0 + ax, from.1 + ay);
    let at = |a: f32, b: f32| (mx + ax * a + bx * b, my + ay * a + by * b);
    for [one, two, end] in [
        [at(-1.0, QUARTER), at(-QUARTER, 1.0), at(0.0, 1.0)],
        [at(QUARTER, 1.0), at(1.0, QUARTER), at(1.0, 0.0)],
    ] {
        builder.cubic_to(one.0, one.1, two.0, two.1, end.0, end.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_lines_and_half_circles_whichever_way_they_are_written() {
        let bounds = |text: &str| {
            let bounds = path(text).expect("ours").expect("seen").bounds();
            [bounds.left(), bounds.top(), bounds.right(), bounds.bottom()]
        };
        assert_eq!(bounds("M1 2L3 4H5V-6Z"), [1.0, -6.0, 5.0, 4.0]);
        assert_eq!(bounds("M1 2h3v-4h-3z"), [1.0, -2.0, 4.0, 2.0]);
        let circle = bounds("M-4.2 0a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0 -8.4 0Z");
        assert_eq!(circle, [-4.2, -4.2, 4.2, 4.2]);
        assert_eq!(path(""), Some(None));
        for other in ["M1", "Q1 2 3 4", "M1 2Lx 3", "\u{e4}"] {
            assert_eq!(path(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_none_of_ours_is_refused() {
        for inside in ["<g></g>", "<path/>", "<circle/>", "<svg x=\"1\">", "</svg>"] {
            let pixels = Pixmap::new(9, 9).expect("a size");
            let svg = format!("<svg width=\"9\" height=\"9\">{inside}</svg>");
            assert_eq!(Raster::new(pixels, 1.0).draw(&svg), None, "{inside}");
        }
    }

    #[test]
    fn a_nested_picture_moves_and_cuts_off() {
        let mut raster = Raster::new(Pixmap::new(20, 20).expect("a size"), 1.0);
        let svg = "<svg width=\"20\" height=\"20\"><svg x=\"5\" y=\"5\" width=\"10\" height=\"10\">\
                   <path fill=\"#ff0000\" d=\"M-9 -9H2V99H-9Z\"/></svg></svg>";
        assert_eq!(raster.draw(svg), Some(()));
        let pixels = raster.into_pixels();
        let red = |x, y| pixels.pixel(x, y).map(|pixel| pixel.red());
        assert_eq!(
            [red(4, 9), red(6, 9), red(8, 9), red(6, 16)],
            [Some(0), Some(255), Some(0), Some(0)]
        );
    }
}
