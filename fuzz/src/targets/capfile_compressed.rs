//! Compressed capture files: the same packets, in whatever portions the file is read, unless its stream is
//! corrupt.

use capfile::Fault;

use super::capfile_formats::{Whole, read_twice};

/// Takes a file compressed with gzip, zstd, bzip2, xz or lz4.
///
/// # Panics
/// If the portions make a difference for an intact stream, or, for a corrupt one, a difference other than how
/// many packets are returned.
pub fn target(data: &[u8]) {
    match read_twice(data) {
        (Some(whole), Some(again)) if is_broken(&whole) || is_broken(&again) => {
            if whole.format == again.format {
                let count = whole.packets.len().min(again.packets.len());
                assert_eq!(whole.packets[..count], again.packets[..count]);
            }
        }
        (Some(whole), Some(again)) => assert_eq!(whole, again),
        (None, None) => {}
        (Some(one), None) | (None, Some(one)) => assert!(is_broken(&one)),
    }
}

fn is_broken(whole: &Whole) -> bool {
    whole.faults.iter().any(|(fault, _)| {
        matches!(
            fault,
            Fault::CompressionCorrupt | Fault::CompressionTruncated
        )
    })
}
