//! Reads the frames that `explain` is asked about.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use capfile::{Block, Reader};
use wire::link::LinkType;

/// How many frames of a capture are explained.
const FRAMES_MAX: usize = 10_000;

/// A frame, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// Its number in the capture, from 1.
    pub(super) number: u64,
    pub(super) octets: Vec<u8>,
    /// Whether it begins with its IP header.
    pub(super) is_ip: bool,
}

/// Reads hexadecimal digits, a capture (`FILE`), or one packet of a capture (`FILE:N`).
///
/// # Errors
/// The text is none of these, or the capture has neither Ethernet frames nor IP packets.
pub(super) fn read(text: &str, is_ip: bool) -> Result<Vec<Frame>> {
    if Path::new(text).is_file() {
        return of_capture(Path::new(text), None);
    }
    if let Some((file, number)) = text.rsplit_once(':')
        && let Ok(number) = number.parse()
        && Path::new(file).is_file()
    {
        ensure!(number > 0, "{file}: packets are numbered from 1");
        return of_capture(Path::new(file), Some(number));
    }
    let Some(octets) = hexadecimal(text) else {
        bail!(
            "'{text}' is neither a capture nor a frame in hexadecimal; write FILE, FILE:N for its n-th packet, or the \
             frame's bytes as 02000000000202000000000108004500…"
        );
    };
    ensure!(
        is_ip || octets.len() >= 14,
        "a frame has at least the 14 bytes of its Ethernet header, this one has {}; for an IP packet give --ip",
        octets.len()
    );
    Ok(vec![Frame {
        number: 1,
        octets,
        is_ip,
    }])
}

/// Bytes from pairs of hex digits, optionally with spaces, colons or `0x`; `None` if the text is something else.
fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let text = text.trim().strip_prefix("0x").unwrap_or(text);
    let digits: Vec<u8> = text
        .chars()
        .filter(|char| !char.is_whitespace() && *char != ':')
        .map(|char| Some(char.to_digit(16)? as u8))
        .collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let octets = pairs.iter().map(|[high, low]| high << 4 | low);
    (rest.is_empty() && !pairs.is_empty()).then(|| octets.collect())
}

fn of_capture(path: &Path, only: Option<u64>) -> Result<Vec<Frame>> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(name)?;
    let mut reader = Reader::new(file).with_context(name)?;
    let (mut block, mut frames, mut number) = (Block::new(), Vec::new(), 0_u64);
    while reader.read_block(&mut block).with_context(name)? {
        for record in block.records() {
            number += 1;
            if only.is_some_and(|only| only != number) {
                continue;
            }
            let is_ip = match record.link {
                LinkType::ETHERNET => false,
                LinkType::RAW | LinkType::RAW_OLD | LinkType::RAW_OPENBSD => true,
                link => bail!(
                    "{}: packet {number} is of link type {}; explain reads Ethernet frames and raw IP packets",
                    path.display(),
                    link.0
                ),
            };
            let octets = block.bytes(record).to_vec();
            frames.push(Frame {
                number,
                octets,
                is_ip,
            });
            if only.is_some() {
                return Ok(frames);
            }
            ensure!(
                frames.len() <= FRAMES_MAX,
                "{}: has more than {FRAMES_MAX} packets; name one as {}:N",
                path.display(),
                path.display()
            );
        }
    }
    if let Some(only) = only {
        bail!("{}: has {number} packets, not {only}", path.display());
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_are_a_frame() {
        let frame = read("0x0200 0000:0002 020000000001 0800 45", false).expect("a frame");
        assert_eq!(frame[0].octets.len(), 15);
        assert!(!frame[0].is_ip);
        assert_eq!(read("45", true).expect("a packet")[0].octets, [0x45]);
    }

    #[test]
    fn what_is_no_frame_is_named() {
        for (text, said) in [
            ("", "neither a capture nor"),
            ("nonsense", "neither a capture nor"),
            ("450", "neither a capture nor"),
            ("4500", "at least the 14 bytes"),
            ("no-such-file:3", "neither a capture nor"),
        ] {
            let error = read(text, false).expect_err(text).to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
