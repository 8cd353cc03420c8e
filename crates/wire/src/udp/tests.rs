use super::{Udp, UdpError};
use crate::packet::Packet;

#[test]
fn another_protocol_is_not_udp() {
    assert_eq!(Udp::parse(&Packet::new()), Err(UdpError::NotUdp));
}
