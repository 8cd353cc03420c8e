use proptest::prelude::*;

use super::*;
use crate::dns;

const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

fn read(packet: &[u8]) -> Result<Message<'_>, NdpError> {
    Message::read(&Header::read(packet).unwrap(), packet)
}

/// A message with this hop limit, type and code, whose checksum is right.
fn packet(addresses: [Ipv6Addr; 2], hop_limit: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_icmp(addresses, hop_limit, &mut out, |out| {
        out.extend_from_slice(content)
    });
    out
}

#[test]
fn a_router_advertisement_is_written_as_section_4_2_has_it() {
    let prefix = Prefix {
        address: "2001:db8:0:7::".parse().unwrap(),
        length: 64,
        on_link: true,
        autonomous: true,
        valid_s: 86_400,
        preferred_s: 43_200,
    };
    let mut search = Vec::new();
    dns::encode("example.net", &mut search).unwrap();
    let servers = ["2001:db8::53".parse().unwrap()];
    let router = Router {
        hop_limit: 64,
        managed: false,
        other: true,
        lifetime_s: 1_800,
    };
    let one = Advertisement {
        router,
        mtu: Some(1_492),
        prefixes: &[prefix],
        servers: &servers,
        search: &search,
        names_s: 1_800,
    };
    let mut out = Vec::new();
    write_advertisement([ROUTER, ALL_NODES], &one, &mut out);
    let icmp = &out[40..];
    assert_eq!(icmp[..2], [134, 0]);
    assert_eq!(icmp[4..16], [64, 0x40, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(icmp[16..24], [5, 1, 0, 0, 0, 0, 5, 0xd4]);
    assert_eq!(icmp[24..28], [3, 4, 64, 0xc0]);
    assert_eq!(icmp[56..64], [25, 3, 0, 0, 0, 0, 7, 8]);
    assert_eq!(icmp[80..88], [31, 3, 0, 0, 0, 0, 7, 8]);
    assert_eq!(icmp[88..], *b"\x07example\x03net\x00\0\0\0");
    let Ok(Message::RouterAdvertisement(seen, options)) = read(&out) else {
        panic!("{:?}", read(&out));
    };
    assert_eq!(seen, router);
    let options: Vec<_> = options.collect();
    assert_eq!(options[..2], [Option::Mtu(1_492), Option::Prefix(prefix)]);
    assert_eq!(options[2], Option::Servers(1_800, &[servers[0].octets()]));
    assert!(matches!(options[3], Option::Other(31, _)));
}

#[test]
fn solicitations_are_valid_by_section_6_1_1() {
    let mut out = Vec::new();
    write_solicitation(HOST, &mut out);
    assert_eq!(read(&out), Ok(Message::RouterSolicitation));
    let content = [133, 0, 0, 0, 0, 0, 0, 0];
    let to = [HOST, ALL_ROUTERS];
    assert_eq!(
        read(&packet(to, 254, &content)),
        Err(NdpError::HopLimit(254))
    );
    out[42] ^= 1;
    assert_eq!(read(&out), Err(NdpError::Checksum));
    assert_eq!(
        read(&packet(to, 255, &[133, 1, 0, 0, 0, 0, 0, 0])),
        Err(NdpError::Code(1))
    );
    assert_eq!(
        read(&packet(to, 255, &content[..7])),
        Err(NdpError::Truncated)
    );
    for option in [&[1, 0][..], &[1, 2, 0, 0, 0, 0, 0, 0], &[1]] {
        let wrong = packet(to, 255, &[&content, option].concat());
        assert_eq!(read(&wrong), Err(NdpError::OptionLength));
    }
    // From the unspecified address only without a link-layer address.
    let nobody = [Ipv6Addr::UNSPECIFIED, ALL_ROUTERS];
    assert_eq!(
        read(&packet(nobody, 255, &content)),
        Ok(Message::RouterSolicitation)
    );
    let with = [&content[..], &[1, 1, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(read(&packet(nobody, 255, &with)), Err(NdpError::Address));
    // An unknown option is ignored.
    let unknown = [&content[..], &[99, 1, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(
        read(&packet(to, 255, &unknown)),
        Ok(Message::RouterSolicitation)
    );
}

#[test]
fn an_advertisement_comes_from_a_link_local_address() {
    let mut content = [0; 16];
    content[0] = 134;
    assert!(read(&packet([ROUTER, ALL_NODES], 255, &content)).is_ok());
    let global = "2001:db8::1".parse().unwrap();
    assert_eq!(
        read(&packet([global, ALL_NODES], 255, &content)),
        Err(NdpError::Address)
    );
}

#[test]
fn neighbour_messages_are_valid_by_section_7_1() {
    let mut content = [0; 24];
    content[0] = 135;
    content[8..].copy_from_slice(&ROUTER.octets());
    let target = ROUTER;
    let solicitation = Ok(Message::NeighborSolicitation { target });
    assert_eq!(read(&packet([HOST, ROUTER], 255, &content)), solicitation);
    // Duplicate address detection: from nobody, to the solicited-node address of the target.
    let node: Ipv6Addr = "ff02::1:ff00:1".parse().unwrap();
    let nobody = Ipv6Addr::UNSPECIFIED;
    assert_eq!(read(&packet([nobody, node], 255, &content)), solicitation);
    assert_eq!(
        read(&packet([nobody, ROUTER], 255, &content)),
        Err(NdpError::Address)
    );
    content[8..].copy_from_slice(&ALL_NODES.octets());
    assert_eq!(
        read(&packet([HOST, ROUTER], 255, &content)),
        Err(NdpError::Address)
    );
    let mut out = Vec::new();
    write_neighbor([ROUTER, HOST], ROUTER, true, &mut out);
    let flags = 0xe0;
    assert_eq!(
        read(&out),
        Ok(Message::NeighborAdvertisement { target, flags })
    );
    out.clear();
    // Solicited, and to a multicast address.
    write_neighbor([ROUTER, ALL_NODES], ROUTER, true, &mut out);
    assert_eq!(read(&out), Err(NdpError::Address));
}

proptest! {
    #[test]
    fn no_octets_make_it_panic(kind in 130_u8..140, content: Vec<u8>) {
        let content = [&[kind, 0, 0, 0], &content[..]].concat();
        let packet = packet([ROUTER, HOST], 255, &content);
        if let Ok(Message::RouterAdvertisement(_, options)) = read(&packet) {
            let _ = options.count();
        }
    }
}
