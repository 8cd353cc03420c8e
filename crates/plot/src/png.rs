//! Pictures as PNG (RFC 2083), with a font of their own: a machine without fonts draws the same picture.
//!
//! The modules below draw the SVG that this crate writes and no other: `rect`, `path`, `text` and nested `svg` elements
//! with colours as attributes. Style sheets, groups, gradients and images are left out. Start with [`svg_to_png`].
//! Without the feature `png` only the error is here.

#[cfg(feature = "png")]
mod elements;
#[cfg(feature = "png")]
mod file;
#[cfg(feature = "png")]
mod letters;
#[cfg(feature = "png")]
mod raster;

/// Whether this build can write PNG: the feature `png`.
pub const CAN_WRITE_PNG: bool = cfg!(feature = "png");

/// Why there is no PNG.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PngError {
    /// This build has no writer of PNG.
    #[error(
        "this build cannot write PNG: build it with the feature `png`, or name a file .svg or .html"
    )]
    NotBuilt,
    /// The text is not a picture of this crate.
    #[error("not a picture that can be drawn as PNG")]
    NotSvg,
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

/// Draws a picture of this crate as a PNG, with `scale` pixels for each of its units.
///
/// # Errors
/// See [`PngError`].
#[cfg(feature = "png")]
pub(crate) fn svg_to_png(svg: &str, scale: f64) -> Result<Vec<u8>, PngError> {
    /// Pixels that a picture has at most on either side.
    const SIDE_MAX: f64 = 16_384.0;
    let size = elements::size(svg).ok_or(PngError::NotSvg)?;
    let [width, height] = size.map(|units| (units * scale).ceil());
    let bad_size = || PngError::Size {
        width: width as i64,
        height: height as i64,
    };
    if !(1.0..=SIDE_MAX).contains(&width) || !(1.0..=SIDE_MAX).contains(&height) {
        return Err(bad_size());
    }
    let pixels = tiny_skia::Pixmap::new(width as u32, height as u32).ok_or_else(bad_size)?;
    let mut raster = raster::Raster::new(pixels, scale as f32);
    raster.draw(svg).ok_or(PngError::NotSvg)?;
    file::write(&raster.into_pixels()).map_err(|error| PngError::Encoding(error.to_string()))
}

/// Says that this build cannot.
///
/// # Errors
/// Always [`PngError::NotBuilt`].
#[cfg(not(feature = "png"))]
pub(crate) fn svg_to_png(_svg: &str, _scale: f64) -> Result<Vec<u8>, PngError> {
    Err(PngError::NotBuilt)
}
