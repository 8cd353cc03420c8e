//! Pictures as PNG, with a font of their own: a machine without fonts draws the same picture.

use resvg::{tiny_skia, usvg};
use std::sync::Arc;

/// Pixels that a picture has at most on either side.
const SIDE_MAX: f64 = 16_384.0;

/// The family that the two files are of.
const FAMILY: &str = "DejaVu Sans";

static SANS: &[u8] = include_bytes!("../assets/sans.ttf");
static SANS_BOLD: &[u8] = include_bytes!("../assets/sans-bold.ttf");

/// Why there is no PNG.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PngError {
    /// The text is not SVG.
    #[error("not a picture: {0}")]
    NotSvg(String),
    /// There would be no pixel, or more than 16,384 on a side.
    #[error("a picture of {width} by {height} pixels is not within 1 and 16,384")]
    Size {
        /// Pixels across.
        width: i64,
        /// Pixels down.
        height: i64,
    },
    /// The picture could not be compressed.
    #[error("cannot write the picture: {0}")]
    Encoding(String),
}

/// Draws an SVG document as a PNG, with `scale` pixels for each of its units.
///
/// # Errors
/// See [`PngError`].
pub fn svg_to_png(svg: &str, scale: f64) -> Result<Vec<u8>, PngError> {
    let mut options = usvg::Options {
        font_family: FAMILY.into(),
        ..usvg::Options::default()
    };
    let fonts = Arc::make_mut(&mut options.fontdb);
    for font in [SANS, SANS_BOLD] {
        fonts.load_font_source(usvg::fontdb::Source::Binary(Arc::new(font)));
    }
    fonts.set_sans_serif_family(FAMILY);
    let tree =
        usvg::Tree::from_str(svg, &options).map_err(|error| PngError::NotSvg(error.to_string()))?;
    let size = tree.size();
    let side = |units: f32| (f64::from(units) * scale).ceil();
    let (width, height) = (side(size.width()), side(size.height()));
    if !(1.0..=SIDE_MAX).contains(&width) || !(1.0..=SIDE_MAX).contains(&height) {
        let (width, height) = (width as i64, height as i64);
        return Err(PngError::Size { width, height });
    }
    let mut pixels = tiny_skia::Pixmap::new(width as u32, height as u32).ok_or(PngError::Size {
        width: width as i64,
        height: height as i64,
    })?;
    let transform = tiny_skia::Transform::from_scale(scale as f32, scale as f32);
    resvg::render(&tree, transform, &mut pixels.as_mut());
    pixels
        .encode_png()
        .map_err(|error| PngError::Encoding(error.to_string()))
}
