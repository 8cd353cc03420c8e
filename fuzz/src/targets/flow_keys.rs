//! Keys of packets and frames: every value found is in the bytes, and a truncated packet yields complete flows
//! or none.

use wire::flow::{Flow, Keys};

/// Takes a packet that starts with its IP header, and treats it as a frame as well.
///
/// # Panics
/// If the keys are not those of the packet.
pub fn target(data: &[u8]) {
    let keys = Keys::read(data);
    check(data, &keys);
    assert_eq!((keys.mark, keys.vlan), (0, 0));
    let mut again = Keys {
        inner: keys.outer,
        vlan: 1,
        ..Keys::read_frame(data)
    };
    check(data, &Keys::read_frame(data));
    again.replace(data);
    assert_eq!(again, keys);

    let mut frame = vec![2; 12];
    frame.extend([0x81, 0, 0xe0, 5, 0x08, 0]);
    if data.first().is_some_and(|first| first >> 4 == 6) {
        frame[16..].copy_from_slice(&[0x86, 0xdd]);
    }
    frame.extend(data);
    let tagged = Keys::read_frame(&frame);
    assert!(tagged == Keys { vlan: 5, ..keys });

    let half = Keys::read(&data[..data.len() / 2]);
    if half.outer.exists() && keys.outer.exists() {
        assert_eq!(half.outer.source, keys.outer.source);
        assert_eq!(half.outer.destination, keys.outer.destination);
    }
}

fn check(data: &[u8], keys: &Keys) {
    for flow in [&keys.outer, &keys.inner] {
        assert!(flow.protocol < 256);
        assert!(!flow.exists() || has(data, &flow.source) && has(data, &flow.destination));
        let ports = (flow.source_port, flow.destination_port) != (0, 0);
        assert!(!ports || matches!(flow.protocol, 6 | 17 | 33 | 132 | 136));
        assert!(!ports || data.windows(4).any(|octets| octets == ports_of(flow)));
    }
    let kernel = keys.as_kernel();
    assert_eq!(kernel.inner, Flow::default());
    assert!(kernel.outer == keys.outer || kernel.outer == keys.inner);
    assert_eq!(kernel.as_kernel(), kernel);
}

fn ports_of(flow: &Flow) -> [u8; 4] {
    (u32::from(flow.source_port) << 16 | u32::from(flow.destination_port)).to_be_bytes()
}

fn has(data: &[u8], address: &[u8; 16]) -> bool {
    let short = address.strip_prefix(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
    let octets = short.unwrap_or(address);
    data.windows(octets.len()).any(|window| window == octets)
}
