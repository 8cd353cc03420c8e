//! IP headers: the result lies within the packet, and bytes added after its end change nothing.

use wire::ip::{self, Header, Upper};
use wire::packet::Fragment;

/// Takes a packet that starts with its IP header.
///
/// # Panics
/// If a header does not match the packet.
pub fn target(data: &[u8]) {
    let Ok(header) = Header::read(data) else {
        return;
    };
    let total = header.total_length as usize;
    assert!(usize::from(header.header_length) <= total && total <= data.len());
    assert!(matches!(header.version, 4 | 6));
    let has_ports = (header.source_port, header.destination_port) != (0, 0);
    match header.upper {
        Upper::Ports => assert!(ip::has_ports(header.protocol)),
        Upper::Icmp => assert!(header.source_port == 0 && header.icmp().is_some()),
        Upper::Unread | Upper::Cut => assert!(!has_ports),
    }
    assert!(header.tcp_flags == 0 || header.protocol == 6 && header.upper == Upper::Ports);
    if header.fragment == Fragment::Later {
        assert!(header.upper == Upper::Unread);
    } else {
        assert!(header.fragment_offset == 0);
    }
    assert_eq!(Header::read(&data[..total]), Ok(header));
    let mut longer = data.to_vec();
    longer.extend([0xff; 40]);
    assert_eq!(Header::read(&longer), Ok(header));
    if total > 0 {
        assert!(Header::read(&data[..total - 1]).is_err());
    }
}
