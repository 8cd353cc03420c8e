//! ICMP echo messages, complete and as quoted by errors.

use wire::icmp::{Echo, EchoError, Version};

/// Takes an ICMP or ICMPv6 message.
///
/// # Panics
/// If a parsed message is written differently, or a part parses differently from the whole.
pub fn target(data: &[u8]) {
    for version in [Version::V4, Version::V6] {
        let quoted = Echo::parse_quoted(version, data);
        match Echo::parse(version, data) {
            Ok(echo) => {
                assert_eq!(quoted, Ok(echo));
                let mut out = Vec::new();
                echo.emit(version, &mut out);
                assert_eq!((&out[..2], &out[4..]), (&data[..2], &data[4..]));
                assert_eq!(Echo::parse(version, &out), Ok(echo));
            }
            Err(EchoError::Checksum) => {
                let echo = quoted.expect("the checksum is looked at last");
                let mut out = Vec::new();
                echo.emit(version, &mut out);
                assert_eq!(Echo::parse(version, &out), Ok(echo));
            }
            Err(error) => assert_eq!(quoted, Err(error)),
        }
        let half = &data[..data.len() / 2];
        if let (Ok(part), Ok(whole)) = (Echo::parse_quoted(version, half), quoted) {
            assert_eq!((part.kind, part.sequence), (whole.kind, whole.sequence));
            assert!(whole.data.starts_with(part.data));
        }
    }
}
