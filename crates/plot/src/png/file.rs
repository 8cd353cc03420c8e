//! Pixels as a PNG file (RFC 2083): eight bits a channel, red, green, blue and alpha.

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use std::io::{self, Write as _};
use tiny_skia::Pixmap;

const SIGNATURE: &[u8; 8] = b"\x89PNG\r\n\x1a\n";

/// Each octet as its difference from the one above: most rows of a chart repeat the one before.
const FILTER_UP: u8 = 2;

pub(super) fn write(pixels: &Pixmap) -> io::Result<Vec<u8>> {
    let mut file = SIGNATURE.to_vec();
    let mut head = Vec::with_capacity(13);
    head.extend(pixels.width().to_be_bytes());
    head.extend(pixels.height().to_be_bytes());
    // Eight bits, RGBA, the only compression, the only set of filters, no interlacing.
    head.extend([8, 6, 0, 0, 0]);
    chunk(&mut file, b"IHDR", &head);
    chunk(&mut file, b"IDAT", &compressed(pixels)?);
    chunk(&mut file, b"IEND", &[]);
    Ok(file)
}

fn compressed(pixels: &Pixmap) -> io::Result<Vec<u8>> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    let width = pixels.width() as usize;
    let mut above = vec![0_u8; width * 4];
    let mut differences = vec![0_u8; width * 4];
    for row in pixels.pixels().chunks_exact(width) {
        let mut octets = row.iter().flat_map(|pixel| {
            let colour = pixel.demultiply();
            [colour.red(), colour.green(), colour.blue(), colour.alpha()]
        });
        for (difference, above) in differences.iter_mut().zip(&mut above) {
            let octet = octets.next().unwrap_or_default();
            *difference = octet.wrapping_sub(*above);
            *above = octet;
        }
        zlib.write_all(&[FILTER_UP])?;
        zlib.write_all(&differences)?;
    }
    zlib.finish()
}

/// RFC 2083, section 3.2: length, type, data, and a sum of type and data.
fn chunk(file: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    let mut sum = Crc::new();
    sum.update(kind);
    sum.update(data);
    file.extend((data.len() as u32).to_be_bytes());
    file.extend(kind);
    file.extend(data);
    file.extend(sum.sum().to_be_bytes());
}
