//! Letters as outlines, out of the two font files in `assets`.

use tiny_skia::{Path, PathBuilder};
use ttf_parser::{Face, OutlineBuilder};

static SANS: &[u8] = include_bytes!("../../assets/sans.ttf");
static SANS_BOLD: &[u8] = include_bytes!("../../assets/sans-bold.ttf");

/// The two fonts.
pub(super) struct Fonts([Face<'static>; 2]);

impl Fonts {
    /// `None` if the files are no fonts, which a test rules out.
    pub(super) fn load() -> Option<Self> {
        let face = |file| Face::parse(file, 0).ok();
        Some(Self([face(SANS)?, face(SANS_BOLD)?]))
    }

    /// The outline of a line of text from the origin on, and its width, both in units of the picture.
    pub(super) fn line(&self, text: &str, size: f32, bold: bool) -> (Option<Path>, f32) {
        let face = &self.0[usize::from(bold)];
        let mut pen = Pen {
            path: PathBuilder::new(),
            x: 0.0,
            scale: size / f32::from(face.units_per_em().max(1)),
        };
        for character in text.chars() {
            // Glyph 0 stands for a character that the font does not have: a space here.
            let glyph = face.glyph_index(character).unwrap_or_default();
            face.outline_glyph(glyph, &mut pen);
            pen.x += f32::from(face.glyph_hor_advance(glyph).unwrap_or_default()) * pen.scale;
        }
        (pen.path.finish(), pen.x)
    }
}

/// Takes outlines whose y grows upwards, and places them one after the other.
struct Pen {
    path: PathBuilder,
    x: f32,
    scale: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, -y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_fonts_have_the_letters_of_captions() {
        let fonts = Fonts::load().expect("two fonts");
        for bold in [false, true] {
            let (path, width) = fonts.line("\u{2191} Zeit (\u{b5}s) \u{2192}", 12.0, bold);
            let bounds = path.expect("an outline").bounds();
            assert!(bounds.top() < -5.0 && bounds.bottom() < 4.0, "{bounds:?}");
            assert!(bounds.right() <= width && width < 120.0, "{width}");
        }
        assert_eq!(fonts.line("", 12.0, false).1, 0.0);
        let (unknown, width) = fonts.line("\u{4e2d}", 12.0, false);
        assert!(unknown.is_none() && width > 3.0, "a space");
    }
}
